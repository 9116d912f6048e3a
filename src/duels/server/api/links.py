"""The bodies of requests and responses about links: for voting, for one person, and for results.

Caps on the votes of a link: in total, per voter, and per network address. By default a link has none.

Whether new voters crowd in from one address is noted with the link, without the address.

What is known about links: their state and use; when they end; their addresses and QR codes.

Links: with a voting link people vote without an account, with a link to the results they only look.

Invitations: one voting link per person, whose votes have the person's name.
"""

import hashlib
import hmac
import io
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import sqlalchemy as sa
from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from ...errors import Conflict, InvalidInput, NotFound, shorten
from ...storage.storage import Storage, Write
from ...study import base
from ...study import base as log
from ...study.answers.table import AnswerTable
from ...study.duels import iso_time
from ...study.invitations import check_free, check_names, find_invited_voter, give_link, invite, list_invited_names
from ...study.link_voting import Caps, votes_taken
from ...study.voter_settings import voter_settings
from ...study.voters.link_use import UNUSED, LinkUse, count_votes, link_use, links_of_voters
from ...votes.names import label
from ..auth import Admin, ServiceDep, record_change
from ..http.errors import Refused, error_responses
from ..http.limits import Rate, Rates
from ..keys import (
    LINKS,
    Key,
    change_key,
    draft_key,
    insert_key,
    is_off,
    key_in,
    link_in,
    list_keys,
    make_key,
    revoke_key,
)
from ..state import AnyStudy, Json, Service
from .schemas import RequestBody
from .studies import FoundAny

Cap = Annotated[int, Field(ge=1, le=10_000_000)] | None
Title = Annotated[str, Field(max_length=200, description="The title that voters see.")]
Wanted = Annotated[
    Annotated[int, Field(ge=1, le=100_000)] | None,
    Field(description="How many votes each voter is asked for; null for what the study's settings say."),
]
Total = Annotated[Cap, Field(description="The most votes that the link accepts; null for any number.")]
PerVoter = Annotated[
    Cap, Field(description="The most votes that the link accepts from one voter; no fewer than they are asked for.")
]
PerAddress = Annotated[Cap, Field(description="The most votes from one IPv4 address or one /64 network of IPv6.")]
Expires = Annotated[
    Annotated[str, Field(max_length=40)] | None,
    Field(description="When it stops working, such as `2030-01-31T18:00:00+01:00`; null for never."),
]
State = Annotated[
    Literal["active", "off", "expired", "full", "revoked"],
    Field(description="`off`: switched off, and can be switched on again. `revoked`: for good."),
]
Qr = Annotated[str, Field(description="A QR code of the URL, as SVG.")]


class NewLink(RequestBody):
    name: Title = ""
    votes: Wanted = None
    max_votes: Total = None
    max_votes_per_voter: PerVoter = None
    max_votes_per_address: PerAddress = None
    expires: Expires = None


class LinkChange(RequestBody):
    """What is left out stays as it is."""

    name: Annotated[str, Field(max_length=200, description="The title; voters see that of a voting link.")] = ""
    on: Annotated[bool, Field(description="False switches the link off, true on again.")] = True
    votes: Wanted = None
    max_votes: Total = None
    max_votes_per_voter: PerVoter = None
    max_votes_per_address: PerAddress = None
    expires: Expires = None


class Used(BaseModel):
    state: State
    answers: Annotated[int, Field(description="Votes through the link so far, without those that were taken back.")]
    last_used: Annotated[str | None, Field(description="When the last of these votes was given.")]
    expires: str | None
    created: str
    revoked: Annotated[str | None, Field(description="When it was switched off or revoked.")]


class Link(Used):
    id: int
    name: str
    votes: Wanted
    max_votes: int | None
    max_votes_per_voter: int | None
    max_votes_per_address: int | None
    votes_taken: Annotated[int | None, Field(description="Votes that count against the caps; null without caps.")]
    voters: Annotated[int, Field(description="Who has given at least one vote.")]


class LinkMade(BaseModel):
    id: int
    name: str
    votes: Wanted
    max_votes: int | None
    max_votes_per_voter: int | None
    max_votes_per_address: int | None
    expires: str | None
    url: str
    secret: str
    qr: Qr


class Links(BaseModel):
    links: list[Link]


class NewInvitations(RequestBody):
    voters: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]],
        Field(min_length=1, max_length=200, description="Names of people. Their votes have these names."),
    ]
    name: Title = ""
    votes: Wanted = None
    max_votes_per_voter: PerVoter = None
    expires: Expires = None


class Invitation(Used):
    id: int
    voter: str
    name: str
    votes: Wanted
    max_votes_per_voter: int | None


class Invitations(BaseModel):
    invitations: list[Invitation]


