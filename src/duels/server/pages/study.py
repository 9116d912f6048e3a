"""The pages of a study that tunes parameters, and settings as its template shows them.

What the page of a study's voters shows.

The pages of one study, a tab each.
"""

import json
from collections.abc import Callable
from functools import singledispatch
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from ...continuous.spaces import Setting
from ...continuous.tuning.study import TuningStudy
from ...errors import InvalidInput
from ...storage.storage import Kind
from ...study.answers.item_results import count_missing_outputs
from ...study.items import scripts_allowed
from ...study.judging.result import alarm_line, money
from ...study.voters.report import SORTS, order_voters, remarks_of, rows_of, summary_of
from ..api.links import crowds, describe_sharing, invitations_out, links_out, results_links
from ..api.settings import changes_of, settings
from ..api.tunings import template
from ..auth import ServiceDep
from ..state import AnyStudy, Json, Service
from .base import PageRoute, find_signed_in, page, sentence, to_signin
from .vote import BEST_SIDES, output_response, render_settings

router = APIRouter(include_in_schema=False, route_class=PageRoute)


@router.get("/studies/{study}/rendered")
def show_rendered(
    request: Request, study: str, service: ServiceDep, setting: Annotated[str, Query(max_length=100_000)] = ""
) -> Response:
    """Show a setting as voters see it, in a frame: a page that can load nothing."""
    if find_signed_in(request, service) is None:
        return to_signin(request)
    found = service.load_tuning(study)
    try:
        wanted = json.loads(setting)
    except (ValueError, RecursionError):
        raise InvalidInput("the setting is not JSON: expected a value for each parameter") from None
    (shown,) = render_settings(found, [found.space.check(wanted)])
    response = output_response(shown, scripts_allowed(found))
    response.headers["Cache-Control"] = "no-store"
    return response


def address_of_setting(study: str, setting: Setting) -> str:
    """Return the address of a setting's page, for people who are signed in."""
    values = urlencode({"setting": json.dumps(setting, ensure_ascii=False)})
    return f"/studies/{quote(study, safe='')}/rendered?{values}"


def with_frames(glance: Json, study: TuningStudy, address: Callable[[str], str]) -> Json:
    """Add to the results where the best setting and the runner-up are shown as voters see them. Blocks.

    Args:
        glance: The results.
        study: The study.
        address: Of a setting's page, by what it is in `best`.

    Returns:
        The results with `frames`, the addresses by what is there, or null without a template or an answer; and
        `scripts`, whether scripts in the pages run.
    """
    has_pages = glance["best"] is not None and study.template is not None
    frames = {which: address(which) for which in BEST_SIDES} if has_pages else None
    return glance | {"frames": frames, "scripts": scripts_allowed(study)}


def glance_with_frames(service: Service, study: TuningStudy) -> Json:
    """Return the results of a study for people who are signed in. Blocks."""
    glance = service.glance(study)
    return with_frames(glance, study, lambda which: address_of_setting(study.name, glance["best"][which]))


EACH = 50  # voters on a page
HEADERS = {  # column: its title, and what comes first if one sorts by it
    "voter": ("Voter", "by name"),
    "answers": ("Answers", "most answers first"),
    "agreement": ("Agreement", "least agreement first"),
    "left": ("Left side", "most uneven first"),
    "pace": ("Pace", "fastest first"),
    "last": ("Last answer", "latest first"),
}
LARGEST = ("answers", "left", "last")  # columns whose largest values come first


def show_voters(service: Service, study: AnyStudy, search: str, sort: str, reverse: bool, after: int) -> Json:
    """Return a page of a study's voters, with links to other pages and orders. Blocks."""
    found = service.voters(study)
    sort = sort if sort in SORTS else "answers"
    chosen = order_voters(found, search, sort, reverse)
    after = min(after, max(0, len(chosen) - 1) // EACH * EACH)

    def link(**changed: object) -> str:
        wanted: Json = {"search": search, "sort": sort, "reverse": "1" if reverse else "", "after": after} | changed
        kept = {name: value for name, value in wanted.items() if value and (name, value) != ("sort", "answers")}
        return "?" + urlencode(kept)

    return {
        "summary": summary_of(found),
        "remarks": remarks_of(found),
        "notices": crowds(service.storage, study._log.id),
        "void": study._log.history().void,
        "search": search,
        "sort": sort,
        "reverse": reverse,
        "found": len(chosen),
        "voters": rows_of(found, chosen[after : after + EACH]),
        "from_": after + 1,
        "headers": [
            {
                "name": name,
                "title": title,
                "hint": f"{hint}, reversed" if name == sort and not reverse else hint,
                "link": link(sort=name, reverse="1" if name == sort and not reverse else "", after=0),
                "order": ("descending" if (name in LARGEST) != reverse else "ascending") if name == sort else None,
            }
            for name, (title, hint) in HEADERS.items()
            if name != "agreement" or study._log.repeats_questions  # else each question has settings of its own
        ],
        "earlier": link(after=after - EACH) if after else None,
        "later": link(after=after + EACH) if after + EACH < len(chosen) else None,
    }


ARMS_PER_PAGE = 200  # rows of the tables of arms
TABS = {"": "Results", "items": "Items", "voters": "Voters", "share": "Share", "settings": "Settings"}
LACKING: dict[Kind, set[str]] = {"arms": set(), "settings": {"items"}}  # tabs
RESULTS: dict[Kind, str] = {"arms": "study.html", "settings": "tuning.html"}
CHANGES_PER_PAGE = 20
Number = Query(max_length=9)
PageNumber = Annotated[str, Query(alias="page", max_length=20)]


@router.get("/studies/{study}")
def study_page(request: Request, study: str, service: ServiceDep) -> Response:
    """Show the results of a study. A script gets the numbers again whenever the study changes."""
    if find_signed_in(request, service) is None:
        return to_signin(request)
    found = service.any_study(study)
    known: dict[str, Any] = {
        "glance": own_glance(found, service),
        "judges": show_judges(service, found),
    } | known_about_results(found)
    return tab_page(request, service, found, "", RESULTS[found._log.row.kind], **known)


@singledispatch
def own_glance(study: Any, service: Service) -> Json:
    """Return the results at a glance, for the owner. Blocks."""
    return service.glance(study)


@own_glance.register
def _glance_of_settings(study: TuningStudy, service: Service) -> Json:
    return glance_with_frames(service, study)


@singledispatch
def known_about_results(study: Any) -> dict[str, Any]:
    """Return what the page of results shows beside the glance. Blocks."""
    return {}


@singledispatch
def known_about_settings(study: Any) -> dict[str, Any]:
    """Return what the page of settings shows of what is compared. Blocks."""
    return {"missing": count_missing_outputs(study)}


@known_about_results.register
@known_about_settings.register
def _known_about_template(study: TuningStudy) -> dict[str, Any]:
    return {"template": template(study)}


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
        was_asked=bool(found._log.history().left),
        **known_about_settings(found),
    )


def tab_page(
    request: Request, service: Service, study: AnyStudy, tab: str, name: str, status: int = 200, **known: object
) -> Response:
    """Render one tab of a study, with what all tabs need. Blocks."""
    tabs = {tab: title for tab, title in TABS.items() if tab not in LACKING[study._log.row.kind]}
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
