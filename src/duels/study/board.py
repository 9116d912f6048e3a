"""What a study's live page shows, as plain data of one moment; `board_charts` draws it."""

import copy
import dataclasses
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from ..errors import DuelsError, PolicyError
from ..policies import Policy
from ..storage.storage import NotReady, StudyRow
from . import leaderboard as tables
from .answers import AnswerLog, AnswerTable, Counted, counted
from .certainty import checked_confidence, share_of
from .duels import iso_time
from .history import History
from .intervals import interval
from .look import Look
from .study import Study
from .tally import LeaderboardRow, Tally, estimates, met, rank_arms
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
    look: Look
    open: int
    counted: Counted
    state: Any  # the policy's, None if it has no bounds
    t: int  # the time of its next choice


def board(study: Study, confidence: float | None = None, log: AnswerLog | None = None) -> Json:
    """Return everything that a study's live page shows, as JSON, at one moment: after the event number `seq`.

    Only answers that count are counted: no skips, and nothing that was taken back.

    Args:
        study: The study.
        confidence: Of the intervals; by default the study's own, which is that of the verdict.
        log: What was read of the study's log before, so that only the rest is read.

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
        - `progress`: how many answers there were at which time; `seconds` since the first of these times.
        - `regret`: see `regret_so_far`; `leader` is the arm that it is relative to.
        - `voters`: the 50 with most answers, and when they last answered; `voters_total` counts all of them, and
          `unnamed` the answers without a voter.
    """
    moment = study.read(partial(_moment, study))
    given = (log or AnswerLog()).follow(study, moment.counted)
    tally = moment.tally
    verdict = moment.look.verdict()
    confidence = verdict.confidence if confidence is None else checked_confidence(confidence)
    table = tables.leaderboard(tally, confidence, verdict.named, verdict.winner)
    leaderboard = table.rows
    leader = _leader(tally, leaderboard, verdict)
    answers = int(given.votes.sum())
    voters, voters_total, named = _voters(given)
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
        "ranked": table.ranked,
        "pairs": [pair._asdict() for pair in tables.pair_rows(tally, *_pairs_shown(tally), confidence)],
        "pairs_total": len(tally.names) * (len(tally.names) - 1) // 2,
        "pairs_met": int(np.count_nonzero(met(tally))) // 2,
        "self_duels": _self_duels(tally, given.left, given.right),
        "champions": champions,
        "champions_note": note,
        "progress": _progress(given, row.created),
        "regret": []
        if leader is None
        else regret_so_far(tally, leader, given.left, given.right, confidence, given.votes),
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
    best = sorted(arm for _, arm in rank_arms(tally).ranks[:BEST])
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
        row = {"arm": one.arm, "champion": champion[i], "upper": least, "against": names[j], "duels": one.answers}
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


def _moment(study: Study, connection: sa.Connection, history: History) -> Moment:
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
        look=study.look_in(connection, history),
        open=len(history.open),
        counted=counted(history),
        state=None if player is None else copy.deepcopy(player.state),
        t=1 if player is None else player.t,
    )


def _leader(tally: Tally, leaderboard: Sequence[LeaderboardRow], verdict: Verdict) -> int | None:
    """The leaderboard's first arm, or the only arm left; None before two active arms have met."""
    first = leaderboard[0].arm if leaderboard[0].rank == 1 else verdict.winner
    return None if first is None else tally.names.index(first)


def _spread(count: int, points: int) -> np.ndarray:
    """At most this many evenly spaced whole numbers from 0 to `count`; none if `count` is 0."""
    return np.linspace(0, count, min(points, count + 1)).round().astype(np.int64) if count else np.zeros(0, np.int64)


def _self_duels(tally: Tally, left: np.ndarray, right: np.ndarray) -> list[Json]:
    counts = np.bincount(left[left == right], minlength=len(tally.names))
    return [{"arm": tally.names[arm], "duels": int(counts[arm])} for arm in np.flatnonzero(counts)]


def _regret(tally: Tally, leader: int, answers: AnswerTable, confidence: float) -> list[Json]:
    return regret_so_far(tally, leader, answers.left, answers.right, confidence, answers.votes)


def _progress(answers: AnswerTable, created: float) -> list[Json]:
    """The number of answers over time; past votes have the times of their files, if they name any."""
    after = _spread(len(answers.duel), PROGRESS_POINTS)
    if not len(after):
        return []
    order = np.argsort(answers.time, kind="stable")
    total, time = np.cumsum(answers.votes[order])[after[1:] - 1], answers.time[order][after[1:] - 1]
    begin = min(created, float(answers.time.min()))
    points = [(0, begin), *zip(total.tolist(), time.tolist())]
    return [{"answers": n, "time": iso_time(time), "seconds": round(time - begin, 3)} for n, time in points]


def _voters(answers: AnswerTable) -> tuple[list[Json], int, int]:
    """The voters with most answers, how many voters there are, and how many answers name a voter."""
    named = answers.voter >= 0
    voter, last = answers.voter[named], np.zeros(len(answers.voters))
    votes = np.zeros(len(answers.voters), np.int64)
    np.add.at(votes, voter, answers.votes[named])
    np.maximum.at(last, voter, answers.time[named])
    count = dict(zip(answers.voters, votes.tolist()))
    given = [number for number, name in enumerate(answers.voters) if count[name]]
    most = sorted(given, key=lambda number: (-votes[number], answers.voters[number]))[:VOTERS]
    shown: list[Json] = [
        {"voter": answers.voters[number], "answers": int(votes[number]), "last": iso_time(last[number])}
        for number in most
    ]
    return shown, len(given), int(votes.sum())
