"""Notions of regret, by hand and by adding up duels one by one."""

import numpy as np
import pytest

import duels
from duels.errors import NoCondorcetWinner, UnknownName
from duels.regrets import NOTIONS, find_regret

ORDER = [[0.5, 0.6, 0.9], [0.4, 0.5, 0.7], [0.1, 0.3, 0.5]]
CYCLE = [[0.5, 0.6, 0.4, 0.7], [0.4, 0.5, 0.6, 0.4], [0.6, 0.4, 0.5, 0.8], [0.3, 0.6, 0.2, 0.5]]


def test_by_hand_with_a_condorcet_winner():
    """Δ = (0, 0.1, 0.4); 0 beats 2 arms, 1 beats 1, 2 none: ζ = (1, ½, 0); b = (0.75, 0.55, 0.2)."""
    matrix = duels.PreferenceMatrix(ORDER)
    arms = {
        "condorcet": [0, 0.1, 0.4],
        "weak": [0, 0.1, 0.4],
        "strong": [0, 0.1, 0.4],
        "copeland": [0, 0.5, 1],
        "borda": [0, 0.2, 0.55],
    }
    for name, expected in arms.items():
        found = find_regret(matrix, name)
        assert found.arm == pytest.approx(expected)
        assert found.winners == (0,)
        assert found.name == name
    # One duel of 1 and 2, two of 0 and 2, and arm 1 three times against itself; costs are in the order of the arms.
    played, cheaper = np.array([2.0, 1 + 2 * 3, 1 + 2]), np.array([2.0, 1 + 3, 0])
    costs = {
        "condorcet": 0.25 + 2 * 0.2 + 3 * 0.1,
        "weak": 0.1 + 0 + 3 * 0.1,
        "strong": 0.4 + 2 * 0.4 + 3 * 0.1,
        "copeland": 0.75 + 2 * 0.5 + 3 * 0.5,
        "borda": 0.375 + 2 * 0.275 + 3 * 0.2,
    }
    for name, expected in costs.items():
        assert find_regret(matrix, name).of(played, cheaper) == pytest.approx(expected)


def test_by_hand_on_a_cycle():
    """0 beats 1 and 3, 1 beats 2, 2 beats 0 and 3, 3 beats 1: ζ = (2, 1, 2, 1)/3, two Copeland winners.

    b = (0.6 + 0.4 + 0.7, 0.4 + 0.6 + 0.4, 0.6 + 0.4 + 0.8, 0.3 + 0.6 + 0.2)/3 = (1.7, 1.4, 1.8, 1.1)/3.
    """
    matrix = duels.PreferenceMatrix(CYCLE)
    found = find_regret(matrix)
    assert found.name == "copeland"
    assert found.winners == (0, 2)
    assert found.arm == pytest.approx([0, 1 / 3, 0, 1 / 3])
    borda = find_regret(matrix, "borda")
    assert borda.winners == (2,)
    assert borda.arm == pytest.approx([0.1 / 3, 0.4 / 3, 0, 0.7 / 3])
    for name in ("condorcet", "weak", "strong"):
        with pytest.raises(NoCondorcetWinner, match="Copeland winners"):
            find_regret(matrix, name)


def test_unknown_notions_are_named():
    with pytest.raises(UnknownName, match="Did you mean 'borda'"):
        find_regret(duels.PreferenceMatrix(ORDER), "bord")
    with pytest.raises(UnknownName, match="notion of regret"):
        duels.simulate("arxiv-6", "rucb", horizon=10, regret="x")


@pytest.mark.parametrize("name", NOTIONS)
def test_simulations_add_it_up_duel_by_duel(name):
    """The regret of a run is the sum over its duels, as the recorded pairs tell them."""
    results = duels.simulate(ORDER, "random", horizon=500, runs=2, regret=name, record="pairs")
    assert results.notion == name
    gaps, zeta, borda = [0, 0.1, 0.4], [0, 0.5, 1], [0, 0.2, 0.55]
    cost = {
        "condorcet": lambda i, j: (gaps[i] + gaps[j]) / 2,
        "weak": lambda i, j: min(gaps[i], gaps[j]),
        "strong": lambda i, j: max(gaps[i], gaps[j]),
        "copeland": lambda i, j: (zeta[i] + zeta[j]) / 2,
        "borda": lambda i, j: (borda[i] + borda[j]) / 2,
    }[name]
    for run, t, regret in results.frame.select("run", "t", "regret").rows():
        rows = results.pairs.filter(run=run, t=t).select("first", "second", "duels").rows()
        assert regret == pytest.approx(sum(duels_ * cost(i, j) for i, j, duels_ in rows))


def test_accuracy_is_that_of_the_matching_winners():
    results = duels.simulate(CYCLE, "random", horizon=2000, runs=20)
    assert results.notion == "copeland"
    last = results.frame.filter(t=2000)
    assert last["correct"].to_list() == [arm in (0, 2) for arm in last["recommended"]]
    assert last["simple_regret"].to_list() == pytest.approx(
        [0 if arm in (0, 2) else 1 / 3 for arm in last["recommended"]]
    )
    borda = duels.simulate(CYCLE, "random", horizon=2000, runs=20, regret="borda")
    assert borda.frame["correct"].to_list() == [arm == 2 for arm in borda.frame["recommended"]]
    assert borda.frame["recommended"].equals(results.frame["recommended"])  # the notion changes nothing but the count


def test_experiments_say_which_notion_each_problem_has():
    problems = {"order": ORDER, "cycle": CYCLE}
    results = duels.run_experiment(problems, "random", 100, runs=2)
    said = results.provenance["problems"]
    assert {name: facts["regret"] for name, facts in said.items()} == {"order": "condorcet", "cycle": "copeland"}
    alone = duels.simulate(CYCLE, "random", horizon=100, runs=2)
    assert results.frame.filter(problem="cycle")["regret"].equals(alone.frame["regret"])
    asked = duels.run_experiment(problems, "random", 100, runs=2, regret="borda")
    assert {facts["regret"] for facts in asked.provenance["problems"].values()} == {"borda"}
    assert asked.provenance["problems"] != said


def test_results_and_figures_say_the_notion():
    order = duels.simulate(ORDER, "random", horizon=100, runs=2)
    cycle = duels.simulate({"cycle": CYCLE}["cycle"], "random", horizon=100, runs=2, regret="borda")
    assert order.notion == "condorcet"
    assert cycle.notion == "borda"
    assert duels.figures.regret(order).to_dict()["title"]["text"].startswith("Cumulative regret (Condorcet) on")
    assert duels.figures.regret(cycle).to_dict()["title"]["text"].startswith("Cumulative regret (Borda) on")
    both = duels.run_experiment({"order": ORDER, "cycle": CYCLE}, "random", 100, runs=2)
    assert both.notion == "condorcet, copeland"
    assert duels.results.combine([order]).notion == "condorcet"
    assert duels.results.Results(order.frame).notion == "condorcet"
