"""The template of a tuning study: an HTML page with `{{ name }}` wherever the value of a parameter belongs.

Voters see two settings as two such pages, side by side. `{{ name | json }}` is the value as JSON, for scripts.
"""

import html
import json
import re
from collections.abc import Mapping
from functools import partial

import sqlalchemy as sa

from ...errors import InvalidInput, UnknownName, shorten
from ...storage.tables import templates
from ...study.base import EventLog
from ...study.event_study import EventStudy
from ...votes.names import is_text
from ..spaces import Setting, Space

MOST = 1 << 20  # characters of a template
MOST_PAGE = 4 << 20  # characters of a rendered page: a long choice may be in it many times
PLACE = re.compile(r"\{\{([^{}\n]{1,200})\}\}")  # of a limited length: else a search could take quadratic time
UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}  # so that no value can end the script that it is in


def check_template(template: object, space: Space) -> str:
    """Return a template, if it can be rendered.

    Args:
        template: An HTML page.
        space: The parameters.

    Raises:
        InvalidInput: If it is not a text, is too long or empty, or has a place for a parameter that does not exist.
    """
    if not isinstance(template, str) or not template.strip() or not is_text(template) or "\x00" in template:
        raise InvalidInput(f"the template is {shorten(template)}: expected an HTML page with {{{{ name }}}} for values")
    if len(template) > MOST:
        raise InvalidInput(f"the template has {len(template):,} characters: expected at most {MOST:,}")
    used = _find_used(template, space)
    if not used:
        names = ", ".join(f"{{{{ {name} }}}}" for name in space.names)
        raise InvalidInput(f"the template has no place for any parameter, so all settings look alike: add {names}")
    return template


def find_unused(template: str, space: Space) -> list[str]:
    """Return the parameters that a template does not show."""
    used = _find_used(template, space)
    return [name for name in space.names if name not in used]


def has_script(template: str) -> bool:
    """Return whether a template has a script, which runs only if scripts are turned on."""
    return re.search(r"<script[\s/>]|<[^<>]*\son\w+\s*=", template, re.IGNORECASE) is not None


def render(template: str, setting: Setting) -> str:
    """Return the page of a setting.

    Raises:
        InvalidInput: If it is too large.
    """
    page = PLACE.sub(partial(_value, setting=setting), template)
    if len(page) > MOST_PAGE:
        raise InvalidInput(f"the page of a setting has {len(page):,} characters: expected at most {MOST_PAGE:,}")
    return page


def _find_used(template: str, space: Space) -> set[str]:
    return {_place(found[1], space.parameters)[0] for found in PLACE.finditer(template)}


def _place(inside: str, names: Mapping[str, object]) -> tuple[str, bool]:
    """The parameter of a place, and whether it is written as JSON."""
    whole = inside.strip()
    if whole in names:
        return whole, False
    name, bar, kind = whole.rpartition("|")
    if bar and kind.strip() == "json":
        whole = name.rstrip()
    if whole not in names:
        raise UnknownName("parameter in the template:", whole, names)
    return whole, True


def _value(found: re.Match[str], setting: Setting) -> str:
    name, as_json = _place(found[1], setting)
    value = setting[name]
    if as_json:
        return re.sub("[<>&]", lambda one: UNSAFE[one[0]], json.dumps(value, ensure_ascii=False))
    return html.escape(value if isinstance(value, str) else json.dumps(value))


def load_template(study: EventStudy) -> str | None:
    """Return the template of a study, as the database has it now. Blocks."""
    with study._log.storage.read_connection() as connection:
        found: str | None = connection.execute(
            sa.select(templates.c.html).where(templates.c.study_id == study._log.id)
        ).scalar()
    return found


def store_template(study: EventStudy, template: str | None) -> None:
    """Store a template that was checked, or remove the one that there is."""
    study._log.write(partial(_store, study=study._log, template=template))


def _store(connection: sa.Connection, *, study: EventLog, template: str | None) -> None:
    study.current(connection)  # refuses a study that was deleted
    connection.execute(sa.delete(templates).where(templates.c.study_id == study.id))
    if template is not None:
        connection.execute(sa.insert(templates).values(study_id=study.id, html=template))
