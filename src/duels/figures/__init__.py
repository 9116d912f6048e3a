"""Figures of results and matrices, as Altair charts: each function takes data, runs nothing and returns a chart.

Code that draws belongs here; code that computes numbers belongs to `results` or `theory`. Each chart shows the table
that the function called `…_points` returns, and `listing` has the figures of the report and of `duels experiment plot`.
"""

from ..errors import needs_extra

with needs_extra("plots", "drawing figures"):
    from .charts import save
    from .heat_maps import pair_points, pairs, preference_points, preferences
    from .look import Look
    from .over_time import (
        accuracy,
        accuracy_points,
        bound_points,
        bounds_in_sight,
        regret,
        regret_and_accuracy,
        regret_points,
    )
    from .pair_interval import interval_points, intervals, tail_points
    from .quantiles import quantile_points, regret_quantiles
    from .ratings import duel_counts, rating_points, ratings, ratings_over_time, win_rates
    from .rucb_state import state, state_points
    from .simple_regrets import simple_regret, simple_regret_points
    from .subset_assumptions import condorcet_points, condorcet_probability

__all__ = [
    "Look",
    "accuracy",
    "accuracy_points",
    "bound_points",
    "bounds_in_sight",
    "condorcet_points",
    "condorcet_probability",
    "duel_counts",
    "interval_points",
    "intervals",
    "pair_points",
    "pairs",
    "preference_points",
    "preferences",
    "quantile_points",
    "rating_points",
    "ratings",
    "ratings_over_time",
    "regret",
    "regret_and_accuracy",
    "regret_points",
    "regret_quantiles",
    "save",
    "simple_regret",
    "simple_regret_points",
    "state",
    "state_points",
    "tail_points",
    "win_rates",
]
