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
from ...study.study import Study
from ...votes.names import label
from ..caps import SETTINGS
from ..errors import error_responses
from ..keys import LINKS, Key, change_key, is_off, link_in, list_keys, make_key, revoke_key
from ..link_schemas import LinkChange, LinkMade, Links, NewLink, NewResultsLink, ResultsLinkMade, ResultsLinks
from ..security import Admin, ServiceDep, changing
from ..service import Json, Service
from ..sharing import Shared, address, end_of, lasts, moment, qr_code, shared, times_of, use_of
from .studies import Found

router = APIRouter(tags=["links"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))
LinkId = Annotated[int, Path(ge=1, le=2**31 - 1)]
NO_STORE = {"Cache-Control": "no-store"}
WORDS = {
    "votes": "asks for {} votes each",
    "max_votes": "accepts {} votes in total",
    "max_votes_per_voter": "accepts {} votes per voter",
    "max_votes_per_address": "accepts {} votes per address",
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
def links(study: Found, service: ServiceDep) -> Json:
    """List the voting links, without their secrets and without invitations."""
    return {"links": links_out(shared(service, study))}


@router.post("/api/studies/{study}/links", response_model=LinkMade, status_code=201)
def new_link(
    study: Found, body: NewLink, request: Request, response: Response, service: ServiceDep, key: Admin
) -> Json:
    """Create a link with which anybody can vote, and do nothing else. The secret is shown only once."""
    settings = body.model_dump(include={"votes", *SETTINGS})
    with changing(study, key, f"Created the voting link {called(body.name)}."):
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
def change_link(study: Found, link: LinkId, body: LinkChange, service: ServiceDep, key: Admin) -> Response:
    """Change a link of any kind, or switch it off or on again. What is left out stays as it is."""
    wanted = body.model_dump(exclude_unset=True)
    if "expires" in wanted:
        wanted["expires"] = end_of(wanted["expires"])
    if "name" in wanted:
        wanted["name"] = label(wanted["name"])
    known = _find(service, study, link)
    if known.kind != "vote" and {*wanted} & {"votes", *SETTINGS}:
        raise InvalidInput("a link to the results takes no votes: expected name, on or expires")
    if wanted:
        answers = service.answers(study)
        change = partial(_change, study=study, link=link, wanted=wanted, answers=answers)
        with changing(study, key, _said(known, wanted)):
            service.storage.write(Write(change, study.id))
    return Response(status_code=204)


def _find(service: Service, study: Study, link: int) -> Key:
    with service.storage.lock, service.storage.translate_errors():
        found = link_in(service.storage.connection(), link, study.id)
    return _existing(study, link, found)


def _existing(study: Study, link: int, found: Key | None) -> Key:
    if found is None:
        raise NotFound(f"study {study.name!r} has no link {link}")
    if found.revoked is not None and not is_off(found):
        raise Conflict(f"link {link} was revoked, which is for good: create another one")
    return found


def _change(
    connection: sa.Connection, *, study: Study, link: int, wanted: dict[str, Any], answers: AnswerTable
) -> None:
    key = _existing(study, link, link_in(connection, link, study.id))
    wanted = dict(wanted)
    on = wanted.pop("on", None)
    if on is not None and on != (key.revoked is None):
        wanted |= {"off": not on, "revoked": None if on else log.clock()}
    had_caps = any(key.settings.get(name) for name in SETTINGS)
    changed = change_key(connection, key, **wanted)
    if not had_caps and any(changed.settings.get(name) for name in SETTINGS):
        count_votes(connection, study, link, answers)


def _said(key: Key, wanted: dict[str, Any]) -> str:
    """What is changed, as sentences for the list of changes; without the names of people, who may be forgotten."""
    kind = "link to the results" if key.kind == "results" else "voting link"
    link, said = f"{'invitation' if key.settings.get('invited') else kind} {key.id}", []
    if "on" in wanted:
        said.append(f"Switched the {link} {'on' if wanted['on'] else 'off'}.")
    if "name" in wanted:
        said.append(f"Renamed the {link} to {called(wanted['name'])}.")
    if "expires" in wanted:
        end = moment(wanted["expires"])
        said.append(f"The {link} {'never ends' if end is None else f'ends at {end[:16]} UTC'}.")
    for name in WORDS.keys() & wanted.keys():
        said.append(f"The {link} {WORDS[name].format('any number of' if wanted[name] is None else wanted[name])}.")
    return " ".join(said)


def called(name: str) -> str:
    """Return the title of a link for the list of changes."""
    return f"“{name}”" if name else "without a title"


@router.delete("/api/studies/{study}/links/{link}", status_code=204)
def revoke_link(study: Found, link: LinkId, service: ServiceDep, key: Admin) -> Response:
    """Revoke a link of any kind for good, with immediate effect. Its votes are kept."""
    with changing(study, key, f"Revoked link {link}."):
        if not revoke_key(service.storage, link, LINKS, study.id):
            raise NotFound(f"study {study.name!r} has no link {link}")
    return Response(status_code=204)


@router.get("/api/studies/{study}/results-links", response_model=ResultsLinks)
def results_links(study: Found, service: ServiceDep) -> Json:
    """List the links to the results, without their secrets."""
    found = list_keys(service.storage, ("results",), study.id)
    return {"links": [{"id": key.id, "name": key.name, **times_of(key)} for key in found]}


@router.post("/api/studies/{study}/results-links", response_model=ResultsLinkMade, status_code=201)
def new_results_link(
    study: Found, body: NewResultsLink, request: Request, response: Response, service: ServiceDep, key: Admin
) -> Json:
    """Create a link that shows the results and nothing else: no voters, comments or items. It is shown only once."""
    with changing(study, key, f"Created the link to the results {called(body.name)}."):
        made, secret = make_key(service.storage, "results", body.name, study_id=study.id, lasts=lasts(body.expires))
    response.headers.update(NO_STORE)
    shown = {"id": made.id, "name": made.name, "expires": moment(made.expires)}
    return shown | _secret(service, request, "results", secret)
