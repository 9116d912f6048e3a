"""Is there a winner? An answer that holds however often you ask, by the tests in `certainty`."""

import dataclasses
import html
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from ...errors import InvalidInput, format_count, percent
from .about import GIVEN, INDEPENDENT, THESE_PEOPLE, About, Strength, describe_scope
from .certainty import CertaintyTest, check_confidence, check_margin
from .exhausted import Exhausted
from .forecast import MOST_SHOWN, make_forecast
from .leaderboard import find_shares
from .reach import Reach
from .tally import Bools, Floats, Ranking, Tally, count_met, estimates, rank_arms

Kind = Literal["winner", "no condorcet winner", "practically tied", "not yet"]
# What is computed when it is first looked at, by the function that the verdict keeps under this name: to rank takes
# long, and to forecast far longer.
LATER = dict.fromkeys(("leader", "level_with", "open_pairs"), "_still_open")
LATER |= {"answers_to_go": "_answers_to_go", "effect": "_effect"}


@dataclass(frozen=True, kw_only=True)
class Answerers:
    """Who gave the answers of a study.

    Attributes:
        people: How many people are known by name or by a voting link.
        by_people: How many answers they gave.
        by_judges: How many answers judges gave.
        unknown: How many answers nobody's name is known of; each counts as one of a new person.
    """

    people: int = 0
    by_people: int = 0
    by_judges: int = 0
    unknown: int = 0


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Questions without an answer that counts.

    Attributes:
        skipped: How many were skipped, or had no usable answer.
        expired: How many had no answer within the lease; later answers are stored and do not count.
        stands: Whether the winner would be one too had all of them gone the other way; None without a winner.
    """

    skipped: int
    expired: int
    stands: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Effect:
    """By how much an arm wins, see `LeaderboardRow.share`.

    Attributes:
        share: The share of comparisons with the other active arms that it is expected to win.
        lower: The lower limit of the share; None if there are too many arms.
        upper: The upper limit of the share.
    """

    share: float
    lower: float | None = None
    upper: float | None = None

    def __str__(self) -> str:
        return self.describe()

    def describe(self, of: str = "") -> str:
        """Return the share and its limits as text.

        Args:
            of: What it is a share of, such as `its comparisons`.

        Example:
            >>> Effect(share=0.74, lower=0.68, upper=0.79).describe("its comparisons")
            '74 % of its comparisons (68 to 79 %)'
        """
        share = f"{percent(self.share)} %{of and f' of {of}'}"
        if self.lower is None or self.upper is None:
            return share
        return f"{share} ({percent(self.lower)} to {percent(self.upper)} %)"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is known about the best of a study's active arms; `str` gives it as text, `as_dict` as plain data.

    Attributes:
        kind: winner, no condorcet winner, practically tied or not yet.
        arms: How many active arms there are.
        duels: How many duels of two different arms there were, including ties and retired arms.
        confidence: Of the test that it is by. With probability `confidence` no verdict by this test is ever wrong.
        risk: The chance that the study ever gives a wrong verdict: one minus the confidence, or twice that if people
            came back to a study that somebody unknown began, since two tests were then used.
        margin: See `Study.verdict`.
        winner: The arm that beats all other active arms.
        leader: The winner, the arm that is practically tied, or the leaderboard's first; None before the first duel.
        level_with: Not yet: the other arms that share the first rank with the leader.
        tied_with: Practically tied: the arms that the leader is not certain to beat.
        losses: No Condorcet winner: a (loser, winner) for every active arm, which together show it. The promise is that
            there is no winner, not that each of the losses is right.
        cycle: A cycle among them, if there is one of pairs that are certain in the tables too: each beats the next, the
            last beats the first.
        open_pairs: Not yet: the undecided (arm, other), the least certain first. The arm is the first in the ranking
            that no other one clearly beats. If it is the only arm left, the others are retired.
        answers_to_go: Not yet: how many more answers are likely needed, the median of `Study.forecast`; None if nothing
            is forecast, as with more than 50 active arms.
        void: Why nothing is promised about errors, such as answers that were undone.
        about: What it is about: `new-items`, `these-items` or `these-answers`, see `create_study`.
        strength: What it holds for. `independent answers`: it takes each answer as an independent draw, such as one of
            somebody new. `these people`: people came back, and it holds on average over the comparisons made with them.
            `comparisons made`: the same, where it is not known who answered about what, or items were added.
            `answers given`: it is a count of the answers.
        items: How many items the study has; None without items.
        final: On these answers: whether every pair of active arms was asked about all items.
        contradictions: How often a judge gave another answer when it was asked again, in a study about these answers.
            They are then not final, and the verdict is about new items.
        answerers: Who gave the answers; None if that is not known.
        missing: Questions without an answer that counts; None if there are none.
        exhausted: Why no question that is left can bring a verdict; None if one can.
        other_items: Whether the winner also wins on other items like these, with the same people; None if the verdict
            is about new items anyway, or there are none. This and the next are promises of their own.
        other_people: Whether it also wins with other people like these, on the same items; None if every answer is of
            somebody new anyway, or it is not known whose they are.
        effect: By how much the leader wins; None without one, if several share the first rank, if it is not compared
            with the others, or while the answers do not limit it at all. It is an estimate by the model of the ratings,
            and no part of the promise.
    """

    kind: Kind
    arms: int
    duels: int
    confidence: float
    risk: float
    margin: float
    winner: str | None = None
    leader: str | None = None
    level_with: tuple[str, ...] = ()
    tied_with: tuple[str, ...] = ()
    losses: tuple[tuple[str, str], ...] = ()
    cycle: tuple[str, ...] = ()
    open_pairs: tuple[tuple[str, str], ...] = ()
    answers_to_go: int | None = dataclasses.field(default=None, compare=False)
    void: str | None = None
    about: About = "these-items"
    strength: Strength = INDEPENDENT
    items: int | None = None
    final: bool = False
    contradictions: int = 0
    answerers: Answerers | None = None
    missing: Missing | None = None
    exhausted: Exhausted | None = None
    other_items: Reach | None = None
    other_people: Reach | None = None
    effect: Effect | None = None

    def __getattribute__(self, name: str) -> Any:
        if (function := LATER.get(name)) is not None:
            fields = super().__getattribute__("__dict__")
            if (compute := fields.get(function)) is not None:
                fields.update(compute())  # a thread that comes here meanwhile computes the same
                fields[function] = None
        return super().__getattribute__(name)

    @property
    def named(self) -> str | None:
        """The arm that it names: the winner, or the one that is practically as good as any."""
        return self.leader if self.kind in ("winner", "practically tied") else None

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __str__(self) -> str:
        return self.text()

    def text(self, forecast: bool = True, facts: bool = True) -> str:
        """Return the verdict as text.

        Args:
            forecast: Whether to say how many more answers are likely needed.
            facts: Whether to say by how much the leader wins, and how many answers there are; a page says so above.
        """
        kinds = {"winner": _winner, "no condorcet winner": _no_winner, "practically tied": _describe_tied}
        found = kinds[self.kind](self) if self.kind in kinds else _not_yet(self, _how_long(self) if forecast else "")
        scope = describe_scope(self.about, self.strength, self.items)
        if scope and found.startswith("No "):  # other sentences begin with an arm's name
            found = f"n{found[1:]}"
        parts = [
            f"{scope}: {found}" if scope else found,
            self.effect_text() if facts else "",
            self.exhausted,
            f"{self._describe_answers(items=not scope)} so far." if facts else "",
            _describe_missing(self),
            _describe_contradictions(self),
            *_describe_reaches(self),
            _promise(self),
        ]
        return " ".join(str(part) for part in parts if part)

    def effect_text(self) -> str:
        """Return by how much the leader wins, as a sentence; empty if that is not known."""
        if self.effect is None:
            return ""
        others = "the other arm" if self.arms == 2 else "the others"
        so_far = " so far" if self.kind == "not yet" else ""
        return f"{self.leader} wins {self.effect.describe(f'its comparisons with {others}{so_far}')}."

    def _describe_answers(self, items: bool) -> str:
        who = None if self.answerers is None else dataclasses.asdict(self.answerers)
        return describe_answers({"duels": self.duels, "answerers": who, "items": self.items}, items)

    def _repr_html_(self) -> str:
        return f"<p><strong>{html.escape(headline(self.as_dict()))}</strong><br>{html.escape(str(self))}</p>"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as in JSON: lists instead of tuples."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Verdict":
        """Return the verdict that `as_dict` returned as plain data; other entries are left out."""
        known: dict[str, Any] = {
            field.name: plain[field.name] for field in dataclasses.fields(cls) if field.name in plain
        }
        for name, kind in PARTS.items():
            known[name] = None if known.get(name) is None else kind(**known[name])
        return cls(**{name: _as_tuples(value) for name, value in known.items()})


