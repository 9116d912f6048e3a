"""What a tuning study has found: its best setting, how sure that is, and slices of the model through it.

A tuning study at a glance: the best setting and how sure that is, what to do next, and slices of the model.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import format_count, percent
from ..model.evidence import ENOUGH
from ..model.model import Answers, Model
from ..model.posterior import Posterior
from ..model.search import around, sobol
from ..policies import Policy, generator
from ..policies.context import History, Memory, Situation
from ..spaces import Number, Setting, Space

if TYPE_CHECKING:
    from .study import TuningStudy


LOOKING = 7  # spawn key of the random numbers of the search for the runner-up; see `policies`
SPREAD = 11  # 2^SPREAD Sobol' points are searched
HALF = 1.042122250130129  # lengthscales at which the correlation of Matérn-5/2 is one half
ROUNDS = 3  # of the runner-up's refinement
GRID = 41  # points of a slice
TOP = 48  # candidates of the likeliest model that are compared by all of them
GUESS = 0.7  # a best setting of which the model is less sure is hardly more than a guess


class Best(NamedTuple):
    """The best setting so far, and how it compares with the best setting elsewhere.

    The *runner-up* is the setting with the largest posterior mean among those that are not near the best one: those at
    a distance at which the kernel's correlation with it is ½ or less (1.04 lengthscales), or, if that is more than half
    the way to the farthest setting, at least that half. It stands for the region around it.

    All numbers are statements of the model, with its hyperparameters integrated out, and with the chance that settings
    do not matter at all. The model can be wrong about people: they are not a verdict, and looking often is not
    accounted for. The evidence is: people who toss coins are ever said to have a preference in at most 5 % of studies.

    Attributes:
        setting: The setting with the largest posterior mean, or the policy's own if its model is another one.
        share: The predicted share of wins of the best setting against the runner-up.
        lower: The lower end of the interval of that share.
        upper: Its upper end.
        confidence: The level of the interval.
        sure: The probability, by the model, that the best setting is better than the runner-up; None as long as no
            preference was found.
        runner_up: The runner-up.
        answers: How many answers count.
        evidence: The largest evidence so far that the answers are no coin tosses. A preference is found from 20 on;
            later answers do not change it.
    """

    setting: Setting
    share: float
    lower: float
    upper: float
    confidence: float
    sure: float | None
    runner_up: Setting
    answers: int
    evidence: float

    def __str__(self) -> str:
        if not self.answers:
            return "No answers yet."
        if self.sure is None:
            return (
                f"No preference found after {format_count(self.answers, 'answer')}: {describe_no_answers(self)}\n"
                f"The best guess is {setting_text(self.setting)}."
            )
        sure = "over 99%" if self.sure > 0.99 else f"{self.sure:.0%}"
        return (
            f"Best setting after {format_count(self.answers, 'answer')}: {setting_text(self.setting)}.\n"
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
    chance: float  # that the best setting is better than the runner-up, by the model, also if no preference was found


def describe_no_answers(best: Best) -> str:
    """Return why no preference is found, and what would tell, as sentences."""
    return (
        f"the answers could be coin tosses (evidence {max(best.evidence, 1.0):.1f}, {ENOUGH:g} is needed). "
        "More answers will tell: a clear preference shows within about 50, a weak one may take hundreds."
    )


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
    policy: Policy, space: Space, points: History, seed: int, memory: Memory, confidence: float, given: Answers
) -> Advice:
    """Compute what a study has found.

    Args:
        policy: The policy, which recommends the best setting if its model is another one.
        space: The space.
        points: The answered duels that the model learns from.
        seed: The study's seed.
        memory: Fits to reuse.
        confidence: The level of the intervals.
        given: All answers, in the order in which they were given.
    """
    from scipy.special import expit  # loaded when first used: it takes a tenth of a second

    answers = len(given.outcome)
    evidence = memory.evidence(given, space.category)
    own = policy.recommend(space, points, seed=seed, memory=memory) if policy.recommends else None
    if not answers:  # a setting against itself says nothing, and a model needs a duel
        middle = np.full(len(space), 0.5)
        points = points.with_duel(space.snap(middle[None, :])[0], space.snap(middle[None, :])[0], 0.5)
    rng = generator(seed, LOOKING, answers)
    situation = policy.situation(space, points, rng, memory)
    likely, known = situation.model, situation.posterior
    here = find_best(situation) if own is None else space.encode(own)
    setting = space.decode(here)
    other = runner_up(likely, known, space, points, here, rng)
    ahead = known.differences_to(here[None, :], other)
    chance = float(ahead.positive[0])
    best = Best(
        setting,
        float(ahead.share[0]),
        float(expit(ahead.quantile(0.5 - confidence / 2)[0])),
        float(expit(ahead.quantile(0.5 + confidence / 2)[0])),
        confidence,
        chance if evidence.is_found else None,
        space.decode(other),
        answers,
        evidence.most,
    )
    return Advice(best, _slices(known, space, setting, here, confidence, answers), chance)


def find_best(situation: Situation) -> np.ndarray:
    """Return the point with the largest posterior mean over all hypotheses."""
    known, space = situation.posterior, situation.space
    mean, _ = situation.moments
    top = situation.candidates[np.argsort(-mean, kind="stable")[:TOP]]
    best = _top(known, np.vstack([situation.best, top]))
    for _ in range(ROUNDS):
        best = _top(known, np.vstack([best, around(best, space, situation.rng)]))
    return best


def distances(points: np.ndarray, x: np.ndarray, model: Model) -> np.ndarray:
    """(q,) distances of points from x in lengthscales, as `kernels.distance` has them."""
    apart = np.where(model.category == 1, points != x, points - x)
    found: np.ndarray = np.sqrt(((apart * model.inverse) ** 2).sum(1))
    return found


def runner_up(
    likely: Model, known: Posterior, space: Space, points: History, best: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the point with the largest posterior mean among those that are not near the best one, see `Best`.

    What is near depends on the likeliest lengthscales. Among many points, those are compared that are best by the
    likeliest model.
    """
    spread = space.snap(sobol(len(space), SPREAD, rng))
    candidates = np.unique(np.vstack([spread, points.left, points.right, around(best, space, rng)]), axis=0)
    apart = distances(candidates, best, likely)
    least = min(HALF, float(apart.max()) / 2)
    far = candidates[apart >= least]
    top = _top(known, far[np.argsort(-likely.mean(far), kind="stable")[:TOP]])
    for _ in range(ROUNDS):
        near = around(top, space, rng)
        near = near[distances(near, best, likely) >= least]
        top = _top(known, np.vstack([top, near]))
    return top


