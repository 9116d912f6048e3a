"""The routes of voting links. Anybody with a link can vote, and do nothing else."""

import asyncio
import hashlib
import html
import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, singledispatch
from typing import Annotated, Any, NamedTuple, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import JSONResponse, Response

from ...continuous.spaces import Setting
from ...continuous.tuning.result import setting_text
from ...continuous.tuning.study import TuningStudy
from ...continuous.tuning.templates import render
from ...errors import DuelsError, NotFound, NothingToAsk
from ...storage.storage import NotReady, Write
from ...storage.tables import studies
from ...study import base, link_voting
from ...study.invitations import find_invited_voter
from ...study.items import Output
from ...study.link_voting import Ballot, Caps, Invited, Standpoint, VoterProgress, Who
from ...study.state.live import LiveState
from ...study.voter_settings import VoterSettings, voter_settings_of
from ..api.links import caps_of, note_crowd
from ..api.schemas import MoreVotes, Progress, Question, Vote
from ..auth import VOTER, ServiceDep, address_of
from ..http.errors import Refused, answer_to, error_responses
from ..keys import LINKS, Key, digest_of, is_paused, key_in, link_with_study, past_link, voter_digest
from ..rendering import bytes_of, show_alike
from ..state import AnyStudy, Service
from ..tickets import LASTS, Ticket, read_ticket, sign_ticket

