"""Are the chances and the forecasts of `Study.forecast` right? Two tables, and the plot of benchmarks/forecast.md.

    python benchmarks/forecast.py
    python benchmarks/forecast.py chances | forecasts | live

Chances: random studies of two to seven arms, from the model of `study/stats/forecast.py`, are played by the policy
`verdict`
for 3 to 1,000 answers. In each class of stated chances, the share of arms that are the best is compared with the mean
chance.

Forecasts: studies are played to their verdict. How often do the forecast median and the 90 % figure suffice? Beside
them is what another program measured of an earlier forecast, for the same truths and 50 studies each.
"""

import sys
import time
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "study"))

from forecasts import (  # noqa: E402
    CLEAR,
    KINDS,
    draw_truth,
    forecasts,
    live_forecasts,
    played,
    played_on_items,
    studies,
    suffices,
)

from duels.figures import charts  # noqa: E402
from duels.study.stats.forecast import draw_strengths  # noqa: E402

STUDIES, CLASSES = 4000, 10
PRIOR, EACH, ITEMS, SETTINGS, LIVE = 1500, 470, 600, 500, 200  # studies of a row, of which some end before the look
EARLIER = (  # of each truth in CLEAR: predicted and actual median, shares in which the two figures sufficed
    (1327, 116, 0.82, 1.00),
    (153, 76, 0.80, 0.98),
    (1830, 204, 0.94, 1.00),
    (253, 134, 0.90, 1.00),
    (905, 186, 0.80, 1.00),
    (151, 116, 0.67, 0.91),
)


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
        ends.mark_line(color=charts.GRAY, strokeDash=[4, 4]).encode(x=x, y=y),
        base.mark_rule(color=charts.BLUE).encode(x=x, y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(color=charts.BLUE, filled=True, size=60, opacity=1).encode(x=x, y=y),
    ]
    notes = [f"{STUDIES:,} random studies of two to seven arms, 3 to 1,000 answers"]
    notes.append("bar: two standard errors · dashed: the share is the chance")
    chart = charts.layer_charts(*layers, width=360, height=320)
    return charts.add_title(chart, "Stated chances, and how often they come true", notes)


def truths(number, seed):
    """Strengths and numbers of answers from the prior."""
    rng = np.random.default_rng(seed)
    return [draw_truth(rng) for _ in range(number)]


def from_prior(number, seed, **settings):
    """As `studies`, with settings of `played`."""
    for study, truth in enumerate(truths(number, seed)):
        yield from played(*truth, [study], seed, **settings)


def compiled_rows():
    """(name, what was measured of the earlier forecast or None, function that plays the studies) of each row."""
    for (name, (strengths, answers)), earlier in zip(CLEAR.items(), EARLIER):
        yield name, earlier, lambda at=(strengths, answers): forecasts(played(*at, range(EACH), 7))
    yield "from the prior", None, lambda: forecasts(studies(PRIOR, seed=2))
    for about in ("new-items", "these-answers"):
        for items in (40, 200, 1000):
            given = {"items": items, "about": about}
            play = lambda given=given: forecasts(played_on_items(**given, number=ITEMS, seed=5), **given)  # noqa: E731
            yield f"prior, {about}, {items:,}", None, play
    yield "prior, 30 % ties", None, lambda: forecasts(from_prior(SETTINGS, 3, ties=0.3))
    yield "prior, margin 0.05", None, lambda: forecasts(from_prior(SETTINGS, 4, margin=0.05), margin=0.05)
    for policy in ("rucb", "random"):
        yield f"prior, policy {policy}", None, lambda one=policy: forecasts(from_prior(SETTINGS, 8, chosen=one))


def live_rows():
    """As `compiled_rows`, of studies that are asked and told as live ones."""
    name = "5 arms, 70 %, after 50"
    for kind in KINDS:
        yield f"{name}, {kind}", None, lambda kind=kind: live_forecasts(kind, [CLEAR[name]] * LIVE, 1)
    for kind in KINDS:
        yield f"prior, {kind}", None, lambda kind=kind: live_forecasts(kind, truths(LIVE, 6), 1)


def print_forecasts(table_rows):
    """Print a row for each kind of studies."""
    heads = ("studies", "said", "forecast", "actual", "ratio", "half", "most", "half, said", "most, said")
    print("| truth | " + " | ".join([*heads, "earlier ratio", "half", "most"]) + " |")
    print("| --- " * (len(heads) + 4) + "|", flush=True)
    for name, earlier, play in table_rows:
        began = time.process_time()
        rows = play()
        said = [row for row in rows if row.is_said]
        predicted, actual = (float(np.median([getattr(row, one) for row in rows])) for one in ("median", "actual"))
        ratio = predicted / actual if np.isfinite(predicted) and np.isfinite(actual) else float("nan")
        cells = [f"{len(rows):,}", f"{len(said) / len(rows):.0%}", f"{predicted:,.0f}", f"{actual:,.0f}"]
        cells += [f"{ratio:.2f}", *(f"{share:.3f}" for share in (*suffices(rows), *suffices(said)))]
        cells += ["", "", ""] if earlier is None else [f"{earlier[0] / earlier[1]:.1f}", *map(str, earlier[2:])]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        print(f"{name}: {time.process_time() - began:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    parts = sys.argv[1:] or ["chances", "forecasts", "live"]
    if "chances" in parts:
        found = table()
        print(found)
        print(charts.save(chart(found), ROOT / "benchmarks" / "pictures" / "calibration.png"))
    if "forecasts" in parts:
        print_forecasts(compiled_rows())
    if "live" in parts:
        print_forecasts(live_rows())
