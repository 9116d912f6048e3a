"""Figures of results and of matrices, as a paper prints them; they run nothing.

A figure is an Altair chart of the table that the function called `…_points` gives; `charts.save_chart` writes it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from . import charts, specs, theory
from .errors import InvalidInput, UnknownName
from .policies import policy as find_policy
from .preference import PreferenceMatrix
from .results import Results

PANEL = (270, 220)  # width and height where there are several
SPREAD, DOTTED = "best and worst run", (1.5, 2.5)
DELTA = 0.05  # of Theorem 2's bound
TOO_HIGH = 1e3  # a bound so many times above every regret is not drawn
DASHES = {3: (8, 3), 2: (8, 3, 2, 3)}
CONDORCET, ORDERED = "Condorcet winner", "total order"
EVERY_SIZE, SOME_SIZES = 64, 40  # up to so many arms every size of subset is shown, of more arms about so many
MARKS = 16  # the most marks on a line of sizes
Z95 = 1.959963984540054  # the normal quantile of a 95% interval

Bounds = PreferenceMatrix | Mapping[str, PreferenceMatrix]
Layers = Callable[[pl.DataFrame, alt.X, Callable[[str], alt.Y]], list[Any]]  # a problem's points, x, y of a column


def plot_regret(results: Results, *, problem: str | None = None, bounds: Bounds | None = None) -> Any:
    """Cumulative regret against time, both axes logarithmic: the mean over runs, dotted the best and the worst run.

    problem: the one to show; by default each has its panel.
    bounds: the problem's matrix, or matrices by problem: adds what Theorems 2 (δ = 0.05) and 3 promise of RUCB.
    """
    points = _only(regret_points(results), "problem", problem)
    if points["regret"].is_null().all():
        raise InvalidInput("every regret is 0: there is nothing to draw on a logarithmic axis")
    for name in bounds if isinstance(bounds, Mapping) else ():
        _only(results.frame, "problem", name)  # refuses a name that is not there
    promised = bound_points(points, {} if bounds is None else bounds)
    highest = TOO_HIGH * _ends(points["regret_max"])[1]
    drawn = promised.filter(pl.col("bound").max().over("problem", "label") <= highest, pl.col("t") > 1)  # ln 1 = 0
    several = bool(((points["runs"] > 1) & (points["fresh"] | ~points["marked"])).any())  # runs, and times to join
    key = _key_of_regret(points, several, drawn)

    def layers(here: pl.DataFrame, x: alt.X, y: Callable[[str], alt.Y]) -> list[Any]:
        runs = alt.Chart(charts.values(here)).mark_line(strokeWidth=1.2, strokeDash=DOTTED)
        found = [runs.encode(x, y(f"{end}:Q"), key.colour("policy")) for end in ("regret_min", "regret_max") if several]
        for (theorem,), rows in drawn.filter(problem=here["problem"][0]).group_by("theorem", maintain_order=True):
            line = alt.Chart(charts.values(rows)).mark_line(strokeWidth=1.5, strokeDash=DASHES[theorem])
            found.append(line.encode(x, y("bound:Q"), key.colour("label")))
        return [*found, *charts.lines(here, x, y("regret:Q"), key, "policy")]

    notes = [] if bounds is None else _notes(points, promised, drawn)
    said = "Mean cumulative regret against time, both axes logarithmic. " + _last(points, "regret", ".4g")
    chart = _panels(points, key, _axis_of_regret(points, drawn), layers)
    title = "Cumulative regret" if results.notion == "condorcet" else f"Cumulative regret ({results.notion})"
    return _finished(points, chart, title, notes, said)


def plot_accuracy(results: Results, *, problem: str | None = None) -> Any:
    """The share of runs that recommend the winner against time; marks have Wilson's 95% intervals as bars.

    problem: the one to show; by default each has its panel.
    """
    points = _only(accuracy_points(results), "problem", problem)
    axis = {"title": "share of runs naming the winner", "scale": alt.Scale(domain=[0, 1])}
    key = _key(points)

    def layers(here: pl.DataFrame, x: alt.X, y: Callable[[str], alt.Y]) -> list[Any]:
        bars = alt.Chart(charts.values(here.filter("marked"))).mark_rule(strokeWidth=1)
        bars = bars.encode(x, y("accuracy_low:Q"), alt.Y2("accuracy_high"), key.colour("policy"))
        return [bars, *charts.lines(here, x, y("accuracy:Q"), key, "policy")]

    _, widest = _ends(points["accuracy_high"] - points["accuracy_low"])
    note = "bars: 95% intervals" if points["marked"].all() else f"95% intervals are up to {widest:.2f} wide"
    said = "Share of runs that recommend the Condorcet winner against time. " + _last(points, "accuracy", ".2f")
    return _finished(points, _panels(points, key, axis, layers), "Accuracy", [note], said)


def regret_points(results: Results) -> pl.DataFrame:
    """The mean, least and largest cumulative regret over runs, by problem, policy and time.

    A policy run with several horizons counts at its horizons only, each in the runs that were told it (`fresh`); no
    policy then counts before the problem's smallest horizon. A regret of 0 is null: a logarithm has no place for it.
    """
    columns = ["regret", "regret_min", "regret_max"]
    return _over_runs(results, columns).with_columns(pl.when(pl.col(column) > 0).then(column) for column in columns)


def accuracy_points(results: Results) -> pl.DataFrame:
    """The share of runs that recommend the winner, with Wilson's 95% interval, by problem, policy and time.

    Times count as in `regret_points`; next to a policy with several horizons the others count at these times only, if
    they have checkpoints there.
    """
    points = _over_runs(results, ["accuracy", "accuracy_low", "accuracy_high"])
    lines = []
    for (name, _), line in points.group_by("problem", "policy", maintain_order=True):
        horizons = points.filter("fresh", problem=name)["t"]
        times = set(horizons.filter(horizons <= line["t"].max()))
        if times and times <= set(line["t"]):
            line = line.filter(pl.col("t").is_in(times)).with_columns(marked=True)
        lines.append(line)
    return pl.concat(lines)


def bound_points(points: pl.DataFrame, bounds: Bounds) -> pl.DataFrame:
    """What Theorems 2 (δ = 0.05) and 3 promise of each RUCB among the points of `regret_points`.

    Theorem 2 needs α > ½ and Theorem 3 α > 1; else there are no rows of it. A single matrix is that of the only
    problem, or of the one that has its name.
    """
    matrices = _matrices(points, bounds)
    rows = []
    for name, policy, t in points.select("problem", "policy", "t").rows():
        alpha = _alpha(policy) if name in matrices else None
        if alpha is not None and alpha > 1:
            rows.append((name, policy, 3, t, theory.expected_regret_bound(matrices[name], t, alpha)))
        if alpha is not None and alpha > 0.5:
            rows.append((name, policy, 2, t, theory.regret_bound(matrices[name], t, alpha, DELTA)))
    schema = {"problem": pl.String, "policy": pl.String, "theorem": pl.Int64, "t": pl.Int64, "bound": pl.Float64}
    label = pl.format("Theorem {}, {}", "theorem", "policy")
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(label=label)


def plot_condorcet_probability(
    matrix: PreferenceMatrix, *, sizes: Iterable[int] | None = None, samples: int = 20_000
) -> Any:
    """The probability that a random subset of the arms has a Condorcet winner, and that it has a total order.

    sizes: of the subsets; by default all, or about 40 of them if there are more than 64 arms.
    samples: the random subsets of a size that stand for all, where counting the ordered ones is too much work.
    """
    points = condorcet_points(matrix, sizes=sizes, samples=samples)
    scale = alt.Scale(domain=_ends(points["size"]))
    x = alt.X("size:Q", title="size K of the subset", axis=alt.Axis(tickMinStep=1), scale=scale)
    y = partial(alt.Y, title="probability", scale=alt.Scale(domain=[0, 1]))
    key = charts.key_of([CONDORCET, ORDERED], [CONDORCET, ORDERED], [charts.VERMILION, charts.BLUE])
    estimated = points.filter(~pl.col("exact"))
    band = alt.Chart(charts.values(estimated)).mark_area(color=charts.BLUE, opacity=0.2)
    band = band.encode(x, y("lower:Q"), alt.Y2("upper"))
    lines = charts.lines(points, x, y("probability:Q"), key, "assumption")
    chart = alt.layer(band, *lines, key.layer()).properties(width=charts.WIDTH, height=charts.HEIGHT)
    least = points.filter(assumption=CONDORCET).sort("probability", "size").row(0, named=True)
    below = [f"K of {matrix.arms} arms · least P_K: {least['probability']:.4f}, at K = {least['size']}"]
    if len(estimated):
        below.append(f"total order, K = {charts.span(estimated['size'])}: {samples:,} subsets each, shaded: 95%")
    said = "Probability, by size, that a random subset of the arms has a Condorcet winner or a total order. "
    return charts.titled(chart, f"Assumptions on random subsets of {matrix.name}", below, said + ". ".join(below))


def condorcet_points(
    matrix: PreferenceMatrix, *, sizes: Iterable[int] | None = None, samples: int = 20_000
) -> pl.DataFrame:
    """The probability that either assumption holds for a random subset of the arms, by its size.

    `lower` and `upper` are the ends of a 95% interval where the probability is estimated, else the probability itself.
    """
    if sizes is None:
        count = matrix.arms if matrix.arms <= EVERY_SIZE else SOME_SIZES
        sizes = np.linspace(1, matrix.arms, count).round().astype(int).tolist()
    rows = []
    for place, size in enumerate(chosen := sorted(set(sizes))):
        marked = place % math.ceil(len(chosen) / MARKS) == 0
        rows.append((size, marked, CONDORCET, matrix.condorcet_probability(size), 0.0, True))
        rows.append((size, marked, ORDERED, *matrix.total_order_probability(size, samples=samples)))
    if not rows:
        raise InvalidInput("sizes is empty: expected at least one size of subset")
    schema = ["size", "marked", "assumption", "probability", "standard_error", "exact"]
    error, p = Z95 * pl.col("standard_error"), pl.col("probability")
    points = pl.DataFrame(rows, schema=schema, orient="row")
    return points.with_columns(lower=(p - error).clip(0, 1), upper=(p + error).clip(0, 1))


def plot_preferences(matrix: PreferenceMatrix, *, names: Sequence[str] | None = None) -> Any:
    """The matrix as a picture: how often the arm of the row beats that of the column, best Copeland score first.

    names: what to call the arms, in the matrix's order; by default its own names.
    """
    called = PreferenceMatrix(matrix.array, matrix.names if names is None else names)
    points = preference_points(called)
    _, reach = _ends((points["probability"] - 0.5).abs())
    cells = charts.probabilities("probability", reach or 0.5, ["row beats", "column"])
    winner = _winner(called)
    chart = charts.heat_map(points, _unique(points, "row"), "probability", cells, winner)
    best = f"Condorcet winner: {winner} (outlined)" if winner else "no Condorcet winner"
    below = f"K = {matrix.arms} · {best} · {charts.count(called.three_cycles, 'three-cycle')}"
    said = f"Heat map of the probability that the arm of the row beats that of the column. {below}."
    return charts.titled(chart, f"Preferences of {matrix.name}", below, said)


def preference_points(matrix: PreferenceMatrix) -> pl.DataFrame:
    """The probability that the arm `row` beats the arm `column`, for all pairs, best Copeland score first."""
    order = _copeland_order(matrix)
    rows = [(matrix.names[i], matrix.names[j], float(matrix.array[i, j])) for i in order for j in order]
    return pl.DataFrame(rows, schema=["row", "column", "probability"], orient="row")


def plot_pairs(
    results: Results,
    matrix: PreferenceMatrix | None = None,
    *,
    problem: str | None = None,
    policy: str | None = None,
    t: int | None = None,
) -> Any:
    """How often each pair duelled up to time t, mean over runs; a panel for each policy.

    The results must have recorded it: `simulate(..., record="pairs")`.

    matrix: names the arms, and orders them by Copeland score.
    problem, policy: those to show; a problem is needed if there are several.
    t: a checkpoint; by default each policy's last.
    """
    points = pair_points(results, matrix, problem=problem, policy=policy, t=t)
    met = points.filter(pl.col("duels") > 0)
    order, cells = _unique(points, "row"), charts.amounts("duels", *_ends(met["duels"]))
    panels = {
        f"{name}, t = {time:,}": charts.heat_map(met.filter(policy=name), order, "duels", cells, _winner(matrix))
        for name, time in points.select("policy", "t").unique(maintain_order=True).rows()
    }
    shown = points["problem"][0] + (f": {next(iter(panels))}" if len(panels) == 1 else "")
    below = f"K = {len(order)} · mean over {charts.count(charts.span(points['runs']), 'run')} · blank: never"
    said = f"Heat map of how often each pair of arms duelled: {'; '.join(panels)}. {below}."
    return charts.titled(charts.side_by_side(panels), f"Duels of each pair on {shown}", below, said)


def pair_points(
    results: Results,
    matrix: PreferenceMatrix | None = None,
    *,
    problem: str | None = None,
    policy: str | None = None,
    t: int | None = None,
) -> pl.DataFrame:
    """The mean number of duels of each pair of arms up to time t, in both orders, by policy."""
    if results.pairs is None:
        raise InvalidInput('the results have no pairs: record them with simulate(..., record="pairs")')
    pairs = _only(_only(results.pairs, "problem", problem), "policy", policy)
    if len(_unique(pairs, "problem")) > 1:
        raise InvalidInput(f"there are pairs of {', '.join(_unique(pairs, 'problem'))}: choose one with problem=…")
    times = pairs["t"].unique().sort()
    pairs = pairs.filter(pl.col("t") == (pl.col("t").max().over("policy") if t is None else t))
    if not len(pairs):
        raise InvalidInput(f"no pairs were recorded at t = {t}: expected one of {', '.join(map(str, times))}")
    if pairs.select("policy", "run", "first", "second").is_duplicated().any():
        raise InvalidInput("there are pairs of several horizons at that time: expected results of one horizon")
    arms = pairs["second"].n_unique()
    if matrix is not None and matrix.arms != arms:
        raise InvalidInput(f"the matrix has {matrix.arms} arms, expected the {arms} of the recorded pairs")
    names = [str(arm) for arm in range(arms)] if matrix is None else list(matrix.names)
    order = pl.Enum(names if matrix is None else [names[arm] for arm in _copeland_order(matrix)])
    mirrored = pairs.filter(pl.col("first") != pl.col("second")).with_columns(first="second", second="first")
    row, column = (pl.col(arm).replace_strict(range(arms), names).cast(order) for arm in ("first", "second"))
    return (
        pl.concat([pairs, mirrored])
        .with_columns(row=row, column=column)
        .group_by("problem", "policy", "t", "row", "column")
        .agg(runs=pl.len(), duels=pl.col("duels").mean())
        .sort(_ordered(pairs, "policy"), "row", "column")
        .with_columns(pl.col("row", "column").cast(pl.String))
    )


def _over_runs(results: Results, columns: list[str]) -> pl.DataFrame:
    """Those columns of the summary at the times that count (see `regret_points`), in the order of the results."""
    frame = results.frame
    if not len(frame):
        raise InvalidInput("the results have no rows: there is nothing to draw")
    horizon, t, fresh = pl.col("horizon"), pl.col("t"), pl.col("fresh")
    start = pl.when(fresh.any().over("problem")).then(horizon.min().over("problem")).otherwise(1)
    return (
        results.summarise()
        .with_columns(fresh=horizon.n_unique().over("problem", "policy") > 1)
        .filter(t >= start, ~fresh | (t == horizon))
        .with_columns(marked=fresh | (pl.len().over("problem", "policy") == 1))
        .sort(_ordered(frame, "problem"), _ordered(frame, "policy"), "t")
        .select("problem", "arms", "policy", "horizon", "t", "runs", *columns, "fresh", "marked")
    )


def _matrices(points: pl.DataFrame, bounds: Bounds) -> Mapping[str, PreferenceMatrix]:
    if isinstance(bounds, PreferenceMatrix):
        shown = _unique(points, "problem")
        bounds = {_only(points, "problem", bounds.name if len(shown) > 1 else shown[0])["problem"][0]: bounds}
    for name, arms in points.select("problem", "arms").unique().rows():
        if name in bounds and bounds[name].arms != arms:
            raise InvalidInput(f"the matrix given for {name} has {bounds[name].arms} arms, its results have {arms}")
    if bounds and all(_alpha(policy) is None for policy in _unique(points, "policy")):
        raise InvalidInput("the theorems are about rucb, of which the results have no runs: leave out bounds")
    return bounds


def _alpha(policy: str) -> float | None:
    """RUCB's α; None for other policies."""
    name, given = specs.split(policy, "policy")
    return specs.fill(name, given, find_policy(name).params._asdict(), "")["alpha"] if name == "rucb" else None


