"""Looking through the items of a study: search, tags, order, and pages."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from ..checks import check_int
from ..votes.item_files import Item, Output
from .answers import AnswerTable
from .item_results import ItemCounts, answers_by_item, arm_counts, comments_by_item, item_counts, leader_of
from .item_rows import LARGEST, last_number, marks, no_item, pack_tags, read_tags, rows
from .log import Log

Order = Literal["number", "answers", "disagreement", "comments"]
SHOWN = 400  # characters of a prompt in a list


class ItemRow(NamedTuple):
    """An item in a list.

    Attributes:
        number: Its number.
        prompt: The beginning of its prompt.
        tags: Its tags.
        answers: How many answers are about it.
        leader: The arm with the most wins minus losses on it; None if there are no answers, or several are level.
        level: Whether several arms are level at the top.
        disagreement: The share of comparable pairs of answers that contradict each other; None if there are none.
        contradictions: How many contradict each other …
        compared: … of how many.
        comment_count: How many answers about it have a comment.
    """

    number: int
    prompt: str
    tags: tuple[str, ...]
    answers: int
    leader: str | None
    level: bool
    disagreement: float | None
    contradictions: int
    compared: int
    comment_count: int


class ItemPage(NamedTuple):
    """Some of the items that were looked for.

    Attributes:
        items: Those on this page.
        total: How many were found.
        page: The number of the page, from 1.
        pages: How many pages there are, at least 1.
    """

    items: list[ItemRow]
    total: int
    page: int
    pages: int


class Neighbors(NamedTuple):
    """The numbers of the items before and after one; None at the ends."""

    previous: int | None
    next: int | None


class RemovedItems(NamedTuple):
    """Items with answers that were removed or replaced.

    Attributes:
        items: How many.
        answers: How many answers are about them.
    """

    items: int
    answers: int


def find_items(study: Log, search: str = "", tag: str | None = None) -> list[int]:
    """Return the numbers of the items whose prompt contains a text and that have a tag, in order.

    The letters a to z match in either case, all others as they are written: in both kinds of databases alike.

    Args:
        study: The study.
        search: A part of the prompt; empty for all.
        tag: A tag, exactly; None for all.
    """
    with study.storage.read_connection() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        inside = "instr({}, ?) > 0" if is_sqlite else "strpos({}, ?) > 0"
        columns = "number" if tag is None else "number, tags"
        text, given = f"SELECT {columns} FROM items WHERE study_id = ?", list[object]([study.id])
        if search:
            text += " AND " + inside.format("lower(prompt)" if is_sqlite else 'lower(prompt COLLATE "C")')
            given.append(_lower(search))
        if (
            tag is not None
        ):  # likely in the list, as it is written there; what is in quotes may be a part of another tag
            text += " AND " + inside.format("tags")
            given.append((pack_tags([tag]) or "")[1:-1])
        found = rows(connection, f"{text} ORDER BY number", given)
    return [row[0] for row in found if tag is None or tag in read_tags(row[1])]


def _lower(text: str) -> str:
    """Text with small letters a to z, and all other letters as they are."""
    return "".join(one.lower() if one.isascii() else one for one in text.replace("\x00", ""))


def browse(
    study: Log,
    table: AnswerTable,
    *,
    search: str = "",
    tag: str | None = None,
    order: Order = "number",
    page: int = 1,
    limit: int = 50,
    counts: Callable[[], ItemCounts] | None = None,
) -> ItemPage:
    """Return one page of the items that were looked for, with what the answers say about them.

    Args:
        study: The study.
        table: Its answers.
        search: A part of the prompt, see `find_items`.
        tag: A tag.
        order: `number`; `answers` or `comments`, the most first; or `disagreement`, where voters disagree most first.
        page: From 1; after the last page, the last one is returned.
        limit: How many items a page has.
        counts: Returns `item_counts(table)`, if that is known already.
    """
    page, limit = check_int("page", page, 1, LARGEST), check_int("limit", limit, 1, 500)
    found = np.array(find_items(study, search, tag), np.int64)
    if order == "answers":
        found = found[np.argsort(-_at(answers_by_item(table), found), kind="stable")]
    elif order == "comments":
        found = found[np.argsort(-_at(comments_by_item(table), found), kind="stable")]
    elif order == "disagreement":
        known = item_counts(table) if counts is None else counts()
        bound = np.full(int(known.numbers.max(initial=0)) + 1, -1.0)
        bound[known.numbers] = known.bound
        found = found[np.argsort(-_at(bound, found, -1.0), kind="stable")]
    pages = max(1, -(-len(found) // limit))
    page = min(page, pages)
    chosen = found[(page - 1) * limit : page * limit].tolist()
    return ItemPage(rows_of(study, table, chosen), len(found), page, pages)


def _at(values: np.ndarray, numbers: np.ndarray, otherwise: float = 0) -> np.ndarray:
    """The values of these items, by number."""
    inside = numbers < len(values)
    return np.where(inside, values[np.where(inside, numbers, 0)] if len(values) else otherwise, otherwise)


def rows_of(study: Log, table: AnswerTable, numbers: Sequence[int]) -> list[ItemRow]:
    """Return these items as a list shows them, in this order, without those that were removed meanwhile."""
    if not numbers:
        return []
    text = f"SELECT number, substr(prompt, 1, {SHOWN}), tags FROM items WHERE study_id = ? AND number IN "
    with study.storage.read_connection() as connection:
        there = rows(connection, f"{text}({marks(numbers)})", (study.id, *numbers))
    known = {number: (prompt, read_tags(tags)) for number, prompt, tags in there}
    counts, arms = item_counts(table, numbers), arm_counts(table, numbers)
    comments = _at(comments_by_item(table), np.array(numbers)).tolist()
    return [
        _row(number, *known[number], counts, *leader_of(arms[number]), comments[at])
        for at, number in enumerate(numbers)
        if number in known
    ]


def _row(
    number: int, prompt: str, tags: tuple[str, ...], counts: ItemCounts, leader: str | None, level: bool, comments: int
) -> ItemRow:
    at = counts.place(number)
    if at is None:
        return ItemRow(number, prompt, tags, 0, leader, level, None, 0, 0, comments)
    answers, contradictions, compared = (
        int(one[at]) for one in (counts.answers, counts.contradictions, counts.compared)
    )
    share = contradictions / compared if compared else None
    return ItemRow(number, prompt, tags, answers, leader, level, share, contradictions, compared, comments)


def count_fitting(study: Log, numbers: Sequence[int], most: int) -> int:
    """Return how many of these items, from the first on, have no more characters of outputs; at least one if any."""
    if not numbers:
        return 0
    chosen = f"study_id = ? AND item IN ({marks(numbers)})"
    text = f"SELECT item, sum(length(content)) FROM outputs WHERE {chosen} GROUP BY item"
    with study.storage.read_connection() as connection:
        sizes = {int(item): int(size) for item, size in rows(connection, text, (study.id, *numbers))}
    total = np.cumsum([sizes.get(number, 0) for number in numbers])
    return max(1, int(np.searchsorted(total, most, side="right")))


def items_with(study: Log, numbers: Sequence[int]) -> list[tuple[int, Item]]:
    """Return these items with all their outputs, by number; those that were removed are left out."""
    if not numbers:
        return []
    within, values = f"({marks(numbers)})", (study.id, *numbers)
    with study.storage.read_connection() as connection:
        there = rows(
            connection, f"SELECT number, prompt, tags FROM items WHERE study_id = ? AND number IN {within}", values
        )
        text = f"SELECT item, arm, kind, content FROM outputs WHERE study_id = ? AND item IN {within}"
        outputs = rows(connection, text, values)
    found = {number: Item(prompt, {}, read_tags(tags)) for number, prompt, tags in sorted(there)}
    for number, arm, kind, content in sorted(outputs):
        if number in found:
            found[number].outputs[arm] = Output(kind, content)
    return list(found.items())


def get_item(study: Log, number: int) -> Item:
    """Return an item by its number.

    Raises:
        NotFound: If there is no such item.
    """
    found = items_with(study, [number])
    if not found:
        raise no_item(study, number)
    return found[0][1]


def count_removed_items(study: Log, table: AnswerTable) -> RemovedItems:
    """Return how many answers are about items that are not there any more."""
    counts = answers_by_item(table)
    there = np.array(find_items(study), np.int64)
    counts[there[there < len(counts)]] = 0
    return RemovedItems(int(np.count_nonzero(counts)), int(counts.sum()))


def was_removed(study: Log, number: int) -> bool:
    """Return whether an item had this number and is not there any more."""
    with study.storage.read_connection() as connection:
        last = last_number(connection, study)
        there = rows(connection, "SELECT 1 FROM items WHERE study_id = ? AND number = ?", (study.id, number))
    return 1 <= number <= last and not there


def count_missing_outputs(study: Log) -> dict[str, int]:
    """Return how many items lack an output of each active arm that lacks any, in the order of the study's arms."""
    history = study.history()
    with study.storage.read_connection() as connection:
        items = rows(connection, "SELECT count(*) FROM items WHERE study_id = ?", (study.id,))[0][0]
        found = rows(connection, "SELECT arm, count(*) FROM outputs WHERE study_id = ? GROUP BY arm", (study.id,))
    there: dict[str, int] = dict(found)
    arms = (name for name, active in zip(history.names, history.active) if active)
    return {arm: items - there.get(arm, 0) for arm in arms if there.get(arm, 0) < items}


def neighbors(study: Log, number: int) -> Neighbors:
    """Return the items before and after an item."""
    text = (
        "SELECT (SELECT max(number) FROM items WHERE study_id = ? AND number < ?), "
        "(SELECT min(number) FROM items WHERE study_id = ? AND number > ?)"
    )
    with study.storage.read_connection() as connection:
        return Neighbors(*rows(connection, text, (study.id, number, study.id, number))[0])


def tags_by_item(study: Log) -> dict[int, tuple[str, ...]]:
    """Return the tags of all items that have any, by number."""
    text = "SELECT number, tags FROM items WHERE study_id = ? AND tags IS NOT NULL ORDER BY number"
    with study.storage.read_connection() as connection:
        return {number: read_tags(tags) for number, tags in rows(connection, text, (study.id,))}
