"""Items from results of promptfoo, from data frames, and from a list of outputs per arm."""

import doctest
import json
import math
import re

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tallies import refused

from duels.errors import InvalidInput, UnknownName
from duels.study.create import create_study
from duels.study.items import add_items
from duels.votes import items as item_files
from duels.votes import items_of, read_items
from duels.votes.items import Item, Output

TWO = [
    Item("2 + 2?", {"gpt": Output("text", "4"), "llama": Output("text", "four")}),
    Item("3 + 3?", {"gpt": Output("text", "6"), "llama": Output("text", "six")}),
]


def result(test, column, output="4", provider=None, prompt="answer", variables=None, **more):
    """A result as promptfoo writes it, with fields that are not used too."""
    found = {
        "promptIdx": column,
        "testIdx": test,
        "vars": {"question": f"{test} + 2?"} if variables is None else variables,
        "provider": provider or {"id": f"openai:{column}", "label": ""},
        "prompt": {"raw": f"Answer: {test} + 2?", "label": prompt},
        "response": {"output": output, "tokenUsage": {"total": 12}, "cached": False},
        "success": False,
        "score": 0,
        "cost": 0.01,
        "error": "Expected output to contain 5",  # of an assertion: the output is there all the same
        "failureReason": 1,
        "gradingResult": {"pass": False, "score": 0, "reason": "Expected output to contain 5"},
    }
    return found | more


def summary(*results):
    return {"version": 3, "timestamp": "2026-11-16T10:00:00.000Z", "results": [*results], "prompts": [], "stats": {}}


def read(*results):
    return read_items(json.dumps(summary(*results), indent=2).encode())


def arms(*results):
    return [*read(*results)[0].outputs]


def test_results_of_promptfoo(tmp_path):
    wanted = [
        Item("0 + 2?", {"openai:0": Output("text", "2"), "openai:1": Output("text", "two")}),
        Item("1 + 2?", {"openai:0": Output("text", "3"), "openai:1": Output("text", "three")}),
    ]
    # In the order in which they came in, which is not that of the tests.
    flat = summary(result(1, 1, "three"), result(0, 0, "2"), result(0, 1, "two"), result(1, 0, "3"))
    outer = {"evalId": "eval-1", "results": flat, "config": {"prompts": ["Answer: {{question}}"]}, "shareableUrl": None}
    for content in (flat, outer):
        for indent in (None, 2):
            text = json.dumps(content, indent=indent)
            (tmp_path / "results.json").write_text(text)
            for source in (text.encode(), tmp_path / "results.json"):
                assert read_items(source) == wanted
            assert read_items(text.encode(), format="json") == wanted


def test_an_item_with_a_field_results_is_no_file_of_promptfoo():
    line = {"prompt": "2 + 2?", "outputs": {"gpt": "4", "llama": "four"}, "results": [1, 2]}
    assert read_items(json.dumps(line).encode()) == TWO[:1]


def test_a_kind_is_for_outputs_that_state_none():
    def kinds(source):
        return [[output.kind for output in item.outputs.values()] for item in read_items(source, kind="markdown")]

    assert kinds(b"prompt,gpt,llama\na,1,2\n") == [["markdown"] * 2]
    assert kinds(b"prompt,gpt,llama,kind\na,1,2,\nb,1,2,text\n") == [["markdown"] * 2, ["text"] * 2]
    assert kinds(b"prompt,arm,output,kind\na,gpt,1,code\na,llama,2,\n") == [["code", "markdown"]]
    outputs = {"gpt": "1", "llama": {"kind": "html", "content": "2"}}
    assert kinds([{"prompt": "a", "outputs": outputs}, {"prompt": "b", "outputs": outputs, "kind": "text"}]) == [
        ["markdown", "html"],
        ["text", "html"],
    ]
    assert kinds(TWO) == [["text"] * 2] * 2
    with pytest.raises(UnknownName, match="unknown kind of outputs 'md'"):
        read_items(b"prompt,gpt,llama\na,1,2\n", kind="md")


