"""Past duels: into a tuning study, and out of it."""

import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from ..errors import Conflict, InvalidInput, cut
from ..files import atomic_open, safe_cell
from ..storage.storage import Event
from ..study import log
from ..study.duels import iso_time
from ..study.invitations import refuse_invited
from ..study.record import SKIP, next_event
from ..votes.columns import ANSWERS
from ..votes.names import imported_name, past_voter
from .spaces import Category, Number, Setting, Space

if TYPE_CHECKING:
    import polars as pl

    from .tuning import Tuning

PastDuel = tuple[Mapping[str, object], Mapping[str, object], str]  # left, right and the winner
MOST_DUELS = 10_000  # of one import
KINDS = (".csv", ".jsonl", ".parquet")


class Past(NamedTuple):
    """A past duel that was checked."""

    left: Setting
    right: Setting
    winner: str
    voter: str | None = None


def exported(study: "Tuning") -> "pl.DataFrame":
    """Return the answers of a study that count, see `Tuning.votes`."""
    import polars as pl

    seq, attempts, answers = study.read(lambda _, one: (one.seq, one.attempt[:], one.answer[:]))
    asked, rows = list[dict[str, Any]](), list[tuple[object, ...]]()
    for event in study.read_log(seq):
        note = json.loads(event.note) if event.note else {}
        if event.kind == "ask":
            asked.append(note)
        elif event.kind == "tell" and event.duel is not None:
            counts = attempts[event.duel] == event.attempt and 0 <= answers[event.duel] < SKIP
            if counts:
                sides = (asked[event.duel][side][name] for side in ("left", "right") for name in study.space.names)
                rows.append((*sides, event.answer, event.voter, iso_time(event.time), event.duel, note.get("note")))
    schema = _columns(study.space)
    schema |= {"winner": pl.String, "voter": pl.String, "time": pl.String, "duel": pl.Int64, "comment": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _kind(parameter: Number | Category) -> "Any":
    import polars as pl

    if isinstance(parameter, Number):
        return pl.Int64 if parameter.int else pl.Float64
    kinds = {type(choice) for choice in parameter.choices}
    return {bool: pl.Boolean, int: pl.Int64, float: pl.Float64}.get(kinds.pop(), pl.String) if len(kinds) == 1 else None


def write_duels(study: "Tuning", out: str) -> int:
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
    frame = exported(study)
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


def read_duels(space: Space, file: str) -> "pl.DataFrame":
    """Read a file that `write_duels` wrote, or one with the same columns.

    Raises:
        InvalidInput: If it cannot be read.
    """
    import polars as pl

    kinds = {name: kind for name, kind in _columns(space).items() if kind is not None}
    try:
        match _suffix(file):
            case ".csv":
                return pl.read_csv(file, schema_overrides=kinds)
            case ".jsonl":
                return pl.read_ndjson(file, schema_overrides=kinds)
            case _:
                return pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InvalidInput(f"{file} cannot be read: {str(error).partition(chr(10))[0]}") from None


def parsed_duels(space: Space, content: bytes) -> "pl.DataFrame":
    """Return the past duels of an upload, whose kind its first bytes tell.

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
            raise InvalidInput(str(error).replace(str(path), "the upload")) from None


def _suffix(file: str) -> str:
    suffix = Path(file).suffix.lower()
    if suffix not in KINDS:
        raise InvalidInput(f"{file}: unknown kind of file, expected one of {', '.join(KINDS)}")
    return suffix


def _columns(space: Space) -> dict[str, Any]:
    return {f"{side}.{name}": _kind(one) for side in ("left", "right") for name, one in space.parameters.items()}


def checked(space: Space, duels: "Iterable[PastDuel] | pl.DataFrame") -> list[Past]:
    """Return past duels with checked settings and winners.

    Raises:
        InvalidInput: If one cannot be used; the message says which.
    """
    rows = list(_from_frame(space, duels) if hasattr(duels, "iter_rows") else duels)
    if len(rows) > MOST_DUELS:
        raise InvalidInput(f"there are {len(rows):,} past duels: expected at most {MOST_DUELS:,} at once")
    return [_checked(space, place, row) for place, row in enumerate(rows, 1)]


def _checked(space: Space, place: int, row: object) -> Past:
    if not isinstance(row, tuple | list) or len(row) not in (3, 4):
        raise InvalidInput(f"past duel {place} is {cut(row)}: expected (left, right, winner)")
    try:
        left, right = space.check(row[0]), space.check(row[1])
        voter = past_voter(row[3]) if len(row) == 4 else None
    except InvalidInput as error:
        raise InvalidInput(f"past duel {place}: {error}") from None
    if row[2] not in ANSWERS[:SKIP]:
        raise InvalidInput(f"past duel {place}: winner is {cut(row[2])}: expected {', '.join(ANSWERS[:SKIP])}")
    return Past(left, right, row[2], None if voter is None else imported_name(voter))


def _from_frame(space: Space, frame: Any) -> Iterable[tuple[Setting, Setting, Any, Any]]:
    wanted = [f"{side}.{name}" for side in ("left", "right") for name in space.names]
    missing = [name for name in (*wanted, "winner") if name not in frame.columns]
    if missing:
        raise InvalidInput(f"there is no column {missing[0]}: expected {', '.join(wanted)} and winner")
    for row in frame.iter_rows(named=True):
        left, right = ({name: row[f"{side}.{name}"] for name in space.names} for side in ("left", "right"))
        yield left, right, row["winner"], row.get("voter")


def import_in(connection: sa.Connection, *, study: "Tuning", duels: Sequence[Past]) -> int:
    """Write past duels inside a transaction: a question and an answer each."""
    history, now, new = study.current(connection), log.clock(), list[Event]()
    if history.retired:
        raise Conflict(f"study {study.name!r} was retired: resume it to import past duels")
    for voter in {one.voter for one in duels}:
        refuse_invited(study, connection, voter)
    for one in duels:
        number = len(history.left)
        note = json.dumps({"left": one.left, "right": one.right, "imported": True}, ensure_ascii=False)
        asked = {"duel": number, "attempt": 0, "left_arm": 0, "right_arm": 1, "swapped": 0}
        answered = {"duel": number, "attempt": 0, "answer": one.winner, "voter": one.voter}
        for kind, fields in (("ask", asked | {"note": note}), ("tell", answered)):
            event = next_event(history, kind, now, **fields)
            history.take(event)
            new.append(event)
    if new:
        study.append_in(history, new)
    return len(duels)
