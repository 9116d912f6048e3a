"""What arms, studies and voters may be called."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from ..errors import InvalidInput, shorten
from .columns import ANSWERS

CONTROLS = {"\t": "a tab", "\n": "a line break", "\r": "a carriage return"}
VARIANTS = "\ufe0e\ufe0f"  # selectors that show the character before them as text or as an emoji
# Characters that are invisible, though Unicode counts them as letters or marks.
BLANK = {"\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u3164", "\uffa0", *map(chr, range(0x180B, 0x1810))}
BLANK |= {*map(chr, range(0xFE00, 0xFE0E)), *map(chr, range(0xE0100, 0xE01F0))}


def arm_names(arms: Iterable[str], fewest: int = 2) -> list[str]:
    """Check the names of arms.

    Args:
        arms: The names.
        fewest: How many are needed.

    Returns:
        The names in composed form.

    Raises:
        InvalidInput: If one of them cannot be used, or there are too few.
    """
    if isinstance(arms, str) or not isinstance(arms, Iterable):
        raise InvalidInput(f"arms is {shorten(arms)}: expected a list of names")
    names = list(arms)
    if len(names) < fewest:
        given = f"{len(names)} arm{'s were' if len(names) != 1 else ' was'} given"
        raise InvalidInput(f"{given}: expected at least two, there is nothing to compare")
    names = [_visible("arm", name) if isinstance(name, str) else name for name in names]
    for name in names:
        if not isinstance(name, str) or not name.strip() or len(name) > 200:
            raise InvalidInput(f"arm {shorten(name)} has no usable name: expected text of 1 to 200 characters")
        if name != name.strip():
            raise InvalidInput(f"arm {shorten(name)} has blanks around its name: leave them out")
        if name in ANSWERS:
            raise InvalidInput(f"an arm cannot be called {name!r}: that is an answer; choose another name")
        if names.count(name) > 1:
            raise InvalidInput(f"two arms are called {name!r}: names must be unique")
    return names


def study_name(name: object) -> str:
    """Check the name of a study, and return it in composed form.

    Raises:
        InvalidInput: If it cannot be used.
    """
    name = _visible("study_name", name) if isinstance(name, str) else name
    if not isinstance(name, str) or not name.strip() or len(name) > 200 or re.search(r"/|^\.\.?$", name):
        raise InvalidInput(f"study_name is {shorten(name)}: expected up to 200 characters without /, and not . or ..")
    return name


# Letters of other alphabets that look like those of "voter", in lower case, and as what they are read.
ALIKE = {
    ord(letter): plain
    for plain, letters in {
        "v": "\u0475\u03bd\u1d20\u13d9",
        "o": "\u043e\u03bf\u0585\u1d0f0",
        "t": "\u0442\u03c4\u1d1b\u13a2",
        "e": "\u0435\u03b5\u04bd\u1d07\u13ac",
        "r": "\u0433\u1d26\u0280\u13a1",
    }.items()
    for letter in letters
}


LIKE_DIGITS = "lIoO"  # letters that look like digits


class LinkVoter(str):
    """The name of somebody who votes through a link. Only the server gives these names, see `link_voter`."""


def link_voter(number: int) -> LinkVoter:
    """Return the name of a link's voter, such as "Voter 7"."""
    return LinkVoter(f"Voter {number}")


def is_reserved(name: str) -> bool:
    """Return whether a name is, or looks like, that of somebody who votes through a link: "Voter 7", "voter  07"."""
    last = name.rstrip()[-1:]
    if not (last.isdigit() or last in LIKE_DIGITS):
        return False
    word, _, number = " ".join(unicodedata.normalize("NFKC", name).split()).partition(" ")
    if word.casefold().translate(ALIKE) != "voter" or not re.fullmatch(rf"[\d{LIKE_DIGITS}]+", number):
        return False
    return any(letter.isdigit() for letter in number) or set(number) <= set("lI")


def voter_name(voter: object) -> str | None:
    """Check the name of a voter who answers now.

    Raises:
        InvalidInput: If it cannot be used, or is reserved for people who vote through links.
    """
    name = past_voter(voter)
    if name is None:
        return None
    name = past_voter(_visible("voter", name))
    if name is not None and not isinstance(voter, LinkVoter) and is_reserved(name):
        raise InvalidInput(
            f"voter is {shorten(voter)}: names of that form are for people who vote through links; choose another one"
        )
    return name


def name_imported(voter: str) -> str:
    """Return the name of a file's voter in a study: "Voter 7" of a file is not "Voter 7" of the study."""
    return f"{' '.join(voter.split())} (imported)" if is_reserved(voter) else voter


def past_voter(voter: object) -> str | None:
    """Check the name of a voter who answered before, which may be a link's or have invisible characters.

    Raises:
        InvalidInput: If it cannot be a voter's name.
    """
    if voter is not None and (not isinstance(voter, str) or not voter or len(voter) > 200 or "\x00" in voter):
        raise InvalidInput(f"voter is {shorten(voter)}: expected up to 200 characters of text, or None")
    _refuse_broken("voter", voter or "")
    return None if voter is None else str(voter)


def label(name: str) -> str:
    """Check the name of a token or a voting link, which may be empty."""
    return _visible("name", name)


def compose(name: str) -> str:
    """Return a name in Unicode's composed form (NFC): an é is one character, not an e and an accent."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def place_of(name: object, names: Sequence[str]) -> int | None:
    """Return the index of a name: the exact one, or else the first that is the same in composed form."""
    if not isinstance(name, str):
        return None
    if name in names:
        return names.index(name)
    if name.isascii():
        return None
    return next((k for k, other in enumerate(names) if compose(other) == compose(name)), None)


def _visible(what: str, name: str) -> str:
    """The name in composed form. Invisible characters are refused, so that names that look the same are the same.

    Letters of other alphabets that look alike stay different.
    """
    if name.isascii() and name.isprintable():
        return name
    _refuse_broken(what, name)
    for k, letter in enumerate(name):
        hidden = unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") or letter in BLANK
        if hidden or (letter in VARIANTS and not _is_emoji(name, k)):
            called = CONTROLS.get(letter) or unicodedata.name(letter, "control character").lower()
            raise InvalidInput(
                f"{what} is {shorten(name)}, whose character {k + 1} is U+{ord(letter):04X} ({called}): leave it out, "
                "since names must not differ in what cannot be seen"
            )
    return compose(name)


def _is_emoji(name: str, k: int) -> bool:
    """Whether a selector at k follows a symbol, or is part of a keycap such as 1️⃣, and not of a letter."""
    symbol = not name[k - 1].isascii() and unicodedata.category(name[k - 1])[0] in "SP"
    return k > 0 and (symbol or name[k + 1 : k + 2] == "\u20e3")


def is_text(name: str) -> bool:
    """Return whether UTF-8 can encode a name. A lone surrogate stands for an invalid byte or escape."""
    return name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)


def _refuse_broken(what: str, name: str) -> None:
    if not is_text(name):
        raise InvalidInput(f"{what} is {shorten(name)}, which is not text: expected characters that UTF-8 can write")
