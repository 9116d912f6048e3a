"""The charts of a study's live page, drawn from what `board.board` returns; they look nothing up."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import altair as alt
import polars as pl

from ..errors import InvalidInput, counted, percent
from ..figures import charts, legends
from ..figures.charts import BLUE, GREY, NUMBER, VERMILION
from ..figures.legends import OUTLINES, Key
from ..figures.look import PLAIN
from .verdict import listed

Options = dict[str, Any]  # keyword arguments of Altair's classes
Board = dict[str, Any]  # from `board.board`
WIDTH, HEIGHT = 250, 190  # with names beside it, a chart fits on a phone
NAME = 120  # pixels for an arm's name
DRAWN, MAPPED = 64, 30  # the most arms, best first, of a chart with a row for each and of a heat map
ACTIVE, RETIRED = "active", "retired"
CHAMPION, BEHIND = "potential champion", "behind an arm"
STATES = {ACTIVE: (BLUE, "circle"), RETIRED: (GREY, "square")}
POOL = {CHAMPION: (BLUE, "diamond"), BEHIND: (VERMILION, "circle")}
POINT: Options = {"fill": "white", "opacity": 1, "size": 50}
SHAPE = alt.Shape("mark:N", scale=None)
ESTIMATE, UPPER, DASH = "estimate", "upper limit", (6, 3)


def charts_of(board: Board, only: str | None = None) -> dict[str, Options]:
    """Return the Vega-Lite specification of every chart that has something to show, by its name.

    Args:
        board: What `board.board` returned.
        only: The name of a chart, to draw no other one.
    """
    plots = {
        "leaderboard": plot_leaderboard,
        "beats": plot_beats,
        "duels": plot_duels,
        "champions": plot_champions,
        "progress": plot_progress,
        "regret": plot_regret_so_far,
    }
    wanted = shown(board) if only is None else shown(board) & {only}
    return {name: plot(board).to_dict() for name, plot in plots.items() if name in wanted}


def shown(board: Board) -> set[str]:
    """Return the names of the charts that have something to show."""
    answered = board["study"]["answers"] > 0
    met = bool(_met(board))
    has = {
        "leaderboard": any(row["share"] is not None for row in board["leaderboard"]),
        "beats": met,
        "duels": met or bool(_self_duels(board)),
        "champions": answered and any(row["upper"] is not None for row in board["champions"] or ()),
        "progress": answered,
        "regret": bool(board["regret"]),
    }
    return {name for name, something in has.items() if something}


def plot_leaderboard(board: Board) -> alt.LayerChart:
    """Plot the share of comparisons that every arm is expected to win, with its interval, best first."""
    _must_show("leaderboard", board)
    wanted = ("arm", "share", "lower", "upper", "answers")
    rows = [
        {field: row[field] for field in wanted} | _marked(STATES, ACTIVE if row["active"] else RETIRED)
        for row in board["leaderboard"][:DRAWN]
        if row["share"] is not None
    ]
    key, x, y = _key(STATES), _probability("wins against the others"), _names(board["order"][:DRAWN])
    all_active = rows[-1]["state"] == ACTIVE
    colour = alt.value(BLUE) if all_active else key.colour("state")
    base = alt.Chart(charts.table(pl.DataFrame(rows))).encode(y, color=colour)
    tooltip = ["arm:N", *_figures("share", "lower", "upper"), "answers:Q"]
    layers = [
        _half(),
        base.mark_rule(strokeWidth=2).encode(alt.X("lower:Q", **x), alt.X2("upper")),
        base.mark_point(**POINT).encode(alt.X("share:Q", **x), SHAPE, tooltip=tooltip),
    ]
    layers += [] if all_active else [key.layer(WIDTH)]
    notes = ["expected share of comparisons with the others that an arm wins", board["ranked"]]
    notes += [f"lines: {_percent(board)} intervals that hold, about, whenever you look"]
    notes += _cut_note(board, DRAWN)
    return _finished(board, _sized(layers, len(board["order"][:DRAWN])), "Leaderboard", notes, _first(board))


def _first(board: Board) -> str:
    """Who ranks first, as in the verdict and the table."""
    active = [row for row in board["leaderboard"] if row["active"]]
    if len(active) == 1:
        return f"{_cut(active[0]['arm'])} is the only active arm"
    if board["leader"] is None:
        return "No two active arms have met"
    first = [_cut(row["arm"]) for row in active if row["rank"] == 1]
    ranks = "ranks first and wins" if len(first) == 1 else "share the first rank and win"
    return f"{listed(first)} {ranks} {percent(active[0]['share'])} % against the others"


def plot_beats(board: Board) -> alt.LayerChart:
    """Plot the estimated probability that the row's arm beats the column's.

    Pairs that are not certain are pale, pairs that never met are blank.
    """
    _must_show("beats", board)
    rows = _both_ways(board, "estimate", lambda estimate: 1 - estimate)
    unsure, answers = [int(pair["certain"] is None) for pair in _met(board)], [pair["duels"] for pair in _met(board)]
    rows = rows.with_columns(
        pl.Series("unsure", unsure * 2, dtype=pl.Int8), pl.Series("answers", answers * 2, dtype=pl.Int64)
    )
    cells = charts.probabilities("estimate", 0.5, ["row beats", "column"], in_percent=True)
    order = board["order"][:MAPPED]
    grid = charts.grid_of(len(order), rows["estimate"], cells, PLAIN, grow=False)
    chart = charts.heat_map(rows, order, "estimate", cells, _outlined(board), grid=grid, faded="unsure", met="answers")
    total = board["pairs_total"]
    summary = f"{board['pairs_met']:,} of {total:,} {'pair' if total == 1 else 'pairs'} met so far"
    counts = "; below: how many" * (grid.step >= charts.TWO_LINES)
    notes = [f"percent of the answers, a tie counted as a half{counts}", f"{summary}; best arms first"]
    notes += ["pale: not certain yet"] if any(unsure) else []
    notes += [f"grey: fewer than {charts.FEW} answers"] if min(answers) < charts.FEW else []
    notes += _cut_note(board, MAPPED)
    return _finished(board, chart, "Who beats whom", notes, summary)


def plot_duels(board: Board) -> alt.LayerChart:
    """Plot how often each pair of arms has met; duels of an arm with itself are on the diagonal."""
    _must_show("duels", board)
    rows = _both_ways(board, "duels", int)
    alone = [{"row": one["arm"], "column": one["arm"], "duels": one["duels"]} for one in _self_duels(board)]
    if alone:
        rows = pl.concat([rows, pl.DataFrame(alone, schema=rows.schema)])
    cells = charts.amounts("duels", 1, max(rows["duels"]))
    chart = charts.heat_map(rows, board["order"][:MAPPED], "duels", cells, _outlined(board))
    most = rows.row(int(rows["duels"].arg_max() or 0), named=True)
    summary = f"{_cut(most['row'])} and {_cut(most['column'])} met most often, {charts.count(most['duels'], 'time')}"
    if most["row"] == most["column"]:
        summary = f"{_cut(most['row'])} against itself was most frequent, {charts.count(most['duels'], 'time')}"
    notes = ["darker: more duels; best arms first", *_cut_note(board, MAPPED)]
    return _finished(board, chart, "Duels of each pair", notes, summary)


def plot_champions(board: Board) -> alt.LayerChart:
    """Plot every active arm's smallest upper bound by the policy; below ½ it is behind some arm."""
    _must_show("champions", board)
    rows = [
        row | {"bound": min(max(row["upper"], 0), 1)} | _marked(POOL, CHAMPION if row["champion"] else BEHIND)
        for row in board["champions"][:DRAWN]
        if row["upper"] is not None
    ]
    order = [row["arm"] for row in board["champions"][:DRAWN]]
    champions = [_cut(row["arm"]) for row in board["champions"] if row["champion"] and row["upper"] is not None]
    key, x = _key(POOL), _probability("smallest upper bound")
    base = alt.Chart(charts.table(pl.DataFrame(rows))).encode(_names(order), alt.X("bound:Q", **x), key.colour("state"))
    tooltip = ["arm:N", "against:N", *_figures("upper"), "duels:Q"]
    layers = [
        base.mark_rule(strokeWidth=1).encode(x2=alt.datum(0.5)),
        _half(),
        base.mark_point(**POINT).encode(SHAPE, tooltip=tooltip),
        key.layer(WIDTH),
    ]
    summary = f"Potential champions: {', '.join(champions[:10]) or 'none'}{', …' if len(champions) > 10 else ''}"
    over = any(row["upper"] > 1 for row in rows)
    notes = [f"behind no other arm: {len(champions)} of {len(board['champions'])} active arms"]
    notes += _cut_note(board, DRAWN, len(board["champions"]))
    notes += ["bounds above 1 are drawn at 1"] if over else []
    return _finished(board, _sized(layers, len(order)), "Potential champions", notes, summary)


