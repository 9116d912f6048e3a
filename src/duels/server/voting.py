"""The routes of voting links: whoever has a link may vote, and nothing else."""

import asyncio
import html
import json
import secrets
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import JSONResponse, Response

from ..storage import tables
from ..storage.tables import studies
from ..study import ballots, log
from ..study.ballots import Ballot, Caps, VoterProgress
from ..study.items import Output
from ..study.study import Study
from .caps import caps_of
from .errors import Refused, shape
from .keys import Key, Ticket, key_in, read_ticket, sign_ticket, voter_digest
from .rendering import bytes_of, html_of
from .schemas import MoreVotes, Progress, Question, Vote
from .security import VOTER, Here, address_of
from .service import Service

router = APIRouter(tags=["voting"], responses=shape(400, 403, 404, 409, 413, 422, 429, 503))
LinkPath = Annotated[str, Path(min_length=1, max_length=100, description="The secret of the link.")]
TicketPath = Annotated[str, Path(min_length=1, max_length=100, description="From a question's `src`.")]
VOTER_LASTS = 400 * 24 * 3600
OUTPUT_LASTS = 600  # seconds; the voting page gets new addresses whenever it is loaded
_PAGE = (  # without origin: it can neither reach this server's cookies nor load anything from any host
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; media-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
FRAME = f"sandbox; {_PAGE}"
# No policy forbids scripts to call other computers by WebRTC: what they can see must be no secret.
SCRIPTED = f"sandbox allow-scripts; script-src 'unsafe-inline'; {_PAGE}"
IMAGE = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"


class Link(NamedTuple):
    """A voting link that is in force, and what its pages need to know."""

    key: Key
    study: str  # its name
    scripts: bool  # whether scripts in HTML outputs run
    signing: str  # the secret that the addresses of outputs are signed with


class Voter:
    """Somebody with a link, told apart by a random cookie, of which only a digest is kept."""

    def __init__(
        self, service: Service, link: Link, secret: str, cookie: str, caps: Caps | None, is_new: bool = False
    ) -> None:
        self.service, self.link, self.key, self.study = service, link, link.key, link.study
        self._secret, self._cookie, self.caps, self.is_new = secret, cookie, caps, is_new
        self.digest = voter_digest(link.key, cookie)

    @property
    def goal(self) -> int:
        return int(self.key.settings["votes"])

    def found(self) -> Study:
        return self.service.study(self.study)

    def standing(self, more: bool = False) -> VoterProgress:
        standing = ballots.voter_progress(self.found(), self.digest, self.goal, more)
        if standing.done in (None, "goal") and ballots.is_full(self.service.storage, self.caps):
            return standing._replace(done="full")
        return standing

    def remember(self, response: Response) -> None:
        """Have the browser keep the cookie, for this link only: at others it is somebody else."""
        secure, path = self.service.public_url.startswith("https:"), f"/api/vote/{quote(self._secret)}"
        response.set_cookie(VOTER, self._cookie, VOTER_LASTS, path=path, httponly=True, samesite="lax", secure=secure)

    def progress(self, standing: VoterProgress) -> dict[str, Any]:
        return {"title": self.key.name, "goal": self.goal, **standing._asdict()}


def shown(content: dict[str, Any]) -> Response:
    return JSONResponse(content, headers={"Cache-Control": "no-store"})


async def opened(service: Service, link: str) -> Link:
    """A link by its secret, if it is in force."""
    key = await asyncio.to_thread(service.key, link)
    if key is None or key.kind != "vote":
        raise Refused(404, "this voting link does not work, or not any more: ask for another one")
    return await asyncio.to_thread(_link_of, service, key)


def _link_of(service: Service, key: Key) -> Link:
    with service.storage.lock, service.storage.translate_errors():
        return _link_in(service.storage.connection(), key)


def _link_in(connection: sa.Connection, key: Key) -> Link:
    chosen = sa.select(studies.c.name, studies.c.settings).where(studies.c.id == key.study_id)
    name, settings = connection.execute(chosen).one()
    return Link(key, name, bool(json.loads(settings).get("scripts")), _signing(connection))


def _signing(connection: sa.Connection) -> str:
    return connection.execute(sa.select(tables.secrets.c.value).where(tables.secrets.c.name == "outputs")).scalar_one()


async def voter(request: Request, link: LinkPath, service: Here) -> Voter:
    """Who votes; refuses links that are not in force, and haste.

    A cookie that this link did not give is not taken: nobody can choose what they are told apart by.
    """
    found = await opened(service, link)
    cookie, address = request.cookies.get(VOTER, ""), address_of(request)
    caps = caps_of(found.key, link, address)
    voter = Voter(service, found, link, cookie, caps)
    known = bool(cookie) and await asyncio.to_thread(_is_known, service, voter.digest)
    number = str(found.key.id)
    service.rates.spend(("address", number, address), service.limits.address)
    if known:
        service.rates.spend(("voter", number, voter.digest), service.limits.voter)
    return voter if known else Voter(service, found, link, secrets.token_urlsafe(16), caps, is_new=True)


def _is_known(service: Service, digest: str) -> bool:
    with service.storage.lock, service.storage.translate_errors():
        return ballots.voter_of(service.storage.connection(), digest) is not None


Voting = Annotated[Voter, Depends(voter)]


def side(output: Output | str, src: str) -> dict[str, Any]:
    """One side of a question: safe HTML, or where to get it."""
    if isinstance(output, str):
        return {"kind": "name", "html": html.escape(output), "src": None}
    if output.kind in ("image", "html"):
        return {"kind": output.kind, "html": None, "src": src}
    return {"kind": output.kind, "html": html_of(output), "src": None}


def question(voter: Voter, ballot: Ballot | None, standing: VoterProgress) -> dict[str, Any]:
    """What a voter is shown. Blocks."""
    expires = int(log.clock()) + OUTPUT_LASTS
    if ballot is None:
        return {**voter.progress(standing), "duel": None, "prompt": None, "a": None, "b": None}
    prompt, shown = ballots.outputs_of(voter.found(), ballot)
    tickets = (Ticket(voter.key.id, ballot.duel.id, number, expires) for number in range(2))
    a, b = (side(one, f"/output/{sign_ticket(voter.link.signing, ticket)}") for one, ticket in zip(shown, tickets))
    return {**voter.progress(standing), "duel": ballot.duel.id, "prompt": prompt, "a": a, "b": b}


@router.get("/api/vote/{link}", response_model=Progress)
async def progress(voter: Voting) -> Response:
    """How far this voter is."""
    return shown(voter.progress(await asyncio.to_thread(voter.standing)))


@router.post("/api/vote/{link}/ask", response_model=Question)
async def ask(voter: Voting, body: MoreVotes | None = None) -> Response:
    """The next question, or the one that was not answered yet; none when there is nothing left to vote on."""
    standing = await asyncio.to_thread(voter.standing, bool(body and body.more))
    ballot = None
    if standing.done is None:
        ballot = await voter.service.write(
            voter.key, voter.study, lambda found: ballots.asking(found, voter.key.id, voter.digest)
        )
    response = shown(await asyncio.to_thread(question, voter, ballot, standing))
    if voter.is_new and ballot is not None:
        voter.remember(response)
    return response


@router.post("/api/vote/{link}/tell", response_model=Progress)
async def tell(voter: Voting, body: Vote) -> Response:
    """The answer to a question of this voter's. It is on disk when this answers."""
    await voter.service.write(
        voter.key,
        voter.study,
        lambda found: ballots.telling(found, voter.digest, body.duel, body.winner, voter.caps),
    )
    return shown(voter.progress(await asyncio.to_thread(voter.standing)))


@router.post("/api/vote/{link}/undo", response_model=Question)
async def undo(voter: Voting) -> Response:
    """Take back this voter's last answer, and show its question again."""

    ballot = await voter.service.write(
        voter.key, voter.study, lambda found: ballots.undoing(found, voter.digest, voter.caps)
    )
    standing = await asyncio.to_thread(voter.standing, True)
    return shown(await asyncio.to_thread(question, voter, ballot, standing))


@router.get("/output/{ticket}", response_class=Response)
async def output(request: Request, service: Here, ticket: TicketPath) -> Response:
    """An image, or a page for a sandboxed frame, of a question that was asked; for ten minutes."""
    try:
        link, admitted = await asyncio.to_thread(_admitted, service, ticket)
        service.rates.spend(("address", str(link.key.id), address_of(request)), service.limits.address)
        return await asyncio.to_thread(_output, service, link, admitted)
    except Refused as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        said = str(error)
        words = f"<!doctype html><title>Output</title><p>{html.escape(said[:1].upper() + said[1:])}.</p>"
        headers = {"Content-Security-Policy": FRAME, "Cache-Control": "no-store"}
        return Response(words, error.status, headers, "text/html; charset=utf-8")


def _output(service: Service, link: Link, ticket: Ticket) -> Response:
    study = service.study(link.study)
    _, outputs = ballots.outputs_of(study, ballots.ballot_of(study, ticket.duel))
    chosen = outputs[ticket.side]
    if isinstance(chosen, str) or chosen.kind not in ("image", "html"):
        raise Refused(404, "this output is neither an image nor a page: reload the voting page")
    kind, content = bytes_of(chosen, link.scripts)
    policy = IMAGE if chosen.kind == "image" else SCRIPTED if link.scripts else FRAME
    headers = {"Content-Security-Policy": policy, "Cache-Control": f"private, max-age={OUTPUT_LASTS}"}
    return Response(content, media_type=kind, headers=headers)


def _admitted(service: Service, text: str) -> tuple[Link, Ticket]:
    with service.storage.lock, service.storage.translate_errors():
        connection = service.storage.connection()
        ticket = read_ticket(_signing(connection), text)
        if ticket is None:
            raise Refused(404, "this address of an output has expired: reload the voting page")
        key = key_in(service.storage, connection, ticket.key)
        if key is None or key.kind != "vote":
            raise Refused(404, "this voting link does not work, or not any more: ask for another one")
        return _link_in(connection, key), ticket
