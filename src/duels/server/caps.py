"""Caps on the votes of a link: in total, per voter, and per network address. By default a link has none."""

import hashlib
import hmac

from ..errors import InvalidInput
from ..study.ballots import Caps
from .keys import Key

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
