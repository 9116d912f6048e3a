"""Reading items: prompts, and the outputs of the arms for them.

Every item comes through `read_items`, which reads a whole source or fails. What it returns needs no further checks.
"""

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ..errors import InvalidInput, UnknownName, format_count, shorten
from .item_tables import (
    MOST_FAULTS,
    PROMPTS,
    Fault,
    Row,
    csv_items,
    frame_items,
    is_frame,
    join_names,
    results_of,
    rows_of,
    tags_of,
)
from .text_files import first_line, json_rows, read_text, suffix_of

IMAGE = "image"
KINDS = ("text", "markdown", "code", IMAGE, "html")
FORMATS = ("jsonl", "ndjson", "json", "csv", "tsv")
MOST_ITEMS = 100_000  # of one source
MOST_PROMPT = 100_000  # characters
MOST_TEXT = 1 << 20  # bytes of an output
MOST_IMAGE = 4 << 20
SHOWN = 5  # faults that an error lists

IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
}
DATA_URL = re.compile(r"data:(image/(?:png|jpeg|gif|webp|svg\+xml));base64,([A-Za-z0-9+/]+={0,2})")


class Output(NamedTuple):
    """An arm's output for a prompt.

    Attributes:
        kind: text, markdown, code, image or html.
        content: The text; of an image a data: URL.
    """

    kind: str
    content: str


class Item(NamedTuple):
    """A prompt with the outputs of at least two arms.

    Attributes:
        prompt: The prompt.
        outputs: The outputs, by the names of the arms.
        tags: Words by which results are grouped, such as `math`.
    """

    prompt: str
    outputs: dict[str, Output]
    tags: tuple[str, ...] = ()


class AddedItems(NamedTuple):
    """What `add_items` has added.

    Attributes:
        items: How many items.
        outputs: How many outputs to items that were there.
    """

    items: int
    outputs: int


ItemSource = str | bytes | os.PathLike[str] | Iterable[object]


def read_items(source: ItemSource, *, format: str | None = None, kind: str = "text", fewest: int = 2) -> list[Item]:
    """Read items from a file, a data frame or a list. If any of them cannot be read, none is.

    Args:
        source: A path (.jsonl, .ndjson, .json, .csv, .tsv, with or without .gz), the `bytes` of such a file, a data
            frame of polars or pandas, or a list of dicts or `Item`s. A .json file may be the results of promptfoo.
            Images in a file may be paths of files in its folder; elsewhere they are data: URLs.
        format: jsonl, ndjson, json, csv or tsv; by default it is told from the file's name, or else from its first
            line.
        kind: The kind of outputs that do not state one: text, markdown, code, image or html.
        fewest: How many outputs an item must have at least; 1 for those that `add_items` may add to items that a study
            has.

    Returns:
        The items.

    Raises:
        InvalidInput: If one of them cannot be used.
        UnknownName: If the format or the kind is unknown.
    """
    if format is not None and format not in FORMATS:
        raise UnknownName("format of items", format, FORMATS)
    if kind not in KINDS:
        raise UnknownName("kind of outputs", kind, KINDS)
    if isinstance(source, bytes | str | os.PathLike):
        return _read_file(source, format, kind, fewest)
    called, faults = f"the {type(source).__name__}", list[Fault]()
    if is_frame(source):
        rows = list(frame_items(called, source, faults, fewest))
        return _check_items(called, "row", rows, faults, None, kind, fewest)
    if not isinstance(source, Iterable) or isinstance(source, Mapping):
        raise InvalidInput(
            f"{shorten(source)} holds no items: expected a path, bytes, or a list of dicts, or a data frame; for "
            "outputs in a list per arm, use items_of(outputs, prompts)"
        )
    return _check_items(called, "item", list(_objects(enumerate(source, 1), faults)), faults, None, kind, fewest)


def items_of(outputs: Mapping[str, Iterable[object]], prompts: Iterable[str], *, fewest: int = 2) -> list[Item]:
    """Make items from prompts and a list of outputs for each arm.

    Args:
        outputs: For each arm its outputs, one per prompt and in the same order: text, `Output`s, dicts with content and
            kind, or None where there is none.
        prompts: The prompts.
        fewest: How many outputs an item must have at least.

    Returns:
        One item per prompt.

    Raises:
        InvalidInput: If a list is longer or shorter than that of the prompts, or an item cannot be used.

    Example:
        >>> items_of({"terse": ["4", "6"], "wordy": ["It is 4.", "It is 6."]}, ["2 + 2?", "3 + 3?"])[1].outputs["terse"]
        Output(kind='text', content='6')
    """
    if not isinstance(outputs, Mapping):
        raise InvalidInput(f"outputs is {shorten(outputs)}: expected a dict with a list of outputs for each arm")
    questions = _check_list("prompts", prompts)
    columns = {arm: _check_list(f"outputs[{shorten(arm, 40)}]", values) for arm, values in outputs.items()}
    wrong = {arm: len(column) for arm, column in columns.items() if len(column) != len(questions)}
    if wrong:
        sizes = ", ".join(
            f"{shorten(arm, 40)} has {format_count(size, 'output')}" for arm, size in [*wrong.items()][:SHOWN]
        )
        more = ", …" if len(wrong) > SHOWN else ""
        raise InvalidInput(
            f"there are {format_count(len(questions), 'prompt')}, but {sizes}{more}: expected one output per prompt, "
            "and None where there is none"
        )
    rows = [Row(k + 1, q, {arm: column[k] for arm, column in columns.items()}) for k, q in enumerate(questions)]
    return _check_items("outputs", "prompt", rows, [], None, fewest=fewest)


