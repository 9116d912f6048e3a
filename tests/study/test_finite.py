"""Verdicts on a fixed set of items: the evidence against literal definitions, and exact chances of errors."""

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from duels.errors import InvalidInput
from duels.study.state.item_schedule import ItemSchedule, order_of
from duels.study.stats.certainty import CertaintyState, CertaintyTest
from duels.study.stats.evidence import closeness_on_items, evidence_on_items, shortfall_on_items
from duels.study.stats.tally import as_tally
from duels.study.stats.verdict import headline, verdict

DEEP = pytest.mark.deep


def falling(x, k):
    return math.prod(x - m for m in range(k)) if k <= x else 0


def upper_half(wins, losses):
    """The integral of q^w (1−q)^l over q > ½ with the density of Beta(5, 5), exactly."""
    total = Fraction(0)
    for k in range(losses + 5):  # expand (1 − q)^(l + 4)
        power = wins + 5 + k
        total += (-1) ** k * math.comb(losses + 4, k) * (1 - Fraction(1, 2**power)) / power
    return 630 * total


def both_halves(wins, losses):
    return upper_half(wins, losses) + upper_half(losses, wins)


def sets(items, wins=0, losses=0, ties=0):
    """All sets of items that these answers can come from, as (wins, losses, ties)."""
    for won in range(wins, items - losses - ties + 1):
        for lost in range(losses, items - won - ties + 1):
            yield won, lost, items - won - lost


def chance(found, wins, losses):
    won, lost, _ = found
    return Fraction(falling(won, wins) * falling(lost, losses), falling(won + lost, wins + losses))


def least(mixture, null):
    """The least evidence over the null sets."""
    return mixture / max(null) if null else math.inf


@pytest.mark.parametrize("items", [1, 2, 3, 7, 12, 13])
def test_evidence_is_the_least_over_all_null_sets(items):
    for wins, losses, ties in ((a, b, c) for m in range(items + 1) for a, b, c in sets(m)):
        null = [chance(s, wins, losses) for s in sets(items, wins, losses, ties) if s[0] <= s[1]]
        found = float(evidence_on_items(wins, losses, ties, items))
        if wins > losses:
            expected = least(upper_half(wins, losses), null)
            assert found == pytest.approx(math.log(expected) if expected < math.inf else math.inf, abs=1e-9)
        else:
            assert found == -math.inf


def test_evidence_of_larger_sets():
    rng = np.random.default_rng(5)
    for _ in range(60):
        items = int(rng.integers(20, 60))
        wins, losses, ties, _ = rng.multinomial(items - 1, rng.dirichlet([3, 2, 1, 2])).tolist()
        wins, losses = max(wins, losses) + 1, min(wins, losses)
        null = [chance(s, wins, losses) for s in sets(items, wins, losses, ties) if s[0] <= s[1]]
        expected = least(upper_half(wins, losses), null)
        found = float(evidence_on_items(wins, losses, ties, items))
        assert found == pytest.approx(math.log(expected) if expected < math.inf else math.inf, abs=1e-8)


@pytest.mark.parametrize("items", [1, 4, 9, 12])
@pytest.mark.parametrize("margin", [0.0, 0.05, 0.125, 0.25, 0.4])
def test_closeness_is_at_most_the_least_over_all_null_sets(items, margin):
    """It is allowed to be smaller only where it says that there is no evidence."""
    said = 0
    for wins, losses, ties in ((a, b, c) for m in range(items + 1) for a, b, c in sets(m)):
        outside = [s for s in sets(items, wins, losses, ties) if s[1] - s[0] > 2 * items * margin + 1e-9]
        expected = least(both_halves(wins, losses), [chance(s, wins, losses) for s in outside])
        found = closeness_on_items(wins, losses, ties, items, margin)
        if found > -math.inf:
            said += 1
            assert found == pytest.approx(math.log(expected) if expected < math.inf else math.inf, abs=1e-9)
        else:
            assert expected <= 1.5
    assert said > items


def test_it_grows_to_the_evidence_of_fresh_draws():
    """With many items the evidence is that of items like these, on one side."""
    for wins, losses in [(14, 0), (30, 12), (60, 40), (300, 250)]:
        fresh = math.log(upper_half(wins, losses)) + (wins + losses) * math.log(2)
        assert float(evidence_on_items(wins, losses, 0, 10**9)) == pytest.approx(fresh, abs=1e-4)