def plot_progress(board: Board) -> alt.LayerChart:
    """Plot the number of answers over time."""
    _must_show("progress", board)
    points, total = board["progress"], board["study"]["answers"]
    points = [point | {"at": point["time"][:19].replace("T", " ")} for point in points]
    axis = alt.Axis(tickCount=4, labelOverlap=True, format=_times(points))
    x = alt.X("time:T", title="time (UTC)", scale=alt.Scale(type="utc"), axis=axis)
    y = alt.Y("answers:Q", title="answers", scale=alt.Scale(domain=[0, total]), axis=_whole(total))
    base = alt.Chart(charts.values(points)).encode(
        x, y, order="answers:Q"
    )  # clocks may be set back, answers only increase
    layers = [
        base.mark_line(strokeWidth=2, color=BLUE),
        base.mark_point(filled=True, opacity=1, size=25 if len(points) <= 12 else 0, color=BLUE).encode(
            tooltip=["answers:Q", alt.Tooltip("at:N", title="time (UTC)")]
        ),
    ]
    summary = f"{charts.count(total, 'answer')} from {_minute(points[0])} to {_minute(points[-1])} UTC"
    chart = _layered(*layers).properties(width=WIDTH + 50, height=HEIGHT)
    return _finished(board, chart, "Answers over time", [], summary)


