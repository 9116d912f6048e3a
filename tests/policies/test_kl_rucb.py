"""KL-RUCB: its steps and bounds by hand."""

import importlib
import math

import numpy as np
import pytest
from histories import choices, state_after

import duels
from duels import theory
from duels.policies import kl_rucb
from duels.policies.divergences import kl_upper

KL_RUCB = duels.policies.load_policy(importlib.import_module("duels.policies.kl_rucb"))


def test_steps_by_hand():
    # 0 beat 1 in 4 of 4: z_10 = 4 ln 2 = 2.7726 > 1.02 ln t until t = e^2.7182 = 15.15, so arm 1 is out up to t = 15;
    # RUCB's own bound lets it in from t = e^(1/0.51) = 7.1 on. Arm 2 has not played: u = 2 for it and against it.
    state = state_after(KL_RUCB, 3, [(0, 1, 1.0)] * 4)
    assert state.z[1, 0] == pytest.approx(2.7726, abs=1e-4)
    assert choices(KL_RUCB, state, 15) == {(0, 2), (2, 0), (2, 1)}
    assert choices(KL_RUCB, state, 16) == {(0, 2), (1, 2), (2, 0), (2, 1)}


def test_bounds_by_hand():
    # At t = 10 the budget is 1.02 ln 10 = 2.3486. w = 0 of 4: u = 1 − e^(−2.3486/4) = 0.4441. w = 1 of 2:
    # ½ ln(1/4q(1−q)) = 1.1743, so that 4q(1−q) = e^−2.3486 = 0.09550 and q = ½ + ½√0.9045 = 0.97553.
    state = state_after(KL_RUCB, 3, [(0, 1, 1.0)] * 4 + [(0, 2, 1.0), (0, 2, 0.0)])
    lower, upper = kl_rucb.bounds(state, KL_RUCB.params, 10)
    assert upper[1, 0] == pytest.approx(0.4441, abs=1e-4)
    assert lower[0, 1] == pytest.approx(0.5559, abs=1e-4)
    assert upper[0, 2] == upper[2, 0] == pytest.approx(0.97553, abs=1e-5)
    assert (upper[0, 1], upper[1, 2], lower[1, 2], upper[0, 0]) == (1, 2, -1, 0.5)


def test_bounds_are_within_rucbs():
    rng = np.random.default_rng(0)
    state = state_after(KL_RUCB, 5, [(int(i), int(j), float(w)) for i, j, w in rng.integers(0, [5, 5, 2], (400, 3))])
    lower, upper = kl_rucb.bounds(state, KL_RUCB.params, 401)
    wide = theory.interval(state.wins, state.wins.T, 401, 0.51)
    off = ~np.eye(5, dtype=bool)
    assert (upper[off] <= wide.upper[off] + 1e-12).all()
    assert (lower[off] >= wide.lower[off] - 1e-12).all()


def test_tangents_bound_and_the_largest_is_exact():
    """At later and earlier times alike, from whatever time the tangents were drawn at."""
    rng = np.random.default_rng(1)
    state = state_after(KL_RUCB, 8, [(int(i), int(j), float(w)) for i, j, w in rng.integers(0, [8, 8, 2], (900, 3))])
    for t in (1000, 3, 10**6, 50, 10**12, 2, 1001, 1):
        limit = 1.02 * math.log(t)
        for c in range(8):
            top = kl_rucb.highest(state, c, limit)
            n = state.wins[:, c] + state.wins[c]
            exact = [kl_upper(state.wins[j, c] / n[j], n[j], limit) if j != c else -1.0 for j in range(8)]
            assert top == max(exact)
            assert (state.score >= np.array(exact) - 1e-12).all()
            assert {j for j in range(8) if state.exact[j] and state.score[j] == top} == {
                j for j in range(8) if exact[j] == top
            }


def test_skip_ends_when_the_closest_arm_may_win_again():
    # 0 beat 1 and 2 in 20 of 20: frozen while 1.02 ln t < 20 ln 2 = 13.863, t < e^13.591 = 799,068 or so.
    state = state_after(KL_RUCB, 3, [(0, 1, 1.0), (0, 2, 1.0)] * 20)
    assert choices(KL_RUCB, state, 100) == {(0, 0)}
    rng = np.random.default_rng(0)
    kl_rucb.select(state, KL_RUCB.params, 100, rng)
    until = int(kl_rucb.skip(state, KL_RUCB.params, 100))
    assert until == pytest.approx(math.exp(20 * math.log(2) / 1.02), abs=2)
    assert choices(KL_RUCB, state, until - 1) == {(0, 0)}
    assert (0, 0) not in choices(KL_RUCB, state, until)


def test_parameters():
    with pytest.raises(duels.InvalidInput, match="expected a positive number"):
        duels.policies.load_policy(KL_RUCB, alpha=0)
    with pytest.warns(UserWarning, match="needs alpha > 0.5"):
        duels.policies.load_policy(KL_RUCB, alpha=0.4)
