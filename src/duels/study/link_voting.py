"""Voting through links: one question at a time, with the arms' names hidden and no look at results.

A voter is known by a cookie, of which only the digest is stored; somebody who was invited by name, by the link. A link
may have caps on its votes, see `Caps`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..errors import CapReached, Conflict, InvalidInput, LackingOutputs, NotFound, NothingToAsk
from ..storage.statements import fetch_rows
from ..storage.storage import Storage, Write
from ..storage.tables import events, link_votes, voters
from ..votes.items import Output
from ..votes.names import LinkVoter, is_reserved, link_voter
from . import base
from .answering import undo_answer, write_answer
from .base import EventLog
from .event_study import EventStudy
from .invitations import find_invited_voter, list_invited_names
from .items import item_of, lost_all
from .state.counts import OPEN, SKIP
from .state.live import LiveState
from .study import Study
from .voter_settings import DEFAULT, VoterSettings, check_comment

SIDES = {"a": "left", "b": "right"}
LAST = 20  # questions of a voter, of which one may still be open
NOTHING_TO_SHOW = "there is nothing to show yet: outputs are still being uploaded"


class Ballot(NamedTuple):
    """A question as a voter gets it."""

    duel: Any  # a `Duel`, or a duel of a study of another kind
    item: int | None  # the number of the item that it shows
    comment: str | None = None  # what the voter wrote with an answer that was just taken back


class Invited(NamedTuple):
    """Somebody who was invited by name: whoever has the link."""

    key: int  # the link's id


Who = str | Invited  # the digest of a cookie, or somebody with a link of their own


class VoterProgress(NamedTuple):
    """How far a voter and the study are."""

    answered: int  # by this voter
    total: int
    # goal; winner; full; everything if this voter was asked all there is; asked if somebody else has the last
    # questions; or retired for everything else that ends a study
    done: str | None


FindEnd = Callable[[sa.Connection, EventLog], str | None]


class Standpoint(NamedTuple):
    """How far a voter and the study are, before the verdict is looked at."""

    answered: int
    total: int
    done: str | None
    full: bool  # whether the caps of the link refuse another vote

    def up_to(self, end: str | None, goal: int, more: bool) -> VoterProgress:
        """Return the progress.

        Args:
            end: Why the study needs no more votes, see `end_of`.
            goal: How many votes the link asks for.
            more: Whether the voter goes on after that.
        """
        done = self.done if self.done == "retired" else end or self.done
        if done is None and self.answered >= goal and not more:
            done = "goal"
        return VoterProgress(self.answered, self.total, "full" if self.full and done in (None, "goal") else done)


class Caps(NamedTuple):
    """The caps of a link on votes, and on votes and open questions together."""

    key: int  # the link's id
    total: int | None  # votes of the link
    each: int | None  # votes from one network address
    address: str | None  # a digest, stored only if votes are counted by address
    voter: int | None = None  # votes of one voter


def voter_of(connection: sa.Connection, who: Who) -> LinkVoter | None:
    """Return a voter; None for somebody new, or who is no longer invited."""
    if isinstance(who, Invited):
        return find_invited_voter(connection, who.key)
    found = fetch_rows(connection, "SELECT number FROM voters WHERE digest = ?", (who,))
    return link_voter(found[0][0]) if found else None


def _voter_in(connection: sa.Connection, history: LiveState, who: Who) -> LinkVoter | None:
    """As `voter_of`, with the study's state now, which remembers who has a cookie until somebody is forgotten."""
    if isinstance(who, Invited):
        return find_invited_voter(connection, who.key)
    voter = history.voters.get(who) or voter_of(connection, who)
    if voter is not None:
        history.voters[who] = voter
    return voter


def asking(study: EventStudy, link: int, who: Who, caps: Caps | None = None) -> Write[Ballot]:
    """Return a write whose value is the voter's open question, or else the next one.

    Somebody who asks for the first time, with a cookie that the server has just made, becomes a voter of the link.

    Args:
        study: The study.
        link: The link's id.
        who: The voter.
        caps: Those of the link, which its votes and its open questions together do not exceed.

    Raises:
        NothingToAsk: When it runs, if there is nothing left to ask, or others are asked as much as the caps allow.
    """
    return study._log.make_write(partial(_ask_voter, study=study._log, link=link, who=who, caps=caps), last=True)


