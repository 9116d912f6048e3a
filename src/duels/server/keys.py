"""Secrets of people and programs: tokens, sessions and voting links. The database has only their digests."""

import base64
import hashlib
import hmac
import json
import secrets
import struct
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..errors import InvalidInput, cut
from ..storage.storage import Storage, Write
from ..storage.tables import keys
from ..study import log
from ..votes.names import label

KINDS = ("admin", "api", "session", "vote")
SHORTEST = 20  # characters of a token that somebody chose
TICKET = struct.Struct(">IIBQ")


class Key(NamedTuple):
    """Who a secret belongs to, without the secret."""

    id: int
    kind: str
    name: str
    digest: str
    study_id: int | None
    parent_id: int | None
    created: float
    expires: float | None
    revoked: float | None
    settings: dict[str, Any]


class KeyId(NamedTuple):
    """Which key it is, also after the database was replaced."""

    id: int
    digest: str


def digest_of(secret: str) -> str:
    """What is kept of a secret. It has 128 random bits or more, so a plain hash cannot be searched."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def csrf_token(session: str) -> str:
    """What a page must send back with everything it changes; a page of another site cannot know it."""
    return hmac.new(session.encode(), b"csrf", hashlib.sha256).hexdigest()


def voter_digest(link: Key, cookie: str) -> str:
    """What is kept of a voter's cookie: under each link something else, so that nobody is followed across links."""
    return hmac.new(link.digest.encode(), cookie.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


class Ticket(NamedTuple):
    """What the address of an output stands for: one side of one duel, shown through one link, for a while."""

    key: int
    duel: int
    side: int
    expires: int  # seconds since 1970


def sign_ticket(secret: str, ticket: Ticket) -> str:
    """A ticket as part of an address. Outputs can read it: there is nothing in it that opens anything else."""
    body = TICKET.pack(*ticket)
    return base64.urlsafe_b64encode(body + _ticket_mark(secret, body)).decode()


def read_ticket(secret: str, text: str) -> Ticket | None:
    """A ticket that this server has signed, and whose time is not over."""
    try:
        packed = base64.b64decode(text.encode(), b"-_", validate=True)
    except (ValueError, UnicodeError):
        return None
    body, mark = packed[: TICKET.size], packed[TICKET.size :]
    if len(body) != TICKET.size or not hmac.compare_digest(mark, _ticket_mark(secret, body)):
        return None
    ticket = Ticket(*TICKET.unpack(body))
    return ticket if log.clock() < ticket.expires else None


def _ticket_mark(secret: str, body: bytes) -> bytes:
    return hmac.new(secret.encode(), b"output" + body, hashlib.sha256).digest()[:16]


def make_key(
    storage: Storage,
    kind: str,
    name: str = "",
    *,
    study_id: int | None = None,
    parent_id: int | None = None,
    lasts: float | None = None,
    settings: dict[str, Any] | None = None,
    secret: str | None = None,
) -> tuple[Key, str]:
    """A key and its secret, which cannot be had again.

    lasts: seconds until it expires; by default it never does.
    secret: one that somebody chose, instead of a random one.
    """
    if secret is not None and (len(secret) < SHORTEST or not secret.isascii() or not secret.isprintable()):
        raise InvalidInput(
            f"the token has {len(secret)} characters: expected at least {SHORTEST} printable ASCII characters, "
            "such as `openssl rand -hex 24` gives"
        )
    name = label(name)
    if len(name) > 200 or not name.isprintable():
        raise InvalidInput(f"name is {cut(name)}: expected up to 200 printable characters")
    secret = secret or secrets.token_urlsafe(16 if kind == "vote" else 32)
    now = log.clock()
    values: dict[str, Any] = {
        "kind": kind,
        "name": name,
        "digest": digest_of(secret),
        "study_id": study_id,
        "parent_id": parent_id,
        "created": now,
        "expires": None if lasts is None else now + lasts,
        "revoked": None,
    }

    def operation(connection: sa.Connection) -> Key:
        found = _found(connection, keys.c.digest == values["digest"])
        if found:  # a token that somebody chose, at the second start
            connection.execute(sa.update(keys).where(keys.c.id == found[0].id).values(revoked=None))
            return found[0]._replace(revoked=None)
        row = values | {"settings": json.dumps(settings or {})}
        number = connection.execute(sa.insert(keys).values(row).returning(keys.c.id)).scalar_one()
        return Key(id=number, **values, settings=settings or {})

    return storage.write(Write(operation)), secret


def find_key(storage: Storage, secret: str) -> Key | None:
    """Whose secret this is, if it is in force."""
    digest = digest_of(secret)
    with storage.lock, storage.translate_errors():
        found = _found(storage.connection(), keys.c.digest == digest)
        if not found or not hmac.compare_digest(found[0].digest, digest):
            return None
        return found[0] if in_force(storage, storage.connection(), found[0]) else None


def key_in(storage: Storage, connection: sa.Connection, number: int) -> Key | None:
    """A key by its number, if it is in force; only whoever has the turn calls this."""
    found = _found(connection, keys.c.id == number)
    return found[0] if found and in_force(storage, connection, found[0]) else None


def in_force(storage: Storage, connection: sa.Connection, key: Key | KeyId) -> bool:
    """Whether a key is neither revoked nor expired, and for a session that of who signed in too.

    By the driver itself: every answer needs it, in the transaction that writes the answer. The digest counts too: in a
    database that was restored from a back-up, the same id may be another key's.
    """
    mark = "?" if storage.is_sqlite else "%s"
    cursor = connection.connection.cursor()
    cursor.execute(
        "SELECT k.revoked, k.expires, p.revoked, p.expires FROM keys k LEFT JOIN keys p ON p.id = k.parent_id "
        f"WHERE k.id = {mark} AND k.digest = {mark}",
        (key.id, key.digest),
    )
    row = cursor.fetchone()
    now = log.clock()
    return row is not None and not any(row[::2]) and all(end is None or now < end for end in row[1::2])


def is_in_force(storage: Storage, key: KeyId) -> bool:
    """As `in_force`, outside a transaction."""
    with storage.lock, storage.translate_errors():
        return in_force(storage, storage.connection(), key)


def list_keys(storage: Storage, kinds: tuple[str, ...], study_id: int | None = None) -> list[Key]:
    """The keys of these kinds, oldest first; revoked ones too."""
    with storage.lock, storage.translate_errors():
        chosen = keys.c.kind.in_(kinds)
        return _found(storage.connection(), chosen if study_id is None else chosen & (keys.c.study_id == study_id))


def revoke_key(storage: Storage, number: int, kinds: tuple[str, ...], study_id: int | None = None) -> bool:
    """From now on the key opens nothing, in any process; whether there is such a key."""

    def operation(connection: sa.Connection) -> bool:
        chosen = (keys.c.id == number) & keys.c.kind.in_(kinds)
        if study_id is not None:
            chosen &= keys.c.study_id == study_id
        found = _found(connection, chosen)
        if found and found[0].revoked is None:
            connection.execute(sa.update(keys).where(chosen).values(revoked=log.clock()))
        return bool(found)

    return storage.write(Write(operation))


def _found(connection: sa.Connection, chosen: Any) -> list[Key]:
    rows = connection.execute(sa.select(keys).where(chosen).order_by(keys.c.id))
    return [Key(**(row._asdict() | {"settings": json.loads(row.settings)})) for row in rows]
