"""All that a study's live page shows, as plain data of one moment; `board_charts` draws it."""

import copy
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from ..errors import DuelsError, PolicyError, StorageError
from ..policies import Policy
from ..storage.batches import stored_voters
from ..storage.storage import NotReady, StudyRow
from ..storage.tables import events, studies
from . import verdict as verdicts
from .duels import iso_time
from .history import History
from .study import Study
from .tally import LeaderboardRow, Tally, estimates, leaders, met, ranking
from .verdict import Verdict

PROGRESS_POINTS, REGRET_POINTS, VOTERS, PAIRS = 120, 60, 50, 10_000  # the most that are given
MOST_CHAMPIONS = 1_000  # active arms of which the policy's bounds are copied and shown
BEST = 30  # arms whose pairs are always given

# An undo has the duel and the attempt of the answer that it takes back. Forgotten voters have no name any more.
ANSWERS_BY_VOTER = """
SELECT voter, SUM(one), MAX(time) FROM (
  SELECT voter, 1 AS one, time FROM events
  WHERE study_id = :study AND seq <= :seq AND kind IN ('tell', 'vote') AND answer <> 'skip' AND voter IS NOT NULL
  UNION ALL
  SELECT told.voter, -1, NULL FROM events AS undone JOIN events AS told
  ON told.study_id = undone.study_id AND told.duel = undone.duel AND told.attempt = undone.attempt
  WHERE undone.study_id = :study AND undone.seq <= :seq AND undone.kind = 'undo'
  AND told.kind IN ('tell', 'vote') AND told.answer <> 'skip' AND told.voter IS NOT NULL
) AS answers GROUP BY voter HAVING SUM(one) > 0
"""


class Moment(NamedTuple):
    """What is copied of a study's history, so that all numbers are of one event and nobody waits for the rest."""

    row: StudyRow
    policy: Policy | None  # None if it is not to be had, or fails
    trouble: str  # why
    seq: int
    tally: Tally
    retired: bool
    void: str | None
    open: int
    told: np.ndarray  # (answers,) int64: the answered duels, in the order of the answers
    left: np.ndarray  # (duels,) int64
    right: np.ndarray  # (duels,) int64
    attempt: np.ndarray  # (duels,) int64: how often an answer was undone
    asked: np.ndarray  # (duels,) float64: when; of imported votes when they were imported
    state: Any  # the policy's, None if it has no bounds
    t: int  # the time of its next choice


