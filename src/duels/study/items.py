"""The items of a study: prompts, and the outputs of its arms for them.

A duel of a study with items shows one item's two outputs; the note of its event says which, as `{"item": number}`.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import sqlalchemy as sa

from ..checks import check_int
from ..errors import Conflict, InvalidInput, NothingToAsk
from ..storage.storage import Write
from ..votes.item_files import KINDS, Item, ItemSource, Output, read_items
from .duels import Duel, DuelItem
from .item_changes import remove_item, replace_item
from .item_rows import (
    LARGEST,
    SETTINGS,
    execute,
    has_any,
    insert_items,
    item_in,
    last_number,
    marks,
    names_of_arms,
    read,
    read_tags,
    refuse_if_fixed,
    remember_number,
    rows,
)
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
    "has_any",
    "item_in",
    "item_of",
    "list_items",
    "read_items",
    "remove_item",
    "replace_item",
    "scripts_allowed",
]
DRAWS = 32  # random items to try before looking at all of them
MOST_MARKS = 500  # values in one statement


def add_items(study: Log, items: ItemSource) -> int:
    """Add items to a study: all of them or, after an error, none.

    Numbers continue from the last item. The number of an item that was removed is not used again.

    Args:
        study: The study.
        items: Anything that `read_items` reads.

    Returns:
        How many items were added.

    Raises:
        Conflict: If the study is about exactly the items that it had at its first question.
        InvalidInput: If they cannot be read, or have outputs of arms that the study does not have.
    """
    return study.storage.write(Write(partial(_add_items, study=study, items=read_items(items)), study.id))


def _add_items(connection: sa.Connection, *, study: Log, items: Sequence[Item]) -> int:
    refuse_if_fixed(connection, study, "items cannot be added")
    names = names_of_arms(connection, study, items)
    insert_items(connection, study, items, names, last_number(connection, study) + 1)
    return len(items)


def store_items(study: Log, items: Sequence[Item]) -> bool:
    """Add items to a study that has none; returns whether they were added. Outputs may be missing, see `add_output`."""
    return study.storage.write(Write(partial(_store_items, study=study, items=items), study.id))


def _store_items(connection: sa.Connection, *, study: Log, items: Sequence[Item]) -> bool:
    return not has_any(connection, study.id) and bool(_add_items(connection, study=study, items=items))


class Lacking(NamedTuple):
    """An output that a study does not have."""

    item: int
    arm: str
    prompt: str


def lacking(study: Log) -> list[Lacking]:
    """Return the outputs of active arms that a study's items do not have, by item."""
    prompts = read(study, "SELECT number, prompt FROM items WHERE study_id = ? ORDER BY number", (study.id,))
    there = {*read(study, "SELECT item, arm FROM outputs WHERE study_id = ?", (study.id,))}
    history = study.history()
    arms = [name for name, active in zip(history.names, history.active) if active]
    return [Lacking(number, arm, prompt) for number, prompt in prompts for arm in arms if (number, arm) not in there]


def add_output(study: Log, item: int, arm: str, output: Output) -> None:
    """Add the output of an arm for an item; if there is one already, it stays."""
    study.storage.write(Write(partial(_add_output, study=study, item=item, arm=arm, output=output), study.id))


def _add_output(connection: sa.Connection, *, study: Log, item: int, arm: str, output: Output) -> None:
    key = (study.id, item, arm)
    if not rows(connection, "SELECT 1 FROM outputs WHERE study_id = ? AND item = ? AND arm = ?", key):
        columns = "study_id, item, arm, kind, content"
        execute(connection, f"INSERT INTO outputs ({columns}) VALUES (?, ?, ?, ?, ?)", (*key, *output))


def count_items(study: Log) -> int:
    """Return how many items a study has."""
    return int(read(study, "SELECT count(*) FROM items WHERE study_id = ?", (study.id,))[0][0])


def list_items(study: Log, after: int = 0, limit: int = 50) -> list[tuple[int, Item]]:
    """Return items with their numbers.

    Args:
        study: The study.
        after: Start with the item after this number; the first number is 1.
        limit: How many to return, 1,000 at most.
    """
    after, limit = check_int("after", after, 0, LARGEST), check_int("limit", limit, 1, 1_000)
    return _listed(study, after, limit, None)


def item_of(study: Log, number: int, arms: Iterable[str] | None = None) -> Item:
    """Return an item by its number.

    Args:
        study: The study.
        number: The item's number.
        arms: Return only the outputs of these arms.

    Raises:
        InvalidInput: If there is no such item.
    """
    number = check_int("number", number, 1, LARGEST)
    found = _listed(study, number - 1, 1, None if arms is None else list(arms))
    if not found or found[0][0] != number:
        raise InvalidInput(f"study {study.name!r} has no item {number}: see list_items for those it has")
    return found[0][1]


