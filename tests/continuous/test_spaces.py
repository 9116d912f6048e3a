"""Parameter spaces: what they accept, what they refuse, and their place in the cube."""

import json
import math
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duels
from duels.continuous import Category, Number
from duels.errors import InvalidInput, UnknownName

VOICE = {"temperature": (0.0, 1.5), "top_k": (1, 100, "log int"), "style": ["terse", "warm", "dry"]}


def test_a_space():
    space = duels.Space(VOICE)
    assert space.names == ("temperature", "top_k", "style")
    assert space.parameters["temperature"] == Number(0.0, 1.5)
    assert space.parameters["top_k"] == Number(1.0, 100.0, log=True, int=True)
    assert space.parameters["style"] == Category(("terse", "warm", "dry"))
    assert space.category.tolist() == [0, 0, 1]
    assert len(space) == 3
    assert duels.Space(space) == space


def test_coordinates_by_hand():
    """A float is at its share of the range, a whole number at the middle of one of equal parts, on its scale."""
    space = duels.Space({"a": (-1.0, 3.0), "b": (0.01, 100.0, "log"), "c": (1, 4, "int"), "d": ["x", "y"]})
    point = space.encode({"a": 0.0, "b": 1.0, "c": 2, "d": "y"})
    assert point == pytest.approx([0.25, 0.5, 0.375, 0.75])
    assert space.decode([0.25, 0.5, 0.375, 0.75]) == {"a": 0.0, "b": 1.0, "c": 2, "d": "y"}
    assert space.decode([0, 0, 0, 0]) == {"a": -1.0, "b": 0.01, "c": 1, "d": "x"}
    assert space.decode([1, 1, 1, 1]) == {"a": 3.0, "b": 100.0, "c": 4, "d": "y"}


def test_whole_numbers_have_equal_parts():
    """Of 8,000 uniform points each of 8 whole numbers gets 1,000; logarithmic ones by their logarithms."""
    points = (np.arange(8000)[:, None] + 0.5) / 8000
    found = [duels.Space({"n": (3, 10, "int")}).decode(point)["n"] for point in points]
    assert np.bincount(found)[3:].tolist() == [1000] * 8
    logs = [duels.Space({"n": (1, 3, "int log")}).decode(point)["n"] for point in points]
    width = math.log(7)  # from 0.5 to 3.5
    expected = [8000 * math.log(3) / width, 8000 * math.log(5 / 3) / width, 8000 * math.log(7 / 5) / width]
    assert np.abs(np.bincount(logs)[1:] - expected).max() <= 1


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_a_setting_is_stable(point):
    """What a point decodes to is encoded within its rounding, and is its own setting."""
    space = duels.Space(VOICE)
    setting = space.decode(point)
    assert space.check(setting) == setting
    assert space.decode(space.encode(setting)) == setting
    snapped = space.snap(np.array([point]))
    assert space.decode(snapped[0]) == setting
    assert snapped[0] == pytest.approx(space.encode(setting), abs=4e-6)


def test_floats_are_short():
    space = duels.Space({"a": (0.0, 1.5), "b": (1e-6, 1.0, "log")})
    setting = space.decode([1 / 3, 1 / 7])
    assert setting == {"a": 0.5, "b": pytest.approx(7.19686e-06, rel=1e-12)}
    assert all(len(repr(value)) <= 11 for value in setting.values())


