"""Past duels: into a tuning study, and out of it."""

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from ...errors import Conflict, InvalidInput, shorten
from ...files import atomic_open, read_cell, safe_cell
from ...storage.storage import Event
from ...study import base
from ...study.duels import iso_time
from ...study.invitations import refuse_invited
from ...study.state.counts import SKIP, next_event
from ...votes.columns import ANSWERS
from ...votes.names import name_imported
from ...votes.parse_rows import moment_of, voter_of
from ...votes.votes import NEVER
from ..spaces import Category, Number, Setting, Space

if TYPE_CHECKING:
    import polars as pl

    from .log import TuningLog
    from .study import TuningStudy

Side = Mapping[str, object]
PastDuel = tuple[Side, Side, str] | tuple[Side, Side, str, object, object]  # left, right, winner; voter and time
MOST_DUELS = 10_000  # of one import
KINDS = (".csv", ".jsonl", ".parquet")


class Past(NamedTuple):
    """A past duel that was checked."""

    left: Setting
    right: Setting
    winner: str
    voter: str | None = None
    time: str | None = None


class _Answer(NamedTuple):
    """An answer of a study that counts."""

    past: Past  # its time is None if it was imported without one
    written: str  # when it was given or imported
    duel: int
    comment: str | None


def _answers(study: "TuningStudy") -> Iterator[_Answer]:
    """The answers that count, in the order in which they were given."""
    seq, attempts, answers = study._log.read(lambda _, one: (one.seq, one.attempt[:], one.answer[:]))
    asked = list[dict[str, Any]]()
    for event in study._log.read_log(seq):
        note = json.loads(event.note) if event.note else {}
        if event.kind == "ask":
            asked.append(note)
        if event.kind != "tell" or event.duel is None or attempts[event.duel] != event.attempt:
            continue
        if 0 <= answers[event.duel] < SKIP:
            about, written = asked[event.duel], iso_time(event.time)
            was_imported = "imported" in about and not event.attempt  # and not answered again since
            time = about.get("time") if was_imported else written
            past = Past(about["left"], about["right"], str(event.answer), event.voter, time)
            yield _Answer(past, written, event.duel, note.get("note"))


