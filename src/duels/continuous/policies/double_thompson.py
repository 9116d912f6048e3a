"""Double Thompson sampling on a Gaussian process: each setting is the best of a sample of its own from the posterior.

Wu & Liu (NIPS 2016) sample twice for K arms; here the samples are functions.
"""

from typing import NamedTuple

import numpy as np

from .context import Situation

NAME = "Double Thompson"
PAPER = "Wu, Liu: Double Thompson Sampling for Dueling Bandits (NIPS 2016), on a Gaussian process"
DRAWS = 8  # further samples until the second setting differs from the first


class Params(NamedTuple):
    initial: int = 0


def choose(situation: Situation, params: Params) -> tuple[np.ndarray, np.ndarray]:
    drawn = situation.model.sample(situation.candidates, 2 + DRAWS, situation.rng)
    return two_best(situation.candidates, drawn)


def two_best(points: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best point of the first sample, and that of the first later sample in which another one is best."""
    best = drawn.argmax(axis=1)
    others = best[best != best[0]]
    second = others[0] if len(others) else np.argsort(-drawn[-1], kind="stable")[1]
    return points[best[0]], points[second]
