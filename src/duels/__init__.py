"""Find the best of K alternatives from pairwise comparisons.

Names are loaded when first used, so that `import duels` is quick. Everyday names are here, and namespaces that go with
them: `duels.errors`, `duels.experiments`, `duels.figures`, `duels.judges`, `duels.policies`, `duels.problems` and
`duels.testing`. Everything else is in modules that are not listed here, and are loaded when they are named:
`duels.client`, `duels.continuous`, `duels.paper`, `duels.rankers`, `duels.rating`, `duels.results`, `duels.study`,
`duels.theory` and `duels.votes`.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = {
    "PreferenceMatrix": "preference",
    "load_matrix": "problems",
    "load_problem": "problems",
    "simulate": "kinds",
    "run_experiment": "experiments.running",
    "load_results": "results",
    "create_study": "kinds",
    "load_study": "kinds",
    "Study": "study.study",
    "find_best": "study.judging.find_best",
    "tune": "continuous.tuning.judged",
    "Space": "continuous.spaces",
    "connect": "client.client",
    "read_votes": "votes.readers",
    "analyze": "study.analysis",
    "rate": "rating.table",
    "measure_agreement": "study.voters.agreement",
    "estimate_votes": "study.plan",
    "DuelsError": "errors",
    "InvalidInput": "errors",
}
_NAMESPACES = ("errors", "experiments", "figures", "judges", "policies", "problems", "testing")
_MODULES = ("client", "continuous", "paper", "rankers", "rating", "results", "study", "theory", "votes")

__all__ = ["__version__", *_HOMES, *_NAMESPACES]

if TYPE_CHECKING:
    from . import (
        client,
        continuous,
        errors,
        experiments,
        figures,
        judges,
        paper,
        policies,
        problems,
        rankers,
        rating,
        results,
        study,
        testing,
        theory,
        votes,
    )
    from .client.client import connect
    from .continuous.spaces import Space
    from .continuous.tuning.judged import tune
    from .errors import DuelsError, InvalidInput
    from .experiments.running import run_experiment
    from .kinds import create_study, load_study, simulate
    from .preference import PreferenceMatrix
    from .problems import load_matrix, load_problem
    from .rating.table import rate
    from .results import load_results
    from .study.analysis import analyze
    from .study.judging.find_best import find_best
    from .study.plan import estimate_votes
    from .study.study import Study
    from .study.voters.agreement import measure_agreement
    from .votes.readers import read_votes


def _lazy_names(
    package: str, homes: Mapping[str, str], namespaces: Collection[str] = (), modules: Collection[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` for a package.

    Args:
        package: The package's `__name__`.
        homes: For each public name, the submodule that defines it.
        namespaces: Submodules that are public themselves.
        modules: Submodules that can be named without an import, and are not listed by `dir`.

    Returns:
        The two functions, to be assigned in the package's `__init__`.
    """

    def get(name: str) -> object:
        if name in homes:
            value = getattr(import_module(f".{homes[name]}", package), name)
            setattr(sys.modules[package], name, value)
            return value
        if name in namespaces or name in modules:
            return import_module(f".{name}", package)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted([*homes, *namespaces])


__getattr__, __dir__ = _lazy_names(__name__, _HOMES, _NAMESPACES, _MODULES)
