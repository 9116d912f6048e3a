"""Items in the database: statements, numbers, and how items are stored.

The items of a study: prompts, and the outputs of its arms for them.

A duel of a study with items shows one item's two outputs; the note of its event says which, as `{"item": number}`.

Removing and replacing single items.

Answers stay when their item goes: they were given, and count. What changes is what the next questions can show. No
number is used for two items, so that the log says the truth about what was shown.
"""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from ..checks import check_int
from ..errors import Conflict, InvalidInput, LackingOutputs, NotFound, shorten
from ..storage.statements import Row, execute, execute_many, fetch_rows, join_marks
from ..votes.item_tables import join_names
from ..votes.items import KINDS, AddedItems, Item, ItemSource, Output, read_items
from ..votes.names import place_of
from .base import EventLog
from .duels import Duel, DuelItem
from .state.item_schedule import ItemSet
from .stats.about import THESE_ANSWERS

if TYPE_CHECKING:
    from .event_study import EventStudy

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


LARGEST = (1 << 31) - 1  # the largest number that the database can store
SETTINGS = "SELECT settings FROM studies WHERE id = ?"
PROMPTS = "SELECT number, prompt, tags FROM items WHERE study_id = ? ORDER BY number"
LAST = "last_item"  # the setting with the largest number of an item that was removed


