"""Invitations: one voting link per person, whose votes have the person's name."""

from functools import partial
from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter, Request, Response

from ...errors import Conflict, NotFound
from ...storage.storage import Write
from ...study import log
from ...study.answers import AnswerTable
from ...study.invitations import check_free, check_names, find_invited_voter, give_link, invite
from ...study.voter_settings import voter_settings
from ..caps import check_per_voter
from ..errors import error_responses
from ..keys import change_key, draft_key, insert_key, link_in
from ..link_schemas import InvitationMade, Invitations, InvitationsMade, NewInvitations
from ..security import Admin, ServiceDep, record_change
from ..service import AnyStudy, Json, Service
from ..sharing import Shared, address, describe_sharing, lasts, use_of
from .links import NO_STORE, LinkId
from .studies import FoundAny

router = APIRouter(tags=["links"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))


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
    drafts = [draft_key("vote", body.name, study_id=study.id, lasts=ends, settings=settings) for _ in names]
    operation = partial(
        _invite, study=study, names=names, drafts=[values for values, _ in drafts], known=service.answers(study)
    )
    with record_change(study, key, f"Invited {'1 person' if len(names) == 1 else f'{len(names)} people'}."):
        made = service.storage.write(Write(operation, study.id))
    response.headers.update(NO_STORE)
    found = zip(made, names, (secret for _, secret in drafts))
    return {"invitations": [_describe_made(service, request, number, name, secret) for number, name, secret in found]}


def _invite(
    connection: sa.Connection, *, study: AnyStudy, names: list[str], drafts: list[dict[str, Any]], known: AnswerTable
) -> list[int]:
    study.current(connection)
    study.storage.flush(connection)
    check_free(connection, study, names, known)
    made = [insert_key(connection, values=values).id for values in drafts]
    for name, number in zip(names, made):
        invite(connection, study, name, number)
    return made


def _describe_made(service: Service, request: Request, number: int, name: str, secret: str) -> Json:
    return {"id": number, "voter": name, "url": address(service, request, "vote", secret), "secret": secret}


@router.post("/api/studies/{study}/invitations/{link}/renew", response_model=InvitationMade, status_code=201)
def renew(study: FoundAny, link: LinkId, request: Request, response: Response, service: ServiceDep, key: Admin) -> Json:
    """Give an invited person a new link with the same settings. The old one is revoked, and their votes are kept."""
    with record_change(study, key, f"Replaced the link of the invitation {link}."):
        number, name, secret = service.storage.write(Write(partial(_renew, study=study, link=link), study.id))
    response.headers.update(NO_STORE)
    return _describe_made(service, request, number, name, secret)


def _renew(connection: sa.Connection, *, study: AnyStudy, link: int) -> tuple[int, str, str]:
    old, voter = link_in(connection, link, study.id), find_invited_voter(connection, link)
    if old is None or voter is None:
        raise NotFound(f"study {study.name!r} has no invitation {link}")
    if old.expires is not None and old.expires <= log.clock():
        raise Conflict(f"invitation {link} has expired: change when it ends first")
    left = None if old.expires is None else old.expires - log.clock()
    settings = {name: value for name, value in old.settings.items() if name != "off"}
    values, secret = draft_key("vote", old.name, study_id=study.id, lasts=left, settings=settings)
    made = insert_key(connection, values=values)
    give_link(connection, link, made.id)
    change_key(connection, old, off=False, revoked=log.clock())
    return made.id, str(voter), secret
