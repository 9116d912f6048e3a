"""MergeDTS: conformance, steps worked by hand, the same duels as a literal transcription of the listing."""

import math

import numpy as np
import pytest
import sampling
from oracles import duel
from scipy import special

import duels
from duels.engine import loop
from duels.policies import merge_dts
from duels.policies.kernels import FOREVER
from duels.testing import CHECKS

MERGE_DTS = duels.policy(merge_dts)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("batch", [16, 2])
def test_conformance(check, batch):
    check(duels.policy(merge_dts, batch=batch))


class Listing:
    """Algorithm 1 with lists and the same coin in the same order: one number a match, one Beta a second θ."""

    def __init__(self, K, alpha, M, C, coin):
        self.W, self.alpha, self.M, self.C, self.coin, self.K = np.zeros((K, K)), alpha, M, C, coin, K
        order = []
        for k in range(K):  # a shuffle
            order.append(None)
            at = 0 if k == 0 else int(coin.random() * (k + 1))
            order[k], order[at] = order[at], k
        b = math.ceil(K / M)
        self.batches = [order[m::b] for m in range(b)]
        self.S, self.merges, self.joins = 1, 0, 0

    def select(self, t):
        W, coin = self.W, self.coin
        if len(self.batches) > 1 and sum(map(len, self.batches)) <= self.K / 2**self.S:
            self.regroup()
        m = t % len(self.batches)
        B = self.batches[m]
        while True:
            certain = [i for i in B if any(self.upper(i, j, t) < 0.5 for j in B if j != i)]
            if not certain:
                break
            B.remove(certain[0] if len(certain) == 1 else certain[int(coin.random() * len(certain))])
        if len(self.batches) > 1 and len(B) == 1:
            self.joins += 1
            del self.batches[m]
            m %= len(self.batches)
            self.batches[m] += B
            B = self.batches[m]
        if len(B) == 1:
            return B[0], B[0]
        score = dict.fromkeys(B, 0)
        for a, i in enumerate(B):
            for j in B[a + 1 :]:
                won = coin.random() < special.betaincc(W[i, j] + 1, W[j, i] + 1, 0.5)
                score[i if won else j] += 1
        best = [i for i in B if score[i] == max(score.values())]
        c = best[0] if len(best) == 1 else best[int(coin.random() * len(best))]
        theta = {j: coin.beta(W[j, c] + 1, W[c, j] + 1) for j in B if j != c}
        return c, min(theta, key=theta.get)

    def upper(self, i, j, t):
        n = self.W[i, j] + self.W[j, i]
        return self.W[i, j] / n + math.sqrt(self.alpha * math.log(t + self.C) / n) if n else 2.0

    def regroup(self):
        self.S += 1
        self.pair()
        if min(map(len, self.batches)) < self.M / 2:
            self.pair()

    def pair(self):
        """The largest batch takes in the smallest, the next the next smallest, where 3M/2 arms are enough for both."""
        waiting, done = sorted(self.batches, key=len, reverse=True), []
        while waiting:
            batch = waiting.pop(0)
            if waiting and len(batch) + len(waiting[-1]) <= 1.5 * self.M:
                batch += waiting.pop()
                self.merges += 1
            done.append(batch)
        self.batches = done


@pytest.mark.parametrize(
    ("arms", "alpha", "batch", "c", "horizon"),
    [(2, 0.262144, 16, 4e5, 300), (7, 0.262144, 16, 4e6, 1500), (12, 0.15, 4, 1e3, 2500), (23, 0.1, 5, 50.0, 2500)],
)
def test_same_duels_as_the_listing(arms, alpha, batch, c, horizon):
    policy = duels.policy(merge_dts, alpha=alpha, batch=batch, c=c)
    joins = merges = ends = 0
    for seed in range(4):
        rng = np.random.default_rng([arms, seed])
        upper = np.triu(rng.random((arms, arms)), 1)
        matrix = upper + np.tril(1 - upper.T, -1) + np.eye(arms) / 2
        matrix[1, :], matrix[:, 1], matrix[1, 1] = 0.8, 0.2, 0.5
        coin, luck = loop.streams(seed, 0)
        state, (our_coin, _) = policy.start(arms), loop.streams(seed, 0)
        oracle = Listing(arms, alpha, batch, c, coin)
        for t in range(1, horizon + 1):
            i, j = oracle.select(t)
            assert tuple(map(int, merge_dts.select(state, policy.params, t, our_coin))) == (i, j), (seed, t)
            if i == j:
                continue
            won = 0.5 if t % 11 == 0 else duel(matrix, i, j, luck)
            oracle.W[i, j] += won
            oracle.W[j, i] += 1 - won
            merge_dts.update(state, policy.params, t, i, j, won)
        assert our_coin.bit_generator.state == coin.bit_generator.state
        joins, merges, ends = joins + oracle.joins, merges + oracle.merges, ends + (i == j)
    if arms > 7:  # the corners are reached
        assert joins
        assert merges
        assert ends


