"""People who are invited by name: each has a voting link of their own, and votes under that name from any device.

No other voter of the study may have such a name: programs that use it are refused, and so are files.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import sqlalchemy as sa

from ..errors import Conflict, InvalidInput, shorten
from ..storage.batches import Packed, unpack_voters
from ..storage.statements import fetch_rows
from ..storage.tables import events, invitations, keys
from ..votes.names import LinkVoter, compose, voter_name
from . import base
from .base import EventLog

if TYPE_CHECKING:
    from .answers.table import AnswerTable
    from .event_study import EventStudy

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


def check_free(connection: sa.Connection, study: EventLog, names: Sequence[str], known: "AnswerTable") -> None:
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
