"""The figure of ratings: order, ends of the lines, arrows, and what it refuses."""

import math
import warnings

import polars as pl
import pytest
from chart_reader import spec_of

import duels
from duels import figures
from duels.errors import InvalidInput

VOTES = [("b", "c", "left")] * 6 + [("c", "b", "left")] * 4 + [("a", "b", "left")] * 5 + [("c", "d", "left")]


def table(votes=VOTES, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a only won, d only lost
        return duels.rate(votes, **options)


def test_points_are_the_table():
    points, rated = figures.rating_points(table()), table()
    assert points["arm"].to_list() == rated["arm"].to_list() == ["a", "b", "c", "d"]
    assert points["rating"].to_list() == rated["rating"].to_list()
    middle = points.filter(arm="b").row(0, named=True)
    assert (middle["from"], middle["to"]) == (middle["lower"], middle["upper"])
    assert not middle["open_below"]
    assert not middle["open_above"]


def test_limits_that_the_votes_do_not_give_are_arrows():
    points = figures.rating_points(table())
    first, last = points.row(0, named=True), points.row(-1, named=True)
    assert first["upper"] == math.inf
    assert first["open_above"]
    finite = [end for name in ("rating", "lower", "upper") for end in points[name] if math.isfinite(end)]
    assert max(finite) < first["to"] < math.inf
    assert last["open_below"]
    assert -math.inf < last["from"] < min(finite)
    chart = figures.ratings(table())
    assert chart.title.subtitle == ["4 arms · arrow: the votes give no limit"]
    assert len(chart.layer) == 4


def test_the_best_arms_are_shown():
    chart = figures.ratings(table(), most=2, labels={"a": "Ada"})
    assert chart.title.subtitle[0].startswith("the best 2 of 4 arms")
    y = spec_of(chart)["layer"][0]["encoding"]["y"]
    assert y["scale"]["domain"] == ["a", "b"]
    assert y["axis"]["labelExpr"] == '{"a": "Ada", "b": "b"}[datum.label]'


def test_other_tables_are_refused():
    with pytest.raises(InvalidInput, match=r"expected the table that duels\.rate returned"):
        figures.ratings(pl.DataFrame({"arm": ["a"], "score": [1.0]}))
    rows = [
        {"left": "a", "right": "b", "winner": word, "lang": lang} for lang in ("en", "pl") for word in ("left", "right")
    ]
    boards = duels.rate(rows, by="lang")
    with pytest.raises(InvalidInput, match="several rows for an arm: filter it to one value of 'lang' first"):
        figures.ratings(boards)
    assert figures.ratings(boards.filter(lang="en")).title.subtitle == ["2 arms"]
    with pytest.raises(InvalidInput, match="most is 0: expected how many arms to show, from 1 on"):
        figures.ratings(table(), most=0)
