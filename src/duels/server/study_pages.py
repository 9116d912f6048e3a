"""The pages of one study, a tab each."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from ..continuous.tuning import Tuning
from ..study.item_browser import count_missing_outputs
from ..study.outcome import alarm_line, money
from .api.invitations import invitations_out
from .api.links import links_out, results_links
from .api.settings import changes_of, settings
from .api.tunings import template
from .pages import PageRoute, find_signed_in, page, sentence, to_signin
from .security import ServiceDep
from .service import AnyStudy, Json, Service
from .sharing import describe_sharing
from .tuning_pages import own_glance
from .voter_pages import show_voters

ARMS_PER_PAGE = 200  # rows of the tables of arms
TABS = {"": "Results", "items": "Items", "voters": "Voters", "share": "Share", "settings": "Settings"}
CHANGES_PER_PAGE = 20
Number = Query(max_length=9)
PageNumber = Annotated[str, Query(alias="page", max_length=20)]

router = APIRouter(include_in_schema=False, route_class=PageRoute)


@router.get("/studies/{study}")
def study_page(request: Request, study: str, service: ServiceDep) -> Response:
    """Show the results of a study. A script gets the numbers again whenever the study changes."""
    if find_signed_in(request, service) is None:
        return to_signin(request)
    found = service.any_study(study)
    judges = show_judges(service, found)
    if isinstance(found, Tuning):
        glance = own_glance(service, found)
        return tab_page(
            request, service, found, "", "tuning.html", glance=glance, judges=judges, template=template(found)
        )
    return tab_page(request, service, found, "", "study.html", glance=service.glance(found), judges=judges)


@router.get("/studies/{study}/voters")
def voters_page(
    request: Request,
    study: str,
    service: ServiceDep,
    search: Annotated[str, Query(max_length=200)] = "",
    sort: Annotated[str, Query(max_length=20)] = "answers",
    reverse: Annotated[str, Query(max_length=5)] = "",
    after: Annotated[str, Number] = "",
) -> Response:
    """Show the voters of a study: answers, agreement, sides and pace, and who stands out."""
    if find_signed_in(request, service) is None:
        return to_signin(request)
    found = service.any_study(study)
    return tab_page(
        request,
        service,
        found,
        "voters",
        "study_voters.html",
        **show_voters(service, found, search, sort, reverse == "1", int(after) if after.isdecimal() else 0),
    )


@router.get("/studies/{study}/share")
def share_page(request: Request, study: str, service: ServiceDep) -> Response:
    """Show the voting links of a study, and ways to get its votes in and out."""
    if find_signed_in(request, service) is None:
        return to_signin(request)
    found = service.any_study(study)
    known = describe_sharing(service, found)
    return tab_page(
        request,
        service,
        found,
        "share",
        "study_share.html",
        links=links_out(known),
        invitations=invitations_out(known),
        results_links=results_links(found, service)["links"],
        settings=settings(found),
    )


@router.get("/studies/{study}/settings")
def settings_page(
    request: Request, study: str, service: ServiceDep, at: PageNumber = "1", before: Annotated[str, Number] = ""
) -> Response:
    """Show what can be changed, and who changed it; `at` is the page of the table of arms, if there are many."""
    if find_signed_in(request, service) is None:
        return to_signin(request)
    found = service.any_study(study)
    arms = service.describe(found)["arms"]
    about = {"template": template(found)} if isinstance(found, Tuning) else {"missing": count_missing_outputs(found)}
    pages, on_page = pages_of(len(arms), at)
    numbered = [{"number": n, **arm} for n, arm in enumerate(arms, 1)][on_page]
    return tab_page(
        request,
        service,
        found,
        "settings",
        "study_settings.html",
        settings=settings(found),
        changes=changes_of(found, service, int(before) if before.isdecimal() else None, CHANGES_PER_PAGE),
        before=before,
        arms=numbered,
        pages=pages,
        was_asked=bool(found.history().left),
        **about,
    )


def tab_page(
    request: Request, service: Service, study: AnyStudy, tab: str, name: str, status: int = 200, **known: object
) -> Response:
    """Render one tab of a study, with what all tabs need. Blocks."""
    tabs = {tab: title for tab, title in TABS.items() if tab != "items"} if isinstance(study, Tuning) else TABS
    return page(request, service, name, status, study=service.describe(study), tabs=tabs, tab=tab, **known)


def pages_of(arms: int, at: str) -> tuple[Json, slice]:
    """Return what to say about the pages of a table of arms, and which rows are on page `at`."""
    pages = max(1, -(-arms // ARMS_PER_PAGE))
    number = min(int(at) if at.isdecimal() else 1, pages) or 1
    said = {"number": number, "of": pages, "each": ARMS_PER_PAGE, "arms": arms}
    return said, slice((number - 1) * ARMS_PER_PAGE, number * ARMS_PER_PAGE)


def show_judges(service: Service, study: AnyStudy) -> Json:
    """Return calls and cost of the study's judges as text, how often each repeats its answer, and biases. Blocks."""
    found = service.judges(study)
    bias = [sentence(alarm_line(one)) for one in found.positions if one.biased]
    cost = money(found.cost) if found.cost else ""
    repeatability = [(one.judge or "", f"{one.same:,} of {one.repeats:,}") for one in found.repeatability]
    return {"calls": found.calls, "cost": cost, "bias": bias, "repeatability": repeatability}
