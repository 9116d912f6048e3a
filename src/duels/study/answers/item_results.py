"""What the answers say about single items and about tags: who won, and where voters disagree.

All of it describes the answers so far. Nothing here is a verdict: the policy asks some pairs more often than others.

Looking through the items of a study: search, tags, order, and pages.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from ...checks import check_int
from ...storage.statements import fetch_rows, join_marks
from ...votes.items import Item, Output
from ..event_study import EventStudy
from ..items import LARGEST, last_number, no_item, pack_tags, read_tags
from .table import AnswerTable

Z_95 = 1.959963984540054  # of a two-sided interval of 95 %
MOST_CELLS = 2_000_000  # items × arms that are counted in an array; more are faster with a sparse matrix
ENOUGH = 20  # answers of each of the two best arms of a tag, from which overlapping intervals mean that it is close
Z_LOWER = 1.6448536269514722  # of a one-sided bound of 95 %


class ItemCounts(NamedTuple):
    """What each item with answers has; one entry per item, by number."""

    numbers: np.ndarray  # (m,) int64
    answers: np.ndarray  # (m,) int64
    contradictions: np.ndarray  # (m,) int64: pairs of answers that decide for different arms
    compared: np.ndarray  # (m,) int64: pairs of answers of different voters about the same two arms
    bound: np.ndarray  # (m,) float64: what items are ordered by; −1 if nothing can be compared

    def place(self, number: int) -> int | None:
        """Return where an item is; None if it has no answers."""
        at = int(np.searchsorted(self.numbers, number))
        return at if at < len(self.numbers) and self.numbers[at] == number else None


class ArmCounts(NamedTuple):
    """How an arm did on an item."""

    arm: str
    wins: int
    losses: int
    ties: int


class TagScore(NamedTuple):
    """How an arm did on the items of a tag.

    Attributes:
        arm: The arm.
        answers: Answers about it.
        score: Wins and half of the ties, divided by the answers.
        lower: The lower end of its interval of 95 %.
        upper: The upper end.
    """

    arm: str
    answers: int
    score: float
    lower: float
    upper: float


class TagResult(NamedTuple):
    """What the answers say about the items of a tag.

    Attributes:
        tag: The tag.
        items: How many items have it.
        answers: How many answers are about them.
        winner: The arm whose interval lies above those of all others; None if there is no such arm.
        close: Whether the intervals of the two arms with the best scores overlap, though both have enough answers.
        scores: The arms that have answers, best first.
    """

    tag: str
    items: int
    answers: int
    winner: str | None
    close: bool
    scores: list[TagScore]


class _Answers(NamedTuple):
    """Answers about items, without those of an arm against itself."""

    item: np.ndarray
    low: np.ndarray  # the arm with the smaller index …
    high: np.ndarray  # … and the other one
    result: np.ndarray  # 0 if low won, 1 if high won, 2 for a tie
    voter: np.ndarray
    votes: np.ndarray


RESULTS = np.array([[0, 1], [1, 0], [2, 2], [2, 2]], np.int8)  # by answer, and whether the left arm is the higher one


def _about_items(table: AnswerTable, numbers: Sequence[int] | None = None) -> _Answers:
    """The answers about items, of all or of some."""
    keep = (table.item >= 0) & (table.left != table.right)
    if numbers is not None:
        wanted = np.zeros(max(int(table.item.max(initial=0)), *numbers, 0) + 1, bool)
        wanted[list(numbers)] = True
        keep &= wanted[np.maximum(table.item, 0)]
    columns = [table.item, table.left, table.right, table.answer, table.voter, table.votes]
    if not keep.all():
        rows = np.flatnonzero(keep)
        columns = [column[rows] for column in columns]
    item, left, right, answer, voter, votes = columns
    result = RESULTS.ravel()[2 * answer + (left > right)]
    return _Answers(item, np.minimum(left, right), np.maximum(left, right), result, voter, votes)


def item_counts(table: AnswerTable, numbers: Sequence[int] | None = None) -> ItemCounts:
    """Return the answers and the disagreement of every item that has answers, or of those among `numbers`.

    Two answers can be compared if they are about the same item and the same two arms, and not of the same voter; an
    answer without a voter counts as one of a person of its own. They contradict each other if one decides for one arm
    and the other for the other. The disagreement is the share of those that contradict.
    """
    about = _about_items(table, numbers)
    if not len(about.item):
        none = np.zeros(0, np.int64)
        return ItemCounts(none, none, none, none, np.zeros(0))
    sizes = np.bincount(about.item)
    found = np.flatnonzero(sizes)
    place = np.zeros(len(sizes), np.int64)
    place[found] = np.arange(len(found))
    arms, bits = len(table.names), (len(table.voters) + 1).bit_length()
    pair = (place[about.item] * arms + about.low) * arms + about.high
    # One sort of numbers finds all groups. Their bits are the pair on its item, the voter, and the result.
    keys, size = _runs(np.sort((pair << (bits + 2)) + (about.voter.astype(np.int64) + 1 << 2) + about.result))
    result, voter, pair = keys & 3, (keys >> 2) & ((1 << bits) - 1), keys >> (bits + 2)
    by_voter, _ = _groups(keys >> 2)
    won = [np.add.reduceat(np.where(result == side, size, 0), by_voter) for side in (0, 1)]
    given = np.add.reduceat(size, by_voter)
    known = voter[by_voter] > 0  # NOBODY is 0 here
    by_pair, _ = _groups(pair[by_voter])

    def of_pairs(values: np.ndarray) -> np.ndarray:
        return np.asarray(np.add.reduceat(values, by_pair))

    first, second, answers = of_pairs(won[0]), of_pairs(won[1]), of_pairs(given)
    contradictions = first * second - of_pairs(np.where(known, won[0] * won[1], 0))
    compared = answers * (answers - 1) // 2 - of_pairs(np.where(known, given * (given - 1) // 2, 0))
    others = of_pairs(np.where(known, 1, given)) - 1  # people besides the first
    by_item, _ = _groups(pair[by_voter][by_pair] // (arms * arms))
    contradictions, compared, others = (np.add.reduceat(one, by_item) for one in (contradictions, compared, others))
    return ItemCounts(found, sizes[found], contradictions, compared, _order_bound(contradictions, compared, others))


def _runs(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different values of a sorted array, and how often each occurs."""
    starts, sizes = _groups(ordered)
    return ordered[starts], sizes