def ever(found, level, evidence):
    """The exact chance that the evidence ever reaches the level when these items are asked in random order."""

    @lru_cache(None)
    def from_here(wins, losses, ties):
        if evidence(wins, losses, ties) >= level:
            return Fraction(1)
        left = tuple(total - asked for total, asked in zip(found, (wins, losses, ties)))
        if not sum(left):
            return Fraction(0)
        after = [(wins + 1, losses, ties), (wins, losses + 1, ties), (wins, losses, ties + 1)]
        return sum(Fraction(count, sum(left)) * from_here(*then) for count, then in zip(left, after) if count)

    return from_here(0, 0, 0)


LEVELS = [0.6, 1, 2, 5, 10, 20, 41]


@lru_cache(None)
def stored(items):
    known = {(a, b, c): 0.0 for m in range(items + 1) for a, b, c in sets(m)}
    counts = np.array(list(known))
    return dict(zip(known, evidence_on_items(*counts.T, items).tolist()))


def worst(items, level, evidence):
    """The largest chance of a false win, over all sets of items without more wins than losses."""
    return max(ever(s, level, evidence) for s in sets(items) if s[0] <= s[1])


@pytest.mark.parametrize("items", range(1, 13))
def test_a_false_win_has_at_most_the_promised_chance(items):
    known = stored(items)
    found = [worst(items, math.log(level), lambda *counts: known[counts]) for level in LEVELS]
    for level, error in zip(LEVELS, found):
        assert error <= 1 / (2 * level)
    if items >= 8:
        assert max(2 * level * error for level, error in zip(LEVELS, found)) > 0.4  # not for want of trying


@pytest.mark.parametrize("items", [3, 5, 6])
def test_orders_one_by_one(items):
    """The same chances by going through every order of every set of items."""
    known = stored(items)
    for found in sets(items):
        kinds = [0] * found[0] + [1] * found[1] + [2] * found[2]
        for level in (0.6, 1, 2):
            crossed = total = 0
            for order in itertools.permutations(kinds):
                counts = np.cumsum(np.eye(3, dtype=int)[list(order)], axis=0)
                crossed += any(known[tuple(row)] >= math.log(level) for row in counts.tolist())
                total += 1
            assert Fraction(crossed, total) == ever(found, math.log(level), lambda *counts: known[counts])


def with_a_margin(items, gap):
    """A broken version: it leaves out the sets that are the hardest to tell, those with nearly as many wins."""

    def evidence(wins, losses, ties):
        null = [chance(s, wins, losses) for s in sets(items, wins, losses, ties) if s[1] - s[0] >= gap]
        bound = least(upper_half(wins, losses), null)
        return -math.inf if wins <= losses else math.log(bound) if bound < math.inf else math.inf

    return evidence


def without_other_ties(items):
    """A broken version: it takes all items that are still to come for ties, but a few."""
    return lambda wins, losses, ties: float(
        evidence_on_items(wins, losses, 0, min(items, wins + losses + 2)) if wins > losses else -math.inf
    )


@pytest.mark.parametrize("broken", [lambda items: with_a_margin(items, 2), without_other_ties])
def test_broken_versions_err_more_often(broken):
    items = 9
    assert any(worst(items, math.log(level), broken(items)) > 1 / (2 * level) for level in LEVELS)


@pytest.mark.parametrize("margin", [0.0, 0.1, 0.25])
def test_a_false_closeness_has_at_most_the_promised_chance(margin):
    items = 9
    known = {s: closeness_on_items(*s, items, margin) for m in range(items + 1) for s in sets(m)}
    for level in (1.5, 2, 5, 10):
        for found in sets(items):
            if found[1] - found[0] > 2 * items * margin + 1e-9:
                assert ever(found, math.log(level), lambda *counts: known[counts]) <= 1 / level


@pytest.mark.parametrize("items", [1, 4, 9, 12])
@pytest.mark.parametrize("margin", [0.0, 0.05, 0.125, 0.25, 0.4])
def test_shortfall_is_the_least_over_all_null_sets(items, margin):
    """It is small enough everywhere, and large enough where the answers so far are below ½ − margin."""
    said = 0
    for wins, losses, ties in ((a, b, c) for m in range(items + 1) for a, b, c in sets(m)):
        inside = [s for s in sets(items, wins, losses, ties) if s[1] - s[0] <= 2 * items * margin + 1e-9]
        expected = least(both_halves(wins, losses), [chance(s, wins, losses) for s in inside])
        found = shortfall_on_items(wins, losses, ties, items, margin)
        if found > -math.inf:
            said += 1
            assert found == pytest.approx(math.log(expected) if expected < math.inf else math.inf, abs=1e-9)
        else:
            assert expected <= 1.5
    assert said >= (items if margin < 0.2 else 1)


