"""Is there a winner? An answer that holds however often it is asked for.

Each pair has the Beta mixture martingale M(p) = B(w+½, l+½)/B(½, ½) / (p^w (1−p)^l) of its w wins and l losses. If p
is the chance of a win, M(p) ever reaches 1/δ′ with probability at most δ′ (Ville), so {p: M(p) < 1/δ′} contains p at
all times at once with probability 1 − δ′. The δ′ of all pairs, those of arms to come included, add up to
δ = 1 − confidence: all statements about any of the arms hold together. `docs/study/verdict.md` has the proofs.
"""

import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import InvalidInput
from ..theory import kl
from .intervals import distinct_intervals, log_evidence, log_martingale
from .intervals import interval as interval
from .tally import LeaderboardRow, PairRow, Tally, beaten, estimates, leaders, leads, met, over_others, ranking, scores
from .verdict_words import in_words

Kind = Literal["winner", "no condorcet winner", "practically tied", "not yet"]

LOG_2, LOG_PI = math.log(2.0), math.log(math.pi)  # B(½, ½) = π
PAGES = 2**20  # more than there are arms: a pair's number is first · PAGES + second
NOT_YET, NO_WINNER = -1, -2  # what `settled` answers besides an arm


class Standing(NamedTuple):
    """Who beats whom for certain, kept up to date by the kernels: what a simulation looks at after every answer."""

    sure: np.ndarray  # (K, K) bool: whether i beats j for certain
    ahead: np.ndarray  # (K,) int64: how many arms i beats for certain
    behind: np.ndarray  # (K,) int64: how many arms beat i for certain
    unbeaten: np.ndarray  # (1,) int64: how many arms have no certain loss


def new_standing(arms: int) -> Standing:
    """Nothing is certain yet."""
    none = np.zeros(arms, np.int64)
    return Standing(np.zeros((arms, arms), dtype=bool), none, none.copy(), np.full(1, arms))


def evidence(wins, losses):
    """Kernel: ln M(½) of one pair."""
    n = wins + losses
    return math.lgamma(wins + 0.5) + math.lgamma(losses + 0.5) - math.lgamma(n + 1.0) - LOG_PI + n * LOG_2


def certain(wins, losses, log_threshold):
    """Kernel: whether the first of a pair beats the second for certain; log_threshold is ln(1/δ′)."""
    lead = wins - losses
    # M(½) is below the likelihood ratio exp(n kl(w/n, ½)), and that at most exp(ln 2 · lead²/n): few pairs pass.
    if lead <= 0 or LOG_2 * lead * lead < log_threshold * (wins + losses):
        return False
    return evidence(wins, losses) >= log_threshold


def note(standing, wins, i, j, log_threshold):
    """Kernel: enter what is certain of i and j after a duel of theirs; wins are without ties."""
    enter(standing, i, j, certain(wins[i, j], wins[j, i], log_threshold))
    enter(standing, j, i, certain(wins[j, i], wins[i, j], log_threshold))


def enter(standing, i, j, now):
    change = int(now) - int(standing.sure[i, j])
    if change != 0:
        standing.sure[i, j] = now
        standing.ahead[i] += change
        standing.behind[j] += change
        if standing.behind[j] == max(change, 0):  # the first certain loss of j, or the last one taken back
            standing.unbeaten[0] -= change


def settled(standing):
    """Kernel: the winner's index, NO_WINNER if every arm has a certain loss, else NOT_YET."""
    if standing.unbeaten[0] == 0:
        return NO_WINNER
    if standing.unbeaten[0] == 1:
        for k in range(len(standing.ahead)):
            if standing.ahead[k] == len(standing.ahead) - 1:
                return k
    return NOT_YET


def share(delta: float, tally: Tally) -> np.ndarray:
    """(K, K) float64: the δ′ of each pair, 0 on the diagonal; the pairs of any number of arms add up to at most δ.

    A pair of the K₀ arms at the start has 2δ/K₀², one of a later arm number m with an earlier one δ/(m(m−1)²).
    """
    arm = np.arange(len(tally.names))
    shares = share_of(delta, tally, arm[:, None], arm)
    np.fill_diagonal(shares, 0.0)
    return shares


