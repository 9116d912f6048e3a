"""How often is a named winner wrong for the question printed? A/A studies: a table, and benchmarks/out/promise.json.

    python benchmarks/promise.py                     all cells
    python benchmarks/promise.py new-items delay     the cells whose names have one of these texts in them
    python benchmarks/promise.py --studies 200       fewer studies per cell
    python benchmarks/promise.py --draw              the tables and the figure of benchmarks/promise.md, of the last run

Everything is arranged so that nobody should be named: arms are level in the population, or a set of items has every
ranking together with its reverse. Studies are simulated with a look after every answer, until the items are used up or
for 5,000 answers, and are counted once if any look names a wrong winner. "Before" is the naive reading of the same
answers: every answer is taken as an independent draw from the population. Exit code 1 if the 99 % upper bound of a cell
is above 5 % in a second run with four times as many studies too, or of a cell through the public API, which has fewer
studies, the 99 % lower bound.
"""

import argparse
import json
import math
import platform
import random
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from table import OUT

import duels
from duels.engine.compiling import compile_with
from duels.engine.threads import in_threads, thread_count
from duels.errors import NothingToAsk
from duels.policies import verdict as asking
from duels.policies.evidence import LOG_2, evidence_on_items, is_certain
from duels.policies.verdict import select as ask_verdict
from duels.policies.verdict import update as note_answer
from duels.rankers.interleaving import (
    Workspace,
    _workspace_of,
    arrange_assigned,
    arrange_probabilistic,
    arrange_team_draft,
    clear,
    judge_by_worth,
)
from duels.study.items import add_items
from duels.study.stats.about import (
    A_PERSON,
    INDEPENDENT,
    NEW_ITEMS,
    PAST_VOTES,
    THESE_ANSWERS,
    THESE_ITEMS,
    THESE_PEOPLE,
)
from duels.study.stats.certainty import CertaintyTest
from duels.study.stats.reach import SIZES, STAKES, winner_levels
from duels.study.stats.tally import Tally

CONFIDENCE, DELTA = 0.95, 0.05
STUDIES, ANSWERS = 2000, 5000
SHARED = 400  # studies of people who are asked the same
LEASE = 10.0  # mean times of an answer of the quicker side
AGAIN = 4  # times as many studies decide where the first ones leave it open
LOG_PI = math.log(math.pi)
PICTURE = Path(__file__).parent / "pictures" / "promise.png"
PLAIN, TABLES, FINITE = range(3)  # evidence: of the verdict, of the tables, and on a set of final answers
BY_POLICY, BY_HUNTER, BY_CHANCE = range(3)  # who chooses the pairs
LOSER_MEETS, WINNER_MEETS, INSERTION = range(3)  # paths of voters
WAITING, RECEIVED, EXPIRED = 0.0, 1.0, 2.0  # what became of a question

arrange: Any = None  # placeholder for an interleaving method's kernel


# What is certain


class Test(NamedTuple):
    """The answers so far, and which pairs are certain."""

    wins: np.ndarray  # (K, K) float64
    ties: np.ndarray  # (K, K) float64
    sure: np.ndarray  # (K, K) bool: whether i beats j with the evidence that a winner needs
    ahead: np.ndarray  # (K,) int64: how many arms i beats so
    rule: np.ndarray  # (3,) float64: PLAIN, TABLES or FINITE; the level; how many items


def rule_of(
    arms: int, about: str, strength: str = INDEPENDENT, items: int | None = None, first: str = PAST_VOTES
) -> np.ndarray:
    """Return `Test.rule` as the package has it: which evidence, and how much of it a winner needs."""
    none = np.zeros((arms, arms), np.int64)
    names, active = tuple(f"arm {k}" for k in range(arms)), np.ones(arms, bool)
    tally = Tally(names, none, none, active, arms, items, about, strength, first)  # type: ignore[arg-type]
    level = CertaintyTest(tally, CONFIDENCE).levels.winner(np.array([0]), np.array([1]))
    kind = FINITE if tally.is_finite else TABLES if tally.returning and arms > 2 else PLAIN
    return np.array([kind, np.max(level), items or 0], np.float64)


def new_test(rule: np.ndarray) -> Callable[[int], Test]:
    """Return what makes an empty test by a rule, for a number of arms."""

    def make(arms: int) -> Test:
        counts = np.zeros((2, arms, arms))
        return Test(*counts, np.zeros((arms, arms), bool), np.zeros(arms, np.int64), rule.copy())

    return make


def is_sure(rule: np.ndarray, won: float, lost: float, tied: float) -> bool:
    """Kernel: whether the first of a pair with these counts is certain to beat the second."""
    level = rule[1]
    if rule[0] == FINITE:
        return evidence_on_items(won, lost, tied, int(rule[2])) >= level
    if rule[0] == PLAIN:
        return is_certain(won, lost, level)
    lead, n = won - lost, won + lost
    if lead <= 0 or LOG_2 * lead * lead < level * n:
        return False
    return math.lgamma(won + 0.5) + math.lgamma(lost + 0.5) - math.lgamma(n + 1.0) - LOG_PI + n * LOG_2 >= level


def review(test: Test, i: int, j: int, waiting: float) -> None:
    """Kernel: find out again whether i beats j; questions that wait for an answer count as lost."""
    sure = is_sure(test.rule, test.wins[i, j], test.wins[j, i] + waiting, test.ties[i, j])
    test.ahead[i] += int(sure) - int(test.sure[i, j])
    test.sure[i, j] = sure


def take_answer(test: Test, i: int, j: int, outcome: float) -> int:
    """Kernel: take in an answer; returns the arm that is then certain to beat all others, or −1."""
    if outcome == 0.5:
        test.ties[i, j] += 1.0
        test.ties[j, i] += 1.0
    else:
        test.wins[i, j] += outcome
        test.wins[j, i] += 1.0 - outcome
    review(test, i, j, 0.0)
    review(test, j, i, 0.0)
    return find_named(test, i, j)


def find_named(test: Test, i: int, j: int) -> int:
    """Kernel: which of two arms is certain to beat all others, or −1."""
    arms = len(test.ahead)
    if test.ahead[i] == arms - 1:
        return i
    return j if test.ahead[j] == arms - 1 else -1


class Line(NamedTuple):
    """The line about other items or other people: see `reach`, of which this is a transcription, answer by answer."""

    seen: np.ndarray  # (clusters, K, K) int64: answers about i < j
    won: np.ndarray  # (clusters, K, K) float64: how many of them i won
    fortunes: np.ndarray  # (sizes, stakes, K, K) float64
    reached: np.ndarray  # (K, K) bool: whether i has ever had enough evidence against j
    beaten: np.ndarray  # (K,) int64: against how many arms i had
    stakes: np.ndarray  # (stakes,) float64
    sizes: np.ndarray  # (sizes,) int64
    level: np.ndarray  # (1,) float64: the evidence, not its logarithm


def new_line(arms: int, clusters: int) -> Line:
    """Return the line before the first answer, for a number of items or voters."""
    seen, won = np.zeros((clusters, arms, arms), np.int64), np.zeros((clusters, arms, arms))
    fortunes, reached = np.ones((len(SIZES), len(STAKES), arms, arms)), np.zeros((arms, arms), bool)
    level = np.exp(winner_levels(0, arms, arms, DELTA)[1:2])
    return Line(seen, won, fortunes, reached, np.zeros(arms, np.int64), STAKES, np.array(SIZES), level)


