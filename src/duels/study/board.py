"""What a study's live page shows, as plain data of one moment; `board_charts` draws it."""

import copy
import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from ..errors import DuelsError, PolicyError, StorageError
from ..policies import Policy
from ..storage.batches import stored_voters
from ..storage.storage import NotReady, StudyRow
from ..storage.tables import events, studies
from . import leaderboard as tables
from .certainty import share_of
from .duels import iso_time
from .history import History
from .intervals import interval
from .record import Answers
from .study import Study
from .tally import LeaderboardRow, Tally, estimates, leaders, met, ranked_words, ranking
from .verdict import Verdict

PROGRESS_POINTS, REGRET_POINTS, VOTERS, PAIRS = 120, 60, 50, 10_000  # the most that are shown
MOST_CHAMPIONS = 1_000  # active arms: with more, the policy's bounds are not copied and shown
BEST = 30  # arms whose pairs are always shown
Json = dict[str, Any]


class Moment(NamedTuple):
    """A copy of parts of a study's history, so that all numbers belong to one event and nobody waits for the rest."""

    row: StudyRow
    policy: Policy | None  # None if it is unavailable or fails
    trouble: str  # why
    seq: int
    tally: Tally
    retired: bool
    void: str | None
    open: int
    answers: Answers
    votes: np.ndarray  # (answers,) int64: how many votes each answer stands for
    left: np.ndarray  # (duels,) int64
    right: np.ndarray  # (duels,) int64
    asked: np.ndarray  # (duels,) float64: when; of imported votes when they were imported
    state: Any  # the policy's, None if it has no bounds
    t: int  # the time of its next choice


def board(study: Study, confidence: float | None = None) -> Json:
    """Return everything that a study's live page shows, as JSON, at one moment: after the event number `seq`.

    Only answers that count are counted: no skips, and nothing that was taken back.

    Args:
        study: The study.
        confidence: Of the verdict and the intervals; by default the study's own.

    Returns:
        A dict with these keys:

        - `study`: name, policy, arms (name, active), answers, open, retired, created, seq, confidence.
        - `verdict`, `words`: the verdict as data and as text.
        - `leaderboard`: one row per arm, best first; `order` has only the names, and `ranked` says by what.
        - `pairs`: one row per pair, as in `Study.preferences`, if there are at most 10,000; else those of the 30 best
          arms and the 10,000 that met most often. `pairs_total` counts all pairs, `pairs_met` those that have met.
        - `self_duels`: how often each arm met itself.
        - `champions`: one row per active arm, see `champions_of`; None if there are none to show, as
          `champions_note` explains.
        - `progress`: how many answers there were at which time; `seconds` since the study was created.
        - `regret`: see `regret_so_far`; `leader` is the arm that it is relative to.
        - `voters`: the 50 with most answers, and when they last answered; `voters_total` counts all of them, and
          `unnamed` the answers without a voter.
    """
    moment = study.read(lambda connection, history: _moment(study, history))
    tally = moment.tally
    verdict = study.goal.verdict(tally, confidence, void=moment.void)
    confidence = verdict.confidence
    leaderboard = tables.leaderboard(tally, confidence)
    leader = _leader(tally, verdict)
    answered, answers = moment.answers.duels, int(moment.votes.sum())
    left, right = moment.left[answered], moment.right[answered]
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
            "answers": answers,
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
        "ranked": ranked_words(tally),
        "pairs": [pair._asdict() for pair in tables.pair_rows(tally, *_pairs_shown(tally), confidence)],
        "pairs_total": len(tally.names) * (len(tally.names) - 1) // 2,
        "pairs_met": int(np.count_nonzero(met(tally))) // 2,
        "self_duels": _self_duels(tally, left, right),
        "champions": champions,
        "champions_note": note,
        "progress": progress,
        "regret": [] if leader is None else regret_so_far(tally, leader, left, right, confidence, moment.votes),
        "voters": voters,
        "voters_total": voters_total,
        "unnamed": answers - named,
    }


