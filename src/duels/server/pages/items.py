"""The pages of a study's items: the tab that lists them, and one with all outputs of an item."""

from typing import Annotated, get_args
from urllib.parse import urlencode

import numpy as np
import sqlalchemy as sa
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from markupsafe import Markup

from ...errors import NotFound
from ...storage.tables import studies
from ...study.answers.item_results import Order, comments_on, count_missing_outputs, get_item, was_removed
from ...study.items import Output, list_items, scripts_allowed
from ...study.study import Study
from ..api.items import MOST_COMMENTS, details_of, results_of, tags_of_study
from ..auth import Admin, ServiceDep
from ..rendering import bytes_of, show_alike
from ..state import Json, Service
from .base import PageRoute, find_signed_in, to_signin
from .study import tab_page
from .vote import FRAME, IMAGE, SCRIPTED

ITEMS_PER_PAGE = 50
OUTPUTS_PER_PAGE = 12
MOST_TAGS = 100  # rows of the table of tags; the API has all of them
MOST_COLUMNS = 6  # arms with columns of their own in that table
ORDERS = dict(zip(get_args(Order), ("number", "most answers", "most disagreement", "most comments")))
Text = Annotated[str, Query(max_length=200)]
Whole = Annotated[int, Path(ge=1, le=2**31 - 1)]

router = APIRouter(include_in_schema=False, route_class=PageRoute)
outputs = APIRouter(include_in_schema=False)


@router.get("/studies/{study}/items")
def items_page(
    request: Request,
    study: str,
    service: ServiceDep,
    search: Text = "",
    tag: Text = "",
    order: Text = "number",
    page: Text = "1",
) -> Response:
    """Show the items of a study: search, tags, who won, and where voters disagree."""
    if find_signed_in(request, service) is None:
        return to_signin(request)
    found = service.study(study)
    chosen: Order = order if order in ORDERS else "number"  # type: ignore[assignment]
    listed = results_of(service, found, search, tag, chosen, whole(page), ITEMS_PER_PAGE)
    tags = tags_of_study(service, found)
    asked = {"search": search, "tag": tag, "order": chosen if chosen != "number" else ""}
    return tab_page(
        request,
        service,
        found,
        "items",
        "study_items.html",
        scripts=scripts_allowed(found),
        listed=listed,
        asked=asked,
        orders=ORDERS,
        order=chosen,
        tags=tags[:MOST_TAGS],
        more_tags=len(tags) - MOST_TAGS,
        tag_names=sorted({one["tag"] for one in tags} | {tag} - {""}),
        missing=count_missing_outputs(found),
        usual_kind=usual_kind(found),
        most_missing=MOST_COLUMNS,
        columns=list(found.arms) if len(found.arms) <= MOST_COLUMNS else [],
        query=lambda **changed: query({**asked, **changed}),
    )


def usual_kind(study: Study) -> str:
    """Return what the outputs of a study are, if all of its first item are text of one kind; else nothing. Blocks."""
    kinds = {output.kind for _, item in list_items(study, limit=1) for output in item.outputs.values()}
    return kinds.pop() if len(kinds) == 1 and kinds <= {"text", "markdown", "code"} else ""


@router.get("/studies/{study}/items/{number}")
def item_page(
    request: Request, study: str, number: str, service: ServiceDep, arms: Text = "", page: Text = "1"
) -> Response:
    """Show the outputs of an item side by side, and how each did."""
    if find_signed_in(request, service) is None:
        return to_signin(request)
    found = service.study(study)
    if whole(number, 0) < 1:
        raise NotFound("there is no such item: items have numbers from 1")
    if was_removed(found, whole(number)):
        return show_removed_page(request, service, found, whole(number))
    details = details_of(service, found, whole(number))
    cards = cards_of(service, found, details, arms)
    pages = max(1, -(-len(cards) // OUTPUTS_PER_PAGE))
    at = min(whole(page), pages)
    shown = cards[(at - 1) * OUTPUTS_PER_PAGE : at * OUTPUTS_PER_PAGE]
    outputs = {card["arm"]: Output(**details["outputs"][card["arm"]]) for card in shown}
    inside = [one for one in outputs.values() if one.kind not in ("image", "html")]
    rendered = show_alike({one: service.background.renderer.html(one) for one in inside})
    for card in shown:
        card["html"] = Markup(rendered.get(outputs[card["arm"]], ""))
    return tab_page(
        request,
        service,
        found,
        "items",
        "study_item.html",
        item=details,
        active_arms=found.arms,
        cards=shown,
        total=len(cards),
        arms=arms,
        page=at,
        pages=pages,
        query=lambda **changed: query({"arms": arms, **changed}),
        scripts=scripts_allowed(found),
    )


def show_removed_page(request: Request, service: Service, study: Study, number: int) -> Response:
    """Show what is known about an item that was removed: its answers, and what voters wrote. Blocks."""
    table = service.answers(study)
    answers = int(np.count_nonzero(table.item == number))
    comments = [one._asdict() for one in comments_on(table, number, MOST_COMMENTS)]
    item = {"number": number, "answers": answers, "comments": comments}
    return tab_page(request, service, study, "items", "study_item_removed.html", 404, item=item)


def cards_of(service: Service, study: Study, details: Json, search: str) -> list[Json]:
    """Return the outputs of an item whose arm is looked for, those that won most first. Blocks."""
    place = {arm: k for k, arm in enumerate(study._log.history().names)}
    counts = {one["arm"]: one for one in details["arms"]}
    none = {"wins": 0, "losses": 0, "ties": 0}
    cards = [
        {
            "kind": output["kind"],
            "src": f"/item-output/{study._log.id}/{details['number']}/{place[arm]}",
            **none,
            **counts.get(arm, {}),
            "arm": arm,
        }
        for arm, output in details["outputs"].items()
        if arm in place and search.strip().casefold() in arm.casefold()
    ]
    return sorted(cards, key=lambda card: (card["losses"] - card["wins"], place[card["arm"]]))


def query(values: Json) -> str:
    """Return the part of an address after its path, without what is empty."""
    kept = {name: value for name, value in values.items() if value not in ("", None)}
    return f"?{urlencode(kept)}" if kept else "?"


def whole(text: str, otherwise: int = 1) -> int:
    """Return a number of an address, which anybody may have typed."""
    return max(int(text), otherwise) if text.isdecimal() and len(text) < 10 else otherwise


@outputs.get("/item-output/{number_of_study}/{number}/{place}", response_class=Response)
def item_output(
    number_of_study: Whole, number: Whole, place: Annotated[int, Path(ge=0, le=10_000)], service: ServiceDep, key: Admin
) -> Response:
    """Get an output for the page of its item: an image, or a page for a sandboxed frame.

    An output with scripts can read its own address, so that has numbers instead of names.
    """
    study = _study(service, number_of_study)
    names, item = study._log.history().names, get_item(study, number)
    output = item.outputs.get(names[place]) if place < len(names) else None
    if output is None or output.kind not in ("image", "html"):
        raise NotFound("there is no image or page here: reload the page of the item")
    scripts = scripts_allowed(study)
    kind, content = bytes_of(output, scripts)
    policy = IMAGE if output.kind == "image" else SCRIPTED if scripts else FRAME
    return Response(content, media_type=kind, headers={"Content-Security-Policy": policy, "Cache-Control": "no-store"})


def _study(service: Service, number: int) -> Study:
    with service.storage.read_connection() as connection:
        name = connection.execute(sa.select(studies.c.name).where(studies.c.id == number)).scalar()
    if name is None:
        raise NotFound("there is no such study: it may have been deleted")
    return service.study(name)


router.routes += outputs.routes
