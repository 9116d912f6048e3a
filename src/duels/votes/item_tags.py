"""Tags of items: short words by which people group prompts, such as `math` or `long`."""

import re
import unicodedata
from collections.abc import Sequence

from ..errors import shorten

MOST_TAGS = 20  # of one item
LONGEST_TAG = 60  # characters
SEPARATORS = re.compile(r"[,;|]")


def tags_of(value: object) -> tuple[str, ...]:
    """Return tags as they are stored: without spaces around them, each once, in the order given.

    Args:
        value: A list of texts, or one text with commas, semicolons or `|` between the tags; None for no tags.

    Raises:
        ValueError: If it is something else, or a tag is too long or cannot be shown.
    """
    if value is None:
        return ()
    found = dict.fromkeys(tag for tag in map(_tag, split_tags(value)) if tag)
    if len(found) > MOST_TAGS:
        raise ValueError(f"there are {len(found)} tags, expected at most {MOST_TAGS}")
    return tuple(found)


def split_tags(value: object) -> list[object]:
    """Return the tags of a list, or of one text with separators, before they are checked.

    Raises:
        ValueError: If it is neither.
    """
    if isinstance(value, str):
        return list(SEPARATORS.split(value))
    if hasattr(value, "tolist"):  # arrays of numpy and pandas
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise ValueError(f"tags is {shorten(value, 40)}, expected a list of texts, or texts separated by commas")
    return list(value)


def _tag(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a tag is {shorten(value, 40)}, expected text")
    tag = str(value).strip()
    if len(tag) > LONGEST_TAG:
        raise ValueError(f"the tag {shorten(tag, 40)} has {len(tag)} characters, expected at most {LONGEST_TAG}")
    if any(unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") for one in tag):
        raise ValueError(f"the tag {shorten(tag, 40)} has a control character: leave it out")
    return tag
