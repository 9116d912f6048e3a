"""What is known about links: their state and use; when they end; their addresses and QR codes."""

import io
from datetime import datetime
from typing import NamedTuple

from fastapi import Request

from ..errors import InvalidInput, shorten
from ..study import log
from ..study.ballots import votes_taken
from ..study.duels import iso_time
from ..study.invitations import list_invited_names
from ..study.link_use import UNUSED, LinkUse, link_use, links_of_voters
from .keys import Key, is_off, list_keys
from .service import AnyStudy, Json, Service

LONGEST = 100 * 366 * 24 * 3600.0  # seconds until a link ends


class Shared(NamedTuple):
    """The links of a study, with what came through them."""

    keys: list[Key]  # all voting links, oldest first
    people: dict[int, str]  # who was invited, by link
    uses: dict[int, LinkUse]
    taken: dict[int, int]  # votes that count against caps


def describe_sharing(service: Service, study: AnyStudy) -> Shared:
    """Return the voting links of a study and their use. Blocks."""
    keys, table = list_keys(service.storage, ("vote",), study.id), service.answers(study)
    with service.storage.read_connection() as connection:
        people = list_invited_names(connection, study.id)
        links = links_of_voters(connection, study.id)
    return Shared(keys, people, link_use(table, links), votes_taken(service.storage, [key.id for key in keys]))


def state_of(key: Key, taken: int = 0) -> str:
    """Return the state of a link: active, off, expired, full or revoked."""
    if key.revoked is not None:
        return "off" if is_off(key) else "revoked"
    if key.expires is not None and key.expires <= log.clock():
        return "expired"
    most = key.settings.get("max_votes")
    return "active" if most is None or taken < most else "full"


def times_of(key: Key, taken: int = 0) -> Json:
    """Return what the API shows of any link: its state and its times."""
    return {
        "state": state_of(key, taken),
        "expires": moment(key.expires),
        "created": moment(key.created),
        "revoked": moment(key.revoked),
    }


def use_of(known: Shared, key: Key) -> Json:
    """Return what the API shows of a voting link: state, times and use."""
    use = known.uses.get(key.id, UNUSED)
    times = times_of(key, known.taken.get(key.id, 0))
    return times | {"answers": use.votes, "last_used": moment(use.last)}


def moment(seconds: float | None) -> str | None:
    """Return a time as ISO 8601, if there is one."""
    return None if seconds is None else iso_time(seconds)


def end_of(expires: str | None) -> float | None:
    """Return when a link ends, in seconds since 1970; None for never.

    Raises:
        InvalidInput: If that is not a time to come, with its time zone.
    """
    if expires is None:
        return None
    try:
        found = datetime.fromisoformat(expires)
        seconds = found.timestamp() if found.tzinfo is not None else None
    except (ValueError, OverflowError):
        seconds = None
    if seconds is None:
        raise InvalidInput(
            f"expires is {shorten(expires)}: expected a time with its zone, such as 2030-01-31T18:00:00Z"
        )
    if not 0 < seconds - log.clock() <= LONGEST:
        raise InvalidInput(f"expires is {shorten(expires)}: expected a time to come, at most 100 years from now")
    return seconds


def lasts(expires: str | None) -> float | None:
    """Return for how many seconds a link works; None for ever."""
    end = end_of(expires)
    return None if end is None else end - log.clock()


def address(service: Service, request: Request, *parts: str) -> str:
    """Return the address of a link, as people reach it."""
    base = service.public_url or service.shared_url or str(request.base_url).rstrip("/")
    return "/".join([base, *parts])


def qr_code(url: str) -> str:
    """Return a QR code of an address, as SVG."""
    import segno

    out = io.BytesIO()
    segno.make_qr(url, error="m").save(out, kind="svg", scale=8, border=4, light="#fff", xmldecl=False, nl=False)
    return out.getvalue().decode()