def _notes(points: pl.DataFrame, promised: pl.DataFrame, drawn: pl.DataFrame) -> list[str]:
    """What the legend cannot say of the bounds: Theorem 2's δ, and why some are not drawn."""
    notes = [f"Theorem 2: δ = {DELTA:g}"] if 2 in drawn["theorem"] else []
    missing = promised.join(drawn, on=["problem", "label"], how="anti")
    for (theorem, policy), rows in missing.group_by("theorem", "policy", maintain_order=True):
        power = math.floor(math.log10(min(_ends(rows["bound"])[0], 1e308)))
        at = f" at δ = {DELTA:g}" if theorem == 2 else ""
        notes.append(f"Theorem {theorem}'s bound on {policy}{at} lies above 1e{power}")
    without = [policy for policy in _unique(points, "policy") if (_alpha(policy) or math.inf) <= 1]
    return [*notes, f"Theorem 3 has no bound on {', '.join(without)}: it needs α > 1"] if without else notes


def _key(points: pl.DataFrame) -> charts.Key:
    return charts.key_of(_unique(points, "policy"), _unique(points.filter("marked"), "policy"))


def _key_of_regret(points: pl.DataFrame, several: bool, drawn: pl.DataFrame) -> charts.Key:
    key = _key(points)
    if several:
        key = key.with_entry(SPREAD, charts.GREY, charts.line_glyph(dash=DOTTED))
    for label, policy, theorem in drawn.select("label", "policy", "theorem").unique(maintain_order=True).rows():
        colour = key.colours[key.labels.index(policy)]
        key = key.with_entry(label, colour, charts.line_glyph(dash=DASHES[theorem]))
    return key


