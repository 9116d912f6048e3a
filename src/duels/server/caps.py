"""Caps on the votes of a link: in total, per voter, and per network address. By default a link has none.

Whether new voters crowd in from one address is noted with the link, without the address.
"""

import hashlib
import hmac

import sqlalchemy as sa

from ..errors import InvalidInput
from ..storage.storage import Storage, Write
from ..study import log
from ..study.ballots import Caps
from ..study.duels import iso_time
from .errors import Refused
from .keys import Key, change_key, key_in, list_keys
from .limits import Rate, Rates

CROWDED = "crowded"  # the setting of a link with the time when new voters of one address last had to wait
ONCE_A_MINUTE = Rate(1 / 60, 1)
SETTINGS = ("max_votes", "max_votes_per_voter", "max_votes_per_address")  # of a link


def caps_of(key: Key, secret: str, address: str) -> Caps | None:
    """Return the caps of a link for a voter at an address; None if it has none.

    The digest is keyed by the link's secret. The database does not have that, so with the database alone nobody can
    find out addresses by trying all of them.
    """
    total, voter, each = (key.settings.get(name) for name in SETTINGS)
    if total is None and voter is None and each is None:
        return None
    digest = None if each is None else hmac.new(secret.encode(), address.encode(), hashlib.sha256).hexdigest()
    return Caps(key.id, total, each, digest, voter)


def check_per_voter(votes: int | None, most: int | None, usual: int) -> None:
    """Refuse a link that asks a voter for more votes than it accepts.

    Args:
        votes: How many the link asks each voter for; None for as many as the study's settings say.
        most: How many it accepts from one voter; None for any number.
        usual: What the study's settings say.

    Raises:
        InvalidInput: If it asks for more.
    """
    wanted = usual if votes is None else votes
    if most is not None and most < wanted:
        whose = "as the study's settings say" if votes is None else "as the link says"
        raise InvalidInput(
            f"max_votes_per_voter is {most:,}, but each voter is asked for {wanted:,} votes, {whose}: expected at "
            "least as many. Raise it, or give the link a smaller number of votes each"
        )


def note_crowd(storage: Storage, rates: Rates, link: Key) -> None:
    """Note with a link that too many new voters came from one address, once a minute. Blocks."""
    try:
        rates.spend((CROWDED, str(link.id)), ONCE_A_MINUTE)
    except Refused:
        return

    def write(connection: sa.Connection) -> None:
        found = key_in(storage, connection, link.id)
        if found is not None:
            change_key(connection, found, **{CROWDED: log.clock()})

    storage.write(Write(write))


def crowds(storage: Storage, study: int) -> list[str]:
    """Return a sentence about each link of a study where new voters of one address had to wait. Blocks."""
    return [
        f"Too many new voters came from one network address at once through the link “{link.name or link.id}”, last at "
        f"{iso_time(link.settings[CROWDED])}, and had to wait. Either many people share that address, or somebody "
        "votes with many cookies: see who stands out, and consider caps or invitations."
        for link in list_keys(storage, ("vote",), study)
        if CROWDED in link.settings
    ]
