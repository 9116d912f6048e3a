"""Reading the items of an arena: prompts, and what the arms made of them.

`read_items` is the only door: it takes all of a source or nothing, and what it returns needs no further checks.
"""

import base64
import csv
import gzip
import io
import json
import os
import re
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InvalidInput, UnknownName, cut

KINDS = ("text", "markdown", "code", "image", "html")
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
PROMPTS = ("prompt", "query")


class Output(NamedTuple):
    """What an arm made of a prompt."""

    kind: str  # one of KINDS
    content: str  # text; of an image a data: URL


class Item(NamedTuple):
    """A prompt with the outputs of two arms or more, by the arms' names."""

    prompt: str
    outputs: dict[str, Output]


class _Row(NamedTuple):
    """An item of a source, before it is checked."""

    place: int
    prompt: Any
    outputs: Any  # a mapping from arms to outputs
    kind: Any = None  # of outputs that do not say


Fault = tuple[int, str]


def read_items(source: Any, *, format: str | None = None) -> list[Item]:
    """The items of a file, of `bytes`, or of a list of dicts or `Item`s: all of them or, after an error, none.

    source: a path (.jsonl, .ndjson, .json, .csv, .tsv, also with .gz); `bytes` are the content of such a file. Images
        of a file may be files in its folder; elsewhere they are data: URLs.
    format: one of FORMATS; else told from the name, or from how the content begins.
    """
    if format is not None and format not in FORMATS:
        raise UnknownName("format of items", format, FORMATS)
    unit, folder, faults = "line", None, list[Fault]()
    if isinstance(source, bytes | str | os.PathLike):
        called = "the upload" if isinstance(source, bytes) else str(source)
        text = _text_of(source, called)
        kind = format or _format(called, text)
        folder = None if isinstance(source, bytes) else Path(source).parent
        if kind in ("csv", "tsv"):
            rows = _table(called, text, "\t" if kind == "tsv" else ",", faults)
        elif text.lstrip().startswith("["):
            unit, rows = "item", _objects(_json_list(called, text), faults)
        else:
            rows = _objects(_json_lines(text, faults), faults)
    elif isinstance(source, Iterable) and not isinstance(source, Mapping):
        unit, called = "item", f"the {type(source).__name__}"
        rows = _objects(enumerate(source, 1), faults)
    else:
        raise InvalidInput(f"{cut(source)} holds no items: expected a path, bytes, or a list of dicts")
    return _checked(called, unit, list(rows), faults, folder)


def _text_of(source: bytes | str | os.PathLike[str], called: str) -> str:
    try:
        content = source if isinstance(source, bytes) else Path(source).read_bytes()
        if content.startswith(b"\x1f\x8b") and not isinstance(source, bytes):  # a small upload may unpack to gigabytes
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{called} is not text in UTF-8: {error.reason} at byte {error.start}") from None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise InvalidInput(f"{called} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _format(called: str, text: str) -> str:
    suffix = Path(called[:-3] if called.lower().endswith(".gz") else called).suffix.lower()[1:]
    if suffix in FORMATS:
        return suffix
    first = text[:10_000].lstrip().partition("\n")[0]
    if first.startswith(("{", "[")):
        return "jsonl"
    return "tsv" if "\t" in first and "," not in first else "csv"


