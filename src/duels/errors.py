"""Errors people can act on: what was found, what was expected, what to do."""

import difflib
from collections.abc import Iterable


class DuelsError(Exception):
    """Every error that Duels raises on purpose."""


class InvalidInput(DuelsError, ValueError):
    """Something that was passed in cannot be used: a matrix, a parameter, the contents of a file."""


class UnknownName(InvalidInput):
    """A policy, problem, parameter or arm that does not exist."""

    def __init__(self, kind: str, name: object, known: Iterable[str], see: str = "") -> None:
        known = list(known)
        self.kind = kind
        close = difflib.get_close_matches(str(name).lower(), known, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else f"Known: {_shortened(known)}."
        super().__init__(f"unknown {kind} {name!r}. {hint}" + (f" See: {see}" if see else ""))


class NoCondorcetWinner(DuelsError):
    """The matrix has no arm that beats every other, so regret against it is not defined."""


class PolicyError(DuelsError):
    """A policy failed while it played; the error it raised is the cause."""


class CompileError(PolicyError, InvalidInput):
    """A policy's kernel cannot be compiled; numba's error is the cause."""


class NotFound(DuelsError, LookupError):
    """What was asked for is not there, or not any more."""


class Conflict(InvalidInput):
    """What was said contradicts what is already known: another answer to a duel, a study that exists."""


class CapReached(DuelsError):
    """A voting link has taken as many votes as it may."""


class StorageError(DuelsError):
    """The database cannot be used: it is not there, full, read-only, damaged or of a newer version."""


class DamagedStudy(StorageError):
    """The log of one study is not what was written; the other studies of its database are not affected."""


class DeletedStudy(StorageError):
    """The study was deleted while it was in use."""


class ConformanceError(DuelsError, AssertionError):
    """A policy breaks a promise of the contract; raised by `duels.testing`."""


def _shortened(names: list[str], most: int = 12) -> str:
    if not names:
        return "none"
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, … ({len(names)} in all)"


def counted(count: int, one: str, many: str = "") -> str:
    """`1 vote`, `2,000 votes`, `2 queries`: for messages."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def cut(value: object, most: int = 60) -> str:
    """The value as Python writes it, for messages; `…` says that it goes on."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"