def _axis_of_regret(points: pl.DataFrame, drawn: pl.DataFrame) -> dict[str, Any]:
    least, largest = _ends(pl.concat([*points[["regret_min", "regret", "regret_max"]], drawn["bound"]]))
    room = max(largest / least, 10) ** 0.03  # so that marks stay inside
    return charts.log_axis("cumulative regret", least / room, largest * room)


def _panels(points: pl.DataFrame, key: charts.Key, axis: dict[str, Any], layers: Layers) -> Any:
    """A panel for each problem, side by side with one legend."""
    problems = points.partition_by("problem", maintain_order=True)
    width, height = (charts.WIDTH, charts.HEIGHT) if len(problems) == 1 else PANEL
    legend = key.layer(width * min(len(problems), charts.COLUMNS))
    panels = {}
    for place, here in enumerate(problems):
        x = alt.X("t:Q", **charts.log_axis("time t", *_ends(here["t"])))
        shown = axis if place % charts.COLUMNS == 0 else {**axis, "title": None}
        panel = alt.layer(*layers(here, x, partial(alt.Y, **shown)), legend).properties(width=width, height=height)
        panels[f"{here['problem'][0]} · K = {here['arms'][0]}"] = panel
    return charts.side_by_side(panels)


def _finished(points: pl.DataFrame, chart: Any, title: str, notes: list[str], said: str) -> Any:
    """The chart with a title that says what was run."""
    horizons = charts.span(points["horizon"])
    below = f"{charts.count(charts.span(points['runs']), 'run')} · horizon{'s' if ' ' in horizons else ''} {horizons}"
    if points["problem"].n_unique() == 1:
        title, below = f"{title} on {points['problem'][0]}", f"K = {points['arms'][0]} · {below}"
    return charts.titled(chart, title, [below, *notes], f"{title}: {below}. {said}")