@pytest.mark.parametrize("margin", [0.0, 0.1, 0.25])
def test_a_false_shortfall_has_at_most_the_promised_chance(margin):
    items = 9
    known = {s: shortfall_on_items(*s, items, margin) for m in range(items + 1) for s in sets(m)}
    for level in (1.5, 2, 5, 10):
        for found in sets(items):
            if found[1] - found[0] <= 2 * items * margin + 1e-9:
                assert ever(found, math.log(level), lambda *counts: known[counts]) <= 1 / level


def test_when_all_was_asked_it_is_close_or_falls_short():
    for margin in (0.0, 0.05, 0.1, 0.25):
        for found in sets(20):
            close = closeness_on_items(*found, 20, margin)
            assert (close, shortfall_on_items(*found, 20, margin)) in [(math.inf, -math.inf), (-math.inf, math.inf)]
            assert (close > 0) == (found[1] - found[0] <= 40 * margin + 1e-9)


def median_until(items, won, reached):
    """The median number of items until `reached(wins, losses)`; `won` of them are wins, the others losses."""
    waiting, wins = np.zeros(items + 1), np.arange(items + 1.0)
    waiting[0] = 1.0
    for n in range(items):
        win = waiting * np.clip((won - wins) / (items - n), 0, 1)
        waiting = waiting - win
        waiting[1:] += win[:-1]
        seen = wins[: n + 2]
        waiting[: n + 2][reached(seen, n + 1 - seen)] = 0
        if waiting.sum() < 0.5:
            return n + 1
    return items


def prior_posterior_ratio(items):
    """Waudby-Smith and Ramdas (2020) with the prior BetaBinomial(N, ½, ½), literally: certain at 80 for all S ≤ N/2."""
    from scipy import special, stats

    sizes = np.arange(items + 1.0)
    prior = stats.betabinom.logpmf(sizes, items, 0.5, 0.5)

    def reached(wins, losses):
        certain = np.zeros(len(wins), dtype=bool)
        for k, (won, lost) in enumerate(zip(wins, losses)):
            if won > lost:
                data = _log_comb(sizes, won) + _log_comb(items - sizes, lost)
                posterior = prior + data - special.logsumexp(prior + data)
                certain[k] = (prior - posterior)[sizes <= items / 2].min() >= math.log(80)
        return certain

    def _log_comb(n, k):
        drawn = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(np.maximum(n - k, 0) + 1)
        return np.where(n >= k, drawn, -np.inf)

    return reached


@pytest.mark.parametrize(
    ("items", "share", "published", "here"),
    [(100, 0.6, 77, 72), (200, 0.6, 123, 108), (200, 0.7, 52, 46), pytest.param(500, 0.6, 202, 155, marks=DEEP)],
)
def test_how_many_items_it_takes(items, share, published, here):
    """Medians: of the ratio as published, near figures that were once simulated, and of the evidence here, exactly."""
    won = round(share * items)
    assert median_until(items, won, prior_posterior_ratio(items)) == pytest.approx(published, rel=0.04)
    ours = median_until(items, won, lambda *counts: evidence_on_items(*counts, 0, items) >= math.log(40.5))
    assert ours == here


def on_items(items, results, active=None, started_with=None):
    """A tally from {(i, j): (wins, losses, ties)}."""
    arms = max(map(max, results)) + 1
    wins, ties = np.zeros((2, arms, arms), np.int64)
    for (i, j), (won, lost, tied) in results.items():
        wins[i, j], wins[j, i] = won, lost
        ties[i, j] = ties[j, i] = tied
    names = "abcdefgh"[:arms]
    return as_tally(list(names), wins, ties, active, started_with, items, "these-answers")


