"""Items: prompts, and what the arms produced for them."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ...study.items import add_items, allow_scripts, clear_items, count_items, list_items, read_items, scripts_allowed
from ..errors import error_responses
from ..schemas import Items, ItemsAdded, Scripts
from ..security import Admin, Caller, ServiceDep
from .results import UPLOAD, plain
from .studies import Found, StudyPath

router = APIRouter(tags=["items"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))


@router.post("/api/studies/{study}/items", response_model=ItemsAdded, status_code=201, openapi_extra=UPLOAD)
async def upload(study: StudyPath, request: Request, service: ServiceDep, key: Caller) -> dict[str, int]:
    """Add items from JSON lines or CSV. If one of them has an error, none is added."""
    content = plain(await request.body())

    def work() -> dict[str, int]:
        found = service.study(study)
        return {"items": add_items(found, read_items(content)), "total": count_items(found)}

    return await service.background.upload(work)


@router.get("/api/studies/{study}/items", response_model=Items)
def items(
    study: Found,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> dict[str, object]:
    """List the items in pages: send `next` as `after` to get the next page."""
    found = list_items(study, after, limit + 1)
    page = [
        {"number": number, "prompt": item.prompt, "outputs": {a: o._asdict() for a, o in item.outputs.items()}}
        for number, item in found[:limit]
    ]
    return {"items": page, "next": found[limit - 1][0] if len(found) > limit else None}


@router.delete("/api/studies/{study}/items", status_code=204)
def clear(study: Found, key: Admin) -> Response:
    """Remove all items; the answers are kept. This needs an admin's token and cannot be undone."""
    clear_items(study)
    return Response(status_code=204)


@router.get("/api/studies/{study}/scripts", response_model=Scripts)
def scripts(study: Found) -> dict[str, bool]:
    """Get whether scripts in HTML outputs run when voters see them. The default is off."""
    return {"scripts": scripts_allowed(study)}


@router.post("/api/studies/{study}/scripts", response_model=Scripts)
def set_scripts(study: Found, body: Scripts, key: Admin) -> dict[str, bool]:
    """Turn scripts in HTML outputs on or off.

    An output with scripts can send what it shows, and the voter's network address, to other computers. Browsers cannot
    prevent all of this. The output cannot see the voting link or who votes.
    """
    allow_scripts(study, body.scripts)
    return {"scripts": body.scripts}
