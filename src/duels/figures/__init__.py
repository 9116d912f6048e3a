"""Figures of results and matrices, as Altair charts: every function here takes data, runs nothing and returns a chart.

What draws belongs here; what computes numbers belongs to `results` or `theory`, and the choice of figures for the
paper's report to `paper`. Each chart shows the table that the function called `…_points` returns.
"""

from ..errors import needs_extra

with needs_extra("plots", "drawing figures"):
    from .by_horizon import horizon_points, horizons
    from .charts import save
    from .confidence import interval_points, intervals, tail_points
    from .curves import (
        accuracy,
        accuracy_points,
        bound_points,
        bounds_in_sight,
        condorcet_points,
        condorcet_probability,
        regret,
        regret_points,
    )
    from .gammas import gamma, gamma_points
    from .heat_maps import pair_points, pairs, preference_points, preferences
    from .rucb_state import state, state_points
    from .spread import quantile_points, regret_quantiles
