"""The routes of voting links: whoever has a link may vote, and nothing else."""

import asyncio
import html
import secrets
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import JSONResponse, Response

from ..study.items import Output
from ..study.storage import Write
from ..study.study import Study
from ..study.tables import studies
from . import ballots
from .ballots import Ballot, Standing
from .caps import Caps, caps_of, counting, giving_back, is_full
from .keys import Key
from .problems import Refused, shape
from .rendering import bytes_of, html_of
from .schemas import MoreVotes, Progress, Question, Vote
from .security import VOTER, Here, address_of
from .service import Service

router = APIRouter(tags=["voting"], responses=shape(400, 403, 404, 409, 413, 422, 429, 503))
LinkPath = Annotated[str, Path(min_length=1, max_length=100, description="The secret of the link.")]
VOTER_LASTS = 400 * 24 * 3600
FRAME = (  # a page of its own, without origin: it can neither reach this server's cookies nor any other host
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; font-src data:; media-src data:; frame-ancestors 'self'"
)
# Calls from browser to browser are what no policy stops.
NO_CALLS = b"<script>delete self.RTCPeerConnection; delete self.webkitRTCPeerConnection</script>"
IMAGE = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"


class Voter:
    """Somebody with a link: the link's key, its study, and a random name kept in a cookie."""

    def __init__(
        self, service: Service, key: Key, study: str, name: str, is_new: bool, caps: Caps | None = None
    ) -> None:
        self.service, self.key, self.study, self.name, self.is_new = service, key, study, name, is_new
        self.caps = caps

    @property
    def goal(self) -> int:
        return int(self.key.settings["votes"])

    def found(self) -> Study:
        return self.service.study(self.study)

    def standing(self, more: bool = False) -> Standing:
        standing = ballots.standing(self.found(), self.name, self.goal, more)
        if standing.done in (None, "goal") and is_full(self.service.storage, self.caps):
            return standing._replace(done="full")
        return standing

    def answer(self, content: dict[str, Any]) -> Response:
        response = JSONResponse(content, headers={"Cache-Control": "no-store"})
        if self.is_new:
            remember(response, self.name, self.service.public_url.startswith("https:"))
        return response

    def progress(self, standing: Standing) -> dict[str, Any]:
        return {"title": self.key.name, "goal": self.goal, **standing._asdict()}


def remember(response: Response, voter: str, secure: bool) -> None:
    response.set_cookie(VOTER, voter, VOTER_LASTS, path="/", httponly=True, samesite="lax", secure=secure)


async def opened(service: Service, link: str) -> tuple[Key, str]:
    """The key and the study of a link that is in force."""
    key = await asyncio.to_thread(service.key, link)
    if key is None or key.kind != "vote":
        raise Refused(404, "this voting link does not work, or not any more: ask for another one")
    return key, await asyncio.to_thread(_name_of, service, key)


def _name_of(service: Service, key: Key) -> str:
    with service.storage.turn, service.storage.explained():
        chosen = sa.select(studies.c.name).where(studies.c.id == key.study_id)
        return service.storage.connection().execute(chosen).scalar_one()


async def voter(request: Request, link: LinkPath, service: Here) -> Voter:
    """Who votes; refuses links that are not in force, and haste."""
    key, study = await opened(service, link)
    name = request.cookies.get(VOTER, "")
    known = len(name) == 22 and name.isascii() and name.isprintable()
    name = name if known else secrets.token_urlsafe(16)
    address = address_of(request)
    service.rates.spend(("address", str(key.id), address), service.limits.address)
    if known:
        service.rates.spend(("voter", str(key.id), name), service.limits.voter)
    return Voter(service, key, study, name, not known, caps_of(key, link, address))


Voting = Annotated[Voter, Depends(voter)]


def side(output: Output | str, src: str) -> dict[str, Any]:
    """One side of a question: safe HTML, or where to get it."""
    if isinstance(output, str):
        return {"kind": "name", "html": html.escape(output), "src": None}
    if output.kind in ("image", "html"):
        return {"kind": output.kind, "html": None, "src": src}
    return {"kind": output.kind, "html": html_of(output), "src": None}


def question(voter: Voter, link: str, ballot: Ballot | None, standing: Standing) -> dict[str, Any]:
    """What a voter is shown. Blocks."""
    if ballot is None:
        return {**voter.progress(standing), "duel": None, "prompt": None, "a": None, "b": None}
    prompt, shown = ballots.outputs_of(voter.found(), ballot)
    at = f"/vote/{link}/output/{ballot.duel.id}"
    a, b = (side(output, f"{at}/{letter}") for output, letter in zip(shown, "ab"))
    return {**voter.progress(standing), "duel": ballot.duel.id, "prompt": prompt, "a": a, "b": b}


@router.get("/api/vote/{link}", response_model=Progress)
async def progress(voter: Voting) -> Response:
    """How far this voter is."""
    return voter.answer(voter.progress(await asyncio.to_thread(voter.standing)))


@router.post("/api/vote/{link}/ask", response_model=Question)
async def ask(link: LinkPath, voter: Voting, body: MoreVotes | None = None) -> Response:
    """The next question, or the one that was not answered yet; none when there is nothing left to vote on."""
    standing = await asyncio.to_thread(voter.standing, bool(body and body.more))
    ballot = None
    if standing.done is None:
        ballot = await voter.service.write(voter.key, voter.study, lambda found: ballots.asking(found, voter.name))
    return voter.answer(await asyncio.to_thread(question, voter, link, ballot, standing))


@router.post("/api/vote/{link}/tell", response_model=Progress)
async def tell(voter: Voting, body: Vote) -> Response:
    """The answer to a question of this voter's. It is on disk when this answers."""
    caps = None if body.winner == "skip" else voter.caps  # a skip is not a vote

    def telling(found: Study) -> Write:
        return counting(caps, body.duel, ballots.telling(found, voter.name, body.duel, body.winner))

    await voter.service.write(voter.key, voter.study, telling)
    return voter.answer(voter.progress(await asyncio.to_thread(voter.standing)))


@router.post("/api/vote/{link}/undo", response_model=Question)
async def undo(link: LinkPath, voter: Voting) -> Response:
    """Take back this voter's last answer, and show its question again."""

    def undoing(found: Study) -> Write:
        return giving_back(voter.caps, ballots.undoing(found, voter.name))

    ballot = await voter.service.write(voter.key, voter.study, undoing)
    standing = await asyncio.to_thread(voter.standing, True)
    return voter.answer(await asyncio.to_thread(question, voter, link, ballot, standing))


@router.get("/vote/{link}/output/{duel}/{side}", response_class=Response)
async def output(voter: Voting, duel: Annotated[int, Path(ge=0, le=2**31 - 1)], side: Literal["a", "b"]) -> Response:
    """An image, or a page for a sandboxed frame, of a question that was asked of this voter."""

    def work() -> tuple[str, bytes]:
        ballot = ballots.ballot_of(voter.found(), voter.name, duel)
        _, shown = ballots.outputs_of(voter.found(), ballot)
        chosen = shown["ab".index(side)]
        if isinstance(chosen, str) or chosen.kind not in ("image", "html"):
            raise Refused(404, f"side {side} of duel {duel} is no image and no page")
        return bytes_of(chosen)

    kind, content = await asyncio.to_thread(work)
    policy = IMAGE
    if kind.startswith("text/html"):
        policy, content = FRAME, NO_CALLS + content
    headers = {"Content-Security-Policy": policy, "Cache-Control": "private, max-age=3600"}
    return Response(content, media_type=kind, headers=headers)
