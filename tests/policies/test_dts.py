"""DTS: a step worked by hand, and its words of coins."""

import math
from collections import Counter

import numpy as np
import pytest
import sampling
from histories import state_after
from oracles.dts import bounds, list_candidates
from scipy import special

import duels
from duels.policies import dts, dts_plus

DTS = duels.policies.load_policy(dts)


def test_by_hand():
    # Arm 0 beat arm 1 four times, arm 2 has not played. At t = 5: L = 0.51 ln 5 = 0.8208, z_10 = 16/16 = 1 ≥ L, that is
    # u_10 = √(0.8208/4) = 0.453 ≤ ½: arm 1 may beat one arm, the candidates 0 and 2 two. θ_01 > ½ has chance 31/32.
    # First arm 0, if θ_01 > ½: when it beats 2, or (both lose once) half of the time: ½ + ½·½·½ = 5/8;
    # if not: when it beats 2 and 2 loses to 1, or half of the time when 2 beats 1: ½·½ + ½·½·½ = 3/8.
    zero = 31 / 32 * 5 / 8 + 1 / 32 * 3 / 8
    # Second, against 0: Beta(1, 5), uniform and ½. ½ is largest with chance 31/32·½; θ_10 with
    # ∫ 5(1 − x)⁴ x dx from ½ to 1 = (½)⁵ − 5/6·(½)⁶ = 7/384. Against 2: two uniforms and ½: ¼ for itself.
    expected = {
        (0, 0): zero * 31 / 64,
        (0, 1): zero * 7 / 384,
        (0, 2): zero * 191 / 384,
        (2, 0): (1 - zero) * 3 / 8,
        (2, 1): (1 - zero) * 3 / 8,
        (2, 2): (1 - zero) / 4,
    }
    state = state_after(DTS, 3, [(0, 1, 1.0)] * 4)
    sampling.assert_distributed(sampling.chosen_pairs(DTS, state, 5, 20_000, seed=1), expected)


def test_the_second_arm_is_the_largest_of_the_values_not_of_the_chances():
    # Against 0: Beta(1, 5), Beta(31, 31), Beta(3, 2) and ½. The first is rarely above ½, but then often the largest.
    answers = [(0, 1, 1.0)] * 4 + [(0, 2, 1.0), (0, 2, 0.0)] * 30 + [(0, 3, 1.0)] + [(0, 3, 0.0)] * 2
    state = state_after(DTS, 4, answers)
    rng, limit = np.random.default_rng(3), 0.51 * math.log(70)
    ours = Counter(int(dts.second(state, 0, limit, rng)) for _ in range(40_000))
    theta = [np.full(40_000, 0.5)] + [rng.beta(a, b, 40_000) for a, b in ((1, 5), (31, 31), (3, 2))]
    sampling.assert_alike(ours, Counter(np.argmax(theta, axis=0).tolist()))


def test_an_arm_certain_to_beat_the_first_is_not_asked_again():
    # 1 beats 0 in 40 of 40 duels, yet 0 beats 2 and 3 and is the only arm that may beat two others; θ_10 is nearly 1.
    sweeps = [(1, 0), (0, 2), (0, 3), (2, 1), (3, 1), (2, 3)]
    answers = [(i, j, 1.0) for i, j in sweeps for _ in range(40)]
    state = state_after(DTS, 4, answers)  # scores 2, 1, 2, 1
    pairs = sampling.chosen_pairs(DTS, state, 300, 500, seed=1)
    assert set(pairs) == {(0, 0), (2, 2)}


def test_bounds_and_chances_kept_step_by_step():
    """The candidates are those of the formulas at each of 1,500 steps, with answers out of turn and ties among them."""
    state, coin, luck = DTS.start(5), np.random.default_rng(1), np.random.default_rng(2)
    sizes = set()
    for t in range(1, 1501):
        i, j = dts.select(state, DTS.params, t, coin)
        u, _ = bounds(state.wins, t, 0.51)
        size = dts.candidates(state, 0.51 * math.log(t))
        assert sorted(state.pool[:size].tolist()) == list_candidates(u)
        sizes.add(size)
        if t % 5 == 0:
            i, j = luck.integers(5, size=2)
        dts.update(state, DTS.params, t, i, j, 0.5 if t % 7 == 0 else float(luck.random() < 0.5 + 0.3 * (i - j)))
    assert len(sizes) > 3
    off = ~np.eye(5, dtype=bool)
    expected = special.betaincc(state.wins + 1, state.wins.T + 1, 0.5)
    np.testing.assert_allclose(state.chance[off], expected[off], atol=1e-13)


