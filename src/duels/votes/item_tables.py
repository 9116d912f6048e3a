"""Tags of items: short words by which people group prompts, such as `math` or `long`.

Tables of items, from CSV files and data frames: a row per prompt and a column per arm, or a row per output.

Items and scores from the results that `promptfoo eval --output results.json` writes, version 3.

An arm is a provider with a prompt, an item is a test, and its prompt is what the test's variables say.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from numbers import Number
from typing import Any, NamedTuple

from ..errors import InvalidInput, format_count, shorten
from .text_files import Row as TextRow
from .text_files import cells_up_to, csv_rows

MOST_TAGS = 20  # of one item
LONGEST_TAG = 60  # characters
SEPARATORS = re.compile(r"[,;|]")


def tags_of(value: object) -> tuple[str, ...]:
    """Return tags as they are stored: without spaces around them, each once, in the order given.

    Args:
        value: A list of texts, or one text with commas, semicolons or `|` between the tags; None for no tags.

    Raises:
        ValueError: If it is something else, or a tag is too long or cannot be shown.
    """
    if value is None:
        return ()
    found = dict.fromkeys(tag for tag in map(_tag, split_tags(value)) if tag)
    if len(found) > MOST_TAGS:
        raise ValueError(f"there are {len(found)} tags, expected at most {MOST_TAGS}")
    return tuple(found)


def split_tags(value: object) -> list[object]:
    """Return the tags of a list, or of one text with separators, before they are checked.

    Raises:
        ValueError: If it is neither.
    """
    if isinstance(value, str):
        return list(SEPARATORS.split(value))
    if hasattr(value, "tolist"):  # arrays of numpy and pandas
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise ValueError(f"tags is {shorten(value, 40)}, expected a list of texts, or texts separated by commas")
    return list(value)


def _tag(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a tag is {shorten(value, 40)}, expected text")
    tag = str(value).strip()
    if len(tag) > LONGEST_TAG:
        raise ValueError(f"the tag {shorten(tag, 40)} has {len(tag)} characters, expected at most {LONGEST_TAG}")
    if any(unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") for one in tag):
        raise ValueError(f"the tag {shorten(tag, 40)} has a control character: leave it out")
    return tag


MOST_FAULTS = 10_000  # after which nothing more is read
LONGEST_CELL = 8 << 20  # characters; an image takes 5.6 million
PROMPTS = ("prompt", "query")
NAMES = {  # of columns that are not arms, besides those of prompts
    "kind": "kind",
    **dict.fromkeys(("arm", "model", "candidate", "system", "variant", "provider", "generator"), "arm"),
    **dict.fromkeys(("output", "response", "answer", "completion"), "output"),
    **dict.fromkeys(("id", "index", "uuid"), "id"),
    "tags": "tags",
    "category": "category",  # one tag, if there is no column of tags
}


class Row(NamedTuple):
    """An item of a source, before it is checked."""

    place: int
    prompt: object
    outputs: object  # a mapping from arms to outputs
    kind: object = None  # of outputs without a kind of their own
    tags: object = None  # a list of texts, or one text with separators


Fault = tuple[int, str]


class Header(NamedTuple):
    """What the columns of a table are for, by position."""

    width: int
    prompt: int
    kind: int | None
    arms: dict[int, str]  # of a table with one row per prompt: the columns of outputs
    arm: int | None = None  # of a table with one row per output
    output: int = 0
    tags: int | None = None
    category: int | None = None

    def tags_in(self, cells: "list[Any]") -> list[object]:
        """Return the tags of a row as they are written: texts with separators, or a category as it is."""
        if self.tags is not None:
            return split_tags(cells[self.tags])
        return [] if self.category is None else [cells[self.category]]


Cells = tuple[int, list[Any]]  # the place of a row, and its cells: texts, or a list of tags


def csv_items(called: str, text: str, delimiter: str, faults: list[Fault], fewest: int = 2) -> Iterable[Row]:
    """Return the items of a CSV file; lines that cannot be used are added to the faults.

    Raises:
        InvalidInput: If the columns cannot be understood.
    """
    with cells_up_to(LONGEST_CELL):
        found = _readable(csv_rows(text, delimiter), faults)
        line, first = next(found, (0, list[str]()))
        if not line:
            return []
        header = _header_of(f"{called}, line {line}", [cell.strip() for cell in first], fewest)
        rows = list(_complete(found, header.width, faults))
    return _items(header, "line", rows, faults)


def _readable(rows: Iterable[TextRow[list[str]]], faults: list[Fault]) -> Iterator[Cells]:
    for line, cells in rows:
        if isinstance(cells, ValueError):
            faults.append((line, str(cells)))
        else:
            yield line, cells


def is_frame(source: object) -> bool:
    """Return whether a source is a data frame: of polars, of pandas, or alike."""
    return hasattr(source, "to_dicts") or (hasattr(source, "to_dict") and hasattr(source, "columns"))


def frame_items(called: str, frame: Any, faults: list[Fault], fewest: int = 2) -> Iterable[Row]:
    """Return the items of a data frame. Numbers become text; missing values are empty cells.

    Raises:
        InvalidInput: If the columns cannot be understood.
    """
    names = [str(name).strip() for name in frame.columns]
    if len(set(names)) < len(names):  # pandas would lose all but one of them
        raise InvalidInput(f"{called} has two columns of one name, of {join_names(names)}: rename one")
    records = frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")
    rows = list[Cells]()
    for place, record in enumerate(records, 1):
        try:
            rows.append((place, [_cell(name, value) for name, value in zip(names, record.values())]))
        except ValueError as error:
            faults.append((place, str(error)))
    header = _header_of(called, names, fewest)
    return _items(header, "row", list(_complete(rows, header.width, faults)), faults)


def _cell(name: str, value: object) -> object:
    if name.lower() == "tags" and not isinstance(value, str | Number) and hasattr(value, "__len__"):
        return split_tags(value)
    if value is None or repr(value) in ("NaT", "<NA>") or (isinstance(value, Number) and value != value):
        return ""  # NaT, NA and NaN are the missing values of pandas
    if isinstance(value, str | Number | date):
        return str(value)
    raise ValueError(f"column {shorten(name, 40)} holds {shorten(value, 40)}, expected text")


def _items(header: Header, unit: str, rows: Iterable[Cells], faults: list[Fault]) -> Iterable[Row]:
    if header.arm is None:
        return _by_prompt(rows, header)
    return _by_output(rows, header, header.arm, unit, faults)


def _complete(rows: Iterable[Cells], width: int, faults: list[Fault]) -> Iterator[Cells]:
    """The rows with as many fields as the header, until too many have not."""
    for place, cells in rows:
        if len(cells) == width:
            yield place, cells
            continue
        faults.append((place, f"{format_count(len(cells), 'field')}, expected {width}"))
        if len(faults) >= MOST_FAULTS:
            return


def _header_of(called: str, names: Sequence[str], fewest: int) -> Header:
    try:
        return _header(names, fewest)
    except ValueError as error:
        raise InvalidInput(f"{called}: the columns are {join_names(names)}; {error}") from None


def _header(names: Sequence[str], fewest: int) -> Header:
    """The header of one row per prompt, with a column per arm; or of one row per output, with an arm and an output.

    Columns of ids are left out.
    """
    roles = ["prompt" if name.lower() in PROMPTS else NAMES.get(name.lower(), "") for name in names]
    by_output = "arm" in roles and "output" in roles
    if not by_output:  # a model may be called answer
        roles = ["" if role in ("arm", "output") else role for role in roles]
    arms = {at: name for at, (role, name) in enumerate(zip(roles, names)) if not role}
    if roles.count("prompt") != 1:
        raise ValueError("expected one column prompt (or query)")
    for role in ("arm", "output", "kind", "tags", "category"):
        if len(same := [name for name, one in zip(names, roles) if one == role]) > 1:
            raise ValueError(f"{' and '.join(same)} may both be the {role}: rename or remove all but one")
    if len(set(arms.values())) < len(arms) or (by_output and arms):
        raise ValueError("expected each column once, and with arm and output no others but prompt, kind, tags and id")
    at = {role: roles.index(role) for role in roles}
    about = at.get("tags"), at.get("category")
    if by_output:
        return Header(len(names), at["prompt"], at.get("kind"), {}, at["arm"], at["output"], *about)
    if len(arms) < fewest or "" in arms.values():
        least = "two arms" if fewest > 1 else "one arm"
        raise ValueError(f"expected a column for each of {least} or more, or the columns arm and output")
    return Header(len(names), at["prompt"], at.get("kind"), arms, None, 0, *about)


def _by_prompt(rows: Iterable[Cells], header: Header) -> Iterator[Row]:
    for place, cells in rows:
        outputs = {arm: cells[at] for at, arm in header.arms.items() if cells[at].strip()}
        kind = None if header.kind is None else cells[header.kind]
        yield Row(place, cells[header.prompt], outputs, kind, header.tags_in(cells))


def _by_output(rows: Iterable[Cells], header: Header, arm_column: int, unit: str, faults: list[Fault]) -> Iterator[Row]:
    found: dict[str, tuple[int, dict[str, object], list[object]]] = {}
    for place, cells in rows:
        start, outputs, tags = found.setdefault(cells[header.prompt], (place, {}, []))
        tags += [tag for tag in header.tags_in(cells) if tag not in tags]
        arm = cells[arm_column].strip()
        if arm in outputs:
            faults.append((place, f"arm {shorten(arm, 40)} has an output for the prompt of {unit} {start} already"))
        kind = None if header.kind is None else cells[header.kind]
        outputs[arm] = {"content": cells[header.output], "kind": kind}
    return (Row(start, prompt, outputs, None, tags) for prompt, (start, outputs, tags) in found.items())


def join_names(names: Iterable[object], most: int = 8) -> str:
    """Return names separated by commas, cut to the first few."""
    shown = [f"{name!s:.40}" for name in names]
    return ", ".join([*shown[:most], *["…"] * (len(shown) > most)]) or "nothing"


LONGEST = 90  # characters of a provider's or a prompt's label in the name of an arm

Result = Mapping[str, Any]
Column = tuple[object, str, str]  # the column's number, the provider and the prompt


def results_of(value: object) -> list[object] | None:
    """Return the results in a parsed JSON file, or None if it is not a file of promptfoo.

    They are in the field `results`, or in the field `results` of that.
    """
    found = value.get("results") if isinstance(value, Mapping) and "outputs" not in value else None
    if isinstance(found, Mapping):
        found = found.get("results")
    return found if isinstance(found, list) else None


def rows_of(results: list[object], faults: list[Fault]) -> Iterator[Row]:
    """Yield one row per test.

    Args:
        results: What `results_of` returned.
        faults: Results that cannot be used are added here, by their places in the list, from 1.
    """
    usable = list(_usable(results, faults))
    names = _arm_names(list(dict.fromkeys(_column(result) for _, result in usable)))
    tests: dict[int, tuple[int, list[Result]]] = {}
    outputs: dict[int, dict[str, object]] = {}
    for place, result in usable:
        test, arm = result["testIdx"], names[_column(result)]
        tests.setdefault(test, (place, []))[1].append(result)
        given = outputs.setdefault(test, {})
        if arm in given:
            faults.append((place, f"test {test} has an output of {shorten(arm, 60)} already"))
        elif _output(result) is None:
            faults.append((place, f"test {test} has no output of {shorten(arm, 60)}: {_reason(result)}"))
        given[arm] = _text(_output(result))
    for test, (place, same) in sorted(tests.items()):
        yield Row(place, _prompt(test, same), outputs[test])


def scores_of(results: list[object], faults: list[Fault]) -> Iterator[tuple[int, dict[str, tuple[float, bool]]]]:
    """Yield for each test its place, and for each arm the score of its output and whether it passed.

    Args:
        results: What `results_of` returned.
        faults: Results without a score are added here, by their places in the list, from 1.
    """
    usable = list(_usable(results, faults))
    names = _arm_names(list(dict.fromkeys(_column(result) for _, result in usable)))
    tests: dict[int, tuple[int, dict[str, tuple[float, bool]]]] = {}
    for place, result in usable:
        score, passed = result.get("score"), result.get("success")
        if isinstance(score, bool) or not isinstance(score, int | float):
            faults.append((place, f"its score is {shorten(score, 20)}, expected a number"))
        else:
            tests.setdefault(result["testIdx"], (place, {}))[1][names[_column(result)]] = (float(score), bool(passed))
    yield from (found for _, found in sorted(tests.items()))


def _usable(results: list[object], faults: list[Fault]) -> Iterator[tuple[int, Result]]:
    for place, result in enumerate(results, 1):
        if not isinstance(result, Mapping):
            faults.append((place, f"found {shorten(result, 40)}, expected an object"))
        elif type(result.get("testIdx")) is not int or "provider" not in result:
            faults.append(
                (place, "expected testIdx, provider, prompt, vars and response, as in version 3 of promptfoo")
            )
        else:
            yield place, result


def _column(result: Result) -> Column:
    number, provider, prompt = result.get("promptIdx"), result["provider"], result.get("prompt")
    if isinstance(provider, Mapping):
        provider = provider.get("label") or provider.get("id")
    label = prompt.get("label") if isinstance(prompt, Mapping) else prompt
    return shorten(number), _short(provider), _short(label)


def _short(label: object) -> str:
    """A label on one line; that of a prompt is often its text."""
    text = " ".join(label.split()) if isinstance(label, str) else ""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _arm_names(columns: list[Column]) -> dict[Column, str]:
    """The provider's label if that is enough, or the prompt's; else both, with a number where they are the same."""
    choices: tuple[Callable[[Column], str], ...] = (
        lambda column: column[1],
        lambda column: column[2],
        lambda column: ", ".join(filter(None, column[1:])),
    )
    for choice in choices:
        names = [choice(column) for column in columns]
        if len(set(names)) == len(names) and all(names):
            return dict(zip(columns, names))
    counts, used, found = Counter(names), Counter[str](), {}
    for column, name in zip(columns, names):
        used[name] += 1
        found[column] = f"{name or 'column'} #{used[name]}" if counts[name] > 1 or not name else name
    return found


def _output(result: Result) -> object:
    response = result.get("response")
    return response.get("output") if isinstance(response, Mapping) else None


def _reason(result: Result) -> str:
    response = result.get("response")
    error = (response.get("error") if isinstance(response, Mapping) else None) or result.get("error")
    return f"its error is {shorten(error)}" if error else "the response is missing"


def _prompt(test: int, results: list[Result]) -> str:
    variables = results[0].get("vars")
    if isinstance(variables, Mapping) and variables:
        values = list(variables.values())
        return _text(values[0] if len(values) == 1 else dict(variables))
    raw = {_text(result["prompt"].get("raw")) for result in results if isinstance(result.get("prompt"), Mapping)}
    return raw.pop() if len(raw) == 1 else f"test {test + 1}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
