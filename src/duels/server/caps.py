"""Caps on the votes of a link: in all, and from one network address. A link has none unless somebody asks for them."""

import hashlib
import hmac

from ..study.ballots import Caps
from .keys import Key

SETTINGS = ("max_votes", "max_votes_per_address")  # of a link


def caps_of(key: Key, secret: str, address: str) -> Caps | None:
    """The caps of a link for somebody at an address; None if it has none.

    The digest is keyed by the link's secret, which is not in the database: who has that alone cannot try all addresses.
    """
    total, each = (key.settings.get(name) for name in SETTINGS)
    if total is None and each is None:
        return None
    digest = None if each is None else hmac.new(secret.encode(), address.encode(), hashlib.sha256).hexdigest()
    return Caps(key.id, total, each, digest)
