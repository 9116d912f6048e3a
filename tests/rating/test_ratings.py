"""The table of ratings: scales, anchors, ranks, sources, columns, and what is refused."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from rating.vote_tables import NAMES, TABLE, THETA, VOTES, tables
from scipy.special import expit

import duels
from duels.errors import InvalidInput
from duels.rating.estimates import normal_quantile
from duels.study.stats.tally import as_tally

POINTS = 400 / np.log(10)
CROWD = Path("/work/shared/data/votes/llmfao-crowd.csv.gz")
COLUMNS = ["arm", "rating", "lower", "upper", "rank", "best_rank", "worst_rank", "duels"]


def by_arm(table, column="rating"):
    return np.array([dict(table["arm", column].rows())[name] for name in NAMES])


def test_the_table():
    table = duels.rate(VOTES)
    assert table.columns == COLUMNS
    assert table["arm"].to_list() == list("aecbd")
    assert table["rank"].to_list() == [1, 2, 3, 4, 5]
    assert dict(table["arm", "duels"].rows()) == {"a": 19, "b": 19, "c": 24, "d": 23, "e": 9}
    assert (table["best_rank"] == 1).all()
    assert (table["worst_rank"] == 5).all()
    assert_allclose(by_arm(table), 1000 + POINTS * THETA, atol=1e-6)
    assert ((table["lower"] < table["rating"]) & (table["rating"] < table["upper"])).all()


def test_scales_and_anchors():
    assert_allclose(by_arm(duels.rate(VOTES, scale="logit")), THETA, atol=1e-9)
    assert_allclose(by_arm(duels.rate(VOTES, scale="probability")), expit(THETA), atol=1e-9)
    below_d = THETA - THETA[3]
    assert_allclose(by_arm(duels.rate(VOTES, anchor="d")), 1000 + POINTS * below_d, atol=1e-6)
    anchored = duels.rate(VOTES, anchor=("d", 1200))
    assert_allclose(by_arm(anchored), 1200 + POINTS * below_d, atol=1e-6)
    assert anchored.row(4)[:4] == ("d", 1200.0, 1200.0, 1200.0)
    assert_allclose(by_arm(duels.rate(VOTES, anchor="d", scale="probability")), expit(below_d), atol=1e-9)
    assert_allclose(by_arm(duels.rate(VOTES, anchor=("d", 2), scale="logit")), 2 + below_d, atol=1e-9)


def test_limits_are_on_the_scale_of_the_ratings():
    logits, elos, chances = (duels.rate(VOTES, scale=scale) for scale in ("logit", "elo", "probability"))
    for column in ("lower", "upper"):
        assert_allclose(elos[column], 1000 + POINTS * logits[column].to_numpy())
        assert_allclose(chances[column], expit(logits[column].to_numpy()))
    narrow = duels.rate(VOTES, scale="logit", confidence=0.5)
    ratio = (narrow["upper"] - narrow["rating"]) / (logits["upper"] - logits["rating"])
    assert_allclose(ratio, normal_quantile(0.5) / normal_quantile(0.95))


def test_two_arms_by_hand():
    """12 wins, 4 losses, 4 ties: half of logit 0.7 each way. The error of the difference is √3.2 / 4.2, see
    test_fitting; of each arm, half of that. 2 · 0.3496 > 1.96 · 0.4259 / … so that both ranks are known."""
    votes = [("x", "y", "left")] * 12 + [("x", "y", "right")] * 4 + [("x", "y", "tie")] * 4
    table = duels.rate(votes, scale="logit")
    half, error = np.log(7 / 3) / 2, np.sqrt(3.2) / 4.2 / 2
    assert_allclose(table["rating"], [half, -half], atol=1e-9)
    assert_allclose(table["upper"] - table["rating"], [1.959964 * error] * 2, atol=1e-6)
    assert half > 1.96 * error
    assert table["rank", "best_rank", "worst_rank"].rows() == [(1, 1, 1), (2, 2, 2)]


def test_ranges_of_ranks_are_those_of_differences():
    """Of K − 1 comparisons of an arm, each has the confidence 1 − 0.05 / (K − 1)."""
    rng = np.random.default_rng(1)
    rows = [
        (i, j, *rng.multinomial(150, [0.5 + 0.06 * (j - i), 0.4 - 0.06 * (j - i), 0.1]))
        for i in range(5)
        for j in range(i)
    ]
    wins, ties = tables(5, *rows)
    tally = as_tally(NAMES, wins, ties)
    table = duels.rate(tally, scale="logit")
    z = normal_quantile(1 - 0.05 / 4)
    assert_allclose(z, 2.497705, atol=1e-6)  # of 1 − 0.05/8
    above = {}
    for anchor in NAMES:  # relative to the anchor, an interval is that of a difference
        own = duels.rate(tally, scale="logit", anchor=anchor, confidence=1 - 0.05 / 4)
        above[anchor] = set(own.filter(pl.col("lower") > 0)["arm"])
    assert 4 < sum(map(len, above.values())) < 10
    for arm, best, worst in table["arm", "best_rank", "worst_rank"].rows():
        assert best == 1 + len(above[arm])
        assert worst == 5 - sum(arm in others for others in above.values())


def test_equal_arms_share_a_rank():
    table = duels.rate(
        [("x", "y", "tie"), ("z", "x", "left"), ("z", "y", "left"), ("x", "z", "left"), ("y", "z", "left")]
    )
    assert table["rank"].to_list() == [1, 1, 1]
    assert table["arm"].to_list() == ["x", "y", "z"]


def test_sources(tmp_path):
    wins, ties = tables(5, *((NAMES.index(a), NAMES.index(b), *counts) for a, b, *counts in TABLE))
    expected = duels.rate(VOTES)
    assert duels.rate(as_tally(NAMES, wins, ties)).equals(expected)
    (tmp_path / "votes.csv").write_text("left,right,winner\n" + "".join(f"{','.join(vote)}\n" for vote in VOTES))
    assert duels.rate(tmp_path / "votes.csv").equals(expected)
    assert duels.rate(duels.read_votes(VOTES)).equals(expected)
    study = duels.create_study(list(NAMES), storage=f"sqlite:///{tmp_path}/studies.db")
    study.import_votes(VOTES)
    assert duels.rate(study).equals(expected)


def test_both_bad_is_a_tie_and_sides_do_not_matter():
    swapped = [
        (right, left, {"left": "right", "right": "left"}.get(winner, "both_bad")) for left, right, winner in VOTES
    ]
    for model in ("bradley-terry", "rao-kupper"):
        assert_allclose(by_arm(duels.rate(swapped, model=model)), by_arm(duels.rate(VOTES, model=model)), atol=1e-6)


def test_arms_without_limits():
    """x and y have beaten each other; up never lost, down never won, and p and q met nobody else."""
    votes = [("x", "y", "left"), ("x", "y", "right")] * 20 + [("up", "x", "left")] * 9 + [("y", "down", "left")] * 9
    votes += [("p", "q", "left"), ("p", "q", "right")]
    said = (
        "the votes do not limit the rating of up from above, of down from below, of p and q from either side: for "
        "finite ratings, every arm was given half a win and half a loss against an average arm"
    )
    with pytest.warns(UserWarning, match=re.escape(said)) as caught:
        table = duels.rate(votes)
    assert caught[0].filename == __file__
    rows = {row["arm"]: row for row in table.to_dicts()}
    infinite = {arm: (row["lower"] == -np.inf, row["upper"] == np.inf) for arm, row in rows.items()}
    assert infinite == {
        "x": (False, False),
        "y": (False, False),
        "up": (False, True),
        "down": (True, False),
        "p": (True, True),
        "q": (True, True),
    }
    assert table["rating"].is_finite().all()
    assert table["arm"][0] == "up"
    assert table["arm"][-1] == "down"
    assert rows["p"]["best_rank"] == 1
    assert rows["p"]["worst_rank"] == 6
    with pytest.warns(UserWarning, match="half a win"):
        chances = duels.rate(votes, scale="probability")
    assert chances.filter(pl.col("arm") == "p")["lower", "upper"].row(0) == (0, 1)


def test_many_arms_without_limits_are_summarized():
    with pytest.warns(UserWarning, match="of a, b, c and 1 more from below"):
        duels.rate([("z", arm, "left") for arm in "abcd"] + [("z", "y", "tie")])


def test_only_ties():
    with pytest.warns(UserWarning, match="from either side"):
        table = duels.rate([("x", "y", "tie")] * 5, model="rao-kupper")
    assert_allclose(table["rating"], 1000)
    assert table["rank"].to_list() == [1, 1]


def test_the_bootstrap_has_a_seed():
    one, same, other = (duels.rate(VOTES * 5, interval="bootstrap", seed=seed) for seed in (1, 1, 2))
    assert one.equals(same)
    assert not one.equals(other)
    assert one["rating"].equals(other["rating"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": "bradley"}, "unknown model of ratings 'bradley'. Did you mean 'bradley-terry'?"),
        ({"scale": "points"}, "unknown scale of ratings 'points'. Known: elo, logit, probability."),
        ({"interval": "wald"}, "unknown kind of interval 'wald'"),
        ({"confidence": 95}, "confidence is 95: expected a number above 0 and below 1"),
        ({"anchor": "f"}, "unknown arm 'f'"),
        ({"anchor": ("a", "1200")}, "anchor is ('a', '1200'): expected an arm, or an arm and its rating"),
        ({"anchor": ("a", 0.5), "scale": "probability"}, "expected only an arm, whose rating is ½"),
        ({"rounds": 5}, "rounds is 5"),
        (
            {"covariates": ["length"], "model": "rao-kupper"},
            "covariates with model 'rao-kupper': expected",
        ),
        ({"covariates": 3}, "covariates is 3: expected a list of columns"),
        ({"covariates": [("a", "b", "c")]}, "expected a column that is already left minus right"),
    ],
)
def test_what_is_refused(options, said):
    with pytest.raises(duels.InvalidInput, match=re.escape(said)):
        duels.rate(VOTES, **options)


def test_counts_have_no_columns():
    tally = as_tally(["x", "y"], [[0, 2], [1, 0]])
    for options, said in (
        ({"by": "language"}, "by needs single votes, but these are counts"),
        ({"covariates": ["length"]}, "covariates needs single votes"),
    ):
        with pytest.raises(duels.InvalidInput, match=said):
            duels.rate(tally, **options)
    with pytest.raises(duels.InvalidInput, match="the tally has 0 arms with duels, expected 2 to 5,000"):
        duels.rate(as_tally(["x", "y"], [[0, 0], [0, 0]]))
    with pytest.raises(duels.InvalidInput, match="has 0 arms with duels, expected 2"):
        duels.rate([])


LANGUAGES = [
    {
        "left": left,
        "right": right,
        "winner": winner,
        "language": ("en", "de", None)[k % 3],
        "n": {"a": k % 7, "b": k % 5},
    }
    for k, (left, right, winner) in enumerate(VOTES * 3)
]


def test_tables_by_a_column(tmp_path):
    table = duels.rate(LANGUAGES, by="language")
    assert table.columns == ["language", *COLUMNS]
    assert table["language"].unique(maintain_order=True).to_list() == ["de", "en"]
    for language in ("de", "en"):
        alone = duels.rate([row for row in LANGUAGES if row["language"] == language])
        part = table.filter(pl.col("language") == language).drop("language")
        assert part["arm", "rank", "duels"].sort("arm").equals(alone["arm", "rank", "duels"].sort("arm"))
        assert_allclose(by_arm(part), by_arm(alone), atol=1e-6)
    with gzip.open(tmp_path / "votes.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in LANGUAGES)
    assert duels.rate(tmp_path / "votes.jsonl.gz", by="language").equals(table)
    assert duels.rate(LANGUAGES, by="n.a")["n.a"].unique().sort().to_list() == list(range(7))


@pytest.mark.parametrize("model", ["bradley-terry", "rao-kupper"])
def test_arms_that_only_tied_are_named(model):
    """Their intervals are those of the arms that they tied with, or have no width at all."""
    votes = [*VOTES, ("a", "level", "tie"), ("level", "a", "both_bad")]
    with pytest.warns(UserWarning, match="level only tied, and ties do not show by how much ratings may be off"):
        duels.rate(votes, model=model)
    with pytest.warns(UserWarning, match="x and y only tied, and ties"):
        table = duels.rate([("x", "y", "tie")] * 5)
    assert table["lower"].to_list() == table["upper"].to_list() == [1000.0, 1000.0]


TAGS = [["math"], ["code", "math", "code"], [], None, ["code", None]]


def test_a_vote_counts_in_every_category_of_its_list(tmp_path):
    rows = [row | {"tags": TAGS[k % 5]} for k, row in enumerate(LANGUAGES)]
    table = duels.rate(rows, by="tags")
    assert table["tags"].unique(maintain_order=True).to_list() == ["code", "math"]
    for tag in ("code", "math"):
        alone = duels.rate([row for row in rows if tag in (row["tags"] or [])])
        part = table.filter(pl.col("tags") == tag).drop("tags")
        assert part["arm", "duels"].sort("arm").equals(alone["arm", "duels"].sort("arm"))
        assert_allclose(by_arm(part), by_arm(alone), atol=1e-6)
    assert duels.rate(pl.DataFrame(rows), by="tags").equals(table)
    pl.DataFrame(rows).write_parquet(tmp_path / "votes.parquet")
    read = duels.rate(tmp_path / "votes.parquet", by="tags")
    assert read["tags", "arm", "duels"].sort("tags", "arm").equals(table["tags", "arm", "duels"].sort("tags", "arm"))
    with pytest.raises(duels.InvalidInput, match="column 'tags' is empty in all votes"):
        duels.rate([row | {"tags": []} for row in LANGUAGES], by="tags")


def test_flags_are_categories():
    """As in LMArena's `category_tag`: objects of flags, in fields whose names have dots."""
    rows = [
        row | {"category_tag": {"math_v0.1": {"math": k % 2 == 0}, "criteria_v0.1": {"hard": k % 3 == 0, "real": True}}}
        for k, row in enumerate(LANGUAGES)
    ]
    table = duels.rate(rows, by="category_tag.criteria_v0.1")
    part = table.filter(pl.col("category_tag.criteria_v0.1") == "hard")
    assert part["duels"].sum() == 2 * len(rows[::3])
    assert table["category_tag.criteria_v0.1"].unique().sort().to_list() == ["hard", "real"]
    math = duels.rate(rows, by="category_tag.math_v0.1.math")
    assert math.filter(pl.col("category_tag.math_v0.1.math"))["duels"].sum() == 2 * len(rows[::2])


