"""Are the numbers of a tuning study right? Simulated studies: the table and the figure of benchmarks/calibration.md.

    python benchmarks/calibration.py play      play studies of 60 answers; those that are kept are not played again
    python benchmarks/calibration.py look      what `study.best` and the slices say of them, and what is true
    python benchmarks/calibration.py draw      the figure and the table, of the last look

Truths are draws from the model's own prior, hyperparameters included, or fixed functions with a random center. The
questions are those of a study with the policy `eubo`, answers are logistic. `play` may run in several processes at
once: each takes parts that no other has.
"""

import argparse
import json
import math
import os
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

import duels
from duels.continuous import History, Memory, load_policy
from duels.continuous.blas import one_thread
from duels.continuous.model.model import LENGTH_MEDIAN, LENGTH_SPREAD, SCALE_MEDIAN, SCALE_SPREAD, Answers
from duels.continuous.model.posterior import FLAT
from duels.continuous.spaces import Space
from duels.continuous.tuning.choose import ask
from duels.continuous.tuning.result import advice

ROOT = Path(__file__).parents[1]
OUT = Path(__file__).parent / "out"
KEPT = OUT / "calibration"
PICTURE = ROOT / "benchmarks" / "pictures" / "tuning-calibration.png"
ANSWERS, PART, CONFIDENCE = 60, 20, 0.95
LOOKS = (15, 30, 60)
PRIOR = "the model's own prior"
Truth = Callable[[np.ndarray], np.ndarray]


