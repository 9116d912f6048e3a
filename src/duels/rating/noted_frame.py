"""A data frame that says how its numbers are to be read."""

from collections.abc import Iterable
from typing import Any, Self

import polars as pl


class NotedFrame(pl.DataFrame):
    """A polars data frame with notes, which are printed below it.

    What is computed from it, such as a filtered frame, has no notes.

    Attributes:
        notes: Sentences on how its numbers are to be read.
    """

    notes: tuple[str, ...] = ()

    @classmethod
    def with_notes(cls, frame: pl.DataFrame, notes: Iterable[str]) -> Self:
        """Return a frame with notes."""
        noted = cls(frame)
        noted.notes = tuple(notes)
        return noted

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *self.notes])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self, *args: Any, **options: Any) -> str:
        import html

        table = super()._repr_html_(*args, **options)
        return "".join([table, *(f"<p>{html.escape(note)}</p>" for note in self.notes)])