def extend_line(line: Line, cluster: int, i: int, j: int, outcome: float) -> bool:
    """Kernel: take in an answer; returns whether the line has ever been true of i or j."""
    low, high, won = (i, j, outcome) if i < j else (j, i, 1.0 - outcome)
    line.seen[cluster, low, high] += 1
    line.won[cluster, low, high] += won
    for size in range(len(line.sizes)):
        if line.seen[cluster, low, high] == line.sizes[size]:
            mean = line.won[cluster, low, high] / line.sizes[size]
            for side in range(2):
                a, b, lead = (low, high, mean - 0.5) if side == 0 else (high, low, 0.5 - mean)
                total = 0.0
                for k in range(len(line.stakes)):
                    line.fortunes[size, k, a, b] *= 1.0 + line.stakes[k] * lead
                    total += line.fortunes[size, k, a, b]
                if total >= line.level[0] * len(line.stakes) and not line.reached[a, b]:
                    line.reached[a, b] = True
                    line.beaten[a] += 1
    return max(line.beaten[i], line.beaten[j]) == len(line.beaten) - 1


# Who is asked what


def choose_pair(
    by: int,
    state: asking.State,
    params: asking.Params,
    test: Test,
    asked: np.ndarray,
    most: int,
    t: int,
    luck: np.random.Generator,
) -> tuple[int, int]:
    """Kernel: the next pair that has been asked fewer than `most` times; (−1, −1) if there is none."""
    i = j = 0
    if by == BY_POLICY:
        i, j = ask_verdict(state, params, t, luck)
    elif by == BY_HUNTER and luck.random() < 0.9:
        i, j = hunt(test)
    if i != j and asked[min(i, j), max(i, j)] < most:
        return i, j
    arms, number = len(asked), 0
    for i in range(arms):
        for j in range(i + 1, arms):
            number += asked[i, j] < most
    number = int(luck.random() * number) if number > 0 else -1
    for i in range(arms):
        for j in range(i + 1, arms):
            if asked[i, j] < most:
                if number == 0:
                    return i, j
                number -= 1
    return -1, -1


def hunt(test: Test) -> tuple[int, int]:
    """Kernel: the arm that is nearest to being named, and the arm that it leads by least."""
    arms, nearest, first, second = len(test.wins), -math.inf, 0, 1
    for i in range(arms):
        total, least, rival = 0.0, math.inf, 0
        for j in range(arms):
            if j != i:
                n = test.wins[i, j] + test.wins[j, i]
                z = min((test.wins[i, j] - test.wins[j, i]) / math.sqrt(n + 5.0), 3.2)
                total += z
                if z < least:
                    least, rival = z, j
        if total > nearest:
            nearest, first, second = total, i, rival
    return first, second


# Studies. What `out` has: see `Found`.


class Found(NamedTuple):
    """What became of a study: numbers of answers, 0 for never; and what was wrong."""

    named: int  # the first time that a winner was named
    wrong: int  # the first time that a wrong one was
    named_before: int  # the same for the naive reading
    wrong_before: int
    line: int  # the first time that the line about other items or people held for some arm
    stale: int  # the first time that an arm named earlier was not right any more
    answers: int  # how many there were


def note_named(out: np.ndarray, place: int, t: int, is_right: bool) -> None:
    """Kernel: note that an arm was named now, and whether rightly."""
    if out[place] == 0:
        out[place] = t
    if out[place + 1] == 0 and not is_right:
        out[place + 1] = t


def play_on_items(
    chance: np.ndarray,
    is_final: bool,
    ties: float,
    orders: np.ndarray,
    by: int,
    state: asking.State,
    params: asking.Params,
    printed: Test,
    before: Test,
    right: np.ndarray,
    line: Line,
    limit: int,
    luck: np.random.Generator,
    out: np.ndarray,
) -> None:
    """Kernel: a study on items, of a judge or of people who answer once.

    Args:
        chance: (N, K, K): the chance that i wins over j on each item; if answers are final, the outcome.
        is_final: Whether answers are final.
        ties: How often an answer that is not final is a tie.
        orders: (K, K, N): the items in the order of each pair; empty to draw them with replacement.
        by: Who chooses the pairs.
        state: Of the policy.
        params: Of the policy.
        printed: The test of the question printed.
        before: The test of the naive reading, by which every winner is wrong: the population is level.
        right: (K,) bool: which arms are right to name.
        line: About other items; without clusters, it is left out.
        limit: How many answers.
        luck: Of everything.
        out: See `Found`.
    """
    items, arms = len(chance), len(right)
    asked, once = np.zeros((arms, arms), np.int64), orders.shape[2] > 0
    for t in range(1, limit + 1):
        i, j = choose_pair(by, state, params, printed, asked, items if once else limit, t, luck)
        if i < 0:
            break
        low, high = min(i, j), max(i, j)
        item = orders[low, high, asked[low, high]] if once else int(luck.random() * items)
        asked[low, high] += 1
        outcome = chance[item, i, j]
        if not is_final:
            is_tie = ties > 0.0 and luck.random() < ties
            outcome = 0.5 if is_tie else 1.0 if luck.random() < outcome else 0.0
        if by == BY_POLICY:
            note_answer(state, params, t, i, j, outcome)
        out[6] = t
        named = take_answer(printed, i, j, outcome)
        if named >= 0:
            note_named(out, 0, t, right[named])
        if take_answer(before, i, j, outcome) >= 0:
            note_named(out, 2, t, False)
        if len(line.seen) > 0 and extend_line(line, item, i, j, outcome) and out[4] == 0:
            out[4] = t


class Crowd(NamedTuple):
    """The voters who are there now, and the places in the sequences that they passed over."""

    taste: np.ndarray  # (P, N, K): of each voter, about each item: the larger, the better
    left: np.ndarray  # (P,) int64: how many answers each still gives
    name: np.ndarray  # (P,) int64: each one's number
    seen: np.ndarray  # (P, K, K, N) bool: what each was asked
    open: np.ndarray  # (K, K) int64: how many places of each pair are open
    item: np.ndarray  # (K, K, M) int64: the items of these places, in the order of the sequence
    may_be: np.ndarray  # (K, K, M, N) bool: which items they may be about, by who has passed them over


def new_crowd(arms: int, items: int, people: int, places: int = 400) -> Crowd:
    """Return the places of a crowd; everybody in it arrives at the first question."""
    rooms = max(items, 1)
    return Crowd(
        np.zeros((people, rooms, arms)),
        np.zeros(people, np.int64),
        np.full(people, -1, np.int64),
        np.zeros((people, arms, arms, rooms), bool),
        np.zeros((arms, arms), np.int64),
        np.zeros((arms, arms, places), np.int64),
        np.zeros((arms, arms, places, rooms), bool),
    )


def arrive(crowd: Crowd, p: int, name: int, each: int, own: float, luck: np.random.Generator) -> None:
    """Kernel: somebody new takes a place in the crowd; `own` is how much tastes differ between items."""
    crowd.left[p], crowd.name[p] = each, name
    crowd.seen[p] = False
    for k in range(crowd.taste.shape[2]):
        liking = luck.random()
        for item in range(crowd.taste.shape[1]):
            crowd.taste[p, item, k] = liking + own * luck.random()


def draw_place(crowd: Crowd, p: int, low: int, high: int, luck: np.random.Generator) -> tuple[int, float]:
    """Kernel: the item that a voter is asked about, and the share of the items it may be where `low` is preferred.

    The first open place whose item the voter has not seen; else further places until there is one. Places that are
    passed over stay open: what is known of them is that their items are among those that the voter has seen.
    """
    items, most = crowd.taste.shape[1], crowd.item.shape[2]
    seen, item, may_be = crowd.seen[p, low, high], crowd.item[low, high], crowd.may_be[low, high]
    liked = number = 0.0
    for place in range(crowd.open[low, high]):
        if not seen[item[place]]:
            found = item[place]
            for x in range(items):
                if may_be[place, x] and not seen[x]:
                    number += 1.0
                    liked += crowd.taste[p, x, low] > crowd.taste[p, x, high]
            crowd.open[low, high] -= 1
            for later in range(place, crowd.open[low, high]):
                item[later] = item[later + 1]
                for x in range(items):
                    may_be[later, x] = may_be[later + 1, x]
            return found, liked / number
        for x in range(items):
            may_be[place, x] = may_be[place, x] and seen[x]
    for x in range(items):
        if not seen[x]:
            number += 1.0
            liked += crowd.taste[p, x, low] > crowd.taste[p, x, high]
    while True:
        found = int(luck.random() * items)
        if not seen[found]:
            return found, liked / number
        place = crowd.open[low, high]
        if place < most:
            crowd.open[low, high] += 1
            item[place] = found
            for x in range(items):
                may_be[place, x] = seen[x]


