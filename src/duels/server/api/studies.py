"""Studies and their arms."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from ...errors import UnknownName
from ...policies import BUILT_IN
from ...specs import split
from ...study.catalogue import create_study, delete_study
from ...study.study import Study
from ..errors import shape
from ..schemas import NewArm, NewStudy, Studies, StudyOut
from ..security import Admin, Caller, Here

router = APIRouter(tags=["studies"], responses=shape(400, 401, 403, 404, 409, 413, 422, 429, 503))
StudyPath = Annotated[str, Path(min_length=1, max_length=200, description="The study's name.")]


def found(study: StudyPath, service: Here, key: Caller) -> Study:
    """The study of the address, for those who may see it."""
    return service.study(study)


Found = Annotated[Study, Depends(found)]


@router.get("/api/studies", response_model=Studies)
def studies(service: Here, key: Caller):
    """All studies, oldest first. What cannot be read of a damaged study is null, and `damaged` says why."""
    return {"studies": service.listed()}


@router.post("/api/studies", response_model=StudyOut, status_code=201)
def create(body: NewStudy, service: Here, key: Caller):
    """Begin a study."""
    name, _ = split(body.policy, "policy")
    if name not in BUILT_IN:  # a file's name would have the server run what is in it
        raise UnknownName("policy", name[:60], BUILT_IN)
    study = create_study(
        body.arms,
        body.name,
        service.storage,
        body.policy,
        horizon=body.horizon,
        seed=body.seed,
        lease=body.lease,
        load_if_exists=body.load_if_exists,
    )
    service.hub.prepare(study)
    return service.described(study)


@router.get("/api/studies/{study}", response_model=StudyOut)
def get(study: Found, service: Here):
    """One study."""
    return service.described(study)


@router.delete("/api/studies/{study}", status_code=204)
def delete(study: StudyPath, service: Here, key: Admin) -> Response:
    """Remove a study with all its answers, items and links; there is no way back."""
    service.study(study)
    delete_study(study, service.storage)
    return Response(status_code=204)


@router.post("/api/studies/{study}/retire", response_model=StudyOut)
def retire(study: Found, service: Here):
    """Ask nothing more: voters are thanked, late answers are still taken."""
    study.retire()
    return service.described(study)


@router.post("/api/studies/{study}/resume", response_model=StudyOut)
def resume(study: Found, service: Here):
    """Go on after retiring."""
    study.resume()
    return service.described(study)


@router.post("/api/studies/{study}/arms", response_model=StudyOut, status_code=201)
def add_arm(study: Found, body: NewArm, service: Here):
    """Add an arm while the study runs."""
    study.add_arm(body.name)
    return service.described(study)


@router.post("/api/studies/{study}/arms/{arm:path}/retire", response_model=StudyOut)
def retire_arm(study: Found, arm: Annotated[str, Path(min_length=1, max_length=200)], service: Here):
    """Take an arm out of the race; its answers are kept."""
    study.retire_arm(arm)
    return service.described(study)
