"""Experiments: policies on problems, on threads or on Dask, kept in a folder that can be resumed and merged.

Code that plans, runs, resumes and compares experiments belongs here. A single task is played by `simulation`, and
figures are drawn by `figures`.
"""

from typing import TYPE_CHECKING

from .. import _lazy_names

_HOMES = {
    "Experiment": "running",
    "plan_experiment": "running",
    "run_experiment": "running",
    "merge": "running",
    "Subset": "subsets",
    "draw_subset": "subsets",
    "ChangingPreferences": ".simulation",
    "run_race": "race",
    "Race": "race",
    "RaceRow": "race",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from ..simulation import ChangingPreferences
    from .race import Race, RaceRow, run_race
    from .running import Experiment, merge, plan_experiment, run_experiment
    from .subsets import Subset, draw_subset

__getattr__, __dir__ = _lazy_names(__name__, _HOMES)