def export_duels(study: "TuningStudy") -> "pl.DataFrame":
    """Return the answers of a study that count, see `TuningStudy.votes`."""
    import polars as pl

    rows = list[tuple[object, ...]]()
    for one in _answers(study):
        sides = (_cell(kind, side[name]) for side in one.past[:2] for name, kind in study.space.parameters.items())
        rows.append((*sides, one.past.winner, one.past.voter, one.past.time or one.written, one.duel, one.comment))
    schema = _columns(study.space)
    schema |= {"winner": pl.String, "voter": pl.String, "time": pl.String, "duel": pl.Int64, "comment": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def find_known_duels(study: "TuningStudy", duels: Sequence[Past]) -> list[bool]:
    """Return for each past duel whether a study has it: same settings on any side, same answer, voter and time.

    Equal ones are counted one by one: of two that are given, and one that is there, the first is known. Duels without a
    time are known only if all of them were imported before, also without one.
    """
    there = Counter(_key(one.past) for one in _answers(study))
    known = []
    for one in duels:
        key = _key(one)
        known.append(there[key] > 0)
        there[key] -= known[-1]
    timeless = [place for place, one in enumerate(duels) if one.time is None]
    if not all(known[place] for place in timeless):
        for place in timeless:
            known[place] = False
    return known


def _key(one: Past) -> tuple[object, ...]:
    """What equal duels share, whichever setting is on the left."""
    sides, winner = [json.dumps(side) for side in one[:2]], one.winner
    if sides[0] > sides[1]:
        sides.reverse()
        winner = {"left": "right", "right": "left"}.get(winner, winner)
    return (*sides, winner, None if one.voter is None else name_imported(one.voter), one.time)


def _kind(parameter: Number | Category) -> "Any":
    import polars as pl

    if isinstance(parameter, Number):
        return pl.Int64 if parameter.int else pl.Float64
    if _is_mixed(parameter):
        return pl.String
    return {bool: pl.Boolean, int: pl.Int64, float: pl.Float64, str: pl.String}[type(parameter.choices[0])]


def _is_mixed(parameter: Number | Category) -> bool:
    """Whether choices are of several types, so that a column has them as text."""
    return isinstance(parameter, Category) and len({type(choice) for choice in parameter.choices}) > 1


def _cell(parameter: Number | Category, value: object) -> object:
    return _text(value) if _is_mixed(parameter) else value


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _value(parameter: Number | Category, cell: object) -> object:
    """The value of a cell: as it is, or the choice that was written as text."""
    if isinstance(parameter, Number) or not _is_mixed(parameter) or not isinstance(cell, str):
        return cell
    named = [choice for choice in parameter.choices if _text(choice) == cell]
    return cell if cell in named or not named else named[0]


def write_duels(study: "TuningStudy", out: str) -> int:
    """Write the answers of a study to a .csv, .jsonl or .parquet file, from which `read_duels` reads them.

    The file appears only when it is complete. In CSV, text that a spreadsheet would run as a formula gets an apostrophe
    in front. `-` is standard output, as CSV.

    Returns:
        How many answers there are.

    Raises:
        InvalidInput: If the file cannot be written, or its suffix is unknown.
    """
    import polars as pl

    suffix = ".csv" if out == "-" else _suffix(out)
    frame = export_duels(study)
    if suffix == ".csv":
        texts = [name for name, kind in frame.schema.items() if kind == pl.String]
        frame = frame.with_columns(pl.col(name).map_elements(safe_cell, pl.String) for name in texts)
    if out == "-":
        sys.stdout.write(frame.write_csv())
    else:
        with atomic_open(Path(out)) as file:
            if suffix == ".parquet":
                frame.write_parquet(file)
            else:
                file.write((frame.write_csv() if suffix == ".csv" else frame.write_ndjson()).encode())
    return len(frame)


def read_duels(space: Space, file: str) -> list[PastDuel]:
    """Read a file that `write_duels` wrote, or one with the same columns.

    Raises:
        InvalidInput: If it cannot be read.
    """
    import polars as pl

    kinds = _columns(space) | dict.fromkeys(("winner", "voter", "time"), pl.String)
    try:
        match _suffix(file):
            case ".csv":
                frame = pl.read_csv(file, schema_overrides=kinds)
                texts = [pl.col(name).map_elements(read_cell, pl.String) for name in kinds if name in frame.columns]
                texts = [one for one in texts if frame.schema[one.meta.output_name()] == pl.String]
                return list(_from_frame(space, frame.with_columns(texts)))
            case ".jsonl":  # whose values keep their types
                return list(_from_lines(space, Path(file)))
            case _:
                return list(_from_frame(space, pl.read_parquet(file)))
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        raise InvalidInput(f"{file} cannot be read: {str(error).partition(chr(10))[0]}") from None


def _from_lines(space: Space, file: Path) -> Iterator[PastDuel]:
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{file} cannot be read: line {number}: {error}") from None
        if not isinstance(row, dict):
            raise InvalidInput(f"{file} cannot be read: line {number} is {shorten(row)}, expected an object")
        _check_columns(space, row)
        yield _from_row(space, row)


def parse_duels(content: bytes, space: Space, called: str = "the upload") -> list[PastDuel]:
    """Return the past duels of a file's content, whose kind its first bytes tell.

    Args:
        content: The content.
        space: The parameters.
        called: What errors call it.

    Raises:
        InvalidInput: If it cannot be read.
    """
    start = content.lstrip()[:4]
    suffix = ".parquet" if start == b"PAR1" else ".jsonl" if start[:1] == b"{" else ".csv"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"upload{suffix}"
        path.write_bytes(content)
        try:
            return read_duels(space, str(path))
        except InvalidInput as error:
            raise InvalidInput(str(error).replace(str(path), called)) from None


def _suffix(file: str) -> str:
    suffix = Path(file).suffix.lower()
    if suffix not in KINDS:
        raise InvalidInput(f"{file}: unknown kind of file, expected one of {', '.join(KINDS)}")
    return suffix


def _columns(space: Space) -> dict[str, Any]:
    return {f"{side}.{name}": _kind(one) for side in ("left", "right") for name, one in space.parameters.items()}


def check_duels(space: Space, duels: "Iterable[PastDuel] | pl.DataFrame") -> list[Past]:
    """Return past duels with checked settings and winners.

    Raises:
        InvalidInput: If one cannot be used; the message says which.
    """
    rows = list(_from_frame(space, duels) if hasattr(duels, "iter_rows") else duels)
    if len(rows) > MOST_DUELS:
        raise InvalidInput(f"there are {len(rows):,} past duels: expected at most {MOST_DUELS:,} at once")
    return [_check_duel(space, place, row) for place, row in enumerate(rows, 1)]


def _check_duel(space: Space, place: int, row: object) -> Past:
    if not isinstance(row, tuple | list) or len(row) not in (3, 4, 5):
        raise InvalidInput(f"past duel {place} is {shorten(row)}: expected (left, right, winner)")
    left, right, winner, voter, time = (*row, None, None)[:5]
    try:
        left, right, voter = space.check(left), space.check(right), voter_of(voter)
        moment = NEVER if time is None else moment_of(time)
    except (InvalidInput, ValueError) as error:
        raise InvalidInput(f"past duel {place}: {error}") from None
    if winner not in ANSWERS[:SKIP]:
        raise InvalidInput(f"past duel {place}: winner is {shorten(winner)}: expected {', '.join(ANSWERS[:SKIP])}")
    named = None if voter is None else name_imported(voter)
    return Past(left, right, winner, named, None if moment == NEVER else iso_time(moment / 1e6))


def _from_frame(space: Space, frame: Any) -> Iterator[PastDuel]:
    _check_columns(space, frame.columns)
    for row in frame.iter_rows(named=True):
        yield _from_row(space, row)


def _check_columns(space: Space, columns: Container[str]) -> None:
    wanted = [f"{side}.{name}" for side in ("left", "right") for name in space.names]
    missing = [name for name in (*wanted, "winner") if name not in columns]
    if missing:
        raise InvalidInput(f"there is no column {missing[0]}: expected {', '.join(wanted)} and winner")


def _from_row(space: Space, row: Mapping[str, Any]) -> PastDuel:
    left, right = (
        {name: _value(kind, row[f"{side}.{name}"]) for name, kind in space.parameters.items()}
        for side in ("left", "right")
    )
    return left, right, row["winner"], row.get("voter"), row.get("time")


def rows_of(duels: Iterable[Past]) -> Iterator[dict[str, object]]:
    """Yield past duels as rows for JSON lines, which `parse_duels` reads."""
    for one in duels:
        sides = {f"{side}.{name}": value for side in ("left", "right") for name, value in getattr(one, side).items()}
        yield sides | {"winner": one.winner, "voter": one.voter, "time": one.time}


def import_in(connection: sa.Connection, *, log: "TuningLog", duels: Sequence[Past]) -> int:
    """Write past duels inside a transaction: a question and an answer each."""
    history, now, new = log.current(connection), base.clock(), list[Event]()
    if history.retired:
        raise Conflict(f"study {log.name!r} was retired: resume it to import past duels")
    for voter in {one.voter for one in duels}:
        refuse_invited(connection, log, voter)
    for one in duels:
        number = len(history.left)
        about = {"left": one.left, "right": one.right, "imported": True} | ({"time": one.time} if one.time else {})
        note = json.dumps(about, ensure_ascii=False)
        asked = {"duel": number, "attempt": 0, "left_arm": 0, "right_arm": 1, "swapped": 0}
        answered = {"duel": number, "attempt": 0, "answer": one.winner, "voter": one.voter}
        for kind, fields in (("ask", asked | {"note": note}), ("tell", answered)):
            event = next_event(history, kind, now, **fields)
            history.take(event)
            new.append(event)
    if new:
        log.append(history, new)
    return len(duels)
