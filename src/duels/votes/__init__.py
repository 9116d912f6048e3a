"""Past votes and items as data: what their files look like, and what arms, studies and voters may be called.

Reading, writing and checking belongs here. It knows nothing of databases; what votes show is in `study`.
"""

from typing import TYPE_CHECKING

from .. import _lazy_names

_HOMES = {
    "Vote": "votes",
    "Votes": "votes",
    "read_votes": "readers",
    "count_votes": "readers",
    "write_votes": "writers",
    "Item": "items",
    "Output": "items",
    "read_items": "items",
    "items_of": "items",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from .items import Item, Output, items_of, read_items
    from .readers import count_votes, read_votes
    from .votes import Vote, Votes
    from .writers import write_votes

__getattr__, __dir__ = _lazy_names(__name__, _HOMES)