def _listed(study: Log, after: int, limit: int, arms: Sequence[str] | None) -> list[tuple[int, Item]]:
    key, only = study.id, "" if arms is None else f" AND arm IN ({marks(arms)})"
    prompts = "SELECT number, prompt, tags FROM items WHERE study_id = ? AND number > ? ORDER BY number LIMIT ?"
    outputs = f"SELECT item, arm, kind, content FROM outputs WHERE study_id = ? AND item BETWEEN ? AND ?{only}"
    with study.storage.lock:
        there = read(study, prompts, (key, after, limit))
        found = {number: Item(prompt, {}, read_tags(tags)) for number, prompt, tags in there}
        if found and (arms is None or arms):
            of_these = read(study, outputs, (key, min(found), max(found), *(arms or ())))
            for number, arm, kind, content in sorted(of_these):
                found[number].outputs[arm] = Output(kind, content)
    return list(found.items())


def count_in(connection: sa.Connection, study_id: int) -> int:
    """Return how many items a study has, inside a transaction."""
    return int(rows(connection, "SELECT count(*) FROM items WHERE study_id = ?", (study_id,))[0][0])


def with_items(study: Log, duels: list[Duel]) -> list[Duel]:
    """Return duels with the prompts and outputs that they are about, if the study has items."""
    numbers = {duel.id: duel.item.number for duel in duels if duel.item is not None}
    if len(numbers) < len(duels) and read(study, "SELECT 1 FROM items WHERE study_id = ? LIMIT 1", (study.id,)):
        numbers |= _items_asked(study, [duel.id for duel in duels if duel.id not in numbers])
    return [_with_item(study, duel, numbers[duel.id]) if duel.id in numbers else duel for duel in duels]


def _items_asked(study: Log, duels: Sequence[int]) -> dict[int, int]:
    """The items of duels, as the notes of their events say."""
    found: dict[int, int] = {}
    for start in range(0, len(duels), MOST_MARKS):
        some = duels[start : start + MOST_MARKS]
        text = f"SELECT duel, note FROM events WHERE study_id = ? AND kind = 'ask' AND duel IN ({marks(some)})"
        asked = read(study, text, (study.id, *some))
        found |= {duel: item for duel, note in asked if note and (item := item_in(note)) is not None}
    return found


def _with_item(study: Log, duel: Duel, number: int) -> Duel:
    arms = (duel.left, duel.right)
    try:
        item = item_of(study, number, arms)
    except InvalidInput:  # it was removed
        return duel._replace(item=DuelItem(number))
    return duel._replace(item=DuelItem(number, item.prompt, *map(item.outputs.get, arms)))


def clear_items(study: Log) -> int:
    """Remove all items of a study, so that what past duels have shown can no longer be looked at.

    Returns:
        How many items there were.
    """
    return study.storage.write(Write(partial(_clear_items, study=study), study.id))


def _clear_items(connection: sa.Connection, *, study: Log) -> int:
    if study.current(connection).left:  # without questions, numbers can begin again
        remember_number(connection, study, last_number(connection, study))
    execute(connection, "DELETE FROM outputs WHERE study_id = ?", (study.id,))
    return int(execute(connection, "DELETE FROM items WHERE study_id = ?", (study.id,)).rowcount)


def allow_scripts(study: Log, allowed: bool) -> None:
    """Set whether scripts in HTML outputs run when people look at them. A new study does not allow it."""
    study.storage.write(Write(partial(_allow_scripts, study=study, allowed=allowed), study.id))


def _allow_scripts(connection: sa.Connection, *, study: Log, allowed: bool) -> None:
    (settings,) = rows(connection, SETTINGS, (study.id,))[0]
    changed = json.dumps(json.loads(settings) | {"scripts": allowed})
    execute(connection, "UPDATE studies SET settings = ? WHERE id = ?", (changed, study.id))


def scripts_allowed(study: Log) -> bool:
    """Return whether scripts in HTML outputs run, as the database says now."""
    return bool(json.loads(read(study, SETTINGS, (study.id,))[0][0]).get("scripts"))