def play_with_voters(
    items: int,
    each: int,
    late: int,
    noise: float,
    own: float,
    by: int,
    state: asking.State,
    params: asking.Params,
    crowd: Crowd,
    printed: Test,
    later: np.ndarray,
    before: Test,
    line: Line,
    limit: int,
    luck: np.random.Generator,
    out: np.ndarray,
) -> None:
    """Kernel: a study of people, some of whom come back. No arm is preferred in the population.

    Args:
        items: How many items there are; 0 for none, where a voter may be asked the same again.
        each: How many answers each voter gives.
        late: Up to this answer, nobody comes back.
        noise: How often an answer is not what its voter prefers.
        own: How much tastes differ between items.
        by: Who chooses the pairs.
        state: Of the policy.
        params: Of the policy.
        crowd: Who is there.
        printed: The test while nobody has come back.
        later: The rule of the test from then on.
        before: The test of the naive reading.
        line: About other people; without clusters, it is left out.
        limit: How many answers.
        luck: Of everything.
        out: See `Found`.
    """
    arms, people = len(printed.ahead), len(crowd.left)
    asked, chances, met = np.zeros((arms, arms), np.int64), np.zeros((arms, arms)), np.zeros((arms, arms))
    voters, named_last, comes_back = 0, -1, each > 1
    for t in range(1, limit + 1):
        p = int(luck.random() * people)
        if crowd.left[p] == 0:
            arrive(crowd, p, voters, 1 if t <= late else each, own, luck)
            voters += 1
        if t == late + 1 and comes_back:  # the whole log is read again by the other rule
            printed.rule[:] = later
            for i in range(arms):
                for j in range(arms):
                    if i != j:
                        review(printed, i, j, 0.0)
        i, j = choose_pair(by, state, params, printed, asked, limit, t, luck)
        low, high = min(i, j), max(i, j)
        item = 0
        if items > 0:
            if crowd.seen[p, low, high].all():
                crowd.left[p] = 0
                continue
            item, liked = draw_place(crowd, p, low, high, luck)
            crowd.seen[p, low, high, item] = True
        else:
            liked = 1.0 if crowd.taste[p, 0, low] > crowd.taste[p, 0, high] else 0.0
        crowd.left[p] -= 1
        prefers = crowd.taste[p, item, low] > crowd.taste[p, item, high]
        won = 1.0 if prefers != (luck.random() < noise) else 0.0
        asked[low, high] += 1
        chance = noise + (1.0 - 2.0 * noise) * liked
        chances[low, high] += chance
        chances[high, low] += 1.0 - chance
        met[low, high] += 1.0
        met[high, low] += 1.0
        if by == BY_POLICY:
            note_answer(state, params, t, low, high, won)
        out[6] = t
        named = take_answer(printed, low, high, won)
        if named >= 0:
            is_right = t > late and comes_back and is_right_here(chances, met, named)
            note_named(out, 0, t, is_right)
            named_last = named if t > late else -1
        if named_last >= 0 and out[5] == 0 and not is_right_here(chances, met, named_last):
            out[5] = t
        if take_answer(before, low, high, won) >= 0:
            note_named(out, 2, t, False)
        if len(line.seen) > 0 and out[4] == 0 and extend_line(line, crowd.name[p], low, high, won):
            out[4] = t


def is_right_here(chances: np.ndarray, met: np.ndarray, arm: int) -> bool:
    """Kernel: whether an arm's mean chance over the comparisons made is above ½ against every other arm."""
    least = math.inf
    for j in range(len(met)):
        if j != arm:
            least = min(least, chances[arm, j] - 0.5 * met[arm, j])
    return least > 1e-9


def note_comparison(
    printed: Test,
    before: Test,
    chances: np.ndarray,
    met: np.ndarray,
    i: int,
    j: int,
    chance: float,
    outcome: float,
    out: np.ndarray,
) -> None:
    """Kernel: take in a comparison that i wins with this chance, given all that happened before."""
    chances[i, j] += chance
    chances[j, i] += 1.0 - chance
    met[i, j] += 1.0
    met[j, i] += 1.0
    out[6] += 1
    named = take_answer(printed, i, j, outcome)
    if named >= 0:
        note_named(out, 0, out[6], is_right_here(chances, met, named))
    if take_answer(before, i, j, outcome) >= 0:
        note_named(out, 2, out[6], False)


def play_paths(path: int, printed: Test, before: Test, limit: int, luck: np.random.Generator, out: np.ndarray) -> None:
    """Kernel: voters with random rankings, whose next pair depends on their own answers.

    The chance of an answer is that given all answers before. A ranking is random, so whoever was the best of q arms is
    the best of one more with a chance of q/(q + 1), and a new arm is equally likely to be in each gap between others.
    """
    arms = len(printed.ahead)
    chances, met = np.zeros((arms, arms)), np.zeros((arms, arms))
    rank, order, ranked = np.zeros(arms), np.arange(arms), np.zeros(arms, np.int64)
    while out[6] < limit:
        for k in range(arms):
            rank[k] = luck.random()
            other = int(luck.random() * (k + 1))
            order[k], order[other] = order[other], order[k]
        if path == LOSER_MEETS:
            won = 1.0 if rank[1] > rank[2] else 0.0
            note_comparison(printed, before, chances, met, 1, 2, 0.5, won, out)
            loser = 2 if won == 1.0 else 1
            note_comparison(printed, before, chances, met, 0, loser, 2 / 3, 1.0 if rank[0] > rank[loser] else 0.0, out)
        elif path == WINNER_MEETS:
            best = order[0]
            for q in range(1, arms):
                won = 1.0 if rank[best] > rank[order[q]] else 0.0
                note_comparison(printed, before, chances, met, best, order[q], q / (q + 1.0), won, out)
                best = best if won == 1.0 else order[q]
        else:
            ranked[0] = order[0]
            for q in range(1, arms):
                low, high, one = 0, q, order[q]
                while low < high:
                    middle = (low + high) // 2
                    chance = (middle - low + 1.0) / (high - low + 1.0)
                    won = 1.0 if rank[one] > rank[ranked[middle]] else 0.0
                    note_comparison(printed, before, chances, met, one, ranked[middle], chance, won, out)
                    low, high = (low, middle) if won == 1.0 else (middle + 1, high)
                for k in range(q, low, -1):
                    ranked[k] = ranked[k - 1]
                ranked[low] = one


def play_hunter(printed: Test, before: Test, limit: int, luck: np.random.Generator, out: np.ndarray) -> None:
    """Kernel: somebody who knows everybody's taste hunts for a wrong winner.

    Each pair in turn is asked of people who toss coins, until one arm looks certain by luck. Then the rest about that
    arm is asked of people who always prefer it.
    """
    arms = len(printed.ahead)
    chances, met = np.zeros((arms, arms)), np.zeros((arms, arms))
    most = limit // (arms * (arms - 1) // 2) - 20
    for a in range(arms):
        for b in range(a + 1, arms):
            for _ in range(most):
                outcome = 1.0 if luck.random() < 0.5 else 0.0
                note_comparison(printed, before, chances, met, a, b, 0.5, outcome, out)
                if printed.sure[a, b] or printed.sure[b, a]:
                    break
            lucky = a if printed.sure[a, b] else b
            if not (printed.sure[a, b] or printed.sure[b, a]):
                continue
            for j in range(arms):
                while j != lucky and not printed.sure[lucky, j] and out[6] < limit:
                    note_comparison(printed, before, chances, met, lucky, j, 1.0, 1.0, out)


