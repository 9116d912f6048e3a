"""The voters of a live study, from all its answers: how many, how far they agree with the rest, sides and pace.

Each voter's agreement is that of `measure_agreement`, with the same tests. That of all of them is its mean, so it has
only answers that chose an arm, while `measure_agreement` counts ties as answers. Sides are tested so that one may look
all the time, as `positions` does. `docs/study/positions.md` has the definitions.
"""

from typing import Any, NamedTuple

import numpy as np

from ...errors import format_count, percent
from ..answers.table import NO_ITEM, NOBODY, AnswerTable
from ..duels import iso_time
from ..state.counts import LEFT, RIGHT, TIE
from .agreement import NEITHER, Alpha, Answers, choices_of, favorites_of, first_places, krippendorff, renumber
from .voter_tests import LEVEL, compare, is_at_random, is_biased, is_biased_together, shares_of, side_p_values

PAUSE = 600.0  # seconds: a voter who answers nothing for longer was away
FAST = 0.25  # a voter is fast who takes less than this part of the usual time per answer …
TIMED = 20  # … over at least so many answers …
FEWEST = 5  # … if at least so many voters have as many
UNREADABLE, READ = 0.5, 10  # seconds in which nobody reads and compares two outputs, as a median of so many answers
SORTS = ("answers", "agreement", "left", "pace", "last", "voter")


class Voters(NamedTuple):
    """The V voters of a study at one moment; arrays have one entry per voter, in the order of first answers."""

    seq: int  # the last event that it includes
    names: list[str]
    answers: np.ndarray  # int64: votes that count
    skips: np.ndarray  # int64: questions skipped
    withdrawn: np.ndarray  # int64: answers that an admin withdrew
    comments: np.ndarray  # int64: answers with a comment
    left: np.ndarray  # int64: answers for the left side, where a coin decided the sides
    right: np.ndarray  # int64: for the right side
    p_side: np.ndarray  # float64: of the exact two-sided test of left against right, for one look
    compared: np.ndarray  # int64: questions in which the voter and others chose an arm
    share: np.ndarray  # float64: of these others, how many chose the same arm, on average; NaN without any
    expected: np.ndarray  # float64: what that is for a voter like the others
    timed: np.ndarray  # int64: answers whose time is known, that is, all but past votes
    seconds: np.ndarray  # float64: the median from question to answer; NaN without any
    per_hour: np.ndarray  # float64: answers per hour while voting, without pauses over ten minutes; NaN if unknown
    first: np.ndarray  # float64: when the first answer was given, in seconds since 1970; NaN without any
    last: np.ndarray  # float64
    one_sided: np.ndarray  # bool: certainly prefers a side
    at_random: np.ndarray  # bool: certainly agrees less than the others do, and not clearly more than a coin
    favorite: list[str | None]  # the arm that each favors most, if there is a sign of it
    chosen: np.ndarray  # int64: how many of the voter's votes are for that arm …
    of: np.ndarray  # int64: … of those that chose an arm, on pairs that others voted on too …
    by_others: np.ndarray  # float64: … and how many that would be by the shares of all voters
    favors_arm: np.ndarray  # bool: certainly favors that arm
    fast: np.ndarray  # bool: much faster than usual, or than anybody can read
    overall: Alpha | None  # agreement of all voters where they chose an arm; None if no two did for the same question
    questions: int  # for which two voters or more chose an arm
    unnamed: int  # answers without a voter


