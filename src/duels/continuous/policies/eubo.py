"""EUBO: Lin, Astudillo, Frazier & Bakshy, AISTATS 2022: the pair whose better one has the largest expected utility."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ..model.posterior import find_sites
from ..model.search import refine
from .context import Situation

NAME = "EUBO"
PAPER = "Lin, Astudillo, Frazier, Bakshy: Preference Exploration for Efficient Bayesian Optimization (AISTATS 2022)"
PAIRED = 160  # candidates of which all pairs are compared
STARTS = 4  # pairs that are refined
APPROXIMATE = find_sites  # what approximates the posterior of the differences


class Params(NamedTuple):
    initial: int = 0


def expected_best(second: np.ndarray, difference: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """E max(f₁, f₂) of two normal variables: μ₂ + Δ Φ(Δ/s) + s φ(Δ/s)."""
    safe = np.maximum(spread, 1e-12)
    z = difference / safe
    best: np.ndarray = second + difference * ndtr(z) + safe * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return best


def choose(situation: Situation, params: Params) -> tuple[np.ndarray, np.ndarray]:
    mean, spread = situation.moments
    likely = np.argsort(-(mean + 2.0 * spread), kind="stable")[:PAIRED]
    points = situation.candidates[likely]
    difference, apart = situation.model.differences(points)
    value = np.triu(expected_best(mean[likely][None, :], difference, apart), 1)
    value[np.tril_indices(len(points))] = -np.inf
    tops = np.argsort(-value, axis=None, kind="stable")
    first, second = np.unravel_index(tops[_spread_out(len(tops))], value.shape)
    starts = np.hstack([points[first], points[second]])
    return _refine_pair(situation, starts)


def _spread_out(count: int) -> np.ndarray:
    return np.unique(np.minimum(np.array([0, 5, 25, 125])[:STARTS], count - 1))


def _refine_pair(situation: Situation, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    model, space, d = situation.model, situation.space, len(situation.space)

    def value(both: np.ndarray) -> tuple[float, np.ndarray]:
        moments = model.pair(both[:d], both[d:])
        difference, variance = moments[0, 0] - moments[0, 1], max(moments[0, 2], 1e-20)
        s = variance**0.5
        z = difference / s
        share, density = float(ndtr(z)), float(np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))
        found = moments[0, 1] + difference * share + s * density
        slope = np.concatenate(
            [
                share * moments[1:, 0] + 0.5 * density / s * moments[1:, 2],
                (1.0 - share) * moments[1:, 1] + 0.5 * density / s * moments[1:, 3],
            ]
        )
        return float(found), slope

    fixed = np.concatenate([space.category, space.category])
    ends = np.vstack([starts, [refine(value, start, fixed)[0] for start in starts]])
    ends = np.hstack([space.snap(ends[:, :d]), space.snap(ends[:, d:])])
    best = ends[int(np.argmax([value(end)[0] for end in ends]))]
    return best[:d], best[d:]
