"""Results of a study: leaderboard, verdict, log, export, and the stream of changes."""

import asyncio
import json
import tempfile
from functools import partial, singledispatch
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from ...continuous.tuning.files import parse_duels
from ...continuous.tuning.study import TuningStudy
from ...study.stats.leaderboard import preferences_page
from ..auth import Admin, Caller, ServiceDep, record_change
from ..child_process import pack_votes
from ..downloads import attachment
from ..http.errors import Refused, error_responses
from ..http.files import compress
from ..keys import Key, KeyId
from ..pages.study import own_glance
from ..results_tab import describe_verdict, pair_history
from ..state import Service
from .schemas import (
    Checked,
    Details,
    Events,
    ForecastOut,
    Imported,
    JudgesOut,
    Leaderboard,
    Preferences,
    RankingOut,
    Recommendation,
)
from .studies import Found, FoundAny, StudyPath

router = APIRouter(tags=["results"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))
Confidence = Annotated[float, Query(gt=0, lt=1, description="The probability that no statement is ever wrong.")]
UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/x-ndjson": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


KINDS = {
    "csv": "text/csv",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}


def plain(content: bytes) -> bytes:
    """Return an upload unchanged, or refuse one that is empty or gzipped: a small archive may expand to any size."""
    if content.startswith(b"\x1f\x8b"):
        raise Refused(400, "the upload is gzipped: send it unpacked")
    if not content.strip():
        raise Refused(400, "the upload is empty: send the rows as CSV or JSON lines in the body")
    return content


@router.get("/api/studies/{study}/leaderboard", response_model=Leaderboard)
def leaderboard(study: Found, confidence: Confidence | None = None) -> dict[str, object]:
    """List the arms, best first."""
    found = study._log.look().leaderboard(confidence)
    return {"leaderboard": [row._asdict() for row in found.rows], "ranked": found.ranked}


@router.get("/api/studies/{study}/preferences", response_model=Preferences)
def preferences(
    study: Found,
    confidence: Confidence | None = None,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
) -> dict[str, object]:
    """List wins, counts, estimate and interval of every pair, in pages: send `next` as `after` to get the next page."""
    rows, following = preferences_page(study.tally(), confidence or study.goal.confidence, after, limit)
    return {"preferences": [row._asdict() for row in rows], "next": following}


@router.get("/api/studies/{study}/verdict")
def verdict(
    study: Found, confidence: Confidence | None = None, margin: Annotated[float | None, Query(ge=0, lt=0.5)] = None
) -> dict[str, object]:
    """Get the verdict: the winner, or what is still undecided. Its confidence holds at any stopping time.

    By default, confidence and margin are those of the study.

    `words` is the verdict as a sentence. At most 10,000 of the open pairs are listed.
    """
    found = study.verdict(confidence, margin)
    return {**describe_verdict(found), "words": str(found)}


@router.get("/api/studies/{study}/results")
def results(request: Request, study: FoundAny, service: ServiceDep) -> Response:
    """Get the results at a glance: who is best and how sure, what to do next, who beats whom among the best arms.

    Of a study that tunes parameters: the best setting, how sure it is, and slices of the model.
    """
    found = own_glance(study, service)
    content = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return compress(request, content.encode(), "application/json")


@router.get("/api/studies/{study}/pair")
def pair(
    study: Found, first: Annotated[str, Query(max_length=200)], second: Annotated[str, Query(max_length=200)]
) -> dict[str, object]:
    """Get the history of a pair: its counts, and the share of wins of the first arm after its answers."""
    return pair_history(study, first, second)


@router.get("/api/studies/{study}/forecast", response_model=ForecastOut)
def forecast(study: Found, service: ServiceDep) -> dict[str, object]:
    """Estimate each arm's chance to be the best, and how many more answers are needed. Only the verdict is a promise.

    `words` says it in sentences.
    """
    found = service.forecast(study)
    return {**found.as_dict(), "words": str(found)}


@router.get("/api/studies/{study}/ranking", response_model=RankingOut)
def ranking(study: Found) -> dict[str, object]:
    """List the active arms in order, and which ranks are certain."""
    return {"ranking": [row._asdict() for row in study.ranking()]}