def _ask_voter(
    connection: sa.Connection,
    *,
    study: EventLog,
    link: int,
    who: Who,
    caps: Caps | None,
    admit: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Ballot:
    history = _current(connection, study)
    voter = _voter_in(connection, history, who)
    if voter is None and isinstance(who, Invited):
        raise NotFound("this invitation was withdrawn: ask the person who sent it")
    ballot = None if voter is None else _find_unanswered(connection, study, history, voter)
    if ballot is not None:
        return ballot
    if caps is not None and _is_full(connection, caps, base.clock() - study.row.lease):
        raise NothingToAsk("others are asked the last questions of this link: come back in a few minutes")
    if voter is not None:
        return _ask(connection, study, voter, caps)
    most = sa.select(sa.func.max(voters.c.number)).where(voters.c.study_id == study.id)
    number = (connection.execute(most).scalar() or 0) + 1
    with admit():
        ballot = _ask(connection, study, link_voter(number), caps)
    values = {"study_id": study.id, "number": number, "key_id": link, "digest": who}
    connection.execute(sa.insert(voters).values(values))  # after everything that may be refused
    if isinstance(who, str):
        history.voters[who] = link_voter(number)
    return ballot


def ask_next(
    connection: sa.Connection,
    study: EventLog,
    who: Who,
    link: int,
    caps: Caps | None,
    goal: int,
    more: bool,
    find_end: FindEnd,
    admit: Callable[[], AbstractContextManager[None]],
) -> tuple[Ballot | None, VoterProgress]:
    """Return a voter's open question, or else the next one, and the voter's progress, inside a transaction.

    Args:
        connection: The transaction's connection.
        study: The study.
        who: The voter.
        link: The link's id.
        caps: Those of the link.
        goal: How many votes the link asks for.
        more: Whether the voter goes on after that.
        find_end: Does what `end_of` does, inside the transaction.
        admit: Entered while a new voter is asked; may raise a `DuelsError`.

    Returns:
        The question, None if there is none; and the progress before it.
    """

    def progress() -> VoterProgress:
        found = progress_in(connection, study, who, caps)
        end = find_end(connection, study) if found.done != "retired" else None
        return found.up_to(end, goal, more)

    before = progress()
    if before.done is not None:
        return None, before
    try:
        ballot = _ask_voter(connection, study=study, link=link, who=who, caps=caps, admit=admit)
    except NothingToAsk:  # somebody else was asked the last question
        before = progress()
        return None, before._replace(done=before.done or "asked")
    return ballot, before


def _ask(connection: sa.Connection, study: EventLog, voter: LinkVoter, caps: Caps | None) -> Ballot:
    if study.storage.once(("lost all items", study.id), lambda: lost_all(connection, study.id)):
        raise Conflict(NOTHING_TO_SHOW)  # voters who have compared outputs must not compare names
    with _for_voters():
        (duel,) = study.ask(connection, voter=voter, allow_self=False)
    if caps is not None:
        _note_vote(connection, caps, duel.id, base.clock())
    item = None if duel.item is None else duel.item.number
    return Ballot(duel, item)


@contextmanager
def _for_voters() -> Iterator[None]:
    """Change errors that name the study or its arms, which voters must not learn."""
    try:
        yield
    except LackingOutputs:
        raise Conflict(NOTHING_TO_SHOW) from None
    except NothingToAsk:
        raise NothingToAsk("every question has been asked: come back in a few minutes") from None
    except (Conflict, InvalidInput):
        raise Conflict("this question was answered already, or is over: reload the page") from None


def telling(
    study: EventStudy,
    who: Who,
    duel: int,
    winner: str,
    caps: Caps | None = None,
    settings: VoterSettings = DEFAULT,
    comment: str | None = None,
) -> Write[str]:
    """Return a write of a voter's answer to a question of theirs; its value is the answer as it is stored.

    Args:
        study: The study.
        who: The voter.
        duel: The question's duel.
        winner: `a`, `b`, or as in `Study.tell`.
        caps: Those of the link. A skip does not count against them.
        settings: Which answers voters may give.
        comment: Why, in the voter's words.

    Raises:
        Conflict: If voters may not give this answer, or no comments.
        NotFound: When it runs, if the duel was not asked of this voter.
        CapReached: When it runs, if the link takes no more votes.
    """
    answer, note = SIDES.get(winner, winner), check_comment(comment)
    if not settings.allows(answer):
        raise Conflict(f"the answer {answer.replace('_', ' ')!r} is not possible here any more: choose another one")
    if note is not None and not settings.comments:
        raise Conflict("comments are not possible here any more: your answer was not saved")
    more = None if note is None else {"note": note}
    operation = partial(_tell, study=study._log, who=who, duel=duel, winner=answer, caps=caps, more=more)
    return study._log.make_write(operation)


def _tell(
    connection: sa.Connection,
    *,
    study: EventLog,
    who: Who,
    duel: int,
    winner: str,
    caps: Caps | None,
    more: Mapping[str, object] | None,
) -> str:
    if caps is not None and winner == "skip":
        connection.execute(sa.delete(link_votes).where(_of_duel(caps, duel), link_votes.c.asked.is_not(None)))
        caps = None
    counted = caps is not None and _is_counted(connection, caps, duel)  # an answer sent again does not count again
    if caps is not None and not counted and _is_full(connection, caps):
        raise CapReached("this link accepts no more votes: your answer was not saved")
    history = _current(connection, study)
    voter = _voter_in(connection, history, who)
    if voter is None or not _was_asked(connection, study, history, duel, voter):
        raise NotFound(f"duel {duel} was not asked of you: reload the page")
    most = None if caps is None or counted else caps.voter
    if most is not None and _count_answered(connection, study, history, voter) >= most:
        raise CapReached("this link accepts no more votes from you: your answer was not saved")
    with _for_voters():
        answer = write_answer(connection, study, duel=duel, winner=winner, voter=voter, more=more)
    if caps is not None and not counted:
        _note_vote(connection, caps, duel)
    return answer


def undoing(study: EventStudy, who: Who, caps: Caps | None = None) -> Write[Ballot]:
    """Return a write that takes back a voter's last answer; its value is the ballot, which is open again.

    Args:
        study: The study.
        who: The voter.
        caps: Those of the link, against which the answer no longer counts.

    Raises:
        InvalidInput: When it runs, if the voter has no answer.
        Conflict: When it runs, if what was compared was removed.
    """
    return study._log.make_write(partial(_undo, study=study._log, who=who, caps=caps))


def _undo(connection: sa.Connection, *, study: EventLog, who: Who, caps: Caps | None) -> Ballot:
    history = study.current(connection)
    study.storage.flush(connection)
    voter = voter_of(connection, who)
    answered = [] if voter is None else _list_answered(connection, study, history, voter, skips=True)
    if voter is None or not answered:
        raise InvalidInput("there is no answer of yours to undo")
    ballot = _ballot(connection, study, history, voter, answered[-1])
    if not _is_blind(connection, study, ballot):
        raise Conflict("what you compared has been removed since: your answer stays")
    comment = _comment(connection, study, voter, ballot.duel.id)
    with _for_voters():
        undo_answer(connection, study, duel=ballot.duel.id, blind=True)
    if caps is not None and _is_counted(connection, caps, ballot.duel.id):
        _note_vote(connection, caps, ballot.duel.id, base.clock())
    return ballot._replace(comment=comment)


def _comment(connection: sa.Connection, study: EventLog, voter: str, duel: int) -> str | None:
    """What a voter wrote with the last answer to a question."""
    chosen = sa.select(events.c.note).where(_events_of(study, voter, "tell") & (events.c.duel == duel))
    note = connection.execute(chosen.order_by(events.c.seq.desc()).limit(1)).scalar()
    comment: str | None = json.loads(note).get("note") if note else None
    return comment


def ballot_of(study: EventStudy, duel: int) -> Ballot:
    """Return a question that was asked through a link. Blocks.

    Raises:
        NotFound: If it was not asked.
    """
    return study._log.read(lambda connection, history: _ballot(connection, study._log, history, None, duel))


def refuse_asked_through_link(connection: sa.Connection, study: EventLog, duel: int) -> None:
    """Refuse an answer to a question that was asked of somebody who votes through a link, inside a transaction.

    Raises:
        Conflict: If it was.
    """
    history = study.current(connection)
    is_known = not history.knows_people or (0 <= duel < len(history.person) and history.person[duel] >= 0)
    if not is_known:  # which is quicker than to look who was asked
        return
    study.storage.flush(connection)
    chosen = sa.select(events.c.voter).where(_events_of(study, None, "ask") & (events.c.duel == duel))
    voter = connection.execute(chosen).scalar()
    if voter is not None and (is_reserved(voter) or voter in list_invited_names(connection, study.id).values()):
        raise Conflict(f"duel {duel} was asked of somebody who votes through a link: only that person can answer it")


def voter_progress(
    study: EventStudy,
    who: Who,
    goal: int,
    more: bool,
    find_end: Callable[[EventStudy], str | None] | None = None,
    caps: Caps | None = None,
) -> VoterProgress:
    """Return how far a voter is, and whether there is anything left to vote on. Blocks.

    Args:
        study: The study.
        who: The voter.
        goal: How many votes the link asks for.
        more: Whether the voter goes on after that.
        find_end: Does what `end_of` does, which is the default, but remembers.
        caps: Those of the link.
    """
    found = study._log.read(lambda connection, history: _standpoint(connection, history, study._log, who, caps))
    end = (find_end or end_of)(study) if found.done != "retired" else None
    return found.up_to(end, goal, more)


def end_of(study: EventStudy) -> str | None:
    """Return why a study needs no more votes, by its verdict; None if it does. Blocks."""
    return study._log.find_end()


def end_in(connection: sa.Connection, study: EventLog) -> str | None:
    """Return the same inside a transaction, while others wait."""
    return study.find_end(connection)


def progress_in(connection: sa.Connection, study: EventLog, who: Who, caps: Caps | None) -> Standpoint:
    """Return how far a voter is, inside a transaction."""
    return _standpoint(connection, _current(connection, study), study, who, caps)


def _standpoint(
    connection: sa.Connection, history: LiveState, study: EventLog, who: Who, caps: Caps | None
) -> Standpoint:
    voter = _voter_in(connection, history, who)
    answered = 0 if voter is None else _count_answered(connection, study, history, voter)
    full = caps is not None and ((caps.voter is not None and answered >= caps.voter) or _is_full(connection, caps))
    return Standpoint(answered, history.total, _all_asked(connection, study, history, voter), full)


def _all_asked(connection: sa.Connection, study: EventLog, history: LiveState, voter: str | None) -> str | None:
    """Why there is no question for a voter; None if there is one, or if there will be when outputs are uploaded."""
    if history.retired:
        return "retired"
    now = base.clock()
    person = history.people.find(voter)
    if not history.left or history.can_ask(now, person) or not history.has_outputs:
        return None
    if history.can_ask(now, person, shared=True):
        return None
    if voter is not None and _find_unanswered(connection, study, history, voter) is not None:
        return None
    if history.can_ask(now):
        return "everything"
    return "asked" if history.list_leased(now) else "retired"


def outputs_of(study: Study, ballot: Ballot) -> tuple[str | None, list[Output | str]]:
    """Return the prompt and the two outputs of a question; without an item, the names of the arms. Blocks.

    Raises:
        NotFound: If they were removed.
    """
    arms = (ballot.duel.left, ballot.duel.right)
    if ballot.item is None:
        return None, list(arms)
    try:
        item = item_of(study, ballot.item, arms)
        return item.prompt, [item.outputs[arm] for arm in arms]
    except (InvalidInput, KeyError):
        raise NotFound("what this question is about was removed: reload the page") from None


def votes_taken(storage: Storage, links: Iterable[int]) -> dict[int, int]:
    """Return for each of these links how many votes count against its caps. Blocks."""
    counts = sa.select(link_votes.c.key_id, sa.func.count()).where(link_votes.c.asked.is_(None))
    counts = counts.group_by(link_votes.c.key_id)
    with storage.lock, storage.translate_errors():
        found = storage.connection().execute(counts.where(link_votes.c.key_id.in_(list(links)))).all()
    return {row[0]: row[1] for row in found}


def _is_full(connection: sa.Connection, caps: Caps, asked_after: float | None = None) -> bool:
    """Whether the votes of a link have reached a cap, together with what was asked after a time, if one is given."""
    taken: sa.ColumnElement[bool] = link_votes.c.asked.is_(None)
    taken = taken if asked_after is None else taken | (link_votes.c.asked > asked_after)
    of_link = (link_votes.c.key_id == caps.key) & taken
    for cap, chosen in ((caps.total, of_link), (caps.each, of_link & (link_votes.c.address == caps.address))):
        if cap is not None:
            count = sa.select(sa.func.count()).select_from(link_votes).where(chosen)
            if connection.execute(count).scalar_one() >= cap:
                return True
    return False


def _is_counted(connection: sa.Connection, caps: Caps, duel: int) -> bool:
    vote = sa.select(link_votes.c.duel).where(_of_duel(caps, duel), link_votes.c.asked.is_(None))
    return connection.execute(vote).first() is not None


def _note_vote(connection: sa.Connection, caps: Caps, duel: int, asked: float | None = None) -> None:
    """Note a vote that counts against caps, or a question that was asked and has none yet.

    A vote keeps the address from which it came.
    """
    values = {"address": caps.address, "asked": asked}
    if asked is not None:
        values.pop("address")
    if not connection.execute(sa.update(link_votes).where(_of_duel(caps, duel)).values(values)).rowcount:
        values = {"key_id": caps.key, "duel": duel, "address": caps.address, "asked": asked}
        connection.execute(sa.insert(link_votes).values(values))


def _of_duel(caps: Caps, duel: int) -> sa.ColumnElement[bool]:
    return (link_votes.c.key_id == caps.key) & (link_votes.c.duel == duel)


def _is_blind(connection: sa.Connection, study: EventLog, ballot: Ballot) -> bool:
    """Whether a question can be shown as it was asked."""
    return study.can_show(connection, ballot.duel, ballot.item)


def _events_of(study: EventLog, voter: str | None, kind: str) -> sa.ColumnElement[bool]:
    """The events of a kind, of one voter or of all."""
    chosen = (events.c.study_id == study.id) & (events.c.kind == kind)
    return chosen if voter is None else chosen & (events.c.voter == voter)


def _find_unanswered(connection: sa.Connection, study: EventLog, history: LiveState, voter: str) -> Ballot | None:
    """The question that this voter has not answered, unless it is too old."""
    for duel in _last_asked(connection, study, history, voter):
        arms_active = history.active[history.left[duel]] and history.active[history.right[duel]]
        fresh = abs(base.clock() - history.asked[duel]) < study.row.lease
        if history.answer[duel] == OPEN and arms_active and fresh and not history.retired:
            ballot = _ballot(connection, study, history, voter, duel)
            if _is_blind(connection, study, ballot):
                return ballot
    return None


# A study that compares arms knows who was asked and who answered. One that tunes parameters does not: the log is read.


def _current(connection: sa.Connection, study: EventLog) -> LiveState:
    """The study's state inside a transaction, with its log as far as it has to be read."""
    history: LiveState = study.current(connection)
    if not history.knows_people:
        study.storage.flush(connection)
    return history


def _last_asked(connection: sa.Connection, study: EventLog, history: LiveState, voter: str) -> list[int]:
    """The last duels that were asked of a voter, the newest first."""
    if history.knows_people:
        return history.duels_of(history.people.find(voter))[: -LAST - 1 : -1]
    chosen = sa.select(events.c.duel).where(_events_of(study, voter, "ask"))
    return list(connection.execute(chosen.order_by(events.c.seq.desc()).limit(LAST)).scalars())


def _was_asked(connection: sa.Connection, study: EventLog, history: LiveState, duel: int, voter: str) -> bool:
    """Whether a duel was asked of a voter."""
    if not history.knows_people:
        return _read_asked_note(connection, study, duel, voter) is not None
    person = history.people.find(voter)
    return person >= 0 and 0 <= duel < len(history.person) and history.person[duel] == person


def _count_answered(connection: sa.Connection, study: EventLog, history: LiveState, voter: str) -> int:
    """How many duels this voter has answered, without answers that were taken back."""
    if not history.knows_people:
        return len(_list_answered(connection, study, history, voter))
    theirs = history.duels_of(history.people.find(voter))
    return sum(history.answer[duel] not in (OPEN, SKIP) for duel in theirs)


def _ballot(connection: sa.Connection, study: EventLog, history: LiveState, voter: str | None, duel: int) -> Ballot:
    items = history.items
    if items is not None and voter is not None and _was_asked(connection, study, history, duel, voter):
        return Ballot(study.find_duel(history, duel), items.of[duel] or None)
    note = _read_asked_note(connection, study, duel, voter)
    if note is None:
        raise NotFound(f"duel {duel} was not asked of you")
    return Ballot(study.find_duel(history, duel), _item(note))


def _read_asked_note(connection: sa.Connection, study: EventLog, duel: int, voter: str | None) -> str | None:
    """The note of a question, empty if it has none; None if it was not asked, of this voter if one is named."""
    row = connection.execute(
        sa.select(events.c.note).where(_events_of(study, voter, "ask") & (events.c.duel == duel))
    ).first()
    return None if row is None else row[0] or ""


def _item(note: str | None) -> int | None:
    item: int | None = json.loads(note).get("item") if note else None
    return item


def _list_answered(
    connection: sa.Connection, study: EventLog, history: LiveState, voter: str, skips: bool = False
) -> list[int]:
    """The duels that this voter has answered, in order, without answers that were taken back."""
    chosen = sa.select(events.c.duel, events.c.attempt).where(_events_of(study, voter, "tell")).order_by(events.c.seq)
    return [duel for duel, attempt in connection.execute(chosen) if history.counts(duel, attempt, skips)]
