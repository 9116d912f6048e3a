"""Ratings of arms from finished votes: Bradley–Terry and Rao–Kupper, with intervals and ranges of ranks.

Estimates for a fixed set of votes belong here. Statements that hold at all times while votes come in are in `study`.
"""

from typing import TYPE_CHECKING

from .. import _lazy_names

_HOMES = {
    "rate": "table",
    "effects": "table",
    "category_ranks": "overviews",
    "ratings_over_time": "overviews",
    "win_rates": "overviews",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from .overviews import category_ranks, ratings_over_time, win_rates
    from .table import effects, rate

__getattr__, __dir__ = _lazy_names(__name__, _HOMES)
