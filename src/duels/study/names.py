"""What arms, studies and voters may be called, and how duels are told apart."""

import json
import operator
import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..errors import InvalidInput
from .history import ANSWERS, History
from .storage import Event


class Duel(NamedTuple):
    """A question: which of two arms is better?"""

    id: int
    left: str
    right: str
    study: str
    time: str  # when it was asked

    @property
    def is_self(self) -> bool:
        """Whether the arm duels itself: the policy is content with it, and learns nothing from the answer."""
        return self.left == self.right


class LogEntry(NamedTuple):
    """One event of a study, for people and programs."""

    seq: int
    kind: str  # create, ask, tell, vote, undo, forget, add_arm, retire_arm, retire, resume
    duel: int | None
    left: str | None
    right: str | None
    answer: str | None
    voter: str | None
    time: str
    note: dict[str, Any]


def arm_names(arms: Iterable[str], fewest: int = 2) -> list[str]:
    if isinstance(arms, str) or not isinstance(arms, Iterable):
        raise InvalidInput(f"arms is {arms!r:.60}: expected a list of names")
    names = list(arms)
    if len(names) < fewest:
        given = f"{len(names)} arm{'s were' if len(names) != 1 else ' was'} given"
        raise InvalidInput(f"{given}: expected at least two, there is nothing to compare")
    for name in names:
        if not isinstance(name, str) or not name.strip() or len(name) > 200 or re.search(r"[\x00-\x1f]", name):
            raise InvalidInput(f"arm {name!r:.60} has no usable name: expected text of 1 to 200 characters")
        _refuse_broken("arm", name)
        if name != name.strip():
            raise InvalidInput(f"arm {name!r:.60} has blanks around its name: leave them out")
        if name in ANSWERS:
            raise InvalidInput(f"an arm cannot be called {name!r}: that is an answer; choose another name")
        if names.count(name) > 1:
            raise InvalidInput(f"two arms are called {name!r}: names must be unique")
    return names


def study_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > 200 or re.search(r"[\x00-\x1f/]|^\.\.?$", name):
        raise InvalidInput(f"study_name is {name!r:.60}: expected up to 200 characters without /, and not . or ..")
    _refuse_broken("study_name", name)
    return name


class LinkVoter(str):
    """The name of somebody who votes through a link. Only the server gives these, see `link_voter`."""


def link_voter(number: int) -> LinkVoter:
    return LinkVoter(f"Voter {number}")


def is_reserved(name: str) -> bool:
    """Whether a name is, or looks like, one of those who vote through links: "Voter 7", "voter  7"."""
    if not name.rstrip()[-1:].isdigit():
        return False
    plain = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    return re.fullmatch(r"voter (?!0)\d{1,18}", plain) is not None


def voter_name(voter: Any) -> str | None:
    """A name that a program gives to a voter; those of links are not to be had."""
    name = voter_text(voter)
    if name is not None and not isinstance(voter, LinkVoter) and is_reserved(name):
        raise InvalidInput(
            f"voter is {voter!r:.60}: names of that form are for people who vote through links; choose another one"
        )
    return name


def imported_name(voter: str | None) -> str | None:
    """A voter of a file, whose "Voter 7" is not the one of the study that takes the file in."""
    return f"{voter} (imported)" if voter is not None and is_reserved(voter) else voter


def voter_text(voter: Any) -> str | None:
    """Any voter's name, also one of a link."""
    if voter is not None and (not isinstance(voter, str) or not voter or len(voter) > 200 or "\x00" in voter):
        raise InvalidInput(f"voter is {voter!r:.60}: expected up to 200 characters of text, or None")
    _refuse_broken("voter", voter or "")
    return None if voter is None else str(voter)


def is_text(name: str) -> bool:
    """Whether UTF-8 can write it. Half a pair of surrogates stands for a byte, or an escape, that is no character."""
    return name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)


def _refuse_broken(what: str, name: str) -> None:
    if not is_text(name):
        raise InvalidInput(f"{what} is {name!r:.60}, which is not text: expected characters that UTF-8 can write")


def duel_number(duel: Any) -> int:
    number = duel.id if isinstance(duel, Duel) else duel
    if isinstance(number, str) and number.isdecimal() and len(number) < 20:
        return int(number)
    try:
        if not isinstance(number, bool):
            return operator.index(number)
    except TypeError:
        pass
    raise InvalidInput(f"duel is {duel!r:.60}: expected what ask gave, or its id")


def iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def log_entry(history: History, event: Event) -> LogEntry:
    """An event with its arms by name."""

    def name(arm: int | None) -> str | None:
        return None if arm is None else history.names[arm]

    left, right = event.left_arm, event.right_arm
    if event.duel is not None and left is None:
        left, right = history.left[event.duel], history.right[event.duel]
    note = json.loads(event.note) if event.note else {}
    return LogEntry(
        event.seq,
        event.kind,
        event.duel,
        name(left),
        name(right),
        event.answer,
        event.voter,
        iso_time(event.time),
        note,
    )