class Process:
    """A utility drawn from a Gaussian process: exact, each point drawn given those before it."""

    def __init__(self, dimensions: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self.lengths = LENGTH_MEDIAN * np.exp(LENGTH_SPREAD * rng.standard_normal(dimensions))
        self.scale = SCALE_MEDIAN * np.exp(SCALE_SPREAD * rng.standard_normal())
        self.points, self.values = np.empty((0, dimensions)), np.empty(0)

    def covariance(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Matérn-5/2."""
        r = np.sqrt(5 * (((x[:, None, :] - y) / self.lengths) ** 2).sum(-1))
        found: np.ndarray = self.scale * (1 + r + r * r / 3) * np.exp(-r)
        return found

    def __call__(self, points: np.ndarray) -> np.ndarray:
        new = np.array([p for p in np.unique(points, axis=0) if not (self.points == p).all(1).any()])
        if len(new):
            known = self.covariance(self.points, self.points) + 1e-9 * self.scale * np.eye(len(self.points))
            cross = self.covariance(self.points, new)
            pull = np.linalg.solve(known, cross)
            values, vectors = np.linalg.eigh(self.covariance(new, new) - cross.T @ pull)
            noise = vectors @ (np.sqrt(np.maximum(values, 0)) * self.rng.standard_normal(len(new)))
            self.points = np.vstack([self.points, new])
            self.values = np.append(self.values, pull.T @ self.values + noise)
        where = [int((self.points == p).all(1).argmax()) for p in points]
        found: np.ndarray = self.values[where]
        return found


def bowl(dimensions: int, rng: np.random.Generator, depth: float) -> Truth:
    """−depth |x − c|²."""
    center = rng.uniform(0.2, 0.8, dimensions)
    return lambda points: -depth * ((points - center) ** 2).sum(1)


def bump(dimensions: int, rng: np.random.Generator) -> Truth:
    """Six logits high, a standard deviation of a tenth of the side."""
    center = rng.uniform(0.2, 0.8, dimensions)
    return lambda points: 6.0 * np.exp(-0.5 * (((points - center) / 0.1) ** 2).sum(1))


def flat(dimensions: int, rng: np.random.Generator) -> Truth:
    """Nobody minds: people toss coins."""
    return lambda points: np.zeros(len(points))


class Cell(NamedTuple):
    """A kind of truth."""

    name: str
    dimensions: int
    make: Callable[[int, np.random.Generator], Truth]
    studies: int


CELLS = (
    Cell("own prior, 1-D", 1, Process, 240),
    Cell("own prior, 2-D", 2, Process, 240),
    Cell("one narrow bump, 1-D", 1, bump, 100),
    Cell("−12(x−c)², 1-D", 1, partial(bowl, depth=12.0), 100),
    Cell("−8|x−c|², 2-D", 2, partial(bowl, depth=8.0), 100),
    Cell("−2(x−c)², 1-D", 1, partial(bowl, depth=2.0), 100),
    Cell("flat, 1-D", 1, flat, 200),
    Cell("flat, 2-D", 2, flat, 100),
)


def truth_of(cell: Cell, run: int) -> Truth:
    """Return the truth of a study."""
    return cell.make(cell.dimensions, np.random.default_rng([zlib.crc32(cell.name.encode()), run]))


def space_of(cell: Cell) -> Space:
    """Return the space of a truth: the unit cube."""
    return duels.Space(dict.fromkeys("xyzw"[: cell.dimensions], (0.0, 1.0)))


def play_study(cell: Cell, run: int) -> np.ndarray:
    """(n, 2 d + 1) the answers of a study: left, right, outcome."""
    truth, space, chooser, memory = truth_of(cell, run), space_of(cell), load_policy("eubo"), Memory()
    luck = np.random.default_rng([zlib.crc32(cell.name.encode()), run, 1])
    history = History.of(space, [])
    for number in range(ANSWERS):
        left, right = (space.encode(one) for one in ask(chooser, space, history, run, number, memory))
        ahead = np.diff(truth(np.stack([right, left])))[0]
        history = history.with_duel(left, right, float(luck.random() < 1 / (1 + np.exp(-ahead))))
    return np.column_stack(history)


def parts_of(number: int, studies: int) -> Iterator[tuple[Path, range]]:
    """Yield the files of a cell's studies, and which ones each has."""
    for block in range(0, studies, PART):
        for half in (0, 1):
            yield KEPT / f"{number}-{block}-{half}.npy", range(block + half, min(block + PART, studies), 2)


def play(share: float) -> None:
    """Play all studies that nobody has begun, or a share of them."""
    KEPT.mkdir(parents=True, exist_ok=True)
    todo = [
        (file, runs, cell)
        for number, cell in enumerate(CELLS)
        for file, runs in parts_of(number, math.ceil(share * cell.studies))
    ]
    for file, runs, cell in sorted(todo, key=lambda one: one[1].start):
        try:
            os.close(os.open(file.with_suffix(".claim"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        with one_thread():
            np.save(file, np.stack([play_study(cell, run) for run in runs]))
        print(file.name, cell.name, flush=True)


class Look(NamedTuple):
    """What is said after some answers, and what is true."""

    cell: int
    run: int
    answers: int
    covered: float  # share of the points of the slices whose band has the truth
    width: float  # mean width of these bands, in logits
    interval: bool  # whether the interval of the share of wins has the truth
    chance: float  # that the best setting is better, said or not
    better: bool  # whether it is
    found: bool  # whether a preference was found, so that the chance is said


def look_at(number: int, run: int, played: np.ndarray) -> Iterator[Look]:
    """Yield what is said of a study after some of its answers."""
    cell = CELLS[number]
    space, truth, d = space_of(cell), truth_of(cell, run), cell.dimensions
    left, right, outcome = played[:, :d].copy(), played[:, d : 2 * d].copy(), played[:, -1].copy()
    for pair in zip(right, left):
        truth(np.stack(pair))  # in the order of the study: a draw from a process depends on it
    for count in LOOKS:
        answers = Answers(left[:count], right[:count], outcome[:count])
        found = advice(load_policy("eubo"), space, History(*answers), run, Memory(), CONFIDENCE, answers)
        best = found.best
        here, other, points, bands = space.encode(best.setting), space.encode(best.runner_up), [], []
        for place, one in enumerate(found.slices["parameters"]):
            for value, *band in zip(one["values"], one["lower"], one["upper"]):
                point = space.encode(best.setting | {one["name"]: value})
                if point[place] != here[place]:
                    points.append(point)
                    bands.append(band)
        values, (lower, upper) = truth(np.array([here, other, *points])), np.array(bands).T
        ahead, apart = values[0] - values[1], values[2:] - values[0]
        inside = (apart >= lower - 1e-9) & (apart <= upper + 1e-9)
        interval = bool(logit(best.lower) - 1e-9 <= ahead <= logit(best.upper) + 1e-9)
        said = best.sure is not None
        yield Look(
            *(number, run, count, float(inside.mean()), float((upper - lower).mean())),
            *(interval, found.chance, bool(ahead > 0), said),
        )


def look(wanted: list[int]) -> None:
    """Look at the studies that were played, and keep what is said."""
    for number in wanted:
        looks = list[Look]()
        for file, runs in parts_of(number, CELLS[number].studies):
            if file.exists():
                with one_thread():
                    for run, played in zip(runs, np.load(file)):
                        looks += look_at(number, run, np.ascontiguousarray(played))
        (KEPT / f"looks-{number}.json").write_text(json.dumps(looks) + "\n")
        print(CELLS[number].name, len(looks) // len(LOOKS), flush=True)


def kept_looks() -> list[Look]:
    """Return what was kept of the last look."""
    files = sorted(KEPT.glob("looks-*.json"))
    return [Look(*row) for file in files for row in json.loads(file.read_text())]


def weights_of(looks: list[Look]) -> np.ndarray:
    """(n,) weights with which a mean over looks is one over the model's prior: `FLAT` of its truths are flat."""
    is_flat = np.array([CELLS[one.cell].make is flat for one in looks])
    dimensions = np.array([CELLS[one.cell].dimensions for one in looks])
    weights = np.zeros(len(looks))
    for d in np.unique(dimensions):
        for kind, share in ((True, FLAT), (False, 1.0 - FLAT)):
            inside = (is_flat == kind) & (dimensions == d)
            weights[inside] = share / max(inside.sum(), 1)
    return weights / weights.sum()


def average(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return a weighted mean and its standard error."""
    mean = float(weights @ values)
    return mean, float(np.sqrt((weights**2) @ (values - mean) ** 2))


def rows_of(looks: list[Look]) -> Iterator[tuple[str, list[Look]]]:
    """Yield the name and the looks of each row of the table: the prior in each dimension, then the cells."""
    for d in (1, 2):
        inside = [one for one in looks if CELLS[one.cell].dimensions == d and CELLS[one.cell].make in (Process, flat)]
        yield f"{PRIOR}, {d}-D", inside
    yield f"{PRIOR}, both", [one for one in looks if CELLS[one.cell].make in (Process, flat)]
    for number, cell in enumerate(CELLS):
        if cell.make is not Process:
            yield cell.name, [one for one in looks if one.cell == number]


def write_table(looks: list[Look]) -> str:
    """Return the table in Markdown; numbers after ± are standard errors."""
    heads = ["truth", "answers", "studies", "bands", "width", "interval", "chance", "better", "found", "said", "better"]
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for name, inside in rows_of(looks):
        for count in LOOKS:
            here = [one for one in inside if one.answers == count]
            if not here:
                continue
            weights = weights_of(here) if name.startswith(PRIOR) else np.full(len(here), 1 / len(here))
            column = {key: np.array([getattr(one, key) for one in here], float) for key in Look._fields}
            (bands, band_error), (better, better_error) = (average(column[k], weights) for k in ("covered", "better"))
            said = column["found"] > 0
            part = weights[said] / max(weights[said].sum(), 1e-12)
            cells = [name, count, len(here), f"{bands:.3f} ± {band_error:.3f}", f"{weights @ column['width']:.1f}"]
            cells += [f"{weights @ column['interval']:.2f}", f"{weights @ column['chance']:.2f}"]
            cells += [f"{better:.2f} ± {better_error:.2f}", f"{weights @ column['found']:.2f}"]
            chances = (part @ column["chance"][said], part @ column["better"][said])
            cells += [f"{one:.2f}" if said.any() else "–" for one in chances]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def draw(looks: list[Look]) -> Any:
    """Return the chart: how often chances come true over the prior, and the coverage of the bands for each truth."""
    import altair as alt

    from duels.figures import charts

    prior = [one for one in looks if CELLS[one.cell].make in (Process, flat)]
    weights, chance = weights_of(prior), np.array([one.chance for one in prior])
    better, classes = np.array([one.better for one in prior], float), []
    for low in np.arange(0.0, 1.0, 0.1):
        inside = (chance >= low) & ((chance < low + 0.1) | (low > 0.85))
        if inside.sum() >= 20:
            share, error = average(better[inside], weights[inside] / weights[inside].sum())
            mean = float(weights[inside] @ chance[inside] / weights[inside].sum())
            classes.append({"stated": mean, "share": share, "low": share - 2 * error, "high": share + 2 * error})
    axis = alt.Axis(format=".0%", values=[0, 0.2, 0.4, 0.6, 0.8, 1])
    scale = alt.Scale(domain=[0, 1], clamp=True)
    x = alt.X("stated:Q", title="chance that the best setting is better", axis=axis, scale=scale)
    y = alt.Y("share:Q", title="share in which it is better", axis=axis, scale=scale)
    ends = alt.Chart(charts.values([{"stated": 0, "share": 0}, {"stated": 1, "share": 1}]))
    base = alt.Chart(charts.values(classes))
    left = charts.layer_charts(
        ends.mark_line(color=charts.GRAY, strokeDash=[4, 4]).encode(x=x, y=y),
        base.mark_rule(color=charts.BLUE).encode(x=x, y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(color=charts.BLUE, filled=True, size=60, opacity=1).encode(x=x, y=y),
        width=300,
        height=260,
    )
    rows = []
    for name, inside in rows_of(looks):
        for count in LOOKS:
            here = [one for one in inside if one.answers == count]
            if here and not name.endswith("both"):
                part = weights_of(here) if name.startswith(PRIOR) else np.full(len(here), 1 / len(here))
                mean, error = average(np.array([one.covered for one in here]), part)
                ends_of = {"low": mean - 2 * error, "high": min(mean + 2 * error, 1.0)}
                label = f"{count} answers"
                rows.append({"truth": name.replace(PRIOR, "own prior"), "answers": label, "mean": mean} | ends_of)
    order = list(dict.fromkeys(row["truth"] for row in rows))
    labels = [f"{count} answers" for count in LOOKS]
    base = alt.Chart(charts.values(rows))
    where = alt.Y("truth:N", sort=order, title=None, axis=alt.Axis(labelLimit=200))
    offset = alt.YOffset("answers:N", sort=labels)
    across = alt.X(
        "mean:Q",
        title="truth inside the 95 % bands",
        axis=alt.Axis(format=".0%", values=[0.8, 0.85, 0.9, 0.95, 1]),
        scale=alt.Scale(domain=[0.8, 1.0], clamp=True),
    )
    color = alt.Color(
        "answers:N",
        title=None,
        sort=labels,
        scale=alt.Scale(domain=labels, range=[charts.ORANGE, charts.GRAY, charts.BLUE]),
        legend=alt.Legend(orient="bottom"),
    )
    line = alt.Chart(charts.values([{"mean": CONFIDENCE}])).mark_rule(color=charts.GRAY, strokeDash=[4, 4])
    right = charts.layer_charts(
        line.encode(x=across),
        base.mark_rule().encode(x=alt.X("low:Q"), x2="high:Q", y=where, yOffset=offset, color=color),
        base.mark_point(filled=True, size=40, opacity=1).encode(x=across, y=where, yOffset=offset, color=color),
        width=260,
        height=260,
    )
    notes = ["Left: truths from the model's own prior; dashed: as often as said", "bars: two standard errors"]
    return charts.add_title(alt.hconcat(left, right, spacing=40), "What tuning studies say, and what is true", notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["play", "look", "draw"])
    parser.add_argument("--share", type=float, default=1.0, help="of the studies to play")
    parser.add_argument("--cells", help="numbers of the kinds of truth to look at, such as 0,6")
    given = parser.parse_args()
    if given.what == "play":
        play(given.share)
    elif given.what == "look":
        look([int(one) for one in given.cells.split(",")] if given.cells else list(range(len(CELLS))))
    else:
        from duels.figures import charts

        print(write_table(kept_looks()))
        print(charts.save(draw(kept_looks()), PICTURE, scale=1.5))


if __name__ == "__main__":
    main()