def test_the_verdict_when_everything_was_asked():
    winner = verdict(on_items(5, {(0, 1): (3, 2, 0), (0, 2): (1, 0, 4), (1, 2): (2, 2, 1)}))
    assert (winner.kind, winner.winner, winner.items, winner.final) == ("winner", "a", 5, True)
    assert str(winner) == (
        "By the answers given on these 5 prompts: a is the winner: against each of the 2 others it wins more prompts "
        "than it loses. a wins 60 % of its comparisons with the others (50 to 95 %). 15 answers so far. Every pair was "
        "asked about every prompt, so this is final."
    )
    level = verdict(on_items(5, {(0, 1): (2, 2, 1), (0, 2): (1, 0, 4), (1, 2): (2, 3, 0)}))
    assert (level.kind, level.leader, level.tied_with, level.final) == ("practically tied", "a", ("b",), True)
    assert str(level).startswith(
        "By the answers given on these 5 prompts: no arm beats a, which is level with b. a wins 55 % of its "
        "comparisons with the others (12 to 93 %). 15 answers so far."
    )
    assert headline(level.as_dict()) == "Level: a and b"
    none = verdict(on_items(5, {(0, 1): (3, 2, 0), (0, 2): (0, 1, 4), (1, 2): (3, 2, 0)}))
    assert (none.kind, none.final) == ("no condorcet winner", True)
    assert set(none.losses) == {("a", "c"), ("b", "a"), ("c", "b")}
    assert len(none.cycle) == 3


def test_the_verdict_before_everything_was_asked():
    soon = verdict(on_items(100, {(0, 1): (45, 20, 0)}))
    assert (soon.kind, soon.final) == ("winner", False)
    assert "95 % confidence" in str(soon)
    fresh = on_items(100, {(0, 1): (45, 20, 0)})._replace(items=None)
    assert verdict(fresh).kind == "not yet"
    assert verdict(on_items(100, {(0, 1): (30, 20, 0)})).winner is None
    assert verdict(on_items(59, {(0, 1): (30, 20, 0)})).winner == "a"  # nothing can change that
    open = verdict(on_items(100, {(0, 1): (30, 20, 0), (0, 2): (40, 0, 0)}))
    assert (open.kind, open.open_pairs) == ("not yet", (("a", "b"),))
    assert 0 < open.answers_to_go <= 50 + 60 + 100
    assert verdict(on_items(20, {(0, 1): (7, 6, 6)})).answers_to_go == 1
    with pytest.raises(InvalidInput, match="one answer per item"):
        on_items(56, {(0, 1): (37, 20, 0)})


def test_two_level_arms_end_with_everything_asked_or_with_a_margin():
    almost = on_items(100, {(0, 1): (40, 41, 18)})
    assert verdict(almost).kind == "not yet"
    assert verdict(on_items(100, {(0, 1): (41, 41, 18)})).kind == "practically tied"
    assert verdict(almost, margin=0.05).kind == "practically tied"
    assert verdict(on_items(100, {(0, 1): (25, 25, 30)}), margin=0.2).kind == "practically tied"
    assert verdict(on_items(100, {(0, 1): (5, 5, 0)}), margin=0.2).kind == "not yet"


def test_retired_arms_on_items():
    """The winner must have beaten retired arms too, or needs the evidence of all pairs; with all asked, it does not."""
    beaten = {(0, 1): (30, 8, 0), (0, 2): (60, 0, 0), (1, 2): (1, 0, 0)}
    assert verdict(on_items(200, beaten, [True, True, False])).winner == "a"
    unbeaten = beaten | {(0, 2): (1, 1, 0)}
    assert verdict(on_items(200, unbeaten, [True, True, False])).kind == "not yet"
    assert verdict(on_items(38, unbeaten, [True, True, False])).winner == "a"


def statement(tally, confidence, margin=0.0):
    """What the verdict says, as (kind, arm)."""
    found = verdict(tally, confidence=confidence, margin=margin)
    return found.kind, found.leader if found.kind in ("winner", "practically tied") else None


def is_false(said, truth, items, margin=0.0):
    """Whether a statement is false of the true counts."""
    kind, leader = said
    arms = max(map(max, truth)) + 1
    lead = np.zeros((arms, arms), np.int64)
    for (i, j), (won, lost, _) in truth.items():
        lead[i, j], lead[j, i] = won - lost, lost - won
    others = ~np.eye(arms, dtype=bool)
    if kind == "winner":
        arm = "abcdefgh".index(leader)
        return bool((lead[arm][others[arm]] <= 0).any())
    if kind == "practically tied":
        arm = "abcdefgh".index(leader)
        return bool((lead[arm][others[arm]] < -2 * margin * items).any())
    return kind == "no condorcet winner" and bool(((lead > 0) | ~others).all(axis=1).any())


