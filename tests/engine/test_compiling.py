"""Compiled code is kept on disk and never stale."""

import shutil
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
from histories import frozen

import duels
from duels.engine import compiling, loop
from duels.policies import load_policy, rucb

SOURCE = Path(duels.__file__).parent

PROBE = """
import numpy as np, duels
from duels.engine import loop
chosen, matrix = duels.policies.load_policy("random"), duels.load_problem("arxiv-6").array
play = loop.ready(chosen, 6, 100, matrix)
tally = loop.new_tally(6)
coin, luck = loop.streams(0, 0)
t, arm = play(chosen.start(6), chosen.params, matrix, tally, 1, 100, loop.FOREVER, 1000, coin, luck, coin)
print(duels.__file__, sum(play.stats.cache_hits.values()), tally.wins.tolist(), arm)
"""


def probe(folder, **environment):
    """Where the package came from, how many compiled loops came from the cache, and what they did."""
    found = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin", "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    file, hits, result = found.stdout.split(" ", 2)
    assert file == str(folder / "duels" / "__init__.py")
    return int(hits), result


def edit(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


EDITS = (
    ("policies/kernels.py", "return int(rng.random() * m)", "return m - 1 - int(rng.random() * m)"),
    ("engine/loop.py", "        t += 1\n    return t, rec", "        t += 2\n    return t, rec"),
    ("policies/random.py", "record(state.wins, i, j, outcome)", "record(state.wins, j, i, outcome)"),
)


@pytest.mark.deep
@pytest.mark.parametrize("edits", [EDITS[:1], EDITS], ids=["helper", "each"])
def test_editing_any_kernel_changes_the_next_run(tmp_path, edits):
    shutil.copytree(SOURCE, tmp_path / "duels", ignore=shutil.ignore_patterns("__pycache__"))
    _, before = probe(tmp_path)
    assert probe(tmp_path) == (1, before)  # a second process compiles nothing
    for file, old, new in edits:  # the first is of a helper in another file
        edit(tmp_path / "duels" / file, old, new)
        hits, after = probe(tmp_path)
        assert (hits, after != before) == (0, True)
        before = after


@pytest.mark.deep
def test_another_checkout_finds_what_was_compiled(tmp_path):
    """In the same cache directory, wherever the package is, and whatever the times of its files are."""
    found = []
    for name in ("one", "two"):
        shutil.copytree(SOURCE, tmp_path / name / "duels", ignore=shutil.ignore_patterns("__pycache__"))
        (tmp_path / name / "duels" / "engine" / "loop.py").touch()
        found.append(probe(tmp_path / name, NUMBA_CACHE_DIR=str(tmp_path / "cache")))
    assert [hits for hits, _ in found] == [0, 1]
    assert found[0][1] == found[1][1]
    edit(tmp_path / "two" / "duels" / EDITS[0][0], *EDITS[0][1:])
    assert probe(tmp_path / "two", NUMBA_CACHE_DIR=str(tmp_path / "cache"))[0] == 0


def test_the_fingerprint_sees_constants_and_fields(monkeypatch):
    kernels = {"select": rucb.select, "skip": rucb.skip}
    before = compiling.fingerprint(loop.play, kernels, {})
    assert compiling.fingerprint(loop.play, kernels, {}) == before
    assert compiling.fingerprint(loop.play, kernels, {"nogil": True}) != before
    monkeypatch.setattr(rucb, "FOREVER", 1 << 61)  # a constant that skip's helper reads
    assert compiling.fingerprint(loop.play, kernels, {}) != before
    monkeypatch.undo()
    monkeypatch.setattr(rucb.State, "_fields", rucb.State._fields[::-1])
    assert compiling.fingerprint(loop.play, kernels, {}) != before


def test_an_unwritable_cache_is_no_obstacle(monkeypatch):
    import numba

    real = numba.njit

    def without_cache(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return real(*args, **options)

    monkeypatch.setattr(numba, "njit", without_cache)
    monkeypatch.setattr(compiling, "_compiled", {})
    chosen, matrix = load_policy("random"), frozen(np.full((3, 3), 0.5))
    play = loop.ready(chosen, 3, 10, matrix)
    coin, luck = loop.streams(0, 0)
    tally = loop.new_tally(3)
    play(chosen.start(3), chosen.params, matrix, tally, 1, 10, loop.FOREVER, 10, coin, luck, coin)
    assert tally.wins.sum() == 10


def test_calls_keep_nothing_of_what_they_were_given():
    chosen, matrix = load_policy("random"), duels.load_problem("arxiv-6").array
    play = loop.ready(chosen, 6, 10, matrix)
    state, tally, (coin, luck) = chosen.start(6), loop.new_tally(6), loop.streams(0, 0)
    given = (coin, luck, tally.wins, matrix, state.wins)
    before = [sys.getrefcount(one) for one in given]
    for _ in range(5):
        play(state, chosen.params, matrix, tally, 1, 10, loop.FOREVER, 10, coin, luck, coin)
    assert [sys.getrefcount(one) for one in given] == before


def test_the_fingerprint_sees_defaults_floats_and_roles():
    def function(a=1):
        return a + X  # noqa: F821

    def print_of(constant=0.5, defaults=(1,), role="select"):
        kernel = FunctionType(function.__code__, {"X": constant, "__name__": "m"}, "f", defaults)
        return compiling.fingerprint(loop.play, {role: kernel}, {})

    base = print_of()
    assert print_of() == base
    assert len({base, print_of(constant=0.25), print_of(defaults=(2,)), print_of(role="update")}) == 4
