"""What a database says, in words for people."""

import re
from typing import Any

PATIENCE = 60  # seconds to wait for other processes' locks


def reason(error: Exception) -> str:
    """What the driver said, in a line."""
    said = str(getattr(error, "orig", None) or error).strip()
    return said.splitlines()[0] if said else type(error).__name__


def trouble(said: str) -> str:
    known = {
        "readonly": "cannot be written: it is read-only",
        "unable to open": "cannot be opened: does its folder exist, and may it be written?",
        "disk is full": "cannot be written: the disk is full",
        "not a database": "is not a SQLite database",
        "malformed": "is damaged: restore it from a back-up",
        "Could not decode": "is damaged: restore it from a back-up",
        "invalid page": "is damaged: restore it from a back-up",
        "disk I/O error": "cannot be read or written: is the disk full, or failing?",
        "No space left": "cannot be written: the disk is full",
        "locked": "was locked by others for too long",
    }
    for sign, words in known.items():
        if sign in said:
            return f"{words} ({said})"
    return f"does not answer as expected: {said}"


def is_damage(said: str) -> bool:
    """Whether some rows cannot be read while others can."""
    return any(sign in said for sign in ("malformed", "Could not decode", "invalid page"))


def shown(url: Any) -> str:
    """The URL without its passwords, in quotes."""
    return repr(without_password(url) if isinstance(url, str) else url)


def without_password(url: str) -> str:
    """Hides too much rather than too little: up to the last @, as people forget to escape those of a password."""
    hidden = re.sub(r"^((?:[^/]*://)?+[^/@:]*):.*@", r"\1:***@", url)
    return re.sub(r"(password=)[^&]*", r"\1***", hidden, flags=re.IGNORECASE)
