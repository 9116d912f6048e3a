"""People who are invited by name: each has a voting link of their own, and votes under that name from any device.

No other voter of the study may have such a name: programs that use it are refused, and so are files.

How much each voting link was used: votes, voters, and when it was used last.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sqlalchemy as sa

from ...errors import Conflict, InvalidInput, shorten
from ...storage.batches import Packed, unpack_voters
from ...storage.statements import fetch_rows
from ...storage.tables import events, invitations, keys, link_votes, voters
from ...votes.names import LinkVoter, compose, link_voter, voter_name
from .. import base
from ..answers.table import AnswerTable
from ..base import EventLog
from ..state.counts import OPEN, SKIP

if TYPE_CHECKING:
    from ..event_study import EventStudy

MOST = 200  # people who are invited at once


def check_names(names: Iterable[str]) -> list[str]:
    """Return the names of people to invite, with single blanks.

    Raises:
        InvalidInput: If there are none or too many, one cannot be used, or two are the same.
    """
    found = [voter_name(" ".join(name.split())) if name.strip() else None for name in names]
    named = [name for name in found if name is not None]
    if len(named) < len(found) or not 0 < len(named) <= MOST:
        raise InvalidInput(f"{len(named)} names were given: expected 1 to {MOST}, none of them empty")
    for name in named:
        if named.count(name) > 1:
            raise InvalidInput(f"{shorten(name)} is named twice: names must be unique, so add a surname or a number")
    return named


def check_free(connection: sa.Connection, study: EventLog, names: Sequence[str], known: AnswerTable) -> None:
    """Refuse names that somebody else has in a study.

    Args:
        connection: The transaction's connection; its events must have been flushed.
        study: The study.
        names: Of people to invite.
        known: The study's answers a moment ago; it has the names of imported voters.

    Raises:
        Conflict: If a name is taken, or votes were imported since.
    """
    here, in_log = invitations.c.study_id == study.id, events.c.study_id == study.id
    invited = connection.execute(sa.select(invitations.c.name).where(here, invitations.c.name.in_(names))).scalars()
    for name in invited:
        raise Conflict(f"{name!r} was invited already: choose another name, or make a new link for this person")
    voted = connection.execute(sa.select(events.c.voter).where(in_log, events.c.voter.in_(names)).limit(1)).scalars()
    for name in [*voted, *({*names} & {*known.voters})]:
        raise Conflict(
            f"study {study.name!r} has answers of a voter named {name!r} already, which would be mixed with those of "
            "the invited person: choose another name"
        )
    since = sa.select(events.c.seq).where(in_log, events.c.seq > known.seq, events.c.kind == "import").limit(1)
    if connection.execute(since).first() is not None:
        raise Conflict("votes were imported just now, perhaps by voters of these names: try again")


def invite(connection: sa.Connection, study: EventLog, name: str, key: int) -> None:
    """Invite somebody, whose name was checked."""
    connection.execute(sa.insert(invitations).values(study_id=study.id, name=name, key_id=key))
    _names(connection, study).add(name)


def give_link(connection: sa.Connection, old: int, key: int) -> None:
    """Give somebody who was invited another link; what they answered stays theirs."""
    connection.execute(sa.update(invitations).where(invitations.c.key_id == old).values(key_id=key))


def find_invited_voter(connection: sa.Connection, key: int) -> LinkVoter | None:
    """Return who votes by a link; None if that person was forgotten or has another link."""
    found = fetch_rows(connection, "SELECT name FROM invitations WHERE key_id = ?", (key,))
    return LinkVoter(found[0][0]) if found else None


def list_invited_names(connection: sa.Connection, study: int) -> dict[int, str]:
    """Return the names of all invited people of a study, by their links."""
    chosen = sa.select(invitations.c.key_id, invitations.c.name).where(invitations.c.study_id == study)
    return {int(row.key_id): str(row.name) for row in connection.execute(chosen.order_by(invitations.c.key_id))}


def refuse_invited(connection: sa.Connection, study: EventLog, voter: str | None) -> None:
    """Refuse a program's voter who has the name of an invited person.

    Raises:
        Conflict: If that is so.
    """
    if voter is not None and not isinstance(voter, LinkVoter) and voter in _names(connection, study):
        raise _refuse_taken(study, voter)


def is_invited(study: "EventStudy", voter: str) -> bool:
    """Return whether a voter is somebody who was invited. Blocks."""
    with study._log.storage.lock, study._log.storage.translate_errors():
        return not {voter, compose(voter)}.isdisjoint(
            list_invited_names(study._log.storage.connection(), study._log.id).values()
        )


def refuse_imported(connection: sa.Connection, study: EventLog, packed: Packed) -> None:
    """Refuse a file whose voters have names of invited people.

    Raises:
        Conflict: If that is so.
    """
    if packed.voters is None:
        return
    invited = _names(connection, study)
    if invited:
        for name in unpack_voters(packed.voters).names:
            if name in invited:
                raise _refuse_taken(study, name)


def _names(connection: sa.Connection, study: EventLog) -> set[str]:
    """The names of all invited people, read once in a transaction; those who write others keep it up to date."""

    def read() -> set[str]:
        found = fetch_rows(connection, "SELECT name FROM invitations WHERE study_id = ?", (study.id,))
        return {name for (name,) in found}

    return study.storage.once(("invited", study.id), read)


def _refuse_taken(study: EventLog, name: str) -> Conflict:
    return Conflict(
        f"voter is {name!r}, who was invited to study {study.name!r} and votes through a link: choose another name"
    )


def forget_invited(connection: sa.Connection, study: EventLog, called: Collection[str]) -> bool:
    """Erase an invitation and revoke its link for good; return whether there was one."""
    theirs = (invitations.c.study_id == study.id) & invitations.c.name.in_(called)
    links = list(connection.execute(sa.select(invitations.c.key_id).where(theirs)).scalars())
    if links:
        connection.execute(sa.update(keys).where(keys.c.id.in_(links)).values(revoked=base.clock(), settings="{}"))
        connection.execute(sa.delete(invitations).where(theirs))
        _names(connection, study).difference_update(called)
    return bool(links)


NO_LINK = 0


class LinkUse(NamedTuple):
    """What came through a link."""

    votes: int
    voters: int  # who have given at least one of them
    last: float | None  # when the last was given, in seconds since 1970


UNUSED = LinkUse(0, 0, None)


def links_of_voters(connection: sa.Connection, study: int) -> dict[str, int]:
    """Return the link of each voter by the voter's name, for all who vote through links."""
    chosen = sa.select(voters.c.number, voters.c.key_id).where(voters.c.study_id == study, voters.c.key_id.is_not(None))
    found = {str(link_voter(number)): int(key) for number, key in connection.execute(chosen)}
    return found | {name: key for key, name in list_invited_names(connection, study).items()}


