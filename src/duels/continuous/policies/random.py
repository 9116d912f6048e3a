"""Two uniformly random settings: a baseline that does not adapt its choices."""

from typing import NamedTuple

import numpy as np

from .context import Situation

NAME = "Random"
PAPER = "no paper: two independent uniform settings"


class Params(NamedTuple):
    initial: int = 0


def choose(situation: Situation, params: Params) -> tuple[np.ndarray, np.ndarray]:
    left, right = situation.space.snap(situation.rng.random((2, len(situation.space))))
    return left, right