def hunted(truth, items, confidence, margin=0.0, says=statement):
    """The exact chance of a false verdict, if whoever asks chooses the pairs so as to bring one about."""
    pairs = list(truth)
    said = {}

    def value(state):
        results = dict(zip(pairs, state))
        if state not in said:
            said[state] = is_false(says(on_items(items, results), confidence, margin), truth, items, margin)
        return said[state]

    @lru_cache(None)
    def from_here(state):
        if value(state):
            return 1.0
        best = 0.0
        for k, pair in enumerate(pairs):
            left = [total - asked for total, asked in zip(truth[pair], state[k])]
            if sum(left):
                chance = 0.0
                for outcome, count in enumerate(left):
                    if count:
                        counts = tuple(asked + (m == outcome) for m, asked in enumerate(state[k]))
                        chance += count / sum(left) * from_here((*state[:k], counts, *state[k + 1 :]))
                best = max(best, chance)
        return best

    return from_here(((0, 0, 0),) * len(pairs))


TRUTHS = {  # of three arms on eight items
    "level": {(0, 1): (4, 4, 0), (0, 2): (4, 4, 0), (1, 2): (4, 4, 0)},
    "cycle": {(0, 1): (5, 3, 0), (0, 2): (3, 5, 0), (1, 2): (5, 3, 0)},
    "winner": {(0, 1): (4, 3, 1), (0, 2): (4, 3, 1), (1, 2): (8, 0, 0)},
    "level on top": {(0, 1): (4, 4, 0), (0, 2): (8, 0, 0), (1, 2): (8, 0, 0)},
    "ties": {(0, 1): (3, 3, 2), (0, 2): (6, 0, 2), (1, 2): (7, 0, 1)},
}


