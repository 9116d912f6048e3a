"""Links: with a voting link people vote without an account."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from ...errors import NotFound
from ...study.ballots import votes_taken
from ...study.duels import iso_time
from ..caps import SETTINGS
from ..errors import error_responses
from ..keys import Key, list_keys, make_key, revoke_key
from ..schemas import LinkMade, Links, NewLink
from ..security import Admin, ServiceDep
from .studies import Found

router = APIRouter(tags=["links"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))


def _link(key: Key, taken: int) -> dict[str, object]:
    caps = {name: key.settings.get(name) for name in SETTINGS}
    return {
        "id": key.id,
        "name": key.name,
        "votes": key.settings["votes"],
        **caps,
        "votes_taken": taken if any(caps.values()) else None,
        "created": iso_time(key.created),
        "revoked": None if key.revoked is None else iso_time(key.revoked),
    }


@router.get("/api/studies/{study}/links", response_model=Links)
def links(study: Found, service: ServiceDep) -> dict[str, list[dict[str, object]]]:
    """List the voting links, without their secrets."""
    found = list_keys(service.storage, ("vote",), study.id)
    taken = votes_taken(service.storage, [key.id for key in found])
    return {"links": [_link(key, taken.get(key.id, 0)) for key in found]}


@router.post("/api/studies/{study}/links", response_model=LinkMade, status_code=201)
def new_link(study: Found, body: NewLink, request: Request, service: ServiceDep, key: Admin) -> dict[str, object]:
    """Create a link with which anybody can vote, and do nothing else. The secret is shown only once."""
    settings = body.model_dump(include={"votes", *SETTINGS})
    made, secret = make_key(service.storage, "vote", body.name, study_id=study.id, settings=settings)
    base = service.public_url or service.shared_url or str(request.base_url).rstrip("/")
    return {
        "id": made.id,
        "name": made.name,
        **settings,
        "url": f"{base}/vote/{secret}",
        "secret": secret,
    }


@router.delete("/api/studies/{study}/links/{link}", status_code=204)
def revoke_link(
    study: Found, link: Annotated[int, Path(ge=1, le=2**31 - 1)], service: ServiceDep, key: Admin
) -> Response:
    """Revoke a voting link, with immediate effect."""
    if not revoke_key(service.storage, link, ("vote",), study.id):
        raise NotFound(f"study {study.name!r} has no voting link {link}")
    return Response(status_code=204)