def _check_list(what: str, values: object) -> list[object]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInput(f"{what} is {shorten(values)}: expected a list")
    return list(values)


def _read_file(source: bytes | str | os.PathLike[str], format: str | None, kind: str, fewest: int) -> list[Item]:
    called = "the upload" if isinstance(source, bytes) else str(source)
    text = read_text(source, called, decompress_bytes=False)
    form, unit, faults = format or _format(called, text), "line", list[Fault]()
    rows: Iterable[Row]
    if form in ("csv", "tsv"):
        rows = csv_items(called, text, "\t" if form == "tsv" else ",", faults, fewest)
    elif text.lstrip().startswith("["):
        unit, rows = "item", _objects(_json_list(called, text), faults)
    elif (results := _promptfoo(text)) is not None:
        unit, rows = "result", rows_of(results, faults)
    else:
        rows = _objects(json_rows(text, _unique), faults)
    folder = None if isinstance(source, bytes) else Path(source).parent
    return _check_items(called, unit, rows, faults, folder, kind, fewest)


def _format(called: str, text: str) -> str:
    suffix = suffix_of(called)[1:]
    if suffix in FORMATS:
        return suffix
    first = first_line(text)
    if first.startswith(("{", "[")):
        return "jsonl"
    return "tsv" if "\t" in first and "," not in first else "csv"


def _json_list(called: str, text: str) -> Iterator[tuple[int, object]]:
    try:
        return enumerate(json.loads(text, object_pairs_hook=_unique), 1)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{called} is not JSON: {error}") from None


def _promptfoo(text: str) -> list[object] | None:
    try:
        return results_of(json.loads(text))  # of JSON Lines, no more than the first line is parsed
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{shorten(key, 40)} appears twice in one object")
        found[key] = value
    return found


def _objects(values: Iterable[tuple[int, object]], faults: list[Fault]) -> Iterator[Row]:
    for place, value in values:
        if len(faults) >= MOST_FAULTS:
            return
        if isinstance(value, ValueError):
            faults.append((place, str(value)))
            continue
        if isinstance(value, Item):
            value = value._asdict()
        if not isinstance(value, Mapping):
            faults.append((place, f"found {shorten(value, 40)}, expected an object with prompt and outputs"))
            continue
        prompts = [value[key] for key in PROMPTS if key in value]
        if len(prompts) != 1 or "outputs" not in value:
            faults.append((place, f"found {join_names(value)}, expected prompt (or query) and outputs"))
            continue
        yield Row(place, prompts[0], value["outputs"], value.get("kind"), _tags_in(value))


def _tags_in(value: Mapping[str, object]) -> object:
    """The tags of an object, or else its category, if that is text."""
    category = value.get("category")
    return value["tags"] if "tags" in value else [category] if isinstance(category, str) else None


def output_of(value: object, called: str) -> Output:
    """Return an output that a program produced: text, an `Output`, or a dict with content and kind.

    Raises:
        InvalidInput: If it cannot be used; the message begins with what it is called.
    """
    try:
        return _output(called, value, None, None)
    except ValueError as error:
        raise InvalidInput(f"{called} cannot be used: {error}") from None


def _check_items(
    called: str,
    unit: str,
    rows: Iterable[Row],
    faults: list[Fault],
    folder: Path | None,
    kind: str = "text",
    fewest: int = 2,
) -> list[Item]:
    found = []
    for row in rows:
        try:
            row = row._replace(kind=kind) if row.kind in (None, "") else row
            found.append(_item(row, folder, fewest))
        except ValueError as error:
            faults.append((row.place, str(error)))
        if len(faults) >= MOST_FAULTS or len(found) > MOST_ITEMS:
            break
    if faults:
        faults.sort(key=lambda fault: fault[0])
        lines = "".join(f"\n  {unit} {place}: {fault}" for place, fault in faults[:SHOWN])
        more = f"; the first {SHOWN}" if len(faults) > SHOWN else ""
        least = "at least " if len(faults) >= MOST_FAULTS else ""
        raise InvalidInput(f"{called}: nothing was imported: {least}{format_count(len(faults), 'error')}{more}:{lines}")
    if not found:
        raise InvalidInput(
            f"{called} holds no items: expected at least one prompt with {'two outputs' if fewest > 1 else 'an output'}"
        )
    if len(found) > MOST_ITEMS:
        raise InvalidInput(f"{called} holds more than {MOST_ITEMS:,} items: split it")
    return found


