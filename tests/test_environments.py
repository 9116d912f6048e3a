"""Environments of one's own, preferences that change over time, and the page about them."""

import contextlib
import doctest
import io
import json
from pathlib import Path

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import duels
from duels.engine import loop
from duels.errors import InvalidInput, NoCondorcetWinner
from duels.experiments import ChangingPreferences
from duels.regrets import find_regret

ORDER = np.array([[0.5, 0.6, 0.9], [0.4, 0.5, 0.7], [0.1, 0.3, 0.5]])
FLIPPED = ORDER.T
TIED = np.full((3, 3), 0.5)
NOTEBOOK = Path(__file__).parents[1] / "examples" / "changing_preferences.ipynb"


def brute_force(spec, matrices, horizon, seed, notion):
    """Regret and recommendation after each step, from a plain loop that looks up the matrix of the step."""
    policy = duels.policies.load_policy(spec)
    (coin, luck), state = loop.streams(seed, 0), policy.start(3, horizon)
    regret, rows, found = 0.0, [], None
    for t in range(1, horizon + 1):
        for start, array in matrices:
            if start <= t:
                matrix = duels.PreferenceMatrix(array)
        found = find_regret(matrix, notion)
        i, j = policy.module.select(state, policy.params, t, coin)
        skip = policy.kernel("skip", loop.one_step)(state, policy.params, t) if i == j else t
        if skip <= t:
            policy.module.update(state, policy.params, t, i, j, float(luck.random() < matrix.array[i, j]))
        a, b = found.arm[i], found.arm[j]
        regret += {"weak": min(a, b), "strong": max(a, b)}.get(notion, (a + b) / 2)
        arm = policy.module.recommend(state, loop.tie_break_rng(seed, 0, t))
        rows.append((regret, found.arm[arm], arm in found.winners))
    return rows


@pytest.mark.parametrize("spec", ["rucb", "random", "self_sparring", "winner_stays"])
@pytest.mark.parametrize("notion", ["condorcet", "weak", "strong", "borda"])
def test_regret_is_measured_by_the_matrix_of_the_step(spec, notion):
    matrices = [(1, ORDER), (120, FLIPPED), (121, ORDER), (250, FLIPPED)]
    results = duels.simulate(
        ChangingPreferences(matrices),
        spec,
        horizon=300,
        seed=4,
        regret=notion,
        checkpoints=range(1, 301),
        compiled=False,
    )
    rows = brute_force(spec, matrices, 300, 4, notion)
    assert results.frame["regret"].to_list() == pytest.approx([row[0] for row in rows], abs=1e-9)
    assert results.frame["simple_regret"].to_list() == pytest.approx([row[1] for row in rows])
    assert results.frame["correct"].to_list() == [row[2] for row in rows]


@pytest.mark.parametrize("spec", ["rucb", "self_sparring"])
def test_compiled_equals_interpreted_and_checkpoints_change_nothing(spec):
    world = ChangingPreferences([(1, ORDER), (333, FLIPPED)], name="flip")
    first = duels.simulate(world, spec, horizon=1000, runs=3)
    assert_frame_equal(first.frame, duels.simulate(world, spec, horizon=1000, runs=3, compiled=False).frame)
    last = duels.simulate(world, spec, horizon=1000, runs=3, checkpoints=[]).frame
    columns = [name for name in last.columns if name != "regret"]
    assert_frame_equal(first.frame.filter(t=1000), last, check_exact=True)
    assert first.frame.select(columns).filter(t=1000).equals(last.select(columns))
    assert first.frame["problem"].unique().to_list() == ["flip"]
    assert first.provenance["problems"]["flip"]["environment"]["changes"][0][0] == 333