def plot_regret_so_far(board: Board) -> alt.LayerChart:
    """Plot what the answers have cost relative to the present leader: an estimate and an upper limit."""
    _must_show("regret", board)
    points = board["regret"]
    long = [
        {"answers": point["answers"], "regret": point[field], "curve": curve}
        for curve, field in ((ESTIMATE, "estimate"), (UPPER, "upper"))
        for point in points
    ]
    key = Key().with_entry(ESTIMATE, BLUE, legends.line_glyph())
    key = key.with_entry(UPPER, VERMILION, legends.line_glyph(dash=DASH))
    x = alt.X("answers:Q", title="answers", axis=_whole(points[-1]["answers"]), scale=alt.Scale(nice=False))
    y = alt.Y("regret:Q", title="regret so far", axis=alt.Axis(labelExpr=NUMBER, tickCount=5))
    dash = alt.StrokeDash("curve:N", scale=alt.Scale(domain=[ESTIMATE, UPPER], range=[[1, 0], DASH]), legend=None)
    line = alt.Chart(charts.table(pl.DataFrame(long))).mark_line(strokeWidth=2)
    chart = _layered(line.encode(x, y, dash, key.colour("curve")), key.layer(WIDTH))
    last = points[-1]
    summary = f"About {charts.short(last['estimate'])}, at most {charts.short(last['upper'])}"
    void = board["verdict"]["void"]
    limit = f"nothing is promised: {void}" if void else f"upper limit: {_percent(board)} confidence, at all times"
    leader = _cut(board["leader"])
    beaten = board["leaderboard"][0]["certain_losses"] > 0
    best = f"relative to {leader}" if beaten else f"if {leader} is the best arm"
    notes = [best, limit]
    return _finished(board, chart.properties(width=WIDTH + 50, height=HEIGHT), "Regret so far", notes, summary)


def _must_show(name: str, board: Board) -> None:
    if name not in shown(board):
        raise InvalidInput(f"study {board['study']['name']!r} has nothing to show in its chart {name!r} yet")