def test_arms_are_providers_or_prompts_or_both():
    gpt, llama = {"id": "openai:gpt", "label": "gpt"}, {"id": "llama"}
    assert arms(result(0, 0, provider=gpt), result(0, 1, provider=llama)) == ["gpt", "llama"]
    assert arms(result(0, 0, provider="openai:gpt"), result(0, 1, provider="llama")) == ["openai:gpt", "llama"]
    assert arms(result(0, 0, provider=gpt, prompt="terse"), result(0, 1, provider=gpt, prompt="expert")) == [
        "terse",
        "expert",
    ]
    grid = [(one, prompt) for one in (gpt, llama) for prompt in ("terse", "expert")]
    assert arms(*(result(0, k, provider=one, prompt=prompt) for k, (one, prompt) in enumerate(grid))) == [
        "gpt, terse",
        "gpt, expert",
        "llama, terse",
        "llama, expert",
    ]
    # The number of the prompt alone, not of the column, is enough.
    assert len(arms(*(result(0, k % 2, provider=one, prompt=prompt) for k, (one, prompt) in enumerate(grid)))) == 4
    # The same provider with other settings: only the number of the column is different.
    assert arms(*(result(0, k, provider=gpt, prompt="terse") for k in range(2))) == ["gpt, terse #1", "gpt, terse #2"]
    assert arms(*(result(0, k, provider={"id": None}, prompt=None) for k in range(2))) == ["column #1", "column #2"]


def test_labels_that_are_whole_prompts_become_names_that_a_study_takes():
    same = {"id": "openai:gpt"}
    long = "You are an expert.\n\nThink step by step, and then answer the question as briefly as you can: " + "x" * 300
    found = read(*(result(0, k, provider=same, prompt=label) for k, label in enumerate((long, "Answer\tthis"))))
    names = [*found[0].outputs]
    assert names[1] == "Answer this"
    assert names[0].startswith("You are an expert. Think step by step")
    assert (len(names[0]), names[0][-1]) == (90, "…")
    study = create_study(names, "prompts", "sqlite://")
    assert add_items(study, found) == (1, 0)
    both = [
        result(0, 2 * a + b, provider={"id": "p" * 300 + str(a)}, prompt=long + str(b)) for a in (0, 1) for b in (0, 1)
    ]
    create_study(arms(*both), "numbered", "sqlite://")


def test_the_prompt_is_the_variable_or_all_of_them():
    def shown(variables, **more):
        return read(*(result(4, k, variables=variables, **more) for k in range(2)))[0].prompt

    assert shown({"whatever it is called": "2 + 2?"}) == "2 + 2?"
    assert shown({"q": {"a": "é", "b": [1]}}) == '{"a": "é", "b": [1]}'
    assert shown({"topic": "Peru", "language": "Français"}) == '{"topic": "Peru", "language": "Français"}'
    # Without variables the prompt of all arms is that of each, if it is the same.
    assert shown({}) == "Answer: 4 + 2?"
    different = [result(4, k, variables={}) | {"prompt": {"raw": f"prompt {k}", "label": str(k)}} for k in range(2)]
    assert read(*different)[0].prompt == "test 5"


def test_outputs_of_promptfoo_that_are_not_text():
    found = read(result(0, 0, {"total": 4, "unit": "é"}), result(0, 1, ""))
    assert [one.content for one in found[0].outputs.values()] == ['{"total": 4, "unit": "é"}', ""]
    assert read(result(0, 0, 0), result(0, 1, False))[0].outputs["openai:0"].content == "0"


def test_faults_of_promptfoo_are_told():
    failed = result(1, 0) | {"response": {"error": "429 Too Many Requests"}, "error": "API error"}
    missing = result(1, 1) | {"response": None, "error": None}
    with refused(
        "the upload: nothing was imported: 5 errors:\n"
        "  result 3: test 1 has no output of 'openai:0': its error is '429 Too Many Requests'\n"
        "  result 4: test 1 has no output of 'openai:1': the response is missing\n"
        "  result 5: test 0 has an output of 'openai:0' already\n"
        "  result 6: found 7, expected an object\n"
        "  result 7: expected testIdx, provider, prompt, vars and response, as in version 3 of promptfoo"
    ):
        read(result(0, 0), result(0, 1), failed, missing, result(0, 0), 7, {"vars": {}})
    with refused("result 1: 1 output, expected those of at least two arms"):
        read(result(0, 0), result(1, 0), result(1, 1))
    with refused("result 1: test 0 has no output of 'openai:0': its error is 'timed out'"):
        read(result(0, 0) | {"response": {}, "error": "timed out"}, result(0, 1))
    with refused("the upload holds no items"):
        read()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.text("a\n\x00\ud800", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "label", "output"]), inner),
    max_leaves=4,
)
FIELDS = ("testIdx", "promptIdx", "vars", "provider", "prompt", "response", "error")