def test_a_change_to_the_same_matrix_or_after_the_horizon_changes_nothing():
    plain = duels.simulate(ORDER, "rucb", horizon=400, runs=2)
    for changes in ([(1, ORDER), (57, ORDER)], [(1, ORDER), (401, FLIPPED)]):
        world = ChangingPreferences(changes, name=plain.frame["problem"][0])
        assert_frame_equal(duels.simulate(world, "rucb", horizon=400, runs=2).frame, plain.frame, rel_tol=1e-12)


def test_a_long_self_duel_ends_at_the_change():
    """With 10¹² steps before the change the winner duels itself in one stretch; afterwards it costs 0.4 a step."""
    world = ChangingPreferences([(1, ORDER), (10**12 + 1, FLIPPED)])
    frame = duels.simulate(world, "rucb", horizon=10**12 + 3, checkpoints=[10**12]).frame
    before, after = frame["regret"].to_list()
    assert after - before == pytest.approx(3 * 0.4, abs=1e-3)
    assert frame["correct"].to_list() == [True, False]


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ([(1, ORDER), (1, FLIPPED)], r"hold from the steps \[1, 1\]: expected steps that ascend from 1"),
        ([(2, ORDER)], r"expected steps that ascend from 1"),
        ([], r"expected steps that ascend from 1"),
        ([(1, ORDER), (5, TIED[:2, :2])], "the matrix from step 5 has other arms than the first"),
        ([(1, 7)], "7 is not a problem"),
    ],
)
def test_wrong_changes_are_refused(matrices, message):
    with pytest.raises(InvalidInput, match=message):
        ChangingPreferences(matrices)


def test_all_matrices_need_what_the_notion_needs():
    world = ChangingPreferences([(1, ORDER), (5, TIED)])
    with pytest.raises(NoCondorcetWinner):
        duels.simulate(world, "random", horizon=10)
    assert duels.simulate(world, "random", horizon=10, regret="copeland").frame["correct"].to_list()[-1]


class Ties:
    """An environment with no more than it must have: one duel in five is a tie."""

    def __init__(self, array):
        self.matrix = duels.PreferenceMatrix(array, name="ties")

    def world(self):
        return self.matrix.array

    @staticmethod
    def outcome(world, i, j, luck):
        if luck.random() < 0.2:
            return 0.5
        return 1.0 if luck.random() < world[i, j] else 0.0


def test_a_small_environment_of_ones_own():
    compiled = duels.simulate(Ties(ORDER), "rucb", horizon=500, runs=3, record="pairs")
    assert_frame_equal(compiled.frame, duels.simulate(Ties(ORDER), "rucb", horizon=500, runs=3, compiled=False).frame)
    assert (compiled.pairs["wins"] % 1 == 0.5).any()


def test_what_is_no_environment_is_sent_to_the_page():
    class Half:
        def outcome(self, world, i, j, luck):
            return 1.0

    for wrong, message in (
        (object(), "is not a problem: .*; for an environment of your own see docs/environments.md"),
        (Half(), "has no matrix: see docs/environments.md"),
    ):
        with pytest.raises(InvalidInput, match=message):
            duels.simulate(wrong, "rucb", horizon=10)
    assert (Path(__file__).parents[1] / "docs" / "environments.md").is_file()


@pytest.mark.parametrize("wrong", [np.zeros((6, 6)), None, 3, ["weak"]])
def test_a_notion_that_is_no_name_is_refused(wrong):
    with pytest.raises(
        InvalidInput, match=r"regret is of type \w+: expected one of auto, condorcet, copeland, borda, weak, strong"
    ):
        duels.simulate("arxiv-6", "rucb", horizon=10, regret=wrong)


def test_the_notebook_runs_and_prints_what_it_says():
    """Each code cell is run, and what it prints is compared with the output that the file has."""
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    names = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("markdown", "code")
        if cell["cell_type"] == "code":
            said = "".join(text for output in cell["outputs"] for text in output["text"])
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
            assert doctest.OutputChecker().check_output(said, printed.getvalue(), doctest.NORMALIZE_WHITESPACE)
