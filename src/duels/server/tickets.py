"""Tickets: signed rights to see one output for a limited time, as parts of URLs.

Outputs can read their own URLs and could pass them on, so a ticket gives access to nothing else.
"""

import hashlib
from functools import lru_cache
from typing import NamedTuple, TypeVar

from itsdangerous import BadSignature, Signer

from ..study import base

LASTS = 600  # seconds; pages get new tickets whenever they are loaded


class Ticket(NamedTuple):
    """The right to see one side of one duel through one link."""

    key: int
    duel: int
    side: int
    expires: int  # seconds since 1970


class PreviewTicket(NamedTuple):
    """The right to see one output of one item, in one session."""

    key: int  # the session's id
    study: int
    item: int
    arm: int  # its place
    expires: int  # seconds since 1970


T = TypeVar("T", Ticket, PreviewTicket)


def sign_ticket(secret: str, ticket: Ticket | PreviewTicket) -> str:
    """Return a ticket as text for a URL."""
    return _signer(secret, type(ticket).__name__).sign("-".join(map(str, ticket))).decode()


def read_ticket(secret: str, text: str, kind: type[T]) -> T | None:
    """Return the ticket of a text.

    Returns:
        None if the signature is wrong or was made for another kind of ticket, or if the ticket has expired.
    """
    try:
        numbers = _signer(secret, kind.__name__).unsign(text).split(b"-")
    except (BadSignature, UnicodeError):
        return None
    ticket = kind(*map(int, numbers))
    return ticket if 0 < ticket.expires - base.clock() <= LASTS else None


@lru_cache
def _signer(secret: str, kind: str) -> Signer:
    # A signature of 48 bytes fills its base64 text, so no other text is the same signature. The serializers of
    # itsdangerous try to compress each text, for which votes through a link took 20 % longer.
    return Signer(secret, salt=kind, key_derivation="hmac", digest_method=hashlib.sha384)