@pytest.mark.parametrize(("items", "confidence", "at_least"), [(12, 0.5, 0.1), (40, 0.5, 0.15), (40, 0.95, 0.01)])
def test_two_level_arms_rarely_have_a_winner(items, confidence, at_least):
    """Exactly; not for want of trying."""
    found = hunted({(0, 1): (items // 2, items // 2, 0)}, items, confidence)
    assert at_least < found <= 1 - confidence


def test_no_way_of_asking_makes_false_verdicts_likely():
    assert 0 < hunted(TRUTHS["level on top"], 8, 0.5) <= 0.5


@pytest.mark.deep
@pytest.mark.parametrize("truth", TRUTHS)
def test_no_way_of_asking_makes_false_verdicts_likely_in_other_sets(truth):
    """Exactly, with the worst choice of pairs at every step. The confidences are low, so that short studies can err."""
    for confidence in (0.1, 0.5, 0.8):
        assert hunted(TRUTHS[truth], 8, confidence) <= 1 - confidence


def test_with_a_margin_too():
    for margin in (0.1, 0.2):
        assert hunted({(0, 1): (2, 6, 0)}, 8, 0.3, margin) <= 0.7


def test_hunting_finds_what_a_broken_test_does():
    """A test that takes arms for certain as soon as they lead by two errs far too often."""

    def hasty(tally, confidence, margin):
        lead = tally.wins - tally.wins.T
        ahead = (lead >= 2) | np.eye(len(lead), dtype=bool)
        return (
            ("winner", tally.names[int(ahead.all(axis=1).argmax())]) if ahead.all(axis=1).any() else ("not yet", None)
        )

    assert hunted(TRUTHS["level on top"], 8, 0.5, says=hasty) > 0.5


@pytest.mark.parametrize("margin", [0.0, 0.1])
@pytest.mark.parametrize("active", [[True] * 4, [True, True, True, False]])
def test_settled_pairs(margin, active):
    """Answer by answer as at once; a pair is settled if it is certain, or was asked about everything."""
    rng, items = np.random.default_rng(3), 30
    wins, ties = np.zeros((2, 4, 4), np.int64)
    tally = as_tally(list("abcd"), wins, ties, active, 3, items, "these-answers")
    settled, seen = CertaintyState(CertaintyTest(tally, 0.5), margin), set()
    pairs = [(i, j) for i in range(4) for j in range(i)] * items
    for i, j in sorted(rng.permutation(pairs).tolist(), key=lambda pair: pair != [1, 0]):
        outcome = rng.random()
        if outcome < 0.2:
            ties[i, j] += 1
            ties[j, i] += 1
        else:
            wins[(i, j) if outcome < 0.3 + 0.2 * j else (j, i)] += 1
        settled.update(i, j, wins, ties)
        now = as_tally(list("abcd"), wins, ties, active, 3, items, "these-answers")
        fresh, test = CertaintyState(CertaintyTest(now, 0.5), margin), CertaintyTest(now, 0.5)
        assert (settled.losses == fresh.losses).all()
        if all(active):
            assert (settled.losses == test.wins.sum(axis=0)).all()
        for arm, other in itertools.permutations(range(4), 2):
            assert settled.needs_no_more(arm, other) == fresh.needs_no_more(arm, other)
            asked = wins[arm, other] + wins[other, arm] + ties[arm, other] == items
            seen.add((settled.needs_no_more(arm, other), bool(asked)))
            assert settled.needs_no_more(arm, other) or not asked
            if all(active) and not asked:
                level = any(
                    wins[arm, k] + ties[arm, k] + wins[k, arm] == items and not test.wins[arm, k] for k in range(4)
                )
                pair = np.array([arm]), np.array([other])
                close = bool(test.closeness(*pair, margin) >= test.levels.close(*pair))
                assert settled.needs_no_more(arm, other) == (close if margin > 0 or level else test.wins[arm, other])
    assert seen == {(False, False), (True, False), (True, True)}


def test_an_arm_that_is_level_needs_the_evidence_of_a_tie():
    # a and b are level on all items, so that a can only be tied with the best: then c must be asked about further.
    wins, ties = np.zeros((2, 3, 3), np.int64)
    wins[0, 1] = wins[1, 0] = 20
    wins[0, 2] = 12
    level = as_tally(list("abc"), wins, ties, [True] * 3, 3, 40, "these-answers")
    pair = np.array([0]), np.array([2])
    test = CertaintyTest(level, 0.95)
    assert test.levels.winner(*pair) < test.evidence(*pair) < test.levels.close(*pair)
    assert not CertaintyState(CertaintyTest(level, 0.95)).needs_no_more(0, 2)
    wins[0, 1] = 0
    behind = as_tally(list("abc"), wins, ties, [True] * 3, 3, 40, "these-answers")
    assert CertaintyState(CertaintyTest(behind, 0.95)).needs_no_more(0, 2)


@pytest.mark.deep
@pytest.mark.parametrize("truth", ["level", "level on top", "cycle"])
def test_simulated_studies_rarely_err(truth):
    """A look after every answer to 200 studies of three arms on 40 items, whose pairs are those that look decisive.

    At most 5 % may err; with 22 or more of 200 the test fails, which then happens with a chance of 1e-3 at most.
    """
    rng, items, wrong = np.random.default_rng(8), 40, 0
    shares = {"level": (20, 20, 20), "level on top": (20, 30, 30), "cycle": (22, 18, 22)}[truth]
    pairs = [(0, 1), (0, 2), (1, 2)]
    facts = {pair: (won, items - won, 0) for pair, won in zip(pairs, shares)}
    for _ in range(200):
        orders = {pair: rng.permutation([0] * facts[pair][0] + [1] * facts[pair][1]).tolist() for pair in pairs}
        results = dict.fromkeys(pairs, (0, 0, 0))
        while any(orders.values()):
            evidence = {pair: abs(results[pair][0] - results[pair][1]) for pair in pairs if orders[pair]}
            pair = min(evidence, key=lambda one: (evidence[one], rng.random()))
            counts = list(results[pair])
            counts[orders[pair].pop()] += 1
            results[pair] = tuple(counts)
            if is_false(statement(on_items(items, results), 0.95), facts, items):
                wrong += 1
                break
    assert wrong < 22


def test_what_is_closed_stays_closed_when_answers_are_taken_back():
    items = ItemSchedule(1, "these-answers")
    for number, item in enumerate(order_of(1, 0, 1, (1, 2, 3))):
        assert items.ask(0, 1, {"item": item} | ({} if number else {"items": [[1, 3]], "ready": [0, 1]})) is None
    items.close(0, 0, 1)
    assert items.answer(1, 0, 1)
    assert items.answer(2, 0, 1)
    assert items.next(0, 1, lambda duel: True) is None
    items.take_back(2, 0, 1)
    for _ in range(2):
        assert items.next(0, 1, lambda duel: True) == (items.of[2], items.of[2])
        assert items.next(0, 1, lambda duel: duel != 2) is None  # and not the item of the closed duel
        assert items.count_left(0, 1) == 1
        items.replay([0, 0, 0], [1, 1, 1], [1])  # as after a snapshot was read
    items.take_back(0, 0, 1)
    assert items.next(0, 1, lambda duel: duel != 2) == (items.of[0], items.of[0])
    assert items.count_left(0, 1) == 2
