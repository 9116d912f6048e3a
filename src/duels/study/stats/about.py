"""What a verdict is about: one of three questions. People are a second axis, see `reach`."""

from typing import Literal

from ...errors import InvalidInput

About = Literal["new-items", "these-items", "these-answers"]
ABOUT: tuple[About, ...] = ("new-items", "these-items", "these-answers")
NEW_ITEMS, THESE_ITEMS, THESE_ANSWERS = ABOUT
Strength = Literal["independent answers", "these people", "comparisons made", "answers given"]
INDEPENDENT: Strength = "independent answers"
THESE_PEOPLE: Strength = "these people"
COMPARISONS: Strength = "comparisons made"
GIVEN: Strength = "answers given"
First = Literal["a person", "somebody unknown", "past votes"]
A_PERSON: First = "a person"
UNKNOWN: First = "somebody unknown"
PAST_VOTES: First = "past votes"
MEANINGS = {
    NEW_ITEMS: "which arm is best on prompts like these, of which yours are examples",
    THESE_ITEMS: "which arm is best on exactly these prompts, whoever answers",
    THESE_ANSWERS: "which arm wins most of these prompts by the answers given, each of which is final",
}


def check_about(about: object) -> About:
    """Return what a verdict is about, if it is one of `ABOUT`.

    Raises:
        InvalidInput: If it is not.
    """
    for one in ABOUT:
        if about == one:
            return one
    listed = "; ".join(f"{one!r}, {meaning}" for one, meaning in MEANINGS.items())
    raise InvalidInput(f"about is {about!r}: expected {listed}")


def describe_about(about: str, items: int | None) -> str:
    """Return what a verdict is about in a few words, such as for a table; empty without items.

    Example:
        >>> describe_about("these-items", 20)
        'these 20 prompts'
    """
    if not items:
        return ""
    if about == THESE_ANSWERS:
        return f"the answers given on {_these(items)}"
    if about == NEW_ITEMS:
        return f"prompts like {'this one' if items == 1 else f'these {items:,}'}"
    return _these(items)


def describe_scope(about: str, strength: str, items: int | None) -> str:
    """Return what a verdict is about as the start of a sentence; empty if there is nothing to say.

    Args:
        about: One of `ABOUT`.
        strength: What the verdict holds for, see `Verdict`.
        items: How many items the study has.

    Example:
        >>> describe_scope("these-items", "these people", 20)
        'On these 20 prompts, with these people'
    """
    if strength == COMPARISONS:
        return "On the comparisons made"
    if not items:
        return "With these people" if strength == THESE_PEOPLE else ""
    if strength == GIVEN:
        return f"By the answers given on {_these(items)}"
    on = f"On {_these(items)}"
    if about == NEW_ITEMS:
        on = f"On prompts like {'this one' if items == 1 else f'these {items:,}'}"
    return f"{on}, with these people" if strength == THESE_PEOPLE else on


def _these(items: int) -> str:
    return "this prompt" if items == 1 else f"these {items:,} prompts"
