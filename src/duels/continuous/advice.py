"""What a tuning study has found: its best setting, how sure that is, and slices of the model through it."""

import math
from typing import Any, NamedTuple

import numpy as np

from ..errors import counted
from .model import Model
from .policies import Policy, generator
from .search import around, sobol
from .situation import History, Memory, Situation
from .spaces import Number, Setting, Space

LOOKING = 7  # spawn key of the random numbers of the search for the runner-up; see `policies`
SPREAD = 11  # 2^SPREAD Sobol' points are searched
HALF = 1.042122250130129  # lengthscales at which the correlation of Matérn-5/2 is one half
ROUNDS = 3  # of the runner-up's refinement
GRID = 41  # points of a slice
GUESS = 0.7  # a best setting of which the model is less sure is hardly more than a guess


class Best(NamedTuple):
    """The best setting so far, and how it compares with the best setting elsewhere.

    The *runner-up* is the setting with the largest posterior mean among those that are not near the best one: those at
    a distance at which the kernel's correlation with it is ½ or less (1.04 lengthscales), or, if that is more than half
    the way to the farthest setting, at least that half. It stands for the region around it.

    All numbers are statements of the model, which can be wrong about people; they are not a verdict, and looking often
    is not accounted for.

    Attributes:
        setting: The setting that the policy recommends: by default the one with the largest posterior mean.
        share: The predicted share of wins of the best setting against the runner-up.
        lower: The lower end of the interval of that share.
        upper: Its upper end.
        confidence: The level of the interval.
        sure: The probability, by the model, that the best setting is better than the runner-up.
        runner_up: The runner-up.
        answers: How many answers count.
    """

    setting: Setting
    share: float
    lower: float
    upper: float
    confidence: float
    sure: float
    runner_up: Setting
    answers: int

    def __str__(self) -> str:
        if not self.answers:
            return "No answers yet."
        sure = "over 99%" if self.sure > 0.99 else f"{self.sure:.0%}"
        return (
            f"Best setting after {counted(self.answers, 'answer')}: {setting_text(self.setting)}.\n"
            f"It is predicted to win {self.share:.0%} of duels ({self.lower:.0%} to {self.upper:.0%}) against the "
            f"runner-up, {setting_text(self.runner_up)}; the model is {sure} sure that it is the better one."
            + ("" if self.sure >= GUESS else " That is hardly more than a guess.")
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        return self._asdict()


class Advice(NamedTuple):
    """The best setting and the slices through it."""

    best: Best
    slices: dict[str, Any]


def setting_text(setting: Setting, sep: str = ", ", digits: int = 6) -> str:
    """Return a setting as text, such as `temperature 0.7, style terse`.

    Args:
        setting: The setting.
        sep: What is between two parameters.
        digits: How many digits numbers have.
    """
    return sep.join(f"{name} {_value_text(value, digits)}" for name, value in setting.items())


def _value_text(value: object, digits: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def advice(
    policy: Policy, space: Space, points: History, seed: int, memory: Memory, confidence: float, answers: int
) -> Advice:
    """Compute what a study has found.

    Args:
        policy: The policy, which recommends the best setting.
        space: The space.
        points: The answered duels.
        seed: The study's seed.
        memory: Fits to reuse.
        confidence: The level of the intervals.
        answers: How many answers count; the model may learn from fewer.
    """
    from scipy.special import expit, ndtr, ndtri  # loaded when first used: it takes a tenth of a second

    setting = policy.recommend(space, points, seed=seed, memory=memory)
    if not len(points.outcome):  # a setting against itself says nothing, and a model needs a duel
        points = points.with_duel(space.encode(setting), space.encode(setting), 0.5)
    rng = generator(seed, LOOKING, answers)
    model, here = Situation(space, points, rng, memory).model, space.encode(setting)
    other = runner_up(model, space, points, here, rng)
    mean, spread = (float(one[0]) for one in model.differences_to(here[None, :], other))
    reach = float(ndtri(0.5 + confidence / 2)) * spread
    best = Best(
        setting,
        model.win_probability(here, other),
        float(expit(mean - reach)),
        float(expit(mean + reach)),
        confidence,
        float(ndtr(mean / spread)) if spread > 0 else 0.5,
        space.decode(other),
        answers,
    )
    return Advice(best, _slices(model, space, setting, here, confidence, answers))


def distances(points: np.ndarray, x: np.ndarray, model: Model) -> np.ndarray:
    """(q,) distances of points from x in lengthscales, as `kernels.distance` has them."""
    apart = np.where(model.category == 1, points != x, points - x)
    found: np.ndarray = np.sqrt(((apart * model.inverse) ** 2).sum(1))
    return found


def runner_up(model: Model, space: Space, points: History, best: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the point with the largest posterior mean among those that are not near the best one, see `Best`."""
    spread = space.snap(sobol(len(space), SPREAD, rng))
    candidates = np.unique(np.vstack([spread, points.left, points.right, around(best, space, rng)]), axis=0)
    apart = distances(candidates, best, model)
    least = min(HALF, float(apart.max()) / 2)
    top = _top(model, candidates[apart >= least])
    for _ in range(ROUNDS):
        near = around(top, space, rng)
        near = near[distances(near, best, model) >= least]
        top = _top(model, np.vstack([top, near]))
    return top


def _top(model: Model, points: np.ndarray) -> np.ndarray:
    found: np.ndarray = points[int(model.mean(points).argmax())]
    return found


def _slices(
    model: Model, space: Space, setting: Setting, here: np.ndarray, confidence: float, answers: int
) -> dict[str, Any]:
    from scipy.special import expit, ndtri

    reach, found = float(ndtri(0.5 + confidence / 2)), []
    for place, (name, one) in enumerate(space.parameters.items()):
        values = grid(one, setting[name]) if isinstance(one, Number) else list(one.choices)
        points = np.repeat(here[None, :], len(values), axis=0)
        points[:, place] = [one.encode(value) for value in values]  # type: ignore[arg-type]  # each of its own kind
        mean, spread = model.differences_to(points, here)
        lower, upper = mean - reach * spread, mean + reach * spread
        shares = 0.5 + 0.5 * np.tanh(0.5 * mean / np.sqrt(1.0 + math.pi / 8.0 * spread**2))
        about: dict[str, Any] = {"name": name, "kind": "number" if isinstance(one, Number) else "choice"}
        about |= one.to_dict() | {"best": setting[name], "values": values}
        about |= {"mean": mean.tolist(), "lower": lower.tolist(), "upper": upper.tolist(), "share": shares.tolist()}
        about |= {"share_lower": expit(lower).tolist(), "share_upper": expit(upper).tolist()}
        half = float(ndtri(0.75)) * spread
        about |= {"half_lower": expit(mean - half).tolist(), "half_upper": expit(mean + half).tolist()}
        found.append(about)
    return {"best": setting, "confidence": confidence, "answers": answers, "parameters": found}


def grid(parameter: Number, value: float) -> list[float]:
    """Return values of a parameter from its lower to its upper bound, a given one among them."""
    return sorted({value, *(parameter.decode(at) for at in np.linspace(0.0, 1.0, GRID).tolist())})
