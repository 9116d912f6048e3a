"""Style control: what else moved the votes is estimated, and taken out of the ratings."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

import duels
from duels.rating import effects
from duels.rating.counts import features

ARMS = "pqrs"
LENGTHS = {"p": 400, "q": 200, "r": 100, "s": 50}


def simulated(n, effect, strength, seed, side=0.0):
    """Votes that strengths, the relative difference of lengths and the left side decide."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        left, right = rng.permutation(4)[:2]
        a, b = (LENGTHS[ARMS[arm]] * rng.lognormal(0, 1) // 1 for arm in (left, right))
        chance = expit(strength[left] - strength[right] + effect * (a - b) / (a + b + 1) + side)
        winner = "left" if rng.random() < chance else "right"
        rows.append({"left": ARMS[left], "right": ARMS[right], "winner": winner, "len_a": a, "len_b": b, "one": 1})
    return rows


ROWS = simulated(4000, effect=2.0, strength=np.array([-0.2, 0, 0.05, 0.15]), seed=1)


def test_length_is_taken_out():
    """Long outputs win, although their arms are weaker: ratings reverse. An error of θ is about 0.06; 5 are allowed."""
    plain = duels.rate(ROWS, scale="logit")
    controlled = duels.rate(ROWS, scale="logit", covariates=[("len_a", "len_b")])
    assert plain["arm"].to_list() == ["p", "q", "r", "s"]
    found = dict(controlled["arm", "rating"].rows())
    assert_allclose([found[arm] for arm in ARMS], [-0.2, 0, 0.05, 0.15], atol=0.3)
    assert controlled["duels"].sum() == 8000


def test_effects():
    """γ is per root mean square of the feature."""
    z = np.array([(row["len_a"] - row["len_b"]) / (row["len_a"] + row["len_b"] + 1) for row in ROWS])
    size = np.sqrt(np.mean(z**2))
    table = effects(ROWS, [("len_a", "len_b")])
    assert table.columns == ["covariate", "effect", "lower", "upper"]
    name, effect, lower, upper = table.row(0)
    assert name == "len_a, len_b"
    assert abs(effect - 2 * size) < 4 * (upper - lower) / 2 / 1.96  # false alarms: one in 16,000 seeds
    assert 0.02 < (upper - lower) / 2 / 1.96 < 0.2
    given = [{**row, "z": value} for row, value in zip(ROWS, z)]
    assert_allclose(effects(given, ["z"])["effect"], [effect])


def test_a_column_of_ones_is_the_left_side():
    rows = simulated(3000, effect=0.0, strength=np.zeros(4), seed=2, side=0.5)
    _, effect, lower, upper = effects(rows, ["one"]).row(0)
    assert lower < 0.5 < upper
    assert effect > 0.3
    swapped = [
        {
            "left": row["right"],
            "right": row["left"],
            "winner": "right" if row["winner"] == "left" else "left",
            "one": -1,
        }
        for row in rows
    ]
    assert_allclose(effects(swapped, ["one"])["effect"], [effect])


def test_swapping_all_sides_changes_nothing():
    swap = {"left": "right", "right": "left"}
    swapped = [
        {"left": r["right"], "right": r["left"], "winner": swap[r["winner"]], "len_a": r["len_b"], "len_b": r["len_a"]}
        for r in ROWS
    ]
    one, other = (duels.rate(rows, covariates=[("len_a", "len_b")]) for rows in (ROWS, swapped))
    assert_allclose(one["rating"], other["rating"], atol=1e-6)
    assert one["arm"].equals(other["arm"])


def test_features_by_hand():
    rows = [
        {"left": "x", "right": "y", "winner": "left", "d": 3, "len_a": 4, "len_b": 0},
        {"left": "y", "right": "x", "winner": "left", "d": -4, "len_a": 1, "len_b": 1},
    ]
    votes = duels.read_votes(rows, extra=["d", "len_a", "len_b"])
    size_d, size_ab = np.sqrt((9 + 16) / 2), np.sqrt(0.8**2 / 2)
    assert_allclose(features(votes, ["d", ("len_a", "len_b")]), [[3 / size_d, 0.8 / size_ab], [-4 / size_d, 0]])


def test_a_useless_covariate_changes_nothing():
    rows = [{**row, "zero": 0.0} for row in ROWS[:300]]
    assert_allclose(duels.rate(rows, covariates=["zero"])["rating"], duels.rate(rows)["rating"], atol=1e-6)


def test_the_bootstrap_of_covariates():
    """Both intervals estimate the same: their lengths differ by less than a third with 200 rounds (over 5 errors)."""
    rows = ROWS[:600]
    one, other = (
        duels.rate(rows, scale="logit", covariates=[("len_a", "len_b")], interval=kind, rounds=200)
        for kind in ("sandwich", "bootstrap")
    )
    assert_allclose(one["upper"] - one["lower"], other["upper"] - other["lower"], rtol=1 / 3)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"len_a": "long"}, "covariate 'len_a' has cells such as"),
        ({"len_a": None}, "covariate 'len_a' is empty or not finite in 1 vote, the first in row 3"),
        ({"len_a": -1.0}, "covariate 'len_a' is -1 in a vote: expected 0 or more in pairs of columns"),
    ],
)
def test_cells_that_are_not_numbers(changed, said):
    rows = [dict(row) for row in ROWS[:5]]
    rows[2] |= changed
    if changed["len_a"] == "long":
        rows = [{**row, "len_a": "long"} for row in rows]
    with pytest.raises(duels.InvalidInput, match=re.escape(said)):
        duels.rate(rows, covariates=[("len_a", "len_b")])
