"""Click models: frequencies against the model's own probabilities, presets, validation."""

import enumeration
import numpy as np
import pytest
from scipy import stats

from duels.engine import compiling
from duels.errors import InvalidInput, UnknownName
from duels.rankers.clicks import PRESETS, cascade, click_model, draw_clicks, position_based


def frequencies(model, grades, draws, seed=0):
    """How often each set of places is clicked, by the compiled kernel."""
    table = model.table(len(grades), max(grades) + 1)
    clicked, rng = np.zeros(len(grades), np.bool_), np.random.default_rng(seed)
    draw, grades = compiling.compile_with(draw_clicks), np.array(grades)
    counts = {}
    for _ in range(draws):
        total = draw(table, grades, len(grades), clicked, rng)
        places = tuple(np.flatnonzero(clicked).tolist())
        assert total == len(places)
        counts[places] = counts.get(places, 0) + 1
    return counts


def fits(counts, expected, draws):
    """Chi-square, rare outcomes pooled; a right kernel fails in one of 10⁶ tests."""
    assert set(counts) <= set(expected)
    common = [key for key, p in expected.items() if p * draws >= 5]
    observed = [counts.get(key, 0) for key in common]
    wanted = [expected[key] * draws for key in common]
    observed.append(draws - sum(observed))
    wanted.append(draws - sum(wanted))
    if wanted[-1] < 1e-6:
        observed.pop()
        wanted.pop()
    statistic = sum((o - w) ** 2 / w for o, w in zip(observed, wanted))
    return stats.chi2.sf(statistic, max(len(wanted) - 1, 1)) > 1e-6


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("grades", [*(pytest.param(one, marks=pytest.mark.deep) for one in (2, 3)), 5])
def test_cascade_frequencies(name, grades):
    model = click_model(name, grades)
    shown = [0, grades - 1, 0, min(1, grades - 1)]
    expected = enumeration.cascade(shown, model.click, model.stop)
    assert fits(frequencies(model, shown, 20_000), expected, 20_000)


def test_the_frequency_test_can_fail():
    model = click_model("navigational", 2)
    expected = enumeration.cascade([0, 1, 0], (0.05, 0.9), model.stop)  # 0.90 in place of 0.95
    assert not fits(frequencies(model, [0, 1, 0], 20_000), expected, 20_000)


def test_position_based_clicks_are_independent():
    model = position_based(click=[0.2, 0.9], look=[1.0, 0.5, 0.25])
    # Grades 1, 0, 1: clicked with 0.9, 0.5·0.2 = 0.1 and 0.25·0.9 = 0.225, whatever the others.
    single = [0.9, 0.1, 0.225]
    expected = {}
    for mask in np.ndindex(2, 2, 2):
        places = tuple(k for k in range(3) if mask[k])
        expected[places] = float(np.prod([p if on else 1 - p for p, on in zip(single, mask)]))
    assert fits(frequencies(model, [1, 0, 1], 20_000), expected, 20_000)


def test_the_position_based_preset():
    """Looks at place k with 1/k; clicks grade g of 2 with 0.1 + 0.9 (2^g − 1)/3: 0.1, 0.4 and 1."""
    model = click_model("position-based", 3)
    assert model.click == pytest.approx((0.1, 0.4, 1.0))
    assert model.look[:4] == (1, 1 / 2, 1 / 3, 1 / 4)
    single = [0.4, 1.0 / 2, 0.1 / 3, 0.4 / 4]
    expected = {}
    for mask in np.ndindex(2, 2, 2, 2):
        places = tuple(k for k in range(4) if mask[k])
        expected[places] = float(np.prod([p if on else 1 - p for p, on in zip(single, mask)]))
    assert fits(frequencies(model, [1, 2, 0, 1], 20_000), expected, 20_000)
    assert click_model("position-based", 2).click == (0.1, 1.0)
    assert click_model("position-based", 4).grades == 4


def test_the_perfect_user_by_hand():
    model = click_model("perfect", 2)
    assert frequencies(model, [0, 1, 0, 1], 100) == {(1, 3): 100}


def test_presets():
    assert click_model("navigational", 2).click == (0.05, 0.95)
    assert click_model("navigational", 1).grades == 2  # no document is relevant: the binary table serves
    assert click_model("informational", 3).stop == (0.1, 0.3, 0.5)
    assert click_model("perfect", 5).click == (0.0, 0.2, 0.4, 0.8, 1.0)
    mine = cascade([0.1, 0.2], [0.3, 0.4])
    assert click_model(mine, 2) is mine


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: click_model("navigation", 2), "unknown click model 'navigation'. Did you mean 'navigational'?"),
        (lambda: click_model("perfect", 4), "has tables for 2, 3 and 5 grades, but the documents have 4"),
        (lambda: cascade([0.1, 1.2], [0, 0]), "click[1] = 1.2, expected a probability between 0 and 1"),
        (lambda: cascade([0.1, float("nan")], [0, 0]), "click[1] = nan, expected a probability"),
        (lambda: cascade([0.1, 0.2], [0, -1]), "stop[1] = -1, expected a probability"),
        (lambda: cascade([0.1, 0.2], [0]), "click has 2 grades and stop 1: expected the same number"),
        (lambda: cascade([], []), "click is empty"),
        (lambda: position_based([0.1, 0.2], []), "look is empty"),
        (lambda: click_model("perfect", 2).table(10, 3), "has probabilities for 2 grades (0 to 1), but the documents"),
        (lambda: position_based([0, 1], [1, 1]).table(10, 2), "knows 2 places, but lists have 10"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InvalidInput) as caught:
        make()
    assert message in str(caught.value)
    assert isinstance(caught.value, UnknownName) == ("unknown" in message)