def verdict(
    tally: Tally,
    *,
    confidence: float = 0.95,
    margin: float = 0.0,
    void: str | None = None,
    named: str | None = None,
    left: Floats | None = None,
    **known: Any,
) -> Verdict:
    """Return the verdict on the active arms: a winner, no Condorcet winner, practically tied, or not yet.

    However duels are chosen and whenever you look, with probability `confidence` no verdict is ever wrong.

    Args:
        tally: The counts.
        confidence: Above 0 and below 1.
        margin: At least 0 and below ½. An arm is declared practically tied only if this is above 0.
        void: Why that promise does not hold, such as answers that were undone after a look.
        named: An active arm that was certain to win at an earlier moment, see `moments`.
        left: (K, K) float64: How many questions about each pair can still be asked, see `make_forecast`.
        **known: Further fields of `Verdict`.

    Raises:
        InvalidInput: If an argument is out of range, or every arm is retired.
    """
    confidence, margin = check_confidence(confidence), check_margin(margin)
    active = np.flatnonzero(tally.active)
    if len(active) == 0:
        raise InvalidInput("every arm is retired: expected at least one active arm; take one back")
    known = {
        "confidence": confidence,
        "risk": float(f"{(1 - confidence) * (2 if tally.has_two_tests else 1):.9g}"),
        "margin": margin,
        "void": void,
        "arms": len(active),
        "duels": int(tally.wins.sum() + tally.ties.sum() // 2),
        "about": tally.about,
        "items": tally.items,
        "strength": GIVEN if tally.is_finite else tally.strength,
        "final": tally.is_finite and _is_complete(tally, active),
    } | known
    found = CertaintyTest(tally, confidence)
    wins = found.wins.sum(axis=1)
    if (wins[active] == len(active) - 1).any() and (len(active) > 1 or found.only_arm_wins):
        named = tally.names[active[wins[active].argmax()]]
    if named is not None:
        return with_effect(Verdict(kind="winner", winner=named, leader=named, **known), tally)
    if len(active) > 1 and found.losses[:, active].any(axis=0).all():
        return Verdict(kind="no condorcet winner", **_losses(tally, found), **known)
    may_tie = len(active) > 1 and (margin > 0 or tally.is_finite)
    tied = _practically_tied(tally, found, margin) if may_tie else None
    if tied is not None:
        return with_effect(Verdict(kind="practically tied", **tied, **known), tally)
    pending = Verdict(kind="not yet", **known)
    pending.__dict__["_still_open"] = partial(_still_open, pending, tally, found)
    pending.__dict__["_answers_to_go"] = partial(_answers_to_go, tally, confidence, margin, left)
    return with_effect(pending, tally)


def with_effect(verdict: Verdict, tally: Tally) -> Verdict:
    """Have a verdict say by how much its leader wins, once it is asked for that.

    Args:
        verdict: The verdict, which is changed.
        tally: The counts.
    """
    verdict.__dict__["_effect"] = partial(_find_effect, verdict, tally)
    return verdict


def _find_effect(verdict: Verdict, tally: Tally) -> dict[str, Any]:
    if verdict.leader is None or verdict.level_with or verdict.arms < 2:
        return {}
    found = find_shares(tally, _rank(verdict, tally), verdict.confidence, verdict.winner)
    values = [float(column[tally.names.index(verdict.leader)]) for column in found]
    share, lower, upper = (None if value != value else round(value, 6) for value in values)
    if share is None or (lower is not None and upper is not None and percent(upper) - percent(lower) == 100):
        return {}
    if verdict.winner is not None and share < 0.5:  # the model does not fit
        return {}
    return {"effect": Effect(share=share, lower=lower, upper=upper)}


def _rank(verdict: Verdict, tally: Tally) -> Ranking:
    """The ranking, which is computed once: the rating of many arms takes long."""
    known: Ranking = verdict.__dict__.get("_ranking") or rank_arms(tally, verdict.named)
    verdict.__dict__["_ranking"] = known
    return known


def _answers_to_go(tally: Tally, confidence: float, margin: float, left: Floats | None) -> dict[str, Any]:
    if not 1 < tally.active.sum() <= MOST_SHOWN:
        return {"answers_to_go": None}
    found = make_forecast(tally, confidence=confidence, margin=margin, left=left, known=False)
    return {"answers_to_go": found.answers_median}


def _is_complete(tally: Tally, active: np.ndarray) -> bool:
    """Whether every pair of active arms was asked about all items."""
    asked = count_met(tally)[np.ix_(active, active)][~np.eye(len(active), dtype=bool)]
    return bool((asked >= (tally.items or 0)).all())


PARTS: dict[str, Any] = {
    "answerers": Answerers,
    "missing": Missing,
    "exhausted": Exhausted,
    "other_items": Reach,
    "other_people": Reach,
    "effect": Effect,
}


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _losses(tally: Tally, found: CertaintyTest) -> dict[str, Any]:
    """A loss of every active arm, and a cycle of certain wins.

    An arm on the cycle is listed with its loss there, any other one with its most certain loss. The cycle has only
    pairs that are certain by the promise about all pairs. It may be empty, since "no winner" needs less evidence.
    """
    names, excess = tally.names, found.excess()
    beaten_by = np.where(found.losses, excess, -np.inf).argmax(axis=0).tolist()
    certain = np.asarray(found.certain() & found.losses)
    cycle = _some_cycle(certain, np.where(certain, excess, -np.inf), rank_arms(tally).leaders[0])
    for k, arm in enumerate(cycle):
        beaten_by[arm] = cycle[k - 1]
    losses = tuple((names[arm], names[beaten_by[arm]]) for arm in np.flatnonzero(tally.active))
    return {"losses": losses, "cycle": tuple(names[arm] for arm in cycle)}


def _some_cycle(sure: Bools, excess: Floats, start: int) -> list[int]:
    """A short cycle of certain wins, found by going from loser to winner, from `start` if it can; empty if none."""
    left: Bools = np.asarray(sure.any(axis=0))
    while (fewer := np.asarray(left & sure[left].any(axis=0))).sum() < left.sum():
        left = fewer  # an arm that none of these beats is not on a cycle
    if not left.any():
        return []
    beaten_by = np.where(left[:, None], excess, -np.inf).argmax(axis=0).tolist()
    path = [start if left[start] else int(np.flatnonzero(left)[0])]
    while path.count(path[-1]) < 2:
        path.append(beaten_by[path[-1]])
    return _cycle(sure, path[-1])


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


def _practically_tied(tally: Tally, found: CertaintyTest, margin: float) -> dict[str, Any] | None:
    """The arm that no active arm beats by more than the margin; if several, the first without a certain loss."""
    above = np.asarray((estimates(tally) >= 0.5 - margin) | np.eye(len(tally.names), dtype=bool))
    close = found.close(margin, np.asarray(above[:, tally.active].all(axis=1)))  # others score too little to be close
    fit = [arm for _, arm in rank_arms(tally).ranks if tally.active[arm] and close[arm, tally.active].all()]
    if not fit:
        return None
    leader = min(fit, key=lambda arm: found.wins[:, arm].any())
    others = np.flatnonzero(tally.active & ~found.wins[leader])
    return {"leader": tally.names[leader], "tied_with": tuple(tally.names[k] for k in others if k != leader)}


def _still_open(verdict: Verdict, tally: Tally, found: CertaintyTest) -> dict[str, Any]:
    """Who leads, and which pairs are open.

    The open pairs are those of the first arm in the ranking that no other one clearly beats, by the verdict's test and,
    where that leaves a choice, by that of the tables. If every arm is clearly beaten, but there is not yet the evidence
    for "no winner", they are those of the first arm.
    """
    names, active = tally.names, np.flatnonzero(tally.active)
    if len(active) == 1:
        (left,) = active.tolist()
        others = [k for k in range(len(names)) if k != left and not found.beats[left, k]]
        return {"open_pairs": tuple((names[left], names[k]) for k in others)}
    order, first, *_ = _rank(verdict, tally)
    if not first:
        return {"open_pairs": tuple(itertools.combinations([names[k] for k in active], 2))}
    in_order = np.array([arm for _, arm in order[: len(active)]])  # retired arms come last
    hopeful = in_order[~np.asarray(found.wins.any(axis=0))[in_order]]
    if len(hopeful) != 1:  # several, or none
        certain = found.certain()
        beaten = np.asarray((certain if tally.active.all() else certain[active]).any(axis=0))
        hopeful = hopeful if len(hopeful) else in_order
        hopeful = hopeful[np.argsort(beaten[hopeful], kind="stable")]
    arm = int(hopeful[0])
    undecided = active[(active != arm) & ~found.wins[arm, active]]
    won, lost = tally.wins[arm], tally.wins[:, arm]
    lead = (won - lost) / np.sqrt(np.maximum(won + lost, 1))
    undecided = undecided[np.argsort(lead[undecided], kind="stable")]
    return {
        "leader": names[first[0]],
        "level_with": tuple(names[k] for k in first[1:]),
        "open_pairs": tuple((names[arm], names[j]) for j in undecided),
    }


def headline(verdict: Mapping[str, Any], retired: bool = False) -> str:
    """Return a verdict in a few words.

    Args:
        verdict: From `Verdict.as_dict`.
        retired: Whether the study was retired; then nothing is said about duels to come.
    """
    kind, leader = verdict["kind"], verdict["leader"]
    effect = None if verdict["effect"] is None else Effect(**verdict["effect"])
    wins = "" if effect is None else f" wins {effect.describe('its comparisons')}"
    if kind == "winner":
        return f"{'Only arm left' if verdict['arms'] == 1 else 'Winner'}: {leader}{wins}"
    if kind == "no condorcet winner":
        return "No winner: no arm beats all others"
    if kind == "practically tied":
        if not verdict["margin"]:
            return f"Level: {join_names([leader, *verdict['tied_with']])}"
        return f"Practically as good as any: {leader}{wins}"
    nothing = "No verdict" if retired else "Not yet"
    if verdict["arms"] == 1 and not verdict["open_pairs"]:
        return f"{nothing}: there is only one arm"
    if verdict["arms"] == 1:
        return f"{nothing}: {verdict['open_pairs'][0][0]} {'was' if retired else 'is'} the only arm left"
    if leader is None:
        return f"{nothing}: no two {'active ' if verdict['duels'] else ''}arms have met"
    first = [leader, *verdict["level_with"]]
    if retired:
        return f"No verdict: {join_names(first)} {'led' if len(first) == 1 else 'shared the first rank'}"
    by = "" if effect is None else f" with {effect}"
    ranks = f"Not yet: {join_names(first)} {f'leads{by}' if len(first) == 1 else 'share the first rank'}"
    arm, to_go = verdict["open_pairs"][0][0], verdict["answers_to_go"]
    if arm not in first:
        return f"{ranks}, {arm} may still win"
    return ranks if to_go is None else f"{ranks}, about {_about(to_go)} {'answer' if to_go == 1 else 'answers'} to go"


def describe_answers(verdict: Mapping[str, Any], items: bool = True) -> str:
    """Return how many answers a verdict rests on, of how many people and about how many prompts, in a few words.

    Args:
        verdict: From `Verdict.as_dict`.
        items: Whether to say about how many prompts they are.

    Example:
        >>> describe_answers({"duels": 216, "answerers": {"people": 8, "by_people": 216}, "items": 20})
        '216 answers by 8 people about 20 prompts'
    """
    duels, who = verdict["duels"], verdict["answerers"] or {}
    found, by_people = format_count(duels, "answer"), who.get("by_people", 0)
    if by_people:
        those = "" if by_people >= duels else f", {by_people:,} of them"
        found += f"{those} by {format_count(who['people'], 'person', 'people')}"
    return found + (f" about {format_count(verdict['items'], 'prompt')}" if items and verdict["items"] else "")


def join_names(names: Sequence[str], most: int = 5) -> str:
    """Return `a, b and c`; `a, b, c and 9 others` if there are too many."""
    shown = list(names) if len(names) <= most else [*names[: most - 1], f"{len(names) - most + 1} others"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _winner(verdict: Verdict) -> str:
    if verdict.arms == 1:
        return f"{verdict.winner} is the only arm left."
    others = "the other arm" if verdict.arms == 2 else f"each of the {verdict.arms - 1} others"
    if verdict.strength == GIVEN:
        return f"{verdict.winner} is the winner: against {others} it wins more prompts than it loses."
    return f"{verdict.winner} is the winner: against {others} it wins more often than it loses."


def _no_winner(verdict: Verdict) -> str:
    none = f"No arm beats all others: each of the {verdict.arms} is clearly beaten by another one."
    pairs = zip(verdict.cycle, verdict.cycle[1:] + verdict.cycle[:1])
    cycle = ", ".join(f"{a} beats {b}" for a, b in pairs)
    return f"{none} There is a cycle: {cycle}." if cycle else none


def _describe_tied(verdict: Verdict) -> str:
    if verdict.margin == 0:  # only on these answers
        level = "is level with" if verdict.final else "is not shown to beat"
        return f"no arm beats {verdict.leader}, which {level} {join_names(verdict.tied_with)}."
    return (
        f"{verdict.leader} is practically as good as any: no arm wins more than {_percent(0.5 + verdict.margin)} "
        f"of its comparisons with it, a tie counted as a half. It is not shown to beat {join_names(verdict.tied_with)}."
    )


def _not_yet(verdict: Verdict, how_long: str) -> str:
    others = join_names([other for _, other in verdict.open_pairs]) if verdict.open_pairs else ""
    if verdict.arms == 1 and not others:
        return "No verdict yet: there is only one arm."
    if verdict.arms == 1:
        retired = "which was retired" if len(verdict.open_pairs) == 1 else "which were retired"
        arm = verdict.open_pairs[0][0]
        return f"No verdict yet: {arm} is the only arm left, but it is not shown to beat {others}, {retired}."
    if verdict.leader is None:
        return "No verdict yet: these arms have not met."
    first, arm = [verdict.leader, *verdict.level_with], verdict.open_pairs[0][0]
    ranks = f"{join_names(first)} {'ranks first' if len(first) == 1 else 'share the first rank'}"
    if arm not in first:
        who = "it" if len(first) == 1 else "each"
        ranks = f"{ranks}, but {who} is clearly beaten by another arm. {arm} may still win"
    to_show = f"{'' if len(first) == 1 or arm not in first else f'{arm} '}has yet to beat {others} conclusively."
    return f"No verdict yet: {ranks}, but {to_show} {how_long}".rstrip()


def _how_long(verdict: Verdict) -> str:
    if not verdict.answers_to_go:
        return ""
    likely = "answer is" if verdict.answers_to_go == 1 else "answers are"
    return f"About {_about(verdict.answers_to_go)} more {likely} likely needed."


def _describe_missing(verdict: Verdict) -> str:
    """What questions without an answer would have changed."""
    missing = verdict.missing
    if missing is None or verdict.kind != "winner" or verdict.void is not None:
        return ""
    found = format_count(missing.skipped + missing.expired, "question has", "questions have")
    would = "would stand" if missing.stands else "would not stand"
    return f"{found} no answer that counts: the verdict {would} had all of them gone the other way."


def _describe_contradictions(verdict: Verdict) -> str:
    """Why a study about these answers is read as one about new items."""
    if not verdict.contradictions or not verdict.items:
        return ""
    times = format_count(verdict.contradictions, "time")
    return f"The judge contradicted itself {times}, so that its answers are not final: this is about new prompts."


def _describe_reaches(verdict: Verdict) -> list[str]:
    """How far the winner goes: other items, and other people."""
    found = (("prompts", verdict.other_items), ("people", verdict.other_people))
    return [
        f"Other {what} like these: {_describe_reach(verdict.winner, reach)}."
        for what, reach in found
        if reach is not None
    ]


def _describe_reach(winner: str | None, reach: Reach) -> str:
    split = f", {reach.split:,} {'is' if reach.split == 1 else 'are'} split" if reach.split else ""
    prefer = f"{reach.prefer:,} of {reach.clusters:,} prefer it{split}"
    if reach.holds:
        return f"{winner} too ({prefer})"
    needed = "" if reach.needed is None else f"; about {_about(reach.needed)} would tell"
    return f"not known ({prefer}{needed})"


def _promise(verdict: Verdict) -> str:
    if verdict.void is not None:
        return f"Nothing is promised about errors: {verdict.void.rstrip('.')}."
    if verdict.final:
        return "Every pair was asked about every prompt, so this is final."
    each, risk = _percent(1 - verdict.confidence), _percent(verdict.risk)
    who = verdict.answerers
    taken = ""
    if verdict.strength == INDEPENDENT and (who is None or who.unknown):
        taken = "; each answer counts as a new person's"
    if risk != each:
        what = "people came back" if verdict.strength == THESE_PEOPLE else "votes were imported or prompts added"
        taken = f" ({each} risk before {what}, and {each} since)"
    return f"{_percent(1 - verdict.risk)} confidence, valid at any time{taken}."


def _about(duels: int) -> str:
    """Two digits are enough for an estimate."""
    return f"{float(f'{duels:.2g}'):,.0f}"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
