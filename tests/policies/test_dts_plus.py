"""DTS⁺: a tie worked by hand."""

import numpy as np
import sampling
from histories import state_after

import duels
from duels.policies import dts, dts_plus

DTS, DTS_PLUS = duels.policies.load_policy(dts), duels.policies.load_policy(dts_plus)


def test_by_hand():
    # Of 4,000 duels each, 0 beats 1 in 0.7 and 2 in 0.9, 1 beats 2 and 3 in 0.6, 2 beats 3 in 0.7 and 3 beats 0 in 0.9.
    # All is certain: 0 and 1 beat two arms, 2 and 3 one. r_01 = ½·(2·2 − 2 − 2)/3 = 0, the other r with 0 or 1 are 1/6.
    # R_0 = (1/6)·2/KL(0.9, ½) = 0.333/0.368 = 0.91, R_1 = (1/6)·2/KL(0.6, ½) = 0.333/0.0201 = 16.6: always 0.
    shares = {(0, 1): 0.7, (0, 2): 0.9, (1, 2): 0.6, (1, 3): 0.6, (2, 3): 0.7, (3, 0): 0.9}
    answers = [(i, j, float(n < 4000 * share)) for (i, j), share in shares.items() for n in range(4000)]
    state = state_after(DTS_PLUS, 4, answers)
    assert sampling.chosen_pairs(DTS_PLUS, state, 24_001, 300, seed=1) == {(0, 0): 300}
    assert len(sampling.chosen_pairs(DTS, state, 24_001, 300, seed=1)) == 2  # DTS takes either


def test_estimated_regret_by_hand(monkeypatch):
    # The tournament 0 > 1, 2 and 1 > 2, 3 and 2 > 3 > 0 has losses 1, 1, 2, 2, the fewest 1. With every KL = 1, arm 0
    # sums l_0 + l_j − 2 = 0, 1, 1 over the others, arm 1 too; 2 and 3 sum 1, 1 and, against each other, 2.
    monkeypatch.setattr(dts_plus, "distance", lambda state, i, j, rng: 1.0)
    state, rng = DTS_PLUS.start(4), np.random.default_rng(0)
    state.covers[0, 0] = 0b1111
    for i, beaten in enumerate((0b0110, 0b1100, 0b1000, 0b0001)):  # bit j: i beats j
        state.drawn[i, 0] = state.beaten[i, 0] = beaten
    state.lost[0, :2] = [0b0011, 0b1100]  # losses 1, 1, 2, 2
    dts_plus.count_all_losses(state, rng)
    assert state.losses.tolist() == [1, 1, 2, 2]
    for tied, expected in (([0, 1], [2, 2, -1, -1]), ([3, 2], [-1, -1, 4, 4]), ([2, 0], [2, -1, 4, -1])):
        state.tied[:2] = tied
        dts_plus.estimate_regret(state, 2, rng)
        assert state.regret.tolist() == expected
