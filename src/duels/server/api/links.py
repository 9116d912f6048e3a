"""Links: with a voting link people vote without an account, with a link to the results they only look."""

from functools import partial
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Path, Request, Response

from ...errors import Conflict, InvalidInput, NotFound
from ...storage.storage import Write
from ...study import log
from ...study.answers import AnswerTable
from ...study.link_use import UNUSED, count_votes
from ...study.voter_settings import voter_settings
from ...votes.names import label
from ..caps import SETTINGS, check_per_voter
from ..errors import error_responses
from ..keys import LINKS, Key, change_key, is_off, link_in, list_keys, make_key, revoke_key
from ..link_schemas import LinkChange, LinkMade, Links, NewLink, NewResultsLink, ResultsLinkMade, ResultsLinks
from ..security import Admin, ServiceDep, record_change
from ..service import AnyStudy, Json, Service
from ..sharing import Shared, address, describe_sharing, end_of, lasts, moment, qr_code, times_of, use_of
from .studies import FoundAny

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
            service.storage, "vote", body.name, study_id=study.id, lasts=lasts(body.expires), settings=settings
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
            service.storage.write(Write(change, study.id))
    return Response(status_code=204)


def _now(key: Key, name: str) -> Any:
    """What can be changed of a link, as it is."""
    if name == "on":
        return key.revoked is None
    return getattr(key, name) if name in Key._fields else key.settings.get(name)


def _find(service: Service, study: AnyStudy, link: int) -> Key:
    with service.storage.lock, service.storage.translate_errors():
        found = link_in(service.storage.connection(), link, study.id)
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
    key = _check_existing(study, link, link_in(connection, link, study.id))
    wanted = dict(wanted)
    if wanted.keys() & {"votes", "max_votes_per_voter"}:
        votes, most = ((key.settings | wanted).get(name) for name in ("votes", "max_votes_per_voter"))
        check_per_voter(votes, most, usual)
    on = wanted.pop("on", None)
    if on is not None and on != (key.revoked is None):
        wanted |= {"off": not on, "revoked": None if on else log.clock()}
    had_caps = any(key.settings.get(name) for name in SETTINGS)
    changed = change_key(connection, key, **wanted)
    if not had_caps and any(changed.settings.get(name) for name in SETTINGS):
        count_votes(connection, study, link, answers)


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
        known = link_in(service.storage.connection(), link, study.id)
    if known is None:
        raise NotFound(f"study {study.name!r} has no link {link}")
    with record_change(study, key, f"Revoked {name_link(known)}."):
        revoke_key(service.storage, link, LINKS, study.id)
    return Response(status_code=204)


@router.get("/api/studies/{study}/results-links", response_model=ResultsLinks)
def results_links(study: FoundAny, service: ServiceDep) -> Json:
    """List the links to the results, without their secrets."""
    found = list_keys(service.storage, ("results",), study.id)
    return {"links": [{"id": key.id, "name": key.name, **times_of(key)} for key in found]}


@router.post("/api/studies/{study}/results-links", response_model=ResultsLinkMade, status_code=201)
def new_results_link(
    study: FoundAny, body: NewResultsLink, request: Request, response: Response, service: ServiceDep, key: Admin
) -> Json:
    """Create a link that shows the results and nothing else: no voters, comments or items. It is shown only once."""
    with record_change(study, key, f"Created {_new('link to the results', body.name)}."):
        made, secret = make_key(service.storage, "results", body.name, study_id=study.id, lasts=lasts(body.expires))
    response.headers.update(NO_STORE)
    shown = {"id": made.id, "name": made.name, "expires": moment(made.expires)}
    return shown | _secret(service, request, "results", secret)