def _top(known: Posterior, points: np.ndarray) -> np.ndarray:
    found: np.ndarray = points[int(known.mean(points).argmax())]
    return found


def _slices(
    known: Posterior, space: Space, setting: Setting, here: np.ndarray, confidence: float, answers: int
) -> dict[str, Any]:
    from scipy.special import expit

    found = []
    for place, (name, one) in enumerate(space.parameters.items()):
        values = grid(one, setting[name]) if isinstance(one, Number) else list(one.choices)
        points = np.repeat(here[None, :], len(values), axis=0)
        points[:, place] = [one.encode(value) for value in values]  # type: ignore[arg-type]  # each of its own kind
        ahead = known.differences_to(points, here)
        levels = (0.5 - confidence / 2, 0.5 + confidence / 2, 0.25, 0.75)
        lower, upper, half_lower, half_upper = map(ahead.quantile, levels)
        about: dict[str, Any] = {"name": name, "kind": "number" if isinstance(one, Number) else "choice"}
        about |= one.to_dict() | {"best": setting[name], "values": values}
        about |= {"mean": ahead.mean.tolist(), "lower": lower.tolist(), "upper": upper.tolist()}
        about |= {
            "share": ahead.share.tolist(),
            "share_lower": expit(lower).tolist(),
            "share_upper": expit(upper).tolist(),
        }
        about |= {"half_lower": expit(half_lower).tolist(), "half_upper": expit(half_upper).tolist()}
        found.append(about)
    return {"best": setting, "confidence": confidence, "answers": answers, "parameters": found}


