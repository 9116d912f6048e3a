"""The last verdict that people were shown. What happens later can leave a study open again; then its page says so.

It is stored beside the study, not in its log: a verdict follows from the answers alone.
"""

import json
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..storage.storage import Write
from ..storage.tables import studies
from .log import Log

KEY = "given"  # in a study's settings


class Given(NamedTuple):
    """A verdict that was shown.

    Attributes:
        kind: Its kind, see `Verdict`.
        arm: The winner, or the leader of those that are practically tied; None if there is no winner.
        answers: After how many answers it was shown first.
    """

    kind: str
    arm: str | None
    answers: int

    def words(self) -> str:
        """Return what a page says about it while the study is open again."""
        what = {
            "winner": f"{self.arm} was the winner",
            "practically tied": f"{self.arm} was as good as any",
            "no condorcet winner": "there was no winner",
        }[self.kind]
        since = "It is open again: answers were taken back, people came back, or arms or prompts have changed."
        if self.kind != "winner":
            since = "Answers since then leave it open again, as chance has it now and then; the promise covers that."
        return f"After {self.answers:,} answers {what}. {since}"


def last_given(study: Log) -> Given | None:
    """Return the last verdict that people were shown; None if there was none."""
    with study.storage.reading() as connection:
        settings = connection.execute(_settings(study)).scalar()
    return _given_in(settings)


def note_given(study: Log, given: Given) -> Given:
    """Store a verdict that is shown now, unless the last one said the same; returns the one that is stored."""
    return study.storage.write(Write(partial(_note, study=study, given=given), study.id))


def _note(connection: sa.Connection, *, study: Log, given: Given) -> Given:
    study.current(connection)
    settings = json.loads(connection.execute(_settings(study)).scalar_one())
    before = _given_in(json.dumps(settings))
    if before is not None and before[:2] == given[:2]:
        return before
    changed = json.dumps(settings | {KEY: list(given)})
    connection.execute(sa.update(studies).where(studies.c.id == study.id).values(settings=changed))
    return given


def _settings(study: Log) -> "sa.Select[Any]":
    return sa.select(studies.c.settings).where(studies.c.id == study.id)


def _given_in(settings: str | None) -> Given | None:
    found = None if settings is None else json.loads(settings).get(KEY)
    return None if found is None else Given(*found)
