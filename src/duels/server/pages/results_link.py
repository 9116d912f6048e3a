"""The routes of links to results. Whoever has one sees the results of a study, and nothing else of it.

They show names of arms, counts, chances and ratings; never single items, names of voters, or comments.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from functools import singledispatch
from typing import Annotated, Any, NamedTuple, cast

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response, StreamingResponse

from ...continuous.tuning.study import TuningStudy
from ...errors import InvalidInput, NotFound
from ...study.study import Study
from ..auth import ServiceDep, address_of
from ..http.errors import Refused, error_responses
from ..http.files import compress
from ..keys import Key, KeyId, is_paused, past_link
from ..results_tab import pair_history
from ..state import AnyStudy, Json, Service
from .base import PageRoute, page
from .study import with_frames
from .vote import BEST_SIDES, output_address, study_name_of

router = APIRouter(tags=["results links"], responses=error_responses(404, 422, 429, 503))
pages = APIRouter(include_in_schema=False, route_class=PageRoute)
SecretPath = Annotated[str, Path(min_length=1, max_length=100, description="The secret of the link.")]
DEAD = "this link to results does not work: ask the person who sent it for another one"
OFF = "this link to results is switched off: try again later, or ask the person who sent it"
ENDED = "this link to results has ended: ask the person who sent it for another one"
MOST_STREAMS = 500  # of one link; further viewers ask again every few seconds
HEADERS = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex, nofollow"}
Name = Annotated[str, Query(max_length=200)]


class Viewed(NamedTuple):
    """A valid link to results, and the name of its study."""

    key: Key
    study: str


async def find_viewed(request: Request, results: SecretPath, service: ServiceDep) -> Viewed:
    """Find a link by its secret; refuse invalid ones, and apply the rate limit.

    Raises:
        NotFound: If there is no such link, or it was revoked, is switched off or has expired.
    """
    service.rates.spend(("results", address_of(request)), service.limits.address)
    return await asyncio.to_thread(_find_viewed, service, results)


def _find_viewed(service: Service, secret: str) -> Viewed:
    key = service.key(secret)
    if key is None or key.kind != "results":
        past = past_link(service.storage, secret)
        if past is None or past.kind != "results":
            raise NotFound(DEAD)
        raise NotFound(OFF if is_paused(past) else ENDED)
    return Viewed(key, study_name_of(service, key))


Viewing = Annotated[Viewed, Depends(find_viewed)]


TEMPLATES = {"arms": "results.html", "settings": "tuning_results.html"}


def public_results(service: Service, study: AnyStudy, key: Key) -> Json:
    """Return the results without single items, names of voters, or what the owner should do. Blocks."""
    return _without_private(study, service.glance(study), service, key)


@singledispatch
def _without_private(study: Any, glance: Json, service: Service, key: Key) -> Json:
    verdict = {name: glance["verdict"][name] for name in ("kind", "winner", "leader", "headline", "facts", "words")}
    following = dict(glance["next"])
    following["words"] = following["words"] if glance["answers"] else "Nobody has voted yet."
    kept = ("seq", "answers", "retired", "arms", "arms_total", "ranked", "ranks", "map")
    return {name: glance[name] for name in kept} | {"verdict": verdict, "next": following}


@_without_private.register
def _settings_without_private(study: TuningStudy, glance: Json, service: Service, key: Key) -> Json:
    shared = {name: value for name, value in glance.items() if name not in ("open", "next")}
    return with_frames(shared, study, lambda which: output_address(service, key, 0, BEST_SIDES.index(which)))


def _read_results(service: Service, viewing: Viewed) -> Json:
    return public_results(service, service.any_study(viewing.study), viewing.key)


def _compared_study(service: Service, viewing: Viewed) -> Study:
    """The study of a link, if it compares arms. Errors must not have its name."""
    study = service.any_study(viewing.study)
    if not study._log.has_verdict:
        raise InvalidInput("these results have no pairs: they are about settings of parameters")
    return cast(Study, study)


@pages.get("/results/{results}")
def results_page(request: Request, results: str, service: ServiceDep) -> Response:
    """Show the results to anybody who has the link."""
    service.rates.spend(("results", address_of(request)), service.limits.address)
    try:
        found = _find_viewed(service, results)
    except NotFound as error:
        why = {OFF: "off", ENDED: "ended"}.get(str(error), "unknown")
        response: Response = page(request, service, "gone.html", 404, why=why, about="results")
    else:
        study = service.any_study(found.study)
        template = TEMPLATES[study._log.row.kind]
        title, glance = found.key.name or study.name, public_results(service, study, found.key)
        response = page(request, service, template, title=title, secret=results, glance=glance, viewer=True)
    response.headers.update(HEADERS)
    return response


@router.get("/api/results/{results}")
def results_shown(request: Request, viewing: Viewing, service: ServiceDep) -> Response:
    """Get the results at a glance: who is best and how sure, what is next, who beats whom among the best arms."""
    content = json.dumps(_read_results(service, viewing), ensure_ascii=False, separators=(",", ":"))
    response = compress(request, content.encode(), "application/json")
    response.headers.update(HEADERS)
    return response


@router.get("/api/results/{results}/pair")
def pair_shown(viewing: Viewing, service: ServiceDep, first: Name, second: Name, response: Response) -> Json:
    """Get the history of a pair: its counts, and the share of wins of the first arm after its answers."""
    response.headers.update(HEADERS)
    return pair_history(_compared_study(service, viewing), first, second)


@router.get("/api/results/{results}/stream", response_class=StreamingResponse)
async def stream_shown(viewing: Viewing, service: ServiceDep) -> StreamingResponse:
    """Follow the results by server-sent events: one after each change, at most twice a second, without content."""
    key = KeyId(viewing.key.id, viewing.key.digest)
    if service.streams.listeners(key) >= MOST_STREAMS:
        raise Refused(429, "too many people follow these results at once: load them again from time to time", 30)
    await asyncio.to_thread(service.any_study, viewing.study)
    messages = service.streams.follow(viewing.study, lambda: service.state(viewing.study), key)
    headers = HEADERS | {"X-Accel-Buffering": "no"}
    return StreamingResponse(_bare(messages), media_type="text/event-stream", headers=headers)


async def _bare(messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Messages that say that something has changed, and not what: open questions would tell how many people vote."""
    try:
        async for message in messages:
            yield re.sub(rb"(?m)^data: .*$", b"data: {}", message)
    finally:
        await messages.aclose()  # type: ignore[attr-defined]