class InvitationMade(BaseModel):
    id: int
    voter: str
    url: str
    secret: str


class InvitationsMade(BaseModel):
    invitations: list[InvitationMade]


class NewResultsLink(RequestBody):
    name: Annotated[str, Field(max_length=200, description="The title of the page; else the study's name.")] = ""
    expires: Expires = None


class ResultsLink(BaseModel):
    id: int
    name: str
    state: State
    expires: str | None
    created: str
    revoked: str | None


class ResultsLinks(BaseModel):
    links: list[ResultsLink]


class ResultsLinkMade(BaseModel):
    id: int
    name: str
    expires: str | None
    url: str
    secret: str
    qr: Qr


class PreviewAsk(RequestBody):
    number: Annotated[int, Field(ge=0, le=1_000_000, description="How many questions were answered before.")] = 0
    more: Annotated[bool, Field(description="Whether to continue after the goal.")] = False


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
        found = key_in(connection, link.id)
        if found is not None:
            change_key(connection, found, **{CROWDED: base.clock()})

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


LONGEST = 100 * 366 * 24 * 3600.0  # seconds until a link ends


class Shared(NamedTuple):
    """The links of a study, with what came through them."""

    keys: list[Key]  # all voting links, oldest first
    people: dict[int, str]  # who was invited, by link
    uses: dict[int, LinkUse]
    taken: dict[int, int]  # votes that count against caps


def describe_sharing(service: Service, study: AnyStudy) -> Shared:
    """Return the voting links of a study and their use. Blocks."""
    keys, table = list_keys(service.storage, ("vote",), study._log.id), service.answers(study)
    with service.storage.read_connection() as connection:
        people = list_invited_names(connection, study._log.id)
        links = links_of_voters(connection, study._log.id)
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


router = APIRouter(tags=["links"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))
LinkId = Annotated[int, Path(ge=1, le=2**31 - 1)]
NO_STORE = {"Cache-Control": "no-store"}
WORDS = {
    "votes": ("asks for {:,} votes each", "asks for as many votes each as Settings says"),
    "max_votes": ("accepts at most {:,} votes in total", "accepts any number of votes in total"),
    "max_votes_per_voter": ("accepts at most {:,} votes per voter", "accepts any number of votes per voter"),
    "max_votes_per_address": ("accepts at most {:,} votes per address", "accepts any number of votes per address"),
}


def links_out(known: Shared) -> list[Json]:
    """Return the voting links as the API lists them, without invitations."""
    return [link_out(known, key) for key in known.keys if not key.settings.get("invited") and "votes" in key.settings]


def link_out(known: Shared, key: Key) -> Json:
    caps = {name: key.settings.get(name) for name in SETTINGS}
    return {
        "id": key.id,
        "name": key.name,
        **use_of(known, key),
        "voters": known.uses.get(key.id, UNUSED).voters,
        "votes": key.settings["votes"],
        **caps,
        "votes_taken": known.taken.get(key.id, 0) if any(caps.values()) else None,
    }


@router.get("/api/studies/{study}/links", response_model=Links)
def links(study: FoundAny, service: ServiceDep) -> Json:
    """List the voting links, without their secrets and without invitations."""
    return {"links": links_out(describe_sharing(service, study))}


@router.post("/api/studies/{study}/links", response_model=LinkMade, status_code=201)
def new_link(
    study: FoundAny, body: NewLink, request: Request, response: Response, service: ServiceDep, key: Admin
) -> Json:
    """Create a link with which anybody can vote, and do nothing else. The secret is shown only once."""
    settings = body.model_dump(include={"votes", *SETTINGS})
    check_per_voter(body.votes, body.max_votes_per_voter, voter_settings(study).votes)
    with record_change(study, key, f"Created {_new('voting link', body.name)}."):
        made, secret = make_key(
            service.storage, "vote", body.name, study_id=study._log.id, lasts=lasts(body.expires), settings=settings
        )
    response.headers.update(NO_STORE)
    shown = {"id": made.id, "name": made.name, **settings, "expires": moment(made.expires)}
    return shown | _secret(service, request, "vote", secret)


def _secret(service: Service, request: Request, place: str, secret: str) -> Json:
    url = address(service, request, place, secret)
    return {"url": url, "secret": secret, "qr": qr_code(url)}