def test_as_plain_data():
    space = duels.Space(VOICE)
    assert duels.Space(json.loads(json.dumps(space.to_dict()))) == space
    assert eval(repr(space), {"Space": duels.Space}) == space
    text = """
        temperature = { low = 0.0, high = 1.5 }
        top_k = { low = 1, high = 100, log = true, int = true }
        style = ["terse", "warm", "dry"]
    """
    assert duels.Space(tomllib.loads(text)) == space
    assert hash(duels.Space(VOICE)) == hash(space)
    assert duels.Space(dict(reversed(VOICE.items()))) != space
    assert duels.Space({"a": {"choices": [1, 2.5, True if False else "x"]}}).parameters["a"].choices == (1, 2.5, "x")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "is not a space"),
        ([("a", 1)], "is not a space"),
        (None, "is not a space"),
        ({"": (0.0, 1.0)}, "called ''"),
        ({3: (0.0, 1.0)}, "called 3"),
        ({"a": (1.0, 1.0)}, "expected the first to be smaller"),
        ({"a": (2.0, 1.0)}, "expected the first to be smaller"),
        ({"a": (math.nan, 1.0)}, "lower bound of a is nan: expected a finite number"),
        ({"a": (0.0, math.inf)}, "upper bound of a is inf"),
        ({"a": (-1.7e308, 1.7e308)}, "expected a finite number"),
        ({"a": (1e15, 1e15 + 1)}, "too narrow"),
        ({"a": (False, True)}, "expected a finite number"),
        ({"a": ("0", 1.0)}, "expected a finite number"),
        ({"a": (0.0, 1.0, "log")}, "logarithmic and begins at 0"),
        ({"a": (0, 9, "log int")}, "logarithmic and begins at 0"),
        ({"a": (0, 9)}, "End it with 'int' if they are, with 'float' if not"),
        ({"a": (1, 9, "log")}, "End it with 'log int' if they are"),
        ({"a": (0.5, 9, "int")}, "lower bound of a is 0.5: expected a whole number"),
        ({"a": (1, 9, "int float")}, "both int and float"),
        ({"a": (1, 2, 3)}, "expected (low, high) or"),
        ({"a": (1.0,)}, "expected (low, high) or"),
        ({"a": [0.0, 1.0]}, "A range is (low, high) in Python and [low, high] in files"),
        ({"a": ["x"]}, "1 choice: expected 2"),
        ({"a": []}, "0 choices"),
        ({"a": ["x", "x"]}, "the choice 'x' twice"),
        ({"a": {"choices": [1, True]}}, "twice"),
        ({"a": {"choices": [math.nan, 1]}}, "cannot be a choice"),
        ({"a": {"choices": [None, 1]}}, "cannot be a choice"),
        ({"a": {"choices": "xy"}}, "expected a list"),
        ({"a": {"choices": ["x", "y"], "low": 0}}, "choices and low"),
        ({"a": {"low": 0.0}}, "expected low and high"),
        ({"a": {"low": 0.0, "high": 1.0, "log": "yes"}}, "log of a is 'yes'"),
        ({"a": {"low": 0.0, "high": 1.0, "if": "b"}}, "conditions between parameters are not supported"),
        ({"a": "x"}, "expected a range, from low to high"),
        ({f"p{k}": (0.0, 1.0) for k in range(51)}, "51 parameters"),
    ],
)
def test_what_cannot_be_a_space(given, message):
    with pytest.raises(InvalidInput) as error:
        duels.Space(given)
    assert message in str(error.value)


def test_mistyped_words():
    with pytest.raises(UnknownName, match="Did you mean 'log'"):
        duels.Space({"a": (1.0, 2.0, "logg")})
    with pytest.raises(UnknownName, match="Did you mean 'high'"):
        duels.Space({"a": {"low": 1.0, "hihg": 2.0}})


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"temperature": 1.0, "top_k": 3}, "has no style"),
        ({"temperature": 1.0, "top_k": 3, "style": "warm", "stlye": "warm"}, "unknown parameter 'stlye'"),
        ({"temperature": 2.0, "top_k": 3, "style": "warm"}, "expected a number from 0 to 1.5"),
        ({"temperature": math.nan, "top_k": 3, "style": "warm"}, "expected a finite number"),
        ({"temperature": True, "top_k": 3, "style": "warm"}, "expected a finite number"),
        ({"temperature": "1", "top_k": 3, "style": "warm"}, "expected a finite number"),
        ({"temperature": 1.0, "top_k": 3.5, "style": "warm"}, "whole number"),
        ({"temperature": 1.0, "top_k": 0, "style": "warm"}, "from 1 to 100"),
        ({"temperature": 1.0, "top_k": 3, "style": "worm"}, "Did you mean 'warm'"),
        ([1.0, 3, "warm"], "is not a setting"),
    ],
)
def test_what_cannot_be_a_setting(setting, message):
    with pytest.raises(InvalidInput) as error:
        duels.Space(VOICE).check(setting)
    assert message in str(error.value)


def test_what_cannot_be_a_point():
    for point in ([0.5, 0.5], [0.5, 0.5, 1.1], [0.5, 0.5, math.nan]):
        with pytest.raises(InvalidInput, match="is not a point of the cube"):
            duels.Space(VOICE).decode(point)


def test_true_and_false_are_choices():
    assert duels.Space({"bold": [True, False]}).to_dict() == {"bold": {"choices": [True, False]}}


@pytest.mark.parametrize(("given", "words"), [((360, 0), "360"), ((0, 10, "log"), "log")])
def test_a_range_that_cannot_be_is_refused_before_anything_is_asked_about_it(given, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        duels.Space({"a": given})
    assert "whole numbers only" not in str(caught.value)
