"""MaxMinLCB: Pásztor, Kassraie & Krause, NeurIPS 2024: a leader and a follower play a game for the lower bound.

The leader maximizes its lower confidence bound against the follower that makes it smallest, both among the points that
may be the best. The bounds are on the difference of utility.
"""

from typing import NamedTuple

import numpy as np

from ..model.search import around
from .context import Plausible, Situation, check_beta, make_bound, plausible

NAME = "MaxMinLCB"
PAPER = "Pásztor, Kassraie, Krause: Bandits with Preference Feedback: A Stackelberg Game Perspective (NeurIPS 2024)"


class Params(NamedTuple):
    beta: float = 2.0
    initial: int = 0


def check(params: Params) -> None:
    check_beta("max_min_lcb", params.beta)


def choose(situation: Situation, params: Params) -> tuple[np.ndarray, np.ndarray]:
    coarse = plausible(situation, situation.candidates, params.beta)
    leader, follower = play(coarse, params.beta)
    nearby = [around(coarse.points[one], situation.space, situation.rng) for one in {leader, follower}]
    fine = plausible(situation, np.ascontiguousarray(np.vstack([coarse.points, *nearby])), params.beta)
    leader, follower = play(fine, params.beta)
    first = fine.points[leader]
    upper = make_bound(situation, first, params.beta)  # of the follower: the leader's lower bound, negative
    return first, situation.refine_points(upper, fine.points[[follower]])


def play(game: Plausible, beta: float) -> tuple[int, int]:
    """The leader argmax_i min_j (Δ_ij − β s_ij), and the follower that attains the minimum."""
    lower = game.difference - beta * game.spread
    follower = lower.argmin(axis=1)
    leader = int(lower[np.arange(len(lower)), follower].argmax())
    return leader, int(follower[leader])
