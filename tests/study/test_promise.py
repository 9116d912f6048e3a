"""The promise of the verdict, exactly: the chance of ever being wrong, against the sampler that errs most."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import special
from tallies import empty, ever, table

from duels.policies.evidence import evidence, is_certain, log_closeness, margin_level, no_winner_level, winner_level
from duels.study.stats.certainty import CertaintyTest
from duels.study.stats.verdict import verdict

DELTA = 0.05


def boundary(level, duels):
    """[n − 1]: how many wins make an arm certain after n duels of a pair."""
    wins, needed = 0, []
    for n in range(1, duels + 1):
        while wins <= n and not is_certain(wins, n - wins, level):
            wins += 1
        needed.append(wins)
    return needed


def crossing(p, level, duels, both=False):
    """The exact probability that an arm, or either of both, is ever certain within so many duels of a pair."""
    here, total = np.zeros(duels + 2), 0.0
    here[0] = 1
    for n, wins in enumerate(boundary(level, duels), 1):
        after = here[: n + 1] * (1 - p)
        after[1:] += here[:n] * p
        if wins <= n:
            for hit in (slice(wins, None), slice(0, n - wins + 1))[: 1 + both]:
                total += after[hit].sum()
                after[hit] = 0
        here[: n + 1] = after
    return float(total)


def one_side(d):
    """The level at which an arm that is not better is ever certain with probability d at most."""
    return math.log((1 + 1 / d) / 2)


def test_one_side_of_the_mixture_is_small():
    """M = ½(M⁺ + M⁻), and M⁻ ≤ 1 while w ≥ l: so M⁺ ≥ 2M − 1."""
    for w, l in itertools.product(range(60), repeat=2):  # noqa: E741
        above = special.betainc(l + 5, w + 5, 0.5)  # the posterior of q > ½
        m = math.exp(evidence(w, l))
        assert 0.5 * (2 * m * above + 2 * m * (1 - above)) == pytest.approx(m)
        if w >= l:
            assert 2 * m * (1 - above) <= 1 + 1e-12
        # M⁺ does not rise if a win has probability ½ or less: its mean after the next duel, at ½ and below.
        plus = [2 * math.exp(evidence(*s)) * special.betainc(s[1] + 5, s[0] + 5, 0.5) for s in ((w + 1, l), (w, l + 1))]
        assert 0.5 * sum(plus) == pytest.approx(2 * m * above)
        assert plus[0] > plus[1]


@pytest.mark.parametrize("p", [0.5, 0.45, 0.6])
def test_crossing_probabilities_against_simulation(p):
    """5,000 studies of 300 duels, within 4.5 standard errors: a false alarm has probability 7·10⁻⁶."""
    rng, level = np.random.default_rng(0), math.log(8)
    won = np.cumsum(rng.random((5000, 300)) < p, axis=1)
    up, down = won >= boundary(level, 300), np.arange(1, 301) - won >= boundary(level, 300)
    for hit, both in ((up, False), (up | down, True)):
        exact = crossing(p, level, 300, both)
        assert abs(hit.any(axis=1).mean() - exact) < 4.5 * math.sqrt(exact * (1 - exact) / 5000)


@pytest.mark.parametrize("d", [DELTA / (4 + DELTA), 0.1, 0.393])
def test_an_arm_that_is_not_better_is_seldom_certain(d):
    level = one_side(d)
    assert 0.5 * d < crossing(0.5, level, 2000) <= d
    assert crossing(0.48, level, 2000) < crossing(0.5, level, 2000)
    # Without the 1 in M ≥ (1 + 1/d)/2 it is not so: here three wins in a row suffice.
    if d == 0.393:
        assert crossing(0.5, math.log(1 / (2 * d)), 2000) > d


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.5, 0.9])
def test_two_arms(delta):
    wrong = crossing(0.5, winner_level(delta, 2), 2000, both=True)
    assert 0.5 * delta < wrong <= 0.75 * delta
    if delta < 0.5:  # without 4/3 it would be more than the share
        assert crossing(0.5, -math.log(delta) - math.log(2), 2000, both=True) > 0.75 * delta


def streak(names, delta):
    """How many wins in a row over each of the others make a winner, by the verdict itself."""
    for n in itertools.count(1):
        if verdict(table(names, {f"a{x}": (n, 0) for x in names[1:]}), confidence=1 - delta).kind == "winner":
            return n


@pytest.mark.parametrize(
    ("delta", "two", "three", "none"), [(0.05, 13, 14, 14), (0.01, 16, 17, 17), (0.5, 6, 8, 8), (0.9, 4, 7, 7)]
)
def test_wins_in_a_row(delta, two, three, none):
    # M after n wins in a row is the product of 2(k+5)/(k+10), k = 0 … n − 1: 1, 1.09, 1.27, 1.57, 2.01, 2.68, 3.69,
    # 5.21, 7.53, 11.1, 16.6, 25.4, 39.2, 61.3, 97.1, 155, 252. Two: 4/(3δ) = 26.7, 133, 2.67, 1.48. More: 1 + 2/δ =
    # 41, 201, 5, 3.2. None of three: ½ + 2/δ + ½, the same.
    c = 1 - delta
    assert streak("ab", delta) == two
    assert streak("abc", delta) == streak("abcde", delta) == streak("abcdefghij", delta) == three
    cycle = {"ab": (none, 0), "bc": (none, 0), "ca": (none, 0)}
    assert verdict(table("abc", cycle), confidence=c).kind == "no condorcet winner"
    assert verdict(table("abc", {**cycle, "ca": (none - 1, 0)}), confidence=c).kind == "not yet"


# Three arms. A state of a pair is a number of duels n and wins w, at most `most` duels; pairs are ab, bc, ca.


def states(most):
    return [(n, w) for n in range(most + 1) for w in range(n + 1)]


def certain_in(most, level):
    """(S,) bool: whether the first of a pair is certain in each state, and whether the second is."""
    return (
        np.array([is_certain(w, n - w, level) for n, w in states(most)]),
        np.array([is_certain(n - w, w, level) for n, w in states(most)]),
    )


def hunt(chances, wrong, most):
    """The probability of ever reaching a wrong state, if the next pair is always the best for that.

    It goes backwards through all states of all pairs: so it is over all answer sequences and all samplers.
    """
    value = np.array(wrong, dtype=float)
    start = [n * (n + 1) // 2 for n in range(most + 2)]
    for duels in itertools.product(range(most, -1, -1), repeat=len(chances)):
        here = [slice(start[n], start[n + 1]) for n in duels]
        best = value[tuple(here)]
        for k, p in enumerate(chances):
            n = duels[k]
            if n < most:
                lost, won = ((*here[:k], slice(start[n + 1] + x, start[n + 2] - 1 + x), *here[k + 1 :]) for x in (0, 1))
                best = np.maximum(best, p * value[won] + (1 - p) * value[lost])
        value[tuple(here)] = best
    return float(value[(0,) * len(chances)])


def test_the_hunt_against_enumeration():
    """Two arms: all answer sequences of ten duels, each looked at by `verdict` after every answer."""

    @functools.cache
    def winner(won, lost):
        return verdict(table("ab", {"ab": (won, lost)}), confidence=0.1).winner

    for p in (0.5, 0.3):
        total = 0.0
        for answers in itertools.product((0, 1), repeat=10):
            won = [sum(answers[:n]) for n in range(11)]
            if any(winner(w, n - w) == "a" for n, w in enumerate(won)):
                total += p ** sum(answers) * (1 - p) ** (10 - sum(answers))
        level = winner_level(0.9, 2)
        assert hunt([p], certain_in(10, level)[0], 10) == pytest.approx(total) == crossing(p, level, 10)


@pytest.mark.parametrize("chances", [(0.5, 0.5), (0.5, 0.9), (0.4, 0.5)])
def test_no_sampler_does_better_than_the_product(chances):
    """However pairs are chosen, all of an arm's pairs are ever certain together with the product of the chances."""
    level, most = one_side(0.393), 40
    sure = certain_in(most, level)[0]
    alone = [crossing(p, level, most) for p in chances]
    assert hunt(chances, np.outer(sure, sure), most) == pytest.approx(math.prod(alone))