def names_of_arms(connection: sa.Connection, study: EventLog, items: Sequence[Item]) -> dict[str, str]:
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
    connection: sa.Connection, study: EventLog, items: Sequence[Item], names: Mapping[str, str], start: int
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
    connection: sa.Connection, study: EventLog, items: Sequence[Item], names: Mapping[str, str]
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
    for number, prompt, tags in fetch_rows(connection, PROMPTS, (study.id,)):
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
    connection: sa.Connection, study: EventLog, number: int, item: Item, names: Mapping[str, str]
) -> list[Row]:
    """The outputs of an item that the one with this number does not have yet."""
    known: dict[str, str] = dict(
        fetch_rows(connection, "SELECT arm, content FROM outputs WHERE study_id = ? AND item = ?", (study.id, number))
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


def insert_outputs(connection: sa.Connection, study: EventLog, outputs: Sequence[Row]) -> None:
    """Store outputs of items that are there: rows (item, arm, kind, content)."""
    columns = "study_id, item, arm, kind, content"
    values = [(study.id, *output) for output in outputs]
    execute_many(connection, f"INSERT INTO outputs ({columns}) VALUES (?, ?, ?, ?, ?)", values)


def write_tags(connection: sa.Connection, study: EventLog, tags: Mapping[int, Sequence[str]]) -> None:
    """Replace the tags of items, by number."""
    for number, some in tags.items():
        text = "UPDATE items SET tags = ? WHERE study_id = ? AND number = ?"
        execute(connection, text, (pack_tags(some), study.id, number))


def delete_item(connection: sa.Connection, study: EventLog, number: int) -> None:
    """Remove an item, and remember its number so that no other item gets it."""
    execute(connection, "DELETE FROM outputs WHERE study_id = ? AND item = ?", (study.id, number))
    execute(connection, "DELETE FROM items WHERE study_id = ? AND number = ?", (study.id, number))
    remember_number(connection, study, number)


def remember_number(connection: sa.Connection, study: EventLog, number: int) -> None:
    """Note the number of an item that is removed, if it is the largest so far; 0 says that there were items."""
    (text,) = fetch_rows(connection, SETTINGS, (study.id,))[0]
    settings = json.loads(text)
    if number > settings.get(LAST, -1):
        changed = json.dumps(settings | {LAST: number})
        execute(connection, "UPDATE studies SET settings = ? WHERE id = ?", (changed, study.id))


def last_number(connection: sa.Connection, study: EventLog) -> int:
    """Return the largest number that an item has or had; 0 if there was none."""
    there: int = fetch_rows(connection, "SELECT max(number) FROM items WHERE study_id = ?", (study.id,))[0][0] or 0
    removed: int = json.loads(fetch_rows(connection, SETTINGS, (study.id,))[0][0]).get(LAST, 0)
    return max(there, removed)


def refuse_if_fixed(connection: sa.Connection, study: EventLog, what: str) -> None:
    """Raise `Conflict` if a study counts the answers about exactly its items, and has asked its first question."""
    history = study.current(connection)
    if history.goal.about == THESE_ANSWERS and history.left and history.items is not None:
        raise Conflict(
            f"{what}: study {study.name!r} counts the answers about exactly the {history.items.size} items that it had "
            "at its first question; create another study, or one about new items"
        )


def note_items(connection: sa.Connection, study: EventLog) -> None:
    """Write to the log which items questions may be about now, if that has changed since the first question."""

    history = study.current(connection)
    if not history.left or history.items is None:
        return
    found = find_item_set(connection, study)
    if (found.items, found.ready) != (history.items.items, history.items.ready):
        study.append_event(history, "items", note=json.dumps(found.as_note(), ensure_ascii=False))


def no_item(study: EventLog, number: int) -> NotFound:
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
    return bool(fetch_rows(connection, "SELECT 1 FROM items WHERE study_id = ? LIMIT 1", (study_id,)))


def had_any(connection: sa.Connection, study_id: int) -> bool:
    """Return whether a study has items, or had some that were removed."""
    return has_any(connection, study_id) or LAST in json.loads(fetch_rows(connection, SETTINGS, (study_id,))[0][0])


def lost_all(connection: sa.Connection, study_id: int) -> bool:
    """Return whether a study had items, and all were removed."""
    text = "SELECT settings FROM studies WHERE id = ? AND NOT EXISTS (SELECT 1 FROM items WHERE study_id = ?)"
    found = fetch_rows(connection, text, (study_id, study_id))
    return bool(found) and LAST in json.loads(found[0][0])


def _read_rows(study: "EventStudy", text: str, values: Sequence[object]) -> list[Row]:
    """Return what a statement finds, on the connection that also writes."""
    with study._log.storage.lock, study._log.storage.translate_errors():
        return fetch_rows(study._log.storage.connection(), text, values)


NUMBERS = "SELECT number FROM items WHERE study_id = ?"
OUTPUTS = "SELECT arm, count(*) FROM outputs WHERE study_id = ? GROUP BY arm"


def add_items(study: "EventStudy", items: ItemSource) -> AddedItems:
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
    return study._log.write(partial(_merge_items, study=study._log, items=read_items(items, fewest=1)))


def _merge_items(connection: sa.Connection, *, study: EventLog, items: Sequence[Item]) -> AddedItems:
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


def append_items(study: "EventStudy", items: Sequence[Item]) -> int:
    """Add items, also with prompts that the study has; returns how many."""
    return study._log.write(partial(_append_items, study=study._log, items=items))


def _append_items(connection: sa.Connection, *, study: EventLog, items: Sequence[Item]) -> int:
    refuse_if_fixed(connection, study, "items cannot be added")
    names = names_of_arms(connection, study, items)
    insert_items(connection, study, items, names, last_number(connection, study) + 1)
    note_items(connection, study)
    return len(items)


def store_items(study: "EventStudy", items: Sequence[Item]) -> bool:
    """Add items to a study that has none; returns whether they were added. Outputs may be missing, see `add_output`."""
    return study._log.write(partial(_store_items, study=study._log, items=items))


def _store_items(connection: sa.Connection, *, study: EventLog, items: Sequence[Item]) -> bool:
    return not has_any(connection, study.id) and bool(_append_items(connection, study=study, items=items))


class Lacking(NamedTuple):
    """An output that a study does not have."""

    item: int
    arm: str
    prompt: str


def find_lacking(study: "EventStudy") -> list[Lacking]:
    """Return the outputs of active arms that a study's items do not have, by item."""
    prompts = _read_rows(study, "SELECT number, prompt FROM items WHERE study_id = ? ORDER BY number", (study._log.id,))
    there = {*_read_rows(study, "SELECT item, arm FROM outputs WHERE study_id = ?", (study._log.id,))}
    history = study._log.history()
    arms = [name for name, active in zip(history.names, history.active) if active]
    return [Lacking(number, arm, prompt) for number, prompt in prompts for arm in arms if (number, arm) not in there]


def add_output(study: "EventStudy", item: int, arm: str, output: Output) -> None:
    """Add the output of an arm for an item; if there is one already, it stays."""
    study._log.write(partial(_add_output, study=study._log, item=item, arm=arm, output=output))


def _add_output(connection: sa.Connection, *, study: EventLog, item: int, arm: str, output: Output) -> None:
    key = (study.id, item, arm)
    study.current(connection)
    if not fetch_rows(connection, "SELECT 1 FROM outputs WHERE study_id = ? AND item = ? AND arm = ?", key):
        columns = "study_id, item, arm, kind, content"
        execute(connection, f"INSERT INTO outputs ({columns}) VALUES (?, ?, ?, ?, ?)", (*key, *output))
        note_items(connection, study)


def count_items(study: "EventStudy") -> int:
    """Return how many items a study has."""
    return int(_read_rows(study, "SELECT count(*) FROM items WHERE study_id = ?", (study._log.id,))[0][0])


def list_items(study: "EventStudy", after: int = 0, limit: int = 50) -> list[tuple[int, Item]]:
    """Return items with their numbers.

    Args:
        study: The study.
        after: Start with the item after this number; the first number is 1.
        limit: How many to return, 1,000 at most.
    """
    after, limit = check_int("after", after, 0, LARGEST), check_int("limit", limit, 1, 1_000)
    return _list_items(study, after, limit, None)


def item_of(study: "EventStudy", number: int, arms: Iterable[str] | None = None) -> Item:
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


def _list_items(study: "EventStudy", after: int, limit: int, arms: Sequence[str] | None) -> list[tuple[int, Item]]:
    key, only = study._log.id, "" if arms is None else f" AND arm IN ({join_marks(arms)})"
    prompts = "SELECT number, prompt, tags FROM items WHERE study_id = ? AND number > ? ORDER BY number LIMIT ?"
    outputs = f"SELECT item, arm, kind, content FROM outputs WHERE study_id = ? AND item BETWEEN ? AND ?{only}"
    with study._log.storage.lock:
        there = _read_rows(study, prompts, (key, after, limit))
        found = {number: Item(prompt, {}, read_tags(tags)) for number, prompt, tags in there}
        if found and (arms is None or arms):
            of_these = _read_rows(study, outputs, (key, min(found), max(found), *(arms or ())))
            for number, arm, kind, content in sorted(of_these):
                found[number].outputs[arm] = Output(kind, content)
    return list(found.items())


def with_items(study: "EventStudy", duels: list[Duel]) -> list[Duel]:
    """Return duels with the prompts and outputs that they are about, if the study has items."""
    return [duel if duel.item is None else _with_item(study, duel, duel.item.number) for duel in duels]


def _with_item(study: "EventStudy", duel: Duel, number: int) -> Duel:
    arms = (duel.left, duel.right)
    try:
        item = item_of(study, number, arms)
    except InvalidInput:  # it was removed
        return duel._replace(item=DuelItem(number))
    return duel._replace(item=DuelItem(number, item.prompt, *map(item.outputs.get, arms)))


def clear_items(study: "EventStudy") -> int:
    """Remove all items of a study, so that what past duels have shown can no longer be looked at.

    Returns:
        How many items there were.
    """
    return study._log.write(partial(_clear_items, study=study._log))


def _clear_items(connection: sa.Connection, *, study: EventLog) -> int:
    had_questions = bool(study.current(connection).left)
    last = last_number(connection, study)
    if last:
        remember_number(connection, study, last if had_questions else 0)  # without questions, numbers can begin again
    execute(connection, "DELETE FROM outputs WHERE study_id = ?", (study.id,))
    removed = int(execute(connection, "DELETE FROM items WHERE study_id = ?", (study.id,)).rowcount)
    note_items(connection, study)
    return removed


def allow_scripts(study: "EventStudy", allowed: bool) -> None:
    """Set whether scripts in HTML outputs run when people look at them. A new study does not allow it."""
    study._log.write(partial(_allow_scripts, study=study._log, allowed=allowed))


def _allow_scripts(connection: sa.Connection, *, study: EventLog, allowed: bool) -> None:
    (settings,) = fetch_rows(connection, SETTINGS, (study.id,))[0]
    changed = json.dumps(json.loads(settings) | {"scripts": allowed})
    execute(connection, "UPDATE studies SET settings = ? WHERE id = ?", (changed, study.id))


def scripts_allowed(study: "EventStudy") -> bool:
    """Return whether scripts in HTML outputs run, as the database says now."""
    return bool(json.loads(_read_rows(study, SETTINGS, (study._log.id,))[0][0]).get("scripts"))


def find_item_set(connection: sa.Connection, study: EventLog) -> ItemSet:
    """Return the items that questions may be about now, and the active arms that have outputs for all of them.

    Raises:
        Conflict: If the first question cannot be asked: outputs are missing.
    """
    history = study.current(connection)
    numbers = tuple(row[0] for row in fetch_rows(connection, f"{NUMBERS} ORDER BY number", (study.id,)))
    if not numbers:
        return ItemSet((), frozenset())
    counts = {arm: count for arm, count in fetch_rows(connection, OUTPUTS, (study.id,))}  # noqa: C416  # for its type
    ready = frozenset(arm for arm, name in enumerate(history.names) if counts.get(name, 0) == len(numbers))
    lacking = [arm for arm, active in enumerate(history.active) if active and arm not in ready]
    able = [arm for arm, active in enumerate(history.active) if active and arm in ready]
    if not history.left and lacking and (len(able) < 2 or history.goal.about == THESE_ANSWERS):
        raise _refuse_lacking(connection, study, history.names[lacking[0]], numbers)
    return ItemSet(numbers, ready)


def _refuse_lacking(connection: sa.Connection, study: EventLog, arm: str, numbers: Sequence[int]) -> LackingOutputs:
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
    only = "" if among is None else f" AND item IN ({join_marks(among)})"
    text = f"SELECT item FROM outputs WHERE study_id = ?{only} AND arm IN ({join_marks(arms)}) GROUP BY item"
    found = fetch_rows(connection, f"{text} HAVING count(*) = ?", (study_id, *(among or ()), *arms, len(arms)))
    return {number for (number,) in found}


def remove_item(study: "EventStudy", number: int) -> None:
    """Remove an item. Its answers are kept and count; nobody is asked about it again.

    After the first question this voids the verdict's promise: whoever knows results could remove what speaks against a
    favorite. A voter who has an open question about it gets another one. Its number is not used again.

    Args:
        study: The study.
        number: The item's number.

    Raises:
        NotFound: If there is no such item.
        Conflict: If the study counts the answers about exactly its items, and has asked its first question.
    """
    number = check_int("number", number, 1, LARGEST)
    study._log.write(partial(_remove, study=study._log, number=number))


def _remove(connection: sa.Connection, *, study: EventLog, number: int) -> None:
    refuse_if_fixed(connection, study, "the item cannot be removed")
    if not fetch_rows(connection, "SELECT 1 FROM items WHERE study_id = ? AND number = ?", (study.id, number)):
        raise no_item(study, number)
    delete_item(connection, study, number)
    note_items(connection, study)


def replace_item(study: "EventStudy", number: int, item: Item | Mapping[str, object] | ItemSource) -> int:
    """Replace an item: its prompt, its tags and all its outputs.

    Answers about an item were given about what was shown. So if anybody was asked about it, the replacement gets a
    number of its own, after all others, and the old item is removed, see `remove_item`. Otherwise it keeps the number.
    It also does if only its tags change, which voters never see, or if it only has outputs of further arms; then its
    answers stay about it.

    Args:
        study: The study.
        number: The item's number.
        item: The replacement: an `Item`, a dict, or anything that `read_items` reads and that holds one item.

    Returns:
        The number of the replacement.

    Raises:
        NotFound: If there is no such item.
        InvalidInput: If the replacement cannot be used, or is not exactly one item.
        Conflict: If the study is about exactly its items, and has asked its first question, and more than tags change.
    """
    number = check_int("number", number, 1, LARGEST)
    found = read_items([item] if isinstance(item, Item | Mapping) else item)
    if len(found) != 1:
        raise InvalidInput(f"found {len(found):,} items, expected one: it replaces item {number}")
    seen = _last_event(study)
    was_shown = _shown(study, number, 0, seen)  # reads the whole log, so not inside the transaction
    replacing = partial(_replace, study=study._log, number=number, item=found[0], seen=seen, was_shown=was_shown)
    return study._log.write(replacing)


def _replace(connection: sa.Connection, *, study: EventLog, number: int, item: Item, seen: int, was_shown: bool) -> int:
    study.storage.flush(connection)
    key = (study.id, number)
    there = fetch_rows(connection, "SELECT prompt FROM items WHERE study_id = ? AND number = ?", key)
    if not there:
        raise no_item(study, number)
    names = names_of_arms(connection, study, [item])
    shown = sorted((names[arm], *output) for arm, output in item.outputs.items())
    outputs = fetch_rows(connection, "SELECT arm, kind, content FROM outputs WHERE study_id = ? AND item = ?", key)
    if there[0][0] == item.prompt and sorted(outputs) == shown:
        write_tags(connection, study, {number: item.tags})
        return number
    if there[0][0] == item.prompt and set(outputs) < set(shown):
        insert_outputs(connection, study, [(number, *output) for output in shown if output not in outputs])
        write_tags(connection, study, {number: item.tags})
        note_items(connection, study)
        return number
    refuse_if_fixed(connection, study, "the item cannot be replaced")
    if was_shown or _shown_in(connection, study.id, number, seen, LARGEST):
        delete_item(connection, study, number)
        number = last_number(connection, study) + 1
    else:
        execute(connection, "DELETE FROM outputs WHERE study_id = ? AND item = ?", key)
        execute(connection, "DELETE FROM items WHERE study_id = ? AND number = ?", key)
    insert_items(connection, study, [item], names, number)
    note_items(connection, study)
    return number


def _last_event(study: "EventStudy") -> int:
    with study._log.storage.lock, study._log.storage.translate_errors():
        return study._log.storage.last_seq(study._log.storage.connection(), study._log.id)


def _shown(study: "EventStudy", number: int, after: int, last: int) -> bool:
    with study._log.storage.read_connection() as connection:
        return _shown_in(connection, study._log.id, number, after, last)


def _shown_in(connection: sa.Connection, study_id: int, number: int, after: int, last: int) -> bool:
    """Whether a question among these events was about an item."""
    text = (
        "SELECT note FROM events WHERE study_id = ? AND seq > ? AND seq <= ? AND kind = 'ask' "
        "AND (note LIKE ? OR note LIKE ?) LIMIT 1000"
    )
    likely = (f'%"item": {number}}}%', f'%"item": {number},%')
    return any(item_in(note) == number for (note,) in fetch_rows(connection, text, (study_id, after, last, *likely)))
