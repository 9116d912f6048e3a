"""Single items and tags: what the answers say about them, and removing or replacing an item."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from ...study.item_browser import (
    Order,
    browse,
    count_removed_items,
    get_item,
    items_with,
    neighbors,
    rows_of,
    tags_by_item,
)
from ...study.item_results import arm_counts, comments_on, tag_results
from ...study.item_rows import no_item
from ...study.items import Item, read_items, remove_item, replace_item
from ...study.study import Study
from ..errors import error_responses
from ..item_schemas import ItemDetails, ItemReplaced, ItemResults, TagResults
from ..security import Admin, ServiceDep, record_change
from ..service import Service
from .items import Search, Tag, item_out
from .results import UPLOAD, plain
from .studies import Found, StudyPath

router = APIRouter(tags=["items"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))
Number = Annotated[int, Path(ge=1, le=2**31 - 1, description="The item's number.")]
MOST_COMMENTS = 100


@router.get("/api/studies/{study}/item-results", response_model=ItemResults)
def results(
    study: Found,
    service: ServiceDep,
    search: Search = "",
    tag: Tag = "",
    order: Order = "number",
    page: Annotated[int, Query(ge=1, le=2**31 - 1)] = 1,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> dict[str, Any]:
    """List who won on each item, and where voters disagree.

    The order is by `number`, by the most `answers` or `comments`, or by `disagreement`: where voters disagree most
    comes first.
    """
    return results_of(service, study, search, tag, order, page, limit)


def results_of(
    service: Service, study: Study, search: str, tag: str, order: Order, page: int, limit: int
) -> dict[str, Any]:
    """Return a page of items with their results. Blocks."""
    table = service.answers(study)
    found = browse(
        study,
        table,
        search=search.strip(),
        tag=tag or None,
        order=order,
        page=page,
        limit=limit,
        counts=lambda: service.item_counts(study, table),
    )
    items = {"items": [row._asdict() for row in found.items]}
    return found._asdict() | items | {"removed": count_removed_items(study, table)._asdict()}


@router.get("/api/studies/{study}/tag-results", response_model=TagResults)
def tags(study: Found, service: ServiceDep) -> dict[str, Any]:
    """List how the arms do on the items of each tag."""
    return {"tags": tags_of_study(service, study)}


def tags_of_study(service: Service, study: Study) -> list[dict[str, Any]]:
    """Return the results of each tag. Blocks."""
    found = tag_results(service.answers(study), tags_by_item(study))
    return [one._asdict() | {"scores": [score._asdict() for score in one.scores]} for one in found]


@router.get("/api/studies/{study}/items/{number}", response_model=ItemDetails)
def item(study: Found, number: Number, service: ServiceDep) -> dict[str, Any]:
    """Get an item with all outputs, how each arm did on it, and what voters wrote about it."""
    return details_of(service, study, number)


def details_of(service: Service, study: Study, number: int) -> dict[str, Any]:
    """Return everything about an item. Blocks.

    Raises:
        NotFound: If there is no such item.
    """
    shown, table = item_out(number, get_item(study, number)), service.answers(study)
    summary = rows_of(study, table, [number])
    if not summary:
        raise no_item(study, number)  # removed just now
    return {
        **summary[0]._asdict(),
        **shown,
        "arms": [one._asdict() for one in arm_counts(table, [number])[number]],
        "comments": [one._asdict() for one in comments_on(table, number, MOST_COMMENTS)],
        **neighbors(study, number)._asdict(),
    }


@router.delete("/api/studies/{study}/items/{number}", status_code=204)
def remove(study: Found, number: Number, key: Admin) -> Response:
    """Remove an item; its answers are kept and count. This needs an admin's token and cannot be undone.

    A study on exactly its items refuses it after its first question.
    """
    with record_change(study, key, f"Removed item {number:,}."):
        remove_item(study, number)
    return Response(status_code=204)


@router.put("/api/studies/{study}/items/{number}", response_model=ItemReplaced, openapi_extra=UPLOAD)
async def replace(
    study: StudyPath, number: Number, request: Request, service: ServiceDep, key: Admin
) -> dict[str, int]:
    """Replace an item by another one, as JSON lines or CSV. This needs an admin's token and cannot be undone.

    If somebody was shown the item, the replacement gets a number of its own, and the old item is removed: the answers
    were about what was shown. If only its tags change, it keeps its number and its answers.
    """
    content = plain(await request.body())
    items = await service.background.read(request, key, "the items", read_items, content)

    def work() -> dict[str, int]:
        found = service.study(study)
        before = [item for _, item in items_with(found, [number])]
        what = "Changed the tags of" if _limit_items(items) == _limit_items(before) else "Replaced"
        with record_change(found, key, f"{what} item {number:,}."):
            return {"number": replace_item(found, number, items)}

    return await service.background.upload(work)


def _limit_items(items: list[Item]) -> list[Item]:
    """Items as voters see them: without their tags."""
    return [item._replace(tags=()) for item in items]