def play_delayed(
    at_once: int,
    slow: float,
    by: int,
    lease: float,
    received: Test,
    printed: Test,
    standing: Test,
    line: Line,
    limit: int,
    luck: np.random.Generator,
    log: np.ndarray,
    out: np.ndarray,
) -> None:
    """Kernel: level arms, and answers that take longer if the first arm has not won. Each question is of somebody new.

    With a lease, only winners count that would stand had all questions without an answer gone the other way.

    Args:
        at_once: How many questions are open at any time.
        slow: How many times as long such answers take.
        by: Who chooses the pairs, from the answers received.
        lease: After what time an answer does not count any more; 0 if it always does.
        received: The test of the answers received, which is the naive reading.
        printed: The test of the questions in asking order.
        standing: The test of the answers that count, where all other questions count as lost.
        line: About other people, by the questions in asking order too.
        limit: How many answers.
        luck: Of everything.
        log: (4, limit + at_once): left, right, the outcome for the left, and RECEIVED, WAITING or EXPIRED.
        out: See `Found`.
    """
    arms = len(received.ahead)
    due, question = np.zeros(at_once), np.full(at_once, -1, np.int64)
    questions, now, missing = 0, 0.0, np.zeros((arms, arms))
    for t in range(1, limit + 1):
        for place in range(at_once):
            if question[place] < 0:
                i, j = 0, 1
                if arms > 2:
                    i, j = hunt(received) if by == BY_HUNTER and luck.random() < 0.9 else draw_pair(arms, luck)
                i, j = min(i, j), max(i, j)
                outcome = 1.0 if luck.random() < 0.5 else 0.0
                takes = -(slow if i == 0 and outcome == 0.0 else 1.0) * math.log(1.0 - luck.random())
                due[place] = now + takes
                if lease > 0.0 and takes > lease:
                    due[place], log[3, questions] = now + lease, EXPIRED
                question[place] = questions
                missing[i, j] += 1.0
                missing[j, i] += 1.0
                log[0, questions], log[1, questions], log[2, questions] = i, j, outcome
                questions += 1
        place = int(due.argmin())
        now, number = due[place], question[place]
        question[place], out[6] = -1, t
        if log[3, number] == EXPIRED:
            continue
        log[3, number] = RECEIVED
        i, j = int(log[0, number]), int(log[1, number])
        if take_answer(received, i, j, log[2, number]) >= 0:
            note_named(out, 2, t, False)
        if lease > 0.0:
            missing[i, j] -= 1.0
            missing[j, i] -= 1.0
            take_answer(standing, i, j, log[2, number])
            review(standing, i, j, missing[i, j])
            review(standing, j, i, missing[i, j])
            if find_named(standing, i, j) >= 0:
                note_named(out, 0, t, False)
    if lease > 0.0:
        return
    read_in_order(printed, log[:, :questions], out)
    for number in range(questions if len(line.seen) > 0 else 0):  # what is open at the end would only count against it
        i, j = int(log[0, number]), int(log[1, number])
        if log[3, number] == RECEIVED and out[4] == 0 and extend_line(line, number, i, j, log[2, number]):
            out[4] = number + 1


def draw_pair(arms: int, luck: np.random.Generator) -> tuple[int, int]:
    """Kernel: a random pair."""
    i, j = int(luck.random() * arms), int(luck.random() * (arms - 1))
    return i, j + int(j >= i)


def read_in_order(printed: Test, log: np.ndarray, out: np.ndarray) -> None:
    """Kernel: name whoever was certain after any of the questions in asking order, as `moments.Moments`.

    True answers can only add to what is known after a question, so the end of a study shows all that was ever named.
    """
    arms = len(printed.ahead)
    waiting = np.zeros((arms, arms))
    for number in range(log.shape[1]):
        i, j = int(log[0, number]), int(log[1, number])
        if log[3, number] == WAITING:
            waiting[i, j] += 1.0
            waiting[j, i] += 1.0
        else:
            printed.wins[i, j] += log[2, number]
            printed.wins[j, i] += 1.0 - log[2, number]
        review(printed, i, j, waiting[i, j])
        review(printed, j, i, waiting[j, i])
        if find_named(printed, i, j) >= 0:
            note_named(out, 0, number + 1, False)


def play_clicks(
    workspace: Workspace,
    documents: int,
    falling: bool,
    printed: Test,
    limit: int,
    luck: np.random.Generator,
    out: np.ndarray,
) -> None:
    """Kernel: a user who clicks one place of an interleaved list, whatever is there.

    Args:
        workspace: With both rankings.
        documents: How many they have.
        falling: Whether a click is as likely as one over its place; else all places are equally likely.
        printed: The test.
        limit: How many lists.
        luck: Of everything.
        out: See `Found`.
    """
    for t in range(1, limit + 1):
        shown = arrange(workspace, documents, len(workspace.shown), luck)
        total = 0.0
        for k in range(shown):
            workspace.clicked[k] = False
            total += 1.0 / (k + 1.0) if falling else 1.0
        left, place = luck.random() * total, 0
        for k in range(shown):
            left -= 1.0 / (k + 1.0) if falling else 1.0
            if left < 0.0:
                place = k
                break
        workspace.clicked[place] = True
        outcome = judge_by_worth(workspace, shown)
        clear(workspace, shown)
        out[6] = t
        if take_answer(printed, 0, 1, outcome) >= 0:
            note_named(out, 0, t, False)


# Items


