"""Find the best of K alternatives from pairwise comparisons.

Names are loaded when first used, so that `import duels` is quick. Everyday names are here; the others are in
namespaces: `duels.figures`, `duels.ranking`, `duels.policies`, `duels.problems`, `duels.results`, `duels.experiments`,
`duels.paper`, `duels.votes`, `duels.rating`, `duels.study`, `duels.judges`, `duels.continuous`, `duels.theory` and
`duels.testing`.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = {
    "PreferenceMatrix": "preference",
    "problem": "problems",
    "load_matrix": "problems",
    "Policy": "policies",
    "policy": "policies",
    "simulate": "simulation",
    "ChangingPreferences": "simulation",
    "Experiment": "experiments.running",
    "run_experiment": "experiments.running",
    "Race": "experiments.race",
    "race": "experiments.race",
    "reproduce": "paper.reproduction",
    "Results": "results",
    "load_results": "results",
    "create_study": "study.create",
    "load_study": "study.create",
    "Study": "study.study",
    "Duel": "study.duels",
    "Verdict": "study.stats.verdict",
    "Votes": "votes.votes",
    "read_votes": "votes.readers",
    "ratings": "rating.table",
    "agreement": "study.voters.agreement",
    "Analysis": "study.analysis",
    "analyze": "study.analysis",
    "plan": "study.plan",
    "find_best": "study.judging.find_best",
    "find_best_async": "study.judging.find_best",
    "RunResult": "study.judging.result",
    "space": "continuous.spaces",
    "simulate_continuous": "continuous.simulation",
    "create_tuning": "continuous.tuning.create",
    "load_tuning": "continuous.tuning.create",
    "Tuning": "continuous.tuning.study",
    "tune": "continuous.tuning.judged",
    "tune_async": "continuous.tuning.judged",
    "connect": "client.client",
    "DuelsError": "errors",
    "InvalidInput": "errors",
    "UnknownName": "errors",
    "Conflict": "errors",
    "NotFound": "errors",
    "NoCondorcetWinner": "errors",
    "PolicyError": "errors",
    "CompileError": "errors",
    "ConformanceError": "errors",
    "StorageError": "errors",
    "DamagedStudy": "errors",
    "DeletedStudy": "errors",
}
_NAMESPACES = (
    "continuous",
    "experiments",
    "figures",
    "judges",
    "paper",
    "policies",
    "problems",
    "ranking",
    "rating",
    "results",
    "study",
    "testing",
    "theory",
    "votes",
)

__all__ = ["__version__", *_HOMES, *_NAMESPACES]

if TYPE_CHECKING:
    from . import (
        continuous,
        experiments,
        figures,
        judges,
        paper,
        policies,
        problems,
        ranking,
        rating,
        results,
        study,
        testing,
        theory,
        votes,
    )
    from .client.client import connect
    from .continuous.simulation import simulate_continuous
    from .continuous.spaces import space
    from .continuous.tuning.create import create_tuning, load_tuning
    from .continuous.tuning.judged import tune, tune_async
    from .continuous.tuning.study import Tuning
    from .errors import (
        CompileError,
        Conflict,
        ConformanceError,
        DamagedStudy,
        DeletedStudy,
        DuelsError,
        InvalidInput,
        NoCondorcetWinner,
        NotFound,
        PolicyError,
        StorageError,
        UnknownName,
    )
    from .experiments.race import Race, race
    from .experiments.running import Experiment, run_experiment
    from .paper.reproduction import reproduce
    from .policies import Policy, policy
    from .preference import PreferenceMatrix
    from .problems import load_matrix, problem
    from .rating.table import ratings
    from .results import Results, load_results
    from .simulation import ChangingPreferences, simulate
    from .study.analysis import Analysis, analyze
    from .study.create import create_study, load_study
    from .study.duels import Duel
    from .study.judging.find_best import find_best, find_best_async
    from .study.judging.result import RunResult
    from .study.plan import plan
    from .study.stats.verdict import Verdict
    from .study.study import Study
    from .study.voters.agreement import agreement
    from .votes.readers import read_votes
    from .votes.votes import Votes


def _lazy_names(
    package: str, homes: Mapping[str, str], namespaces: Collection[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` for a package.

    Args:
        package: The package's `__name__`.
        homes: For each public name, the submodule that defines it.
        namespaces: Submodules that are public themselves.

    Returns:
        The two functions, to be assigned in the package's `__init__`.
    """

    def get(name: str) -> object:
        if name in homes:
            value = getattr(import_module(f".{homes[name]}", package), name)
            setattr(sys.modules[package], name, value)
            return value
        if name in namespaces:
            return import_module(f".{name}", package)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted([*homes, *namespaces])


__getattr__, __dir__ = _lazy_names(__name__, _HOMES, _NAMESPACES)
