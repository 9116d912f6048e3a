"""How much each voting link was used: votes, voters, and when it was used last."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sqlalchemy as sa

from ...storage.tables import events, link_votes, voters
from ...votes.names import link_voter
from ..answers.table import AnswerTable
from ..base import EventLog
from ..state.counts import OPEN, SKIP

if TYPE_CHECKING:
    pass

from ..invitations import list_invited_names

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
