"""Errors people can act on: what was found, what was expected, what to do."""

import difflib
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

UNITS = re.compile(r"(?<=\d) (?=(?:%|s|ms|min|h|[KMG]i?B)(?!\w))")


class DuelsError(Exception):
    """Base class of all errors that Duels raises on purpose."""


class InvalidInput(DuelsError, ValueError):
    """An argument cannot be used: a matrix, a parameter, the contents of a file."""


class NotFound(DuelsError, LookupError):
    """The requested object does not exist, or no longer exists."""


class UnknownName(InvalidInput, NotFound):
    """A policy, problem, parameter, study or arm that does not exist.

    Args:
        kind: What the name should name, such as `"policy"`; also kept as an attribute.
        name: The unknown name; also kept as an attribute.
        known: The names that exist; also kept as an attribute. The closest one is suggested.
        see: A command or page that lists the known names.
    """

    def __init__(self, kind: str, name: object, known: Iterable[str], see: str = "") -> None:
        known = list(known)
        self.kind, self.name, self.known = kind, name, known
        close = difflib.get_close_matches(str(name).lower(), known, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else f"Known: {_shorten(known)}."
        super().__init__(f"unknown {kind} {name!r}. {hint}" + (f" See: {see}" if see else ""))

    @classmethod
    def from_message(cls, message: str) -> "UnknownName":
        """Return the error with a message of a server, which has the names in it."""
        error = cls("name", "", ())
        error.args = (message,)
        return error


class NoCondorcetWinner(DuelsError):
    """No arm of the matrix beats every other arm, so Condorcet regret is not defined."""


class PolicyError(DuelsError):
    """A policy failed while it was running; the error that it raised is the cause."""


class CompileError(PolicyError, InvalidInput):
    """A policy's kernel cannot be compiled; numba's error is the cause."""


class Conflict(InvalidInput):
    """The request contradicts what is already recorded: another answer to a duel, a study that exists."""


class LackingOutputs(Conflict):
    """Too few arms of a study have outputs for all items to ask anything."""


class NothingToAsk(Conflict):
    """Every question of a study was asked."""


class CapReached(DuelsError):
    """A voting link has taken as many votes as it may."""


class StorageError(DuelsError):
    """The database cannot be used: it is missing, full, read-only, damaged or of a newer version."""


class DamagedStudy(StorageError):
    """The log of one study does not match what was written; other studies in the database are not affected."""


class DeletedStudy(StorageError):
    """The study was deleted while it was in use."""


class ConformanceError(DuelsError, AssertionError):
    """A policy violates the policy contract; raised by `duels.testing`."""


class MissingExtra(DuelsError, ImportError):
    """A feature needs a package that is not installed.

    Args:
        feature: What was asked for, at the beginning of a sentence.
        package: The package that cannot be imported.
        extra: The extra of Duels that brings it: plots, server, postgres or dask.
    """

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(f"{feature} needs {package}: pip install 'duels[{extra}]'")
        self.extra = extra


@contextmanager
def needs_extra(extra: str, feature: str) -> Iterator[None]:
    """Raise `MissingExtra` if an import in the block fails because a package is not installed.

    Args:
        extra: The extra of Duels that brings the package.
        feature: What was asked for, at the beginning of a sentence.

    Example:
        >>> with needs_extra("dask", "running on a cluster"):
        ...     import distributed
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == __name__.partition(".")[0]:  # a bug, not a missing package
            raise
        raise MissingExtra(feature, package, extra) from None


def _shorten(names: list[str], most: int = 12) -> str:
    if not names:
        return "none"
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, … ({len(names)} in all)"


def format_count(count: int, one: str, many: str = "") -> str:
    """Format a count with its noun: `1 vote`, `2,000 votes`, `2 queries`.

    Args:
        count: How many there are.
        one: The singular noun.
        many: The plural; by default the singular and an s.
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def join_units(text: str) -> str:
    """Replace the spaces between numbers and their units, as in `95 %` and `3 s`, by ones at which no line breaks."""
    return UNITS.sub("\u00a0", text)


def percent(share: float) -> int:
    """Round a share to a whole number of percent.

    Halves are rounded away from 50, so that a share and the rest add up to 100: 62.5 and 37.5 become 63 and 37.
    """
    larger = math.floor(100 * max(share, 1 - share) + 0.5 + 1e-9)  # 100 * 0.145 is a bit less than 14.5
    return larger if share >= 0.5 else 100 - larger


def hundredths(share: float) -> str:
    """Format a share with two digits, rounded as `percent` does: `0.63`."""
    return f"{percent(share) / 100:.2f}" if math.isfinite(share) else f"{share:.2f}"


def shorten(value: object, most: int = 60) -> str:
    """Return `repr(value)` for a message, cut to `most` characters; `…` marks a cut."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"
