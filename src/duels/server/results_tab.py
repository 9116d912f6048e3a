"""The last verdict that people were shown. A study can be open again afterwards; then its page says why.

It is stored beside the study, not in its log: a verdict follows from the answers alone.

What a study's page shows at a glance: who is best and how sure, what to do next, and who beats whom.

It is small and quick, because every viewer gets it after every vote.
"""

import dataclasses
import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from ..errors import InvalidInput, UnknownName, percent
from ..storage.tables import studies
from ..study import base
from ..study.base import EventLog
from ..study.duels import iso_time
from ..study.event_study import EventStudy
from ..study.state.counts import LEFT, RIGHT, StudyCounts
from ..study.state.live import LiveState
from ..study.state.look import Pace, measure_pace
from ..study.stats.about import COMPARISONS, THESE_PEOPLE, describe_about
from ..study.stats.certainty import certainly_beats
from ..study.stats.forecast import MOST_SHOWN, TOO_EARLY, Forecast
from ..study.stats.goal import Goal
from ..study.stats.leaderboard import certain_ranks, leaderboard, pair_rows
from ..study.stats.tally import Bools, LeaderboardRow, Tally, count_met
from ..study.stats.verdict import Verdict, describe_answers, headline, join_names
from ..study.study import Study

KEY = "given"  # in a study's settings


class Basis(NamedTuple):
    """What a verdict rests on besides new answers: if any of it changes, the study may be open again.

    Attributes:
        taken_back: How often an answer was taken back.
        arms: The active arms.
        items: The items, as spans of their numbers.
        about: What the verdict is about.
        strength: What the verdict holds for.
        imported: How many rows of past votes there are.
        margin: Of the verdict.
    """

    taken_back: int = 0
    arms: tuple[str, ...] = ()
    items: tuple[tuple[int, int], ...] = ()
    about: str = ""
    strength: str = ""
    imported: int = 0
    margin: float = 0.0

    def changes(self, now: "Basis") -> list[str]:
        """Return what has changed since then, as parts of a sentence."""
        before, after = _numbers(self.items), _numbers(now.items)
        added = [arm for arm in now.arms if arm not in self.arms]
        retired = [arm for arm in self.arms if arm not in now.arms]
        weaker = "" if now.strength == self.strength else now.strength
        return [
            words
            for words, holds in (
                ("answers were taken back", now.taken_back > self.taken_back),
                (f"{join_names(added)} {_were(added)} added" if added else "", bool(added)),
                (f"{join_names(retired)} {_were(retired)} retired" if retired else "", bool(retired)),
                ("prompts were removed", bool(before - after)),
                ("prompts were added", bool(before and after - before)),
                ("the margin was changed", now.margin != self.margin),
                ("past votes were imported", weaker == COMPARISONS and now.imported > self.imported),
                ("people came back, so that more evidence is needed", weaker == THESE_PEOPLE),
                ("the judge contradicted itself", now.about != self.about),
            )
            if holds
        ]


def _numbers(spans: tuple[tuple[int, int], ...]) -> set[int]:
    return {number for first, last in spans for number in range(first, last + 1)}


def _were(names: list[str]) -> str:
    return "was" if len(names) == 1 else "were"


def basis_of(record: StudyCounts) -> Basis:
    """Return what a study's verdict rests on now."""
    spans = [] if record.items is None else record.items.spans
    return Basis(
        taken_back=int(np.array(record.attempt, np.int64).sum()),
        arms=tuple(name for name, active in zip(record.names, record.active) if active),
        items=tuple((first, last) for first, last in spans),
        about=record.about,
        strength=record.strength,
        imported=record.imported,
        margin=record.goal.margin,
    )