def test_by_hand():
    # Three arms, one batch; 0 beat 1 four times. The tournament, with 0 > 1 in 31/32 of the samples: 0 wins if it beats
    # 2 too (½); if it does not, 2 wins (¼) or all are level (¼, a third each). So 7/12, 1/12, 1/3 for 0, 1, 2, and with
    # 1 > 0 the same with 0 and 1 exchanged: 218, 38 and 128 of 384.
    # Against 0, the smaller of Beta(1, 5) and a uniform is arm 1's with chance 1 − 1/6; against 1, of Beta(5, 1) and a
    # uniform arm 0's with 1/6; against 2, even.
    state = sampling.told(MERGE_DTS, 3, [(0, 1, 1.0)] * 4)
    expected = {
        (0, 1): 218 / 384 * 5 / 6,
        (0, 2): 218 / 384 / 6,
        (1, 0): 38 / 384 / 6,
        (1, 2): 38 / 384 * 5 / 6,
        (2, 0): 64 / 384,
        (2, 1): 64 / 384,
    }
    sampling.assert_distributed(sampling.chosen_pairs(MERGE_DTS, state, 5, 20_000, seed=1), expected)


def test_an_arm_leaves_at_the_14th_loss():
    # L = 0.8⁶ ln(4·10⁵ + t) = 0.262144·12.8993 = 3.3815. An arm that lost all n duels has z = n²/4n = n/4: 3.25, 3.5.
    for losses, left in ((13, 3), (14, 2)):
        state = sampling.told(MERGE_DTS, 3, [(0, 1, 1.0)] * losses)
        merge_dts.select(state, MERGE_DTS.params, losses + 1, np.random.default_rng(0))
        assert state.size[0] == left
    assert state.alive[:2].tolist() == [0, 2]
    lower, upper = merge_dts.bounds(state, MERGE_DTS.params, 15)
    assert upper[1, 0] == pytest.approx(math.sqrt(0.262144 * math.log(4e5 + 15) / 14))
    assert upper[1, 0] < 0.5 < lower[0, 1]


def test_the_last_arm_duels_itself_for_good():
    state = sampling.told(MERGE_DTS, 2, [(1, 0, 1.0)] * 16)
    assert tuple(merge_dts.select(state, MERGE_DTS.params, 17, np.random.default_rng(0))) == (1, 1)
    assert merge_dts.skip(state, MERGE_DTS.params, 17) == FOREVER
    assert merge_dts.explored(state) == 17


def test_a_cycle_of_certain_losers_leaves_one_arm():
    state = sampling.told(MERGE_DTS, 3, [(0, 1, 1.0)] * 30 + [(1, 2, 1.0)] * 30 + [(2, 0, 1.0)] * 30)
    seen = set()
    for seed in range(30):
        again = sampling.told(MERGE_DTS, 3, [(0, 1, 1.0)] * 30 + [(1, 2, 1.0)] * 30 + [(2, 0, 1.0)] * 30)
        seen.add(tuple(map(int, merge_dts.select(again, MERGE_DTS.params, 91, np.random.default_rng(seed)))))
    assert seen == {(0, 0), (1, 1), (2, 2)}
    assert state.size[0] == 3


def test_the_constant_of_the_theory():
    # α = 1, δ = 0.1, K = 10: C = (3·100/(1·0.1))^1 = 3000.
    state = duels.policy(merge_dts, alpha=1.0, delta=0.1).start(10)
    assert math.exp(state.log_c) == pytest.approx(3000)
    # α = 0.501 gives an exponent of 500: no float holds C, its logarithm is 500·ln(1.004·100/(0.002·0.1)).
    state = duels.policy(merge_dts, alpha=0.501, delta=0.1).start(10)
    assert state.log_c == pytest.approx(500 * math.log(1.004 * 100 / (0.002 * 0.1)))
    assert state.inverse == 0.0


@pytest.mark.parametrize("arms", [6, 40])
def test_it_finds_the_winner_with_ever_less_regret(arms):
    """Twenty seeded runs. In 100 with other seeds one arm, the right one, was left before half of the time was over."""
    policy = duels.policy(merge_dts, c=4e4)
    first, second, right = sampling.regret_by_half(policy, sampling.ladder(arms), 20_000, 20)
    assert second < 0.3 * first
    assert right >= 0.9


@pytest.mark.parametrize(
    "bad",
    [{"alpha": 0.0}, {"alpha": math.nan}, {"batch": 1}, {"c": 0.0}, {"delta": 1.0}, {"delta": 0.1}, {"c": math.inf}],
)
def test_parameters(bad):
    with pytest.raises(duels.InvalidInput, match="of merge_dts is"):
        duels.policy(merge_dts, **bad)
