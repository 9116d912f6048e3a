"""Predicted win rates, ranks by LMArena's rule and by category, and ratings over time."""

import json

import numpy as np
import polars as pl
import pytest
from commands import duels_command

import duels
from duels.errors import InvalidInput, UnknownName
from duels.rating import category_ranks, ratings_over_time, win_rates

NAMES = np.array(["ada", "bert", "chloe", "dora"])


def arena(seed=1, n=3000, strength=(0.9, 0.6, 0.3, 0.0)):
    rng = np.random.default_rng(seed)
    worth = np.array(strength)
    a = rng.integers(4, size=n)
    b = (a + rng.integers(1, 4, size=n)) % 4
    won = rng.random(n) < 1 / (1 + np.exp(worth[b] - worth[a]))
    return pl.DataFrame(
        {
            "model_a": NAMES[a],
            "model_b": NAMES[b],
            "winner": np.where(rng.random(n) < 0.1, "tie", np.where(won, "model_a", "model_b")),
            "language": rng.choice(["en", "pl"], n),
            "kind": rng.choice(["code", "en"], n),
            "tstamp": 1.7e9 + np.sort(rng.random(n)) * 1.5e7,
        }
    )


def test_predicted_win_rates_are_those_of_the_fit():
    frame = arena()
    table, rated = win_rates(frame), duels.rate(frame, scale="logit", cluster=None)
    strength = dict(rated["arm", "rating"].rows())
    assert table["arm"].unique(maintain_order=True).to_list() == rated["arm"].to_list()
    assert len(table) == 12
    for arm, opponent, predicted, count, share in table.rows():
        assert predicted == pytest.approx(1 / (1 + np.exp(strength[opponent] - strength[arm])))
        met = frame.filter(pl.col("model_a").is_in([arm, opponent]) & pl.col("model_b").is_in([arm, opponent]))
        sides = met.with_columns(named=pl.when(pl.col("winner") == "model_a").then("model_a").otherwise("model_b"))
        wins = sides.filter((pl.col("winner") != "tie") & (pl.col("named") == arm)).height
        assert count == len(met)
        assert share == pytest.approx((wins + met.filter(pl.col("winner") == "tie").height / 2) / len(met))
    # Of each arm the predicted wins are as many as the real ones: the equation of the maximum of the likelihood.
    balance = table.group_by("arm").agg((pl.col("duels") * (pl.col("predicted") - pl.col("share"))).sum())
    assert balance["duels"].abs().max() < 1e-6


def test_pairs_that_never_met_have_a_prediction_and_no_share():
    rows = [("a", "b", "left")] * 2 + [("b", "a", "left"), ("b", "c", "left"), ("c", "b", "left")]
    table = win_rates(rows)
    assert table.filter(arm="a", opponent="c").row(0)[2:] == (pytest.approx(2 / 3), 0, None)
    study = duels.create_study(["a", "b", "c"], "pairs", "sqlite://")
    study.import_votes(rows)
    assert win_rates(study).equals(table)


def test_ranks_by_the_rule_of_lmarena():
    frame = arena(n=600)
    ours, theirs = duels.rate(frame), duels.rate(frame, ranks="lmarena")
    assert theirs.drop("rank").equals(ours.drop("rank"))
    rows = theirs.rows(named=True)
    expected = [1 + sum(other["lower"] > row["upper"] for other in rows) for row in rows]
    assert theirs["rank"].to_list() == expected
    assert expected != ours["rank"].to_list()
    with pytest.raises(UnknownName, match="unknown rule of ranks 'arena'"):
        duels.rate(frame, ranks="arena")


def test_ranks_overall_and_in_each_category():
    frame = arena()
    table = category_ranks(frame, ["language", "kind"], ranks="lmarena")
    assert table.columns == ["arm", "overall", "language = en", "pl", "code", "kind = en"]
    overall = duels.rate(frame, ranks="lmarena")
    assert table["arm", "overall"].rows() == overall["arm", "rank"].rows()
    for column in ("language", "kind"):
        for (value,), part in duels.rate(frame, by=column, ranks="lmarena").group_by(column):
            name = value if value in table.columns else f"{column} = {value}"
            assert dict(table["arm", name].rows()) == dict(part["arm", "rank"].rows())
    newcomer = pl.concat([frame, frame.head(5).with_columns(model_a=pl.lit("new"), model_b=pl.lit("ada"), kind=None)])
    rows = category_ranks(newcomer, "kind").filter(arm="new").rows(named=True)
    assert rows[0]["code"] is None
    with pytest.raises(InvalidInput, match="by has no columns"):
        category_ranks(frame, [])