def _last(points: pl.DataFrame, column: str, style: str) -> str:
    """The last value of each line in words."""
    last = points.drop_nulls(column).group_by("problem", "policy", maintain_order=True).last()
    ends = [f"{row['policy']} on {row['problem']} {row[column]:{style}}" for row in last.to_dicts()]
    return f"At the end: {', '.join(ends)}."


def _only(frame: pl.DataFrame, column: str, name: str | None) -> pl.DataFrame:
    if name is not None and name not in _unique(frame, column):
        raise UnknownName(column, name, _unique(frame, column))
    return frame if name is None else frame.filter(pl.col(column) == name)


def _winner(matrix: PreferenceMatrix | None) -> str:
    """The Condorcet winner's name; empty if there is none."""
    return "" if matrix is None or matrix.condorcet_winner is None else matrix.names[matrix.condorcet_winner]


def _copeland_order(matrix: PreferenceMatrix) -> list[int]:
    """The arms by Copeland score, equals by Borda score, best first."""
    return sorted(range(matrix.arms), key=lambda arm: (-matrix.copeland_scores[arm], -matrix.borda_scores[arm]))


def _ordered(frame: pl.DataFrame, column: str) -> pl.Expr:
    """The column as an enumeration, which sorts by first appearance."""
    return pl.col(column).cast(pl.Enum(_unique(frame, column)))


def _unique(frame: pl.DataFrame, column: str) -> list[str]:
    return frame[column].unique(maintain_order=True).to_list()


def _ends(numbers: pl.Series) -> tuple[float, float]:
    """The least and the largest number; nulls do not count."""
    ordered = numbers.drop_nulls().sort().to_list()
    return ordered[0], ordered[-1]
