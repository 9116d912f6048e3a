"""A tuning study at a glance: the best setting and how sure that is, what to do next, and slices of the model."""

from typing import TYPE_CHECKING, Any

from ..errors import format_count, percent
from .advice import GUESS, Best, describe_no_answers, setting_text

if TYPE_CHECKING:
    from .tuning import Tuning

USUAL = 50  # answers after which simulated studies of two to six parameters are close to the best setting


def summarize_tuning(study: "Tuning") -> dict[str, Any]:
    """Return what the page of results shows, as plain data for JSON. Blocks.

    Args:
        study: The study.

    Returns:
        `seq`, `answers`, `open` and `retired`; `headline`, `words` and `next`, as text; `best`, as `Best.as_dict` has
        it, or null without answers; `confidence` and `parameters`, as `Tuning.slices` has them.
    """
    history = study.history()
    seq, opened, retired, answers = history.seq, len(history.open), history.retired, history.total
    found = study.advice()
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
