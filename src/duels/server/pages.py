"""The pages: signing in, studies, one study, voting, the API's documentation."""

import asyncio
import copy
import csv
import importlib.util
import io
import re
from collections.abc import Callable, Collection, Coroutine, Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from starlette.exceptions import HTTPException

from ..errors import DamagedStudy, DuelsError, UnknownName
from ..policies import BUILT_IN, policy
from ..study.items import scripts_allowed
from ..study.verdict import headline
from .api.items_and_links import links
from .api.tokens import KINDS, token_out
from .errors import RESTORE, Refused, message_of, of_duels, of_http
from .keys import Key, csrf_token, list_keys, make_key, revoke_key
from .security import NOBODY, SESSION, SESSION_LASTS, Here, address_of, secret_of
from .service import Service
from .vega import vega_bundle
from .voting import opened

HERE = Path(__file__).parent
PAIRS_SHOWN = 300  # rows of the table of pairs; the API has all of them
ARMS_SHOWN = 200  # rows of the tables of arms on one page
ABOUT = {  # policies that the form says something about
    "rucb": "a good default, with guarantees",
    "dts": "if perhaps no arm beats all others",
    "dts_plus": "least regret where one arm beats all",
    "rmed1": "least regret where one arm beats all",
    "merge_dts": "for fifty arms or more",
    "ccb": "if perhaps no arm beats all others",
}
HEADINGS = {404: "There is no such page", 429: "Too many attempts", 503: "The database does not answer"}


class PageRoute(APIRoute):
    """A route for people: what goes wrong is said on a page."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def explained(request: Request) -> Response:
            try:
                return await handle(request)
            except DamagedStudy as error:
                return damaged_page(request, error)
            except UnknownName as error:
                return unknown_page(request, error)
            except DuelsError as error:
                plain = of_duels(request, error)
                heading = HEADINGS.get(plain.status_code, "That did not work")
                words = message_of(error)
                response = page(
                    request, request.app.state.service, "error.html", plain.status_code, heading=heading, words=words
                )
                if "retry-after" in plain.headers:
                    response.headers["Retry-After"] = plain.headers["retry-after"]
                return response

        return explained


router = APIRouter(include_in_schema=False, route_class=PageRoute)
templates = Jinja2Templates(HERE / "templates")


def damaged_page(request: Request, error: DamagedStudy) -> Response:
    """One study cannot be read: what happened, and what to do."""
    known = {"study": request.path_params.get("study"), "words": error, "restore": RESTORE}
    return page(request, request.app.state.service, "damaged.html", of_duels(request, error).status_code, **known)


def unknown_page(request: Request, error: UnknownName) -> Response:
    heading, words = HEADINGS[404], str(error)
    if error.kind == "study":
        heading = "There is no such study"
        words = f"No study is called “{request.path_params.get('study', '')}”. It may have been deleted."
    status = of_duels(request, error).status_code
    return page(request, request.app.state.service, "error.html", status, heading=heading, words=words)


async def of_http_for_people(request: Request, error: Exception) -> Response:
    """A page where a browser asked for one, else the one shape of errors."""
    assert isinstance(error, HTTPException)
    plain = of_http(request, error)
    if "text/html" not in request.headers.get("accept", "") or request.url.path.startswith("/api/"):
        return plain
    heading = HEADINGS.get(plain.status_code, "That did not work")
    words = "There is nothing at this address." if plain.status_code == 404 else error.detail
    return page(request, request.app.state.service, "error.html", plain.status_code, heading=heading, words=words)


def add_files(app: FastAPI) -> None:
    """Our own files, and those of the libraries that the pages use; nothing comes from another host."""
    offline = importlib.util.find_spec("fastapi_offline")
    assert offline is not None
    assert offline.origin is not None
    app.mount("/static/swagger", StaticFiles(directory=Path(offline.origin).parent / "static"), "swagger")
    app.add_exception_handler(HTTPException, of_http_for_people)
    app.mount("/static", StaticFiles(directory=HERE / "static"), "static")


def signed_in(request: Request, service: Service) -> Key | None:
    """Whose session this is. Blocks."""
    if service.open_to_all:
        return NOBODY
    secret, by_cookie = secret_of(request)
    key = service.key(secret) if secret and by_cookie else None
    return key if key is not None and key.kind == "session" else None


def page(request: Request, service: Service, name: str, status: int = 200, **known: Any) -> HTMLResponse:
    """A template with what all pages need."""
    session = request.cookies.get(SESSION, "")
    known |= {"csrf": csrf_token(session) if session else "", "open_to_all": service.open_to_all}
    response = templates.TemplateResponse(request, name, known, status_code=status)
    response.headers["Cache-Control"] = "no-store"
    return response


@router.get("/static/vega.js")
async def vega() -> Response:
    """Vega, Vega-Lite and vega-embed, as vl-convert carries them."""
    script = await asyncio.to_thread(vega_bundle)
    return Response(script, media_type="text/javascript", headers={"Cache-Control": "public, max-age=86400"})


@router.get("/favicon.ico")
def favicon() -> Response:
    return RedirectResponse("/static/icon.svg", 308)


@router.get("/signin")
def signin_page(request: Request, service: Here) -> Response:
    """The page that takes a token, also from the part of a link that browsers do not send: `/signin#TOKEN`."""
    if service.open_to_all:
        return RedirectResponse("/", 303)
    return page(request, service, "signin.html", next=_own_path(request.query_params.get("next", "")))


def _own_path(path: str) -> str:
    """Where to go after signing in: an address of this server, never another one."""
    return path if re.fullmatch(r"/(?![/\\])[\x21-\x7e]*", path) else "/"


def _to_signin(request: Request) -> Response:
    return RedirectResponse(f"/signin?next={quote(request.url.path, safe='')}", 303)


@router.post("/signin")
async def signin(request: Request, service: Here) -> Response:
    """Begin a session with an admin's token."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refused(403, "signing in from another site's page is not taken: open this server's own")
    who = ("signin", address_of(request))
    service.rates.spend(who, service.limits.signin)  # before anything is read: who guesses learns nothing meanwhile
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    token = (form.get("token") or [""])[0].strip()
    after = _own_path((form.get("next") or ["/"])[0])
    key = await asyncio.to_thread(service.key, token) if token else None
    if key is None or key.kind != "admin":
        return page(request, service, "signin.html", 401, failed=True, next=after)
    service.rates.give_back(who)
    _, secret = await asyncio.to_thread(
        lambda: make_key(service.storage, "session", key.name, parent_id=key.id, lasts=SESSION_LASTS)
    )
    response = RedirectResponse(after, 303)
    secure = service.public_url.startswith("https:")
    response.set_cookie(SESSION, secret, int(SESSION_LASTS), path="/", httponly=True, samesite="lax", secure=secure)
    return response