def board(study: Study, confidence: float = 0.95) -> dict[str, Any]:
    """All that a study's live page shows, as JSON has it, at one moment: after the event with the number `seq`.

    study: name, policy, arms (name, active), answers, open, retired, created, seq, confidence; answers are those that
        count: no skips, nothing taken back.
    verdict, words: the verdict as data and in words.
    leaderboard: one row per arm, best first; `order` has the names alone.
    pairs: one row per pair, as `Study.preferences` gives them, if there are at most 10,000; else those of the 30 best
        arms and the 10,000 that met most often. `pairs_total` counts all of them, and `pairs_met` those that have met.
    self_duels: how often an arm met itself.
    champions: one row per active arm, see `champions_of`; None if the policy has no bounds. `champions_note` says so.
    progress: how many answers there were (of those that count now) at which time; `seconds` since the study began.
    regret: see `regret_so_far`; `leader` is the arm that it is relative to.
    voters: the 50 with most answers, and when they last answered; `voters_total` counts all of them, and `unnamed` the
        answers without a voter.
    """
    moment = _moment(study)
    tally = moment.tally
    verdict = verdicts.verdict(tally, confidence=confidence, void=moment.void)
    confidence = verdict.confidence
    leaderboard = verdicts.leaderboard(tally, confidence)
    leader = _leader(tally, verdict)
    told = moment.told
    left, right = moment.left[told], moment.right[told]
    with study.storage.reading() as connection:
        progress = _progress(connection, moment)
        voters, voters_total, named = _voters(connection, moment)
    champions, note = champions_of(moment, leaderboard)
    row = moment.row
    return {
        "study": {
            "name": row.name,
            "policy": row.policy,
            "arms": [{"name": name, "active": bool(active)} for name, active in zip(tally.names, tally.active)],
            "answers": len(told),
            "open": moment.open,
            "retired": moment.retired,
            "created": iso_time(row.created),
            "seq": moment.seq,
            "confidence": confidence,
        },
        "verdict": verdict_data(verdict),
        "words": str(verdict),
        "leader": None if leader is None else tally.names[leader],
        "leaderboard": [one._asdict() for one in leaderboard],
        "order": [one.arm for one in leaderboard],
        "pairs": [pair._asdict() for pair in verdicts.pair_rows(tally, *_pairs_shown(tally), confidence)],
        "pairs_total": len(tally.names) * (len(tally.names) - 1) // 2,
        "pairs_met": int(np.count_nonzero(met(tally))) // 2,
        "self_duels": _self_duels(tally, left, right),
        "champions": champions,
        "champions_note": note,
        "progress": progress,
        "regret": [] if leader is None else regret_so_far(tally, leader, left, right, confidence),
        "voters": voters,
        "voters_total": voters_total,
        "unnamed": len(told) - named,
    }


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON has it, with at most 10,000 open pairs: before the first duel all pairs are open."""
    return dataclasses.replace(verdict, open_pairs=verdict.open_pairs[:PAIRS]).as_dict()


def _pairs_shown(tally: Tally) -> tuple[np.ndarray, np.ndarray]:
    """The indices of the pairs that are given, in the order of the arms."""
    arms = len(tally.names)
    if arms * (arms - 1) // 2 <= PAIRS:
        return np.triu_indices(arms, 1)
    n = met(tally)
    first, second = np.nonzero(np.triu(n, 1))
    most = np.argsort(-n[first, second], kind="stable")[:PAIRS]
    best = sorted(arm for _, arm in ranking(tally)[:BEST])
    i, j = np.triu_indices(len(best), 1)
    numbers = np.union1d(first[most] * arms + second[most], np.array(best)[i] * arms + np.array(best)[j])
    return numbers // arms, numbers % arms


def champions_of(moment: Moment, leaderboard: Sequence[LeaderboardRow]) -> tuple[list[dict[str, Any]] | None, str]:
    """The potential champions by the policy's own bounds, and what that means in words.

    Arm i is one while u_ij ≥ ½ against every active arm j: nothing shows that it loses to any of them. `upper` is its
    smallest u_ij and `against` that j; a bound may be above 1, and is 2 for a pair that never met. These bounds steer
    the policy's choices, and promise less than the verdict's intervals.
    """
    policy, t, tally = moment.policy, moment.t, moment.tally
    if policy is None:
        return None, f"There are no potential champions to show: {moment.trouble}."
    names = [tally.names[arm] for arm in np.flatnonzero(tally.active)]  # as the policy knows them
    bounds = policy.kernel("bounds")
    if bounds is None:
        return None, f"The policy {policy} keeps no bounds, so it has no potential champions to show."
    champions, called = policy.kernel("champions"), "bounds"
    try:
        upper = np.array(bounds(moment.state, policy.params, t)[1], np.float64).reshape(len(names), len(names))
        np.fill_diagonal(upper, np.inf)
        called = "champions"
        found = ~(upper < 0.5).any(axis=1) if champions is None else champions(moment.state, policy.params, t)
        champion: list[bool] = np.asarray(found, bool).reshape(len(names)).tolist()
    except Exception as error:
        raise PolicyError(f"{called} of policy {policy} failed: {type(error).__name__}: {error}") from error
    rows, place = [], {name: i for i, name in enumerate(names)}
    for one in leaderboard[: len(names)]:  # retired arms come last
        i = place[one.arm]
        j = int(upper[i].argmin())
        least = float(upper[i, j]) if math.isfinite(upper[i, j]) else None
        row = {"arm": one.arm, "champion": champion[i], "upper": least, "against": names[j], "duels": one.duels}
        rows.append(row)
    said = f"{sum(champion)} of {len(rows)} active arms may still be the best by the bounds of {policy} at t = {t:,}."
    return rows, said


def regret_so_far(
    tally: Tally, leader: int, left: np.ndarray, right: np.ndarray, confidence: float = 0.95
) -> list[dict[str, Any]]:
    """What the answers have cost, relative to the arm that leads now, after at most 60 numbers of answers.

    An answer to a duel of arms i and j costs (Δ_i + Δ_j)/2, and Δ_i if arm i met itself, where Δ_i = max(0, p − ½) and
    p is the chance that the leader beats arm i, a tie counted as a half. `estimate` takes the present estimate for p,
    which is ½ for an arm that the leader never met, and `upper` the upper limit of the verdict's present interval.

    With probability `confidence`, whenever one looks, the cost is at most `upper` at every point: all intervals hold
    together. It is the cumulative regret if the leader is the Condorcet winner. Answers taken back void that promise.

    left, right: (n,) int64: the arms of the answered duels, in the order of the answers.
    """
    halves = tally.wins + tally.ties / 2
    delta = verdicts.share_of(1 - confidence, tally, leader, np.arange(len(halves)))
    _, upper = verdicts.interval(halves[leader], halves[:, leader], delta)
    upper[leader] = 0.5
    after = _spread(len(left), REGRET_POINTS)
    curves = []
    for p in (estimates(tally)[leader], upper):
        gaps = np.maximum(p - 0.5, 0.0)
        curves.append(np.cumsum(np.append(0.0, (gaps[left] + gaps[right]) / 2))[after].tolist())
    return [{"answers": n, "estimate": low, "upper": high} for n, low, high in zip(after.tolist(), *curves)]


def _moment(study: Study) -> Moment:
    def look(connection: sa.Connection, history: History) -> Moment:
        policy, player, trouble = None, None, ""
        try:
            if len(history.places) > MOST_CHAMPIONS:
                trouble = f"there are more than {MOST_CHAMPIONS:,} active arms"
            elif history.policy.kernel("bounds") is not None and history.is_uncompiled:
                trouble = "the policy is still being compiled; they appear after the next question"
            else:
                player = study.player(history) if history.policy.kernel("bounds") is not None else None
                policy = history.policy
        except NotReady:
            raise
        except DuelsError as error:
            trouble = str(error)
        return Moment(
            row=study.row,
            policy=policy,
            trouble=trouble,
            seq=history.seq,
            tally=history.tally,
            retired=history.retired,
            void=history.void,
            open=len(history.open),
            told=np.array(history.told, np.int64),
            left=np.array(history.left, np.int64),
            right=np.array(history.right, np.int64),
            attempt=np.array(history.attempt, np.int64),
            asked=np.array(history.asked, np.float64),
            state=None if player is None else copy.deepcopy(player.state),
            t=1 if player is None else player.t,
        )

    return study.read(look)


def _leader(tally: Tally, verdict: Verdict) -> int | None:
    """The first of the leaderboard, or the only arm left; nobody before two active arms have met."""
    return next(iter(leaders(tally)), None if verdict.winner is None else tally.names.index(verdict.winner))


def _spread(count: int, points: int) -> np.ndarray:
    """Whole numbers from 0 to `count`, evenly, at most so many; none if `count` is 0."""
    return np.linspace(0, count, min(points, count + 1)).round().astype(np.int64) if count else np.zeros(0, np.int64)


def _self_duels(tally: Tally, left: np.ndarray, right: np.ndarray) -> list[dict[str, Any]]:
    counts = np.bincount(left[left == right], minlength=len(tally.names))
    return [{"arm": tally.names[arm], "duels": int(counts[arm])} for arm in np.flatnonzero(counts)]


def _progress(connection: sa.Connection, moment: Moment) -> list[dict[str, Any]]:
    """From the beginning on; the times are those of the log, also of votes that were imported."""
    begin, after = moment.row.created, _spread(len(moment.told), PROGRESS_POINTS).tolist()
    if not after:
        return []
    last = [int(moment.told[n - 1]) for n in after[1:]]
    chosen = sa.select(events.c.duel, events.c.attempt, events.c.time, events.c.kind).where(
        events.c.study_id == moment.row.id, events.c.duel.in_(last), events.c.kind.in_(("ask", "tell", "vote"))
    )
    times, asked = {}, set()
    for duel, attempt, time, kind in connection.execute(chosen):
        if kind == "ask":
            asked.add(duel)
        elif moment.attempt[duel] == attempt:
            times[duel] = time
    times = {duel: float(moment.asked[duel]) for duel in last if duel not in asked} | times  # imported votes
    here = sa.select(studies.c.id).where(studies.c.id == moment.row.id)
    if len(times) < len(set(last)) or connection.execute(here).first() is None:
        raise StorageError(f"study {moment.row.name!r} was deleted")
    return [
        {"answers": n, "time": iso_time(time), "seconds": round(time - begin, 3)}
        for n, time in zip(after, [begin, *(times[duel] for duel in last)])
    ]


def _voters(connection: sa.Connection, moment: Moment) -> tuple[list[dict[str, Any]], int, int]:
    """Those with most answers, how many voters there are, and how many answers are theirs together."""
    given = {"study": moment.row.id, "seq": moment.seq}
    answers = {voter: (int(count), last) for voter, count, last in connection.execute(sa.text(ANSWERS_BY_VOTER), given)}
    for voter, count, last in _imported(connection, moment):
        before = answers.get(voter, (0, last))
        answers[voter] = (before[0] + count, max(before[1], last))
    most = sorted(answers, key=lambda voter: (-answers[voter][0], voter))[:VOTERS]
    shown = [{"voter": voter, "answers": answers[voter][0], "last": iso_time(answers[voter][1])} for voter in most]
    return shown, len(answers), sum(count for count, _ in answers.values())


def _imported(connection: sa.Connection, moment: Moment) -> Iterator[tuple[str, int, float]]:
    """Voters of imported votes: how many of them count, and when they were imported."""
    counts = np.zeros(len(moment.left), bool)
    counts[moment.told] = True
    counts &= moment.attempt == 0  # what was undone is nobody's, or was answered again by another
    for event, voters in stored_voters(connection, moment.row.id, moment.seq):
        theirs = voters.given[counts[event.duel : event.duel + len(voters.given)] & (voters.given >= 0)]
        for number, count in enumerate(np.bincount(theirs, minlength=len(voters.names)).tolist()):
            if count:
                yield voters.names[number], count, event.time
