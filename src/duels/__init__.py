"""Duels: find the best of K alternatives from pairwise comparisons.

Names are loaded when first used, so that `import duels` is quick.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "PreferenceMatrix": "preference",
    "problem": "problems",
    "load_matrix": "problems",
    "save_matrix": "problems",
    "policy": "policies",
    "simulate": "simulate",
    "Experiment": "experiment",
    "experiment": "experiment",
    "run_experiment": "experiment",
    "race": "race",
    "merge": "experiment",
    "draw_subset": "subsets",
    "plot_regret": "figures",
    "plot_accuracy": "figures",
    "plot_condorcet_probability": "figures",
    "plot_preferences": "figures",
    "plot_pairs": "figures",
    "plot_intervals": "illustrations",
    "plot_state": "illustrations",
    "plot_regret_quantiles": "illustrations",
    "plot_gamma": "illustrations",
    "plot_horizons": "illustrations",
    "save_chart": "charts",
    "paper_claims": "claims",
    "write_report": "report",
    "reproduce": "reproduce",
    "Results": "results",
    "load_results": "results",
    "combine": "results",
    "load_collection": "ranking.collection",
    "interleave": "ranking.interleave",
    "infer": "ranking.interleave",
    "estimate_preferences": "ranking.estimate",
    "InterleavingEnvironment": "ranking.estimate",
    "create_study": "study.catalogue",
    "load_study": "study.catalogue",
    "delete_study": "study.catalogue",
    "list_studies": "study.catalogue",
    "Study": "study.study",
    "Duel": "study.names",
    "analyse": "study.votes",
    "read_votes": "study.votes",
    "write_votes": "study.votes",
    "plan": "study.plan",
    "read_items": "study.items",
    "add_items": "study.items",
    "connect": "client",
    "DuelsError": "errors",
    "InvalidInput": "errors",
    "NoCondorcetWinner": "errors",
    "UnknownName": "errors",
    "Conflict": "errors",
    "StorageError": "errors",
}
_MODULES = ("theory", "testing", "policies", "problems", "ranking")

__all__ = ["__version__", *_HOMES]

if TYPE_CHECKING:
    from .charts import save_chart
    from .claims import paper_claims
    from .client import connect
    from .errors import Conflict, DuelsError, InvalidInput, NoCondorcetWinner, StorageError, UnknownName
    from .experiment import Experiment, experiment, merge, run_experiment
    from .figures import plot_accuracy, plot_condorcet_probability, plot_pairs, plot_preferences, plot_regret
    from .illustrations import plot_gamma, plot_horizons, plot_intervals, plot_regret_quantiles, plot_state
    from .policies import policy
    from .preference import PreferenceMatrix
    from .problems import load_matrix, problem, save_matrix
    from .race import race
    from .ranking.collection import load_collection
    from .ranking.estimate import InterleavingEnvironment, estimate_preferences
    from .ranking.interleave import infer, interleave
    from .report import write_report
    from .reproduce import reproduce
    from .results import Results, combine, load_results
    from .simulate import simulate
    from .study.catalogue import create_study, delete_study, list_studies, load_study
    from .study.items import add_items, read_items
    from .study.names import Duel
    from .study.plan import plan
    from .study.study import Study
    from .study.votes import analyse, read_votes, write_votes
    from .subsets import draw_subset


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'duels' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(["__version__", *_HOMES, *_MODULES])


class _Package(ModuleType):
    """Keeps `duels.simulate` the function: importing the submodule of that name would put the module in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