def verdict_data(verdict: Verdict) -> Json:
    """Return a verdict as JSON, with at most 10,000 open pairs: before the first duel all pairs are open."""
    return dataclasses.replace(verdict, open_pairs=verdict.open_pairs[:PAIRS]).as_dict()


def _pairs_shown(tally: Tally) -> tuple[np.ndarray, np.ndarray]:
    """The indices of the pairs that are shown, in the order of the arms."""
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


def champions_of(moment: Moment, leaderboard: Sequence[LeaderboardRow]) -> tuple[list[Json] | None, str]:
    """Return the potential champions by the policy's own bounds, and a sentence about them.

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
    note = f"{sum(champion)} of {len(rows)} active arms may still be the best by the bounds of {policy} at t = {t:,}."
    return rows, note


def regret_so_far(
    tally: Tally,
    leader: int,
    left: np.ndarray,
    right: np.ndarray,
    confidence: float = 0.95,
    votes: np.ndarray | None = None,
) -> list[Json]:
    """Return what the answers have cost so far, relative to the arm that leads now, at up to 60 points.

    An answer to a duel of arms i and j costs (Δ_i + Δ_j)/2, and Δ_i if arm i met itself, where Δ_i = max(0, p − ½) and
    p is the probability that the leader beats arm i, a tie counted as a half. `estimate` uses the present estimate of
    p, which is ½ for an arm that the leader never met, and `upper` the upper limit of the verdict's present interval.

    With probability `confidence`, whenever you look, the cost is at most `upper` at every point: all intervals hold
    together. It is the cumulative regret if the leader is the Condorcet winner. Answers taken back void that promise.

    Args:
        tally: The counts.
        leader: The arm that leads.
        left: (n,) int64: The arms on the left of the answered duels, in the order of the answers.
        right: (n,) int64: The arms on the right.
        confidence: Of the intervals.
        votes: (n,) int64: How many votes each answer stands for; None if that is 1.
    """
    halves = tally.wins + tally.ties / 2
    delta = share_of(1 - confidence, tally, leader, np.arange(len(halves)))
    _, upper = interval(halves[leader], halves[:, leader], delta)
    upper[leader] = 0.5
    after, curves = _spread(len(left), REGRET_POINTS), []
    votes = np.ones(len(left), np.int64) if votes is None else votes
    answers = np.cumsum(np.append(0, votes))[after]
    for p in (estimates(tally)[leader], upper):
        gaps = np.maximum(p - 0.5, 0.0)
        curves.append(np.cumsum(np.append(0.0, votes * (gaps[left] + gaps[right]) / 2))[after].tolist())
    return [{"answers": n, "estimate": low, "upper": high} for n, low, high in zip(answers.tolist(), *curves)]


def _moment(study: Study, history: History) -> Moment:
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
        answers=history.answers,
        votes=history.votes_of(np.array(history.answered, np.int64)),
        left=np.array(history.left, np.int64),
        right=np.array(history.right, np.int64),
        asked=np.array(history.asked, np.float64),
        state=None if player is None else copy.deepcopy(player.state),
        t=1 if player is None else player.t,
    )


def _leader(tally: Tally, verdict: Verdict) -> int | None:
    """The leaderboard's first arm, or the only arm left; None before two active arms have met."""
    return next(iter(leaders(tally)), None if verdict.winner is None else tally.names.index(verdict.winner))


def _spread(count: int, points: int) -> np.ndarray:
    """At most this many evenly spaced whole numbers from 0 to `count`; none if `count` is 0."""
    return np.linspace(0, count, min(points, count + 1)).round().astype(np.int64) if count else np.zeros(0, np.int64)


def _self_duels(tally: Tally, left: np.ndarray, right: np.ndarray) -> list[Json]:
    counts = np.bincount(left[left == right], minlength=len(tally.names))
    return [{"arm": tally.names[arm], "duels": int(counts[arm])} for arm in np.flatnonzero(counts)]


