"""What a policy is told when it is asked: the space, the duels so far, the model of them, and candidates.

What the policies with confidence bounds share: bounds on differences of utility, and who may be the best.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...errors import InvalidInput, shorten
from ..model.evidence import Evidence
from ..model.laplace import find_mode
from ..model.model import Answers, Approximate, Hyperparameters, Model, fit_hyperparameters, prior_hyperparameters
from ..model.posterior import Posterior, Proposal, posterior, propose
from ..model.search import SPREAD, Valued, around, refine, sobol
from ..spaces import Space

TIE = 0.5
OFTEN = 24  # hyperparameters are fitted after each answer up to here, then after every n/OFTEN-th
STARTS = 3  # points from which the best mean is refined
REMEMBERED = 32  # fits that a memory keeps


class History(NamedTuple):
    """The duels so far as points of the cube, in the order in which they were asked or answered: the caller's choice.

    The order matters only in that hyperparameters are fitted on the first answers when there are many.
    """

    left: np.ndarray  # (n, d)
    right: np.ndarray  # (n, d)
    outcome: np.ndarray  # (n,) 1 if left won, 0 if right won, ½ for a tie, NaN while the duel is open

    @classmethod
    def of(
        cls, space: Space, duels: Iterable[tuple[Mapping[str, object], Mapping[str, object], float | None]]
    ) -> "History":
        """Collect duels.

        Args:
            space: The space of the settings.
            duels: Left and right settings, and the outcome: 1 if left won, 0 if right won, ½ for a tie, None if open.

        Raises:
            InvalidInput: If a setting does not belong to the space, or an outcome is something else.
        """
        rows = list(duels)
        for *_, outcome in rows:
            if outcome is not None and outcome not in (0, TIE, 1):
                raise InvalidInput(f"an outcome is {shorten(outcome)}: expected 1, 0.5, 0, or None for an open duel")
        empty = np.empty((0, len(space)))
        left = np.stack([space.encode(row[0]) for row in rows]) if rows else empty
        right = np.stack([space.encode(row[1]) for row in rows]) if rows else empty
        return cls(left, right, np.array([np.nan if row[2] is None else float(row[2]) for row in rows]))

    def with_duel(self, left: np.ndarray, right: np.ndarray, outcome: float) -> "History":
        """Return the history with one more duel at its end."""
        return History(np.vstack([self.left, left]), np.vstack([self.right, right]), np.append(self.outcome, outcome))

    @property
    def answered(self) -> Answers:
        """The duels that have an outcome."""
        known = ~np.isnan(self.outcome)
        return Answers(self.left[known], self.right[known], self.outcome[known])

    @property
    def with_ties(self) -> Answers:
        """All duels, the open ones as ties: so that the next one is asked elsewhere."""
        return Answers(self.left, self.right, np.where(np.isnan(self.outcome), TIE, self.outcome))


class Memory:
    """Fits that were computed before. It changes how long an ask takes, and nothing else: keys are the data itself."""

    def __init__(self) -> None:
        self._fits: dict[bytes, Hyperparameters] = {}
        self._models: dict[bytes, Model] = {}
        self._proposals: dict[bytes, Proposal] = {}
        self._evidence: Evidence | None = None

    def hyperparameters(self, answers: Answers, category: np.ndarray) -> Hyperparameters:
        """Return the hyperparameters for answers, fitted if they are not known."""
        key = _digest(answers, category)
        if key not in self._fits:
            self._fits[key] = fit_hyperparameters(answers, category)
            if len(self._fits) > REMEMBERED:
                del self._fits[next(iter(self._fits))]
        return self._fits[key]

    def proposal(self, answers: Answers, category: np.ndarray) -> Proposal:
        """Return the hyperparameters that are weighed after answers; only the last ones are kept."""
        key = _digest(answers, category)
        if key not in self._proposals:
            self._proposals = {key: propose(answers, category, self.hyperparameters(answers, category))}
        return self._proposals[key]

    def model(
        self, answers: Answers, category: np.ndarray, hyperparameters: Hyperparameters, approximate: Approximate
    ) -> Model:
        """Return the model of answers; only the last one is kept."""
        key = approximate.__name__.encode() + _digest(answers, category, hyperparameters)
        if key not in self._models:
            self._models = {key: Model(answers, category, hyperparameters, approximate)}
        return self._models[key]

    def evidence(self, answers: Answers, category: np.ndarray) -> Evidence:
        """Return the evidence that there is a preference; it is extended if it is known of the first of the answers."""
        if self._evidence is None or not np.array_equal(self._evidence.category, category):
            self._evidence = Evidence(category)
        self._evidence.take(answers)
        return self._evidence


def _digest(answers: Answers, category: np.ndarray, hyperparameters: Hyperparameters | None = None) -> bytes:
    found = hashlib.sha256()
    for array in (*answers, category, *(() if hyperparameters is None else hyperparameters)):
        found.update(np.ascontiguousarray(array).tobytes() + b"|")
    return found.digest()


class Situation:
    """What a policy is told when it is asked. Everything in it follows from the space, the history and the generator.

    Args:
        space: The space.
        history: The duels so far.
        rng: Where the policy's random numbers come from.
        memory: Fits to reuse.
        approximate: What approximates the posterior of the differences in the model.
    """

    def __init__(
        self,
        space: Space,
        history: History,
        rng: np.random.Generator,
        memory: Memory | None = None,
        approximate: Approximate = find_mode,
    ) -> None:
        self.space, self.history, self.rng, self._approximate = space, history, rng, approximate
        self._memory = Memory() if memory is None else memory

    @cached_property
    def fitted(self) -> Answers:
        """The answers that hyperparameters are fitted to."""
        answers = self.history.answered
        return Answers(*(array[: count_fitted(len(answers.outcome))] for array in answers))

    @cached_property
    def posterior(self) -> Posterior:
        """What is known after the answers, over all hypotheses."""
        category = self.space.category
        return posterior(self.history.answered, category, self._memory.proposal(self.fitted, category))

    @cached_property
    def model(self) -> Model:
        """The model of the duels so far, open ones as ties. The hyperparameters are fitted to answers only."""
        category = self.space.category
        known, prior = self.fitted, prior_hyperparameters(len(self.space))
        found = self._memory.hyperparameters(known, category) if len(known.outcome) else prior
        return self._memory.model(self.history.with_ties, category, found, self._approximate)

    @cached_property
    def is_found(self) -> bool:
        """Whether there is enough evidence that people have a preference."""
        return self._memory.evidence(self.history.answered, self.space.category).is_found

    @cached_property
    def candidates(self) -> np.ndarray:
        """(q, d) Sobol' points, the points of past duels, and points around the best of these by the model's mean."""
        spread = self.space.snap(sobol(len(self.space), SPREAD, self.rng))
        points = np.unique(np.vstack([spread, self.history.left, self.history.right]), axis=0)
        best = points[int(self.model.mean(points).argmax())]
        return np.unique(np.vstack([points, around(best, self.space, self.rng)]), axis=0)

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """(q,) posterior mean and standard deviation of the utility at the candidates."""
        mean, variance = self.model.mean_and_variance(self.candidates)
        return mean, np.sqrt(variance)

    @cached_property
    def best(self) -> np.ndarray:
        """(d,) the point with the largest posterior mean in the whole space."""
        mean, _ = self.moments
        starts = self.candidates[np.argsort(-mean, kind="stable")[:STARTS]]
        other = starts[0]

        def value(x: np.ndarray) -> tuple[float, np.ndarray]:
            moments = self.model.pair(x, other)
            return float(moments[0, 0]), moments[1:, 0].copy()

        return self.refine_points(value, starts)

    def refine_points(self, value: Valued, starts: np.ndarray) -> np.ndarray:
        """Refine points and return the best one, or the best start if none is better after rounding to a setting.

        Args:
            value: The function to maximize, and its gradient.
            starts: (s, d) points to begin at.
        """
        tops = [refine(value, start, self.space.category)[0] for start in starts]
        points = self.space.snap(np.vstack([starts, tops]))
        values = [value(point)[0] for point in points]
        best: np.ndarray = points[int(np.argmax(values))]
        return best


def count_fitted(answers: int) -> int:
    """How many of the first answers the hyperparameters are fitted to: all up to 2·OFTEN, then rarely fewer.

    A fixed schedule, so that hyperparameters depend on the answers alone, not on when a model was asked for.
    """
    every = max(answers // OFTEN, 1)
    return answers - answers % every


class Plausible(NamedTuple):
    """The candidates that may be the best: no other one is better with confidence."""

    points: np.ndarray  # (m, d)
    difference: np.ndarray  # (m, m) posterior mean of f(point_i) − f(point_j)
    spread: np.ndarray  # (m, m) its standard deviation


def plausible(situation: Situation, points: np.ndarray, beta: float) -> Plausible:
    """Return those points i with Δ_ij + β s_ij ≥ 0 for all j. The one with the largest mean always is among them."""
    difference, spread = situation.model.differences(points)
    may = (difference + beta * spread >= 0.0).all(axis=1)
    return Plausible(points[may], difference[np.ix_(may, may)], spread[np.ix_(may, may)])


def make_bound(situation: Situation, other: np.ndarray, beta: float) -> Valued:
    """Return f(x) − f(other)'s upper confidence bound as a function of x, with its gradient; a negative β is lower."""

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        moments = situation.model.pair(x, other)
        spread = max(moments[0, 2], 1e-16) ** 0.5
        slope = moments[1:, 0] + 0.5 * beta / spread * moments[1:, 2]
        return float(moments[0, 0] - moments[0, 1] + beta * spread), slope

    return value


def check_beta(name: str, beta: float) -> None:
    """Raise if β is not a positive number."""
    if not (beta > 0 and math.isfinite(beta)):
        raise InvalidInput(f"beta of {name} is {beta:g}: expected a positive number of standard deviations")
