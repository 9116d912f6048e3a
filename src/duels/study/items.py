"""Items of an arena: a study may carry prompts with what its arms made of them.

A duel then shows one item's two outputs; which item that was is in the note of its event, as `{"item": number}`.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from ..checks import check_int
from ..errors import InvalidInput
from ..storage.storage import Write
from ..votes.item_files import KINDS, Item, Output, listed, read_items
from ..votes.names import place_of
from .log import Log

__all__ = [
    "KINDS",
    "Item",
    "Output",
    "add_items",
    "allow_scripts",
    "can_show",
    "choose_item",
    "clear_items",
    "count_items",
    "item_of",
    "list_items",
    "read_items",
    "scripts_allowed",
]
DRAWS = 32  # items that are looked at before all of them are
SETTINGS = "SELECT settings FROM studies WHERE id = ?"
LARGEST = (1 << 31) - 1  # number that the database can hold


def add_items(study: Log, items: Any) -> int:
    """Give a study items, from anything that `read_items` takes: all of them or, after an error, none. How many.

    Their numbers go on from the last. A number that a duel has shown is not given to another item, also after
    `clear_items`.
    """
    found = read_items(items)
    arms = dict.fromkeys(arm for item in found for arm in item.outputs)

    def operation(connection: sa.Connection) -> int:
        names = study.current(connection).names
        found_at = {arm: place_of(arm, names) for arm in arms}
        place = {arm: number for arm, number in found_at.items() if number is not None}
        unknown = [arm for arm in arms if arm not in place]
        if unknown:
            raise InvalidInput(
                f"the items have outputs of arms that study {study.name!r} does not have: {listed(unknown)}; "
                "add them with add_arm first, or leave them out"
            )
        for number, item in enumerate(found, 1):
            if len({place[arm] for arm in item.outputs}) < len(item.outputs):
                raise InvalidInput(f"item {number} has two outputs of one arm: {listed(list(item.outputs))}")
        key, start = study.id, _last_number(study, connection) + 1
        outputs = [
            (key, number, names[place[arm]], *output)
            for number, item in enumerate(found, start)
            for arm, output in item.outputs.items()
        ]
        prompts = [(key, number, item.prompt) for number, item in enumerate(found, start)]
        _execute(connection, "INSERT INTO items (study_id, number, prompt) VALUES (?, ?, ?)", prompts, many=True)
        _execute(
            connection,
            "INSERT INTO outputs (study_id, item, arm, kind, content) VALUES (?, ?, ?, ?, ?)",
            outputs,
            many=True,
        )
        return len(found)

    return study.storage.write(Write(operation, study.id))


def _last_number(study: Log, connection: sa.Connection) -> int:
    last = _rows(connection, "SELECT max(number) FROM items WHERE study_id = ?", (study.id,))[0][0]
    if last is not None:
        return last
    study.storage.flush(connection)
    text = "SELECT DISTINCT note FROM events WHERE study_id = ? AND kind = 'ask' AND note IS NOT NULL"
    return max((_item_in(note) or 0 for (note,) in _rows(connection, text, (study.id,))), default=0)


def count_items(study: Log) -> int:
    """How many items a study has."""
    return _read(study, "SELECT count(*) FROM items WHERE study_id = ?", (study.id,))[0][0]


def list_items(study: Log, after: int = 0, limit: int = 50) -> list[tuple[int, Item]]:
    """The items with their numbers, from the one after that number on, 1,000 at most; the first number is 1."""
    after, limit = check_int("after", after, 0, LARGEST), check_int("limit", limit, 1, 1_000)
    return _listed(study, after, limit, None)


def item_of(study: Log, number: int, arms: Iterable[str] | None = None) -> Item:
    """An item by its number, with the outputs of these arms only, if they are given."""
    number = check_int("number", number, 1, LARGEST)
    found = _listed(study, number - 1, 1, None if arms is None else list(arms))
    if not found or found[0][0] != number:
        raise InvalidInput(f"study {study.name!r} has no item {number}: see list_items for those it has")
    return found[0][1]


def _listed(study: Log, after: int, limit: int, arms: Sequence[str] | None) -> list[tuple[int, Item]]:
    key, only = study.id, "" if arms is None else f" AND arm IN ({_marks(arms)})"
    prompts = "SELECT number, prompt FROM items WHERE study_id = ? AND number > ? ORDER BY number LIMIT ?"
    outputs = f"SELECT item, arm, kind, content FROM outputs WHERE study_id = ? AND item BETWEEN ? AND ?{only}"
    with study.storage.turn:
        found = {number: Item(prompt, {}) for number, prompt in _read(study, prompts, (key, after, limit))}
        if found and (arms is None or arms):
            rows = _read(study, outputs, (key, min(found), max(found), *(arms or ())))
            for number, arm, kind, content in sorted(rows):
                found[number].outputs[arm] = Output(kind, content)
    return list(found.items())


def clear_items(study: Log) -> int:
    """Take all items from a study; how many there were. What duels have shown can then no longer be looked at."""

    def operation(connection: sa.Connection) -> int:
        _execute(connection, "DELETE FROM outputs WHERE study_id = ?", (study.id,))
        return _execute(connection, "DELETE FROM items WHERE study_id = ?", (study.id,)).rowcount

    return study.storage.write(Write(operation, study.id))


def allow_scripts(study: Log, allowed: bool) -> None:
    """Let scripts in HTML outputs run when people look at them, or not, which is how a study begins."""

    def operation(connection: sa.Connection) -> None:
        (settings,) = _rows(connection, SETTINGS, (study.id,))[0]
        changed = json.dumps(json.loads(settings) | {"scripts": allowed})
        _execute(connection, "UPDATE studies SET settings = ? WHERE id = ?", (changed, study.id))

    study.storage.write(Write(operation, study.id))


def scripts_allowed(study: Log) -> bool:
    """Whether scripts in HTML outputs run, as it is now in the database."""
    return bool(json.loads(_read(study, SETTINGS, (study.id,))[0][0]).get("scripts"))


def choose_item(
    connection: sa.Connection, study_id: int, left: str, right: str, seed: int, duel: int, voter: str | None = None
) -> int | None:
    """The number of the item that a duel shows; None if no item has outputs of both arms.

    Of the items that have both it is one that this voter was shown least often, and not the last one again if there are
    others; which of those, the seed and the duel's number decide, each with the same chance. The caller has flushed the
    events of the transaction under way.
    """
    spans = (
        "SELECT (SELECT min(number) FROM items WHERE study_id = ?), (SELECT max(number) FROM items WHERE study_id = ?)"
    )
    first, last = _rows(connection, spans, (study_id, study_id))[0]
    if first is None:
        return None
    arms, seen = sorted({left, right}), _seen(connection, study_id, voter)
    *draws, choice = _random(seed, duel)
    # Drawing until an item fits gives each that does the same chance, and seldom needs a look at all of them.
    drawn = [first + draw % (last + 1 - first) for draw in draws]
    fitting = _with_both(connection, study_id, arms, sorted({number for number in drawn if number not in seen}))
    for number in drawn:
        if number in fitting:
            return number
    fitting = _with_both(connection, study_id, arms)
    fitting = fitting - set(list(seen)[-1:]) or fitting
    least = min((seen.get(number, 0) for number in fitting), default=0)
    rarest = sorted(number for number in fitting if seen.get(number, 0) == least)
    return rarest[choice % len(rarest)] if rarest else None


def can_show(connection: sa.Connection, study_id: int, left: str, right: str, number: int | None) -> bool:
    """Whether an item still has outputs of both arms; without an item, whether the study has none at all."""
    if number is None:
        return not _rows(connection, "SELECT 1 FROM items WHERE study_id = ? LIMIT 1", (study_id,))
    return bool(_with_both(connection, study_id, sorted({left, right}), [number]))


def _random(seed: int, duel: int) -> list[int]:
    """Numbers below 2⁶⁴ that are the same for a seed and a duel: DRAWS of them and one more."""
    digest = hashlib.shake_128(f"item of duel {duel}, seed {seed}".encode()).digest(8 * (DRAWS + 1))
    return [int.from_bytes(digest[at : at + 8], "big") for at in range(0, len(digest), 8)]


def _seen(connection: sa.Connection, study_id: int, voter: str | None) -> dict[int, int]:
    """How often a voter was shown which item; the one that was shown last comes last."""
    if voter is None:
        return {}
    text = "SELECT note FROM events WHERE study_id = ? AND voter = ? AND kind = 'ask' AND note IS NOT NULL ORDER BY seq"
    seen: dict[int, int] = {}
    for (note,) in _rows(connection, text, (study_id, voter)):
        number = _item_in(note)
        if number is not None:
            seen[number] = seen.pop(number, 0) + 1
    return seen


def _with_both(
    connection: sa.Connection, study_id: int, arms: Sequence[str], among: Sequence[int] | None = None
) -> set[int]:
    """The items, or those among some, that have outputs of all these arms."""
    if among is not None and not among:
        return set()
    only = "" if among is None else f" AND item IN ({_marks(among)})"
    text = f"SELECT item FROM outputs WHERE study_id = ?{only} AND arm IN ({_marks(arms)}) GROUP BY item"
    rows = _rows(connection, f"{text} HAVING count(*) = ?", (study_id, *(among or ()), *arms, len(arms)))
    return {number for (number,) in rows}


@lru_cache(1 << 14)  # voters see the same items
def _item_in(note: str) -> int | None:
    return json.loads(note).get("item")


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _read(study: Log, text: str, values: Sequence[Any]) -> list[tuple]:
    with study.storage.turn, study.storage.explained():
        return _rows(study.storage.connection(), text, values)


def _rows(connection: sa.Connection, text: str, values: Sequence[Any]) -> list[tuple]:
    return list(_execute(connection, text, values).fetchall())


def _execute(connection: sa.Connection, text: str, values: Sequence[Any], many: bool = False) -> Any:
    """A statement by the driver itself, which every question needs quickly."""
    if connection.dialect.name != "sqlite":
        text = text.replace("?", "%s")
    cursor = connection.connection.cursor()
    (cursor.executemany if many else cursor.execute)(text, values)
    return cursor