def voters_of(table: AnswerTable) -> Voters:
    """Return the voters of a study.

    Args:
        table: All its answers.
    """
    count = len(table.voters)
    named = table.voter != NOBODY
    voter = table.voter[named]
    votes = np.bincount(voter, table.votes[named], minlength=count).astype(np.int64)
    every, has_items = _answers(table)
    once = every.first()
    shared = once.of_several()
    counts = shared.only(shared.choice < NEITHER).of_several().table()
    compared, share, expected, at_random = _agreement(shared, once.per_voter() > 0)
    asked = once if has_items else every
    favorites = favorites_of(asked.only(np.full(len(asked.voter), table.repeats_questions)))
    sided = named & table.coin & (table.answer < TIE)
    chooser, side = table.voter[sided], table.answer[sided]
    lefts, rights = (np.bincount(chooser[side == one], minlength=count) for one in (LEFT, RIGHT))
    timed, seconds, per_hour = _pace(table, named & ~table.imported)
    first, last = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(first, voter, table.time[named])
    np.maximum.at(last, voter, table.time[named])
    return Voters(
        seq=table.seq,
        names=table.voters,
        answers=votes,
        skips=table.skips,
        withdrawn=table.withdrawn,
        comments=_comments(table),
        left=lefts,
        right=rights,
        p_side=side_p_values(lefts, rights),
        compared=compared,
        share=share,
        expected=expected,
        timed=timed,
        seconds=seconds,
        per_hour=per_hour,
        first=np.where(np.isfinite(first), first, np.nan),
        last=np.where(np.isfinite(last), last, np.nan),
        one_sided=_one_sided(chooser, lefts, rights),
        at_random=at_random,
        favorite=[None if arm < 0 else table.names[arm] for arm in favorites.arm.tolist()],
        chosen=favorites.chosen,
        of=favorites.of,
        by_others=favorites.expected,
        favors_arm=favorites.p <= LEVEL,
        fast=_fast(timed, seconds),
        overall=krippendorff(counts) if len(counts) else None,
        questions=len(counts),
        unnamed=int(table.votes[~named].sum()),
    )