def link_use(table: AnswerTable, links: dict[str, int]) -> dict[int, LinkUse]:
    """Return the use of each link that was used.

    Args:
        table: All answers of the study.
        links: The link of each voter, see `links_of_voters`.
    """
    size = len(table.voters) + 1  # the last place is that of answers that name no voter
    those = ~table.imported
    votes, last = np.bincount(table.voter[those] % size, minlength=size), np.full(size, -np.inf)
    np.maximum.at(last, table.voter[those], table.time[those])
    found: dict[int, LinkUse] = {}
    for voter in np.flatnonzero(votes[:-1]).tolist():
        key = links.get(table.voters[voter], NO_LINK)
        if key != NO_LINK:
            before = found.get(key, UNUSED)
            latest = max(float(last[voter]), before.last or 0.0)
            found[key] = LinkUse(before.votes + int(votes[voter]), before.voters + 1, latest)
    return found


def _links(table: AnswerTable, links: dict[str, int]) -> np.ndarray:
    """(n,) int64: the link of each answer, or NO_LINK."""
    codes = [links.get(name, NO_LINK) for name in table.voters]
    found: np.ndarray = np.array([*codes, NO_LINK], np.int64)[table.voter]  # the last: answers that name no voter
    return found


def count_votes(connection: sa.Connection, study: EventLog, key: int, table: AnswerTable) -> None:
    """Count the votes that a link has taken so far, for a cap that it did not have until now.

    Most are read from the table, which was made before the transaction; only what is new since is read here.

    Args:
        connection: The transaction's connection.
        study: The study.
        key: The link's id.
        table: The study's answers a moment ago.
    """
    history = study.current(connection)
    study.storage.flush(connection)
    links = links_of_voters(connection, study.id)
    given = {*table.duel[(_links(table, links) == key) & ~table.imported].tolist()}
    new = (events.c.study_id == study.id) & (events.c.seq > table.seq) & (events.c.kind == "tell")
    since = connection.execute(sa.select(events.c.duel, events.c.voter).where(new))
    given |= {duel for duel, voter in since if links.get(voter or "") == key}
    taken = {duel for duel in given if history.answer[duel] not in (OPEN, SKIP) and duel not in history.forgotten}
    here = link_votes.c.key_id == key
    counted = {*connection.execute(sa.select(link_votes.c.duel).where(here)).scalars()}
    for gone in counted - taken:  # undone while the link had no caps
        connection.execute(sa.delete(link_votes).where(here, link_votes.c.duel == gone))
    if taken - counted:
        rows = [{"key_id": key, "duel": duel, "address": None} for duel in sorted(taken - counted)]
        connection.execute(sa.insert(link_votes), rows)
