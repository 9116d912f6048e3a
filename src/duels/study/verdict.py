"""Is there a winner? An answer that holds however often you ask.

Each pair has the Beta mixture martingale M(p) = B(w+½, l+½)/B(½, ½) / (p^w (1−p)^l) of its w wins and l losses. If p
is the chance of a win, M(p) ever reaches 1/δ′ with probability at most δ′ (Ville), so {p: M(p) < 1/δ′} contains p at
all times at once with probability 1 − δ′. The δ′ of all pairs, including those of arms added later, add up to
δ = 1 − confidence: all statements about any of the arms hold together. `docs/study/verdict.md` has the proofs.
"""

import dataclasses
import html
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import InvalidInput
from ..theory import kl
from .intervals import distinct_intervals, interval, log_evidence, log_martingale
from .tally import (
    Bools,
    Floats,
    Ints,
    LeaderboardRow,
    PairRow,
    Tally,
    beaten,
    estimates,
    leaders,
    leads,
    met,
    over_others,
    ranking,
    scores,
)

__all__ = [
    "Verdict",
    "certainly_beats",
    "headline",
    "interval",
    "leaderboard",
    "leaderboard_html",
    "log_thresholds",
    "pair_rows",
    "preferences",
    "preferences_page",
    "share",
    "verdict",
]

Kind = Literal["winner", "no condorcet winner", "practically tied", "not yet"]

LOG_2, LOG_PI = math.log(2.0), math.log(math.pi)  # B(½, ½) = π
PAGES = 2**20  # more than the number of arms: a pair's number is first · PAGES + second
NOT_YET, NO_WINNER = -1, -2  # what `settled` returns besides an arm
TABLE_ROWS = 10  # arms in a notebook's table


class Standing(NamedTuple):
    """Who beats whom for certain, kept up to date by kernels, for simulations that look after every answer."""

    sure: Bools  # (K, K): whether i beats j for certain
    ahead: Ints  # (K,): how many arms i beats for certain
    behind: Ints  # (K,): how many arms beat i for certain
    unbeaten: Ints  # (1,): how many arms have no certain loss


def new_standing(arms: int) -> Standing:
    """Return the standing before the first answer."""
    none = np.zeros(arms, np.int64)
    return Standing(np.zeros((arms, arms), dtype=bool), none, none.copy(), np.full(1, arms))


def evidence(wins: float, losses: float) -> float:
    """Kernel: ln M(½) of one pair."""
    n = wins + losses
    return math.lgamma(wins + 0.5) + math.lgamma(losses + 0.5) - math.lgamma(n + 1.0) - LOG_PI + n * LOG_2


def certain(wins: float, losses: float, log_threshold: float) -> bool:
    """Kernel: whether the first of a pair beats the second for certain; log_threshold is ln(1/δ′)."""
    lead = wins - losses
    # M(½) is below the likelihood ratio exp(n kl(w/n, ½)), which is at most exp(ln 2 · lead²/n): few pairs pass.
    if lead <= 0 or LOG_2 * lead * lead < log_threshold * (wins + losses):
        return False
    return evidence(wins, losses) >= log_threshold


def note(standing: Standing, wins: Floats | Ints, i: int, j: int, log_threshold: float) -> None:
    """Kernel: update what is certain about i and j after a duel between them; wins do not include ties."""
    enter(standing, i, j, certain(wins[i, j], wins[j, i], log_threshold))
    enter(standing, j, i, certain(wins[j, i], wins[i, j], log_threshold))


def enter(standing: Standing, i: int, j: int, now: bool) -> None:
    """Kernel: set whether i beats j for certain."""
    change = int(now) - int(standing.sure[i, j])
    if change != 0:
        standing.sure[i, j] = now
        standing.ahead[i] += change
        standing.behind[j] += change
        if standing.behind[j] == max(change, 0):  # j has its first certain loss, or none any more
            standing.unbeaten[0] -= change


def settled(standing: Standing) -> int:
    """Kernel: the winner's index, NO_WINNER if every arm has a certain loss, else NOT_YET."""
    if standing.unbeaten[0] == 0:
        return NO_WINNER
    if standing.unbeaten[0] == 1:
        for k in range(len(standing.ahead)):
            if standing.ahead[k] == len(standing.ahead) - 1:
                return k
    return NOT_YET


