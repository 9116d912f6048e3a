"""Looking through the items of a study: search, tags, order, and pages."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from ..checks import check_int
from ..votes.item_files import Item, Output
from .answers import AnswerTable
from .item_results import ItemCounts, answers_by_item, arm_counts, item_counts, leader_of
from .item_rows import LARGEST, marks, no_item, read_tags, rows, stored_tags
from .log import Log

Order = Literal["number", "answers", "disagreement"]
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


class Neighbours(NamedTuple):
    """The numbers of the items before and after one; None at the ends."""

    previous: int | None
    next: int | None


def find_items(study: Log, search: str = "", tag: str | None = None) -> list[int]:
    """Return the numbers of the items whose prompt contains a text and that have a tag, in order.

    The letters a to z match in either case, all others as they are written: in both kinds of databases alike.

    Args:
        study: The study.
        search: A part of the prompt; empty for all.
        tag: A tag, exactly; None for all.
    """
    with study.storage.reading() as connection:
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
            given.append((stored_tags([tag]) or "")[1:-1])
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
        order: `number`; `answers`, the most first; or `disagreement`, where voters disagree most first.
        page: From 1; after the last page, the last one is returned.
        limit: How many items a page has.
        counts: Returns `item_counts(table)`, if that is known already.
    """
    page, limit = check_int("page", page, 1, LARGEST), check_int("limit", limit, 1, 500)
    found = np.array(find_items(study, search, tag), np.int64)
    if order == "answers":
        found = found[np.argsort(-_at(answers_by_item(table), found), kind="stable")]
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
    with study.storage.reading() as connection:
        there = rows(connection, f"{text}({marks(numbers)})", (study.id, *numbers))
    known = {number: (prompt, read_tags(tags)) for number, prompt, tags in there}
    counts, arms = item_counts(table, numbers), arm_counts(table, numbers)
    return [_row(number, *known[number], counts, *leader_of(arms[number])) for number in numbers if number in known]


def _row(
    number: int, prompt: str, tags: tuple[str, ...], counts: ItemCounts, leader: str | None, level: bool
) -> ItemRow:
    at = counts.place(number)
    if at is None:
        return ItemRow(number, prompt, tags, 0, leader, level, None, 0, 0)
    answers, contradictions, compared = (
        int(one[at]) for one in (counts.answers, counts.contradictions, counts.compared)
    )
    share = contradictions / compared if compared else None
    return ItemRow(number, prompt, tags, answers, leader, level, share, contradictions, compared)


def items_with(study: Log, numbers: Sequence[int]) -> list[tuple[int, Item]]:
    """Return these items with all their outputs, by number; those that were removed are left out."""
    if not numbers:
        return []
    within, values = f"({marks(numbers)})", (study.id, *numbers)
    with study.storage.reading() as connection:
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


def known_item(study: Log, number: int) -> Item:
    """Return an item by its number.

    Raises:
        NotFound: If there is no such item.
    """
    found = items_with(study, [number])
    if not found:
        raise no_item(study, number)
    return found[0][1]


def neighbours(study: Log, number: int) -> Neighbours:
    """Return the items before and after an item."""
    text = (
        "SELECT (SELECT max(number) FROM items WHERE study_id = ? AND number < ?), "
        "(SELECT min(number) FROM items WHERE study_id = ? AND number > ?)"
    )
    with study.storage.reading() as connection:
        return Neighbours(*rows(connection, text, (study.id, number, study.id, number))[0])


def tags_by_item(study: Log) -> dict[int, tuple[str, ...]]:
    """Return the tags of all items that have any, by number."""
    text = "SELECT number, tags FROM items WHERE study_id = ? AND tags IS NOT NULL ORDER BY number"
    with study.storage.reading() as connection:
        return {number: read_tags(tags) for number, tags in rows(connection, text, (study.id,))}