def _groups(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each run of equal values begins, and how long it is."""
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return starts, np.diff(np.append(starts, len(ordered)))


def _order_bound(contradictions: np.ndarray, compared: np.ndarray, others: np.ndarray) -> np.ndarray:
    """What items are ordered by, so that one split does not come before many.

    It is Wilson's lower bound of the share, as if each person after the first had been compared once. A share above ½
    is counted as ½: two independent answers contradict each other with probability 2θ(1−θ) ≤ ½.
    """
    n = np.maximum(others, 1).astype(float)
    share = np.minimum(contradictions / np.maximum(compared, 1), 0.5)
    lower, _ = wilson(share, n, Z_LOWER)
    return np.where(compared > 0, lower, -1.0)


def wilson(share: np.ndarray, n: np.ndarray, z: float = Z_95) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of Wilson's interval for a share of n answers; half a win for a tie makes it a bit too wide."""
    center, scale = share + z * z / (2 * n), 1 + z * z / n
    spread = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return np.maximum((center - spread) / scale, 0.0), np.minimum((center + spread) / scale, 1.0)


def answers_by_item(table: AnswerTable) -> np.ndarray:
    """Return how many answers each item has, by its number."""
    return np.bincount(_about_items(table).item)


def comments_by_item(table: AnswerTable) -> np.ndarray:
    """Return how many answers with a comment each item has, by its number."""
    commented = np.isin(table.duel, np.fromiter(table.comments, np.int64)) & (table.item >= 0)
    return np.bincount(table.item[commented])


def arm_counts(table: AnswerTable, numbers: Sequence[int]) -> dict[int, list[ArmCounts]]:
    """Return for each of these items the arms that have answers about it, in the order of the study's arms."""
    if not len(numbers):
        return {}
    about, arms = _about_items(table, numbers), len(table.names)
    place = np.zeros(max(numbers) + 1, np.int64)
    place[list(numbers)] = np.arange(len(numbers))
    found = np.zeros((3, len(numbers) * arms), np.int64)
    for row, item, arm, votes in _sides(about):
        found[row] += np.bincount(place[item] * arms + arm, votes, len(numbers) * arms).astype(np.int64)
    cells = found.reshape(3, len(numbers), arms)
    return {
        number: [
            ArmCounts(table.names[arm], *cells[:, at, arm].tolist()) for arm in np.flatnonzero(cells[:, at].sum(0))
        ]
        for at, number in enumerate(numbers)
    }


def _sides(about: _Answers) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield items, arms and votes: after 0 of the arms that won, after 1 of those that lost, after 2 of ties."""
    for result, low, high in ((0, 0, 1), (1, 1, 0), (2, 2, 2)):  # what a result is for the lower arm and the higher
        rows = np.flatnonzero(about.result == result)
        item, votes = about.item[rows], about.votes[rows]
        yield low, item, about.low[rows], votes
        yield high, item, about.high[rows], votes


def leader_of(counts: Sequence[ArmCounts]) -> tuple[str | None, bool]:
    """Return the arm with the most wins minus losses on an item, and whether several have as many.

    Returns:
        The arm and False; or None and whether there are answers at all, in which case the best are level.
    """
    if not counts:
        return None, False
    best = max(one.wins - one.losses for one in counts)
    leaders = [one.arm for one in counts if one.wins - one.losses == best]
    return (leaders[0], False) if len(leaders) == 1 else (None, True)


def tag_results(table: AnswerTable, tags: Mapping[int, Sequence[str]]) -> list[TagResult]:
    """Return what the answers say about each tag, the one with the most answers first.

    Args:
        table: The answers.
        tags: The tags of each item that has any, by its number.
    """
    from scipy import sparse  # loaded when first used: it takes a tenth of a second

    codes: dict[str, int] = {}
    pairs = [(number, codes.setdefault(tag, len(codes))) for number, found in tags.items() for tag in found]
    if not codes:
        return []
    number, code = np.array(pairs, np.int64).T
    about, arms = _about_items(table), len(table.names)
    size = max(int(number.max()), int(about.item.max(initial=0))) + 1
    has = sparse.csr_matrix((np.ones(len(code)), (code, number)), (len(codes), size))
    answers = has @ np.bincount(about.item, about.votes, size)
    sums = np.zeros((3, len(codes), arms))
    for row, item, arm, votes in _sides(about):
        if size * arms <= MOST_CELLS:
            cells = np.bincount(item.astype(np.int64) * arms + arm, votes, size * arms)
            sums[row] += has @ cells.reshape(size, arms)
        else:
            sums[row] += (has @ sparse.csr_matrix((votes, (item, arm)), (size, arms))).toarray()
    items = np.bincount(code, minlength=len(codes))
    found = [_tag(tag, int(items[k]), int(answers[k]), sums[:, k], table.names) for tag, k in codes.items()]
    return sorted(found, key=lambda one: (-one.answers, one.tag))


def _tag(tag: str, items: int, answers: int, sums: np.ndarray, names: Sequence[str]) -> TagResult:
    met = np.flatnonzero(sums.sum(0))
    wins, losses, ties = sums[:, met]
    n = wins + losses + ties
    score = (wins + ties / 2) / n
    lower, upper = wilson(score, n)
    order = np.argsort(-score, kind="stable")
    scores = [
        TagScore(names[met[k]], int(n[k]), float(score[k]), float(lower[k]), float(upper[k])) for k in order.tolist()
    ]
    above = len(scores) > 1 and scores[0].lower > max(one.upper for one in scores[1:])
    best = scores[:2]
    close = len(best) == 2 and best[0].lower <= best[1].upper and min(one.answers for one in best) >= ENOUGH
    return TagResult(tag, items, answers, scores[0].arm if above else None, close, scores)


class ItemComment(NamedTuple):
    """What somebody wrote with an answer about an item; nothing says who.

    Attributes:
        first: An arm: the one that was preferred, if one was.
        second: The other arm.
        answer: `first`, or `tie` or `both_bad`.
        comment: What was written.
    """

    first: str
    second: str
    answer: str
    comment: str


def comments_on(table: AnswerTable, number: int, most: int) -> list[ItemComment]:
    """Return what voters wrote about an item, the newest first, and at most so many."""
    rows = np.flatnonzero((table.item == number) & np.isin(table.duel, list(table.comments)))
    found = []
    for row in rows[np.argsort(-table.time[rows], kind="stable")][:most].tolist():
        left, right = table.names[table.left[row]], table.names[table.right[row]]
        said = ("left", "right", "tie", "both_bad")[table.answer[row]]
        first, second = (right, left) if said == "right" else (left, right)
        answer = said if said in ("tie", "both_bad") else "first"
        found.append(ItemComment(first, second, answer, table.comments[int(table.duel[row])]))
    return found


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


def find_items(study: EventStudy, search: str = "", tag: str | None = None) -> list[int]:
    """Return the numbers of the items whose prompt contains a text and that have a tag, in order.

    The letters a to z match in either case, all others as they are written: in both kinds of databases alike.

    Args:
        study: The study.
        search: A part of the prompt; empty for all.
        tag: A tag, exactly; None for all.
    """
    with study._log.storage.read_connection() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        inside = "instr({}, ?) > 0" if is_sqlite else "strpos({}, ?) > 0"
        columns = "number" if tag is None else "number, tags"
        text, given = f"SELECT {columns} FROM items WHERE study_id = ?", list[object]([study._log.id])
        if search:
            text += " AND " + inside.format("lower(prompt)" if is_sqlite else 'lower(prompt COLLATE "C")')
            given.append(_lower(search))
        if (
            tag is not None
        ):  # likely in the list, as it is written there; what is in quotes may be a part of another tag
            text += " AND " + inside.format("tags")
            given.append((pack_tags([tag]) or "")[1:-1])
        found = fetch_rows(connection, f"{text} ORDER BY number", given)
    return [row[0] for row in found if tag is None or tag in read_tags(row[1])]


def _lower(text: str) -> str:
    """Text with small letters a to z, and all other letters as they are."""
    return "".join(one.lower() if one.isascii() else one for one in text.replace("\x00", ""))


def browse(
    study: EventStudy,
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


def rows_of(study: EventStudy, table: AnswerTable, numbers: Sequence[int]) -> list[ItemRow]:
    """Return these items as a list shows them, in this order, without those that were removed meanwhile."""
    if not numbers:
        return []
    text = f"SELECT number, substr(prompt, 1, {SHOWN}), tags FROM items WHERE study_id = ? AND number IN "
    with study._log.storage.read_connection() as connection:
        there = fetch_rows(connection, f"{text}({join_marks(numbers)})", (study._log.id, *numbers))
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


def count_fitting(study: EventStudy, numbers: Sequence[int], most: int) -> int:
    """Return how many of these items, from the first on, have no more characters of outputs; at least one if any."""
    if not numbers:
        return 0
    chosen = f"study_id = ? AND item IN ({join_marks(numbers)})"
    text = f"SELECT item, sum(length(content)) FROM outputs WHERE {chosen} GROUP BY item"
    with study._log.storage.read_connection() as connection:
        sizes = {int(item): int(size) for item, size in fetch_rows(connection, text, (study._log.id, *numbers))}
    total = np.cumsum([sizes.get(number, 0) for number in numbers])
    return max(1, int(np.searchsorted(total, most, side="right")))


def items_with(study: EventStudy, numbers: Sequence[int]) -> list[tuple[int, Item]]:
    """Return these items with all their outputs, by number; those that were removed are left out."""
    if not numbers:
        return []
    within, values = f"({join_marks(numbers)})", (study._log.id, *numbers)
    with study._log.storage.read_connection() as connection:
        there = fetch_rows(
            connection, f"SELECT number, prompt, tags FROM items WHERE study_id = ? AND number IN {within}", values
        )
        text = f"SELECT item, arm, kind, content FROM outputs WHERE study_id = ? AND item IN {within}"
        outputs = fetch_rows(connection, text, values)
    found = {number: Item(prompt, {}, read_tags(tags)) for number, prompt, tags in sorted(there)}
    for number, arm, kind, content in sorted(outputs):
        if number in found:
            found[number].outputs[arm] = Output(kind, content)
    return list(found.items())


def get_item(study: EventStudy, number: int) -> Item:
    """Return an item by its number.

    Raises:
        NotFound: If there is no such item.
    """
    found = items_with(study, [number])
    if not found:
        raise no_item(study._log, number)
    return found[0][1]


def count_removed_items(study: EventStudy, table: AnswerTable) -> RemovedItems:
    """Return how many answers are about items that are not there any more."""
    counts = answers_by_item(table)
    there = np.array(find_items(study), np.int64)
    counts[there[there < len(counts)]] = 0
    return RemovedItems(int(np.count_nonzero(counts)), int(counts.sum()))


def was_removed(study: EventStudy, number: int) -> bool:
    """Return whether an item had this number and is not there any more."""
    with study._log.storage.read_connection() as connection:
        last = last_number(connection, study._log)
        there = fetch_rows(connection, "SELECT 1 FROM items WHERE study_id = ? AND number = ?", (study._log.id, number))
    return 1 <= number <= last and not there


def count_missing_outputs(study: EventStudy) -> dict[str, int]:
    """Return how many items lack an output of each active arm that lacks any, in the order of the study's arms."""
    history = study._log.history()
    with study._log.storage.read_connection() as connection:
        items = fetch_rows(connection, "SELECT count(*) FROM items WHERE study_id = ?", (study._log.id,))[0][0]
        found = fetch_rows(
            connection, "SELECT arm, count(*) FROM outputs WHERE study_id = ? GROUP BY arm", (study._log.id,)
        )
    there: dict[str, int] = dict(found)
    arms = (name for name, active in zip(history.names, history.active) if active)
    return {arm: items - there.get(arm, 0) for arm in arms if there.get(arm, 0) < items}


def neighbors(study: EventStudy, number: int) -> Neighbors:
    """Return the items before and after an item."""
    text = (
        "SELECT (SELECT max(number) FROM items WHERE study_id = ? AND number < ?), "
        "(SELECT min(number) FROM items WHERE study_id = ? AND number > ?)"
    )
    with study._log.storage.read_connection() as connection:
        return Neighbors(*fetch_rows(connection, text, (study._log.id, number, study._log.id, number))[0])


def tags_by_item(study: EventStudy) -> dict[int, tuple[str, ...]]:
    """Return the tags of all items that have any, by number."""
    text = "SELECT number, tags FROM items WHERE study_id = ? AND tags IS NOT NULL ORDER BY number"
    with study._log.storage.read_connection() as connection:
        return {number: read_tags(tags) for number, tags in fetch_rows(connection, text, (study._log.id,))}