def _item(row: Row, folder: Path | None, fewest: int) -> Item:
    if not isinstance(row.prompt, str) or not row.prompt.strip():
        raise ValueError(f"prompt is {shorten(row.prompt, 40)}, expected text")
    if len(row.prompt) > MOST_PROMPT:
        raise ValueError(f"prompt has {len(row.prompt):,} characters, expected at most {MOST_PROMPT:,}")
    _plain("prompt", row.prompt)
    if not isinstance(row.outputs, Mapping):
        raise ValueError(f"outputs is {shorten(row.outputs, 40)}, expected an object with an output for each arm")
    given = {arm: value for arm, value in row.outputs.items() if value is not None}
    if len(given) < fewest:
        least = "those of at least two arms" if fewest > 1 else "that of at least one arm"
        raise ValueError(f"{format_count(len(given), 'output')}, expected {least}")
    outputs = {_arm(arm): _output(arm, value, row.kind, folder) for arm, value in given.items()}
    return Item(str(row.prompt), outputs, tags_of(row.tags))


def _arm(arm: object) -> str:
    if not isinstance(arm, str) or not arm:
        raise ValueError(f"an arm is called {shorten(arm, 40)}, expected its name")
    _plain("an arm's name", arm)
    return str(arm)


def _output(arm: object, value: object, kind: object, folder: Path | None) -> Output:
    if isinstance(value, Output):
        value = value._asdict()
    if isinstance(value, Mapping):
        kind, value = value.get("kind") or kind, value.get("content")
    if not isinstance(value, str):
        raise ValueError(
            f"the output of {shorten(arm, 40)} is {shorten(value, 40)}, expected text, or an object with content"
        )
    kind = "text" if kind in (None, "") else kind.strip().lower() if isinstance(kind, str) else kind
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(
            f"the output of {shorten(arm, 40)} is of kind {shorten(kind, 40)}, expected one of {', '.join(KINDS)}"
        )
    try:
        if kind == IMAGE:
            return Output(kind, _image(value.strip(), folder))
        if _plain("its text", value) > MOST_TEXT:
            raise ValueError("it is larger than 1 MiB: shorten it")
    except ValueError as error:
        raise ValueError(f"the output of {shorten(arm, 40)} cannot be shown: {error}") from None
    return Output(kind, str(value))  # numpy has texts of its own


def _plain(what: str, text: str) -> int:
    """The size of a text in bytes; text that a database cannot store is refused."""
    if "\x00" in text:
        raise ValueError(f"{what} has a NUL character: leave it out")
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{what} contains an unpaired surrogate (invalid Unicode): remove it") from None


def _image(content: str, folder: Path | None) -> str:
    if re.match(r"(https?:)?//", content, re.IGNORECASE):
        raise ValueError(
            "it is the address of an image, and pages load nothing from other hosts: give the image itself"
        )
    if folder is not None and not content.startswith("data:"):
        return _image_file(content, folder)
    match = DATA_URL.fullmatch(content)
    if match is None or len(match[2]) % 4:
        files = "" if folder is None else ", or the path of a file beside this one"
        raise ValueError(
            f"found {shorten(content, 40)}, expected data:image/png;base64,… or jpeg, gif, webp, svg+xml{files}"
        )
    if len(match[2]) // 4 * 3 - match[2].count("=") > MOST_IMAGE:
        raise ValueError("the image is larger than 4 MiB: make it smaller")
    return content


def _image_file(content: str, folder: Path) -> str:
    _plain("its path", content)
    try:
        path = (folder / content).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ValueError(f"{shorten(content)} is outside of the folder of the items: put it there")
        media_type = IMAGES.get(path.suffix.lower())
        if media_type is None or not path.is_file():
            wanted = f"expected one of {', '.join(IMAGES)}" if media_type is None else "there is no such file"
            raise ValueError(f"found {shorten(content)}, {wanted}")
        if path.stat().st_size > MOST_IMAGE:
            raise ValueError(f"{shorten(content)} is larger than 4 MiB: make it smaller")
        return _image(f"data:{media_type};base64,{base64.b64encode(path.read_bytes()).decode()}", None)
    except (OSError, RuntimeError) as error:  # a cycle of links is a RuntimeError
        raise ValueError(f"{shorten(content)} cannot be read: {getattr(error, 'strerror', None) or error}") from None