def draw_rankings(arms: int, items: int, rng: np.random.Generator, has_reverses: bool) -> np.ndarray:
    """Return (items, K, K) float64: 1 where i is ranked above j; with reverses, every pair is exactly level."""
    rank = rng.random((items // 2 if has_reverses else items, arms)).argsort(axis=1)
    above = (rank[:, :, None] < rank[:, None, :]).astype(np.float64)
    return np.concatenate([above, above.transpose(0, 2, 1)]) if has_reverses else above


def draw_chances(how: str, arms: int, items: int, rng: np.random.Generator, has_reverses: bool) -> np.ndarray:
    """Return (items, K, K): the chances that i wins over j on each item, as a judge or as people see it.

    A judge that repeats 80 % of its answers says what an item speaks for with p, where p² + (1 − p)² = 0.8. Where it
    prefers a side, that is a coin, since sides are random.
    """
    above = draw_rankings(arms, items, rng, has_reverses)
    if how.startswith("side"):
        share = int(how.split()[1]) / 100
        blind = round(share * items / 2) if has_reverses else 0
        pairs = np.tile(np.arange(items // 2) < blind, 2) if has_reverses else rng.random(items) < share
        return np.where(pairs[:, None, None], 0.5, above)
    agree = {"coin": 0.0, "repeats 80 %": math.sqrt(0.6)}.get(how)
    agree = int(how.split()[1]) / 100 if agree is None else agree
    return agree * above + (1 - agree) / 2


def draw_answers(arms: int, items: int, ties: float, more: int, rng: np.random.Generator) -> np.ndarray:
    """Return (items, K, K): final answers. All pairs are level, but the first arm wins `more` items more than others.

    Each pair has its own items, so the arms need not be ranked.
    """
    found = np.full((items, arms, arms), 0.5)
    for i in range(arms):
        for j in range(i + 1, arms):
            decided = items - 2 * round(ties * items / 2)
            won = decided // 2 + (more if i == 0 else 0)
            said = np.array([1.0] * won + [0.0] * (decided - won) + [0.5] * (items - decided))
            found[:, i, j] = rng.permutation(said)
            found[:, j, i] = 1.0 - found[:, i, j]
    return found


def find_right(chance: np.ndarray) -> np.ndarray:
    """Return (K,) bool: which arm beats every other one on average over these items."""
    beats = chance.mean(axis=0) > 0.5 + 1e-9
    np.fill_diagonal(beats, True)
    return np.asarray(beats.all(axis=1))


# Cells


class Cell(NamedTuple):
    """One row of the table.

    Attributes:
        question: What is printed.
        name: What is simulated.
        arms: K.
        items: N; 0 without.
        study: A function of a random generator that returns what became of one study.
        before: What the naive reading is; empty if there is none.
        line: The row about the line that comes with the verdict; empty if there is none.
        studies: How many, if not as asked for.
        at_once: How many of them at the same time, if not one per core.
    """

    question: str
    name: str
    arms: int
    items: int
    study: Callable[[np.random.Generator], Found]
    before: str = ""
    line: str = ""
    studies: int | None = None
    at_once: int | None = None

    @property
    def title(self) -> str:
        items = f" N={self.items}" if self.items else ""
        return f"{self.question}: {self.name} K={self.arms}{items}"


@cache
def kernel(function: Callable[..., Any], name: str = "", **kernels: Any) -> Callable[..., Any]:
    """Compile a study. They create arrays, so they count references."""
    return compile_with(function, kernels, name=name or function.__name__, refcounted=True)


PARAMS = asking.Params(CONFIDENCE, 0.0)
NO_ORDERS = np.zeros((1, 1, 0), np.int64)


def study_items(
    about: str,
    draw: Callable[[np.random.Generator], np.ndarray],
    arms: int,
    by: int,
    has_line: bool,
    rng: Any,
    ties: float = 0.0,
) -> Found:
    """One study on items: of a judge, or of people who answer once."""
    chance = draw(rng)
    items, orders, right = len(chance), NO_ORDERS, np.zeros(arms, bool)
    if about != THESE_ITEMS:
        orders = rng.permuted(np.broadcast_to(np.arange(items), (arms, arms, items)), axis=2)
    if about != NEW_ITEMS:
        right = find_right(chance)
    naive = rule_of(arms, THESE_ANSWERS, items=items) if about == NEW_ITEMS else rule_of(arms, THESE_ITEMS)
    out = np.zeros(len(Found._fields), np.int64)
    kernel(play_on_items)(
        chance,
        about == THESE_ANSWERS,
        ties,
        orders,
        by,
        asking.init(arms, None, PARAMS),
        PARAMS,
        new_test(rule_of(arms, about, items=items))(arms),
        new_test(naive)(arms),
        right,
        new_line(arms, items if has_line else 0),
        ANSWERS,
        rng,
        out,
    )
    return Found(*out.tolist())


def study_voters(
    arms: int, items: int, each: int, by: int, rng: Any, *, late: int = 0, noise: float = 0.0, level: str = THESE_PEOPLE
) -> Found:
    """One study of people who give so many answers each; ten of them are there at any time."""
    out = np.zeros(len(Found._fields), np.int64)
    naive, by_name = rule_of(arms, THESE_ITEMS), A_PERSON if level == THESE_PEOPLE else PAST_VOTES
    once = rule_of(arms, THESE_ITEMS, first=by_name)
    later = rule_of(arms, THESE_ITEMS, level, first=by_name) if each > 1 else once  # type: ignore[arg-type]
    kernel(play_with_voters)(
        items,
        each,
        late,
        noise,
        1.0,
        by,
        asking.init(arms, None, PARAMS),
        PARAMS,
        new_crowd(arms, items, 10),
        new_test(once if late else later)(arms),
        later,
        new_test(naive)(arms),
        new_line(arms, ANSWERS + 10),
        ANSWERS,
        rng,
        out,
    )
    return Found(*out.tolist())


def study_path(arms: int, path: int, rng: Any, level: str = THESE_PEOPLE) -> Found:
    """One study of voters whose next pair depends on their own answers."""
    out = np.zeros(len(Found._fields), np.int64)
    tests = new_test(rule_of(arms, THESE_ITEMS, level))(arms), new_test(rule_of(arms, THESE_ITEMS))(arms)  # type: ignore[arg-type]
    kernel(play_paths)(path, *tests, ANSWERS, rng, out)
    return Found(*out.tolist())


def study_hunter(arms: int, rng: Any, level: str = THESE_PEOPLE) -> Found:
    """One study in which somebody hunts for a wrong winner by whom to ask; the naive reading is hunted for itself."""
    found = []
    for one in (level, INDEPENDENT):
        out = np.zeros(len(Found._fields), np.int64)
        tests = new_test(rule_of(arms, THESE_ITEMS, one))(arms), new_test(rule_of(arms, THESE_ITEMS))(arms)  # type: ignore[arg-type]
        kernel(play_hunter)(*tests, ANSWERS, rng, out)
        found.append(Found(*out.tolist()))
    return found[0]._replace(named_before=found[1].named, wrong_before=found[1].wrong)


def study_delays(arms: int, at_once: int, slow: float, by: int, rng: Any, lease: float = 0.0) -> Found:
    """One study with questions that wait for their answers."""
    out, log = np.zeros(len(Found._fields), np.int64), np.zeros((4, ANSWERS + at_once))
    tests = [new_test(rule_of(arms, THESE_ITEMS))(arms) for _ in range(3)]
    line = new_line(arms, 0 if lease else log.shape[1])
    kernel(play_delayed)(at_once, slow, by, lease, *tests, line, ANSWERS, rng, log, out)
    return Found(*out.tolist())


METHODS = {"team draft": (arrange_team_draft, 3.0), "probabilistic, assigned": (arrange_assigned, 3.0)}


def study_clicks(method: str, falling: bool, rng: Any) -> Found:
    """One study of clicks on one query with fixed rankings; before, with marginalized credit."""
    found = []
    for way, tau in (METHODS[method], (arrange_probabilistic, 3.0)):
        out = np.zeros(len(Found._fields), np.int64)
        ids, workspace = _workspace_of(list("xyz"), list("yzx"), 10, tau, "refuse")
        play = kernel(play_clicks, f"clicks_{way.__name__}", arrange=way)
        play(workspace, len(ids), falling, new_test(rule_of(2, THESE_ITEMS))(2), ANSWERS, rng, out)
        found.append(Found(*out.tolist()))
    return found[0]._replace(named_before=found[1].named, wrong_before=found[1].wrong)


# The same through the public API


def run_judge(
    about: str,
    arms: int,
    items: int,
    rng: Any,
    *,
    is_final: bool = False,
    calls: int | None = None,
    orders: str = "one",
    biased: float = 0.0,
) -> Found:
    """Call `find_best` with a judge that tosses coins, or whose answers are final and exactly level.

    On a share of the items, `biased`, it prefers the left side.
    """
    names, luck = [f"arm {k}" for k in range(arms)], random.Random(int(rng.integers(1 << 62)))
    answers = draw_answers(arms, items, 0.2, 0, rng)

    def judge(prompt: str, left: str, right: str) -> str:
        if int(prompt) < biased * items:
            return "left"
        if not is_final:
            return "left" if luck.random() < 0.5 else "right"
        said = answers[int(prompt), names.index(left.partition(" on ")[0]), names.index(right.partition(" on ")[0])]
        return {1.0: "left", 0.0: "right", 0.5: "tie"}[float(said)]

    outputs = {name: [f"{name} on {number}" for number in range(items)] for name in names}
    options: dict[str, Any] = {"about": about, "max_calls": calls, "concurrency": 1, "orders": orders}
    prompts = list(map(str, range(items)))
    result = duels.find_best(outputs, judge, prompts=prompts, storage="sqlite://", progress=False, **options)
    return found_through(result.winner is not None, result.winner is not None, result.verdict.duels)


def found_through(is_named: bool, is_wrong: bool, answers: int) -> Found:
    """Return what became of a study that was looked at through the API, where only the end is known."""
    return Found(answers * is_named, answers * is_wrong, 0, 0, 0, 0, answers)


def run_people(arms: int, items: int, each: int, agree: float, rng: Any, answers: int = 300) -> Found:
    """Ask people, who answer once or come back, with a look after every tenth answer.

    Somebody who answers once agrees with a ranking of the item, or tosses a coin. Who comes back has a ranking of the
    arms, and on half of the items another one. Then a winner is wrong if it does not win the comparisons made; their
    chances are the shares of the items not seen yet on which a voter prefers it. Five voters are there at a time.
    """
    names = [f"arm {k}" for k in range(arms)]
    study = duels.create_study(names, f"study {rng.integers(1 << 62)}", "sqlite://", seed=int(rng.integers(1 << 62)))
    add_items(study, [{"prompt": str(x), "outputs": {name: f"{name} {x}" for name in names}} for x in range(items)])
    above = draw_rankings(arms, items, rng, False)
    tastes, seen = {}, {}
    chances, met, named_at, wrong_at = np.zeros((arms, arms)), np.zeros((arms, arms)), 0, 0
    for t in range(1, answers + 1):
        voter = f"person {t}" if each == 1 else f"person {(t - 1) % 5 + 5 * ((t - 1) // (5 * each))}"
        duel = study.ask(voter=voter, allow_self=False)
        i, j = names.index(duel.left), names.index(duel.right)
        item = int(duel.item.prompt)
        if each == 1:
            chance = agree * above[:, i, j].mean() + (1 - agree) / 2
            won = above[item, i, j] == 1 if rng.random() < agree else rng.random() < 0.5
        else:
            if voter not in tastes:
                own = np.tile(draw_rankings(arms, 1, rng, False), (items, 1, 1))
                tastes[voter] = np.where(rng.random((items, 1, 1)) < 0.5, own, draw_rankings(arms, items, rng, False))
            taste = tastes[voter]
            unseen = np.array([(x, *sorted((i, j))) not in seen.setdefault(voter, set()) for x in range(items)])
            chance, won = taste[unseen, i, j].mean(), taste[item, i, j] == 1
            seen[voter].add((item, *sorted((i, j))))
        chances[i, j], chances[j, i] = chances[i, j] + chance, chances[j, i] + 1 - chance
        met[i, j] += 1
        met[j, i] += 1
        study.tell(duel, "left" if won else "right", voter=voter)
        winner = study.verdict().winner if t % 10 == 0 else None
        if winner is not None:
            arm = names.index(winner)
            named_at = named_at or t
            if not is_right_here(chances, met, arm):
                wrong_at = t
                break
    return Found(named_at, wrong_at, 0, 0, 0, 0, t)


def run_shared(items: int, slow: float, rng: Any, at_once: int = 8) -> Found:
    """Ask people through a link about level arms. Who prefers the second one takes longer; nobody answers twice.

    When nothing else is left, those who come are asked what somebody else has had for a minute. There is a look
    after every answer, until there is nothing to ask and all have answered. The naive reading is that of the tables,
    where the first answer to come counts until that of the first one asked does.
    """
    from duels.study import base as log
    from duels.study import link_voting
    from duels.study.state.next_question import SHARED_AFTER

    names, now = ["fast", "slow"], 1.7e9
    before, clock, log.clock = rule_of(2, NEW_ITEMS), log.clock, lambda: now
    named_at = named_before = answers = 0
    waiting = list[tuple[float, str, Any]]()  # when they come or answer, who, and what they were asked
    try:
        seed = int(rng.integers(1 << 62))
        study = duels.create_study(names, f"study {seed}", "sqlite://", seed=seed, about=NEW_ITEMS)
        add_items(study, [{"prompt": str(x), "outputs": {name: f"{name} {x}" for name in names}} for x in range(items)])
        waiting += [(now, f"{seed} {k}", None) for k in range(at_once)]
        while waiting:
            waiting.sort(key=lambda one: one[0])
            now, who, ballot = waiting.pop(0)
            if ballot is None:
                try:
                    ballot = study._log.storage.write(link_voting.asking(study, None, who))
                except NothingToAsk:
                    if any(one is not None for *_, one in waiting):
                        waiting.append((now + SHARED_AFTER / 4, who, None))
                else:
                    prefers = names[int(rng.random() < 0.5)]
                    takes = -SHARED_AFTER / 3 * (slow if prefers == "slow" else 1.0) * math.log(1.0 - rng.random())
                    waiting.append((now + takes, who, (ballot, prefers)))
                continue
            (asked, prefers), answers = ballot, answers + 1
            study._log.storage.write(link_voting.telling(study, who, asked.duel.id, "ab"[asked.duel.left != prefers]))
            waiting.append((now, f"{seed} {at_once + answers}", None))
            wins = study.tally().wins
            if any(is_sure(before, wins[i, 1 - i], wins[1 - i, i], 0.0) for i in (0, 1)):
                named_before = named_before or answers
            if study.verdict().winner is not None:
                named_at = named_at or answers
    finally:
        log.clock = clock
    return Found(named_at, named_at, named_before, named_before, 0, 0, answers)


@cache
def keeps_winner() -> bool:
    """Return whether a winner on the comparisons made stays one after later comparisons, which it loses."""
    study = duels.create_study(["a", "b"], "kept", "sqlite://")
    for said, times in (("left", 20), ("right", 28)):
        study.import_votes([("a", "b", said)] * times)
        winner = study.verdict().winner
    return winner == "a"


# All cells

KS, NS = (2, 3, 6), (20, 60, 200)
JUDGES = {
    "coin": "a judge that tosses coins",
    "repeats 80 %": "a judge that repeats 80 % of its answers",
    "side 20 %": "a judge that prefers a side on 20 % of the items",
    "side 40 %": "a judge that prefers a side on 40 % of the items",
}
FINAL = (("level", 0.0, 0), ("level, 20 % ties", 0.2, 0), ("one wins one item more", 0.0, 1))
PATHS = {
    LOSER_MEETS: "the loser of (b, c) meets a",
    WINNER_MEETS: "the winner meets the next arm",
    INSERTION: "each voter sorts by binary insertion",
}
BEFORE_FINAL = "each answer taken as final"
BEFORE_DRAWS = "each answer taken as a draw from all items"
BEFORE_PEOPLE = "each answer taken as a draw from all people"
BEFORE_RECEIVED = "the answers received so far"
BEFORE_FIRST = "the first answer to each question"
BEFORE_CREDIT = "probabilistic, marginalized credit"
OTHER_ITEMS, OTHER_PEOPLE = "other items", "other people"


def list_cells() -> Iterator[Cell]:
    """Yield all cells."""
    for arms in KS:
        hunter = BY_CHANCE if arms == 2 else BY_HUNTER
        policy = BY_CHANCE if arms == 2 else BY_POLICY
        for items in NS:
            for how, name in [*JUDGES.items(), ("agree 100 %", "a judge that always says the same")]:
                draw = partial(draw_chances, how, arms, items, has_reverses=False)
                study = partial(study_items, NEW_ITEMS, draw_by(draw), arms, policy, False)
                yield Cell(NEW_ITEMS, name, arms, items, study, BEFORE_FINAL)
            draw = partial(draw_chances, "repeats 80 %", arms, items, has_reverses=False)
            study = partial(study_items, NEW_ITEMS, draw_by(draw), arms, policy, False, ties=0.4)
            yield Cell(NEW_ITEMS, f"{JUDGES['repeats 80 %']}, 40 % ties", arms, items, study, BEFORE_FINAL)
            for ties, more, name in (
                (0.0, 0, "level"),
                (0.2, 0, "level, 20 % ties"),
                (0.0, 1, "one wins one item more"),
            ):
                draw = partial(draw_answers, arms, items, ties, more)
                yield Cell(
                    THESE_ANSWERS,
                    f"final answers, {name}",
                    arms,
                    items,
                    partial(study_items, THESE_ANSWERS, draw, arms, hunter, False),
                )
            for how, name in JUDGES.items():
                if how == "coin" and items > min(NS):  # items make no difference to coins
                    continue
                draw = partial(draw_chances, how, arms, items, has_reverses=True)
                study = partial(study_items, THESE_ITEMS, draw_by(draw), arms, hunter, False)
                name = "coins: people who agree on 0 %" if how == "coin" else name
                yield Cell(THESE_ITEMS, f"level items, {name}", arms, items, study)
            for agree in (30, 60, 100):
                draw = partial(draw_chances, f"agree {agree} %", arms, items, has_reverses=True)
                study = partial(study_items, THESE_ITEMS, draw_by(draw), arms, hunter, False)
                yield Cell(THESE_ITEMS, f"level items, people who agree on {agree} %", arms, items, study)
                draw = partial(draw_chances, f"agree {agree} %", arms, items, has_reverses=False)
                study = partial(study_items, THESE_ITEMS, draw_by(draw), arms, policy, True)
                name = f"sampled items, people who agree on {agree} %"
                yield Cell(THESE_ITEMS, name, arms, items, study, BEFORE_DRAWS, OTHER_ITEMS)
            draw = partial(draw_chances, "agree 60 %", arms, items, has_reverses=True)
            study = partial(study_items, THESE_ITEMS, draw_by(draw), arms, hunter, False, ties=0.4)
            yield Cell(THESE_ITEMS, "level items, people who agree on 60 %, 40 % ties", arms, items, study)
    yield from list_people()
    yield from list_delays()
    for method in METHODS:
        for falling in (False, True):
            name = f"{method}, one click {'∝ 1/place' if falling else 'anywhere'}"
            yield Cell("clicks", name, 2, 0, partial(study_clicks, method, falling), BEFORE_CREDIT)
    yield from list_api()


def draw_by(draw: Callable[..., np.ndarray]) -> Callable[[np.random.Generator], np.ndarray]:
    """Return `draw_chances` as a function of the random generator alone."""
    return lambda rng: draw(rng=rng)


def list_people() -> Iterator[Cell]:
    """Yield the cells of people with tastes of their own."""
    question = "with these people"
    for arms in KS:
        by = BY_CHANCE if arms == 2 else BY_POLICY
        for items in (20, 60):
            for each in (1, 5, 20):
                study = partial(study_voters, arms, items, each, by)
                name = f"voters with tastes who answer {each} time{'s' if each > 1 else ''}"
                asked = question if each > 1 else THESE_ITEMS
                before = BEFORE_PEOPLE if each > 1 else ""
                yield Cell(asked, name, arms, items, study, before, OTHER_PEOPLE)
        for each in (5, 20):
            study = partial(study_voters, arms, 0, each, by, noise=0.2)
            name = f"no items, voters who err in 20 % and answer {each} times"
            yield Cell(question, name, arms, 0, study, BEFORE_PEOPLE, OTHER_PEOPLE)
        study = partial(study_voters, arms, 20, 20, by, late=1000)
        yield Cell(question, "voters who come back after 1,000 answers", arms, 20, study, BEFORE_PEOPLE, OTHER_PEOPLE)
        yield Cell(question, "a hunter who knows all tastes", arms, 0, partial(study_hunter, arms), BEFORE_PEOPLE)
    for each in (5, 20):  # nothing is left to chance given who is asked: only the naive reading can err
        study = partial(study_voters, 5, 0, each, BY_POLICY)
        yield Cell(question, f"no items, voters who answer {each} times", 5, 0, study, BEFORE_PEOPLE, OTHER_PEOPLE)
    for path, arms in ((LOSER_MEETS, 3), (WINNER_MEETS, 3), (WINNER_MEETS, 5), (INSERTION, 4), (INSERTION, 6)):
        yield Cell("comparisons made", PATHS[path], arms, 0, partial(study_path, arms, path), BEFORE_PEOPLE)


def list_delays() -> Iterator[Cell]:
    """Yield the cells of answers that take longer for one side."""
    for arms in (2, 3):
        by = BY_CHANCE if arms == 2 else BY_HUNTER
        for at_once in (8, 30, 100):
            for slow in (1.0, 1.5, 3.0, 10.0):
                name = f"{at_once} open, one side {slow:g} times as slow"
                study = partial(study_delays, arms, at_once, slow, by)
                yield Cell("late answers", name, arms, 0, study, BEFORE_RECEIVED, OTHER_PEOPLE if arms == 2 else "")
            for slow in (1.0, 3.0, 10.0):
                name = f"{at_once} open, one side {slow:g} times as slow, a lease of 10 mean times"
                study = partial(study_delays, arms, at_once, slow, by, lease=LEASE)
                yield Cell("winners that would stand", name, arms, 0, study, BEFORE_RECEIVED)


def list_api() -> Iterator[Cell]:
    """Yield the cells through the public API."""
    few: dict[str, Any] = {"studies": 60, "at_once": 1}
    for arms, items in ((2, 60), (3, 20)):
        study = partial(run_judge, NEW_ITEMS, arms, items)
        yield Cell(NEW_ITEMS, "find_best, a judge that tosses coins", arms, items, study, **few)
    for orders in ("both", "auto"):
        study = partial(run_judge, NEW_ITEMS, 2, 60, orders=orders, biased=0.4)
        name = f"find_best, orders={orders}, a coin that prefers a side on 40 % of the items"
        yield Cell(NEW_ITEMS, name, 2, 60, study, **few)
    study = partial(run_judge, THESE_ITEMS, 2, 20, calls=200)
    yield Cell(THESE_ITEMS, "find_best, a judge that tosses coins, 200 calls", 2, 20, study, **few)
    study = partial(run_judge, THESE_ANSWERS, 3, 20, is_final=True)
    yield Cell(THESE_ANSWERS, "find_best, final answers, level, 20 % ties", 3, 20, study, **few)
    study = partial(run_people, 2, 20, 1, 0.6)
    yield Cell(THESE_ITEMS, "ask and tell, people who agree on 60 %, 300 answers", 2, 20, study, **few)
    study = partial(run_people, 2, 20, 20, 0.0)
    yield Cell("with these people", "ask and tell, voters who answer 20 times, 300 answers", 2, 20, study, **few)
    for items in (20, 40, 60):
        for slow in (3.0, 10.0):
            name = f"asked of two people, one side {slow:g} times as slow"
            study = partial(run_shared, items, slow)
            yield Cell(NEW_ITEMS, name, 2, items, study, BEFORE_FIRST, studies=SHARED, at_once=1)


# Rows


class Row(NamedTuple):
    """How often studies of a cell named somebody, and how often wrongly."""

    question: str
    name: str
    arms: int
    items: int
    studies: int
    named: int
    wrong: int
    bound: float  # the largest chance of a wrong winner that the studies do not refute at 99 %
    median: float | None  # answers until a winner is named, where half of the studies or more name one
    before: str
    wrong_before: int | None
    stale: int  # studies in which an arm that was named rightly would be wrong at a later look, if it stayed named
    seconds: float
    is_met: bool


def bound_of(wrong: int, studies: int) -> float:
    """Return the upper bound of a chance at 99 %, one-sided, by Clopper and Pearson."""
    return 1.0 if wrong == studies else float(stats.beta.ppf(0.99, wrong + 1, studies - wrong))


def least_of(wrong: int, studies: int) -> float:
    """Return the lower bound of a chance at 99 %, one-sided, by Clopper and Pearson."""
    return 0.0 if wrong == 0 else float(stats.beta.ppf(0.01, wrong, studies - wrong + 1))


def simulate(cell: Cell, studies: int, seed: int = 0) -> list[Found]:
    """Return what became of studies, each with random numbers of its own."""
    found: list[Found | None] = [None] * studies
    key = zlib.crc32(cell.title.encode())

    def one(number: int, stop: threading.Event, share: Callable[[float], None]) -> None:
        if not stop.is_set():
            found[number] = cell.study(np.random.default_rng([seed, key, number]))

    in_threads(one, studies, cell.at_once or thread_count(None), False, cell.title)
    return [one for one in found if one is not None]


def list_rows(cell: Cell, found: list[Found]) -> Iterator[Row]:
    """Yield the row of a cell, and that of the line beside its verdict."""
    studies, named = len(found), [one.named for one in found if one.named]
    wrong = sum(one.wrong > 0 or (one.stale > 0 and keeps_winner()) for one in found)
    until = sorted(one.named or math.inf for one in found)[studies // 2]
    median = None if math.isinf(until) else float(until)
    before = sum(one.wrong_before > 0 for one in found) if cell.before else None
    stale = sum(one.stale > 0 for one in found)
    bar = least_of if cell.studies else bound_of
    about = cell.question, cell.name, cell.arms, cell.items, studies
    rest = cell.before, before, stale, 0.0
    yield Row(*about, len(named), wrong, bound_of(wrong, studies), median, *rest, bar(wrong, studies) <= DELTA)
    if cell.line:
        lines = sum(one.line > 0 for one in found)
        # Without the line, the verdict would be read as one about other items or people: whoever is named is wrong.
        about = cell.line, *about[1:]
        rest = "the verdict read so", len(named), 0, 0.0
        bound = bound_of(lines, studies)
        yield Row(*about, lines, lines, bound, None, *rest, bound <= DELTA)


def describe_row(row: Row) -> str:
    """Return a row as a line of text."""
    share = row.wrong / row.studies
    before = "" if row.wrong_before is None else f"{row.wrong_before / row.studies:8.1%}"
    median = "" if row.median is None else f"{row.median:,.0f}"
    cell = f"{row.name} "
    what = f"{row.question:<17} {cell:·<54} {row.arms:>2} {row.items or '':>4} {row.studies:>6,}"
    return f"{what} {row.named:>6,} {row.wrong:>5} {share:7.1%} {row.bound:7.1%} {median:>7} {before:>8}"


def run_cells(cells: list[Cell], studies: int) -> list[Row]:
    """Run cells, and print each row as it comes.

    Of two level arms, 3 % are named wrongly, so of many such cells some have a bound above 5 % by chance. These are run
    again with other random numbers and more studies, which decide.
    """
    counts = f"{'studies':>7} {'named':>5} {'WRONG':>5} {'':>7} {'≤ 99 %':>7} {'median':>7} {'before':>8}"
    print(f"{'question':<17} {'cell':<54} {'K':>2} {'N':>4} {counts}", flush=True)
    rows = []
    for cell in cells:
        started = time.perf_counter()
        found = list(list_rows(cell, simulate(cell, cell.studies or studies)))
        if not all(row.is_met for row in found):
            found = list(list_rows(cell, simulate(cell, AGAIN * (cell.studies or studies), seed=1)))
        for row in found:
            rows.append(row._replace(seconds=(time.perf_counter() - started) / len(found)))
            print(describe_row(row) + ("" if row.is_met else "  ABOVE 5 %"), flush=True)
    return rows


# Tables and figure of benchmarks/promise.md


def share_text(wrong: int, studies: int) -> str:
    """Return a share as text, such as `3.1`, in percent."""
    share = 100 * wrong / studies
    return "0" if not wrong else f"{share:.2g}" if share < 1 else f"{share:.1f}" if share < 20 else f"{share:.0f}"


def write_tables(rows: list[Row]) -> str:
    """Return a Markdown table per question: wrong now and before in percent, by number of arms."""
    parts = []
    for question in dict.fromkeys(row.question for row in rows):
        here = [row for row in rows if row.question == question]
        arms = sorted({row.arms for row in here})
        lines = dict.fromkeys((row.name, row.items) for row in here)
        parts += [f"### {question}", f"| cell | N | {' | '.join(f'K = {k}' for k in arms)} |"]
        parts += ["| --- | --- |" + " --- |" * len(arms)]
        for name, items in lines:
            found = {row.arms: row for row in here if (row.name, row.items) == (name, items)}
            shares = [cell_text(found[k]) if k in found else "" for k in arms]
            parts.append(f"| {name} | {items or ''} | {' | '.join(shares)} |")
        parts.append("")
    return "\n".join(parts)


def cell_text(row: Row) -> str:
    """Return what a cell of a Markdown table has."""
    before = "" if row.wrong_before is None else f" / {share_text(row.wrong_before, row.studies)}"
    return f"{share_text(row.wrong, row.studies)}{before}"


def list_worst(rows: list[Row]) -> list[dict[str, Any]]:
    """Return the largest shares over K and N of each cell that has a naive reading, for the figure."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.wrong_before is not None and row.question not in (OTHER_ITEMS, OTHER_PEOPLE):
            name = f"{row.question}: {row.name}".replace(", a lease of 10 mean times", "")
            name = name.replace(" ∝ 1/place", ", more often near the top")  # not every font has ∝
            one = found.setdefault(name, {"cell": name, "now": 0.0, "before": 0.0})
            one["now"] = max(one["now"], row.wrong / row.studies)
            one["before"] = max(one["before"], row.wrong_before / row.studies)
    return list(found.values())


def draw_figure(rows: list[Row]) -> Any:
    """Return the chart of wrong winners per cell, before and now, with the promise as a line."""
    import altair as alt

    from duels.figures import charts

    worst = list_worst(rows)
    axis = alt.Axis(format=".0%", values=[0.05, 0.25, 0.5, 0.75, 1])
    x = alt.X("share:Q", title="studies that name a wrong winner", axis=axis, scale=alt.Scale(domain=[0, 1]))
    label = alt.Axis(labelLimit=420, title=None)
    y = alt.Y("cell:N", sort=[one["cell"] for one in worst], axis=label)
    readings = {"before": "naive reading of the same answers", "now": "Duels"}
    points = [{"cell": one["cell"], "share": one[key], "what": readings[key]} for one in worst for key in readings]
    color = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=list(readings.values()), range=[charts.ORANGE, charts.BLUE]),
        legend=alt.Legend(orient="bottom"),
    )
    lines = alt.Chart(charts.values(worst)).mark_rule(color="#CCCCCC")
    layers = [
        lines.encode(x=alt.X("now:Q"), x2="before:Q", y=y),
        alt.Chart(charts.values([{"share": DELTA}])).mark_rule(color=charts.GRAY, strokeDash=[4, 4]).encode(x=x),
        alt.Chart(charts.values(points)).mark_point(filled=True, size=50, opacity=1).encode(x=x, y=y, color=color),
    ]
    notes = ["A/A studies: nobody should be named. The largest share over all K and N", "dashed: the promise, 5 %"]
    return charts.add_title(charts.layer_charts(*layers, width=360, height=16 * len(worst)), "Wrong winners", notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cells", nargs="*", help="parts of names of cells; by default all")
    parser.add_argument("--studies", type=int, default=STUDIES, help="per cell; %(default)s by default")
    parser.add_argument("--draw", action="store_true", help="draw the figure of the last run, and print its tables")
    options = parser.parse_args()
    if options.draw:
        rows = [Row(**row) for row in json.loads((OUT / "promise.json").read_text())["rows"]]
        print(write_tables(rows))
        from duels.figures import charts

        print(charts.save(draw_figure(rows), PICTURE, scale=1.5))
        return
    chosen = list(list_cells())
    if options.cells:
        chosen = [one for one in chosen if any(text in one.title for text in options.cells)]
    started = time.perf_counter()
    rows = run_cells(chosen, options.studies)
    seconds = time.perf_counter() - started
    print(f"{len(rows)} rows in {seconds:,.0f} s")
    machine = {"machine": platform.platform(), "cores": thread_count(None), "python": platform.python_version()}
    OUT.mkdir(exist_ok=True)
    found = {**machine, "seconds": round(seconds), "rows": [row._asdict() for row in rows]}
    (OUT / "promise.json").write_text(json.dumps(found, indent=2) + "\n")
    sys.exit(0 if all(row.is_met for row in rows) else 1)


if __name__ == "__main__":
    main()
