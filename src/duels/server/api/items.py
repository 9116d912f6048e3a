"""The bodies of responses about single items and about tags.

Items: prompts, and what the arms produced for them.

Single items and tags: what the answers say about them, and removing or replacing an item.
"""

from bisect import bisect_right
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from ...errors import format_count
from ...study.answers.item_results import (
    Order,
    arm_counts,
    browse,
    comments_on,
    count_fitting,
    count_missing_outputs,
    count_removed_items,
    find_items,
    get_item,
    items_with,
    neighbors,
    rows_of,
    tag_results,
    tags_by_item,
)
from ...study.items import (
    Item,
    add_items,
    allow_scripts,
    clear_items,
    count_items,
    no_item,
    read_items,
    remove_item,
    replace_item,
    scripts_allowed,
)
from ...study.study import Study
from ..auth import Admin, Caller, ServiceDep, record_change
from ..http.errors import error_responses
from ..state import Service
from .results import UPLOAD, plain
from .schemas import ItemOut, Items, ItemsAdded, Scripts
from .studies import Found, FoundAny, StudyPath

Share = Annotated[
    float | None,
    Field(description="The share of comparable pairs of answers that contradict each other; null if there are none."),
]


Comments = Annotated[int, Field(description="How many answers about it have a comment.")]


class ItemSummary(BaseModel):
    """An item, and what the answers say about it. This describes the answers; it is not a verdict."""

    number: int
    prompt: Annotated[str, Field(description="The first 400 characters of it.")]
    tags: list[str]
    answers: int
    leader: Annotated[str | None, Field(description="The arm with the most wins minus losses, if it is one arm.")]
    level: Annotated[bool, Field(description="Whether several arms are level at the top.")]
    disagreement: Share
    contradictions: Annotated[int, Field(description="Pairs of answers that decide for different arms …")]
    compared: Annotated[
        int, Field(description="… of how many pairs of answers of different voters about the same two arms.")
    ]
    comment_count: Comments


class RemovedItemsOut(BaseModel):
    items: int
    answers: int


class ItemResults(BaseModel):
    items: list[ItemSummary]
    total: Annotated[int, Field(description="How many items were found.")]
    page: int
    pages: int
    removed: Annotated[
        RemovedItemsOut, Field(description="All items with answers that were removed or replaced, and these answers.")
    ]


class ArmOnItem(BaseModel):
    arm: str
    wins: int
    losses: int
    ties: int


class CommentOut(BaseModel):
    """What somebody wrote with an answer. Who it was is not said."""

    first: Annotated[str, Field(description="The arm that was preferred, if one was.")]
    second: str
    answer: Literal["first", "tie", "both_bad"]
    comment: str


class ItemDetails(ItemOut):
    """An item with everything that is known about it."""

    answers: int
    leader: str | None
    level: bool
    disagreement: Share
    contradictions: int
    compared: int
    comment_count: Comments
    arms: Annotated[list[ArmOnItem], Field(description="The arms with answers about this item.")]
    comments: Annotated[list[CommentOut], Field(description="The newest 100 of them.")]
    previous: int | None
    next: int | None


class ItemReplaced(BaseModel):
    number: Annotated[
        int,
        Field(
            description="Of the replacement: another one if somebody was shown the old item and more than its tags "
            "changes, else the same."
        ),
    ]


class TagScoreOut(BaseModel):
    arm: str
    answers: int
    score: Annotated[float, Field(description="Wins and half of the ties, divided by the answers.")]
    lower: Annotated[float, Field(description="The lower end of Wilson's interval of 95 % for the score.")]
    upper: float


class TagOut(BaseModel):
    """What the answers say about the items of a tag. This describes the answers; it is not a verdict."""

    tag: str
    items: int
    answers: int
    winner: Annotated[
        str | None, Field(description="The arm whose interval is above all others; null if there is none.")
    ]
    close: Annotated[
        bool,
        Field(
            description="Whether the intervals of the two arms with the best scores overlap, though both have at least "
            "20 answers. Without this and a winner, the answers are too few."
        ),
    ]
    scores: list[TagScoreOut]


class TagResults(BaseModel):
    tags: Annotated[list[TagOut], Field(description="Those with the most answers first.")]


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
        with record_change(study, key, f"Turned scripts in {study._log.pages} {'on' if body.scripts else 'off'}."):
            allow_scripts(study, body.scripts)
    return {"scripts": body.scripts}


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
        raise no_item(study._log, number)  # removed just now
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

    If somebody was shown the item, the replacement gets a new number, and the old item is removed: the answers
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