def test_columns_must_have_been_read():
    with pytest.raises(duels.InvalidInput, match=re.escape("read it with read_votes(…, extra=['language'])")):
        duels.rate(duels.read_votes(LANGUAGES), by="language")
    read = duels.read_votes(LANGUAGES, extra=["language"])
    assert duels.rate(read, by="language").equals(duels.rate(LANGUAGES, by="language"))
    with pytest.raises(duels.errors.UnknownName, match="unknown column of the list 'langage'"):
        duels.rate(LANGUAGES, by="langage")
    with pytest.raises(duels.InvalidInput, match="column 'empty' is empty in all votes"):
        duels.rate([{**row, "empty": None} for row in LANGUAGES], by="empty")


def test_a_category_without_limits_is_named():
    votes = [*LANGUAGES, {"left": "a", "right": "b", "winner": "left", "language": "fr", "n": {}}]
    with pytest.warns(UserWarning, match="^language = fr: the votes do not limit"):
        duels.rate(votes, by="language")


@pytest.mark.skipif(not CROWD.exists(), reason="the crowd's votes are not here")
def test_gpt_4_is_first_in_the_crowds_votes():
    for options in ({}, {"model": "rao-kupper"}):
        table = duels.rate(CROWD, **options)
        assert table.height == 59
        assert table["arm"][0] == "GPT 4"


