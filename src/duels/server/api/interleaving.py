"""Comparing rankers on live traffic: interleaved lists and the clicks on them.

The fast routes call `interleaved` and `clicks` directly.
"""

from fastapi import APIRouter

from ...storage.storage import Write
from ...study import impressions
from ...study.study import Study
from ..auth import FastCaller, ServiceDep
from ..http.errors import error_responses
from .duels import as_program
from .schemas import Clicks, Impression, Interleave, Told
from .studies import StudyPath

router = APIRouter(tags=["interleaving"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))
Shown = dict[str, object]  # the body of a response


@router.post("/api/studies/{study}/interleave", response_model=Impression)
async def interleave(study: StudyPath, body: Interleave, service: ServiceDep, key: FastCaller) -> Shown:
    """Get the list to show, interleaved from the rankings of two arms. A self-duel shows that arm's own list.

    Send one ranking for each arm; or ask for a duel first, and send its id with the rankings of its two arms.
    """

    def write(found: Study) -> Write[impressions.Impression]:
        return impressions.show_list(
            found._log,
            body.rankings,
            body.duel,
            method=body.method,
            length=body.length,
            missing=body.missing,
            voter=body.voter,
        )

    shown = await service.write_compared(key, study, write)
    values = shown._asdict()
    return {"impression": values.pop("id"), **values, "is_self": shown.is_self}


@router.post("/api/studies/{study}/clicks", response_model=Told)
async def clicks(study: StudyPath, body: Clicks, service: ServiceDep, key: FastCaller) -> Shown:
    """Send all clicks on a list that was shown. They decide its duel."""

    def write(found: Study) -> Write[str]:
        answer = impressions.answer_by_clicks(found._log, body.impression, body.clicks, voter=body.voter)
        return as_program(key, found, body.impression, answer)

    return {"duel": body.impression, "answer": await service.write_compared(key, study, write)}
