"""The evidence that people have a preference at all: how much better a model predicts their answers than a coin.

Each answer is predicted before it is seen, by a mixture of models whose lengthscales and scales are fixed in advance.
The product of the predictions over 2⁻ⁿ is a martingale if answers are coin tosses, whichever duels are asked. So by
Ville's inequality it ever reaches 20 in at most one of 20 such studies, however often one looks. This holds exactly,
although the models are approximations: all that matters is that the two chances of an answer have the sum 1.

Models learn by assumed-density filtering: each answer changes the posterior of the differences once (Csató & Opper,
Sparse on-line Gaussian processes, 2002), so an answer costs n² operations per model.
"""

import math
from functools import cache

import numpy as np

from ...engine.compiling import compile_with
from . import posterior
from .kernels import distance, matern
from .model import LENGTH_MEDIAN, LENGTH_SPREAD, SCALE_MEDIAN, SCALE_SPREAD, Answers

ENOUGH = 20.0  # evidence with which a preference is found
LOG_ENOUGH = math.log(ENOUGH)
MODELS = 24  # of the mixture
BLOCK = 200  # answers that models learn from; then they begin again
average_answer = posterior.average_answer


@cache
def mixture(dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (m, d) inverse lengthscales and (m,) scales, spread evenly over their priors."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    even = qmc.Sobol(dimensions + 1, scramble=False).random_base2(10)[1 : MODELS + 1]
    normal = ndtri(even)
    lengths = LENGTH_MEDIAN * np.exp(LENGTH_SPREAD * normal[:, 1:])
    return np.ascontiguousarray(1.0 / lengths), SCALE_MEDIAN * np.exp(SCALE_SPREAD * normal[:, 0])


def add_answers(
    left: np.ndarray,
    right: np.ndarray,
    outcome: np.ndarray,
    begin: int,
    inverse: np.ndarray,
    scale: np.ndarray,
    category: np.ndarray,
    enough: float,
    pull: np.ndarray,
    reduction: np.ndarray,
    logs: np.ndarray,
    found: np.ndarray,
    work: np.ndarray,
) -> None:
    """Kernel: predict the answers from `begin`, each from those before it, and learn from them.

    Args:
        left: (n, d) points, as those on the right.
        right: (n, d) points.
        outcome: (n,) 1 if left won, 0 if right won, ½ for a tie.
        begin: How many answers the models know.
        inverse: (m, d) of each model.
        scale: (m,) of each model.
        category: (d,) 1 for categories.
        enough: The logarithm of the evidence after which no answer is looked at.
        pull: (m, n) of each model, as in `Model`; changed.
        reduction: (m, n, n) of each model; changed. Both may have room for more answers.
        logs: (m,) logarithm of each model's evidence against a coin; changed.
        found: (n,) logarithm of the mixture's evidence after each answer, NaN of those not looked at; changed.
        work: (2, n) scratch.
    """
    cross, change = work[0], work[1]
    for t in range(begin, len(outcome)):
        for h in range(len(scale)):
            mean, variance = 0.0, 2.0 * scale[h] * (1.0 - matern(distance(left[t], right[t], inverse[h], category)))
            for i in range(t):
                cross[i] = scale[h] * (
                    matern(distance(left[i], left[t], inverse[h], category))
                    + matern(distance(right[i], right[t], inverse[h], category))
                    - matern(distance(left[i], right[t], inverse[h], category))
                    - matern(distance(right[i], left[t], inverse[h], category))
                )
                mean += pull[h, i] * cross[i]
            for i in range(t):
                total = 0.0
                for j in range(t):
                    total += reduction[h, i, j] * cross[j]
                change[i] = -total
                variance -= total * cross[i]
            change[t] = 1.0
            value, slope, bend = average_answer(outcome[t], mean, max(variance, 0.0))
            if outcome[t] != 0.5:
                logs[h] += value + math.log(2.0)
            for i in range(t + 1):
                pull[h, i] += slope * change[i]
                for j in range(t + 1):
                    reduction[h, i, j] += bend * change[i] * change[j]
        most, total = logs[0], 0.0
        for h in range(1, len(scale)):
            most = max(most, logs[h])
        for h in range(len(scale)):
            total += math.exp(logs[h] - most)
        found[t] = most + math.log(total / len(scale))
        if found[t] >= enough:
            found[t + 1 :] = math.nan
            break


class Evidence:
    """The evidence against coin tossing after some answers. More answers extend it.

    Args:
        category: (d,) 1 for coordinates that are categories, 0 for numbers.
    """

    def __init__(self, category: np.ndarray) -> None:
        self.category = np.ascontiguousarray(category, np.int64)
        d = len(category)
        self._answers = Answers(np.empty((0, d)), np.empty((0, d)), np.empty(0))
        self._begin()

    def _begin(self) -> None:
        self._known, self._block = 0, 0  # answers that were taken, and those before the present block
        self._before = self._last = self._most = 0.0
        self._forget()

    def _forget(self) -> None:
        """Begin a block: the models know nothing."""
        self._pull: np.ndarray = np.zeros((MODELS, 0))
        self._reduction: np.ndarray = np.zeros((MODELS, 0, 0))
        self._logs = np.zeros(MODELS)

    @property
    def most(self) -> float:
        """The largest evidence after any answer; once it is enough, later answers are not looked at."""
        return math.exp(min(self._most, 700.0))

    @property
    def is_found(self) -> bool:
        """Whether the evidence has ever been enough."""
        return self._most >= LOG_ENOUGH

    def take(self, answers: Answers) -> None:
        """Take in all answers so far, in the order in which they were given.

        Answers that were taken before are not computed again, if they are the first of these.
        """
        known = len(self._answers.outcome)
        if not all(map(np.array_equal, self._answers, (column[:known] for column in answers))):
            self._begin()
        self._answers = Answers(*(np.array(column, float) for column in answers))
        count = len(answers.outcome)
        while self._known < count and not self.is_found:
            if self._known == self._block + BLOCK:
                self._block = self._known
                self._before += self._last
                self._forget()
            self._extend(min(count, self._block + BLOCK))
        if self.is_found:
            self._forget()

    def _extend(self, end: int) -> None:
        """Take answers up to `end`, which are of one block."""
        begin, count = self._known - self._block, end - self._block
        self._make_room(count)
        left, right, outcome = (column[self._block : end] for column in self._answers)
        found, work = np.empty(count), np.empty((2, count))
        models = (*mixture(len(self.category)), self.category)
        compile_with(add_answers)(
            *(left, right, outcome, begin, *models, LOG_ENOUGH - self._before),
            *(self._pull, self._reduction, self._logs, found, work),
        )
        reached = found[begin:]
        self._last = float(reached[-1])
        self._most = max(self._most, self._before + float(np.nanmax(reached)))
        self._known = end

    def _make_room(self, count: int) -> None:
        """Have models with room for so many answers."""
        before = self._pull.shape[-1]
        if count <= before:
            return
        room = min(max(2 * count, 32), BLOCK)
        pull, reduction = np.zeros((MODELS, room)), np.zeros((MODELS, room, room))
        if before:
            pull[:, :before], reduction[:, :before, :before] = self._pull, self._reduction
        self._pull, self._reduction = pull, reduction