def _progress(connection: sa.Connection, moment: Moment) -> list[Json]:
    """The number of answers over time; imported votes count from the time of their import."""
    begin, after = moment.row.created, _spread(len(moment.answers.duels), PROGRESS_POINTS).tolist()
    if not after:
        return []
    last = [int(moment.answers.duels[n - 1]) for n in after[1:]]
    answers = np.cumsum(np.append(0, moment.votes))[after].tolist()
    chosen = sa.select(events.c.duel, events.c.attempt, events.c.time, events.c.kind).where(
        events.c.study_id == moment.row.id, events.c.duel.in_(last), events.c.kind.in_(("ask", "tell", "vote"))
    )
    times, asked = {}, set()
    for duel, attempt, time, kind in connection.execute(chosen):
        if kind == "ask":
            asked.add(duel)
        elif moment.answers.attempts[duel] == attempt:
            times[duel] = time
    times = {duel: float(moment.asked[duel]) for duel in last if duel not in asked} | times  # imported votes
    here = sa.select(studies.c.id).where(studies.c.id == moment.row.id)
    if len(times) < len(set(last)) or connection.execute(here).first() is None:
        raise StorageError(f"study {moment.row.name!r} was deleted")
    return [
        {"answers": n, "time": iso_time(time), "seconds": round(time - begin, 3)}
        for n, time in zip(answers, [begin, *(times[duel] for duel in last)])
    ]


def _voters(connection: sa.Connection, moment: Moment) -> tuple[list[Json], int, int]:
    """The voters with most answers, how many voters there are, and how many answers name a voter."""
    answers: dict[str, tuple[int, float]] = {}
    for voter, count, last in itertools.chain(_named(connection, moment), _imported(connection, moment)):
        before = answers.get(voter, (0, last))
        answers[voter] = (before[0] + count, max(before[1], last))
    most = sorted(answers, key=lambda voter: (-answers[voter][0], voter))[:VOTERS]
    shown: list[Json] = [
        {"voter": voter, "answers": answers[voter][0], "last": iso_time(answers[voter][1])} for voter in most
    ]
    return shown, len(answers), sum(count for count, _ in answers.values())


def _named(connection: sa.Connection, moment: Moment) -> Iterator[tuple[str, int, float]]:
    """Voters who answered here: how many of their answers count, and when they last answered."""
    here, voter = events.c.study_id == moment.row.id, events.c.voter
    answers = here & (events.c.seq <= moment.seq) & events.c.kind.in_(("tell", "vote")) & (events.c.answer != "skip")
    answers &= voter.is_not(None)
    undone = sa.select(events.c.duel).where(here, events.c.kind == "undo")  # all other answers count
    reopened = connection.execute(
        sa.select(voter, events.c.duel, events.c.attempt).where(answers, events.c.duel.in_(undone))
    ).all()
    names, duels, attempts = zip(*reopened) if reopened else ((), (), ())
    counts = moment.answers.include(np.array(duels, np.int64), np.array(attempts, np.int64))
    taken_back = Counter(itertools.compress(names, ~counts))
    totals = sa.select(voter, sa.func.count(), sa.func.max(events.c.time)).where(answers).group_by(voter)
    for name, count, last in connection.execute(totals):
        if count > taken_back[name]:
            yield name, count - taken_back[name], last


def _imported(connection: sa.Connection, moment: Moment) -> Iterator[tuple[str, int, float]]:
    """Voters of imported votes: how many of their votes count, and when they were imported."""
    of_duel = np.zeros(len(moment.left), np.int64)
    of_duel[moment.answers.duels] = moment.votes
    for event, voters in stored_voters(connection, moment.row.id, moment.seq):
        duels = np.arange(event.duel, event.duel + len(voters.given))
        theirs = moment.answers.include(duels, 0) & (voters.given >= 0)
        counts = np.zeros(len(voters.names), np.int64)
        np.add.at(counts, voters.given[theirs], of_duel[duels[theirs]])
        for number, count in enumerate(counts.tolist()):
            if count:
                yield voters.names[number], count, event.time