@given(st.lists(st.tuples(st.sampled_from(FIELDS), ANYTHING), max_size=3), st.integers(0, 3))
@settings(deadline=None)
def test_whatever_promptfoo_writes_is_read_or_refused(changes, which):
    results = [result(test, column) for test in range(2) for column in range(2)]
    results[which] |= dict(changes)
    try:
        found = read(*results)
    except InvalidInput as error:
        assert re.search(r"result \d: ", str(error))  # noqa: PT017  # only some are refused
        return
    assert read_items(found) == found


WIDE = {"prompt": ["2 + 2?", "3 + 3?"], "gpt": ["4", "6"], "llama": ["four", "six"]}
LONG = {
    "prompt": ["2 + 2?", "2 + 2?", "3 + 3?", "3 + 3?"],
    "arm": ["gpt", "llama", "gpt", "llama"],
    "output": ["4", "four", "6", "six"],
}
FRAMES = [polars.DataFrame, pandas.DataFrame]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("columns", [WIDE, LONG])
def test_frames_and_files_are_read_alike(frame, columns, tmp_path):
    assert read_items(frame(columns)) == TWO
    polars.DataFrame(columns).write_csv(tmp_path / "items.csv")
    assert read_items(tmp_path / "items.csv") == TWO
    assert read_items((tmp_path / "items.csv").read_bytes()) == TWO


@pytest.mark.parametrize("frame", FRAMES)
def test_cells_of_frames(frame):
    columns = {"Query": ["a", "b"], "x": [4, 6], "y": [None, 0.5], "z": ["text", "t"], "kind": ["code", None]}
    assert read_items(frame(columns)) == [
        Item("a", {"x": Output("code", "4"), "z": Output("code", "text")}),
        Item("b", {"x": Output("text", "6"), "y": Output("text", "0.5"), "z": Output("text", "t")}),
    ]


class Alike:
    """What a data frame needs to have."""

    columns = ("prompt", "x", "y", "z")

    def __init__(self, *records):
        self.records = records

    def to_dicts(self):
        return [dict(zip(self.columns, record)) for record in self.records]


def test_missing_values():
    for missing in (None, math.nan, np.float64("nan"), np.float32("nan"), pandas.NA, pandas.NaT):
        column = pandas.Series(["4", missing], dtype=object)
        frame = pandas.DataFrame({"prompt": ["a", "b"], "x": column, "y": ["5", "6"], "z": ["7", "8"]})
        for source in (frame, Alike(("a", "4", "5", "7"), ("b", missing, "6", "8"))):
            assert [len(item.outputs) for item in read_items(source)] == [3, 2]


def test_numbers_and_other_values_of_pandas():
    numbers = pandas.DataFrame({"prompt": ["a"], "x": [np.int64(4)], "y": [np.array([4])]}, dtype=object)
    with refused("row 1: column 'y' holds array([4]), expected text"):
        read_items(numbers)
    assert read_items(numbers.assign(y="nan"))[0].outputs == {"x": Output("text", "4"), "y": Output("text", "nan")}
    text = pandas.DataFrame({"prompt": ["a"], "x": ["4"], "y": ["5"]}, index=[77], dtype="string")
    assert read_items(text) == [Item("a", {"x": Output("text", "4"), "y": Output("text", "5")})]


@pytest.mark.parametrize("frame", FRAMES)
def test_faults_of_frames_are_told_with_their_rows(frame):
    with refused("the DataFrame: the columns are question, gpt, llama; expected one column prompt (or query)"):
        read_items(frame({"question": ["a"], "gpt": ["4"], "llama": ["5"]}))
    with refused(": nothing was imported: 1 error:\n  row 2: 1 output, expected those of at least two arms"):
        read_items(frame({"prompt": ["a", "b"], "gpt": ["4", "5"], "llama": ["4", None]}))
    with refused("row 3: arm 'gpt' has an output for the prompt of row 1 already"):
        read_items(frame({"prompt": ["a"] * 3, "arm": ["gpt", "llama", "gpt"], "output": ["4", "5", "6"]}))
    with refused("row 1: column 'gpt' holds {'a': 1}, expected text"):
        read_items(frame({"prompt": ["a"], "gpt": [{"a": 1}], "llama": ["5"]}))
    with refused("the DataFrame holds no items"):
        read_items(frame({"prompt": [], "gpt": [], "llama": []}))
    with refused("row 1: prompt is '', expected text"):
        read_items(frame({"prompt": [None], "gpt": ["4"], "llama": ["5"]}))


