"""Tables of items, from CSV files and data frames: a row per prompt and a column per arm, or a row per output."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from numbers import Number
from typing import Any, NamedTuple

from ..errors import InvalidInput, format_count, shorten
from .item_tags import split_tags
from .text_files import Row as TextRow
from .text_files import cells_up_to, csv_rows

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
