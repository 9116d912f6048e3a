"""Items in the database: statements, numbers, and how items are stored."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor

from ..errors import Conflict, InvalidInput, NotFound, shorten
from ..votes.item_files import Item
from ..votes.item_tables import join_names
from ..votes.names import place_of
from .about import THESE_ANSWERS
from .log import Log

Row = tuple[Any, ...]  # of the database
LARGEST = (1 << 31) - 1  # the largest number that the database can store
SETTINGS = "SELECT settings FROM studies WHERE id = ?"
PROMPTS = "SELECT number, prompt, tags FROM items WHERE study_id = ? ORDER BY number"
LAST = "last_item"  # the setting with the largest number of an item that was removed


def names_of_arms(connection: sa.Connection, study: Log, items: Sequence[Item]) -> dict[str, str]:
    """Return the study's name of each arm that items have outputs of. Call it before anything is written.

    Raises:
        InvalidInput: If they have outputs of arms that the study does not have.
    """
    names = study.current(connection).names
    arms = dict.fromkeys(arm for item in items for arm in item.outputs)
    found_at = {arm: place_of(arm, names) for arm in arms}
    known = {arm: names[number] for arm, number in found_at.items() if number is not None}
    unknown = [arm for arm in arms if arm not in known]
    if unknown:
        raise InvalidInput(
            f"the items have outputs of arms that study {study.name!r} does not have: {join_names(unknown)}; "
            "add them with add_arm first, or leave them out"
        )
    for number, item in enumerate(items, 1):
        if len({known[arm] for arm in item.outputs}) < len(item.outputs):
            raise InvalidInput(f"item {number} has two outputs of one arm: {join_names(list(item.outputs))}")
    return known


def insert_items(
    connection: sa.Connection, study: Log, items: Sequence[Item], names: Mapping[str, str], start: int
) -> None:
    """Store items with the numbers from `start` on, and their arms by these names."""
    key = study.id
    prompts = [(key, number, item.prompt, pack_tags(item.tags)) for number, item in enumerate(items, start)]
    outputs = [
        (number, names[arm], *output)
        for number, item in enumerate(items, start)
        for arm, output in item.outputs.items()
    ]
    execute_many(connection, "INSERT INTO items (study_id, number, prompt, tags) VALUES (?, ?, ?, ?)", prompts)
    insert_outputs(connection, study, outputs)


def match_items(
    connection: sa.Connection, study: Log, items: Sequence[Item], names: Mapping[str, str]
) -> tuple[list[Item], list[Row], dict[int, tuple[str, ...]]]:
    """Find the items of a study with the same prompts, the first with the first, and what they lack.

    Returns:
        The items that are new; rows (item, arm, kind, content) of further outputs; and by number the tags of items that
        get more.

    Raises:
        Conflict: If an item has another output of an arm.
        InvalidInput: If a new item has outputs of fewer than two arms.
    """
    there = defaultdict[str, list[tuple[int, tuple[str, ...]]]](list)
    for number, prompt, tags in rows(connection, PROMPTS, (study.id,)):
        there[_plain(prompt)].append((number, read_tags(tags)))
    met, new, more, tags_of = Counter[str](), list[Item](), list[Row](), dict[int, tuple[str, ...]]()
    for item in items:
        prompt = _plain(item.prompt)
        met[prompt] += 1
        if met[prompt] > len(there.get(prompt, ())):
            new.append(item)
            continue
        number, tags = there[prompt][met[prompt] - 1]
        more += _find_lacking(connection, study, number, item, names)
        if further := [tag for tag in item.tags if tag not in tags]:
            tags_of[number] = (*tags, *further)
    for item in new:
        if len(item.outputs) < 2:
            raise InvalidInput(
                f"study {study.name!r} has no item with the prompt {shorten(item.prompt, 60)}, so it needs outputs of "
                f"at least two arms: found that of {join_names(item.outputs)}"
            )
    return new, more, tags_of


def _find_lacking(
    connection: sa.Connection, study: Log, number: int, item: Item, names: Mapping[str, str]
) -> list[Row]:
    """The outputs of an item that the one with this number does not have yet."""
    known: dict[str, str] = dict(
        rows(connection, "SELECT arm, content FROM outputs WHERE study_id = ? AND item = ?", (study.id, number))
    )
    for arm, output in item.outputs.items():
        if known.get(names[arm], output.content) != output.content:
            raise Conflict(
                f"item {number} of study {study.name!r}, {shorten(item.prompt, 60)}, has another output of arm "
                f"{arm!r}: replace the item, or leave this output out"
            )
    return [(number, names[arm], *output) for arm, output in item.outputs.items() if names[arm] not in known]


def _plain(prompt: str) -> str:
    """A prompt without what programs for tables change: line ends, and spaces around it."""
    return prompt.replace("\r\n", "\n").strip()


def insert_outputs(connection: sa.Connection, study: Log, outputs: Sequence[Row]) -> None:
    """Store outputs of items that are there: rows (item, arm, kind, content)."""
    columns = "study_id, item, arm, kind, content"
    values = [(study.id, *output) for output in outputs]
    execute_many(connection, f"INSERT INTO outputs ({columns}) VALUES (?, ?, ?, ?, ?)", values)


def write_tags(connection: sa.Connection, study: Log, tags: Mapping[int, Sequence[str]]) -> None:
    """Replace the tags of items, by number."""
    for number, some in tags.items():
        text = "UPDATE items SET tags = ? WHERE study_id = ? AND number = ?"
        execute(connection, text, (pack_tags(some), study.id, number))


def delete_item(connection: sa.Connection, study: Log, number: int) -> None:
    """Remove an item, and remember its number so that no other item gets it."""
    execute(connection, "DELETE FROM outputs WHERE study_id = ? AND item = ?", (study.id, number))
    execute(connection, "DELETE FROM items WHERE study_id = ? AND number = ?", (study.id, number))
    remember_number(connection, study, number)


def remember_number(connection: sa.Connection, study: Log, number: int) -> None:
    """Note the number of an item that is removed, if it is the largest so far; 0 says that there were items."""
    (text,) = rows(connection, SETTINGS, (study.id,))[0]
    settings = json.loads(text)
    if number > settings.get(LAST, -1):
        changed = json.dumps(settings | {LAST: number})
        execute(connection, "UPDATE studies SET settings = ? WHERE id = ?", (changed, study.id))


def last_number(connection: sa.Connection, study: Log) -> int:
    """Return the largest number that an item has or had; 0 if there was none."""
    there: int = rows(connection, "SELECT max(number) FROM items WHERE study_id = ?", (study.id,))[0][0] or 0
    removed: int = json.loads(rows(connection, SETTINGS, (study.id,))[0][0]).get(LAST, 0)
    return max(there, removed)


def refuse_if_fixed(connection: sa.Connection, study: Log, what: str) -> None:
    """Raise `Conflict` if a study counts the answers about exactly its items, and has asked its first question."""
    history = study.current(connection)
    if history.goal.about == THESE_ANSWERS and history.left and history.items is not None:
        raise Conflict(
            f"{what}: study {study.name!r} counts the answers about exactly the {history.items.size} items that it had "
            "at its first question; create another study, or one about new items"
        )


def note_items(connection: sa.Connection, study: Log) -> None:
    """Write to the log which items questions may be about now, if that has changed since the first question."""
    from .items import find_item_set

    history = study.current(connection)
    if not history.left or history.items is None:
        return
    found = find_item_set(connection, study)
    if (found.items, found.ready) != (history.items.items, history.items.ready):
        study.write_event(connection, "items", found.as_note())


def no_item(study: Log, number: int) -> NotFound:
    """Return the error for a number that no item has."""
    return NotFound(f"study {study.name!r} has no item {number}: it may have been removed")


def pack_tags(tags: Iterable[str]) -> str | None:
    """Return tags as the database has them: JSON, or None if there are none."""
    return json.dumps(list(tags), ensure_ascii=False) if tags else None


@lru_cache(1 << 12)  # many items have the same tags
def read_tags(stored: str | None) -> tuple[str, ...]:
    """Return the tags that the database has."""
    return tuple(json.loads(stored)) if stored else ()


@lru_cache(1 << 14)  # voters see the same items
def item_in(note: str) -> int | None:
    """Return the item of a question by the note of its event."""
    number: int | None = json.loads(note).get("item")
    return number


def has_any(connection: sa.Connection, study_id: int) -> bool:
    """Return whether a study has items."""
    return bool(rows(connection, "SELECT 1 FROM items WHERE study_id = ? LIMIT 1", (study_id,)))


def had_any(connection: sa.Connection, study_id: int) -> bool:
    """Return whether a study has items, or had some that were removed."""
    return has_any(connection, study_id) or LAST in json.loads(rows(connection, SETTINGS, (study_id,))[0][0])


def lost_all(connection: sa.Connection, study_id: int) -> bool:
    """Return whether a study had items, and all were removed."""
    text = "SELECT settings FROM studies WHERE id = ? AND NOT EXISTS (SELECT 1 FROM items WHERE study_id = ?)"
    found = rows(connection, text, (study_id, study_id))
    return bool(found) and LAST in json.loads(found[0][0])


def marks(values: Sequence[object]) -> str:
    """Return a question mark for each value."""
    return ", ".join("?" * len(values))


def read(study: Log, text: str, values: Sequence[object]) -> list[Row]:
    """Return what a statement finds, on the connection that also writes."""
    with study.storage.lock, study.storage.translate_errors():
        return rows(study.storage.connection(), text, values)


def rows(connection: sa.Connection, text: str, values: Sequence[object]) -> list[Row]:
    """Return what a statement finds."""
    return list(execute(connection, text, values).fetchall())


def execute(connection: sa.Connection, text: str, values: Sequence[object]) -> DBAPICursor:
    """Run a statement directly on the driver, which is faster: every question needs a few of these."""
    cursor = connection.connection.cursor()
    cursor.execute(_add_marks(connection, text), values)
    return cursor


def execute_many(connection: sa.Connection, text: str, values: Sequence[Sequence[object]]) -> None:
    """Run a statement for each of these values."""
    connection.connection.cursor().executemany(_add_marks(connection, text), values)


def _add_marks(connection: sa.Connection, text: str) -> str:
    return text if connection.dialect.name == "sqlite" else text.replace("?", "%s")
