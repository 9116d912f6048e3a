"""The paper's explanatory figures, drawn from what was simulated; they run nothing.

A figure is an Altair chart of the table that the function called `…_points` gives; `charts.save_chart` writes it.
"""

from .gamma import gamma_points, plot_gamma
from .horizons import horizon_points, plot_horizons
from .intervals import interval_points, plot_intervals, tail_points
from .quantiles import plot_regret_quantiles, quantile_points
from .state import plot_state, state_points

__all__ = [
    "gamma_points",
    "horizon_points",
    "interval_points",
    "plot_gamma",
    "plot_horizons",
    "plot_intervals",
    "plot_regret_quantiles",
    "plot_state",
    "quantile_points",
    "state_points",
    "tail_points",
]
