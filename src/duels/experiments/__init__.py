"""Experiments: policies on problems, on threads or on Dask, kept in a folder that can be continued and merged.

What runs, resumes and compares belongs here; what one run is, is in `simulation`, and drawing is in `figures`.
"""

from typing import TYPE_CHECKING

from ..lazy import attach

_HOMES = {
    "Experiment": "running",
    "experiment": "running",
    "run_experiment": "running",
    "merge": "running",
    "Subset": "subsets",
    "draw_subset": "subsets",
    "Race": "race",
    "RaceRow": "race",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from .race import Race, RaceRow
    from .running import Experiment, experiment, merge, run_experiment
    from .subsets import Subset, draw_subset

__getattr__, __dir__ = attach(__name__, _HOMES)