def state_of_many(arms, answers, seed):
    return state_after(DTS, arms, sampling.random_answers(arms, answers, seed=seed))


def match(state, i, j):
    """Whether i beat j in the tournament, and that the match was drawn in one row alone."""
    mine, theirs = (state.drawn[a, b // 53] >> b % 53 & 1 for a, b in ((i, j), (j, i)))
    assert mine + theirs == 1
    return bool(state.beaten[i, j // 53] >> j % 53 & 1) if mine else not state.beaten[j, i // 53] >> i % 53 & 1


@pytest.mark.parametrize(("arms", "answers"), [(53, 100), (54, 4000), (120, 3000)])
def test_a_tournament_in_words_draws_each_match_once(arms, answers):
    """Whoever gives up early: once the rest is drawn too, those tied are the candidates with the fewest losses."""
    state, rng = state_of_many(arms, answers, seed=arms), np.random.default_rng(1)
    seen = set()
    for _ in range(20):
        size = dts.candidates(state, 0.51 * math.log(answers))
        ties = dts.sampled_winners(state, size, rng)
        pool, tied = state.pool[:size].tolist(), sorted(state.tied[:ties].tolist())
        dts_plus.count_all_losses(state, rng)
        beaten = [[i != j and match(state, i, j) for j in range(arms)] for i in range(arms)]
        losses = arms - 1 - np.sum(beaten, axis=1)
        assert state.losses.tolist() == losses.tolist()
        assert tied == sorted(i for i in pool if losses[i] == min(losses[pool]))
        seen.add((size > 1, ties > 1))
    assert (True, True) in seen


def test_coins_of_a_word_have_their_chances():
    """All 57 coins of an arm, 4,000 times: no lane is off by 5.6 deviations, which one in 10⁶ such tests would be."""
    state, rng = state_of_many(58, 40_000, seed=3), np.random.default_rng(2)
    won = np.zeros(106)
    for _ in range(4000):
        for w, mask in enumerate((state.lanes[0] & ~1, state.lanes[1])):
            beaten = dts.toss(state, 0, w, mask, rng)
            assert beaten & ~mask == 0
            won[w * 53 :][:53] += [beaten >> lane & 1 for lane in range(53)]
    chance = state.chance[0, 1:]
    assert len(np.unique(chance)) > 30
    deviation = np.sqrt(4000 * chance * (1 - chance)) + 1
    assert (np.abs(won[1:58] - 4000 * chance) < 5.6 * deviation).all()


def test_a_coin_that_eight_digits_leave_open():
    # The uniform number begins like the chance, 0.8 = 0.11001100 1100… in binary: then 0.8·256 − 204 = 0.8 is left to
    # decide, so that 0.79 beats and 0.81 does not. A chance of 1 always beats.
    class Fixed:
        def __init__(self, last):
            self.numbers = [1 - 2.0**-53 if digit == "1" else 0.0 for digit in "11001100"] + [last]

        def random(self):
            return self.numbers.pop(0)

    state = DTS.start(3)
    state.chance[0, 1] = 0.8
    dts.set_digits(state, 0, 1)
    assert dts.toss(state, 0, 0, 0b010, Fixed(0.79)) == 0b010
    assert dts.toss(state, 0, 0, 0b010, Fixed(0.81)) == 0
    state.chance[0, 1] = 1.0
    dts.set_digits(state, 0, 1)
    rng = np.random.default_rng(0)
    assert all(dts.toss(state, 0, 0, 0b010, rng) == 0b010 for _ in range(5000))


def test_ones():
    for word in (0, 1, 2**53 - 1, 0b1011 << 40, 0x15555555555555):
        assert dts.ones(word) == word.bit_count() == dts.ones(np.int64(word))


def test_compiled_is_interpreted_with_more_arms_than_a_word_has():
    problem = duels.load_problem("bradley-terry:arms=60")
    compiled, interpreted = (
        duels.simulate(problem, DTS, horizon=400, compiled=compiled).final()["regret"].item()
        for compiled in (True, False)
    )
    assert compiled == interpreted
