"""What the papers report of one another's policies, and that every policy learns on problems it is made for."""

import math

import pytest

import duels
from duels.experiments.race import unsuitable
from duels.policies import BUILT_IN

# 0 beats all but 5, which all others beat: a Copeland winner, and no Condorcet winner.
CYCLE = duels.PreferenceMatrix(
    [
        [0.5, 0.6, 0.65, 0.7, 0.7, 0.4],
        [0.4, 0.5, 0.6, 0.65, 0.4, 0.7],
        [0.35, 0.4, 0.5, 0.6, 0.65, 0.7],
        [0.3, 0.35, 0.4, 0.5, 0.6, 0.7],
        [0.3, 0.6, 0.35, 0.4, 0.5, 0.7],
        [0.6, 0.3, 0.3, 0.3, 0.3, 0.5],
    ],
    name="cycle",
)
LEARNERS = [name for name in BUILT_IN if name != "random"]
# The notion of regret that a policy keeps low. Borda UCB's second arm is a random one: only the better of both counts.
MADE_FOR = {"winner_stays": ("weak", "regret"), "borda_ucb": ("borda", "weak_regret")}
LONG = {("winner_stays", "arxiv-6"): 200_000}


def final(problem, policy, horizon, runs, regret="auto"):
    results = duels.simulate(problem, policy, horizon=horizon, runs=runs, regret=regret, checkpoints=[])
    return results.final().row(0, named=True)


def is_below(problem, policy, other, horizon, runs):
    """Whether the mean regret is below the other's by five standard errors: by chance once in three million."""
    mine, theirs = (final(problem, one, horizon, runs) for one in (policy, other))
    error = math.hypot(mine["standard_error"], theirs["standard_error"])
    return mine["regret"] + 5 * error < theirs["regret"]


@pytest.mark.deep
@pytest.mark.parametrize("problem", ["arxiv-6", "arithmetic-8", "cyclic-4"])
@pytest.mark.parametrize("policy", ["rmed1", "rmed2", "dts", "dts_plus"])
def test_rmed_and_dts_are_below_rucb(problem, policy):
    """Komiyama et al. (2015), Wu & Liu (2016): on these very problems."""
    assert is_below(problem, policy, "rucb", 100_000, 40)


@pytest.mark.deep
@pytest.mark.parametrize("matrix", ["mslr-navigational-136", "mslr-perfect-136"])
def test_merging_is_ahead_with_many_arms(shared_data, matrix):
    """Zoghi et al. (WSDM 2015): MergeRUCB below RUCB; Li et al. (2020): MergeDTS below MergeRUCB."""
    problem = duels.load_matrix(shared_data(f"matrices/{matrix}.csv"))
    assert is_below(problem, "merge_dts", "merge_rucb", 10_000_000, 10)
    merged, plain = (final(problem, one, 10_000_000, runs) for one, runs in (("merge_rucb", 40), ("rucb", 10)))
    assert merged["regret"] + 3 * merged["standard_error"] < plain["regret"]
    assert merged["accuracy"] >= 0.75  # some runs have several batches left: by 2·10⁷ steps 40 of 40 were right


@pytest.mark.parametrize("policy", ["ccb", "scb", "dts", "dts_plus", "ecw_rmed"])
def test_copeland_winners_are_found_where_no_arm_beats_all(policy):
    """Twenty runs; each would err with a chance of some per cent at most after 10⁵ steps if it did what it says.

    RUCB, whose assumption fails, pays a hundred times as much as DTS: it goes round the cycle for ever.
    """
    found = final(CYCLE, policy, 100_000, 20)
    assert found["accuracy"] >= 0.9
    assert found["regret"] < 0.5 * final(CYCLE, "rucb", 100_000, 4)["regret"]


@pytest.mark.deep
@pytest.mark.parametrize("problem", ["arithmetic-8", "arxiv-6", "cyclic-4", "cycle"])
@pytest.mark.parametrize("policy", LEARNERS)
def test_every_policy_learns_on_the_problems_it_is_made_for(problem, policy):
    """The winner is named in nine runs of ten, and the second half of the run costs less than the first."""
    matrix = CYCLE if problem == "cycle" else duels.problem(problem)
    chosen = duels.policy(policy, **({"gamma": 0.3} if policy == "btm" else {}))
    if unsuitable(chosen, matrix):
        pytest.skip(unsuitable(chosen, matrix))
    if (policy, problem) == ("verdict", "cycle"):
        pytest.skip("it finds out that no arm beats all others, and goes on asking about these")
    notion, column = MADE_FOR.get(policy, ("auto", "regret"))
    horizon = LONG.get((policy, problem), 1_000_000)
    results = duels.simulate(matrix, chosen, horizon=horizon, runs=10, regret=notion, checkpoints=[horizon // 2])
    means = dict(results.summarise().select("t", column).rows())
    assert results.final()["accuracy"][0] >= 0.9
    first, second = means[horizon // 2], means[horizon] - means[horizon // 2]
    assert second < 0.9 * first