def test_the_scale_does_not_move_when_arms_join():
    """The months of 2023 before and after a strong arm joins: with the mean as 1000 all others would fall."""
    early = arena(2).filter(pl.col("model_a") != "ada", pl.col("model_b") != "ada").with_columns(tstamp=1.69e9)
    late = arena(3, strength=(2.4, 0.6, 0.3, 0.0)).with_columns(tstamp=1.70e9)
    table = ratings_over_time(pl.concat([early, late]), anchor="dora")
    assert table["period"].unique().sort().cast(pl.String).to_list() == ["2023-07-01", "2023-11-01"]
    assert table.filter(arm="dora")["rating"].to_list() == [1000, 1000]
    moved = np.diff(table.filter(arm="bert").sort("period")["rating"].to_list())[0]
    assert abs(moved) < 40
    free = duels.rate(late)["arm", "rating"], duels.rate(early)["arm", "rating"]
    assert dict(free[0].rows())["bert"] - dict(free[1].rows())["bert"] < -40
    for (period,), part in table.group_by("period"):
        alone = duels.rate(early if period.month == 7 else late, anchor="dora")
        assert dict(part["arm", "lower"].rows()) == pytest.approx(dict(alone["arm", "lower"].rows()))


def test_the_usual_anchor_is_in_every_period():
    early = arena(2).filter(pl.col("model_a") != "ada", pl.col("model_b") != "ada").with_columns(tstamp=1.69e9)
    table = ratings_over_time(pl.concat([early, arena(3).with_columns(tstamp=1.70e9)]))
    anchor = table.notes[0].split()[4].rstrip(",")
    assert anchor != "ada"
    assert table.filter(arm=anchor)["rating"].to_list() == [1000, 1000]
    only = ratings_over_time(pl.concat([early, arena(3).with_columns(tstamp=1.70e9)]), anchor=("ada", 1200.0))
    assert only.filter(arm="ada")["rating"].to_list() == [1200]
    assert "Left out: 1 of the periods, which have no vote on ada." in only.notes
    with pytest.raises(InvalidInput, match="does not say when votes were given"):
        ratings_over_time(early.drop("tstamp"))
    with pytest.raises(UnknownName, match=r"unknown period 'months'\. Did you mean 'month'"):
        ratings_over_time(early, "months")
    with pytest.raises(UnknownName, match="unknown arm 'eve'"):
        ratings_over_time(early, anchor="eve")


def test_on_the_command_line(tmp_path):
    arena().write_parquet(tmp_path / "arena.parquet")

    def rows(*options, code=0):
        done = duels_command("rate", "arena.parquet", *options, "-f", "json", cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout) if code == 0 else done.stderr

    path = tmp_path / "arena.parquet"
    assert [row["rank"] for row in rows("--ranks", "lmarena")] == duels.rate(path, ranks="lmarena")["rank"].to_list()
    assert rows("--category", "language", "--category", "kind") == category_ranks(path, ["language", "kind"]).to_dicts()
    over_time = rows("--every", "month", "--anchor", "dora", "--out", "time.png")
    assert [row["rating"] for row in over_time] == pytest.approx(
        ratings_over_time(path, anchor="dora")["rating"].to_list()
    )
    assert over_time[0]["period"] == "2023-11-01"
    pairs = rows("--pairs", "--out", "pairs.svg")
    assert [row["predicted"] for row in pairs] == pytest.approx(win_rates(path)["predicted"].to_list())
    assert {one.name for one in tmp_path.glob("*.*g")} == {"time.png", "pairs.svg", "pairs-counts.svg"}
    assert "--every and --pairs are two tables" in rows("--pairs", "--every", "month", code=2)