def test_columns_of_one_name():
    twice = pandas.DataFrame([["a", "4", "5", "6"]], columns=["prompt", "gpt", "gpt", "llama"])
    with refused("the DataFrame has two columns of one name, of prompt, gpt, gpt, llama: rename one"):
        read_items(twice)


def test_lists_of_outputs():
    outputs = {"gpt": ["4", "6"], "llama": ("four", "six")}
    assert items_of(outputs, ["2 + 2?", "3 + 3?"]) == TWO
    arrays = {arm: np.array(column) for arm, column in outputs.items()}
    found = items_of(arrays, np.array(["2 + 2?", "3 + 3?"]))
    assert found == TWO
    assert {type(text) for prompt, by, _ in found for text in (prompt, *by, *(one.content for one in by.values()))} == {
        str
    }
    assert items_of({arm: polars.Series(column) for arm, column in outputs.items()}, (p for p in WIDE["prompt"])) == TWO
    some = items_of(
        {"a": ["1", None], "b": [Output("code", "2"), "3"], "c": [{"content": "4", "kind": "html"}, "5"]}, ["p", "q"]
    )
    assert [[*one.outputs] for one in some] == [["a", "b", "c"], ["b", "c"]]
    assert [one.kind for one in some[0].outputs.values()] == ["text", "code", "html"]


def test_lists_that_do_not_fit():
    prompts = ["a", "b", "c"]
    with refused(
        "there are 3 prompts, but 'terse' has 1 output, 'expert' has 4 outputs: expected one output per prompt, "
        "and None where there is none"
    ):
        items_of({"terse": ["1"], "formal": ["1", "2", "3"], "expert": ["1"] * 4}, prompts)
    names = ["x" * 100 + str(k) for k in range(7)]
    with refused(f"there are 3 prompts, but '{'x' * 38}… has 1 output, ") as caught:
        items_of({name: ["1"] for name in names}, prompts)
    assert str(caught.value).count("has 1 output, ") == 5
    with refused("there are 0 prompts, but 'terse' has 3 outputs"):
        items_of({"terse": prompts}, [])
    with refused("outputs['terse'] is 'abc': expected a list"):
        items_of({"terse": "abc", "expert": prompts}, prompts)
    with refused("prompts is 'abc': expected a list"):
        items_of({"terse": prompts, "expert": prompts}, "abc")
    with refused("outputs is ['a', 'b', 'c']: expected a dict with a list of outputs for each arm"):
        items_of(prompts, prompts)
    with refused("outputs: nothing was imported: 3 errors:\n  prompt 1: 1 output, expected those of at"):
        items_of({"terse": prompts}, prompts)
    with refused("prompt 2: the output of 'b' is 5, expected text"):
        items_of({"a": prompts, "b": ["1", 5, "2"]}, prompts)
    with refused("prompt 3: prompt is None, expected text"):
        items_of({"a": prompts, "b": prompts}, ["a", "b", None])
    with refused("use items_of(outputs, prompts)"):
        read_items({"a": prompts, "b": prompts})


def test_the_example():
    assert doctest.testmod(item_files).failed == 0
    assert doctest.testmod(item_files).attempted == 1


LONG = "2 + 2?,gpt,4\n2 + 2?,llama,four\n3 + 3?,gpt,6\n3 + 3?,llama,six\n"


@pytest.mark.parametrize("header", ["prompt,arm,output", "Query,Model,Response", "prompt,candidate,completion"])
def test_a_row_per_output_by_its_usual_names(header):
    assert read_items(f"{header}\n{LONG}".encode()) == TWO


def test_ids_are_no_arms():
    text = "id,prompt,gpt,llama\n1,2 + 2?,4,four\n2,3 + 3?,6,six\n"
    assert read_items(text.encode()) == TWO
    long = "".join(f"{number},{line}\n" for number, line in enumerate(LONG.splitlines()))
    assert read_items(f"id,prompt,arm,output\n{long}".encode()) == TWO


def test_an_arm_may_have_such_a_name_if_the_other_is_missing():
    (item,) = read_items(b"prompt,answer,gpt\n2 + 2?,four,4\n")
    assert [*item.outputs] == ["answer", "gpt"]


def test_two_columns_for_one_thing_are_refused():
    with pytest.raises(InvalidInput, match="response and output may both be the output: rename or remove"):
        read_items(b"prompt,model,response,output\n2 + 2?,gpt,4,4\n")
