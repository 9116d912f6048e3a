"""The pages: sign-in, the list of studies, voting, and the API's documentation."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from fastapi.templating import Jinja2Templates
from jinja2.ext import Extension
from markupsafe import Markup
from starlette.exceptions import HTTPException

from ...errors import DamagedStudy, DuelsError, NotFound, UnknownName, format_count, join_units, percent
from ...policies import BUILT_IN, load_policy
from ...study.items import Output
from ...study.stats.verdict import describe_answers, headline
from ...study.voter_settings import VoterSettings
from ...votes.item_tables import NAMES, PROMPTS
from ..api.settings import changes_of
from ..api.tokens import KINDS, token_out
from ..auth import NOBODY, SESSION, SESSION_LASTS, ServiceDep, address_of, secret_of
from ..downloads import file_name
from ..http.errors import BEHIND_LINKS, RESTORE, Refused, answer_to, respond
from ..http.files import page_file, place
from ..keys import Key, csrf_token, list_keys, make_key, revoke_key
from ..state import Json, Service
from .vote import EXPIRED_LINK, OFF_LINK, find_invited_name, open_link, page_of

HERE = Path(__file__).parents[1]
ABOUT = {  # hints in the form for a new study
    "verdict": "the fewest answers until a verdict",
    "rucb": "low regret while it runs",
    "dts": "if perhaps no arm beats all others",
    "dts_plus": "low regret if one arm beats all others",
    "rmed1": "low regret if one arm beats all others",
    "merge_dts": "quick to compute with many arms",
    "ccb": "if perhaps no arm beats all others",
}
MOST_CHANGES = 100  # that the page of tokens shows
HEADINGS = {404: "Page not found", 429: "Too many attempts", 503: "The database is unavailable"}


class PageRoute(APIRoute):
    """A route for people: errors are shown as pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the handler of the route."""
        handle = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except DuelsError as error:
                return error_page(request, error)

        return handle_errors


def sentence(text: str) -> str:
    """Return an error message as a sentence: with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


class JoinUnits(Extension):
    """Joins numbers and their units in what templates say; for what they are given there is the filter `join_units`."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the source of a template, in which a number and a percent sign stay on one line."""
        return re.sub(r"(?<=[\d}]) (?=%(?!\}))", "\u00a0", source)


ESTIMATED = 200  # of the newest studies, the list says how they stand
router = APIRouter(include_in_schema=False, route_class=PageRoute)
templates = Jinja2Templates(HERE / "templates")
templates.env.filters["sentence"] = sentence
templates.env.filters["file_name"] = file_name
templates.env.filters["percent"] = percent
templates.env.filters["join_units"] = join_units
templates.env.add_extension(JoinUnits)
templates.env.globals["files"] = place
templates.env.globals["item_columns"] = dict.fromkeys(PROMPTS, "prompt") | NAMES


def error_page(request: Request, error: DuelsError | HTTPException) -> Response:
    """Return the page that shows an error."""
    service, study = request.app.state.service, request.path_params.get("study", "")
    status, message, _, headers = answer_to(request, error)
    behind_link = request.url.path.startswith(BEHIND_LINKS)
    if isinstance(error, DamagedStudy) and not behind_link:
        return page(request, service, "damaged.html", status, study=study, words=error, restore=RESTORE)
    heading = HEADINGS.get(status, "Something went wrong")
    if isinstance(error, UnknownName) and error.kind == "study" and not behind_link:
        heading, message = "Study not found", f"There is no study “{study}”. It may have been deleted."
    elif isinstance(error, HTTPException):
        message = "There is nothing at this address." if status == 404 else error.detail
    response = page(request, service, "error.html", status, heading=heading, words=message, bare=behind_link)
    response.headers.update(headers)
    return response


async def http_error(request: Request, error: Exception) -> Response:
    """Answer an HTTP error with a page if a browser asked for one, else with JSON."""
    assert isinstance(error, HTTPException)
    if "text/html" not in request.headers.get("accept", "") or request.url.path.startswith("/api/"):
        return respond(request, error)
    return error_page(request, error)


def add_files(app: FastAPI) -> None:
    """Serve the files that the pages need; nothing comes from another host."""
    app.add_exception_handler(HTTPException, http_error)


def find_signed_in(request: Request, service: Service) -> Key | None:
    """Return the session of a request. Blocks."""
    if service.open_to_all:
        return NOBODY
    secret, by_cookie = secret_of(request)
    key = service.key(secret) if secret and by_cookie else None
    return key if key is not None and key.kind == "session" else None


def page(request: Request, service: Service, name: str, status: int = 200, **known: object) -> HTMLResponse:
    """Render a template, with what all pages need."""
    session = request.cookies.get(SESSION, "")
    known |= {"csrf": csrf_token(session) if session else "", "open_to_all": service.open_to_all}
    response = templates.TemplateResponse(request, name, known, status_code=status)
    response.headers["Cache-Control"] = "no-store"
    return response


@router.get("/static/{digest}/{name}")
async def file(request: Request, digest: str, name: str) -> Response:
    """Serve a file that pages load."""
    return await page_file(request, digest, name)


@router.get("/favicon.ico")
def favicon() -> Response:
    """Redirect to the icon."""
    return RedirectResponse(f"{place()}/icon.svg", 307)


@router.get("/signin")
def signin_page(request: Request, service: ServiceDep) -> Response:
    """Show the form for a token. A script also takes it from `/signin#TOKEN`, which browsers do not send."""
    if service.open_to_all:
        return RedirectResponse("/", 303)
    return page(request, service, "signin.html", next=_own_path(request.query_params.get("next", "")))


