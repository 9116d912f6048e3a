"""What a voter is shown and has said: names hidden, one question at a time, no look at results."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..errors import Conflict, InvalidInput, NotFound
from ..storage.storage import Write
from ..storage.tables import events, voters
from ..votes.names import LinkVoter, link_voter
from . import log
from .duels import Duel
from .history import History
from .items import can_show, choose_item, item_of
from .record import OPEN, SKIP
from .study import Study
from .verdict import verdict

SIDES = {"a": "left", "b": "right"}


class Ballot(NamedTuple):
    """A question as a voter gets it."""

    duel: Duel
    item: int | None


class Standing(NamedTuple):
    """How far a voter and the study are."""

    answered: int  # by this voter
    total: int
    done: str | None  # goal, winner, full, or retired for all else that ends a study


def voter_of(connection: sa.Connection, digest: str) -> LinkVoter | None:
    """Who came with a cookie of that digest before."""
    number = connection.execute(sa.select(voters.c.number).where(voters.c.digest == digest)).scalar()
    return None if number is None else link_voter(number)


def asking(study: Study, link: int, digest: str) -> Write:
    """The voter's open question if there is one, else the next; its value is a ballot.

    Who asks for the first time, with a cookie that the server has just made, becomes a voter of the link.
    """

    def operation(connection: sa.Connection) -> Ballot:
        history = study.current(connection)
        study.storage.flush(connection)
        voter = voter_of(connection, digest)
        if voter is not None:
            waiting = _waiting(connection, study, history, voter)
            return waiting or _ask(connection, study, voter)
        most = sa.select(sa.func.max(voters.c.number)).where(voters.c.study_id == study.id)
        number = (connection.execute(most).scalar() or 0) + 1
        ballot = _ask(connection, study, link_voter(number))
        values = {"study_id": study.id, "number": number, "key_id": link, "digest": digest}
        connection.execute(sa.insert(voters).values(values))  # behind what may be refused
        return ballot

    return Write(operation, study.id, last=True)


def _ask(connection: sa.Connection, study: Study, voter: LinkVoter) -> Ballot:
    drawn: list[int | None] = []

    def about(connection: sa.Connection, duel: Duel) -> dict[str, Any]:
        study.storage.flush(connection)
        item = choose_item(connection, study.id, duel.left, duel.right, study.row.seed, duel.id, voter)
        if item is None and not can_show(connection, study.id, duel.left, duel.right, None):
            raise Conflict("what comes next has nothing to show yet: tell whoever gave you this link")
        drawn.append(item)
        return {} if item is None else {"item": item}

    (duel,) = study.asking(voter=voter, allow_self=False, about=about).operation(connection)
    return Ballot(duel, drawn[0])


def telling(study: Study, digest: str, duel: int, winner: str) -> Write:
    """The voter's answer to a question of theirs."""

    def operation(connection: sa.Connection) -> str:
        study.current(connection)
        study.storage.flush(connection)
        voter = voter_of(connection, digest)
        if voter is None or _asked(connection, study, duel, voter) is None:
            raise NotFound(f"duel {duel} was not asked of you: reload the page")
        return study.telling(duel, SIDES.get(winner, winner), voter=voter).operation(connection)

    return Write(operation, study.id)


def undoing(study: Study, digest: str) -> Write:
    """Takes back the voter's last answer; its value is the ballot, open again."""

    def operation(connection: sa.Connection) -> Ballot:
        history = study.current(connection)
        study.storage.flush(connection)
        voter = voter_of(connection, digest)
        told = [] if voter is None else _told(connection, study, history, voter, skips=True)
        if voter is None or not told:
            raise InvalidInput("there is no answer of yours to undo")
        ballot = _ballot(connection, study, history, voter, told[-1])
        if not _is_blind(connection, study, ballot):
            raise Conflict("what you compared has been removed since: your answer stays")
        study.undoing(told[-1], blind=True).operation(connection)
        return ballot

    return Write(operation, study.id)


