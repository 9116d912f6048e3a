"""What people who vote through links read, and which answers they may give. It can be changed while a study runs."""

import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..checks import check_int
from ..errors import InvalidInput, shorten
from ..storage.tables import studies
from ..votes.names import is_text
from .base import EventLog
from .event_study import EventStudy

MOST_QUESTION = 200  # characters
MOST_INSTRUCTIONS = 10_000  # characters
MOST_COMMENT = 1_000  # characters
MOST_VOTES = 100_000
DISGUISES = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
SWITCHES = ("ties", "both_bad", "comments")


class VoterSettings(NamedTuple):
    """What voters read, and which answers they may give.

    Attributes:
        question: What they are asked about each two outputs.
        instructions: What they should know before they answer, in Markdown; empty for none.
        ties: Whether they may answer that both are equally good.
        both_bad: Whether they may answer that both are bad.
        comments: Whether they may say why.
        votes: How many votes each of them is asked for, unless their link says otherwise.
    """

    question: str = "Which is better?"
    instructions: str = ""
    ties: bool = True
    both_bad: bool = True
    comments: bool = False
    votes: int = 25

    def allows(self, answer: str) -> bool:
        """Return whether voters may give an answer."""
        return {"tie": self.ties, "both_bad": self.both_bad}.get(answer, True)


DEFAULT = VoterSettings()


def voter_settings_of(settings: Mapping[str, Any]) -> VoterSettings:
    """Return what is stored in a study's settings."""
    return VoterSettings(**settings.get("voters", {}))


def voter_settings(study: EventStudy) -> VoterSettings:
    """Return the settings for voters as the database has them now."""
    with study._log.storage.lock, study._log.storage.translate_errors():
        return voter_settings_of(_read_settings(study._log.storage.connection(), study._log))


def change_voter_settings(study: EventStudy, **changes: object) -> VoterSettings:
    """Change the settings for voters: all that are given or, after an error, none.

    Args:
        study: The study.
        **changes: Attributes of `VoterSettings`.

    Returns:
        All settings.

    Raises:
        InvalidInput: If one of them cannot be used.
    """
    checked = {name: _check_setting(name, value) for name, value in changes.items()}
    return study._log.write(partial(_change, study=study._log, changes=checked))


def _change(connection: sa.Connection, *, study: EventLog, changes: Mapping[str, object]) -> VoterSettings:
    study.current(connection)
    settings = _read_settings(connection, study)
    settings["voters"] = settings.get("voters", {}) | changes
    connection.execute(sa.update(studies).where(studies.c.id == study.id).values(settings=json.dumps(settings)))
    return voter_settings_of(settings)


def _read_settings(connection: sa.Connection, study: EventLog) -> dict[str, Any]:
    found = connection.execute(sa.select(studies.c.settings).where(studies.c.id == study.id)).scalar_one()
    return dict(json.loads(found))


def _check_setting(name: str, value: object) -> object:
    if name not in VoterSettings._fields:
        raise InvalidInput(f"voters have no setting {name!r}: expected one of {', '.join(VoterSettings._fields)}")
    if name == "votes":
        return check_int("votes", value, 1, MOST_VOTES)
    if name in SWITCHES:
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} is {shorten(value)}: expected True or False")
        return value
    most = MOST_QUESTION if name == "question" else MOST_INSTRUCTIONS
    text = value.strip() if isinstance(value, str) else None
    if text is None or len(text) > most or not _is_storable(text) or (name == "question" and not text.isprintable()):
        raise InvalidInput(f"{name} is {shorten(value)}: expected text of at most {most:,} characters")
    return text or VoterSettings._field_defaults[name]


def check_comment(comment: str | None) -> str | None:
    """Return a voter's comment as it is stored; None if there is nothing in it.

    Control characters other than tabs and line breaks are left out, since terminals obey them; so are signs that change
    the direction of the text that follows, since it would look like another one.

    Raises:
        InvalidInput: If it is too long.
    """
    text = DISGUISES.sub("", (comment or "").replace("\r\n", "\n")).strip()
    if len(text) > MOST_COMMENT or not _is_storable(text):
        raise InvalidInput(f"the comment is {shorten(text)}: expected text of at most {MOST_COMMENT:,} characters")
    return text or None


def _is_storable(text: str) -> bool:
    """Whether every database can store it."""
    return is_text(text) and "\x00" not in text
