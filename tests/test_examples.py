"""The examples that start a server, with small numbers."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from duels.preference import PreferenceMatrix

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def search_online():
    spec = importlib.util.spec_from_file_location("search_online", EXAMPLES / "search_online.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_search_online_runs():
    options = ["--queries", "50", "--every", "20", "--comparisons", "50"]
    done = subprocess.run(
        [sys.executable, EXAMPLES / "search_online.py", *options], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^ +(\d+–\d+)  ", done.stdout, re.MULTILINE) == ["1–20", "21–40", "41–50"]
    assert re.search(r"^No verdict yet: .* (\d+) answers so far", done.stdout, re.MULTILINE) or "winner" in done.stdout
    assert done.stderr == ""


def test_regret_worked_by_hand(search_online, capsys):
    """a beats b with 0.7 and c with 0.84: gaps 0, 0.2 and 0.34."""
    truth = PreferenceMatrix([[0.5, 0.7, 0.84], [0.3, 0.5, 0.7], [0.16, 0.3, 0.5]], ["a", "b", "c"])
    shown = [search_online.Shown(k, *pair) for k, pair in enumerate(["bc", "ac", "ab", "aa", "aa"])]
    regrets = [search_online.regret_of(one, truth) for one in shown]
    assert regrets == pytest.approx([0.27, 0.17, 0.1, 0, 0])
    # blocks of 2: 0.27 + 0.17, then 0.1 + 0, then a block of one, as if it were two
    assert search_online.print_table(shown, truth, 2) == pytest.approx([0.44, 0.1, 0])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["1–2", "25%", "0.4", "0.4"],
        ["3–4", "75%", "0.1", "0.5"],
        ["5–5", "100%", "0.0", "0.5"],
    ]


def test_equal_documents_stand_in_any_order(search_online):
    """Of scores 1, 2, 1 the second is first; the others follow in either order, each half of the time. In 200 draws
    one order has fewer than 65 or more than 135 once in a million times (binomial, 5 standard deviations)."""

    class Collection:
        features = np.array([[9.0], [1.0], [2.0], [1.0]])
        offsets = np.array([0, 1, 4])

    rng = np.random.default_rng(0)
    orders = [tuple(search_online.rank(Collection, 1, 0, rng)) for _ in range(200)]
    assert {order[0] for order in orders} == {1}
    assert 65 <= orders.count((1, 0, 2)) <= 135
    assert orders.count((1, 0, 2)) + orders.count((1, 2, 0)) == 200