def _own_path(path: str) -> str:
    """Return where to go after signing in: a path of this server, never another address."""
    return path if re.fullmatch(r"/(?![/\\])[\x21-\x7e]*", path) else "/"


def to_signin(request: Request) -> Response:
    """Redirect to the form for a token, and back afterwards."""
    asked = quote(request.scope["path"]) + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(f"/signin?next={quote(asked, safe='')}", 303)


@router.post("/signin")
async def signin(request: Request, service: ServiceDep) -> Response:
    """Start a session with an admin's token."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refused(403, "this sign-in comes from another site: use the page of this server")
    who = ("signin", address_of(request))
    service.rates.spend(who, service.limits.signin)  # before the token is checked, so that guessing is slow
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
def signout(request: Request, service: ServiceDep) -> Response:
    """End the session."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refused(403, "this sign-out comes from another site: use the page of this server")
    key = find_signed_in(request, service)
    if key is not None and key is not NOBODY:
        revoke_key(service.storage, key.id, ("session",))
    response = RedirectResponse("/signin", 303)
    response.delete_cookie(SESSION, path="/")
    return response


@router.get("/")
def studies_page(request: Request, service: ServiceDep) -> Response:
    """List all studies, with a form for a new one."""
    if find_signed_in(request, service) is None:
        return RedirectResponse("/signin", 303)
    found = []
    for newer, shown in enumerate(service.list_studies()[::-1]):
        kind, words, progress = "damaged", "This study is damaged", None
        facts = format_count(shown["answers"] or 0, "answer")
        if shown["space"] is not None:
            kind, words = "tuning", f"Tunes {' · '.join(shown['space'])}"
        elif shown["damaged"] is None and newer >= ESTIMATED:
            kind, words = "older", "Open it to see how it stands"
        elif shown["damaged"] is None:
            study = service.study(shown["name"])
            verdict = service.verdict(study)
            kind, words = verdict["kind"], headline(verdict, shown["retired"])
            facts, progress = describe_answers(verdict), progress_of(verdict, shown)
        found.append(shown | {"kind": kind, "headline": words, "facts": facts, "progress": progress})
    return page(
        request,
        service,
        "studies.html",
        studies=found,
        policies=[{"about": ABOUT.get(name), "policy": load_policy(name)} for name in BUILT_IN],
    )


@router.get("/tokens")
def tokens_page(request: Request, service: ServiceDep) -> Response:
    """List the tokens, with a form for a new one."""
    session = find_signed_in(request, service)
    if session is None:
        return to_signin(request)
    known = list_keys(service.storage, KINDS)
    admins = [key.id for key in known if key.kind == "admin" and key.revoked is None]
    ends = {key: "everybody" for key in admins if len(admins) == 1} | {session.parent_id: "you"}
    ends |= {key: "you and everybody" for key in admins if len(admins) == 1 and key == session.parent_id}
    tokens = [token_out(key) | {"ends": ends.get(key.id, "")} for key in known]
    changes = changes_of(None, service, None, MOST_CHANGES)["changes"]
    return page(request, service, "tokens.html", tokens=tokens, changes=changes)


def progress_of(verdict: Json, study: Json) -> int | None:
    """Return how far a study is on the way to its verdict, in percent; None if that cannot be said."""
    if verdict["kind"] != "not yet":
        return 100
    answers, to_go = int(study["answers"]), verdict["answers_to_go"]
    return min(99, round(100 * answers / (answers + int(to_go)))) if to_go else None


@router.get("/vote/{link}")
async def vote_page(request: Request, link: str, service: ServiceDep) -> Response:
    """Show the page on which people vote."""
    try:
        found = await open_link(service, link)
    except NotFound as error:
        why = {OFF_LINK: "off", EXPIRED_LINK: "ended"}.get(str(error), "unknown")
        return page(request, service, "gone.html", 404, why=why, about="voting")
    base = f"/api/vote/{quote(link, safe='')}"
    voter = await service.background.vote(find_invited_name, service, found)
    settings, instructions = found.settings, await service.background.render(instructions_of(found.settings))
    return show_voting_page(request, service, base, found.key.name, settings, instructions, found.scripts, voter=voter)


def instructions_of(settings: VoterSettings) -> Output:
    """Return what voters read before they answer."""
    return Output("markdown", settings.instructions)


def show_voting_page(
    request: Request,
    service: Service,
    base: str,
    title: str,
    settings: VoterSettings,
    instructions: str,
    scripts: bool,
    preview: str = "",
    voter: str = "",
) -> Response:
    """Return the page on which people vote.

    Args:
        request: The request.
        service: The application's.
        base: Where its script asks and answers.
        title: Of the page; by default the question.
        settings: Those of the study.
        instructions: Those in the settings as safe HTML.
        scripts: Whether scripts in outputs run.
        preview: For a preview, where to go back to.
        voter: The name of an invited person.
    """
    return page(
        request,
        service,
        "vote.html",
        base=base,
        title=title,
        scripts=scripts,
        settings=settings,
        version=page_of(settings),
        instructions=Markup(instructions) if settings.instructions else "",
        preview=preview,
        voter=voter,
    )


@router.get("/help")
def help_page(request: Request, service: ServiceDep) -> Response:
    """Explain studies, items, voting and results; it is for everybody, since results are shared with anybody."""
    return page(request, service, "help.html")


@router.get("/docs")
def docs_page(request: Request, service: ServiceDep) -> Response:
    """Show the documentation of the API."""
    return page(request, service, "docs.html")