def choose_item(
    connection: sa.Connection, study_id: int, left: str, right: str, seed: int, duel: int, voter: str | None = None
) -> int | None:
    """Choose the item that a duel shows.

    It is one of the items with outputs of both arms that this voter was shown least often, and not the last one again
    if there are others. The seed and the duel's number decide between them, each with the same probability.

    Args:
        connection: The transaction's connection; its events must have been flushed.
        study_id: The study's id.
        left: The arm on the left.
        right: The arm on the right.
        seed: The study's seed.
        duel: The duel's number.
        voter: Who is asked.

    Returns:
        The item's number; None if no item has outputs of both arms.
    """
    spans = (
        "SELECT (SELECT min(number) FROM items WHERE study_id = ?), (SELECT max(number) FROM items WHERE study_id = ?)"
    )
    first: int | None
    first, last = rows(connection, spans, (study_id, study_id))[0]
    if first is None:
        return None
    arms, seen = sorted({left, right}), _seen(connection, study_id, voter)
    *draws, choice = _random(seed, duel)
    # Drawing until an item fits gives each that fits the same chance, and rarely needs to look at all items.
    drawn: list[int] = [first + draw % (last + 1 - first) for draw in draws]
    fitting = _with_both(connection, study_id, arms, sorted({number for number in drawn if number not in seen}))
    chosen = next((number for number in drawn if number in fitting), None)
    if chosen is not None:
        return chosen
    fitting = _with_both(connection, study_id, arms)
    fitting = fitting - set(list(seen)[-1:]) or fitting
    least = min((seen.get(number, 0) for number in fitting), default=0)
    rarest = sorted(number for number in fitting if seen.get(number, 0) == least)
    return rarest[choice % len(rarest)] if rarest else None


def unasked_item(connection: sa.Connection, study: Log, duel: Duel, before: set[int]) -> dict[str, int]:
    """Choose an item that a judge was not asked about yet.

    Args:
        connection: The transaction's connection.
        study: The study.
        duel: The duel.
        before: The items that the judge was asked about, with the same arms.

    Returns:
        The item, for the question's note; nothing if the study has no items.

    Raises:
        NothingToAsk: If the judge was asked about all items that have outputs of both arms.
    """
    if not has_any(connection, study.id):
        return {}
    left = sorted(_with_both(connection, study.id, sorted({duel.left, duel.right})) - before)
    if not left:
        raise NothingToAsk(f"{duel.left!r} and {duel.right!r} were compared on every item that has outputs of both")
    return {"item": left[_random(study.row.seed, duel.id)[0] % len(left)]}


def fixed_items(connection: sa.Connection, study: Log) -> tuple[int, int]:
    """Return the numbers of the first and the last item, before the first question of a study on these items.

    Raises:
        Conflict: If it has no items, or some item has no output of an active arm, or numbers between were removed.
    """
    history = study.current(connection)
    numbers = [row[0] for row in rows(connection, "SELECT number FROM items WHERE study_id = ?", (study.id,))]
    if not numbers:
        raise Conflict(f"study {study.name!r} is about its items, but has none: add them with add_items first")
    if max(numbers) - min(numbers) >= len(numbers):
        raise Conflict(
            f"study {study.name!r} is about exactly its items, which must have consecutive numbers, but some between "
            "were removed: remove all of them with clear_items and add them again"
        )
    for name, active in zip(history.names, history.active):
        lacking = set(numbers) - _with_both(connection, study.id, [name]) if active else set()
        if lacking:
            raise Conflict(
                f"item {min(lacking)} of study {study.name!r} has no output of arm {name!r}: a study on these items "
                f"compares all arms on each of them; items without that output: {len(lacking)}"
            )
    return min(numbers), max(numbers)


def can_show(connection: sa.Connection, study_id: int, left: str, right: str, number: int | None) -> bool:
    """Return whether an item still has outputs of both arms; without an item, whether the study has no items."""
    if number is None:
        return not has_any(connection, study_id)
    return bool(_with_both(connection, study_id, sorted({left, right}), [number]))


def _random(seed: int, duel: int) -> list[int]:
    """DRAWS + 1 numbers below 2⁶⁴ that depend only on the seed and the duel."""
    digest = hashlib.shake_128(f"item of duel {duel}, seed {seed}".encode()).digest(8 * (DRAWS + 1))
    return [int.from_bytes(digest[at : at + 8], "big") for at in range(0, len(digest), 8)]


def _seen(connection: sa.Connection, study_id: int, voter: str | None) -> dict[int, int]:
    """How often a voter was shown each item; the one that was shown last comes last."""
    if voter is None:
        return {}
    text = "SELECT note FROM events WHERE study_id = ? AND voter = ? AND kind = 'ask' AND note IS NOT NULL ORDER BY seq"
    seen: dict[int, int] = {}
    for (note,) in rows(connection, text, (study_id, voter)):
        number = item_in(note)
        if number is not None:
            seen[number] = seen.pop(number, 0) + 1
    return seen


def _with_both(
    connection: sa.Connection, study_id: int, arms: Sequence[str], among: Sequence[int] | None = None
) -> set[int]:
    """The items, of these or of all, that have outputs of all these arms."""
    if among is not None and not among:
        return set()
    only = "" if among is None else f" AND item IN ({marks(among)})"
    text = f"SELECT item FROM outputs WHERE study_id = ?{only} AND arm IN ({marks(arms)}) GROUP BY item"
    found = rows(connection, f"{text} HAVING count(*) = ?", (study_id, *(among or ()), *arms, len(arms)))
    return {number for (number,) in found}
