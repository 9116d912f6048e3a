"""A preview of the voting page for its owner: real items, where nothing is written.

The page and its script are those of voters. Questions are drawn at random, and answers are thrown away.
"""

import random
from functools import partial, singledispatch
from typing import Any
from urllib.parse import quote

import numpy as np
import sqlalchemy as sa
from fastapi import APIRouter, Request
from fastapi.responses import Response

from ...continuous.tuning.study import TuningStudy
from ...errors import Conflict, InvalidInput, NotFound
from ...storage.tables import studies
from ...study import base as log
from ...study import link_voting
from ...study.duels import Duel, iso_time
from ...study.items import Output, can_show, draw_shared_item, item_of, scripts_allowed
from ...study.link_voting import Ballot
from ...study.state.live import LiveState
from ...study.study import Study
from ...study.voter_settings import VoterSettings, voter_settings
from ..api.links import PreviewAsk
from ..api.schemas import Progress, Question, Vote
from ..api.studies import FoundAny
from ..auth import NOBODY, Admin, ServiceDep, secret_of
from ..http.errors import error_responses
from ..keys import Key
from ..rendering import show_alike
from ..state import AnyStudy, Json, Service
from ..tickets import LASTS, PreviewTicket, read_ticket, sign_ticket
from .base import PageRoute, find_signed_in, instructions_of, show_voting_page, to_signin
from .study import address_of_setting
from .vote import TicketPath, output_response, page_of, render_settings, side_out

router = APIRouter(tags=["voting"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))
pages = APIRouter(include_in_schema=False, route_class=PageRoute)
TRIES = 50  # pairs that are drawn until one can be shown


@pages.get("/studies/{study}/preview")
def preview_page(request: Request, study: str, service: ServiceDep) -> Response:
    """Show the voting page as voters see it; answers are not counted."""
    if find_signed_in(request, service) is None:
        return to_signin(request)
    found = service.any_study(study)
    name = quote(found.name, safe="")
    settings, scripts, back = voter_settings(found), scripts_allowed(found), f"/studies/{name}/share"
    base, instructions = f"/api/studies/{name}/preview", service.background.renderer.html(instructions_of(settings))
    return show_voting_page(request, service, base, "", settings, instructions, scripts, back)


@router.post("/api/studies/{study}/preview/ask", response_model=Question)
def preview_ask(study: FoundAny, body: PreviewAsk, service: ServiceDep, key: Admin) -> Json:
    """Get a question as a voter would. Nothing is written."""
    return _question(service, key, study, body.number, body.more)


@router.post("/api/studies/{study}/preview/tell", response_model=Progress)
def preview_tell(study: FoundAny, body: Vote, key: Admin) -> Json:
    """Answer a question of a preview. The answer is thrown away."""
    return _progress(voter_settings(study), body.duel + 1, True)


@router.post("/api/studies/{study}/preview/undo", response_model=Question)
def preview_undo(study: FoundAny, body: PreviewAsk, service: ServiceDep, key: Admin) -> Json:
    """Get the question before, as a voter who takes back an answer would."""
    return _question(service, key, study, max(0, body.number - 1), True)


def _progress(settings: VoterSettings, number: int, more: bool) -> Json:
    done = "goal" if number >= settings.votes and not more else None
    known = {"title": "", "goal": settings.votes, "answered": number, "total": number, "done": done}
    shown = {name: getattr(settings, name) for name in ("question", "ties", "both_bad", "comments")}
    return known | shown | {"page": page_of(settings)}


def _question(service: Service, key: Key, study: AnyStudy, number: int, more: bool) -> Json:
    progress = _progress(voter_settings(study), number, more)
    if progress["done"] is not None:
        return progress | {"duel": None, "prompt": None, "a": None, "b": None}
    prompt, a, b = _draw_sides(study, service, key, number)
    return progress | {"duel": number, "prompt": prompt, "a": a, "b": b}


@singledispatch
def _draw_sides(study: Any, service: Service, key: Key, number: int) -> tuple[str | None, Json, Json]:
    return _draw_outputs(service, key, study, number)


@_draw_sides.register
def _draw_settings(study: TuningStudy, service: Service, key: Key, number: int) -> tuple[None, Json, Json]:
    """Two settings, which depend on the number alone, as sides of a question."""
    luck = random.Random(f"preview {study._log.row.seed} {number}")
    pair = [study.space.decode(np.array([luck.random() for _ in study.space.names])) for _ in range(2)]
    a, b = (
        side_out(one, address_of_setting(study.name, setting), service.background.renderer.html)
        for one, setting in zip(render_settings(study, pair), pair)
    )
    return None, a, b


def _draw_outputs(service: Service, key: Key, study: Study, number: int) -> tuple[str | None, Json, Json]:
    """Two outputs as sides of a question, after its prompt."""
    pair, item = study._log.read(partial(_draw, study=study, number=number))
    names = study._log.history().names
    duel = Duel(number, names[pair[0]], names[pair[1]], study.name, iso_time(log.clock()), None)
    prompt, outputs = link_voting.outputs_of(study, Ballot(duel, item))
    expires = int(log.clock()) + LASTS
    tickets = (PreviewTicket(key.id, study._log.id, item or 0, arm, expires) for arm in pair)
    places = [f"/preview-output/{sign_ticket(service.signing, ticket)}" for ticket in tickets]
    inside = [one for one in outputs if isinstance(one, Output) and one.kind not in ("image", "html")]
    rendered = show_alike({one: service.background.renderer.html(one) for one in inside})
    a, b = (side_out(one, place, rendered.__getitem__) for one, place in zip(outputs, places))
    return prompt, a, b


def _draw(
    connection: sa.Connection, history: LiveState, *, study: Study, number: int
) -> tuple[tuple[int, int], int | None]:
    """Two arms and an item, which depend on the number alone, so that an answer can be taken back."""
    luck = random.Random(f"preview {study._log.row.seed} {number}")
    arms = [place for place, active in enumerate(history.active) if active]
    for _ in range(TRIES if len(arms) > 1 else 0):
        left, right = luck.sample(arms, 2)
        names = history.names[left], history.names[right]
        item = draw_shared_item(connection, study._log.id, names, luck)
        if can_show(connection, study._log.id, *names, item):
            return (left, right), item
    raise Conflict("no two arms have outputs for the same item yet: upload more of them under Items")


@router.get("/preview-output/{ticket}", response_class=Response)
def preview_output(request: Request, service: ServiceDep, ticket: TicketPath) -> Response:
    """Get an output of a previewed question: an image, or a page for a sandboxed frame. It works for ten
    minutes, in the session that asked for it.
    """
    allowed, name = read_ticket(service.signing, ticket, PreviewTicket), None
    key = None if allowed is None else _key_of(request, service)
    if allowed is not None and key is not None and key.id == allowed.key:
        with service.storage.lock, service.storage.translate_errors():
            chosen = sa.select(studies.c.name).where(studies.c.id == allowed.study)
            name = service.storage.connection().execute(chosen).scalar()
    if allowed is None or name is None:
        raise NotFound("this link to an output has expired: reload the preview")
    study = service.study(name)
    try:
        arm = study._log.history().names[allowed.arm]
        output = item_of(study, allowed.item, [arm]).outputs[arm]
    except (InvalidInput, LookupError):
        raise NotFound("this output was removed: reload the preview") from None
    return output_response(output, scripts_allowed(study))


def _key_of(request: Request, service: Service) -> Key | None:
    """The key with which an output is asked for. Blocks."""
    if service.open_to_all:
        return NOBODY
    secret, _ = secret_of(request)
    return service.key(secret) if secret else None
