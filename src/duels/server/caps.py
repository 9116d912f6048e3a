"""Caps on the votes of a link: in total, per voter, and per network address. By default a link has none."""

import hashlib
import hmac

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