def ballot_of(study: Study, duel: int) -> Ballot:
    """A question that was asked through a link. Blocks."""
    return _locked(study, lambda connection, history: _ballot(connection, study, history, None, duel))


def standing(study: Study, digest: str, goal: int, more: bool) -> Standing:
    """How far this voter is, and whether there is anything left to vote on. Blocks."""

    def look(connection: sa.Connection, history: History) -> tuple[Any, ...]:
        voter = voter_of(connection, digest)
        told = [] if voter is None else _told(connection, study, history, voter)
        return told, history.tally, history.retired, len(history.told)

    told, tally, retired, total = _locked(study, look)
    done, found = None, verdict(tally).kind
    if retired or found == "no condorcet winner":
        done = "retired"
    elif found == "winner":
        done = "winner"
    elif len(told) >= goal and not more:
        done = "goal"
    return Standing(len(told), total, done)


def outputs_of(study: Study, ballot: Ballot) -> tuple[str | None, list[Any]]:
    """The prompt and the two outputs of a question; without an item the arms' names are what is compared. Blocks."""
    arms = (ballot.duel.left, ballot.duel.right)
    if ballot.item is None:
        return None, list(arms)
    try:
        item = item_of(study, ballot.item, arms)
        return item.prompt, [item.outputs[arm] for arm in arms]
    except (InvalidInput, KeyError):
        raise NotFound("what this question is about was removed: reload the page") from None


def _is_blind(connection: sa.Connection, study: Study, ballot: Ballot) -> bool:
    """Whether a question can be shown as it was asked: arms' names are shown only by studies without items."""
    return can_show(connection, study.id, ballot.duel.left, ballot.duel.right, ballot.item)


def _locked(study: Study, look: Callable[[sa.Connection, History], Any]) -> Any:
    return study.read(look)


def _theirs(study: Study, voter: str | None, kind: str) -> Any:
    """The events of a kind; of one voter, or of all."""
    chosen = (events.c.study_id == study.id) & (events.c.kind == kind)
    return chosen if voter is None else chosen & (events.c.voter == voter)


def _waiting(connection: sa.Connection, study: Study, history: History, voter: str) -> Ballot | None:
    """The question that this voter has not answered, unless it is too old."""
    chosen = sa.select(events.c.duel, events.c.note).where(_theirs(study, voter, "ask"))
    for duel, note in connection.execute(chosen.order_by(events.c.seq.desc()).limit(20)):
        arms_active = history.active[history.left[duel]] and history.active[history.right[duel]]
        fresh = log.clock() - history.asked[duel] < study.row.lease
        ballot = Ballot(study.duel_in(history, duel), _item(note))
        is_open = history.answer[duel] == OPEN and arms_active and fresh and not history.retired
        if is_open and _is_blind(connection, study, ballot):
            return ballot
    return None


def _ballot(connection: sa.Connection, study: Study, history: History, voter: str | None, duel: int) -> Ballot:
    note = _asked(connection, study, duel, voter)
    if note is None:
        raise NotFound(f"duel {duel} was not asked of you")
    return Ballot(study.duel_in(history, duel), _item(note))


def _asked(connection: sa.Connection, study: Study, duel: int, voter: str | None) -> str | None:
    """The note of the question, empty if it has none; None if it was not asked, of this voter if one is named."""
    row = connection.execute(
        sa.select(events.c.note).where(_theirs(study, voter, "ask") & (events.c.duel == duel))
    ).first()
    return None if row is None else row[0] or ""


def _item(note: str | None) -> int | None:
    return json.loads(note).get("item") if note else None


def _told(connection: sa.Connection, study: Study, history: History, voter: str, skips: bool = False) -> list[int]:
    """The duels that this voter has answered, in order, without what was taken back."""
    chosen = sa.select(events.c.duel, events.c.attempt).where(_theirs(study, voter, "tell")).order_by(events.c.seq)
    left_out = (OPEN,) if skips else (OPEN, SKIP)
    return [
        duel
        for duel, attempt in connection.execute(chosen)
        if history.attempt[duel] == attempt and history.answer[duel] not in left_out
    ]
