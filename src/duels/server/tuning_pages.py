"""The pages of a study that tunes parameters, and settings as its template shows them."""

import json
from collections.abc import Callable
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from ..continuous.spaces import Setting
from ..continuous.tuning import Tuning
from ..errors import InvalidInput
from ..study.items import scripts_allowed
from .pages import PageRoute, find_signed_in, to_signin
from .security import ServiceDep
from .service import Json, Service
from .voting import BEST_SIDES, output_response, render_settings

router = APIRouter(include_in_schema=False, route_class=PageRoute)


@router.get("/studies/{study}/rendered")
def show_rendered(
    request: Request, study: str, service: ServiceDep, setting: Annotated[str, Query(max_length=100_000)] = ""
) -> Response:
    """Show a setting as voters see it, in a frame: a page that can load nothing."""
    if find_signed_in(request, service) is None:
        return to_signin(request)
    found = service.load_tuning(study)
    try:
        wanted = json.loads(setting)
    except (ValueError, RecursionError):
        raise InvalidInput("the setting is not JSON: expected a value for each parameter") from None
    (shown,) = render_settings(found, [found.space.check(wanted)])
    response = output_response(shown, scripts_allowed(found))
    response.headers["Cache-Control"] = "no-store"
    return response


def address_of_setting(study: str, setting: Setting) -> str:
    """Return the address of a setting's page, for people who are signed in."""
    values = urlencode({"setting": json.dumps(setting, ensure_ascii=False)})
    return f"/studies/{quote(study, safe='')}/rendered?{values}"


def with_frames(glance: Json, study: Tuning, address: Callable[[str], str]) -> Json:
    """Add to the results where the best setting and the runner-up are shown as voters see them. Blocks.

    Args:
        glance: The results.
        study: The study.
        address: Of a setting's page, by what it is in `best`.

    Returns:
        The results with `frames`, the addresses by what is there, or null without a template or an answer; and
        `scripts`, whether scripts in the pages run.
    """
    has_pages = glance["best"] is not None and study.template is not None
    frames = {which: address(which) for which in BEST_SIDES} if has_pages else None
    return glance | {"frames": frames, "scripts": scripts_allowed(study)}


def own_glance(service: Service, study: Tuning) -> Json:
    """Return the results of a study for people who are signed in. Blocks."""
    glance = service.glance(study)
    return with_frames(glance, study, lambda which: address_of_setting(study.name, glance["best"][which]))
