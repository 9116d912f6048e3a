"""What the papers report of one another's policies, and that every policy learns on problems it is made for."""

import math

import numpy as np
import pytest
from sampling import ladder

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


RANK = np.arange(8)
# Every arm beats the ones after it with probability 0.8.
STEPS = np.where(RANK[:, None] < RANK, 0.8, 0.2) + 0.3 * np.eye(8)
# Arm 2 beats four equal arms with probability 0.8.
STAR = np.full((5, 5), 0.5)
STAR[2, :], STAR[:, 2] = 0.8, 0.2
STAR[2, 2] = 0.5
# Every arm beats the ones below it, the clearer the further below they are.
STEEP = 0.5 + 0.48 * np.subtract.outer(*[np.roll(np.arange(5), 2)] * 2).T / 5
# Policy, problem, runs, seed; by which factor the second half of 20,000 steps must cost less than the first, and the
# share of right recommendations. At the right, how far the mean of such runs with other seeds is from that bar, in
# standard errors, or the ratio itself, with its deviation in one run.
LEARNING = [
    ("kl_rucb", "arithmetic-8", 10, 1, 0.5, 1.0),  # 13 standard errors
    ("rmed1", "arithmetic-8", 10, 1, 0.3, 0.9),  # 7.5
    ("rmed2", "arithmetic-8", 10, 1, 0.4, 0.9),  # 12
    ("rmed2fh", "arithmetic-8", 10, 1, 0.3, 0.9),  # 10
    ("merge_rucb", STEPS, 10, 1, 0.5, 1.0),  # 32
    ("ecw_rmed", "cyclic-4", 10, 1, 0.5, 0.9),  # 8.6
    ("winner_stays:variant=strong", "arithmetic-8", 20, 1, 0.7, 0.9),  # 22
    ("multisbm", STAR, 10, 0, 0.5, 1.0),  # a ratio of 0.12 ± 0.023
    ("sparring", STAR, 10, 0, 0.5, 1.0),  # 0.17 ± 0.012
    ("versatile_db", STAR, 10, 0, 0.5, 1.0),  # 0.14 ± 0.03
    ("rex3", STEEP, 10, 0, 0.6, 1.0),  # 0.31 ± 0.07
    ("dts", ladder(), 20, 7, 0.4, 1.0),  # from 0.07 to 0.12
    ("dts_plus", ladder(), 20, 7, 0.4, 1.0),  # from 0.09 to 0.13
    ("rcs", ladder(), 20, 7, 0.5, 1.0),  # from 0.045 to 0.065
    ("self_sparring", ladder(), 20, 7, 0.5, 1.0),  # from 0.10 to 0.11
    # In 100 runs with other seeds one arm, the right one, was left before half of the time was over.
    *(("merge_dts:c=4e4", ladder(arms), 20, 7, 0.3, 0.9) for arms in (6, 40)),
]


@pytest.mark.parametrize(
    ("policy", "problem", "runs", "seed", "bar", "right"), [pytest.param(*row, id=row[0]) for row in LEARNING]
)
def test_regret_falls_and_the_winner_is_found(policy, problem, runs, seed, bar, right):
    results = duels.simulate(problem, policy, horizon=20_000, runs=runs, checkpoints=[10_000], seed=seed)
    half, whole = results.summarize()["regret"].to_list()
    assert whole - half < bar * half
    assert results.final()["accuracy"].item() >= right


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
    matrix = CYCLE if problem == "cycle" else duels.load_problem(problem)
    chosen = duels.policies.load_policy(policy, **({"gamma": 0.3} if policy == "btm" else {}))
    if unsuitable(chosen, matrix):
        pytest.skip(unsuitable(chosen, matrix))
    if (policy, problem) == ("verdict", "cycle"):
        pytest.skip("it finds out that no arm beats all others, and goes on asking about these")
    notion, column = MADE_FOR.get(policy, ("auto", "regret"))
    horizon = LONG.get((policy, problem), 1_000_000)
    results = duels.simulate(matrix, chosen, horizon=horizon, runs=10, regret=notion, checkpoints=[horizon // 2])
    means = dict(results.summarize().select("t", column).rows())
    assert results.final()["accuracy"][0] >= 0.9
    first, second = means[horizon // 2], means[horizon] - means[horizon // 2]
    assert second < 0.9 * first
