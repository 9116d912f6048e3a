"""Keys: tokens, sessions, voting links and links to results. The database stores only digests of their secrets."""

import hashlib
import hmac
import json
import secrets
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ..errors import InvalidInput, shorten
from ..storage.statements import fetch_rows
from ..storage.storage import Storage, Write
from ..storage.tables import keys
from ..study import base
from ..votes.names import label

KINDS = ("admin", "api", "session", "vote", "results")
LINKS = ("vote", "results")  # their secrets are parts of addresses, and open only the routes of links
MIN_TOKEN = 20  # characters of a token that the user chose


class Key(NamedTuple):
    """A token, session or link, without its secret."""

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
    """Identifies a key, also after the database was replaced."""

    id: int
    digest: str


def digest_of(secret: str) -> str:
    """Return the digest that is stored. A secret has at least 128 random bits, so a plain hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def csrf_token(session: str) -> str:
    """Return the token that a page sends with every change. Pages of other sites cannot know it."""
    return hmac.new(session.encode(), b"csrf", hashlib.sha256).hexdigest()


def voter_digest(link: Key, cookie: str) -> str:
    """Return the digest of a voter's cookie. It differs by link, so voters cannot be tracked across links."""
    return hmac.new(link.digest.encode(), cookie.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def load_signing_key(token: str) -> str:
    """Return what several processes with the same token sign addresses of outputs with.

    It is not in the database, nor can it be found from the digest of the token there: a back-up opens no outputs.
    """
    return hmac.new(token.encode(), b"addresses of outputs", hashlib.sha256).hexdigest()


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
    """Create a key.

    Args:
        storage: Where to store it.
        kind: One of `KINDS`.
        name: What people call it.
        study_id: The study of a voting link.
        parent_id: The admin's token that a session was opened with.
        lasts: Seconds until it expires; by default it never does.
        settings: The settings of a voting link.
        secret: A secret that the user chose, instead of a random one. If it exists, its key is used again.

    Returns:
        The key and its secret. The secret is not stored and cannot be recovered.

    Raises:
        InvalidInput: If the secret is too short or the name too long.
    """
    values, secret = draft_key(
        kind, name, study_id=study_id, parent_id=parent_id, lasts=lasts, settings=settings, secret=secret
    )
    return storage.write(Write(partial(insert_key, values=values))), secret


def draft_key(
    kind: str,
    name: str = "",
    *,
    study_id: int | None = None,
    parent_id: int | None = None,
    lasts: float | None = None,
    settings: dict[str, Any] | None = None,
    secret: str | None = None,
) -> tuple[dict[str, Any], str]:
    """Return the values of a key that is not stored yet, for `insert_key`, and its secret; see `make_key`."""
    if secret is not None and (len(secret) < MIN_TOKEN or not secret.isascii() or not secret.isprintable()):
        raise InvalidInput(
            f"the token has {len(secret)} characters: expected at least {MIN_TOKEN} printable ASCII characters, "
            "such as the output of `openssl rand -hex 24`"
        )
    name = label(name)
    if len(name) > 200 or not name.isprintable():
        raise InvalidInput(f"name is {shorten(name)}: expected up to 200 printable characters")
    secret = secret or secrets.token_urlsafe(16 if kind in LINKS else 32)
    now = base.clock()
    values: dict[str, Any] = {
        "kind": kind,
        "name": name,
        "digest": digest_of(secret),
        "study_id": study_id,
        "parent_id": parent_id,
        "created": now,
        "expires": None if lasts is None else now + lasts,
        "revoked": None,
        "settings": settings or {},
    }
    return values, secret


def insert_key(connection: sa.Connection, *, values: dict[str, Any]) -> Key:
    """Store a key inside a transaction, or find the one that has its secret."""
    found = _find_keys(connection, keys.c.digest == values["digest"])
    if found:  # DUELS_TOKEN, from the second start on
        connection.execute(sa.update(keys).where(keys.c.id == found[0].id).values(revoked=None))
        return found[0]._replace(revoked=None)
    row = values | {"settings": json.dumps(values["settings"])}
    insert = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(keys).values(row)
    added = insert.on_conflict_do_nothing(index_elements=[keys.c.digest]).returning(keys.c.id)
    number = connection.execute(added).scalar()
    if number is None:  # another process that starts with the same DUELS_TOKEN was faster
        return _find_keys(connection, keys.c.digest == values["digest"])[0]
    return Key(id=number, **values)


def find_key(storage: Storage, secret: str) -> Key | None:
    """Return the key of a secret; None if there is none or it is no longer valid."""
    digest = digest_of(secret)
    with storage.lock, storage.translate_errors():
        found = _find_keys(storage.connection(), keys.c.digest == digest)
        if not found or not hmac.compare_digest(found[0].digest, digest):
            return None
        return found[0] if in_force(storage.connection(), found[0]) else None


def link_with_study(connection: sa.Connection, digest: str) -> tuple[Key, str, float, str] | None:
    """Return a link by its digest, with name, time and settings of its study; None if it is not valid.

    The caller holds the storage's lock.
    """
    columns = ", ".join(f"k.{name}" for name in Key._fields)
    tables = "keys k JOIN studies s ON s.id = k.study_id"
    text = f"SELECT {columns}, s.name, s.created, s.settings FROM {tables} WHERE k.digest = ?"
    found = fetch_rows(connection, text, (digest,))
    if not found:
        return None
    *fields, of_key, name, created, settings = found[0]
    key = Key._make((*fields, json.loads(of_key)))
    if not hmac.compare_digest(key.digest, digest):
        return None
    ended = key.revoked is not None or (key.expires is not None and key.expires <= base.clock())
    return None if ended or key.kind not in LINKS else (key, name, created, settings)


def past_link(storage: Storage, secret: str) -> Key | None:
    """Return a link that was switched off or has expired, by its secret; None if it was revoked for good."""
    digest = digest_of(secret)
    with storage.lock, storage.translate_errors():
        found = _find_keys(storage.connection(), (keys.c.digest == digest) & keys.c.kind.in_(LINKS))
    return found[0] if found and (found[0].revoked is None or is_off(found[0])) else None


def is_off(key: Key) -> bool:
    """Return whether a link is switched off and may be switched on again."""
    return key.revoked is not None and bool(key.settings.get("off"))


def is_paused(key: Key) -> bool:
    """Return whether a link is switched off and, switched on again, would work: its end has not come."""
    return is_off(key) and (key.expires is None or base.clock() < key.expires)


def key_in(connection: sa.Connection, number: int) -> Key | None:
    """Return a key by its id; None if it is no longer valid. The caller holds the storage's lock."""
    found = _find_keys(connection, keys.c.id == number)
    return found[0] if found and in_force(connection, found[0]) else None


def in_force(connection: sa.Connection, key: Key | KeyId) -> bool:
    """Return whether a key is valid: neither it nor the token that opened its session is revoked or expired.

    The digest is compared too: in a database that was restored from a backup, the same id may belong to another key.
    """
    found = fetch_rows(
        connection,
        "SELECT k.revoked, k.expires, p.revoked, p.expires FROM keys k LEFT JOIN keys p ON p.id = k.parent_id "
        "WHERE k.id = ? AND k.digest = ?",
        (key.id, key.digest),
    )
    now = base.clock()
    return any(not any(row[::2]) and all(end is None or now < end for end in row[1::2]) for row in found)


def is_in_force(storage: Storage, key: KeyId) -> bool:
    """Like `in_force`, outside a transaction."""
    with storage.lock, storage.translate_errors():
        return in_force(storage.connection(), key)


def list_keys(storage: Storage, kinds: tuple[str, ...], study_id: int | None = None) -> list[Key]:
    """List the keys of these kinds, oldest first, revoked ones included."""
    with storage.lock, storage.translate_errors():
        chosen = keys.c.kind.in_(kinds)
        return _find_keys(storage.connection(), chosen if study_id is None else chosen & (keys.c.study_id == study_id))


def revoke_key(storage: Storage, number: int, kinds: tuple[str, ...], study_id: int | None = None) -> bool:
    """Revoke a key, with immediate effect in all processes; return whether there is such a key."""
    chosen = (keys.c.id == number) & keys.c.kind.in_(kinds)
    if study_id is not None:
        chosen &= keys.c.study_id == study_id
    return storage.write(Write(partial(_revoke, chosen=chosen)))


def _revoke(connection: sa.Connection, *, chosen: sa.ColumnElement[bool]) -> bool:
    found = _find_keys(connection, chosen)
    if found and (found[0].revoked is None or is_off(found[0])):
        change_key(connection, found[0], off=False, revoked=base.clock())
    return bool(found)


def link_in(connection: sa.Connection, number: int, study_id: int) -> Key | None:
    """Return a link of a study by its id, valid or not, inside a transaction."""
    found = _find_keys(connection, (keys.c.id == number) & keys.c.kind.in_(LINKS) & (keys.c.study_id == study_id))
    return found[0] if found else None


def change_key(connection: sa.Connection, key: Key, **changes: Any) -> Key:
    """Change a key inside a transaction, and return it.

    Args:
        connection: The transaction's connection.
        key: As it is now.
        **changes: Attributes of `Key`, or else settings.
    """
    own = {name: value for name, value in changes.items() if name in Key._fields}
    settings = key.settings | {name: value for name, value in changes.items() if name not in Key._fields}
    changed = key._replace(**own, settings=settings)
    row = own | {"settings": json.dumps(settings)}
    connection.execute(sa.update(keys).where(keys.c.id == key.id).values(row))
    return changed


def _find_keys(connection: sa.Connection, chosen: sa.ColumnElement[bool]) -> list[Key]:
    rows = connection.execute(sa.select(keys).where(chosen).order_by(keys.c.id))
    return [Key(**(row._asdict() | {"settings": json.loads(row.settings)})) for row in rows]