def _finished(board: Board, chart: alt.LayerChart, title: str, notes: Sequence[str], summary: str) -> alt.LayerChart:
    about = about_study(board["study"]["name"], board["study"]["answers"])
    description = f"{title}. {'. '.join([about, *notes])}. {summary}."
    finished: alt.LayerChart = charts.titled(chart, title, [about, *notes], description)
    finished.config.axis.labelLimit = NAME
    return finished


def about_study(name: str, answers: int) -> str:
    """Return the first line below a chart's title."""
    return f"{_cut(name)} · {counted(answers, 'answer')}"


def _key(looks: dict[str, tuple[str, str]]) -> Key:
    key = Key()
    for label, (colour, shape) in looks.items():
        key = key.with_entry(label, colour, OUTLINES[shape][0])
    return key


def _marked(looks: dict[str, tuple[str, str]], label: str) -> dict[str, str]:
    return {"state": label, "mark": looks[label][1]}


def _names(order: Sequence[str]) -> alt.Y:
    axis = alt.Axis(ticks=False, domain=False, labelPadding=6, grid=True)
    return alt.Y("arm:N", title=None, sort=None, scale=alt.Scale(domain=list(order)), axis=axis)


def _probability(title: str) -> Options:
    """The arguments of an axis from 0 to 1."""
    axis = alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], labelExpr=charts.PERCENT)
    return {"title": title, "scale": alt.Scale(domain=[0, 1]), "axis": axis}


def _half() -> alt.Chart:
    rule: alt.Chart = (
        alt.Chart(charts.values([{}])).mark_rule(color=GREY, strokeDash=(2, 2), aria=False).encode(x=alt.datum(0.5))
    )
    return rule


def _layered(*layers: alt.Chart | alt.LayerChart) -> alt.LayerChart:
    return cast(alt.LayerChart, alt.layer(*layers))


def _sized(layers: Sequence[alt.Chart | alt.LayerChart], rows: int) -> alt.LayerChart:
    """One row per arm, high enough for its name to be read."""
    return _layered(*layers).properties(width=WIDTH, height=alt.Step(max(14, min(24, 600 // rows))))


def _figures(*fields: str) -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{field}:Q", format=".1%") for field in fields]


def _whole(most: int) -> alt.Axis:
    return alt.Axis(labelExpr=NUMBER, tickCount=min(5, most), tickMinStep=1, labelOverlap=True)


def _both_ways(board: Board, number: str, other: Callable[[float], float]) -> pl.DataFrame:
    """A number of every pair that has met and is on the heat map, from both arms' points of view."""
    met = [(pair["first"], pair["second"], pair[number]) for pair in _met(board)]
    turned = [(second, first, other(value)) for first, second, value in met]
    kind = pl.Float64 if number == "estimate" else pl.Int64
    return pl.DataFrame(met + turned, schema={"row": pl.String, "column": pl.String, number: kind}, orient="row")


def _met(board: Board) -> list[Board]:
    """The pairs on a heat map that have met."""
    mapped = set(board["order"][:MAPPED])
    return [pair for pair in board["pairs"] if pair["duels"] and pair["first"] in mapped and pair["second"] in mapped]


def _self_duels(board: Board) -> list[Board]:
    mapped = set(board["order"][:MAPPED])
    return [one for one in board["self_duels"] if one["arm"] in mapped]


def _outlined(board: Board) -> str:
    """The leader, if it is on the heat map."""
    return board["leader"] if board["leader"] in board["order"][:MAPPED] else ""


def _cut_note(board: Board, most: int, total: int | None = None) -> list[str]:
    arms = len(board["order"]) if total is None else total
    return [f"the best {most} of {arms:,} arms"] if arms > most else []


def _percent(board: Board) -> str:
    return f"{100 * board['study']['confidence']:g} %"


def _minute(point: Board) -> str:
    return str(point["time"])[:16].replace("T", " ")


def _times(points: Sequence[Board]) -> str:
    """The format of the times on an axis: as short as its span allows."""
    span = abs(points[-1]["seconds"] - points[0]["seconds"])
    return "%H:%M:%S" if span < 300 else "%H:%M" if span < 86_400 else "%d %b %H:%M" if span < 345_600 else "%Y-%m-%d"


def _cut(name: str, most: int = 28) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
