"""Rankers: from LETOR and TREC files, click models and interleaving to preference matrices.

Everything about documents, queries and clicks belongs here; what a policy learns from a duel does not.
"""

from typing import TYPE_CHECKING

from .. import _lazy_names

_HOMES = {
    "Collection": "collection",
    "load": "collection",
    "save": "collection",
    "Rankers": "rankers",
    "feature_rankers": "rankers",
    "linear_rankers": "rankers",
    "score_rankers": "rankers",
    "Runs": "trec",
    "load_runs": "trec",
    "ClickModel": "clicks",
    "click_model": "clicks",
    "cascade": "clicks",
    "position_based": "clicks",
    "Interleaving": "interleaving",
    "interleave": "interleaving",
    "infer": "interleaving",
    "EstimatedPreferences": ".estimated",
    "estimate_preferences": "estimate",
    "InterleavingEnvironment": "estimate",
    "synthetic_collection": "synthetic",
    "synthetic_letor": "synthetic",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from ..estimated import EstimatedPreferences
    from .clicks import ClickModel, cascade, click_model, position_based
    from .collection import Collection, load, save
    from .estimate import InterleavingEnvironment, estimate_preferences
    from .interleaving import Interleaving, infer, interleave
    from .rankers import Rankers, feature_rankers, linear_rankers, score_rankers
    from .synthetic import synthetic_collection, synthetic_letor
    from .trec import Runs, load_runs

__getattr__, __dir__ = _lazy_names(__name__, _HOMES)
