"""A verdict as text: the sentences that `str` gives, and the headline of a page."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .verdict import Verdict


def in_words(verdict: "Verdict") -> str:
    kinds = {"winner": _winner, "no condorcet winner": _no_winner, "practically tied": _tied, "not yet": _not_yet}
    return f"{kinds[verdict.kind](verdict)} {_promise(verdict)}"


def headline(verdict: Mapping[str, Any], retired: bool = False) -> str:
    """A verdict, as `as_dict` gives it, in few words; a retired study's does not look ahead."""
    kind, leader = verdict["kind"], verdict["leader"]
    if kind == "winner":
        return f"{'Only arm left' if verdict['arms'] == 1 else 'Winner'}: {leader}"
    if kind == "no condorcet winner":
        return "No winner: every arm loses to another one"
    if kind == "practically tied":
        return f"Practically as good as any: {leader}"
    if leader is None:
        return f"{'No verdict' if retired else 'Not yet'}: no two {'active ' if verdict['duels'] else ''}arms have met"
    first = [leader, *verdict["level_with"]]
    if retired:
        return f"No verdict: {listed(first)} {'led' if len(first) == 1 else 'shared the first rank'}"
    said = f"Not yet: {listed(first)} {'leads' if len(first) == 1 else 'share the first rank'}"
    arm, to_go = verdict["open_pairs"][0][0], verdict["duels_to_go"]
    if arm not in first:
        return f"{said}, {arm} may still win"
    return said if to_go is None else f"{said}, about {_about(to_go)} duels to go"


def listed(names: Sequence[str], most: int = 5) -> str:
    """`a, b and c`; `a, b, c and 9 others` if there are too many."""
    shown = list(names) if len(names) <= most else [*names[: most - 1], f"{len(names) - most + 1} others"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _winner(verdict: "Verdict") -> str:
    if verdict.arms == 1:
        return f"{verdict.winner} is the only arm left."
    others = "the other arm" if verdict.arms == 2 else f"each of the {verdict.arms - 1} others"
    return f"{verdict.winner} is the winner: against {others} it wins more often than it loses."


def _no_winner(verdict: "Verdict") -> str:
    pairs = zip(verdict.cycle, verdict.cycle[1:] + verdict.cycle[:1])
    cycle = ", ".join(f"{a} beats {b}" for a, b in pairs)
    return f"No arm beats all others: each of the {verdict.arms} loses to another one. There is a cycle: {cycle}."


def _tied(verdict: "Verdict") -> str:
    return (
        f"{verdict.leader} is practically as good as any: no arm wins more than {_percent(0.5 + verdict.margin)} "
        f"of its duels with it, a tie counted as a half. It is not shown to beat {listed(verdict.tied_with)}."
    )


def _not_yet(verdict: "Verdict") -> str:
    if verdict.leader is None:
        return "No verdict yet: these arms have not met."
    first, arm = [verdict.leader, *verdict.level_with], verdict.open_pairs[0][0]
    ranks = f"{listed(first)} {'ranks first' if len(first) == 1 else 'share the first rank'}"
    if arm not in first:
        loses = "it loses" if len(first) == 1 else "each loses"
        ranks = f"{ranks}, but {loses} to another arm for certain. {arm} may still win"
    others = listed([other for _, other in verdict.open_pairs])
    to_show = f"{'' if len(first) == 1 or arm not in first else f'{arm} '}has still to show that it beats {others}."
    how_long = f"{arm} does not lead all of them, so how long it takes cannot be told yet."
    if verdict.duels_to_go is not None:
        how_long = f"That takes about {_about(verdict.duels_to_go)} more duels between them if it goes on as it has."
    return f"No verdict yet: {ranks}, and {to_show} {how_long}"


def _promise(verdict: "Verdict") -> str:
    seen = f"{verdict.duels:,} {'duel' if verdict.duels == 1 else 'duels'} so far."
    if verdict.void is not None:
        return f"{seen} Nothing is promised about errors: {verdict.void.rstrip('.')}."
    risk = _percent(1 - verdict.confidence)
    return f"{seen} The chance that this study ever gives a wrong verdict is at most {risk}, however often you look."


def _about(duels: int) -> str:
    """Two digits are enough for an estimate."""
    return f"{float(f'{duels:.2g}'):,.0f}"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