def along(values, pair):
    return values.reshape([-1 if k == pair else 1 for k in range(3)])


ARMS = ((0, 2), (1, 0), (2, 1))  # of each arm: the pair in which it is first, the pair in which it is second


def three_arms(delta, most, changes=False):
    """[a, b, c, none]: (S, S, S) bool, in which states each is the verdict; with `changes`, for any arms retired."""
    everyone = CertaintyTest(empty(3), 1 - delta)
    up, down = certain_in(most, float(everyone.levels.winner(np.array(0), np.array(1))))
    sure_up, sure_down = certain_in(most, float(everyone.levels.all_pairs(np.array(0), np.array(1))))
    lost_up, lost_down = certain_in(most, no_winner_level(delta, 3))
    said = [along(up, first) & along(down, second) for first, second in ARMS]
    if changes:  # two arms left, and the winner has not beaten the retired one
        said = [one | along(sure_up, first) | along(sure_down, second) for one, (first, second) in zip(said, ARMS)]
    losses = [along(lost_down, first) | along(lost_up, second) for first, second in ARMS]
    return [np.broadcast_to(one, (len(up),) * 3) for one in (*said, losses[0] & losses[1] & losses[2])]


def test_three_arms_are_the_verdict():
    """The states of the hunt are said to be what the verdict says, with all arms and with one retired."""
    rng, most, delta = np.random.default_rng(0), 14, 0.9
    plain, changed = three_arms(delta, most), three_arms(delta, most, changes=True)
    kinds = {"winner": 0, "no condorcet winner": 0, "not yet": 0}
    pairs = [(n, w) for n, w in states(most) if n in (0, 7, 8, 14)]
    for _ in range(500):
        chosen = [pairs[int(k)] for k in rng.integers(len(pairs), size=3)]
        if rng.random() < 0.5:  # mostly one-sided
            chosen = [(n, n * int(w > n / 2)) for n, w in chosen]
        at = tuple(n * (n + 1) // 2 + w for n, w in chosen)
        counts = {pair: (w, n - w) for pair, (n, w) in zip(("ab", "bc", "ca"), chosen)}
        found = verdict(table("abc", counts), confidence=1 - delta)
        kinds[found.kind] += 1
        for arm, said in zip("abc", plain):
            assert said[at] == (found.winner == arm)
        assert plain[3][at] == (found.kind == "no condorcet winner")
        for arm, said in zip("abc", changed):
            named = {
                verdict(table("abc", counts, active=[x != gone for x in "abc"]), confidence=1 - delta).winner
                for gone in "abc"
                if gone != arm
            }
            assert said[at] == (arm in named | {found.winner})
    assert min(kinds.values()) > 5


# Chances of a over b, b over c and c over a; which arms are wrong to name, with the number of arms they do not beat;
# whether it is wrong to say that there is no winner.
CASES = {
    "level": ((0.5, 0.5, 0.5), {"a": 2, "b": 2, "c": 2}, False),
    "a cycle": ((0.6, 0.6, 0.6), {"a": 1, "b": 1, "c": 1}, False),
    "two on top": ((0.5, 0.9, 0.1), {"a": 1, "b": 1, "c": 2}, False),
    "a winner": ((0.55, 0.9, 0.45), {"b": 1, "c": 2}, True),
    "a winner of two level arms": ((0.55, 0.5, 0.45), {"b": 2, "c": 2}, True),
}


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_three_arms_against_the_best_hunter(case, changes):
    """All samplers and all sequences of up to 3 · 14 answers at δ = 0.9, with arms that are retired and taken back."""
    chances, wrong, none = CASES[case]
    most, delta = 14, 0.9
    d = delta / (4 + delta)
    said = three_arms(delta, most, changes)
    bad = np.any([said["abc".index(arm)] for arm in wrong], axis=0)
    bound = sum(d**beaten for beaten in wrong.values())
    if none:
        bad = bad | said[3]
        bound += 2 * delta / (4 + delta)
    error = hunt(chances, bad, most)
    assert 0 < error <= bound + (delta / 32 if changes else 0)
    assert bound <= 0.75 * delta
    # A verdict that forgets one of the others: an arm that beats one arm for certain is named.
    up, down = certain_in(most, winner_level(delta, 3))
    rash = [np.broadcast_to(along(up, first) | along(down, second), bad.shape) for first, second in ARMS]
    assert hunt(chances, np.any([rash["abc".index(arm)] for arm in wrong], axis=0), most) > 2 * error


def test_three_arms_in_a_cycle_by_a_hair():
    """Arms that beat each other in a cycle, by ever less and for ever longer, come nearest to the bound 3 δ_w.

    A hunter plays an arm against the one that beats it until it is certain by mistake, then against the other, which
    it beats sooner or later; if it fails, it tries the next arm.
    """
    wrong = crossing(0.5, winner_level(DELTA, 3), 4000)
    error = 1 - (1 - wrong) ** 3
    assert 0.6 * 0.75 * DELTA < error < 0.75 * DELTA
    # With the level of two arms, the share would be exceeded.
    assert 1 - (1 - crossing(0.5, winner_level(DELTA, 2), 4000)) ** 3 > 0.75 * DELTA


def union(chances):
    """The probability that at least one of several independent pairs goes wrong."""
    return 1 - math.prod(1 - one for one in chances)


def test_retired_arms_must_have_been_beaten():
    """Ten level arms: a hunter waits for any certain pair, and retires all others."""
    found = CertaintyTest(empty(10), 1 - DELTA)
    level = float(found.levels.all_pairs(np.array(0), np.array(1)))
    assert union([crossing(0.5, level, 2000, both=True)] * 45) <= DELTA / 32
    # The verdict asks for that level, where at that of a winner the hunter would find one too often.
    assert union([crossing(0.5, winner_level(DELTA, 10), 2000, both=True)] * 45) > DELTA
    needed = boundary(level, 40)
    two = [True, True] + [False] * 8
    for wins, kind in ((needed[39], "winner"), (needed[39] - 1, "not yet")):
        assert verdict(table("abcdefghij", {"ab": (wins, 40 - wins)}, active=two)).kind == kind
    beaten = {f"a{x}": (14, 0) for x in "cdefghij"}
    assert verdict(table("abcdefghij", {"ab": (14, 0), **beaten}, active=two)).winner == "a"
    assert verdict(table("abcdefghij", {"ab": (14, 0), **beaten, "ac": (13, 0)}, active=two)).kind == "not yet"


def test_later_arms():
    """A winner and sixty later arms that are level with it: two pairs of each later arm may go wrong."""
    arms = 62
    found = CertaintyTest(empty(arms, 2), 1 - DELTA)
    later = [crossing(0.5, float(found.levels.winner(np.array(0), np.array(k))), 1000) for k in range(2, arms)]
    assert 0.2 * DELTA / 8 < union(later * 2) <= DELTA / 8
    # With the level of the starting arms, one of them would be wrong too often.
    assert union([crossing(0.5, winner_level(DELTA, 3), 1000)] * (arms - 2)) > DELTA
    # M after 17 … 20 wins in a row is 252, 411, 676 and 1119; the levels are 320.5 and 960.5.
    wins = {"ab": (13, 0), "ac": (18, 0), "ad": (20, 0)}
    assert verdict(table("abcd", wins, started_with=2)).winner == "a"
    for pair, (won, _) in wins.items():
        assert verdict(table("abcd", {**wins, pair: (won - 1, 0)}, started_with=2)).kind == "not yet"
    newest = {"da": (20, 0), "db": (20, 0), "dc": (20, 0)}
    assert verdict(table("abcd", newest, started_with=2)).winner == "d"
    assert verdict(table("abcd", {**newest, "db": (19, 0)}, started_with=2)).kind == "not yet"


def test_a_winner_is_seldom_denied():
    """A winner by a hair of sixty arms, of which the others lose to each other: any of 59 pairs may deny it."""
    arms = 60
    share = 2 * DELTA / (4 + DELTA)
    assert union([crossing(0.5, no_winner_level(DELTA, arms), 2000)] * (arms - 1)) <= share
    assert union([crossing(0.5, winner_level(DELTA, arms), 2000)] * (arms - 1)) > DELTA


@pytest.mark.parametrize("tie", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("margin", [0.02, 0.1])
def test_closeness_does_not_rise_beyond_the_margin(margin, tie):
    """From any state, with a mean of ½ − margin, the mean of the evidence after the next duel is the evidence now."""
    chance = 0.5 - margin - tie / 2
    for w, l, t in itertools.product(range(0, 30, 5), repeat=3):  # noqa: E741
        after = [log_closeness(*s, margin) for s in ((w + 1, l, t), (w, l + 1, t), (w, l, t + 1))]
        mean = np.dot(np.exp(after), [chance, 1 - tie - chance, tie])
        assert mean == pytest.approx(math.exp(log_closeness(w, l, t, margin)))
        # A larger margin is reached sooner, whatever the counts: one chance of error is enough for all margins.
        assert log_closeness(w, l, t, margin + 0.05) >= log_closeness(w, l, t, margin)


@pytest.mark.parametrize(("tie", "duels"), [(0.0, 250), (0.4, 60)])
@pytest.mark.deep
def test_practically_tied_is_seldom_wrong(tie, duels):
    """Arms just beyond the margin: the exact chance that one is ever close, and that any of 400 in a cycle is."""
    margin, delta = 0.1, 0.5

    def wrong_at(level):
        def wrong(w, l, t):  # noqa: E741
            return [log_closeness(*counts, margin) >= level for counts in zip(w, l, t)]

        return ever(0.5 - margin - tie / 2, tie, wrong, duels)

    two, many = wrong_at(margin_level(delta, 2)), wrong_at(margin_level(delta, 400))
    assert 0.1 * delta / 16 < two <= delta / 16
    assert 0 < union([many] * 400) <= delta / 16
    assert union([two] * 400) > delta  # without the union over arms
