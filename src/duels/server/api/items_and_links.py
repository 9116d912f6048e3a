"""Items: what the arms produced; and the links by which people vote on it."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from ...study.ballots import votes_taken
from ...study.duels import iso_time
from ...study.items import add_items, allow_scripts, clear_items, count_items, list_items, read_items, scripts_allowed
from ..caps import SETTINGS
from ..errors import Refused, shape
from ..keys import Key, list_keys, make_key, revoke_key
from ..schemas import Items, ItemsAdded, LinkMade, Links, NewLink, Scripts
from ..security import Admin, Caller, Here
from .results import UPLOAD, plain
from .studies import Found, StudyPath

router = APIRouter(tags=["arena"], responses=shape(400, 401, 403, 404, 409, 413, 422, 429, 503))


@router.post("/api/studies/{study}/items", response_model=ItemsAdded, status_code=201, openapi_extra=UPLOAD)
async def upload(study: StudyPath, request: Request, service: Here, key: Caller):
    """Add items, as JSON lines or CSV: all of them or, after an error, none."""
    content = plain(await request.body())

    def work() -> dict[str, int]:
        found = service.study(study)
        return {"items": add_items(found, read_items(content)), "total": count_items(found)}

    return await service.hub.upload(work)


@router.get("/api/studies/{study}/items", response_model=Items)
def items(
    study: Found,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
):
    """The items, in pages: say `next` as `after` to go on."""
    found = list_items(study, after, limit + 1)
    page = [
        {"number": number, "prompt": item.prompt, "outputs": {a: o._asdict() for a, o in item.outputs.items()}}
        for number, item in found[:limit]
    ]
    return {"items": page, "next": found[limit - 1][0] if len(found) > limit else None}


@router.delete("/api/studies/{study}/items", status_code=204)
def clear(study: Found, key: Admin) -> Response:
    """Remove all items; the answers stay. It takes an admin's token: there is no way back."""
    clear_items(study)
    return Response(status_code=204)


@router.get("/api/studies/{study}/scripts", response_model=Scripts)
def scripts(study: Found):
    """Whether scripts in HTML outputs run when voters see them; at first they do not."""
    return {"scripts": scripts_allowed(study)}


@router.post("/api/studies/{study}/scripts", response_model=Scripts)
def set_scripts(study: Found, body: Scripts, key: Admin):
    """Turn scripts in HTML outputs on or off.

    An output with scripts can send what it shows, and its voter's network address, to other computers: browsers give
    no way to forbid all of it. It sees neither the voting link nor who votes.
    """
    allow_scripts(study, body.scripts)
    return {"scripts": body.scripts}


def _link(key: Key, taken: int) -> dict[str, Any]:
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
def links(study: Found, service: Here):
    """The voting links; their secrets are known only to whoever made them."""
    found = list_keys(service.storage, ("vote",), study.id)
    taken = votes_taken(service.storage, [key.id for key in found])
    return {"links": [_link(key, taken.get(key.id, 0)) for key in found]}


@router.post("/api/studies/{study}/links", response_model=LinkMade, status_code=201)
def new_link(study: Found, body: NewLink, request: Request, service: Here, key: Admin):
    """A link by which anybody may vote, and do nothing else. The secret is given only now."""
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
def revoke_link(study: Found, link: Annotated[int, Path(ge=1, le=2**31 - 1)], service: Here, key: Admin) -> Response:
    """From now on the link opens nothing."""
    if not revoke_key(service.storage, link, ("vote",), study.id):
        raise Refused(404, f"study {study.name!r} has no voting link {link}")
    return Response(status_code=204)