def grid(parameter: Number, value: float) -> list[float]:
    """Return values of a parameter from its lower to its upper bound, a given one among them."""
    return sorted({value, *(parameter.decode(at) for at in np.linspace(0.0, 1.0, GRID).tolist())})


USUAL = 50  # answers after which simulated studies of two to six parameters are close to the best setting


def summarize_tuning(study: "TuningStudy") -> dict[str, Any]:
    """Return what the page of results shows, as plain data for JSON. Blocks.

    Args:
        study: The study.

    Returns:
        `seq`, `answers`, `open` and `retired`; `headline`, `words` and `next`, as text; `best`, as `Best.as_dict` has
        it, or null without answers; `confidence` and `parameters`, as `TuningStudy.slices` has them.
    """
    history = study._log.history()
    seq, opened, retired, answers = history.seq, len(history.open), history.retired, history.total
    found = study._log.advice()
    best, slices = found.best, found.slices
    return {
        "seq": seq,
        "answers": answers,
        "open": opened,
        "retired": retired,
        "headline": headline(best),
        "words": words(best),
        "next": describe_next_step(best, study.initial, retired),
        "best": best.as_dict() if best.answers else None,
        "confidence": slices["confidence"],
        "parameters": slices["parameters"] if best.answers else [],
    }


def headline(best: Best) -> str:
    """Return the best setting as a headline."""
    if best.answers and best.sure is None:
        return "No preference found yet"
    return f"Best so far: {setting_text(best.setting, digits=3)}" if best.answers else "No answers yet"


def words(best: Best) -> str:
    """Return how sure the best setting is, as sentences."""
    if not best.answers:
        return "People compare two settings at a time. A model learns from their answers which setting they prefer."
    if best.sure is None:
        return (
            f"After {format_count(best.answers, 'answer')}, {describe_no_answers(best)} "
            f"The best guess is {setting_text(best.setting, digits=3)}."
        )
    sure = "more than 99" if best.sure > 0.99 else str(percent(best.sure))
    share, lower, upper = map(percent, (best.share, best.lower, best.upper))
    guess = "" if best.sure >= GUESS else " That is hardly more than a guess."
    return (
        f"After {format_count(best.answers, 'answer')} the model is {sure} % sure that it is better than the "
        f"runner-up, {setting_text(best.runner_up, digits=3)}.{guess} Against that, it is predicted to win {share} % "
        f"of duels ({100 * best.confidence:g} % interval: {lower} to {upper} %)."
    )


def describe_next_step(best: Best, initial: int, retired: bool) -> str:
    """Return what to do next, as sentences.

    Args:
        best: The best setting.
        initial: How many questions are spread over all settings before the policy chooses them.
        retired: Whether the study asks no more questions.
    """
    if retired:
        return "This study is retired and asks no more questions. It can be resumed under Settings."
    answers = best.answers
    if answers < initial:
        return (
            f"The first {format_count(initial, 'question')} are spread over all settings; "
            f"{format_count(answers, 'answer')} "
            f"{'is' if answers == 1 else 'are'} there. Later ones look for the best setting."
        )
    if answers < USUAL:
        return f"Plan for about {USUAL} answers, more if people differ in taste. There is no fixed end: you decide."
    if best.sure is None:
        return "Go on if a weak preference is worth hundreds of answers; else people may not mind these settings."
    return "Go on while the best setting still moves, or retire the study under Settings if it is good enough."
