"""Figures of results and matrices, as Altair charts: every function here takes data, runs nothing and returns a chart.

What draws belongs here; what computes numbers belongs to `results` or `theory`, and the choice of figures for the
paper's report to `paper`. Each chart shows the table that the function called `…_points` returns.
"""

from .charts import save
from .heat_maps import pair_points, pairs, preference_points, preferences
from .over_time import accuracy, accuracy_points, bound_points, bounds_in_sight, regret, regret_points
from .pair_interval import interval_points, intervals, tail_points
from .quantiles import quantile_points, regret_quantiles
from .rucb_state import state, state_points
from .subset_assumptions import condorcet_points, condorcet_probability
from .wrong_gamma import gamma, gamma_points
from .wrong_horizon import horizon_points, horizons