class Given(NamedTuple):
    """A verdict that was shown.

    Attributes:
        kind: Its kind, see `Verdict`.
        arm: The winner, or the leader of those that are practically tied; None if there is no winner.
        answers: After how many answers it was shown first.
        basis: What it rested on then.
    """

    kind: str
    arm: str | None
    answers: int
    basis: Basis = Basis()

    def words(self, now: Basis, void: bool = False) -> str:
        """Return what a page says about it while the study is open again.

        Answers alone never take back a winner that rests on independent answers. All other verdicts may lapse.

        Args:
            now: What a verdict rests on now.
            void: Whether nothing is promised about errors.
        """
        what = {
            "winner": f"{self.arm} was the winner",
            "practically tied": f"{self.arm} was as good as any",
            "no condorcet winner": "there was no winner",
        }[self.kind]
        changes = self.basis.changes(now)
        if changes:
            since = join_names(changes, len(changes))
            return f"After {self.answers:,} answers {what}. Since then {since}: it is open again."
        again = f"After {self.answers:,} answers {what}. It is open again"
        stays = self.kind == "winner" and now.strength not in (THESE_PEOPLE, COMPARISONS)
        if stays or void:
            return f"{again}."
        return f"{again}. This happens by chance now and then; the promise covers it."


def last_given(study: EventStudy) -> Given | None:
    """Return the last verdict that people were shown; None if there was none."""
    with study._log.storage.read_connection() as connection:
        settings = connection.execute(_settings(study._log)).scalar()
    return _read_given(settings)


def note_given(study: EventStudy, given: Given) -> Given:
    """Store a verdict that is shown now, unless the last one said the same; returns the one that is stored."""
    return study._log.write(partial(_note, study=study._log, given=given))


def _note(connection: sa.Connection, *, study: EventLog, given: Given) -> Given:
    study.current(connection)
    settings = json.loads(connection.execute(_settings(study)).scalar_one())
    before = _read_given(json.dumps(settings))
    if before is not None and before[:2] == given[:2]:
        return before
    changed = json.dumps(settings | {KEY: list(given)})
    connection.execute(sa.update(studies).where(studies.c.id == study.id).values(settings=changed))
    return given


def _settings(study: EventLog) -> "sa.Select[Any]":
    return sa.select(studies.c.settings).where(studies.c.id == study.id)


def _read_given(settings: str | None) -> Given | None:
    found = None if settings is None else json.loads(settings).get(KEY)
    if found is None:
        return None
    kind, arm, answers, (taken_back, arms, items, *rest) = found
    spans = tuple((first, last) for first, last in items)
    return Given(kind, arm, answers, Basis(taken_back, tuple(arms), spans, *rest))


MOST_ARMS = 200  # that are listed; the API has tables of all
MAPPED = 30  # arms of the map of pairs
MOST_NAMED = 5  # certain ranks, one by one
SURE = 0.9  # a chance that makes people ask why there is no verdict
POINTS_SHOWN = 200  # of the history of a pair
MOST_OPEN_PAIRS = 10_000  # of a verdict
Json = dict[str, Any]


class Glance(NamedTuple):
    """What a study's page shows, and what its verdict rests on at the same moment."""

    shown: Json
    basis: Basis
    void: bool  # whether nothing is promised about errors


def glance(study: Study, estimated: Forecast | None = None) -> Json:
    """Return what a study's page shows at a glance, as JSON, at one moment.

    Args:
        study: The study.
        estimated: Chances and answers to go, if they are known for this moment; else they are computed, unless there
            are too many arms.

    Returns:
        A dict with these keys:

        - `seq`, `answers`, `open`, `retired`: the moment, answers so far, open questions, whether it asks no more.
        - `verdict`: kind, winner, leader, the number of items that it is about (None if on items like these),
          `headline` in a few words, with the share of comparisons that the leader wins; `facts`, how many answers of
          how many people about how many prompts that rests on; `words` as text.
        - `next`: what to do, as `words`; `answers` that are likely needed and `until` when, if that is known; when the
          `last` answer came, and after how many seconds without one nobody answers any more, `quiet`, if answers are
          needed. Both change with time: see `as_of`.
        - `arms`: the rows of the leaderboard, at most 200 of `arms_total`; `ranked` says by what they are ranked.
          `certain` says whether a rank is certain, and `ranks` which ones are, as text.
        - `map`: the names of up to 30 active arms, the best first, and `cells` (i, j, wins of i, wins of j, ties,
          certain) of those of their pairs that have met; certain is 1 if i certainly beats j, −1 if j beats i, else 0.
    """
    return look_at(study, estimated).shown