def share_of(delta: float, tally: Tally, first: Any, second: Any) -> np.ndarray:
    """The δ′ of the pairs of two different arms with these indices, see `share`."""
    m = np.maximum(np.maximum(first, second) + 1, 2).astype(np.float64)
    return np.where(m <= tally.started_with, 2 * delta / tally.started_with**2, delta / (m * (m - 1) ** 2))


def log_thresholds(tally: Tally, confidence: float = 0.95) -> np.ndarray:
    """(K, K) float64: ln(1/δ′) of each pair, infinite on the diagonal."""
    with np.errstate(divide="ignore"):
        return -np.log(share(1 - _confidence(confidence), tally))


def certainly_beats(tally: Tally, confidence: float = 0.95) -> np.ndarray:
    """(K, K) bool: whether i beats j for certain; ties do not count, and retired arms are included."""
    sure = leads(tally)
    first, second = np.nonzero(sure)  # few pairs have met where there are many arms
    threshold = -np.log(share_of(1 - _confidence(confidence), tally, first, second))
    sure[first, second] = log_evidence(tally.wins[first, second], tally.wins[second, first]) >= threshold
    return sure


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What can be said of a study's active arms; `str` gives it as text, `as_dict` as plain data."""

    kind: Kind
    arms: int  # active ones
    duels: int  # of two different arms so far, ties and retired arms included
    confidence: float
    margin: float
    winner: str | None = None  # the arm that beats all other active ones for certain
    leader: str | None = None  # the winner, the arm practically tied, or the leaderboard's first; None before duels
    level_with: tuple[str, ...] = ()  # not yet: the other arms that share the first rank with the leader
    tied_with: tuple[str, ...] = ()  # practically tied: the arms that the leader is not certain to beat
    losses: tuple[tuple[str, str], ...] = ()  # no Condorcet winner: a (loser, winner) for every active arm …
    cycle: tuple[str, ...] = ()  # … and a cycle in them: each beats the next, the last beats the first
    # not yet: (arm, other) still undecided, the least certain first; arm is the first without a certain loss
    open_pairs: tuple[tuple[str, str], ...] = ()
    duels_to_go: int | None = None  # not yet: an estimate of how many duels the open pairs still need; None if unknown
    void: str | None = None  # why the promise does not hold

    def __str__(self) -> str:
        return in_words(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as JSON has it: lists for tuples."""
        return json.loads(json.dumps(dataclasses.asdict(self)))


def verdict(tally: Tally, *, confidence: float = 0.95, margin: float = 0.0, void: str | None = None) -> Verdict:
    """What the counts say: a winner, no Condorcet winner, practically tied (only with a margin above 0), or not yet.

    However duels are chosen and whenever one looks, with probability `confidence` no verdict is ever wrong. Only active
    arms count. `void` says why that promise does not hold, such as answers undone after a look.
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


def _losses(tally: Tally, sure: np.ndarray, confidence: float) -> dict[str, Any]:
    """A certain loss of every active arm, the most certain one but for arms on the cycle that is also given."""
    excess = np.where(sure, log_evidence(tally.wins, tally.wins.T) - log_thresholds(tally, confidence), -np.inf)
    beaten_by = excess.argmax(axis=0).tolist()
    path = [leaders(tally)[0]]
    while path.count(path[-1]) < 2:  # from loser to winner one comes round at last, as every arm has lost
        path.append(beaten_by[path[-1]])
    cycle = _cycle(sure, path[-1])
    for k, arm in enumerate(cycle):
        beaten_by[arm] = cycle[k - 1]
    names = tally.names
    losses = tuple((names[arm], names[beaten_by[arm]]) for arm in np.flatnonzero(tally.active))
    return {"losses": losses, "cycle": tuple(names[arm] for arm in cycle)}


def _cycle(sure: np.ndarray, start: int) -> list[int]:
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


def _practically_tied(tally: Tally, sure: np.ndarray, confidence: float, margin: float) -> dict[str, Any] | None:
    """The arm that no active arm beats by more than the margin; of several, the first without a certain loss."""
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


def _still_open(tally: Tally, sure: np.ndarray, confidence: float) -> dict[str, Any]:
    """Who leads; what the first arm without a certain loss has still to win, and how long that takes.

    These are the same arm unless all that share the first rank have lost to another one for certain.
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
    """How many duels of an arm with the undecided ones make up for the missing evidence, at the present shares.

    If the next duel is won with chance q = (w+½)/(n+1), ln M(½) is expected to grow by kl(q, ½), and q to stay.
    Another arm that it never met is taken to be as strong as those it met. None if it does not lead one of them.
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
    """One row per arm, best first, in the order of `ranking`; retired arms come last."""
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


def preferences(tally: Tally, confidence: float = 0.95) -> list[PairRow]:
    """One row per pair of arms, retired ones included, in the order of their indices."""
    return pair_rows(tally, *np.triu_indices(len(tally.names), 1), confidence)


def preferences_page(
    tally: Tally, confidence: float = 0.95, after: int = 0, limit: int = 10_000
) -> tuple[list[PairRow], int | None]:
    """At most `limit` rows of `preferences`, and what to say as `after` for those that follow; None at the end.

    That number stands for a pair of arms, so that arms added meanwhile make no pair come twice.
    """
    arms = len(tally.names)
    i, j = divmod(after, PAGES)
    begins = np.append(0, np.cumsum(np.arange(arms - 1, 0, -1)))  # of the pairs of each first arm, among all pairs
    begin = begins[-1] if i >= arms else begins[i] + min(max(j - i, 0), arms - 1 - i)
    number = np.arange(begin, min(begin + limit, begins[-1]))
    first = np.searchsorted(begins, number, side="right") - 1
    second = number - begins[first] + first + 1
    more = len(number) > 0 and number[-1] + 1 < begins[-1]
    return pair_rows(tally, first, second, confidence), int(first[-1]) * PAGES + int(second[-1]) if more else None


def pair_rows(tally: Tally, first: np.ndarray, second: np.ndarray, confidence: float = 0.95) -> list[PairRow]:
    """The rows of the pairs with these indices; nothing is computed for others."""
    wins, losses, ties = tally.wins[first, second], tally.wins[second, first], tally.ties[first, second]
    n, nothing = wins + losses + ties, np.array(None)
    share_of_wins = np.where(n > 0, (wins + ties / 2) / np.maximum(n, 1), nothing)
    delta = share_of(1 - _confidence(confidence), tally, first, second)
    certain_now = log_evidence(wins, losses) >= -np.log(delta)
    said = np.where(certain_now & (wins > losses), "first", np.where(certain_now & (wins < losses), "second", nothing))
    lower, upper = distinct_intervals(wins + ties / 2, losses + ties / 2, delta)
    names = ([tally.names[arm] for arm in arms] for arms in (first, second))
    columns = (wins, losses, ties, n, share_of_wins, lower, upper, said)
    return [PairRow(*row) for row in zip(*names, *(column.tolist() for column in columns))]


def _intervals(tally: Tally, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """(K, K) lower and upper ends for all pairs at once, a tie counted as a half; 0 and 1 on the diagonal."""
    lower, upper = np.zeros(tally.wins.shape), np.ones(tally.wins.shape)
    pair = np.nonzero(met(tally))  # the interval of a pair that never met is (0, 1)
    delta = share_of(1 - _confidence(confidence), tally, *pair)
    won, lost, tied = tally.wins[pair], tally.wins.T[pair], tally.ties[pair]
    lower[pair], upper[pair] = distinct_intervals(won + tied / 2, lost + tied / 2, delta)
    return lower, upper


def _confidence(value: Any) -> float:
    return _number("confidence", value, lambda number: 0 < number < 1, "above 0 and below 1, such as 0.95")


def _number(what: str, value: Any, fits: Callable[[float], bool], expected: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not fits(number):
        raise InvalidInput(f"{what} is {value!r}: expected a number {expected}")
    return number
