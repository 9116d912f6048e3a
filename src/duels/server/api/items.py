"""Items: prompts, and what the arms produced for them."""

from bisect import bisect_right
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from ...errors import format_count
from ...study.item_browser import count_fitting, count_missing_outputs, find_items, items_with
from ...study.items import (
    Item,
    add_items,
    allow_scripts,
    clear_items,
    count_items,
    read_items,
    scripts_allowed,
)
from ..errors import error_responses
from ..schemas import Items, ItemsAdded, Scripts
from ..security import Admin, Caller, ServiceDep, record_change
from .results import UPLOAD, plain
from .studies import Found, FoundAny, StudyPath

Search = Annotated[str, Query(max_length=200, description="A part of the prompt.")]
Tag = Annotated[str, Query(max_length=60, description="Only items with this tag.")]
Kind = Annotated[
    Literal["text", "markdown", "code", "image", "html"], Query(description="Of outputs that do not state a kind.")
]

MOST_TEXT = 8_000_000  # characters of outputs in a page
router = APIRouter(tags=["items"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))


@router.post("/api/studies/{study}/items", response_model=ItemsAdded, status_code=201, openapi_extra=UPLOAD)
async def upload(
    study: StudyPath, request: Request, service: ServiceDep, key: Caller, kind: Kind = "text"
) -> dict[str, Any]:
    """Add items from JSON lines or CSV. If one of them has an error, none is added.

    A prompt that the study has is not added again: its item gets the outputs that it lacks, such as those of a new arm.
    """
    content = plain(await request.body())
    items = await service.background.read(request, key, "the items", read_upload, content, kind)

    def work() -> dict[str, Any]:
        found = service.study(study)
        with record_change(found, key, f"Uploaded {format_count(len(items), 'item')}."):
            added = add_items(found, items)
        return {**added._asdict(), "total": count_items(found), "missing": count_missing_outputs(found)}

    return await service.background.upload(work)


def read_upload(content: bytes, kind: str) -> list[Item]:
    """Return the items of an upload."""
    return read_items(content, kind=kind, fewest=1)


@router.get("/api/studies/{study}/items", response_model=Items)
def items(
    study: Found,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    search: Search = "",
    tag: Tag = "",
) -> dict[str, object]:
    """List the items in pages: send `next` as `after` to get the next page.

    A page has at most `limit` items, and fewer if their outputs have more than 8 million characters. `search` is a part
    of the prompt, in which the letters a to z match in either case. `tag` must match exactly.
    """
    numbers = find_items(study, search, tag or None)
    start = bisect_right(numbers, after)
    end = start + count_fitting(study, numbers[start : start + limit], MOST_TEXT)
    found = items_with(study, numbers[start:end])
    return {
        "items": [item_out(*one) for one in found],
        "next": numbers[end - 1] if end < len(numbers) else None,
        "total": len(numbers),
    }


def item_out(number: int, item: Item) -> dict[str, object]:
    """Return an item as the API shows it."""
    outputs = {arm: output._asdict() for arm, output in item.outputs.items()}
    return {"number": number, "prompt": item.prompt, "outputs": outputs, "tags": list(item.tags)}


@router.delete("/api/studies/{study}/items", status_code=204)
def clear(study: Found, key: Admin) -> Response:
    """Remove all items; the answers are kept. This needs an admin's token and cannot be undone."""
    with record_change(study, key, "Removed all items."):
        clear_items(study)
    return Response(status_code=204)


@router.get("/api/studies/{study}/scripts", response_model=Scripts)
def scripts(study: FoundAny) -> dict[str, bool]:
    """Get whether scripts in HTML outputs run when voters see them. The default is off."""
    return {"scripts": scripts_allowed(study)}


@router.post("/api/studies/{study}/scripts", response_model=Scripts)
def set_scripts(study: FoundAny, body: Scripts, key: Admin) -> dict[str, bool]:
    """Turn scripts in HTML outputs on or off.

    An output with scripts can send what it shows, and the voter's network address, to other computers. Browsers cannot
    prevent all of this. The output cannot see the voting link or who votes.
    """
    if body.scripts != scripts_allowed(study):
        where = "the template" if study.row.is_tuning else "HTML outputs"
        with record_change(study, key, f"Turned scripts in {where} {'on' if body.scripts else 'off'}."):
            allow_scripts(study, body.scripts)
    return {"scripts": body.scripts}
