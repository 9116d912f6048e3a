"""Reach: a transcription of its definition, one factor exactly, and how often level populations are misjudged."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from watching import chase_on, crown, new_chase

from duels.engine import compiling
from duels.policies import load_policy
from duels.study.stats.reach import IN_SIGHT, SIZES, STAKES, Reach, find_reach, firm_levels, winner_levels

LEFT, RIGHT, TIE, BOTH_BAD = range(4)
OUTCOME = {LEFT: 1.0, RIGHT: 0.0, TIE: 0.5, BOTH_BAD: 0.5}


def levels_of(winner, j, arms, start, delta):
    """The evidence that a pair needs, with all arms beaten and with the active ones only: docs/study/proofs.md."""
    later, number = max(winner, j) + 1 - start, max(winner, j) + 1
    if later > 0:
        return 48 * later * (later + 1) / delta, 192 * number * (number - 1) ** 2 / delta
    return 3 * start / (27 / 32 * delta), 96 * start**2 / delta


def transcribe(log, winner, active, start, delta):
    """(holds, clusters, prefer, split), answer by answer."""
    arms, seen, fortunes, reached, means = len(active), {}, {}, set(), {}
    for left, right, answer, cluster in log:
        if cluster < 0 or left == right or winner not in (left, right):
            continue
        outcome = OUTCOME[answer] if left == winner else 1 - OUTCOME[answer]
        j = right if left == winner else left
        means.setdefault(cluster, []).append(outcome)
        outcomes = seen.setdefault((j, cluster), [])
        outcomes.append(outcome)
        m = len(outcomes)
        if m in SIZES:
            before = fortunes.setdefault((j, m), [1.0] * len(STAKES))
            frozen = sum(outcomes) / m
            fortunes[j, m] = [f * (1 + stake * (frozen - 0.5)) for f, stake in zip(before, STAKES)]
            mean = sum(fortunes[j, m]) / len(STAKES)
            reached |= {(j, k) for k in range(2) if mean >= levels_of(winner, j, arms, start, delta)[k]}
    others = [j for j in range(arms) if j != winner]
    playing = [j for j in others if active[j]]
    all_beaten = bool(others) and all((j, 0) in reached for j in others)
    retired_beaten = all((j, 0) in reached for j in others if not active[j])
    firmly = bool(playing) and all((j, 1) in reached for j in playing)
    holds, mean = all_beaten or (not retired_beaten and firmly), [np.mean(outcomes) for outcomes in means.values()]
    return holds, len(mean), sum(one > 0.5 for one in mean), mean.count(0.5)


def columns(log):
    return np.array(log, np.int64).reshape(-1, 4).T


def test_reach_is_its_definition():
    """Random logs of a few arms and clusters, with ties, self-duels, no cluster, later and retired arms."""
    held = set()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        arms, clusters, n = rng.integers(2, 5), rng.integers(1, 40), rng.integers(0, 600)
        start, active = int(rng.integers(1, arms + 1)), rng.random(arms) < 0.8
        winner, delta, better = int(rng.integers(arms)), rng.choice([0.05, 0.5, 0.9]), rng.choice([0.5, 0.8, 0.99])
        left, right = rng.integers(arms, size=(2, n))
        for_left = np.where((left == winner) | (right != winner), better, 1 - better)
        answer = np.where(rng.random(n) < 0.1, rng.integers(2, 4, n), (rng.random(n) >= for_left).astype(int))
        log = [*zip(left, right, answer, rng.integers(-1, clusters, n) * 7)]
        found = find_reach(*columns(log), winner=winner, active=active, started_with=start, delta=delta)
        told = found.holds, found.clusters, found.prefer, found.split
        assert told == transcribe(log, winner, active, start, delta)
        assert found.needed is None or (not found.holds and found.clusters < found.needed <= IN_SIGHT * found.clusters)
        held.add((found.holds, bool(active.all())))
    assert len(held) == 4


def test_levels_are_those_of_the_proof():
    for arms, start, winner, delta in itertools.product((2, 3, 6), (1, 2, 3), (0, 1, 2), (0.05, 0.3)):
        if max(start, winner + 1) <= arms:
            right = [levels_of(winner, j, arms, start, delta) for j in range(arms)]
            for levels, k in ((winner_levels, 0), (firm_levels, 1)):
                for j in set(range(arms)) - {winner}:
                    assert levels(winner, arms, start, delta)[j] == pytest.approx(math.log(right[j][k]))


def test_shares_add_up():
    """Each pair that may be wrong, at each of three sizes, has a chance of one over its level; the sum is below δ."""
    for start in (2, 3, 7):
        named, firm = Fraction(0), Fraction(0)
        later = range(1, 400)
        named += start * 3 * Fraction(27, 32) / (3 * start)  # one pair for each arm at the start
        named += sum(2 * 3 * Fraction(1, 48 * n * (n + 1)) for n in later)  # two for each later one
        firm += Fraction(start * (start - 1), 2) * 2 * 3 / (96 * start**2)  # both sides of each pair
        firm += sum((m - 1) * 2 * 3 * Fraction(1, 192 * m * (m - 1) ** 2) for m in range(start + 1, 400))
        assert Fraction(98, 100) < named + firm < 1


@pytest.mark.parametrize("m", SIZES)
def test_one_factor_has_mean_one(m):
    """Over all clusters of a level population: with chance θ or 1 − θ of winning each answer, exactly."""
    for theta in (Fraction(0), Fraction(1, 3), Fraction(1, 2)):
        for stake in map(Fraction, STAKES):
            half, mean = Fraction(1, 2), Fraction(0)
            for p, w in itertools.product((theta, 1 - theta), range(m + 1)):
                mean += half * math.comb(m, w) * p**w * (1 - p) ** (m - w) * (1 + stake * (Fraction(w, m) - half))
            assert mean == 1
            assert 1 - stake / 2 > 0


def test_examples():
    """Clusters that all agree, two arms: the largest stake wins 1.9 times as much each time, one gambler of six."""
    log = [(0, 1, LEFT, k) for k in range(20)]
    enough = next(n for n in range(1, 21) if np.mean((1 + STAKES / 2) ** n) >= 3 * 2 / (27 / 32 * 0.05))
    assert enough == 11
    for n in range(21):
        found = find_reach(*columns(log[:n]), winner=0, active=[True] * 2, started_with=2)
        assert (found.holds, found.clusters, found.prefer) == (n >= enough, n, n)
        assert (found.needed is None) == (n in (0, *range(enough, 21)))
    other = find_reach(*columns(log), winner=1, active=[True] * 2, started_with=2)
    assert other == Reach(False, 20, 0, 0, None)


def test_answers_of_one_cluster_count_once():
    one = [(0, 1, LEFT, 3)] * 1000
    found = find_reach(*columns(one), winner=0, active=[True] * 2, started_with=2)
    assert (found.holds, found.clusters, found.prefer) == (False, 1, 1)


def test_open_questions_count_as_lost_and_as_no_cluster():
    """A late answer may be a loss: whatever it is, the line only gains by it."""
    log = [(0, 1, LEFT, k) for k in range(20)]
    late = [(0, 1, -1, k) for k in range(20, 26)]
    before = find_reach(*columns(late + log), winner=0, active=[True] * 2, started_with=2)
    assert before == find_reach(*columns(late + log), winner=0, active=[True] * 2, started_with=2)
    assert (before.clusters, before.prefer) == (20, 20)
    lost = find_reach(
        *columns([(0, 1, RIGHT, k) for k in range(20, 26)] + log), winner=0, active=[True] * 2, started_with=2
    )
    assert before.holds == lost.holds
    rng = np.random.default_rng(1)
    for _ in range(200):
        n = int(rng.integers(1, 200))
        answer, cluster = rng.integers(0, 3, n), rng.integers(0, 12, n)
        is_open = rng.random(n) < 0.2
        settled, waiting = (
            find_reach(np.zeros(n), np.ones(n), said, cluster, winner=0, active=[True] * 2, started_with=2, delta=0.9)
            for said in (answer, np.where(is_open, -1, answer))
        )
        assert settled.holds >= waiting.holds


def test_what_comes_after_the_last_size_changes_nothing():
    log = [(0, 1, LEFT, k) for k in range(9)] * 16
    more = log + [(0, 1, RIGHT, k) for k in range(9)] * 50
    found, later = (
        find_reach(*columns(x), winner=0, active=[True] * 2, started_with=2, delta=0.5) for x in (log, more)
    )
    assert found.holds
    assert later.holds
    assert (found.prefer, later.prefer) == (9, 0)


# ----- populations without a best arm -----

select: Any = None
update: Any = None


def ask_level(state, params, ranks, noise, per, left, right, answer, cluster, coin, luck):
    """Fill a log. Clusters come one after the other with `per` answers each, or all the time at random if per is 0.

    A pair is chosen from all answers before, with per > 0 from those of other clusters only. A voter's noise turns an
    answer round.
    """
    n, arms, begin = len(left), ranks.shape[1], 0
    for t in range(n):
        i, j = select(state, params, t + 1, coin)
        if i == j:
            j = (i + 1 + int(coin.random() * (arms - 1))) % arms
        c = t // per if per > 0 else int(coin.random() * len(ranks))
        won = (ranks[c, i] < ranks[c, j]) != (luck.random() < noise)
        left[t], right[t], answer[t], cluster[t] = i, j, 0 if won else 1, c
        if per == 0 or t % per == per - 1:
            for s in range(begin, t + 1):
                update(state, params, s + 1, left[s], right[s], 1.0 - answer[s])
            begin = t + 1


def misjudged(arms, per, n, studies, delta, how=0.3, clusters=20, noise=0.0, one_cluster_per_answer=False):
    """In how many studies any arm ever holds, in a population in which each ranking is as likely as its reverse.

    `how` is a policy, or the share of random pairs of `crown`. Without later arms what holds once holds for good, so
    one look at the end is a look after every answer.
    """
    chosen = load_policy(how) if isinstance(how, str) else None
    kernels = {"select": chosen.module.select, "update": chosen.module.update} if chosen else {}
    ask, wrong = compiling.compile_with(ask_level, kernels or {"select": crown, "update": chase_on}), 0
    for k in range(studies):
        coin, luck = map(np.random.default_rng, np.random.SeedSequence([0, k]).spawn(2))
        ranks = luck.permuted(np.tile(np.arange(arms), (clusters if per == 0 else n // per + 1, 1)), axis=1)
        state, params = (chosen.start(arms), chosen.params) if chosen else (new_chase(arms), how)
        log = np.zeros((4, n), np.int64)
        ask(state, params, ranks, noise, per, *log, coin, luck)
        log[3] = np.arange(n) if one_cluster_per_answer else log[3]
        wrong += any(
            find_reach(*log, winner=arm, active=[True] * arms, started_with=arms, delta=delta).holds
            for arm in range(arms)
        )
    return wrong


@pytest.mark.parametrize(("arms", "per", "n"), [(2, 1, 300), (2, 5, 600), (3, 0, 300)])
def test_level_populations_are_misjudged_in_fewer_than_delta(arms, per, n):
    """200 studies at δ = 0.2: more than 69 are wrong with probability 10⁻⁶, were it 0.2."""
    assert misjudged(arms, per, n, 200, 0.2) <= stats.binom.isf(1e-6, 200, 0.2)


def test_counting_answers_instead_of_clusters_fails():
    """The same 20 items, each of whose 300 answers counts as an item of its own: see that the test above can fail."""
    assert misjudged(2, 0, 300, 100, 0.2, one_cluster_per_answer=True) > stats.binom.isf(1e-6, 100, 0.2)


@pytest.mark.deep
@pytest.mark.parametrize("how", ["verdict", "rucb", "random", 0.05])
@pytest.mark.parametrize("noise", [0.0, 0.4])
@pytest.mark.parametrize("per", [0, 1, 5, 20])
@pytest.mark.parametrize("arms", [2, 3, 6])
def test_long_level_studies_are_misjudged_in_fewer_than_delta(arms, per, noise, how):
    """1,000 studies of 2,000 answers at δ = 0.05: more than 86 are wrong with probability 10⁻⁶, were it 0.05."""
    assert misjudged(arms, per, 2000, 1000, 0.05, how, noise=noise) <= stats.binom.isf(1e-6, 1000, 0.05)


def running_mean_holds(log, level):
    """Whether the evidence for arm 0 ever reaches a level if clusters count with running means."""
    sums: dict[int, list[float]] = {}
    fortunes = np.ones(len(STAKES))
    for left, _, answer, cluster in log:
        outcome = OUTCOME[answer] if left == 0 else 1 - OUTCOME[answer]
        won, n = sums.get(cluster, [0.0, 0])
        before, after = (won / n if n else 0.5), (won + outcome) / (n + 1)
        fortunes *= (1 + STAKES * (after - 0.5)) / (1 + STAKES * (before - 0.5))
        sums[cluster] = [won + outcome, n + 1]
        if fortunes.mean() >= level:
            return True
    return False


def test_the_running_mean_would_fail():
    """Every answer is a coin, and an item is asked again, up to five times, until arm 0 leads on it.

    Of 200 studies with 20 items, at 1/δ = 20 and without any union, far more than the 27 that 0.05 has with probability
    10⁻⁶ ever reach the level; with the first answer of each item, they do not.
    """
    rng, running, frozen = np.random.default_rng(1), 0, 0
    for _ in range(200):
        log = []
        for item in range(20):
            lead = 0
            for _ in range(5):
                answer = int(rng.integers(2))
                log.append((0, 1, answer, item))
                lead += 1 - 2 * answer
                if lead > 0:
                    break
        running += running_mean_holds(log, 20.0)
        frozen += running_mean_holds(
            [*{item: (a, b, said, item) for a, b, said, item in log[::-1]}.values()][::-1], 20.0
        )
    limit = stats.binom.isf(1e-6, 200, 0.05)
    assert frozen <= limit < running
    assert running > 60


def grow(arms, p, per, noise, clusters, rng):
    """Clusters one after the other, each with `per` answers to each pair of arm 0, which it prefers with chance p."""
    likes = rng.random((clusters, 1, arms - 1)) < p
    chance = np.broadcast_to(np.where(likes, 1 - noise, noise), (clusters, per, arms - 1))
    other = np.broadcast_to(np.arange(1, arms), chance.shape).ravel()
    cluster = np.repeat(np.arange(clusters), per * (arms - 1))
    answer = (rng.random(chance.shape) >= chance).astype(int).ravel()
    return np.stack([np.zeros(len(other), int), other, answer, cluster])


def first_to_hold(log, per_cluster, **what):
    low, high = 1, int(log[3].max()) + 1
    while low < high:  # what holds once holds for good
        middle = (low + high) // 2
        low, high = (low, middle) if find_reach(*log[:, : middle * per_cluster], **what).holds else (middle + 1, high)
    return low


@pytest.mark.parametrize(
    ("arms", "p", "per", "noise"), [(2, 0.7, 1, 0.0), (3, 0.8, 1, 0.0), (3, 0.8, 4, 0.25), (6, 0.7, 1, 0.0)]
)
def test_forecast_is_about_what_it_takes(arms, p, per, noise):
    """After 20 clusters, the median forecast is 0.8 to 2.5 times the median that it takes, of 60 studies."""
    rng, what = np.random.default_rng(4), {"winner": 0, "active": [True] * arms, "started_with": arms}
    took, forecast, each = [], [], per * (arms - 1)
    for _ in range(60):
        log = grow(arms, p, per, noise, 800, rng)
        took.append(first_to_hold(log, each, **what))
        if took[-1] > 20:
            forecast.append(find_reach(*log[:, : 20 * each], **what).needed or math.inf)
    assert 0.8 < np.median(forecast) / np.median(took) < 2.5
