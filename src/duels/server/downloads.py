"""The names of files that people download."""

import re
import unicodedata
from urllib.parse import quote

MOST = 80  # characters of a study's name


def file_name(title: str, otherwise: str = "study") -> str:
    """Return a title as part of a file's name: letters, digits, dots, underscores and hyphens of any language.

    Args:
        title: The title.
        otherwise: What to return if nothing of it is left.
    """
    return re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", title))[:MOST].strip("-._") or otherwise


def attachment(title: str, what: str, otherwise: str = "study") -> dict[str, str]:
    """Return the header that makes browsers save a file as `title-what`, by RFC 6266.

    Args:
        title: Such as the name of the study.
        what: The rest of the file's name, such as `votes.csv`.
        otherwise: In place of a title of which nothing is left.
    """
    name = f"{file_name(title, otherwise)}-{what}"
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    header = f'attachment; filename="{file_name(plain, otherwise)}-{what}"'
    if not name.isascii():
        header += f"; filename*=UTF-8''{quote(name, safe='')}"
    return {"Content-Disposition": header}