@router.patch("/api/studies/{study}/links/{link}", status_code=204)
def change_link(study: FoundAny, link: LinkId, body: LinkChange, service: ServiceDep, key: Admin) -> Response:
    """Change a link of any kind, or switch it off or on again. What is left out stays as it is."""
    wanted = body.model_dump(exclude_unset=True)
    if "expires" in wanted:
        wanted["expires"] = end_of(wanted["expires"])
    if "name" in wanted:
        wanted["name"] = label(wanted["name"])
    known = _find(service, study, link)
    if known.kind != "vote" and {*wanted} & {"votes", *SETTINGS}:
        raise InvalidInput("a link to the results takes no votes: expected name, on or expires")
    changes = {name: value for name, value in wanted.items() if value != _now(known, name)}
    if changes:
        answers, usual = service.answers(study), voter_settings(study).votes
        change = partial(_change, study=study, link=link, wanted=changes, answers=answers, usual=usual)
        with record_change(study, key, _describe_changes(known, changes)):
            service.storage.write(study._log.make_write(change))
    return Response(status_code=204)


def _now(key: Key, name: str) -> Any:
    """What can be changed of a link, as it is."""
    if name == "on":
        return key.revoked is None
    return getattr(key, name) if name in Key._fields else key.settings.get(name)


def _find(service: Service, study: AnyStudy, link: int) -> Key:
    with service.storage.lock, service.storage.translate_errors():
        found = link_in(service.storage.connection(), link, study._log.id)
    return _check_existing(study, link, found)


def _check_existing(study: AnyStudy, link: int, found: Key | None) -> Key:
    if found is None:
        raise NotFound(f"study {study.name!r} has no link {link}")
    if found.revoked is not None and not is_off(found):
        raise Conflict(f"link {link} was revoked, which is for good: create another one")
    return found


def _change(
    connection: sa.Connection, *, study: AnyStudy, link: int, wanted: dict[str, Any], answers: AnswerTable, usual: int
) -> None:
    key = _check_existing(study, link, link_in(connection, link, study._log.id))
    wanted = dict(wanted)
    if wanted.keys() & {"votes", "max_votes_per_voter"}:
        votes, most = ((key.settings | wanted).get(name) for name in ("votes", "max_votes_per_voter"))
        check_per_voter(votes, most, usual)
    on = wanted.pop("on", None)
    if on is not None and on != (key.revoked is None):
        wanted |= {"off": not on, "revoked": None if on else base.clock()}
    had_caps = any(key.settings.get(name) for name in SETTINGS)
    changed = change_key(connection, key, **wanted)
    if not had_caps and any(changed.settings.get(name) for name in SETTINGS):
        count_votes(connection, study._log, link, answers)


def _describe_changes(key: Key, changes: dict[str, Any]) -> str:
    """What is changed, as sentences for the list of changes; the first names the link."""
    said = []  # what stands before and after the link
    if "on" in changes:
        said.append(("switched ", " on" if changes["on"] else " off"))
    if "name" in changes:
        name = changes["name"]
        said.append(("renamed ", f" to “{name}”") if name else ("took away the title of ", ""))
    if "expires" in changes:
        end = moment(changes["expires"])
        said.append(("", " never ends" if end is None else f" ends at {end[:16]} UTC"))
    for name in (name for name in WORDS if name in changes):
        some, none = WORDS[name]
        said.append(("", f" {none if changes[name] is None else some.format(changes[name])}"))
    names = [name_link(key), *["it"] * len(said)]
    sentences = [f"{before}{name}{after}." for (before, after), name in zip(said, names)]
    return " ".join(f"{one[0].upper()}{one[1:]}" for one in sentences)


def name_link(key: Key) -> str:
    """Return what a link is called in the list of changes; without the names of people, who may be forgotten."""
    if key.settings.get("invited"):
        return f"the invitation {key.id}"
    kind = "link to the results" if key.kind == "results" else "voting link"
    return f"the {kind} “{key.name}”" if key.name else f"the {kind} without a title ({key.id})"


def _new(kind: str, name: str) -> str:
    return f"the {kind} “{name}”" if name else f"a {kind} without a title"


@router.delete("/api/studies/{study}/links/{link}", status_code=204)
def revoke_link(study: FoundAny, link: LinkId, service: ServiceDep, key: Admin) -> Response:
    """Revoke a link of any kind for good, with immediate effect. Its votes are kept."""
    with service.storage.lock, service.storage.translate_errors():
        known = link_in(service.storage.connection(), link, study._log.id)
    if known is None:
        raise NotFound(f"study {study.name!r} has no link {link}")
    with record_change(study, key, f"Revoked {name_link(known)}."):
        revoke_key(service.storage, link, LINKS, study._log.id)
    return Response(status_code=204)


@router.get("/api/studies/{study}/results-links", response_model=ResultsLinks)
def results_links(study: FoundAny, service: ServiceDep) -> Json:
    """List the links to the results, without their secrets."""
    found = list_keys(service.storage, ("results",), study._log.id)
    return {"links": [{"id": key.id, "name": key.name, **times_of(key)} for key in found]}


