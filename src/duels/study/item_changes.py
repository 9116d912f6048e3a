"""Removing and replacing single items.

Answers stay when their item goes: they were given, and count. What changes is what the next questions can show. No
number is used for two items, so that the log says the truth about what was shown.
"""

from collections.abc import Mapping
from functools import partial

import sqlalchemy as sa

from ..checks import check_int
from ..errors import InvalidInput
from ..storage.storage import Write
from ..votes.item_files import Item, ItemSource, read_items
from .item_rows import (
    LARGEST,
    delete_item,
    execute,
    insert_items,
    insert_outputs,
    item_in,
    last_number,
    names_of_arms,
    no_item,
    note_items,
    refuse_if_fixed,
    rows,
    write_tags,
)
from .log import Log


def remove_item(study: Log, number: int) -> None:
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
    study.storage.write(Write(partial(_remove, study=study, number=number), study.id))


def _remove(connection: sa.Connection, *, study: Log, number: int) -> None:
    refuse_if_fixed(connection, study, "the item cannot be removed")
    if not rows(connection, "SELECT 1 FROM items WHERE study_id = ? AND number = ?", (study.id, number)):
        raise no_item(study, number)
    delete_item(connection, study, number)
    note_items(connection, study)


def replace_item(study: Log, number: int, item: Item | Mapping[str, object] | ItemSource) -> int:
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
    replacing = partial(_replace, study=study, number=number, item=found[0], seen=seen, was_shown=was_shown)
    return study.storage.write(Write(replacing, study.id))


def _replace(connection: sa.Connection, *, study: Log, number: int, item: Item, seen: int, was_shown: bool) -> int:
    study.storage.flush(connection)
    key = (study.id, number)
    there = rows(connection, "SELECT prompt FROM items WHERE study_id = ? AND number = ?", key)
    if not there:
        raise no_item(study, number)
    names = names_of_arms(connection, study, [item])
    shown = sorted((names[arm], *output) for arm, output in item.outputs.items())
    outputs = rows(connection, "SELECT arm, kind, content FROM outputs WHERE study_id = ? AND item = ?", key)
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


def _last_event(study: Log) -> int:
    with study.storage.lock, study.storage.translate_errors():
        return study.storage.last_seq(study.storage.connection(), study.id)


def _shown(study: Log, number: int, after: int, last: int) -> bool:
    with study.storage.read_connection() as connection:
        return _shown_in(connection, study.id, number, after, last)


def _shown_in(connection: sa.Connection, study_id: int, number: int, after: int, last: int) -> bool:
    """Whether a question among these events was about an item."""
    text = (
        "SELECT note FROM events WHERE study_id = ? AND seq > ? AND seq <= ? AND kind = 'ask' "
        "AND (note LIKE ? OR note LIKE ?) LIMIT 1000"
    )
    likely = (f'%"item": {number}}}%', f'%"item": {number},%')
    return any(item_in(note) == number for (note,) in rows(connection, text, (study_id, after, last, *likely)))