def test_groups_that_did_not_meet_are_never_certain_of_their_order():
    """Two groups of 30 arms, equal but for the first arm, which wins nine in ten duels in its own group."""
    wins = np.kron(np.eye(2, dtype=np.int64), np.full((30, 30), 500) - 500 * np.eye(30, dtype=np.int64))
    wins[0, 1:30], wins[1:30, 0] = 900, 100
    with pytest.warns(UserWarning, match="of arm 30, arm 31, arm 32 and 27 more from either side"):
        table = duels.rate(as_tally([f"arm {k}" for k in range(60)], wins))
    ranks = {arm: tuple(ranks) for arm, *ranks in table["arm", "best_rank", "worst_rank"].rows()}
    assert ranks.pop("arm 0") == (1, 31)
    assert {ranks[f"arm {k}"] for k in range(1, 30)} == {(2, 60)}
    assert {ranks[f"arm {k}"] for k in range(30, 60)} == {(1, 60)}


def test_columns_with_too_many_values_are_refused():
    rows = [{"left": "a", "right": "b", "winner": "left", "id": f"vote {k}", "meta": {"n": k}} for k in range(1001)]
    with pytest.raises(
        InvalidInput, match=r"column 'id' has 1,001 different values, such as 'vote 0': expected at most"
    ):
        duels.rate(rows, by="id")
    with pytest.raises(InvalidInput, match=r"column 'meta' has 1,001 different values"):
        duels.rate(rows, by="meta")
    for by in (["id"], ("id", "meta"), 3):
        with pytest.raises(InvalidInput, match="expected the name of one column, such as 'language'"):
            duels.rate(rows, by=by)