@router.post("/api/studies/{study}/results-links", response_model=ResultsLinkMade, status_code=201)
def new_results_link(
    study: FoundAny, body: NewResultsLink, request: Request, response: Response, service: ServiceDep, key: Admin
) -> Json:
    """Create a link that shows the results and nothing else: no voters, comments or items. It is shown only once."""
    with record_change(study, key, f"Created {_new('link to the results', body.name)}."):
        made, secret = make_key(
            service.storage, "results", body.name, study_id=study._log.id, lasts=lasts(body.expires)
        )
    response.headers.update(NO_STORE)
    shown = {"id": made.id, "name": made.name, "expires": moment(made.expires)}
    return shown | _secret(service, request, "results", secret)


def invitations_out(known: Shared) -> list[Json]:
    """Return the invitations as the API lists them."""
    return [
        {
            "id": key.id,
            "voter": known.people[key.id],
            "name": key.name,
            **use_of(known, key),
            "votes": key.settings["votes"],
            "max_votes_per_voter": key.settings.get("max_votes_per_voter"),
        }
        for key in known.keys
        if key.id in known.people
    ]


@router.get("/api/studies/{study}/invitations", response_model=Invitations)
def invitations(study: FoundAny, service: ServiceDep) -> Json:
    """List the people who were invited, without the secrets of their links."""
    return {"invitations": invitations_out(describe_sharing(service, study))}


@router.post("/api/studies/{study}/invitations", response_model=InvitationsMade, status_code=201)
def new_invitations(
    study: FoundAny, body: NewInvitations, request: Request, response: Response, service: ServiceDep, key: Admin
) -> Json:
    """Invite people by name, all of them or none: each gets a voting link. The secrets are shown only once.

    Whoever has the link votes under that name, from any device.
    """
    names = check_names(body.voters)
    settings = {**body.model_dump(include={"votes", "max_votes_per_voter"}), "invited": True}
    check_per_voter(body.votes, body.max_votes_per_voter, voter_settings(study).votes)
    ends = lasts(body.expires)
    drafts = [draft_key("vote", body.name, study_id=study._log.id, lasts=ends, settings=settings) for _ in names]
    operation = partial(
        _invite, study=study, names=names, drafts=[values for values, _ in drafts], known=service.answers(study)
    )
    with record_change(study, key, f"Invited {'1 person' if len(names) == 1 else f'{len(names)} people'}."):
        made = service.storage.write(study._log.make_write(operation))
    response.headers.update(NO_STORE)
    found = zip(made, names, (secret for _, secret in drafts))
    return {"invitations": [_describe_made(service, request, number, name, secret) for number, name, secret in found]}


def _invite(
    connection: sa.Connection, *, study: AnyStudy, names: list[str], drafts: list[dict[str, Any]], known: AnswerTable
) -> list[int]:
    study._log.current(connection)
    study._log.storage.flush(connection)
    check_free(connection, study._log, names, known)
    made = [insert_key(connection, values=values).id for values in drafts]
    for name, number in zip(names, made):
        invite(connection, study._log, name, number)
    return made


def _describe_made(service: Service, request: Request, number: int, name: str, secret: str) -> Json:
    return {"id": number, "voter": name, "url": address(service, request, "vote", secret), "secret": secret}


@router.post("/api/studies/{study}/invitations/{link}/renew", response_model=InvitationMade, status_code=201)
def renew(study: FoundAny, link: LinkId, request: Request, response: Response, service: ServiceDep, key: Admin) -> Json:
    """Give an invited person a new link with the same settings. The old one is revoked, and their votes are kept."""
    with record_change(study, key, f"Replaced the link of the invitation {link}."):
        number, name, secret = service.storage.write(study._log.make_write(partial(_renew, study=study, link=link)))
    response.headers.update(NO_STORE)
    return _describe_made(service, request, number, name, secret)


def _renew(connection: sa.Connection, *, study: AnyStudy, link: int) -> tuple[int, str, str]:
    old, voter = link_in(connection, link, study._log.id), find_invited_voter(connection, link)
    if old is None or voter is None:
        raise NotFound(f"study {study.name!r} has no invitation {link}")
    if old.expires is not None and old.expires <= base.clock():
        raise Conflict(f"invitation {link} has expired: change when it ends first")
    left = None if old.expires is None else old.expires - base.clock()
    settings = {name: value for name, value in old.settings.items() if name != "off"}
    values, secret = draft_key("vote", old.name, study_id=study._log.id, lasts=left, settings=settings)
    made = insert_key(connection, values=values)
    give_link(connection, link, made.id)
    change_key(connection, old, off=False, revoked=base.clock())
    return made.id, str(voter), secret
