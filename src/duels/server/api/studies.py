"""Studies and their arms."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from ...errors import UnknownName, format_count
from ...policies import BUILT_IN, load_policy
from ...specs import split_spec
from ...storage.storage import Write
from ...study.base import clock
from ...study.create import DEFAULT_POLICY, create_study, delete_study, notices
from ...study.study import Study
from ..auth import Admin, Caller, ServiceDep, record_change
from ..http.errors import error_responses
from ..state import AnyStudy
from .schemas import NewArm, NewStudy, Studies, StudyCreated, StudyOut

router = APIRouter(tags=["studies"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))
StudyPath = Annotated[str, Path(min_length=1, max_length=200, description="The study's name.")]


def find_study(study: StudyPath, service: ServiceDep, key: Caller) -> Study:
    """Return the study that the path names, if it compares arms, for callers with a valid key."""
    return service.study(study)


def find_any(study: StudyPath, service: ServiceDep, key: Caller) -> AnyStudy:
    """Return the study of any kind that the path names, for callers with a valid key."""
    return service.any_study(study)


Found = Annotated[Study, Depends(find_study)]
FoundAny = Annotated[AnyStudy, Depends(find_any)]


@router.get("/api/studies", response_model=Studies)
def studies(service: ServiceDep, key: Caller) -> dict[str, object]:
    """List all studies, oldest first. Unreadable fields of a damaged study are null, and `damaged` gives the reason."""
    return {"studies": service.list_studies()}


@router.post("/api/studies", response_model=StudyCreated, status_code=201)
def create(body: NewStudy, service: ServiceDep, key: Caller) -> dict[str, object]:
    """Create a study. `notices` says what may keep it from ending."""
    before = clock()
    name, _ = split_spec(body.policy or DEFAULT_POLICY, "policy")
    if name not in BUILT_IN:  # the path of a policy file would make the server run its code
        raise UnknownName("policy", name[:60], BUILT_IN)
    study = create_study(
        body.arms,
        body.name,
        service.storage,
        body.policy,
        confidence=body.confidence,
        margin=body.margin,
        after=body.after,
        about=body.about,
        horizon=body.horizon,
        seed=body.seed,
        lease=body.lease,
        load_if_exists=body.load_if_exists,
    )
    service.background.prepare(study)
    is_new = study._log.row.created >= before
    if is_new:
        with record_change(study, key, f"Created the study with {format_count(len(study.arms), 'arm')}."):
            service.storage.write(Write(lambda connection: None))
    return service.describe(study) | {"notices": notices(study, load_policy(study.policy)) if is_new else {}}


@router.get("/api/studies/{study}", response_model=StudyOut)
def get(study: FoundAny, service: ServiceDep) -> dict[str, object]:
    """Get a study."""
    return service.describe(study)


@router.delete("/api/studies/{study}", status_code=204)
def delete(study: StudyPath, service: ServiceDep, key: Admin) -> Response:
    """Delete a study with all its answers, items and links. This cannot be undone."""
    service.any_study(study)
    with record_change(None, key, f"Deleted the study “{study}”."):
        delete_study(study, service.storage)
    return Response(status_code=204)


@router.post("/api/studies/{study}/retire", response_model=StudyOut)
def retire(study: FoundAny, service: ServiceDep, key: Caller) -> dict[str, object]:
    """Stop asking. Voters see a thank-you page, and late answers are still accepted."""
    with record_change(study, key, "Retired the study."):
        study.retire()
    return service.describe(study)


@router.post("/api/studies/{study}/resume", response_model=StudyOut)
def resume(study: FoundAny, service: ServiceDep, key: Caller) -> dict[str, object]:
    """Resume a retired study."""
    with record_change(study, key, "Resumed the study."):
        study.resume()
    return service.describe(study)


@router.post("/api/studies/{study}/arms", response_model=StudyOut, status_code=201)
def add_arm(study: Found, body: NewArm, service: ServiceDep, key: Caller) -> dict[str, object]:
    """Add an arm while the study runs."""
    with record_change(study, key, f"Added the arm “{body.name}”."):
        study.add_arm(body.name)
    return service.describe(study)


@router.post("/api/studies/{study}/arms/{arm:path}/retire", response_model=StudyOut)
def retire_arm(
    study: Found, arm: Annotated[str, Path(min_length=1, max_length=200)], service: ServiceDep, key: Caller
) -> dict[str, object]:
    """Retire an arm; its answers are kept."""
    with record_change(study, key, f"Retired the arm “{arm}”."):
        study.retire_arm(arm)
    return service.describe(study)
