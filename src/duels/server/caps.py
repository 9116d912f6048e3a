"""Caps on the votes of a link: in total, and per network address. By default a link has none."""

import hashlib
import hmac
from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sa

from ..storage.storage import Storage, Write
from ..storage.tables import link_votes
from ..study.ballots import Ballot
from .errors import Refused
from .keys import Key

SETTINGS = ("max_votes", "max_votes_per_address")  # of a link


class Caps(NamedTuple):
    """The caps of a link, as they apply to one voter."""

    key: int
    total: int | None
    each: int | None  # per address
    address: str | None  # a digest, stored only if the link has a cap per address


def caps_of(key: Key, secret: str, address: str) -> Caps | None:
    """Return the caps of a link for a voter at an address; None if it has none.

    The digest is keyed by the link's secret. The database does not have that, so with the database alone nobody can
    find out addresses by trying all of them.
    """
    total, each = (key.settings.get(name) for name in SETTINGS)
    if total is None and each is None:
        return None
    digest = None if each is None else hmac.new(secret.encode(), address.encode(), hashlib.sha256).hexdigest()
    return Caps(key.id, total, each, digest)


def count_vote(caps: Caps | None, duel: int, write: Write) -> Write:
    """Extend the write of an answer so that the same transaction checks and counts the caps."""
    if caps is None:
        return write

    def operation(connection: sa.Connection) -> str:
        counted = connection.execute(sa.select(link_votes.c.duel).where(_this(caps, duel))).first() is not None
        if not counted and _is_full(connection, caps):  # an answer that is sent again counts once
            raise Refused(403, "this link accepts no more votes: your answer was not saved")
        answer: str = write.operation(connection)
        if not counted:
            connection.execute(sa.insert(link_votes).values(key_id=caps.key, duel=duel, address=caps.address))
        return answer

    return Write(operation, write.study, write.last)


def uncount_vote(caps: Caps | None, write: Write) -> Write:
    """Extend the undo of an answer so that it no longer counts against the caps."""
    if caps is None:
        return write

    def operation(connection: sa.Connection) -> Ballot:
        ballot: Ballot = write.operation(connection)
        connection.execute(sa.delete(link_votes).where(_this(caps, ballot.duel.id)))
        return ballot

    return Write(operation, write.study, write.last)


def is_full(storage: Storage, caps: Caps | None) -> bool:
    """Return whether a vote would be refused now. Blocks."""
    if caps is None:
        return False
    with storage.turn, storage.explained():
        return _is_full(storage.connection(), caps)


def votes_taken(storage: Storage, links: Iterable[int]) -> dict[int, int]:
    """Return for each link how many votes count against its caps. Blocks."""
    counts = sa.select(link_votes.c.key_id, sa.func.count()).group_by(link_votes.c.key_id)
    with storage.turn, storage.explained():
        found = storage.connection().execute(counts.where(link_votes.c.key_id.in_(list(links)))).all()
    return {row[0]: row[1] for row in found}


def _this(caps: Caps, duel: int) -> sa.ColumnElement[bool]:
    return (link_votes.c.key_id == caps.key) & (link_votes.c.duel == duel)


def _is_full(connection: sa.Connection, caps: Caps) -> bool:
    of_link = link_votes.c.key_id == caps.key
    for cap, chosen in ((caps.total, of_link), (caps.each, of_link & (link_votes.c.address == caps.address))):
        if cap is not None:
            count = sa.select(sa.func.count()).select_from(link_votes).where(chosen)
            if connection.execute(count).scalar_one() >= cap:
                return True
    return False