router = APIRouter(tags=["voting"], responses=error_responses(400, 403, 404, 409, 413, 422, 429, 503))
Body = dict[str, object]
LinkPath = Annotated[str, Path(min_length=1, max_length=100, description="The secret of the link.")]
TicketPath = Annotated[str, Path(min_length=1, max_length=200, description="From a question's `src`.")]
TRIES = 3  # of a vote, while its link is being changed
MAX_LINKS = 10_000  # in memory
T = TypeVar("T")
VOTER_LASTS = 400 * 24 * 3600  # seconds
BEST_SIDES = ("setting", "runner_up")  # sides of a tuning study's results: attributes of its `best`
DEAD_LINK = "this voting link does not work or was revoked: ask for a new one"
OFF_LINK = "voting through this link is paused: try again later, or ask the person who sent it"
EXPIRED_LINK = "voting through this link has ended: ask the person who sent it for another one"
_PAGE = (  # it has no origin, so it cannot read cookies, and it cannot load anything from any host
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; media-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
FRAME = f"sandbox; {_PAGE}"
# No content policy can stop scripts from using WebRTC, so they must not see anything secret.
SCRIPTED = f"sandbox allow-scripts; script-src 'unsafe-inline'; {_PAGE}"
IMAGE = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"


class Link(NamedTuple):
    """A valid voting link, with what its routes need."""

    key: Key
    study: str  # its name …
    created: float  # … and when it was created
    scripts: bool  # whether scripts in HTML outputs run
    settings: VoterSettings

    @property
    def is_invitation(self) -> bool:
        """Whether it belongs to one person, who votes under their name from any device."""
        return bool(self.key.settings.get("invited"))


class OutOfDate(DuelsError):
    """The link, or the voter, is not what this server remembers any more."""


class Crowded(Refused):
    """Too many new voters come from one address."""


class Voter:
    """A person with a link, identified by a random cookie, of which only a digest is stored; or by the link itself."""

    def __init__(
        self,
        service: Service,
        link: Link,
        secret: str,
        cookie: str,
        caps: Caps | None,
        address: str,
        is_new: bool = False,
    ) -> None:
        self.service, self.link, self.key, self.study = service, link, link.key, link.study
        self._secret, self._cookie, self.caps, self.is_new = secret, cookie, caps, is_new
        self._address, self.arrived = address, time.monotonic()
        self._place = ("new", str(link.key.id), address)
        self.who: Who = Invited(link.key.id) if link.is_invitation else voter_digest(link.key, cookie)

    @property
    def goal(self) -> int:
        """How many votes the voter is asked for; no more than the link accepts."""
        goal = int(self.key.settings.get("votes") or self.link.settings.votes)
        return goal if self.caps is None or self.caps.voter is None else min(goal, self.caps.voter)

    def find_study(self) -> AnyStudy:
        """Return the study of the link. Blocks."""
        known = self.service.get_cached(self.study)
        if known is not None and known._log.id == self.key.study_id:  # the link exists, so its study does
            return known
        return self.service.any_study(self.study)

    def progress(self, more: bool = False) -> VoterProgress:
        """Return the voter's progress. Blocks."""
        return link_voting.voter_progress(self.find_study(), self.who, self.goal, more, self.service.end_of, self.caps)

    async def write(self, run: Callable[[AnyStudy, sa.Connection], T], last: bool = False) -> T:
        """Write to the study in a transaction that also checks that the link and the voter are what they were.

        Args:
            run: Does it inside the transaction. It may be called again after it raised `OutOfDate`.
            last: See `Write`.

        Raises:
            NotFound: If the link does not work any more.
        """
        for _ in range(TRIES):
            try:
                return await self.service.write(
                    None, self.study, lambda found: Write(partial(run, found), found._log.id, last), self._is_as_known
                )
            except OutOfDate:
                self.service.links.pop(self.key.digest, None)
                self._become(*await _identify_or_refuse(self.service, self._secret, self._cookie))
        raise Refused(503, "the link is being changed: try again", retry=1)

    def _become(self, link: Link, known: bool) -> None:
        """Set the link and whether it knows the voter, as they are in the database."""
        if not known and not self.is_new:
            self._cookie, self.is_new = secrets.token_urlsafe(16), True
        self.link, self.key, self.study = link, link.key, link.study
        self.caps = caps_of(link.key, self._secret, self._address)
        self.who = Invited(link.key.id) if link.is_invitation else voter_digest(link.key, self._cookie)

    def _is_as_known(self, connection: sa.Connection, study: AnyStudy) -> bool:
        """Check the link inside a transaction, and return whether it is the study's."""
        now = self.service.storage.once(("link", self.key.digest), lambda: _link_in_force(connection, self.key.digest))
        if now != self.link:
            raise OutOfDate("the link was changed")
        return (self.study, self.link.created, self.key.study_id) == (study.name, study._log.row.created, study._log.id)

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Count somebody who comes for the first time, if there is a question; too many at once have to wait.

        Raises:
            Crowded: If too many come from one address.
            OutOfDate: If the voter was known before, and is not any more.
        """
        if not self.is_new:
            raise OutOfDate("the voter was forgotten")
        try:
            self.service.rates.spend(self._place, self.service.limits.new_voters, "too many new voters come from here")
        except Refused as error:
            raise Crowded(error.status, str(error), error.retry) from None
        try:
            yield
        except (NothingToAsk, NotReady):
            self.service.rates.give_back(self._place)
            raise

    def remember(self, response: Response) -> None:
        """Set the cookie, for this link only: for other links the voter has other cookies."""
        secure, path = self.service.public_url.startswith("https:"), f"/api/vote/{quote(self._secret)}"
        response.set_cookie(VOTER, self._cookie, VOTER_LASTS, path=path, httponly=True, samesite="lax", secure=secure)

    def progress_out(self, progress: VoterProgress) -> Body:
        """Return the progress as the API shows it."""
        settings = self.link.settings
        return {
            "title": self.key.name,
            "goal": self.goal,
            **progress._asdict(),
            "question": settings.question,
            "ties": settings.ties,
            "both_bad": settings.both_bad,
            "comments": settings.comments,
            "page": page_of(settings),
        }


def page_of(settings: VoterSettings) -> str:
    """Return a digest of what the voting page shows besides questions. If it changes, the page must be loaded again."""
    return hashlib.blake2b(settings.instructions.encode(), digest_size=6).hexdigest()


def _json(content: Body) -> Response:
    return JSONResponse(content, headers={"Cache-Control": "no-store"})


async def open_link(service: Service, link: str) -> Link:
    """Return a link by its secret.

    Raises:
        NotFound: If there is no such link, or it was revoked, is switched off or has expired.
    """
    found = await service.background.vote(_find_link, service, link)
    if found is None:
        raise NotFound(await service.background.vote(_why_dead, service, link))
    return found


def _why_dead(service: Service, secret: str) -> str:
    """Why a link does not work. Only who has its secret learns more than somebody who made one up."""
    known = past_link(service.storage, secret)
    if known is None or known.kind != "vote":
        return DEAD_LINK
    return OFF_LINK if is_paused(known) else EXPIRED_LINK


def _link_of(service: Service, key: Key) -> Link:
    with service.storage.lock, service.storage.translate_errors():
        return _link_in(service.storage.connection(), key)


def find_invited_name(service: Service, link: Link) -> str:
    """Return the name under which an invited person votes; empty for any other link. Blocks."""
    if not link.is_invitation:
        return ""
    with service.storage.lock, service.storage.translate_errors():
        return str(find_invited_voter(service.storage.connection(), link.key.id) or "")


def study_name_of(service: Service, key: Key) -> str:
    """Return the name of a link's study. Blocks."""
    return _link_of(service, key).study


def _link_in(connection: sa.Connection, key: Key) -> Link:
    chosen = sa.select(studies.c.name, studies.c.created, studies.c.settings).where(studies.c.id == key.study_id)
    name, created, settings = connection.execute(chosen).one()
    known = json.loads(settings)
    return Link(key, name, created, bool(known.get("scripts")), voter_settings_of(known))


async def voter(request: Request, link: LinkPath, service: ServiceDep) -> Voter:
    """Identify the voter; refuse invalid links, and apply the rate limits.

    A cookie that this link did not set is replaced, so nobody can choose their own identity.
    """
    cookie, address = request.cookies.get(VOTER, ""), address_of(request)
    found, known = await _identify_or_refuse(service, link, cookie)
    return _admit(service, found, known, link, cookie, address)


async def find_remembered_voter(request: Request, link: LinkPath, service: ServiceDep) -> Voter:
    """Like `voter`, without the database if this server knows link and voter. `Voter.write` checks that they are so."""
    found, cookie = service.links.get(digest_of(link)), request.cookies.get(VOTER, "")
    if found is not None and (found.is_invitation or _remembers(service, found, cookie)):
        return _admit(service, found, True, link, cookie, address_of(request))
    return await voter(request, link, service)


def _remembers(service: Service, link: Link, cookie: str) -> bool:
    history = service.storage.histories.get(link.key.study_id or 0)
    return isinstance(history, LiveState) and bool(cookie) and voter_digest(link.key, cookie) in history.voters


def _admit(service: Service, link: Link, known: bool, secret: str, cookie: str, address: str) -> Voter:
    """The voter, within the rate limits."""
    caps, number = caps_of(link.key, secret, address), str(link.key.id)
    service.rates.spend(("address", number, address), service.limits.address)
    if not known:
        return Voter(service, link, secret, secrets.token_urlsafe(16), caps, address, is_new=True)
    found = Voter(service, link, secret, cookie, caps, address)
    service.rates.spend(("voter", number, str(found.who)), service.limits.voter)
    return found


async def _identify_or_refuse(service: Service, secret: str, cookie: str) -> tuple[Link, bool]:
    """As `_identify`; raises `NotFound` if the link is not valid."""
    found, known = await service.background.vote(_identify, service, secret, cookie)
    if found is None:
        raise NotFound(await service.background.vote(_why_dead, service, secret))
    if len(service.links) >= MAX_LINKS:
        service.links.clear()
    service.links[found.key.digest] = found
    return found, known


def _identify(service: Service, secret: str, cookie: str) -> tuple[Link | None, bool]:
    """A link by its secret, if it is valid, and whether it knows the voter with this cookie."""
    with service.storage.lock, service.storage.translate_errors():
        link = _find_link(service, secret)
        if link is None or link.is_invitation or not cookie:
            return link, link is not None and link.is_invitation
        who = voter_digest(link.key, cookie)
        return link, link_voting.voter_of(service.storage.connection(), who) is not None


def _find_link(service: Service, secret: str) -> Link | None:
    service.follow_storage()
    with service.storage.lock, service.storage.translate_errors():
        return _link_in_force(service.storage.connection(), digest_of(secret))


def _link_in_force(connection: sa.Connection, digest: str) -> Link | None:
    found = link_with_study(connection, digest)
    if found is None or found[0].kind != "vote":
        return None
    key, name, created, settings = found
    known = json.loads(settings)
    return Link(key, name, created, bool(known.get("scripts")), voter_settings_of(known))


Voting = Annotated[Voter, Depends(voter)]
Remembered = Annotated[Voter, Depends(find_remembered_voter)]


def side_out(output: Output | str, src: str, render: Callable[[Output], str]) -> Body:
    """Return one side of a question: safe HTML, or the URL of the output."""
    if isinstance(output, str):
        return {"kind": "name", "html": html.escape(output), "src": None}
    if output.kind in ("image", "html"):
        return {"kind": output.kind, "html": None, "src": src}
    return {"kind": output.kind, "html": render(output), "src": None}


@singledispatch
def sides_of(study: Any, ballot: Ballot) -> tuple[str | None, list[Output | str]]:
    """Return the prompt and the two sides of a question: outputs, names of arms, or settings. Blocks.

    Raises:
        NotFound: If they were removed.
    """
    return link_voting.outputs_of(study, ballot)


@sides_of.register
def _settings_of(study: TuningStudy, ballot: Ballot) -> tuple[str | None, list[Output | str]]:
    return None, render_settings(study, [ballot.duel.left, ballot.duel.right])


def render_settings(study: TuningStudy, settings: Iterable[Setting]) -> list[Output | str]:
    """Return settings as voters see them: as pages of the template, or else as lists of their values. Blocks."""
    template = study.template
    if template is None:
        return [Output("text", setting_text(setting, "\n", digits=4)) for setting in settings]
    return [Output("html", render(template, setting)) for setting in settings]


async def question(voter: Voter, ballot: Ballot | None, progress: VoterProgress) -> Body:
    """Return the question that a voter is shown."""
    expires = int(base.clock()) + LASTS
    if ballot is None:
        return {**voter.progress_out(progress), "duel": None, "prompt": None, "a": None, "b": None}
    background, study = voter.service.background, await voter.service.get_study(voter.study)
    if ballot.item is None and isinstance(ballot.duel.left, str):  # names, which are there
        prompt, outputs = sides_of(study, ballot)
    else:
        prompt, outputs = await background.vote(sides_of, study, ballot)
    inside = [one for one in outputs if isinstance(one, Output) and one.kind not in ("image", "html")]
    rendered = show_alike(dict(zip(inside, await asyncio.gather(*map(background.render, inside)))))
    switch = "?scripts" if voter.link.scripts else ""  # so that no browser shows what it has cached before the switch
    tickets = (Ticket(voter.key.id, ballot.duel.id, number, expires) for number in range(2))
    addresses = (f"/output/{sign_ticket(voter.service.signing, ticket)}{switch}" for ticket in tickets)
    a, b = (side_out(one, address, rendered.__getitem__) for one, address in zip(outputs, addresses))
    shown = {"duel": ballot.duel.id, "prompt": prompt, "a": a, "b": b, "comment": ballot.comment}
    return {**voter.progress_out(progress), **shown}


def output_address(service: Service, key: Key, duel: int, side: int) -> str:
    """Return the address of one side of a question, for whoever has a link; it works for ten minutes."""
    return f"/output/{sign_ticket(service.signing, Ticket(key.id, duel, side, int(base.clock()) + LASTS))}"


@router.get("/api/vote/{link}", response_model=Progress)
async def progress(voter: Voting) -> Response:
    """Get the voter's progress."""
    return _json(voter.progress_out(await voter.service.background.vote(voter.progress)))


@router.post("/api/vote/{link}/ask", response_model=Question)
async def ask(voter: Remembered, body: MoreVotes | None = None) -> Response:
    """Get the open question, or else the next one; none if there is nothing left to vote on."""
    service, more = voter.service, bool(body and body.more)

    def run(study: AnyStudy, connection: sa.Connection) -> tuple[Ballot | None, VoterProgress]:
        find_end = partial(service.end_in, arrived=voter.arrived)
        return link_voting.ask_next(
            *(connection, study._log, voter.who, voter.key.id, voter.caps, voter.goal, more, find_end, voter.admit)
        )

    try:
        ballot, progress = await voter.write(run, last=True)
    except Crowded:
        await service.background.vote(note_crowd, service.storage, service.rates, voter.key)
        raise
    response = _json(await question(voter, ballot, progress))
    if voter.is_new and ballot is not None:
        voter.remember(response)
    return response


@router.post("/api/vote/{link}/tell", response_model=Progress)
async def tell(voter: Remembered, body: Vote) -> Response:
    """Answer a question. The answer is on disk when the response arrives."""
    service = voter.service

    def run(study: AnyStudy, connection: sa.Connection) -> tuple[Standpoint, AnyStudy, list[str | None]]:
        settings = voter.link.settings
        link_voting.telling(study, voter.who, body.duel, body.winner, voter.caps, settings, body.comment).operation(
            connection
        )
        found, end = link_voting.progress_in(connection, study._log, voter.who, voter.caps), list[str | None]()

        def look(connection: sa.Connection) -> None:  # after all answers of the commit
            with suppress(DuelsError):  # then it is looked for after the commit
                end.append(service.end_in(connection, study._log, voter.arrived))

        service.storage.at_end(look)
        return found, study, end

    found, study, ends = await voter.write(run)
    if not ends:
        ends.append(await service.background.vote(service.end_of, study))
    return _json(voter.progress_out(found.up_to(ends[0] if ends else None, voter.goal, False)))


@router.post("/api/vote/{link}/undo", response_model=Question)
async def undo(voter: Voting) -> Response:
    """Undo the voter's last answer, and get its question again."""
    ballot = await voter.service.write(
        voter.key, voter.study, lambda found: link_voting.undoing(found, voter.who, voter.caps)
    )
    progress = await voter.service.background.vote(voter.progress, True)
    return _json(await question(voter, ballot, progress))


@router.get("/output/{ticket}", response_class=Response)
async def output(request: Request, service: ServiceDep, ticket: TicketPath) -> Response:
    """Get an output of a question: an image, or a page for a sandboxed frame. The URL works for ten minutes.

    Behind a link to the results of a tuning study: the best setting, or the runner-up.
    """
    try:
        link, admitted = await service.background.vote(_admit_ticket, service, ticket)
        service.rates.spend(("address", str(link.key.id), address_of(request)), service.limits.address)
        async with service.turns.turn(("output", link.study)):  # the best setting may take long to find
            return await asyncio.to_thread(_output, service, link, admitted)
    except (NotFound, Refused) as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        status, message, _, _ = answer_to(request, error)
        page = f"<!doctype html><title>Output</title><p>{html.escape(message[:1].upper() + message[1:])}.</p>"
        headers = {"Content-Security-Policy": FRAME, "Cache-Control": "no-store"}
        return Response(page, status, headers, "text/html; charset=utf-8")


def _output(service: Service, link: Link, ticket: Ticket) -> Response:
    study = service.any_study(link.study)
    if link.key.kind != "results":
        _, outputs = sides_of(study, link_voting.ballot_of(study, ticket.duel))
        return output_response(outputs[ticket.side], link.scripts)
    response = output_response(_side_of_results(study, ticket.side), link.scripts)
    response.headers["Cache-Control"] = "no-store"  # the best setting may be another one after the next vote
    return response


@singledispatch
def _side_of_results(study: Any, side: int) -> Output | str:
    raise NotFound("this link shows results only")


@_side_of_results.register
def _best_side(study: TuningStudy, side: int) -> Output | str:
    (shown,) = render_settings(study, [getattr(study.best, BEST_SIDES[side])])
    return shown


def output_response(chosen: Output | str, scripts: bool) -> Response:
    """Return an image, or a page for a sandboxed frame, with a policy that locks it up.

    Raises:
        NotFound: If the output is neither.
    """
    if isinstance(chosen, str) or chosen.kind not in ("image", "html"):
        raise NotFound("this output is neither an image nor a page: reload the voting page")
    kind, content = bytes_of(chosen, scripts)
    policy = IMAGE if chosen.kind == "image" else SCRIPTED if scripts else FRAME
    headers = {"Content-Security-Policy": policy, "Cache-Control": f"private, max-age={LASTS}"}
    return Response(content, media_type=kind, headers=headers)


def _admit_ticket(service: Service, text: str) -> tuple[Link, Ticket]:
    ticket = read_ticket(service.signing, text, Ticket)
    if ticket is None:
        raise NotFound("this link to an output has expired: reload the voting page")
    with service.storage.lock, service.storage.translate_errors():
        connection = service.storage.connection()
        key = key_in(connection, ticket.key)
        if key is None or key.kind not in LINKS:
            raise NotFound(DEAD_LINK)
        return _link_in(connection, key), ticket