def _json_lines(text: str, faults: list[Fault]) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        try:
            if line.strip():
                yield number, json.loads(line, object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            faults.append((number, f"not JSON: {str(error).partition(': line')[0]}"))


def _json_list(called: str, text: str) -> Iterator[tuple[int, Any]]:
    try:
        return enumerate(json.loads(text, object_pairs_hook=_unique), 1)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{called} is not JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{cut(key, 40)} is there twice in one object")
        found[key] = value
    return found


def _objects(values: Iterable[tuple[int, Any]], faults: list[Fault]) -> Iterator[_Row]:
    for place, value in values:
        if isinstance(value, Item):
            value = value._asdict()
        if not isinstance(value, Mapping):
            faults.append((place, f"found {cut(value, 40)}, expected an object with prompt and outputs"))
            continue
        prompts = [value[key] for key in PROMPTS if key in value]
        if len(prompts) != 1 or "outputs" not in value:
            faults.append((place, f"found {listed(value)}, expected prompt (or query) and outputs"))
            continue
        yield _Row(place, prompts[0], value["outputs"], value.get("kind"))


_widened = threading.Lock()


def _csv_rows(text: str, delimiter: str, faults: list[Fault]) -> list[tuple[int, list[str]]]:
    """The rows, each with the line where it begins: a row may have line breaks in quotes."""
    rows, line = list[tuple[int, list[str]]](), 1
    with _widened:  # the longest cell is a setting of the whole process: put back before anybody else sets it
        before = csv.field_size_limit(2 * MOST_IMAGE)
        try:
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
            for cells in reader:
                if len(cells) > 1 or "".join(cells).strip():
                    rows.append((line, cells))
                line = reader.line_num + 1
        except csv.Error as error:
            faults.append((line, f"not a table from here on: {error}"))
        finally:
            csv.field_size_limit(before)
    return rows


def _table(called: str, text: str, delimiter: str, faults: list[Fault]) -> Iterable[_Row]:
    rows = _csv_rows(text, delimiter, faults)
    if not rows:
        return []
    header = [cell.strip() for cell in rows[0][1]]
    known = [name.lower() if name.lower() in (*PROMPTS, "kind", "arm", "output") else "" for name in header]
    is_long = "arm" in known and "output" in known
    roles = {role: at for at, role in enumerate(known) if role and (is_long or role not in ("arm", "output"))}
    arms = {at: name for at, name in enumerate(header) if at not in roles.values()}
    problem = None
    if sum(name in PROMPTS for name in known) != 1:
        problem = "expected one column prompt (or query)"
    elif len({role or name for role, name in zip(known, header)}) < len(header) or (is_long and arms):
        problem = "expected each column once, and with arm and output no others but prompt and kind"
    elif not is_long and (len(arms) < 2 or "" in arms.values()):
        problem = "expected a column for each of two arms or more, or the columns arm and output"
    if problem:
        raise InvalidInput(f"{called}, line {rows[0][0]}: the columns are {listed(header)}; {problem}")
    even = []
    for line, cells in rows[1:]:
        if len(cells) == len(header):
            even.append((line, cells))
        else:
            faults.append((line, f"{_counted(len(cells), 'field')}, expected {len(header)}"))
    return _long(even, roles, faults) if is_long else _wide(even, roles, arms)


def _wide(rows: Iterable[tuple[int, list[str]]], roles: dict[str, int], arms: dict[int, str]) -> Iterator[_Row]:
    prompt = next(roles[name] for name in PROMPTS if name in roles)
    for line, cells in rows:
        outputs = {arm: cells[at] for at, arm in arms.items() if cells[at].strip()}
        yield _Row(line, cells[prompt], outputs, cells[roles["kind"]] if "kind" in roles else None)


def _long(rows: Iterable[tuple[int, list[str]]], roles: dict[str, int], faults: list[Fault]) -> Iterable[_Row]:
    prompt = next(roles[name] for name in PROMPTS if name in roles)
    found: dict[str, _Row] = {}
    for line, cells in rows:
        row = found.setdefault(cells[prompt], _Row(line, cells[prompt], {}))
        arm = cells[roles["arm"]].strip()
        if arm in row.outputs:
            faults.append((line, f"arm {cut(arm, 40)} has an output for the prompt of line {row.place} already"))
        kind = cells[roles["kind"]] if "kind" in roles else None
        row.outputs[arm] = {"content": cells[roles["output"]], "kind": kind}
    return found.values()


def _checked(called: str, unit: str, rows: list[_Row], faults: list[Fault], folder: Path | None) -> list[Item]:
    found = []
    for row in rows:
        try:
            found.append(_item(row, folder))
        except ValueError as error:
            faults.append((row.place, str(error)))
    if faults:
        faults.sort(key=lambda fault: fault[0])
        lines = "".join(f"\n  {unit} {place}: {fault}" for place, fault in faults[:SHOWN])
        more = f"; the first {SHOWN}" if len(faults) > SHOWN else ""
        raise InvalidInput(
            f"{called} cannot be used, so nothing was taken: {_counted(len(faults), 'fault')}{more}:{lines}"
        )
    if not found:
        raise InvalidInput(f"{called} holds no items: expected at least one prompt with two outputs")
    if len(found) > MOST_ITEMS:
        raise InvalidInput(f"{called} holds {len(found):,} items: expected at most {MOST_ITEMS:,}; give them in parts")
    return found


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def _item(row: _Row, folder: Path | None) -> Item:
    if not isinstance(row.prompt, str) or not row.prompt.strip():
        raise ValueError(f"prompt is {cut(row.prompt, 40)}, expected text")
    if len(row.prompt) > MOST_PROMPT:
        raise ValueError(f"prompt has {len(row.prompt):,} characters, expected at most {MOST_PROMPT:,}")
    _plain("prompt", row.prompt)
    if not isinstance(row.outputs, Mapping):
        raise ValueError(f"outputs is {cut(row.outputs, 40)}, expected an object with an output for each arm")
    given = {arm: value for arm, value in row.outputs.items() if value is not None}
    if len(given) < 2:
        raise ValueError(f"{_counted(len(given), 'output')}, expected those of at least two arms")
    return Item(row.prompt, {_arm(arm): _output(arm, value, row.kind, folder) for arm, value in given.items()})


def _arm(arm: Any) -> str:
    if not isinstance(arm, str) or not arm:
        raise ValueError(f"an arm is called {cut(arm, 40)}, expected its name")
    _plain("an arm's name", arm)
    return arm


def _output(arm: str, value: Any, kind: Any, folder: Path | None) -> Output:
    if isinstance(value, Output):
        value = value._asdict()
    if isinstance(value, Mapping):
        kind, value = value.get("kind") or kind, value.get("content")
    if not isinstance(value, str):
        raise ValueError(f"the output of {cut(arm, 40)} is {cut(value, 40)}, expected text, or an object with content")
    kind = "text" if kind in (None, "") else kind.strip().lower() if isinstance(kind, str) else kind
    if kind not in KINDS:
        raise ValueError(f"the output of {cut(arm, 40)} is of kind {cut(kind, 40)}, expected one of {', '.join(KINDS)}")
    try:
        if kind == "image":
            return Output(kind, _image(value.strip(), folder))
        if _plain("its text", value) > MOST_TEXT:
            raise ValueError("it is larger than 1 MiB: shorten it")
    except ValueError as error:
        raise ValueError(f"the output of {cut(arm, 40)} cannot be shown: {error}") from None
    return Output(kind, value)


def _plain(what: str, text: str) -> int:
    """The size of a text in bytes, which a database can hold."""
    if "\x00" in text:
        raise ValueError(f"{what} has a NUL character: leave it out")
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{what} has half a character, a lone surrogate: leave it out") from None


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
            f"found {cut(content, 40)}, expected data:image/png;base64,… or jpeg, gif, webp, svg+xml{files}"
        )
    if len(match[2]) // 4 * 3 - match[2].count("=") > MOST_IMAGE:
        raise ValueError("the image is larger than 4 MiB: make it smaller")
    return content


def _image_file(content: str, folder: Path) -> str:
    _plain("its path", content)
    try:
        path = (folder / content).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ValueError(f"{cut(content)} is outside of the folder of the items: put it there")
        media_type = IMAGES.get(path.suffix.lower())
        if media_type is None or not path.is_file():
            wanted = f"expected one of {', '.join(IMAGES)}" if media_type is None else "there is no such file"
            raise ValueError(f"found {cut(content)}, {wanted}")
        if path.stat().st_size > MOST_IMAGE:
            raise ValueError(f"{cut(content)} is larger than 4 MiB: make it smaller")
        return _image(f"data:{media_type};base64,{base64.b64encode(path.read_bytes()).decode()}", None)
    except (OSError, RuntimeError) as error:  # a circle of links is a RuntimeError
        raise ValueError(f"{cut(content)} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def listed(names: Iterable[Any], most: int = 8) -> str:
    shown = [f"{name!s:.40}" for name in names]
    return ", ".join([*shown[:most], *["…"] * (len(shown) > most)]) or "nothing"
