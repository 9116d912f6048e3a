"""Tokens of programs and admins."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from ...errors import NotFound
from ...study.duels import iso_time
from ..auth import Admin, ServiceDep, record_change
from ..http.errors import error_responses
from ..keys import Key, list_keys, make_key, revoke_key
from .schemas import Changes, NewToken, TokenMade, Tokens
from .settings import changes_of

router = APIRouter(tags=["tokens"], responses=error_responses(400, 401, 403, 404, 413, 422, 429, 503))
KINDS = ("admin", "api")


def token_out(key: Key) -> dict[str, object]:
    revoked = None if key.revoked is None else iso_time(key.revoked)
    return {"id": key.id, "kind": key.kind, "name": key.name, "created": iso_time(key.created), "revoked": revoked}


@router.get("/api/tokens", response_model=Tokens)
def tokens(service: ServiceDep, key: Admin) -> dict[str, object]:
    """List all tokens, without their secrets."""
    return {"tokens": [token_out(one) for one in list_keys(service.storage, KINDS)]}


@router.post("/api/tokens", response_model=TokenMade, status_code=201)
def new_token(body: NewToken, service: ServiceDep, key: Admin) -> dict[str, object]:
    """Create a token. It is shown only once."""
    with record_change(None, key, f"Created the {body.kind} token “{body.name}”."):
        made, secret = make_key(service.storage, body.kind, body.name)
    return {"id": made.id, "kind": made.kind, "name": made.name, "token": secret}


@router.delete("/api/tokens/{token}", status_code=204)
def revoke_token(token: Annotated[int, Path(ge=1, le=2**31 - 1)], service: ServiceDep, key: Admin) -> Response:
    """Revoke a token and the sessions that were opened with it, with immediate effect."""
    known = {one.id: one for one in list_keys(service.storage, KINDS)}
    if token not in known:
        raise NotFound(f"there is no token {token}")
    with record_change(None, key, f"Revoked the {known[token].kind} token “{known[token].name}”."):
        revoke_key(service.storage, token, KINDS)
    return Response(status_code=204)


@router.get("/api/changes", response_model=Changes)
def changes(
    service: ServiceDep,
    key: Admin,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> dict[str, object]:
    """List who created and revoked tokens, deleted studies and erased voters, the newest change first."""
    return changes_of(None, service, before, limit)
