"""The items of a study: prompts, and the outputs of its arms for them.

A duel of a study with items shows one item's two outputs; the note of its event says which, as `{"item": number}`.
"""

import json
import random
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import sqlalchemy as sa

from ..checks import check_int
from ..errors import InvalidInput, LackingOutputs
from ..storage.storage import Write
from ..votes.item_files import KINDS, AddedItems, Item, ItemSource, Output, read_items
from .about import THESE_ANSWERS
from .asked_items import ItemSet
from .duels import Duel, DuelItem
from .item_changes import remove_item, replace_item
from .item_rows import (
    LARGEST,
    SETTINGS,
    execute,
    had_any,
    has_any,
    insert_items,
    insert_outputs,
    item_in,
    last_number,
    marks,
    match_items,
    names_of_arms,
    note_items,
    read,
    read_tags,
    refuse_if_fixed,
    remember_number,
    rows,
    write_tags,
)
from .log import Log

__all__ = [
    "KINDS",
    "AddedItems",
    "Item",
    "Output",
    "add_items",
    "allow_scripts",
    "can_show",
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
NUMBERS = "SELECT number FROM items WHERE study_id = ?"
OUTPUTS = "SELECT arm, count(*) FROM outputs WHERE study_id = ? GROUP BY arm"


def add_items(study: Log, items: ItemSource) -> AddedItems:
    """Add items to a study: all of them or, after an error, none.

    A prompt that the study has is not added again: its item gets the outputs that it lacks, as of an arm that was added
    later, and further tags. These may be of a single arm. If several items have the same prompt, the first in the
    source is the first in the study, and so on.

    Numbers continue from the last item. The number of an item that was removed is not used again.

    Args:
        study: The study.
        items: Anything that `read_items` reads.

    Returns:
        How many items were added, and how many outputs to items that were there.

    Raises:
        Conflict: If the study is about exactly the items that it had at its first question, and there are others; or if
            an item has another output of an arm.
        InvalidInput: If they cannot be read, or have outputs of arms that the study does not have.
    """
    return study.storage.write(Write(partial(_merge_items, study=study, items=read_items(items, fewest=1)), study.id))


def _merge_items(connection: sa.Connection, *, study: Log, items: Sequence[Item]) -> AddedItems:
    names = names_of_arms(connection, study, items)
    new, more, tags = match_items(connection, study, items, names)
    if new:
        refuse_if_fixed(connection, study, "items cannot be added")
        insert_items(connection, study, new, names, last_number(connection, study) + 1)
    insert_outputs(connection, study, more)
    write_tags(connection, study, tags)
    if new or more:
        note_items(connection, study)
    return AddedItems(len(new), len(more))


def append_items(study: Log, items: Sequence[Item]) -> int:
    """Add items, also with prompts that the study has; returns how many."""
    return study.storage.write(Write(partial(_append_items, study=study, items=items), study.id))


def _append_items(connection: sa.Connection, *, study: Log, items: Sequence[Item]) -> int:
    refuse_if_fixed(connection, study, "items cannot be added")
    names = names_of_arms(connection, study, items)
    insert_items(connection, study, items, names, last_number(connection, study) + 1)
    note_items(connection, study)
    return len(items)


def store_items(study: Log, items: Sequence[Item]) -> bool:
    """Add items to a study that has none; returns whether they were added. Outputs may be missing, see `add_output`."""
    return study.storage.write(Write(partial(_store_items, study=study, items=items), study.id))


def _store_items(connection: sa.Connection, *, study: Log, items: Sequence[Item]) -> bool:
    return not has_any(connection, study.id) and bool(_append_items(connection, study=study, items=items))


class Lacking(NamedTuple):
    """An output that a study does not have."""

    item: int
    arm: str
    prompt: str


def find_lacking(study: Log) -> list[Lacking]:
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
    study.current(connection)
    if not rows(connection, "SELECT 1 FROM outputs WHERE study_id = ? AND item = ? AND arm = ?", key):
        columns = "study_id, item, arm, kind, content"
        execute(connection, f"INSERT INTO outputs ({columns}) VALUES (?, ?, ?, ?, ?)", (*key, *output))
        note_items(connection, study)


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
    return _list_items(study, after, limit, None)


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
    found = _list_items(study, number - 1, 1, None if arms is None else list(arms))
    if not found or found[0][0] != number:
        raise InvalidInput(f"study {study.name!r} has no item {number}: see list_items for those it has")
    return found[0][1]


def _list_items(study: Log, after: int, limit: int, arms: Sequence[str] | None) -> list[tuple[int, Item]]:
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


def with_items(study: Log, duels: list[Duel]) -> list[Duel]:
    """Return duels with the prompts and outputs that they are about, if the study has items."""
    return [duel if duel.item is None else _with_item(study, duel, duel.item.number) for duel in duels]


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
    had_questions = bool(study.current(connection).left)
    last = last_number(connection, study)
    if last:
        remember_number(connection, study, last if had_questions else 0)  # without questions, numbers can begin again
    execute(connection, "DELETE FROM outputs WHERE study_id = ?", (study.id,))
    removed = int(execute(connection, "DELETE FROM items WHERE study_id = ?", (study.id,)).rowcount)
    note_items(connection, study)
    return removed


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


def find_item_set(connection: sa.Connection, study: Log) -> ItemSet:
    """Return the items that questions may be about now, and the active arms that have outputs for all of them.

    Raises:
        Conflict: If the first question cannot be asked: outputs are missing.
    """
    history = study.current(connection)
    numbers = tuple(row[0] for row in rows(connection, f"{NUMBERS} ORDER BY number", (study.id,)))
    if not numbers:
        return ItemSet((), frozenset())
    counts = {arm: count for arm, count in rows(connection, OUTPUTS, (study.id,))}  # noqa: C416  # for its type
    ready = frozenset(arm for arm, name in enumerate(history.names) if counts.get(name, 0) == len(numbers))
    lacking = [arm for arm, active in enumerate(history.active) if active and arm not in ready]
    able = [arm for arm, active in enumerate(history.active) if active and arm in ready]
    if not history.left and lacking and (len(able) < 2 or history.goal.about == THESE_ANSWERS):
        raise _refuse_lacking(connection, study, history.names[lacking[0]], numbers)
    return ItemSet(numbers, ready)


def _refuse_lacking(connection: sa.Connection, study: Log, arm: str, numbers: Sequence[int]) -> LackingOutputs:
    without = sorted(set(numbers) - _with_both(connection, study.id, [arm]))
    return LackingOutputs(
        f"item {without[0]} of study {study.name!r} has no output of arm {arm!r}: arms are compared on the same items; "
        f"add its outputs ({len(without):,} are missing), or retire the arm"
    )


def draw_shared_item(connection: sa.Connection, study_id: int, arms: Sequence[str], luck: random.Random) -> int | None:
    """Return a random item that has outputs of all these arms; None if there is none."""
    fitting = sorted(_with_both(connection, study_id, sorted(set(arms))))
    return luck.choice(fitting) if fitting else None


def can_show(connection: sa.Connection, study_id: int, left: str, right: str, number: int | None) -> bool:
    """Return whether an item still has outputs of both arms; without an item, whether the study never had items."""
    if number is None:
        return not had_any(connection, study_id)
    return bool(_with_both(connection, study_id, sorted({left, right}), [number]))


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
