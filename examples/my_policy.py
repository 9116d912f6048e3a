"""A policy of your own in one file: explore every pair equally often, then commit to the arm that beat the most.

    duels run arxiv-6 -p rucb -p examples/my_policy.py -p examples/my_policy.py:rounds=2000 --runs 20
    python examples/my_policy.py        # puts it to the conformance checks and races it against RUCB

Nothing here imports numba: Duels compiles the kernels and the functions they call.
"""

from typing import NamedTuple

import numpy as np

import duels
from duels.policies.kernels import FOREVER, choose, choose_majority, record

PAPER = "explore, then commit"


class Params(NamedTuple):
    rounds: int = 200  # duels of each pair before committing


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    arms: np.ndarray  # (K,) int64: 0 … K − 1
    champion: np.ndarray  # (1,) int64: the arm committed to, −1 while exploring


def check(params):
    if params.rounds < 1:
        raise duels.InvalidInput(f"rounds of my_policy is {params.rounds}: expected at least 1")


def init(arms, horizon, params):
    return State(wins=np.zeros((arms, arms)), arms=np.arange(arms), champion=np.full(1, -1))


def select(state, params, t, rng):
    if state.champion[0] >= 0:
        return state.champion[0], state.champion[0]
    fewest, ties = fewest_duels(state)
    if fewest >= params.rounds:
        state.champion[0] = choose_majority(state.wins, state.arms, len(state.arms), rng)
        return state.champion[0], state.champion[0]
    n = choose(ties, rng)
    for i in range(len(state.arms)):
        for j in range(i + 1, len(state.arms)):
            if state.wins[i, j] + state.wins[j, i] == fewest:
                if n == 0:
                    return i, j
                n -= 1
    return 0, 1


def fewest_duels(state):
    """How often the least-duelled pairs met, and how many such pairs there are."""
    fewest, ties = np.inf, 0
    for i in range(len(state.arms)):
        for j in range(i + 1, len(state.arms)):
            met = state.wins[i, j] + state.wins[j, i]
            if met < fewest:
                fewest, ties = met, 0
            ties += met == fewest
    return fewest, ties


def update(state, params, t, i, j, outcome):
    if i != j:
        record(state.wins, i, j, outcome)


def skip(state, params, t):
    """Once committed, nothing changes any more."""
    return FOREVER


def recommend(state, rng):
    if state.champion[0] >= 0:
        return state.champion[0]
    return choose_majority(state.wins, state.arms, len(state.arms), rng)


if __name__ == "__main__":
    from duels.testing import check_policy

    print("passes", ", ".join(check_policy(__file__)))
    results = [duels.simulate("arxiv-6", policy, horizon=100_000, runs=20) for policy in ("rucb", __file__)]
    print(duels.results.combine(results).final().select("policy", "regret", "standard_error", "accuracy"))
