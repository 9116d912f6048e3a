"""The last verdict that people were shown. A study can be open again afterwards; then its page says why.

It is stored beside the study, not in its log: a verdict follows from the answers alone.
"""

import json
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from ..storage.storage import Write
from ..storage.tables import studies
from .about import COMPARISONS, THESE_PEOPLE
from .log import Log
from .record import Record
from .verdict import join_names

KEY = "given"  # in a study's settings


class Basis(NamedTuple):
    """What a verdict rests on besides new answers: if any of it changes, the study may be open again.

    Attributes:
        taken_back: How often an answer was taken back.
        arms: The active arms.
        items: The items, as spans of their numbers.
        about: What the verdict is about.
        strength: What the verdict holds for.
        imported: How many rows of past votes there are.
        margin: Of the verdict.
    """

    taken_back: int = 0
    arms: tuple[str, ...] = ()
    items: tuple[tuple[int, int], ...] = ()
    about: str = ""
    strength: str = ""
    imported: int = 0
    margin: float = 0.0

    def changes(self, now: "Basis") -> list[str]:
        """Return what has changed since then, as parts of a sentence."""
        before, after = _numbers(self.items), _numbers(now.items)
        added = [arm for arm in now.arms if arm not in self.arms]
        retired = [arm for arm in self.arms if arm not in now.arms]
        weaker = "" if now.strength == self.strength else now.strength
        return [
            words
            for words, holds in (
                ("answers were taken back", now.taken_back > self.taken_back),
                (f"{join_names(added)} {_were(added)} added" if added else "", bool(added)),
                (f"{join_names(retired)} {_were(retired)} retired" if retired else "", bool(retired)),
                ("prompts were removed", bool(before - after)),
                ("prompts were added", bool(before and after - before)),
                ("the margin was changed", now.margin != self.margin),
                ("past votes were imported", weaker == COMPARISONS and now.imported > self.imported),
                ("people came back, so that more evidence is needed", weaker == THESE_PEOPLE),
                ("the judge contradicted itself", now.about != self.about),
            )
            if holds
        ]


def _numbers(spans: tuple[tuple[int, int], ...]) -> set[int]:
    return {number for first, last in spans for number in range(first, last + 1)}


def _were(names: list[str]) -> str:
    return "was" if len(names) == 1 else "were"


def basis_of(record: Record) -> Basis:
    """Return what a study's verdict rests on now."""
    spans = [] if record.items is None else record.items.spans
    return Basis(
        taken_back=int(np.array(record.attempt, np.int64).sum()),
        arms=tuple(name for name, active in zip(record.names, record.active) if active),
        items=tuple((first, last) for first, last in spans),
        about=record.about,
        strength=record.strength,
        imported=record.imported,
        margin=record.goal.margin,
    )


class Given(NamedTuple):
    """A verdict that was shown.

    Attributes:
        kind: Its kind, see `Verdict`.
        arm: The winner, or the leader of those that are practically tied; None if there is no winner.
        answers: After how many answers it was shown first.
        basis: What it rested on then.
    """

    kind: str
    arm: str | None
    answers: int
    basis: Basis = Basis()

    def words(self, now: Basis, void: bool = False) -> str:
        """Return what a page says about it while the study is open again.

        Answers alone never take back a winner that rests on independent answers. All other verdicts may lapse.

        Args:
            now: What a verdict rests on now.
            void: Whether nothing is promised about errors.
        """
        what = {
            "winner": f"{self.arm} was the winner",
            "practically tied": f"{self.arm} was as good as any",
            "no condorcet winner": "there was no winner",
        }[self.kind]
        changes = self.basis.changes(now)
        if changes:
            since = join_names(changes, len(changes))
            return f"After {self.answers:,} answers {what}. Since then {since}: it is open again."
        again = f"After {self.answers:,} answers {what}. It is open again"
        stays = self.kind == "winner" and now.strength not in (THESE_PEOPLE, COMPARISONS)
        if stays or void:
            return f"{again}."
        return f"{again}, as chance has it now and then; the promise covers that."


def last_given(study: Log) -> Given | None:
    """Return the last verdict that people were shown; None if there was none."""
    with study.storage.read_connection() as connection:
        settings = connection.execute(_settings(study)).scalar()
    return _read_given(settings)


def note_given(study: Log, given: Given) -> Given:
    """Store a verdict that is shown now, unless the last one said the same; returns the one that is stored."""
    return study.storage.write(Write(partial(_note, study=study, given=given), study.id))


def _note(connection: sa.Connection, *, study: Log, given: Given) -> Given:
    study.current(connection)
    settings = json.loads(connection.execute(_settings(study)).scalar_one())
    before = _read_given(json.dumps(settings))
    if before is not None and before[:2] == given[:2]:
        return before
    changed = json.dumps(settings | {KEY: list(given)})
    connection.execute(sa.update(studies).where(studies.c.id == study.id).values(settings=changed))
    return given


def _settings(study: Log) -> "sa.Select[Any]":
    return sa.select(studies.c.settings).where(studies.c.id == study.id)


def _read_given(settings: str | None) -> Given | None:
    found = None if settings is None else json.loads(settings).get(KEY)
    if found is None:
        return None
    kind, arm, answers, (taken_back, arms, items, *rest) = found
    spans = tuple((first, last) for first, last in items)
    return Given(kind, arm, answers, Basis(taken_back, tuple(arms), spans, *rest))
