"""Tags of items, from every source that items come from."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from duels.errors import InvalidInput
from duels.votes import read_items
from duels.votes.item_tables import tags_of


def tags(source):
    return [item.tags for item in read_items(source)]


def test_texts_and_lists():
    assert tags_of(None) == tags_of("") == tags_of([]) == tags_of(" , ;|") == ()
    assert tags_of(" math, hard;math |long ") == ("math", "hard", "long")
    assert tags_of(["Food, drink", " b ", "", "B"]) == ("Food, drink", "b", "B")
    assert tags_of(("ä",)) == ("ä",)
    assert tags_of(np.array(["x", "y"])) == ("x", "y")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (7, "tags is 7, expected a list of texts"),
        ({"a": 1}, "expected a list of texts"),
        (b"ab", "expected a list of texts"),
        (["a", 7], "a tag is 7, expected text"),
        (["x" * 61], "has 61 characters, expected at most 60"),
        (["a\nb"], "has a control character"),
        (["a\x00"], "has a control character"),
        (["\ud800"], "has a control character"),
        ([str(k) for k in range(21)], "there are 21 tags, expected at most 20"),
    ],
)
def test_tags_that_cannot_be_used(value, said):
    with pytest.raises(ValueError, match=said):
        tags_of(value)


def test_json_lines_have_tags_or_a_category():
    item = {"prompt": "a", "outputs": {"x": "1", "y": "2"}}
    more = [{}, {"tags": ["a, b", "c"]}, {"tags": "a, b"}, {"category": "Food, drink"}, {"tags": [], "category": "no"}]
    more += [{"category": 7}, {"tags": None}]
    found = tags("\n".join(json.dumps(item | one) for one in more).encode())
    assert found == [(), ("a, b", "c"), ("a", "b"), ("Food, drink",), (), (), ()]
    with pytest.raises(InvalidInput, match="nothing was imported: 1 error:\n  line 2: a tag is 3, expected text"):
        tags("\n".join(json.dumps(item | one) for one in ({}, {"tags": [3]})).encode())


def test_tables_have_a_column_of_tags_or_of_categories():
    assert tags(b"prompt,Tags,x,y\na,m; n,1,2\nb,,1,2\n") == [("m", "n"), ()]
    assert tags(b"prompt,category,x,y\na,m; n,1,2\n") == [("m; n",)]
    assert tags(b"prompt,category,tags,x,y\na,left out,m,1,2\n") == [("m",)]
    assert [list(item.outputs) for item in read_items(b"prompt,category,tags,x,y\na,c,m,1,2\n")] == [["x", "y"]]
    rows = b"prompt,arm,output,tags\na,x,1,m\na,y,2,m|n\nb,x,1,\nb,y,2,\n"
    assert tags(rows) == [("m", "n"), ()]  # all that any row of an item has
    with pytest.raises(InvalidInput, match="tags and Tags may both be the tags"):
        tags(b"prompt,tags,Tags,x,y\na,1,2,3,4\n")
    with pytest.raises(InvalidInput, match="a column for each of two arms"):  # a column named tags is not an arm
        tags(b"prompt,tags,x\na,1,2\n")
    with pytest.raises(InvalidInput, match=r"line 2: the tag .* has 61 characters"):
        tags(b"prompt,tags,x,y\na," + b"z" * 61 + b",1,2\n")


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_data_frames_may_have_lists(frame):
    columns = {"prompt": ["a", "b"], "x": ["1", "2"], "y": ["3", "4"]}
    assert tags(frame(columns | {"tags": [["m", "n, o"], []]})) == [("m", "n, o"), ()]
    assert tags(frame(columns | {"tags": ["m,n", None]})) == [("m", "n"), ()]
    assert tags(frame(columns | {"category": [1, 2]})) == [("1",), ("2",)]


def test_items_that_were_read_are_read_again():
    found = read_items([{"prompt": "a", "outputs": {"x": "1", "y": "2"}, "tags": ["m"]}])
    assert read_items(found) == found