@router.get("/api/studies/{study}/recommendation", response_model=Recommendation)
def recommendation(study: Found) -> dict[str, str]:
    """Get the arm that the policy recommends now; the verdict says how certain that is."""
    return {"arm": study.best_arm}


@router.get("/api/studies/{study}/check", response_model=Checked)
def check(study: FoundAny, key: Admin) -> dict[str, int]:
    """Replay the whole log, and check that each question is the one the policy asks."""
    return {"events": study.check()}


@router.get("/api/studies/{study}/judges", response_model=JudgesOut)
def judges(study: FoundAny, service: ServiceDep) -> dict[str, object]:
    """Get the calls of the study's judges: number and cost, sides, and how often they repeat themselves, or agree."""
    found = service.judges(study)
    lists = {name: getattr(found, name) for name in ("positions", "repeatability", "agreements")}
    return found._asdict() | {name: [one._asdict() for one in rows] for name, rows in lists.items()}


@router.get("/api/studies/{study}/details", response_model=Details)
def details(study: Found, service: ServiceDep) -> dict[str, Any]:
    """Get pairs with their intervals, open questions and answers over time, as the page of results shows on request."""
    return service.details(study)


@router.get("/api/studies/{study}/events", response_model=Events)
def events(
    study: FoundAny,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> dict[str, object]:
    """List the log in pages: send `next` as `after` to get the next page."""
    entries = study.events(after, limit + 1)
    more = len(entries) > limit
    page = entries[:limit]
    return {"events": [entry._asdict() for entry in page], "next": page[-1].seq if more else None}


@router.get("/api/studies/{study}/export", response_class=Response)
def export(study: FoundAny, format: Literal["csv", "jsonl", "parquet"] = "csv") -> Response:
    """Download the answers as votes, in a format that `import` reads."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"votes.{format}"
        study._export(str(path))
        content = path.read_bytes()
    return Response(content, media_type=KINDS[format], headers=attachment(study.name, f"votes.{format}"))


@router.post("/api/studies/{study}/import", response_model=Imported, openapi_extra=UPLOAD)
async def import_votes(study: StudyPath, request: Request, service: ServiceDep, key: Caller) -> dict[str, object]:
    """Import past votes from CSV, JSON lines or Parquet. If one of them has an error, none is imported.

    A row may stand for many votes: with a column `count`, or with `wins_left`, `wins_right` and `ties`. Of a study that
    tunes parameters, a row is a duel as `export` writes it: `left.NAME`, `right.NAME` and `winner`.
    """
    content = plain(await request.body())

    found = await asyncio.to_thread(service.any_study, study)
    past, note = await _read_past(found, request, key, service, content)
    ready = await service.background.upload(partial(found._log.importing, past))
    with record_change(found, key, "Imported past votes."):
        imported = await service.write(None if service.open_to_all else key, study, lambda found: ready)
        return {"imported": imported, "note": note}


@singledispatch
async def _read_past(study: Any, request: Request, key: Key, service: Service, content: bytes) -> tuple[Any, Any]:
    """Return the votes of an upload, and a note about them."""
    votes, note = await service.background.read(request, key, "the votes", pack_votes, content)
    if not votes.size:
        raise Refused(400, "the upload holds no votes: send the rows as CSV or JSON lines in the body")
    return votes, note


@_read_past.register
async def _read_past_duels(
    study: TuningStudy, request: Request, key: Key, service: Service, content: bytes
) -> tuple[Any, Any]:
    return await service.background.read(request, key, "the duels", parse_duels, content, study.space), None


@router.get("/api/studies/{study}/stream", response_class=StreamingResponse)
async def stream(study: StudyPath, service: ServiceDep, key: Caller) -> StreamingResponse:
    """Follow a study by server-sent events: its state now and after every change, at most twice a second."""
    await asyncio.to_thread(service.any_study, study)
    messages = service.streams.follow(study, lambda: service.state(study), KeyId(key.id, key.digest))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(messages, media_type="text/event-stream", headers=headers)
