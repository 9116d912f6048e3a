"""What the page of results shows on request: pairs with intervals, open questions, and answers over time."""

from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from ..study import base
from ..study.answers.table import AnswerLog, AnswerTable, Counted, copy_counted
from ..study.duels import iso_time
from ..study.state.live import LiveState
from ..study.stats.leaderboard import pair_rows
from ..study.stats.tally import Tally, count_met
from ..study.study import Study

MOST_PAIRS = 300  # the API's preferences have all of them
MOST_OPEN = 100
POINTS = 120  # of the answers over time
Json = dict[str, Any]


class _Moment(NamedTuple):
    tally: Tally
    counted: Counted
    open: list[Json]
    open_total: int


def list_details(study: Study, known: AnswerLog | None = None) -> Json:
    """Return what the page of results shows on request, as JSON, at one moment.

    Args:
        study: The study.
        known: What was read of the study's log before, so that only the rest is read.

    Returns:
        A dict with these keys:

        - `seq`, `confidence`: the last event that is included, and the confidence of the intervals.
        - `pairs`: one row per pair that has met, as in `Study.preferences`, most duels first, at most 300 of
          `pairs_met`; `pairs_total` counts those that have not met, too.
        - `open`: the open questions, newest first, at most 100 of `open_total`: id, left, right, item (a number or
          None), the time when it was asked, and whether it is `waiting`; else its lease has ended without an answer.
        - `over_time`: at most 120 points (time, answers): how many answers there were at which time, from 0 on. Past
          votes have the times of their file, if it names any.
    """
    moment = study._log.read(_copy_moment)
    answers = (known or AnswerLog()).follow(study, moment.counted)
    duels = np.triu(count_met(moment.tally), 1)
    first, second = np.nonzero(duels)
    most = np.argsort(-duels[first, second], kind="stable")[:MOST_PAIRS]
    confidence, arms = study.goal.confidence, len(moment.tally.names)
    rows = pair_rows(moment.tally, first[most], second[most], confidence)
    return {
        "seq": moment.counted.seq,
        "confidence": confidence,
        "pairs": [row._asdict() for row in rows],
        "pairs_met": len(first),
        "pairs_total": arms * (arms - 1) // 2,
        "open": moment.open,
        "open_total": moment.open_total,
        "over_time": _count_over_time(answers, study._log.row.created),
    }


def _copy_moment(connection: sa.Connection, history: LiveState) -> _Moment:
    waiting = set(history.list_leased(base.clock()))
    questions = [
        {
            "id": duel,
            "left": history.names[history.left[duel]],
            "right": history.names[history.right[duel]],
            "item": None if history.items is None else history.items.of[duel] or None,
            "time": iso_time(history.asked[duel]),
            "waiting": duel in waiting,
        }
        for duel in islice(reversed(history.open), MOST_OPEN)
    ]
    return _Moment(history.tally, copy_counted(history), questions, len(history.open))


def _count_over_time(answers: AnswerTable, created: float) -> list[tuple[str, int]]:
    count = len(answers.duel)
    if not count:
        return []
    order = np.argsort(answers.time, kind="stable")
    after = np.unique(np.linspace(1, count, min(POINTS - 1, count)).round().astype(np.int64))
    totals, times = np.cumsum(answers.votes[order])[after - 1], answers.time[order][after - 1]
    begin = min(created, float(times[0]))
    return [(iso_time(begin), 0), *((iso_time(time), total) for time, total in zip(times.tolist(), totals.tolist()))]
