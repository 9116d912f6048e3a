"""What a database says, in words for people."""

import sqlalchemy as sa

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
        "locked": "was locked by others for too long",
    }
    for sign, words in known.items():
        if sign in said:
            return f"{words} ({said})"
    return f"does not answer as expected: {said}"


def shown(url: str) -> str:
    """The URL without its password."""
    try:
        return repr(sa.make_url(url).render_as_string(hide_password=True))
    except (sa.exc.ArgumentError, ValueError):
        return repr(url)
