"""What a study amounts to: leaderboard, verdict, log, and the stream of changes."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from ...storage.storage import Write
from ...study.board import verdict_data
from ...study.verdict import preferences_page
from ...study.worker import read_packed
from ...votes.files import write_votes
from ..errors import Refused, shape
from ..keys import KeyId
from ..schemas import Events, Imported, Leaderboard, Preferences
from ..security import Caller, Here
from .studies import Found, StudyPath

router = APIRouter(tags=["results"], responses=shape(400, 401, 403, 404, 409, 413, 422, 429, 503))
Confidence = Annotated[float, Query(gt=0, lt=1, description="The chance that no statement is ever wrong.")]
UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/x-ndjson": {"schema": {"type": "string"}},
        },
    }
}


def plain(content: bytes) -> bytes:
    """What was sent, unless it is packed: a small file may hold more than there is room for."""
    if content.startswith(b"\x1f\x8b"):
        raise Refused(400, "the upload is gzipped: send it unpacked")
    if not content.strip():
        raise Refused(400, "the upload is empty: send the rows as CSV or JSON lines in the body")
    return content


@router.get("/api/studies/{study}/leaderboard", response_model=Leaderboard)
def leaderboard(study: Found, confidence: Confidence = 0.95):
    """The arms, best first."""
    return {"leaderboard": [row._asdict() for row in study.leaderboard(confidence)]}


@router.get("/api/studies/{study}/preferences", response_model=Preferences)
def preferences(
    study: Found,
    confidence: Confidence = 0.95,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
):
    """Wins, counts, estimate and interval of every pair, in pages: say `next` as `after` to go on."""
    rows, following = preferences_page(study.tally(), confidence, after, limit)
    return {"preferences": [row._asdict() for row in rows], "next": following}


@router.get("/api/studies/{study}/verdict")
def verdict(
    study: Found, confidence: Confidence = 0.95, margin: Annotated[float, Query(ge=0, lt=0.5)] = 0.0
) -> dict[str, Any]:
    """Who is best, as far as that is certain; valid however often it is looked at. `words` says it.

    At most 10,000 of the open pairs are listed.
    """
    found = study.verdict(confidence, margin)
    return {**verdict_data(found), "words": str(found)}


@router.get("/api/studies/{study}/board")
def board(study: Found, service: Here, confidence: Confidence = 0.95, charts: bool = True) -> Response:
    """All that the dashboard shows of a study, with its charts as Vega-Lite."""
    found = service.board(study, confidence)
    if charts:
        found = found | {"charts": service.charts(found)}
    return Response(json.dumps(found, ensure_ascii=False), media_type="application/json")


@router.get("/api/studies/{study}/events", response_model=Events)
def events(
    study: Found,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
):
    """The log, in pages: say `next` as `after` to go on."""
    entries = study.events(after, limit + 1)
    more = len(entries) > limit
    page = entries[:limit]
    return {"events": [entry._asdict() for entry in page], "next": page[-1].seq if more else None}


@router.get("/api/studies/{study}/export", response_class=Response)
def export(study: Found, format: Literal["csv", "jsonl"] = "csv") -> Response:
    """The answers as votes, in a form that `import` reads."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"votes.{format}"
        write_votes(study.votes(), path)
        content = path.read_bytes()
    return Response(
        content,
        media_type="text/csv" if format == "csv" else "application/x-ndjson",
        headers={"Content-Disposition": f'attachment; filename="votes.{format}"'},
    )


@router.post("/api/studies/{study}/import", response_model=Imported, openapi_extra=UPLOAD)
async def import_votes(study: StudyPath, request: Request, service: Here, key: Caller):
    """Take past votes in, as CSV or JSON lines: all of them or, after an error, none."""
    content = plain(await request.body())

    def work() -> Write:
        found, votes = service.study(study), read_packed(content)
        if not votes.size:
            raise Refused(400, "the upload holds no votes: send the rows as CSV or JSON lines in the body")
        return found.importing(votes)

    ready = await service.hub.upload(work)
    return {"imported": await service.write(None if service.open_to_all else key, study, lambda found: ready)}


@router.get("/api/studies/{study}/stream", response_class=StreamingResponse)
async def stream(study: StudyPath, service: Here, key: Caller) -> StreamingResponse:
    """Server-sent events: the study's state now and whenever it has changed, at most twice a second."""
    await asyncio.to_thread(service.study, study)
    messages = service.hub.follow(study, lambda: service.state(study), KeyId(key.id, key.digest))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(messages, media_type="text/event-stream", headers=headers)