def share(delta: float, tally: Tally) -> Floats:
    """Return (K, K) float64: the δ′ of each pair, 0 on the diagonal.

    A pair of the K₀ arms at the start gets 2δ/K₀². A pair of a later arm, number m, with an earlier one gets
    δ/(m(m−1)²). However many arms are added, the sum over all pairs is at most δ.
    """
    arm = np.arange(len(tally.names))
    shares = share_of(delta, tally, arm[:, None], arm)
    np.fill_diagonal(shares, 0.0)
    return shares


def share_of(delta: float, tally: Tally, first: Ints | int, second: Ints | int) -> Floats:
    """Return the δ′ of the pairs of two different arms with these indices, see `share`."""
    m = np.maximum(np.maximum(first, second) + 1, 2).astype(np.float64)
    return np.where(m <= tally.started_with, 2 * delta / tally.started_with**2, delta / (m * (m - 1) ** 2))


def log_thresholds(tally: Tally, confidence: float = 0.95) -> Floats:
    """Return (K, K) float64: ln(1/δ′) of each pair, infinite on the diagonal."""
    with np.errstate(divide="ignore"):
        return -np.log(share(1 - _confidence(confidence), tally))


def certainly_beats(tally: Tally, confidence: float = 0.95) -> Bools:
    """Return (K, K) bool: whether i beats j for certain; ties do not count, and retired arms are included."""
    sure = leads(tally)
    first, second = np.nonzero(sure)  # with many arms, few pairs have met
    threshold = -np.log(share_of(1 - _confidence(confidence), tally, first, second))
    sure[first, second] = log_evidence(tally.wins[first, second], tally.wins[second, first]) >= threshold
    return sure


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is known about the best of a study's active arms; `str` gives it as text, `as_dict` as plain data.

    Attributes:
        kind: winner, no condorcet winner, practically tied or not yet.
        arms: How many active arms there are.
        duels: How many duels of two different arms there were, including ties and retired arms.
        confidence: The probability that no verdict of the study is ever wrong.
        margin: See `Study.verdict`.
        winner: The arm that beats all other active arms for certain.
        leader: The winner, the arm that is practically tied, or the leaderboard's first; None before the first duel.
        level_with: Not yet: the other arms that share the first rank with the leader.
        tied_with: Practically tied: the arms that the leader is not certain to beat.
        losses: No Condorcet winner: a (loser, winner) for every active arm …
        cycle: … and a cycle among them: each beats the next, the last beats the first.
        open_pairs: Not yet: the (arm, other) that are undecided, the least certain first; arm is the first in the
            ranking without a certain loss.
        duels_to_go: Not yet: an estimate of how many more duels the open pairs need; None if unknown.
        void: Why nothing is promised about errors, such as answers that were undone.
    """

    kind: Kind
    arms: int
    duels: int
    confidence: float
    margin: float
    winner: str | None = None
    leader: str | None = None
    level_with: tuple[str, ...] = ()
    tied_with: tuple[str, ...] = ()
    losses: tuple[tuple[str, str], ...] = ()
    cycle: tuple[str, ...] = ()
    open_pairs: tuple[tuple[str, str], ...] = ()
    duels_to_go: int | None = None
    void: str | None = None

    def __str__(self) -> str:
        kinds = {"winner": _winner, "no condorcet winner": _no_winner, "practically tied": _tied, "not yet": _not_yet}
        return f"{kinds[self.kind](self)} {_promise(self)}"

    def _repr_html_(self) -> str:
        return f"<p><strong>{html.escape(headline(self.as_dict()))}</strong><br>{html.escape(str(self))}</p>"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as in JSON: lists instead of tuples."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return plain


def verdict(tally: Tally, *, confidence: float = 0.95, margin: float = 0.0, void: str | None = None) -> Verdict:
    """Return the verdict on the active arms: a winner, no Condorcet winner, practically tied, or not yet.

    However duels are chosen and whenever you look, with probability `confidence` no verdict is ever wrong.

    Args:
        tally: The counts.
        confidence: Above 0 and below 1.
        margin: At least 0 and below ½. An arm is declared practically tied only if this is above 0.
        void: Why that promise does not hold, such as answers that were undone after a look.

    Raises:
        InvalidInput: If an argument is out of range, or every arm is retired.
    """
    confidence = _confidence(confidence)
    margin = _number("margin", margin, lambda number: 0 <= number < 0.5, "at least 0 and below 0.5, such as 0.02")
    active = np.flatnonzero(tally.active)
    if len(active) == 0:
        raise InvalidInput("every arm is retired: expected at least one active arm; take one back")
    sure = certainly_beats(tally, confidence) & np.outer(tally.active, tally.active)
    known: dict[str, Any] = {"confidence": confidence, "margin": margin, "void": void}
    known |= {"arms": len(active), "duels": int(met(tally).sum()) // 2}
    wins = sure.sum(axis=1)
    if (wins[active] == len(active) - 1).any():
        winner = tally.names[active[wins[active].argmax()]]
        return Verdict(kind="winner", winner=winner, leader=winner, **known)
    if sure[:, active].any(axis=0).all():
        return Verdict(kind="no condorcet winner", **_losses(tally, sure, confidence), **known)
    tied = _practically_tied(tally, sure, confidence, margin) if margin > 0 else None
    if tied is not None:
        return Verdict(kind="practically tied", **tied, **known)
    return Verdict(kind="not yet", **_still_open(tally, sure, confidence), **known)


def _losses(tally: Tally, sure: Bools, confidence: float) -> dict[str, Any]:
    """A certain loss of every active arm: the most certain one, except for arms on the cycle that is also returned."""
    excess = np.where(sure, log_evidence(tally.wins, tally.wins.T) - log_thresholds(tally, confidence), -np.inf)
    beaten_by = excess.argmax(axis=0).tolist()
    path = [leaders(tally)[0]]
    while path.count(path[-1]) < 2:  # every arm has lost, so going from loser to winner ends in a cycle
        path.append(beaten_by[path[-1]])
    cycle = _cycle(sure, path[-1])
    for k, arm in enumerate(cycle):
        beaten_by[arm] = cycle[k - 1]
    names = tally.names
    losses = tuple((names[arm], names[beaten_by[arm]]) for arm in np.flatnonzero(tally.active))
    return {"losses": losses, "cycle": tuple(names[arm] for arm in cycle)}


def _cycle(sure: Bools, start: int) -> list[int]:
    """The shortest cycle of certain wins through an arm that is on one; each beats the next, the last the first."""
    reached_from = {start: start}
    queue = [start]
    for arm in queue:
        if sure[arm, start]:
            break
        beaten_now = [k for k in np.flatnonzero(sure[arm]).tolist() if k not in reached_from]
        reached_from |= dict.fromkeys(beaten_now, arm)
        queue += beaten_now
    path = [arm]
    while path[-1] != start:
        path.append(reached_from[path[-1]])
    return path[::-1]


def _practically_tied(tally: Tally, sure: Bools, confidence: float, margin: float) -> dict[str, Any] | None:
    """The arm that no active arm beats by more than the margin; if several, the first without a certain loss."""
    worst = 0.5 - margin
    halves = tally.wins + tally.ties / 2
    outside = log_martingale(halves, halves.T, worst) > log_thresholds(tally, confidence)
    close = sure | (outside & (estimates(tally) > worst)) | np.eye(len(sure), dtype=bool)
    fit = [arm for _, arm in ranking(tally) if tally.active[arm] and close[arm, tally.active].all()]
    if not fit:
        return None
    leader = min(fit, key=lambda arm: sure[:, arm].any())
    others = np.flatnonzero(tally.active & ~sure[leader])
    return {"leader": tally.names[leader], "tied_with": tuple(tally.names[k] for k in others if k != leader)}


def _still_open(tally: Tally, sure: Bools, confidence: float) -> dict[str, Any]:
    """Who leads, which pairs the first arm without a certain loss has still to win, and how long that takes.

    They are the same arm unless all that share the first rank have a certain loss.
    """
    names, active = tally.names, np.flatnonzero(tally.active)
    first = leaders(tally)
    if not first:
        return {"open_pairs": tuple(itertools.combinations([names[k] for k in active], 2))}
    arm = next(arm for _, arm in ranking(tally) if tally.active[arm] and not sure[:, arm].any())
    undecided = active[(active != arm) & ~sure[arm, active]]
    won, lost = tally.wins[arm], tally.wins[:, arm]
    lead = (won - lost) / np.sqrt(np.maximum(won + lost, 1))
    undecided = undecided[np.argsort(lead[undecided], kind="stable")]
    missing = log_thresholds(tally, confidence)[arm] - log_evidence(won, lost)
    return {
        "leader": names[first[0]],
        "level_with": tuple(names[k] for k in first[1:]),
        "open_pairs": tuple((names[arm], names[j]) for j in undecided),
        "duels_to_go": _duels_to_go(tally, arm, undecided, missing),
    }


def _duels_to_go(tally: Tally, arm: int, undecided: np.ndarray, missing: np.ndarray) -> int | None:
    """How many duels of an arm with the undecided ones give the missing evidence, if it keeps winning as it has.

    If the next duel is won with probability q = (w+½)/(n+1), ln M(½) is expected to grow by kl(q, ½), and q to stay.
    An arm that it never met is assumed to be as strong as those it met. None if it does not lead all of them.
    """
    counts = np.stack([tally.wins[arm], tally.wins[:, arm], tally.ties[arm]])
    total = counts[:, tally.active].sum(axis=1, keepdims=True)
    counts = np.where(counts.sum(axis=0) > 0, counts, total)[:, undecided]
    won, lost = counts[:2]
    if (won <= lost).any():
        return None
    growth = kl((won + 0.5) / (won + lost + 1), 0.5) * (won + lost) / counts.sum(axis=0)
    return int(np.ceil(missing[undecided] / growth).sum())


def leaderboard(tally: Tally, confidence: float = 0.95) -> list[LeaderboardRow]:
    """Return one row per arm, best first, in the order of `ranking`; retired arms come last."""
    sure = certainly_beats(tally, confidence)
    lower, upper = _intervals(tally, confidence)
    columns = {
        "duels": met(tally).sum(axis=1),
        "wins": tally.wins.sum(axis=1),
        "losses": tally.wins.sum(axis=0),
        "ties": tally.ties.sum(axis=1),
        "score": scores(tally),
        "lower": over_others(tally, lower),
        "upper": over_others(tally, upper),
        "beats": beaten(tally),
        "certain_wins": np.sum(sure & tally.active, axis=1),
        "certain_losses": np.sum(sure & tally.active[:, None], axis=0),
        "active": tally.active,
    }
    plain = {key: values.tolist() for key, values in columns.items()}
    return [
        LeaderboardRow(rank=rank, arm=tally.names[arm], **{key: values[arm] for key, values in plain.items()})
        for rank, arm in ranking(tally)
    ]


def leaderboard_html(tally: Tally, confidence: float = 0.95) -> str:
    """Return the first rows of a leaderboard as a table for notebooks."""
    rows = leaderboard(tally, confidence)
    cells = [
        f"<tr><td>{row.rank}</td><td style='text-align: left'>{html.escape(row.arm)}</td><td>{row.beats}</td>"
        f"<td>{row.score:.3f}</td><td>{row.duels:,}</td><td>{row.wins:,}</td><td>{row.losses:,}</td>"
        f"<td>{row.ties:,}</td></tr>"
        for row in rows[:TABLE_ROWS]
    ]
    names = ("rank", "arm", "leads", "score", "duels", "wins", "losses", "ties")
    head = "".join(f"<th>{name}</th>" for name in names)
    more = f"<p>… and {len(rows) - TABLE_ROWS:,} more arms</p>" if len(rows) > TABLE_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(cells)}</tbody></table>{more}"


def preferences(tally: Tally, confidence: float = 0.95) -> list[PairRow]:
    """Return one row per pair of arms, including retired ones, in the order of their indices."""
    return pair_rows(tally, *np.triu_indices(len(tally.names), 1), confidence)


def preferences_page(
    tally: Tally, confidence: float = 0.95, after: int = 0, limit: int = 10_000
) -> tuple[list[PairRow], int | None]:
    """Return a page of `preferences`.

    Args:
        tally: The counts.
        confidence: Of the intervals.
        after: Where the page starts: 0, or what the previous page returned. It stands for a pair of arms, so that no
            pair appears twice if arms are added meanwhile.
        limit: How many rows to return.

    Returns:
        The rows, and `after` for the next page; None at the end.
    """
    arms = len(tally.names)
    i, j = divmod(after, PAGES)
    begins = np.append(0, np.cumsum(np.arange(arms - 1, 0, -1)))  # where the pairs of each first arm start
    begin = begins[-1] if i >= arms else begins[i] + min(max(j - i, 0), arms - 1 - i)
    number = np.arange(begin, min(begin + limit, begins[-1]))
    first = np.searchsorted(begins, number, side="right") - 1
    second = number - begins[first] + first + 1
    more = len(number) > 0 and number[-1] + 1 < begins[-1]
    return pair_rows(tally, first, second, confidence), int(first[-1]) * PAGES + int(second[-1]) if more else None


def pair_rows(tally: Tally, first: Ints, second: Ints, confidence: float = 0.95) -> list[PairRow]:
    """Return the rows of the pairs with these indices; nothing is computed for the others."""
    wins, losses, ties = tally.wins[first, second], tally.wins[second, first], tally.ties[first, second]
    n, nothing = wins + losses + ties, np.array(None)
    share_of_wins = np.where(n > 0, (wins + ties / 2) / np.maximum(n, 1), nothing)
    delta = share_of(1 - _confidence(confidence), tally, first, second)
    certain_now = log_evidence(wins, losses) >= -np.log(delta)
    better = np.where(wins > losses, "first", np.where(wins < losses, "second", nothing))
    certain_winner = np.where(certain_now, better, nothing)
    lower, upper = distinct_intervals(wins + ties / 2, losses + ties / 2, delta)
    names = ([tally.names[arm] for arm in arms] for arms in (first, second))
    columns = (wins, losses, ties, n, share_of_wins, lower, upper, certain_winner)
    return [PairRow(*row) for row in zip(*names, *(column.tolist() for column in columns))]


def _intervals(tally: Tally, confidence: float) -> tuple[Floats, Floats]:
    """(K, K) lower and upper limits of all pairs, a tie counted as a half; 0 and 1 on the diagonal."""
    lower, upper = np.zeros(tally.wins.shape), np.ones(tally.wins.shape)
    pair = np.nonzero(met(tally))  # the interval of a pair that never met is (0, 1)
    delta = share_of(1 - _confidence(confidence), tally, *pair)
    won, lost, tied = tally.wins[pair], tally.wins.T[pair], tally.ties[pair]
    lower[pair], upper[pair] = distinct_intervals(won + tied / 2, lost + tied / 2, delta)
    return lower, upper


def _confidence(value: object) -> float:
    return _number("confidence", value, lambda number: 0 < number < 1, "above 0 and below 1, such as 0.95")


def _number(what: str, value: object, fits: Callable[[float], bool], expected: str) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not fits(number):
        raise InvalidInput(f"{what} is {value!r}: expected a number {expected}")
    return number


def headline(verdict: Mapping[str, Any], retired: bool = False) -> str:
    """Return a verdict in a few words.

    Args:
        verdict: From `Verdict.as_dict`.
        retired: Whether the study was retired; then nothing is said about duels to come.
    """
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
    ranks = f"Not yet: {listed(first)} {'leads' if len(first) == 1 else 'share the first rank'}"
    arm, to_go = verdict["open_pairs"][0][0], verdict["duels_to_go"]
    if arm not in first:
        return f"{ranks}, {arm} may still win"
    return ranks if to_go is None else f"{ranks}, about {_about(to_go)} duels to go"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return `a, b and c`; `a, b, c and 9 others` if there are too many."""
    shown = list(names) if len(names) <= most else [*names[: most - 1], f"{len(names) - most + 1} others"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _winner(verdict: Verdict) -> str:
    if verdict.arms == 1:
        return f"{verdict.winner} is the only arm left."
    others = "the other arm" if verdict.arms == 2 else f"each of the {verdict.arms - 1} others"
    return f"{verdict.winner} is the winner: against {others} it wins more often than it loses."


def _no_winner(verdict: Verdict) -> str:
    pairs = zip(verdict.cycle, verdict.cycle[1:] + verdict.cycle[:1])
    cycle = ", ".join(f"{a} beats {b}" for a, b in pairs)
    return f"No arm beats all others: each of the {verdict.arms} loses to another one. There is a cycle: {cycle}."


def _tied(verdict: Verdict) -> str:
    return (
        f"{verdict.leader} is practically as good as any: no arm wins more than {_percent(0.5 + verdict.margin)} "
        f"of its duels with it, a tie counted as a half. It is not shown to beat {listed(verdict.tied_with)}."
    )


def _not_yet(verdict: Verdict) -> str:
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


def _promise(verdict: Verdict) -> str:
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
