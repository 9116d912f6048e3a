"""The voters of a study: how many answers, how far they agree, sides and pace; and how to withdraw one's answers."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from ...study.answering import WITHDREW
from ...study.voters.report import order_voters, remarks_of, rows_of, summary_of
from ..auth import Admin, ServiceDep, record_change
from ..http.errors import error_responses
from .links import crowds
from .schemas import VotersOut, Withdraw, Withdrawn
from .studies import FoundAny

router = APIRouter(tags=["voters"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))
Sort = Literal["answers", "agreement", "left", "pace", "last", "voter"]


@router.get("/api/studies/{study}/voters", response_model=VotersOut)
def voters(
    study: FoundAny,
    service: ServiceDep,
    key: Admin,
    search: Annotated[str, Query(max_length=200, description="Only voters whose name contains this.")] = "",
    sort: Annotated[Sort, Query(description="Most answers first, least agreement, …")] = "answers",
    reverse: Annotated[bool, Query(description="The other way round.")] = False,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to leave out at the beginning.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> dict[str, Any]:
    """List the voters of a study, with what stands out by a stated test."""
    found = service.voters(study)
    chosen = order_voters(found, search, sort, reverse)
    more = after + limit < len(chosen)
    return summary_of(found) | {
        "found": len(chosen),
        "voters": rows_of(found, chosen[after : after + limit]),
        "next": after + limit if more else None,
        "remarks": remarks_of(found),
        "notices": crowds(service.storage, study._log.id),
    }


@router.post("/api/studies/{study}/voters/withdraw", response_model=Withdrawn)
def withdraw(study: FoundAny, body: Withdraw, key: Admin) -> dict[str, object]:
    """Take back all answers of a voter and keep the name. This cannot be undone, and the verdict promises nothing more.

    Answers that the voter gives after it count. To erase the name too, use `forget`.
    """
    with record_change(study, key, WITHDREW.format(body.voter)):
        answers = study.withdraw(body.voter)
    return {"answers": answers, "void": study._log.history().void}
