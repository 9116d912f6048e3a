"""After an alarm about a judge, what it answered in one order is asked of it in the other order too.

An `again` event whose note has `confirms` begins such a call. If both replies agree, a `repeat` event says so; if not,
the answer is undone, and a `tell` event has what both orders together say. The note of either has both `replies`.
"""

from collections.abc import Collection

import sqlalchemy as sa

from ..errors import format_count
from ..votes.columns import ANSWERS
from .asking import Reply
from .history import History
from .ledger import Ledger
from .study import Study


def find_unconfirmed(
    history: History, ledger: Ledger, judges: Collection[str | None] | None = None
) -> dict[int, str | None]:
    """Return the duels of active arms that a judge with an alarm has answered in one order only, and that judge.

    Args:
        history: The study's state.
        ledger: What its judges have done.
        judges: Only these; all by default.
    """
    return {
        duel: judge
        for duel, judge in ledger.find_unconfirmed().items()
        if (judges is None or judge in judges)
        and duel not in history.forgotten
        and history.active[history.left[duel]]
        and history.active[history.right[duel]]
    }


def store_confirmation(
    connection: sa.Connection, study: Study, ledger: Ledger, reply: Reply, note: dict[str, object]
) -> None:
    """Write what a judge said in the other order; nobody chooses what becomes of its answer, so the undo is blind.

    Args:
        connection: The transaction's connection.
        study: The study.
        ledger: What its judges have done, up to now.
        reply: The reply.
        note: What the log keeps of it.
    """
    task, answer, history = reply.task, reply.answer.answer, study.current(connection)
    duel, judge, before = task.duel.id, task.judge, task.confirms
    waits = duel in find_unconfirmed(history, ledger) and ANSWERS[history.answer[duel]] == before
    note = note | ({"replies": [before, reply.second]} if waits else {})
    if waits and answer != before:
        study.undo_in(connection, duel=duel, blind=True)
        study.tell_in(connection, duel=duel, winner=answer, voter=judge, more=note)
    else:  # they agree, or the answer was taken back or confirmed meanwhile
        study.note_in(connection, "repeat", duel=duel, answer=answer, voter=judge, note=note)


def one_order_text(count: int) -> str | None:
    """Return why a verdict promises nothing if some answers were given in one order only; None if there are none."""
    if not count:
        return None
    were = "were" if count > 1 else "was"
    return f"{format_count(count, 'answer')} of a judge that prefers a side {were} given in one order only"