def _answers(table: AnswerTable) -> tuple[Answers, bool]:
    """The answers of named voters, also of second judges, and whether there are items: then, those about an item."""
    second = table.seconds
    left, right, answer, item, voter = (
        np.concatenate([getattr(table, name), getattr(second, name)]).astype(np.int64)
        for name in ("left", "right", "answer", "item", "voter")
    )
    weight = np.concatenate([table.votes, np.ones(len(second.voter), np.int64)])
    kept = (voter != NOBODY) & (left != right)
    has_items = bool((item != NO_ITEM).any())
    if has_items:
        kept &= item != NO_ITEM
    left, right, answer, item, voter, weight = (column[kept] for column in (left, right, answer, item, voter, weight))
    low, high = np.minimum(left, right), np.maximum(left, right)
    pair = high * (high - 1) // 2 + low
    arms = len(table.names)
    question = renumber(item * (arms * (arms - 1) // 2) + pair if has_items else pair)
    choice = np.where(answer < TIE, np.where(answer == LEFT, left, right) == high, answer)
    nothing = np.full(len(voter), NEITHER)
    pairs = np.zeros((2, int(question.max(initial=-1)) + 1), np.int64)
    pairs[:, question] = low, high
    return Answers(tuple(table.voters), voter, question, choice.astype(np.int64), nothing, weight, pairs), has_items


def _agreement(shared: Answers, present: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of each voter the number of questions, the share, what is expected, and whether it is that of a coin."""
    count = len(shared.names)
    voter, same, other = choices_of(shared)
    found = shares_of(voter, same, other, count)
    at_random = np.zeros(count, bool)
    p_low, p_chance = np.ones(count), np.ones(count)
    tested = found.suspects[voter]  # the exact tests take long, and nobody else can be listed
    voter, same, other = voter[tested], same[tested], other[tested]
    order = np.argsort(voter, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(voter[order])) + 1) if len(order) else ():
        one = compare(same[part], other[part])
        p_low[voter[part[0]]], p_chance[voter[part[0]]] = one.p_low, one.p_chance
    at_random[present] = is_at_random(p_low[present], p_chance[present])
    return found.questions, found.share, found.expected, at_random


def _one_sided(chooser: np.ndarray, lefts: np.ndarray, rights: np.ndarray) -> np.ndarray:
    """Who certainly prefers a side; `chooser` has the voter of each choice, in order."""
    found = np.zeros(len(lefts), bool)
    for rank, voter in enumerate(chooser[first_places(chooser)].tolist(), 1):
        found[voter] = is_biased(int(lefts[voter]), int(rights[voter]), rank)
    return found


def _pace(table: AnswerTable, live: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each voter the number of live answers, the median seconds per answer, and answers per hour."""
    count = len(table.voters)
    voter, time = table.voter[live], table.time[live]
    timed = np.bincount(voter, minlength=count)
    order = np.argsort(voter.astype(np.uint16) if count < 2**16 else voter, kind="stable")
    who, time = voter[order], time[order]
    took = np.maximum(time - table.asked[live][order], 0.0)
    seconds, per_hour = np.full(count, np.nan), np.full(count, np.nan)
    ends = np.cumsum(timed).tolist()
    for k in np.flatnonzero(timed).tolist():
        seconds[k] = _median(took[ends[k] - timed[k] : ends[k]])
    who, gap = who[1:], np.diff(time)
    going_on = (who == voter[order][:-1]) & (gap >= 0) & (gap <= PAUSE)
    spent = np.bincount(who[going_on], gap[going_on], minlength=count)
    steady = spent > 0
    per_hour[steady] = 3600 * np.bincount(who[going_on], minlength=count)[steady] / spent[steady]
    return timed, seconds, per_hour


def _median(values: np.ndarray) -> float:
    """As `np.median`, which takes five times as long for few values."""
    upper = len(values) // 2
    values = np.partition(values, (upper - 1, upper) if len(values) % 2 == 0 else upper)
    return float(values[upper] if len(values) % 2 else (values[upper - 1] + values[upper]) / 2)


def usual_seconds(timed: np.ndarray, seconds: np.ndarray) -> float | None:
    """Return the median of the voters' medians, of voters with enough answers; None if there are too few of them."""
    enough = timed >= TIMED
    return float(np.median(seconds[enough])) if enough.sum() >= FEWEST else None


def _fast(timed: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    usual = usual_seconds(timed, seconds)
    unread = (timed >= READ) & (seconds < UNREADABLE)
    return np.asarray(unread if usual is None else unread | ((timed >= TIMED) & (seconds < FAST * usual)))


def _comments(table: AnswerTable) -> np.ndarray:
    written = table.voter[np.isin(table.duel, list(table.comments))] if table.comments else table.voter[:0]
    return np.bincount(written[written != NOBODY], minlength=len(table.voters))


def rows_of(found: Voters, chosen: np.ndarray) -> list[dict[str, Any]]:
    """Return some voters as plain values, for JSON.

    Args:
        found: The voters.
        chosen: (n,) int: Which ones, in which order.
    """
    columns = {
        name: getattr(found, name)[chosen].tolist()
        for name in (
            *("answers", "skips", "withdrawn", "comments", "left", "right", "p_side", "compared", "share", "expected"),
            *("chosen", "of", "by_others", "seconds", "per_hour", "first", "last"),
            *("one_sided", "at_random", "favors_arm", "fast"),
        )
    }
    for name in ("share", "expected", "seconds", "per_hour"):
        columns[name] = [None if value != value else value for value in columns[name]]
    for name in ("first", "last"):
        columns[name] = [None if value != value else iso_time(value) for value in columns[name]]
    columns["favorite"] = [found.favorite[k] for k in chosen.tolist()]
    names = [found.names[k] for k in chosen.tolist()]
    return [dict(zip(("voter", *columns), row)) for row in zip(names, *columns.values())]


def order_voters(found: Voters, search: str = "", sort: str = "answers", reverse: bool = False) -> np.ndarray:
    """Return the indices of voters whose name contains a text, in order.

    Args:
        found: The voters.
        search: The text; upper and lower case are the same.
        sort: One of SORTS: most answers, least agreement, the most uneven sides, the fastest, the latest, or by name.
            Those without such a figure come last.
        reverse: The other way round.
    """
    wanted = search.strip().casefold()
    seen = (found.answers > 0) | (found.skips > 0) | (found.withdrawn > 0) | (found.compared > 0)
    kept = np.flatnonzero(seen)
    if wanted:
        kept = np.array([k for k in kept.tolist() if wanted in found.names[k].casefold()], np.int64)
    if sort == "voter":
        order = sorted(kept.tolist(), key=lambda k: _natural(found.names[k]), reverse=reverse)
        return np.array(order, np.int64)
    sides = found.left + found.right
    with np.errstate(invalid="ignore"):
        uneven = np.where(sides > 0, np.abs(found.left - found.right) / np.maximum(sides, 1), np.nan)
    values = {
        "answers": -found.answers.astype(float),
        "agreement": found.share,
        "left": -uneven,
        "pace": found.seconds,
        "last": -found.last,
    }[sort][kept]
    values = -values if reverse else values
    return np.asarray(kept[np.lexsort((-found.answers[kept], values))])  # NaN sorts last


def _natural(name: str) -> tuple[str, int, str]:
    """Voter 7 comes before Voter 12."""
    words = name.casefold()
    stem = words.rstrip("0123456789")
    digits = words[len(stem) :]
    return stem, int(digits[:18] or 0), words


def summary_of(found: Voters) -> dict[str, Any]:
    """Return what is said about all voters, for JSON."""
    overall = found.overall
    return {
        "total": len(order_voters(found)),
        "unnamed": found.unnamed,
        "questions": found.questions,
        "raw": overall and overall.raw,
        "base": overall and overall.base,
        "alpha": overall and overall.alpha,
        "usual_seconds": usual_seconds(found.timed, found.seconds),
        "left": int(found.left.sum()),
        "right": int(found.right.sum()),
        "sides": _sides(found),
        "words": _overall(found),
    }


def _sides(found: Voters) -> str | None:
    """What is said if all voters together prefer a side for certain."""
    left, right = int(found.left.sum()), int(found.right.sum())
    if not is_biased_together(left, right):
        return None
    side, often = ("left", left) if left > right else ("right", right)
    return (
        f"All voters together chose the {side} side in {often:,} of {left + right:,} answers. A coin decides which "
        "output is there, so that is more than luck."
    )


def _overall(found: Voters) -> str:
    total, voters = len(order_voters(found)), int((found.answers > 0).sum())
    if not total:
        return "Nobody has voted under a name yet." if found.unnamed else "Nobody has voted yet."
    known = format_count(total, "voter")
    if voters < total:
        known += f", {voters:,} of them with answers that count"
    if found.overall is None:
        return f"{known}. No two of them have chosen an arm for the same question yet."
    asked = "1 question" if found.questions == 1 else f"each of {found.questions:,} questions"
    return (
        f"{known}. Two who chose an arm for the same question agree in {percent(found.overall.raw)} % of cases; a coin "
        f"would in 50 %. Ties are left out. Two voters or more chose an arm for {asked}."
    )


def remarks_of(found: Voters, most: int = 20) -> list[dict[str, str]]:
    """Return who stands out: voters who prefer a side, agree no more than a coin, favor an arm, or are fast.

    Args:
        found: The voters.
        most: How many of each kind to return, those with most answers first.
    """
    usual = usual_seconds(found.timed, found.seconds)
    remarks = []
    for kind in ("one_sided", "at_random", "favors_arm", "fast"):
        listed = np.flatnonzero(getattr(found, kind) & (found.answers > 0))
        for row in rows_of(found, listed[np.argsort(-found.answers[listed], kind="stable")][:most]):
            if kind == "one_sided":
                left, both = row["left"], row["left"] + row["right"]
                side, often = ("left", left) if 2 * left > both else ("right", both - left)
                words = f"chose the {side} side in {often:,} of {both:,} answers, whatever was shown there."
            elif kind == "at_random":
                words = (
                    f"agrees with {percent(row['share'])} % of the others' answers to the same {row['compared']:,} "
                    f"questions. A voter like the others agrees with {percent(row['expected'])} %, a coin with 50 %."
                )
            elif kind == "favors_arm":
                words = (
                    f"chose {row['favorite']} in {row['chosen']:,} of {row['of']:,} answers that chose an arm where it "
                    f"was shown. By the answers of all to the same pairs, {row['by_others']:,.0f} were expected."
                )
            elif row["seconds"] < UNREADABLE:
                words = (
                    f"takes {row['seconds']:.1f} seconds per answer. Nobody reads and compares two outputs in less "
                    f"than {UNREADABLE:g} seconds."
                )
            else:
                words = f"takes {row['seconds']:.1f} seconds per answer. The usual time is {usual or 0:.1f} seconds."
            remarks.append({"voter": row["voter"], "kind": kind, "words": words})
    return remarks