def look_at(study: Study, estimated: Forecast | None = None) -> Glance:
    """As `glance`, with what the verdict rests on."""
    look, tally, seq, answers, pending, retired, pace, basis, waiting = study._log.read(
        lambda connection, history: (
            study._log.look_in(connection, history),
            history.tally,
            history.seq,
            history.total,
            len(history.open),
            history.retired,
            measure_pace(history, base.clock()),
            basis_of(history),
            _list_waiting(history),
        )
    )
    goal = study.goal
    verdict = look.verdict()
    if estimated is None and 1 < tally.active.sum() <= MOST_SHOWN and count_met(tally).any():
        estimated = look.forecast(pace.answers_an_hour)
    shown = verdict.as_dict()
    table = leaderboard(tally, goal.confidence, verdict.named, verdict.winner)
    sure = certainly_beats(tally, goal.confidence)
    places = {name: arm for arm, name in enumerate(tally.names)}
    in_order = [(row.rank, places[row.arm]) for row in table.rows if row.active]
    certain = certain_ranks(tally, in_order, sure, verdict.winner)
    known = {tally.names[arm] for (_, arm), is_certain in zip(in_order, certain) if is_certain}
    shown_now = {
        "seq": seq,
        "answers": answers,
        "open": pending,
        "retired": retired,
        "verdict": {
            "kind": verdict.kind,
            "winner": verdict.winner,
            "leader": verdict.leader,
            "items": verdict.items,
            "about": describe_about(verdict.about, verdict.items),
            "headline": headline(shown, retired),
            "facts": describe_answers(shown),
            "words": _sure(verdict, estimated),
        },
        "next": _next(certain, verdict, goal, retired, answers, estimated, pace, waiting),
        "arms": _arms(table.rows, known),
        "arms_total": len(tally.names),
        "ranked": table.ranked,
        "ranks": _ranks([rank for rank, _ in in_order], certain),
        "map": _map(tally, [arm for _, arm in in_order[:MAPPED]], sure),
    }
    return Glance(shown_now, basis, verdict.void is not None)


def describe_verdict(verdict: Verdict) -> Json:
    """Return a verdict as JSON, with at most 10,000 open pairs: before the first duel all pairs are open."""
    return dataclasses.replace(verdict, open_pairs=verdict.open_pairs[:MOST_OPEN_PAIRS]).as_dict()


def as_of(shown: Json, now: float) -> Json:
    """Return what `glance` has returned before, without a forecast that does not hold any more at this time."""
    following = shown["next"]
    last, quiet, until = (following[name] for name in ("last", "quiet", "until"))
    if until is None:
        return shown
    silent = quiet is not None and last is not None and now - _seconds(last) >= quiet
    return shown | {"next": following | {"until": None}} if silent or _seconds(until) <= now else shown


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _ranks(ranks: list[int | None], certain: list[bool]) -> str:
    """Which ranks are certain, as a sentence."""
    known = [rank for rank, is_certain in zip(ranks, certain) if is_certain]
    if len(ranks) < 2 or ranks[0] is None:
        return ""
    if len(known) == len(ranks):
        return "All ranks are certain."
    if not known:
        return "No rank is certain yet."
    if known == [1]:
        return "Only the first rank is certain."
    if len(known) == 1:
        return f"Only rank {known[0]:,} is certain."
    if len(known) <= MOST_NAMED:
        return f"Only the ranks {join_names([f'{rank:,}' for rank in known], MOST_NAMED)} are certain."
    return f"Only {len(known):,} of {len(ranks):,} ranks are certain."


