"""How claims are put into words: numbers, lists and lines that do not break inside them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NO_BREAK = "\N{NO-BREAK SPACE}"


def unbroken(text: str) -> str:
    """The text with spaces at which no line breaks in `95 %` and `K = 8`."""
    return re.sub(" (?=[%=])|(?<==) ", NO_BREAK, text)


def shown(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def spanned(ratio: float, interval: Sequence[float]) -> str:
    """`6.1 (5.8 to 6.4)`."""
    return f"{shown(ratio)} ({' to '.join(map(shown, interval))})"


def percent(share: float) -> str:
    return f"{100 * share:.1g} %" if 0 < share < 0.01 else f"{100 * share:,.0f} %"


def chance(value: float) -> str:
    return "under 0.0001" if 0 < value < 1e-4 else f"{value:.2g}"


def each(said: Iterable[tuple[str, str]]) -> str:
    """`6.1 on a and 7 on b`, from pairs of a problem and what is said of it."""
    return listed([f"{text} on {problem}" for problem, text in said])


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def share_said(one: Mapping[str, Any], last: int) -> str:
    """RUCB's and SAVAGE's time to an accuracy, of those up to `last`, and the one as a share of the other."""
    rucb, savage = (f"{one[base]:,}" if one[base] else f"none up to {last:,}" for base in ("rucb", "savage"))
    spans = f", within {_span(one['between'])}" * (one["share"] is not None)
    return (
        f"{rucb} with RUCB, {savage} with Condorcet SAVAGE ({share_shown(one)}{spans}; 95 % interval "
        f"{_span(one['interval'])})"
    )


def share_shown(one: Mapping[str, Any]) -> str:
    if one["share"] is not None:
        return percent(one["share"])
    if one["rucb"] is not None:
        return f"under {percent(one['between'][1])}"
    return "neither" if one["savage"] is None else "RUCB never"


def _span(ends: Sequence[float | None]) -> str:
    low, high = ends
    return f"{percent(low or 0)} to {'any' if high is None else percent(high)}"
