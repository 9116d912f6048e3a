"""Errors of databases, with helpful messages."""

import re

KNOWN = {  # what a driver's message contains → what it means
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
DAMAGE = ("malformed", "Could not decode", "invalid page")


def reason(error: Exception) -> str:
    """Return the first line of the driver's message."""
    message = str(getattr(error, "orig", None) or error).strip()
    return message.splitlines()[0] if message else type(error).__name__


def trouble(message: str) -> str:
    """Return what a driver's message means for the database, such as `is damaged: restore it …`."""
    for sign, words in KNOWN.items():
        if sign in message:
            return f"{words} ({message})"
    return f"does not answer as expected: {message}"


def is_damage(message: str) -> bool:
    """Return whether some rows cannot be read while others can."""
    return any(sign in message for sign in DAMAGE)


def quote_url(url: object) -> str:
    """Return a URL in quotes, without its password."""
    return repr(without_password(url) if isinstance(url, str) else url)


def without_password(url: str) -> str:
    """Hides everything up to the last @, since people forget to escape an @ in a password."""
    hidden = re.sub(r"^((?:[^/]*://)?+[^/@:]*):.*@", r"\1:***@", url)
    return re.sub(r"(password=)[^&]*", r"\1***", hidden, flags=re.IGNORECASE)