def _arms(rows: Sequence[LeaderboardRow], certain: set[str]) -> list[Json]:
    return [row._asdict() | {"certain": row.arm in certain} for row in rows[:MOST_ARMS]]


def _map(tally: Tally, best: list[int], sure: Bools) -> Json:
    cells = []
    for place, i in enumerate(best):
        for other, j in enumerate(best[place + 1 :], place + 1):
            won, lost, tied = int(tally.wins[i, j]), int(tally.wins[j, i]), int(tally.ties[i, j])
            if won + lost + tied:
                cells.append([place, other, won, lost, tied, int(sure[i, j]) - int(sure[j, i])])
    return {"arms": [tally.names[arm] for arm in best], "cells": cells}


def _list_waiting(history: LiveState) -> list[str]:
    """The active arms that nobody is asked about, since they lack outputs for some items."""
    items = history.items
    if items is None or not items.size:
        return []
    return [history.names[arm] for arm, on in enumerate(history.active) if on and arm not in items.ready]


def _next(
    certain: list[bool],
    verdict: Verdict,
    goal: Goal,
    retired: bool,
    answers: int,
    estimated: Forecast | None,
    pace: Pace,
    waiting: list[str],
) -> Json:
    """What to do now, in sentences for people who do not know statistics."""
    if retired:
        return _make_next("The study is retired: it asks nothing more. Open questions can still be answered.")
    if verdict.kind == "winner" and goal.after == "rank":
        known = f"{sum(certain)} of {len(certain)} ranks {'is' if sum(certain) == 1 else 'are'} certain."
        return _make_next(f"You can stop: {known}" if all(certain) else f"Go on until all ranks are certain: {known}")
    if verdict.kind == "winner":
        return _make_next("You can stop: the winner is known.")
    if verdict.kind == "no condorcet winner":
        return _make_next(
            "You can stop: each arm is beaten by another one, so more answers will not find one that beats all. Choose "
            "by the ratings, or leave arms out."
        )
    if verdict.kind == "practically tied":
        return _make_next("You can stop: closer than your margin is as good as equal.")
    if waiting:
        others = len(certain) - len(waiting)
        meanwhile = " Until then voters compare the other arms, and there is no winner." if others > 1 else ""
        its, one = ("its", "it") if len(waiting) == 1 else ("their", "them")
        return _make_next(
            f"{join_names(waiting, MOST_NAMED)} {'waits' if len(waiting) == 1 else 'wait'} for {its} outputs: voters "
            f"are asked about {one} when all items have {its} output. Upload {its} outputs under Items, or retire "
            f"{one} under Settings.{meanwhile}"
        )
    if verdict.exhausted is not None:
        return _make_next(f"No question that is left can bring a verdict. {verdict.exhausted}")
    if not answers:
        return _make_next("Nobody has voted yet. Create a voting link under Share, and send it to people.")
    if estimated is None:
        return _make_next(
            f"Go on: the verdict needs more answers. How many is not estimated for more than {MOST_SHOWN} arms."
        )
    if not estimated.answers_median:
        early = "Go on. " if estimated.reason == TOO_EARLY else ""
        why = estimated.reason or "Go on: the verdict needs more answers."
        return _make_next(f"{early}{why} {_about_margin(estimated)}".strip())
    most = estimated.answers_90
    median = estimated.answers_median
    needed = f"{_format_rounded(median)} more {'answer is' if median == 1 else 'answers are'}"
    words = f"Go on: about {needed} likely needed"
    words += f", and fewer than {_format_rounded(most)} in nine of ten studies like this." if most else "."
    hours = estimated.hours_median
    until = None if hours is None or hours > 24 * 3650 else iso_time(base.clock() + 3600 * hours)
    words = f"{words} {_about_margin(estimated)}".strip()
    last = None if pace.last is None else iso_time(pace.last)
    return {"words": words, "answers": estimated.answers_median, "until": until, "last": last, "quiet": pace.quiet}


