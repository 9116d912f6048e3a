"""Are the chances of `Study.standing` right? A table, and the plot of docs/study/standing.md.

    python benchmarks/standing.py

Random studies of two to seven arms, from the model of `study/standing.py`, are played by the policy `verdict` for 3 to
1,000 answers. In each class of stated chances, the share of arms that are the best is compared with the mean chance.
"""

import sys
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "study"))

from test_standing import studies  # noqa: E402

from duels.figures import charts  # noqa: E402
from duels.study.standing import draw_strengths  # noqa: E402

STUDIES, CLASSES = 4000, 10


def stated_and_true():
    """For every arm of every study: the stated chance, and whether it is the best."""
    stated, true = [], []
    for looks, strengths, _ in studies(STUDIES, seed=1):
        draws = draw_strengths(looks.wins, np.random.default_rng(0))
        stated += (np.bincount(draws.argmax(axis=1), minlength=len(strengths)) / len(draws)).tolist()
        true += (np.arange(len(strengths)) == strengths.argmax()).tolist()
    return np.array(stated), np.array(true)


def table():
    """One row per class of stated chances, with two standard errors of the share."""
    stated, true = stated_and_true()
    place = np.minimum((stated * CLASSES).astype(int), CLASSES - 1)
    rows = []
    for number in range(CLASSES):
        inside = place == number
        share, n = true[inside].mean(), int(inside.sum())
        error = 2 * np.sqrt(stated[inside].mean() * (1 - stated[inside].mean()) / n)
        row = {"stated": stated[inside].mean(), "share": share, "low": share - error, "high": share + error, "arms": n}
        rows.append(row)
    return pl.DataFrame(rows)


def chart(rows):
    """The shares over the stated chances, and the diagonal, where both are the same."""
    axis = alt.Axis(format=".0%", values=[0, 0.2, 0.4, 0.6, 0.8, 1])
    x = alt.X("stated:Q", title="stated chance to be the best", axis=axis, scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("share:Q", title="share that are the best", axis=axis, scale=alt.Scale(domain=[0, 1], clamp=True))
    ends = alt.Chart(charts.values([{"stated": 0, "share": 0}, {"stated": 1, "share": 1}]))
    base = alt.Chart(charts.values(rows))
    layers = [
        ends.mark_line(color=charts.GREY, strokeDash=[4, 4]).encode(x=x, y=y),
        base.mark_rule(color=charts.BLUE).encode(x=x, y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(color=charts.BLUE, filled=True, size=60, opacity=1).encode(x=x, y=y),
    ]
    notes = [f"{STUDIES:,} random studies of two to seven arms, 3 to 1,000 answers"]
    notes.append("bar: two standard errors · dashed: the share is the chance")
    chart = charts.layered(*layers, width=360, height=320)
    return charts.titled(chart, "Stated chances, and how often they come true", notes)


if __name__ == "__main__":
    found = table()
    print(found)
    print(charts.save(chart(found), ROOT / "docs" / "pictures" / "calibration.png"))
