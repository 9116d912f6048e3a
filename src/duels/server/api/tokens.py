"""Tokens of programs and admins."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from ...study.duels import iso_time
from ..errors import Refused, shape
from ..keys import Key, list_keys, make_key, revoke_key
from ..schemas import NewToken, TokenMade, Tokens
from ..security import Admin, Here

router = APIRouter(tags=["tokens"], responses=shape(400, 401, 403, 404, 413, 422, 429, 503))
KINDS = ("admin", "api")


def token_out(key: Key) -> dict[str, Any]:
    revoked = None if key.revoked is None else iso_time(key.revoked)
    return {"id": key.id, "kind": key.kind, "name": key.name, "created": iso_time(key.created), "revoked": revoked}


@router.get("/api/tokens", response_model=Tokens)
def tokens(service: Here, key: Admin):
    """All tokens, without their secrets."""
    return {"tokens": [token_out(one) for one in list_keys(service.storage, KINDS)]}


@router.post("/api/tokens", response_model=TokenMade, status_code=201)
def new_token(body: NewToken, service: Here, key: Admin):
    """A token. It is given only now."""
    made, secret = make_key(service.storage, body.kind, body.name)
    return {"id": made.id, "kind": made.kind, "name": made.name, "token": secret}


@router.delete("/api/tokens/{token}", status_code=204)
def revoke_token(token: Annotated[int, Path(ge=1, le=2**31 - 1)], service: Here, key: Admin) -> Response:
    """From now on the token opens nothing, nor do the sessions that began with it."""
    if not revoke_key(service.storage, token, KINDS):
        raise Refused(404, f"there is no token {token}")
    return Response(status_code=204)