def _about_margin(estimated: Forecast) -> str:
    """The hint about a margin, for people who look at a page."""
    if estimated.margin is None:
        return estimated.hint
    sooner = f"A margin of {100 * estimated.margin:g} % would end it sooner: set it under Settings."
    return f"The first arms are close to equal. {sooner}"


def pair_history(study: Study, first: str, second: str) -> Json:
    """Return the history of a pair of arms.

    Args:
        study: The study.
        first: An arm.
        second: Another one.

    Returns:
        first, second, wins, losses and ties of the first arm; `lower` and `upper`, the interval of its probability to
        win, with the study's `confidence`; and `history`: after how many answers of the pair what share of them the
        first arm had won, a tie being half a win; about 200 points.

    Raises:
        UnknownName: If the study has no such arm.
        InvalidInput: If they are the same.
    """
    tally, left, right, answer, answered, votes = study._log.read(
        lambda _, history: (
            history.tally,
            np.array(history.left),
            np.array(history.right),
            np.array(history.answer),
            np.array(history.answered),
            history.votes_of(np.array(history.answered, np.int64)),
        )
    )
    names = tally.names
    for name in (first, second):
        if name not in names:
            raise UnknownName("arm", name, names)
    if first == second:
        raise InvalidInput(f"the pair is {first!r} and itself: expected two arms")
    i, j = names.index(first), names.index(second)
    one, other = left[answered], right[answered]
    of_both = ((one == i) & (other == j)) | ((one == j) & (other == i))
    those, votes = answered[of_both], votes[of_both]
    won = np.where(left[those] == i, answer[those] == LEFT, answer[those] == RIGHT)
    tied = answer[those] > RIGHT
    n = np.cumsum(votes)
    share = (np.cumsum(won * votes) + np.cumsum(tied * votes) / 2) / n
    interval = pair_rows(tally, np.array([i]), np.array([j]), study.goal.confidence)[0]
    few = np.linspace(0, len(n) - 1, min(POINTS_SHOWN, len(n))).round().astype(np.int64)
    return {
        "first": first,
        "second": second,
        "wins": int(votes[won].sum()),
        "losses": int(votes[~won & ~tied].sum()),
        "ties": int(votes[tied].sum()),
        "lower": interval.lower,
        "upper": interval.upper,
        "confidence": study.goal.confidence,
        "history": [{"answers": int(n[k]), "share": round(float(share[k]), 4)} for k in np.unique(few)],
    }


def _sure(verdict: Verdict, estimated: Forecast | None) -> str:
    """How sure that is, in a sentence or two. Before the verdict this is the model's, not a promise."""
    if verdict.kind != "not yet" or verdict.leader is None or verdict.arms < 2:
        return verdict.text(forecast=False, facts=False)
    void = "" if verdict.void is None else f" Nothing is promised about errors: {verdict.void.rstrip('.')}."
    return f"{_leads(verdict, verdict.leader, estimated)}{void}"


def _leads(verdict: Verdict, leader: str, estimated: Forecast | None) -> str:
    if verdict.level_with:
        ranks = f"{join_names([leader, *verdict.level_with])} share the first rank so far, but that may still change."
    else:
        ranks = f"{leader} ranks first so far, but that may still change."
    chance = None if estimated is None else {one.arm: one.chance for one in estimated.chances}.get(leader)
    if chance is not None and not verdict.level_with:
        ranks = f"{leader} is the best with a chance of {_percent(chance)}, as far as these answers can tell."
        if chance > SURE and verdict.void is None:
            ranks += " A verdict takes more than such an estimate: it holds however often you look."
    return ranks


def _percent(chance: float) -> str:
    return "more than 99 %" if chance > 0.99 else "less than 1 %" if chance < 0.01 else f"{percent(chance)} %"


def _make_next(words: str) -> Json:
    return {"words": words, "answers": None, "until": None, "last": None, "quiet": None}


def _format_rounded(answers: int) -> str:
    return f"{float(f'{answers:.2g}'):,.0f}"