@router.post("/signout")
def signout(request: Request, service: Here) -> Response:
    """End the session."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refused(403, "signing out from another site's page is not taken: use this server's own")
    key = signed_in(request, service)
    if key is not None and key is not NOBODY:
        revoke_key(service.storage, key.id, ("session",))
    response = RedirectResponse("/signin", 303)
    response.delete_cookie(SESSION, path="/")
    return response


@router.get("/")
def studies_page(request: Request, service: Here) -> Response:
    """All studies, and a form for another one."""
    if signed_in(request, service) is None:
        return RedirectResponse("/signin", 303)
    found = []
    for shown in service.listed():
        kind, words = "damaged", "This study is damaged"
        if shown["damaged"] is None:
            verdict = service.verdict(service.study(shown["name"]))
            kind, words = verdict["kind"], headline(verdict, shown["retired"])
        found.append(shown | {"kind": kind, "headline": words})
    return page(
        request,
        service,
        "studies.html",
        studies=found[::-1],
        policies=[
            {"name": name, "about": ABOUT.get(name), "needs_horizon": policy(name).needs_horizon} for name in BUILT_IN
        ],
        tokens=[token_out(key) for key in list_keys(service.storage, KINDS)],
    )


@router.get("/studies/{study}")
def study_page(
    request: Request, study: str, service: Here, at: Annotated[str, Query(alias="page", max_length=20)] = "1"
) -> Response:
    """One study. Its script gets this page again whenever the study changes, and takes over what is different.

    at: which of the pages of the tables of arms, where there are many.
    """
    if signed_in(request, service) is None:
        return _to_signin(request)
    found = service.study(study)
    described, shown = service.described(found), service.board(found)
    most_met = sorted(shown["pairs"], key=lambda pair: -pair["duels"])
    arms = described["arms"]
    pages = max(1, -(-len(arms) // ARMS_SHOWN))
    number = min(int(at) if at.isdecimal() else 1, pages) or 1
    on_page = slice((number - 1) * ARMS_SHOWN, number * ARMS_SHOWN)
    return page(
        request,
        service,
        "study.html",
        study=described,
        board=shown,
        leaderboard=shown["leaderboard"][on_page],
        champions=(shown["champions"] or [])[on_page],
        arms=[{"number": n, **arm} for n, arm in enumerate(arms, 1)][on_page],
        pages={"number": number, "of": pages, "each": ARMS_SHOWN, "arms": len(arms)},
        headline=headline(shown["verdict"], described["retired"]),
        figures={name: figure(chart) for name, chart in service.charts(shown).items()},
        pairs=most_met[:PAIRS_SHOWN],
        links=links(found, service)["links"],
        scripts=scripts_allowed(found),
    )


def figure(chart: dict[str, Any]) -> dict[str, Any]:
    """A chart for a page: its title is text of the page, and its tables are rows.

    Vega reads CSV by making a function out of text, which the page's policy forbids.
    """
    chart = copy.deepcopy(chart)  # the service keeps it
    title = chart.pop("title")
    words = [field["field"] for field in _parts(chart, "field") if field.get("type") in ("nominal", "ordinal")]
    for data in _parts(chart, "format"):
        if data["format"] == {"type": "csv"}:
            del data["format"]
            data["values"] = rows_of(data["values"], words)
    notes = title["subtitle"][1:]  # the first names the study
    return {"title": title["text"], "notes": notes, "chart": chart}


def rows_of(table: str, words: Collection[str]) -> list[dict[str, Any]]:
    """The rows of a CSV table, with numbers but for the columns that are words."""
    rows = list(csv.DictReader(io.StringIO(table, newline="")))
    return [{name: cell if name in words else _number(cell) for name, cell in row.items()} for row in rows]


def _number(cell: str) -> float | str | None:
    try:
        return float(cell) if cell else None
    except ValueError:
        return cell


def _parts(chart: Any, having: str) -> Iterator[dict[str, Any]]:
    """All objects of a specification that have such a key, its data excepted."""
    if isinstance(chart, dict):
        if having in chart:
            yield chart
        chart = [part for key, part in chart.items() if key != "values"]
    if isinstance(chart, list):
        for part in chart:
            yield from _parts(part, having)


@router.get("/vote/{link}")
async def vote_page(request: Request, link: str, service: Here) -> Response:
    """Two outputs side by side."""
    try:
        found = await opened(service, link)
    except Refused:
        return page(request, service, "gone.html", 404)
    return page(request, service, "vote.html", link=link, title=found.key.name, scripts=found.scripts)


@router.get("/docs")
def docs_page(request: Request, service: Here) -> Response:
    """The API, documented by itself."""
    return page(request, service, "docs.html")
