"""The policies against the papers' listings, duel for duel; their conformance; their names and parameters."""

import math
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import oracles
import pytest

import duels
from duels import testing
from duels.engine import loop
from duels.errors import InvalidInput, PolicyError, UnknownName
from duels.policies import policy, rucb
from duels.policies.kernels import FOREVER, nth_pair
from duels.policies.rucb import first_time

# Every variant of every built-in policy. BTM at γ = 1 eliminates late, so a smaller γ exercises elimination.
VARIANTS = [
    "rucb",
    "rucb:alpha=0.9",
    "rucb:alpha=2",
    "rucb:variant=icml",
    "rucb:unplayed=1",
    "savage",
    "savage:delta=0.2",
    "savage:delta=0.2,sampling=least",
    "btm",
    "btm:gamma=0.3",
    "interleaved_filter",
    "random",
]

PAPERS = ("rucb", "savage", "btm", "interleaved_filter", "random")  # those the paper compares; the others have files


def random_matrix(arms, seed, spread=0.5):
    rng = np.random.default_rng(seed)
    upper = np.triu(0.5 + spread * (rng.random((arms, arms)) - 0.5) * 2 * 0.99, 1)
    matrix = upper + np.tril(1 - upper.T, -1) + np.eye(arms) / 2
    if seed % 3:  # most with a Condorcet winner, so that arms are eliminated and self-duels occur
        best = int(rng.integers(arms))
        matrix[best, :], matrix[:, best] = 0.5 + spread * 0.8, 0.5 - spread * 0.8
    np.fill_diagonal(matrix, 0.5)
    return matrix


def compiled_history(spec, matrix, horizon, seed):
    """The duels of a compiled run, read off the tally step by step, and what it leaves behind."""
    chosen = policy(spec)
    play = loop.ready(chosen, len(matrix), horizon, matrix)
    state, tally = chosen.start(len(matrix), horizon), np.zeros(matrix.shape)
    coin, luck = loop.streams(seed, 0)
    history = []
    for t in range(1, horizon + 1):
        before = tally.copy()
        play(state, chosen.params, matrix, tally, t, t, FOREVER, 1, coin, luck, np.random.default_rng(0))
        moved = np.argwhere(tally != before)
        assert len(moved) == 1
        history.append(tuple(moved[0].tolist()))
    return history, coin.bit_generator.state, luck.bit_generator.state


def winners(history):
    """Whoever won each duel first, the loser second: the form in which the tally tells it."""
    return [(i, j) if won in (None, 1.0) or i == j else (j, i) for i, j, won in history]


@pytest.mark.parametrize("spec", VARIANTS)
@pytest.mark.parametrize(("arms", "horizon"), [(2, 300), (3, 400), (6, 500)])
def test_same_duels_as_the_listing(spec, arms, horizon):
    chosen = policy(spec)
    horizon *= 6 if chosen.name == "interleaved_filter" else 1  # its confidence takes that long
    for seed in range(4):
        matrix = random_matrix(arms, seed)
        coin, luck = loop.streams(seed, 0)
        expected = oracles.ORACLES[chosen.name](matrix, horizon, coin, luck, **chosen.params._asdict())
        history, coin_state, luck_state = compiled_history(spec, matrix, horizon, seed)
        assert history == winners(expected)
        assert luck_state == luck.bit_generator.state
        if chosen.name != "btm":  # the listing breaks the tie of a last elimination one step earlier
            assert coin_state == coin.bit_generator.state


@pytest.mark.deep
@pytest.mark.parametrize("spec", VARIANTS)
@pytest.mark.parametrize("arms", [2, 3, 4, 8, 13])
def test_same_duels_as_the_listing_at_length(spec, arms):
    chosen = policy(spec)
    for seed in range(10, 20):
        matrix = random_matrix(arms, seed, spread=0.2 + 0.3 * (seed % 2))
        coin, luck = loop.streams(seed, 0)
        horizon = 600 if chosen.name == "btm" else 3000
        expected = oracles.ORACLES[chosen.name](matrix, horizon, coin, luck, **chosen.params._asdict())
        assert compiled_history(spec, matrix, horizon, seed)[0] == winners(expected)


def test_the_listings_reach_every_corner():
    """Self-duels, eliminations and successions occur in the runs above; else they would prove little."""
    for name, oracle in oracles.ORACLES.items():
        parameters = {"gamma": 0.3} if name == "btm" else {"delta": 0.2} if name == "savage" else {}
        horizon = 2400 if name == "interleaved_filter" else 400
        histories = [oracle(random_matrix(3, seed), horizon, *loop.streams(seed, 0), **parameters) for seed in range(4)]
        ends = [any(won is None for _, _, won in history) for history in histories]
        assert any(ends) == (name != "random"), name
        if name == "interleaved_filter":
            assert any(len({incumbent for incumbent, _, _ in history}) > 1 for history in histories)


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("spec", [*PAPERS, "rucb:variant=icml", "savage:sampling=least", "btm:gamma=0.3"])
def test_conformance(check, spec):
    check(policy(spec))


# Hand-worked steps ----------------------------------------------------------------------------------


def told(spec, arms, answers, horizon=1000):
    chosen = policy(spec)
    state = chosen.start(arms, horizon)
    for t, (i, j, won) in enumerate(answers, 1):
        chosen.module.update(state, chosen.params, t, i, j, won)
    return chosen, state


def choices(chosen, state, t, draws=200):
    rng = np.random.default_rng(0)
    return {tuple(map(int, chosen.module.select(deepcopy(state), chosen.params, t, rng))) for _ in range(draws)}


def test_rucb_by_hand():
    # Arm 0 beat arm 1 four times, arm 1 never won; arm 2 has not played. At t = 5: L = 0.51·ln 5 = 0.8208.
    # u_10 = 0/4 + √(0.8208/4) = 0.453 < ½, so arm 1 is out. u_01 = 1 + 0.453; every u with arm 2 is 2.
    chosen, state = told("rucb", 3, [(0, 1, 1.0)] * 4)
    # c is 0 or 2. Against 0: u_20 = 2 is largest. Against 2: u_02 = u_12 = 2 tie.
    assert choices(chosen, state, 5) == {(0, 2), (2, 0), (2, 1)}
    lower, upper = chosen.module.bounds(state, chosen.params, 5)
    assert upper[1, 0] == pytest.approx(math.sqrt(0.51 * math.log(5) / 4))
    assert upper[0, 1] == pytest.approx(1 + math.sqrt(0.51 * math.log(5) / 4))
    assert lower[0, 1] == pytest.approx(1 - upper[1, 0])
    assert (upper[0, 2], lower[0, 2], upper[0, 0], lower[0, 0]) == (2.0, -1.0, 0.5, 0.5)
    assert chosen.module.champions(state, chosen.params, 5).tolist() == [True, False, True]


def test_rucb_prefers_a_once_won_pair_to_an_unplayed_one_from_t_8():
    # u = 1 + √(0.51 ln t) exceeds 2 from t = 8 on: 0.51·ln 7 = 0.992, 0.51·ln 8 = 1.061.
    chosen, state = told("rucb", 3, [(1, 0, 1.0)])
    assert {d for c, d in choices(chosen, state, 7) if c == 0} == {2}
    assert {d for c, d in choices(chosen, state, 8) if c == 0} == {1}


def test_rucb_prefers_a_once_lost_pair_to_an_unplayed_one_from_t_2549():
    # u = √(0.51 ln t) exceeds 2 once ln t > 4/0.51 = 7.8431, at t = 2549. The loser itself has z = ¼ ≤ L: it is in.
    chosen, state = told("rucb", 3, [(1, 0, 0.0)])
    assert {d for c, d in choices(chosen, state, 2548) if c == 0} == {2}
    assert {d for c, d in choices(chosen, state, 2549) if c == 0} == {1}


def test_rucb_unplayed_pairs_by_hand():
    # At t = 4, u_10 = 1/1 + √(0.51 ln 4) = 1.84 for the arm that won once: less than the 2 of arm 2, more than 1.
    for spec, challenger in (("rucb", 2), ("rucb:unplayed=1", 1)):
        chosen, state = told(spec, 3, [(1, 0, 1.0)])
        assert {d for c, d in choices(chosen, state, 4) if c == 0} == {challenger}
    _, upper = rucb.bounds(state, chosen.params, 4)
    assert upper[0, 2] == 1


def test_rucb_exploits_and_knows_when_to_look_again():
    # Two arms, 0 won all 10 duels: z_10 = 100/40 = 2.5, so 0 duels itself while 0.51·ln t < 2.5, up to t = 134:
    # ln 134 = 4.8978 gives 2.4979, ln 135 = 4.9053 gives 2.5017.
    chosen, state = told("rucb", 2, [(0, 1, 1.0)] * 10)
    assert choices(chosen, state, 134) == {(0, 0)}
    chosen.module.select(state, chosen.params, 100, np.random.default_rng(0))
    assert chosen.module.skip(state, chosen.params, 100) == 135
    assert choices(chosen, state, 135) == {(0, 1), (1, 0)}


def test_a_tie_is_half_a_win_for_both():
    chosen, state = told("rucb", 2, [(0, 1, 0.5)] * 4)
    assert state.wins.tolist() == [[0, 2], [2, 0]]
    assert choices(chosen, state, 5) == {(0, 1), (1, 0)}


def test_the_icml_variant_stays_with_its_hypothesis_half_the_time():
    # Arm 0 alone in the pool becomes B; when the others return, c is 0 with probability ½ + 0, else 1 or 2.
    chosen, state = told("rucb:variant=icml", 3, [(0, 1, 1.0)] * 10 + [(0, 2, 1.0)] * 10)
    rng = np.random.default_rng(5)
    chosen.module.select(state, chosen.params, 21, rng)
    assert state.best[0] == 0
    late = 10**6  # 0.51·ln 10⁶ = 7.05 > 2.5: all three are potential champions again
    champions = [chosen.module.select(state, chosen.params, late, rng)[0] for _ in range(4000)]
    shares = np.bincount(champions, minlength=3) / 4000
    # Binomial(4000, ½) and (4000, ¼): ±5 standard deviations, false alarm below 2·10⁻⁶.
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=5 * math.sqrt(0.25 / 4000))


def test_recommendation_counts_observed_majorities_only():
    # 0 beat 1 (one arm beaten); 2 beat 3 and 1 (two). Unplayed pairs count for nobody.
    chosen, state = told("rucb", 4, [(0, 1, 1.0), (2, 3, 1.0), (2, 1, 1.0)])
    assert {int(chosen.module.recommend(state, np.random.default_rng(s))) for s in range(20)} == {2}
    chosen, state = told("rucb", 3, [(0, 1, 1.0), (1, 0, 1.0)])  # level with each other: all three beat nobody
    assert {int(chosen.module.recommend(state, np.random.default_rng(s))) for s in range(50)} == {0, 1, 2}


def test_savage_by_hand():
    # K = 3, T = 1000, δ = 0.1: ln(3·2·1000/0.1) = 11.002. An arm that lost all n duels leaves once
    # √(11.002/2n) < ½, n > 22.004: at the 23rd.
    chosen, state = told("savage:delta=0.1", 3, [(0, 1, 1.0)] * 22)
    assert state.left[0] == 3
    chosen.module.update(state, chosen.params, 23, 0, 1, 1.0)
    assert state.alive[: state.left[0]].tolist() == [0, 2]
    assert choices(chosen, state, 24) == {(0, 2)}
    assert chosen.module.explored(state) == 0
    for t in range(24, 47):
        chosen.module.update(state, chosen.params, t, 2, 0, 0.0)
    assert chosen.module.explored(state) == 46
    assert choices(chosen, state, 47) == {(0, 0)}


def test_btm_by_hand():
    # K = 2, T = 1000, γ = 0.1: ln(1/δ) = ln 4000 = 8.294, c* = 0.03·√(8.294/n*).
    # 0 won its duel with 1: P̂ = 1 and ½ (none yet), n* = 0, c* = 1: nothing happens.
    chosen, state = told("btm:gamma=0.1", 2, [(0, 1, 1.0)])
    assert state.mean.tolist() == [1.0, 0.5]
    assert not state.due[0]
    # 1 lost its duel with 0: P̂ = 1 and 0, n* = 1, c* = 0.0864: 0 + c* ≤ 1 − c*, arm 1 leaves.
    chosen.module.update(state, chosen.params, 2, 1, 0, 0.0)
    assert state.extremes[2] == pytest.approx(0.03 * math.sqrt(math.log(4000)))
    assert chosen.module.explored(state) == 2
    assert choices(chosen, state, 3) == {(0, 0)}


def test_btm_forgets_comparisons_with_the_arm_that_left():
    chosen, state = told("btm:gamma=0.1", 3, [(0, 2, 1.0), (1, 2, 1.0), (0, 1, 0.0), (2, 0, 0.0)])
    # P̂: 0 has 1 of 2, 1 has 1 of 1, 2 has 0 of 1; n* = 1, c* = 0.03·√ln 6000 = 0.088: arm 2 leaves.
    chosen.module.select(state, chosen.params, 5, np.random.default_rng(0))
    assert state.alive[: state.left[0]].tolist() == [0, 1]
    assert state.total.tolist()[:2] == [1.0, 0.0]  # 0 keeps its duel with 1; 1's only one was with 2
    assert state.mean.tolist()[:2] == [0.0, 0.5]


def test_interleaved_filter_by_hand():
    # K = 2, T = 1000: 4·ln(1000·4) = 33.18. An incumbent that wins all n duels beats the other once
    # ½ > √(33.18/n), n > 132.7: at the 133rd.
    chosen = policy("interleaved_filter")
    state = chosen.start(2, 1000)
    incumbent, other = map(int, chosen.module.select(state, chosen.params, 1, np.random.default_rng(0)))
    for t in range(1, 133):
        chosen.module.update(state, chosen.params, t, incumbent, other, 1.0)
    assert chosen.module.explored(state) == 0
    chosen.module.update(state, chosen.params, 133, other, incumbent, 0.0)  # the other way round is the same answer
    assert chosen.module.explored(state) == 133
    assert choices(chosen, state, 134) == {(incumbent, incumbent)}


# Pieces ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [2, 3, 5, 64, 2000])
def test_nth_pair_enumerates_pairs_in_order(m):
    if m <= 64:
        count = m * (m - 1) // 2
        assert [nth_pair(k, m) for k in range(count)] == [(a, b) for a in range(m) for b in range(a + 1, m)]
    for a in {0, (m - 2) // 2, m - 2}:  # the ends of the rows are where rounding would show
        start = a * (2 * m - a - 1) // 2
        assert nth_pair(start, m) == (a, a + 1)
        assert nth_pair(start + m - 2 - a, m) == (a, m - 1)


def test_first_time_is_exact_up_to_1e15():
    rng = np.random.default_rng(0)
    for alpha in (0.3, 0.51, 1.0, 1.5, 4.0):
        for z in alpha * np.log(10 ** rng.uniform(0.31, 15, 2000)):
            t = first_time(float(z), alpha)
            assert alpha * math.log(t) >= z > alpha * math.log(t - 1)
    assert first_time(1e-300, 0.51) == 2
    assert first_time(0.51 * 40, 0.51) == FOREVER
    assert first_time(1e308, 0.51) == FOREVER


def test_first_time_needs_its_correction():
    """The uncorrected jump is wrong often at late times, so the test above can fail."""
    rng = np.random.default_rng(0)
    z = 0.51 * np.log(10 ** rng.uniform(12, 15, 2000))
    assert np.mean([first_time(float(x), 0.51) != math.ceil(math.exp(x / 0.51)) for x in z]) > 0.1


# Names and parameters -------------------------------------------------------------------------------


def test_names_carry_parameters():
    assert str(duels.policy("rucb")) == "rucb"
    assert str(duels.policy("rucb:alpha=0.51")) == "rucb"
    assert str(duels.policy("rucb", alpha=0.6)) == "rucb:alpha=0.6"
    assert str(duels.policy("savage:sampling=least,delta=0.05")) == "savage:delta=0.05,sampling=least"
    assert duels.policy(duels.policy("btm", gamma=3), gamma=2).params.gamma == 2
    assert policy("rucb").needs_horizon is False
    assert all(policy(name).needs_horizon for name in ("savage", "btm", "interleaved_filter"))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rucd", "unknown policy 'rucd'. Did you mean 'rucb'? See: duels policies"),
        ("rucb:alfa=1", "unknown parameter of rucb 'alfa'. Did you mean 'alpha'?"),
        ("rucb:alpha", "'alpha' in policy 'rucb:alpha' is not a parameter: expected name=value"),
        ("rucb:alpha=1,alpha=2", "sets alpha twice"),
        ("rucb:alpha=much", "alpha of rucb is 'much': expected a number"),
        ("rucb:alpha=0", "alpha of rucb is 0.0: expected a positive number"),
        ("rucb:alpha=-1", "expected a positive number"),
        ("rucb:alpha=nan", "expected a positive number"),
        ("rucb:alpha=inf", "expected a positive number"),
        ("rucb:unplayed=0.5", "unplayed of rucb is 0.5: expected a number above 0.5"),
        ("rucb:variant=best", "variant of rucb is 'best': expected 'seed' (Algorithm 1) or 'icml'"),
        ("savage:delta=1", "delta of savage is 1.0: expected a chance below 1"),
        ("savage:sampling=most", "expected 'uniform' or 'least'"),
        ("btm:gamma=0", "gamma of btm is 0.0: expected a positive number"),
        ("./nowhere.py", "policy file './nowhere.py' does not exist"),
    ],
)
def test_bad_names_and_parameters(spec, message):
    with pytest.raises(InvalidInput) as caught:
        policy(spec)
    assert message in str(caught.value)


def test_policies_can_be_pickled(tmp_path):
    import pickle

    from duels.policies import savage

    (tmp_path / "mine.py").write_text(
        Path(policy("random").module.__file__).read_text().replace(".kernels", "duels.policies.kernels")
    )
    for chosen in (policy("rucb:alpha=0.7"), policy(str(tmp_path / "mine.py")), policy(savage, delta=0.2)):
        back = pickle.loads(pickle.dumps(chosen))
        assert str(back) == str(chosen)
        assert back.params == tuple(chosen.params)


def test_a_file_called_like_a_built_in_policy_keeps_its_own_name(tmp_path):
    (tmp_path / "rucb.py").write_text(
        Path(policy("random").module.__file__).read_text().replace(".kernels", "duels.policies.kernels")
    )
    assert str(policy(str(tmp_path / "rucb.py"))) == "rucb.py"


def test_kernels_must_take_the_contracts_arguments():
    parts = {name: getattr(rucb, name) for name in ("Params", "init", "select", "update", "recommend")}
    with pytest.raises(
        InvalidInput, match=r"select of policy .* takes \(state, t\), expected \(state, params, t, rng\)"
    ):
        policy(SimpleNamespace(**parts | {"select": lambda state, t: (0, 1)}))
    with pytest.raises(InvalidInput, match="is not a NamedTuple"):
        policy(SimpleNamespace(**parts | {"Params": object}))
    broken = policy(SimpleNamespace(**parts | {"init": lambda arms, horizon, params: rucb.State(wrok=1)}))
    with pytest.raises(PolicyError, match=r"init of policy .* failed: TypeError"):
        broken.start(3)


def test_alpha_up_to_a_half_is_warned_of():
    with pytest.warns(UserWarning, match=r"alpha = 0.5: its regret bounds need alpha > 0\.5"):
        policy("rucb:alpha=0.5")


def test_a_horizon_is_demanded():
    with pytest.raises(InvalidInput, match="policy savage needs a horizon"):
        policy("savage").start(4)
    policy("rucb").start(4)


def test_a_module_must_obey_the_contract():
    with pytest.raises(InvalidInput, match="has no Params, init, select, update, recommend"):
        policy(math)
    with pytest.raises(UnknownName, match="Known: rucb"):
        policy("zzz")


def test_rucb_an_arm_returns_at_the_very_time_its_z_is_reached():
    chosen, state = told("rucb", 2, [(0, 1, 1.0)])
    state.z[1, 0] = state.worst[1] = 0.51 * math.log(100)  # equal to L at t = 100 to the last digit
    state.share[0, 1] = state.width[0, 1] = state.limits[1] = 0.0
    assert chosen.module.select(state, chosen.params, 99, np.random.default_rng(0)) == (0, 0)
    assert choices(chosen, state, 100) == {(0, 1), (1, 0)}


def test_rucb_may_be_asked_about_an_earlier_time():
    chosen, state = told("rucb", 2, [(0, 1, 1.0)] * 10)
    chosen.module.select(state, chosen.params, 10**6, np.random.default_rng(0))  # both are in the pool
    assert choices(chosen, state, 100) == {(0, 0)}


def test_icml_forgets_a_hypothesis_that_left_the_pool():
    chosen, state = told("rucb:variant=icml", 3, [(0, 1, 1.0)] * 10 + [(0, 2, 1.0)] * 10)
    rng = np.random.default_rng(5)
    chosen.module.select(state, chosen.params, 21, rng)
    assert state.best[0] == 0
    for t in range(22, 62):  # z_01 = 30²/200 = 4.5: arm 0 is out while 0.51 ln t < 4.5, t < 6790
        chosen.module.update(state, chosen.params, t, 1, 0, 1.0)
    chosen.module.select(state, chosen.params, 1000, rng)  # pool {1, 2}
    assert state.best[0] == -1
    champions = [chosen.module.select(state, chosen.params, 10**6, rng)[0] for _ in range(4000)]
    shares = np.bincount(champions, minlength=3) / 4000
    assert shares == pytest.approx([1 / 3] * 3, abs=5 * math.sqrt(2 / 9 / 4000))


def test_least_sampling_takes_answers_the_other_way_round():
    chosen, state = told("savage:sampling=least", 3, [(1, 0, 1.0)])
    assert choices(chosen, state, 2) == {(0, 2), (1, 2)}


def test_savage_an_arm_that_left_throws_nobody_out():
    chosen, state = told("savage:delta=0.1", 3, [(0, 1, 1.0)] * 23 + [(1, 2, 1.0)] * 40)
    assert state.alive[: state.left[0]].tolist() == [0, 2]
    assert chosen.module.explored(state) == 0


def test_savage_recommends_among_the_remaining():
    # 1 beat 2 and 3, then lost 24 times to 0 (ln(12·1000/0.1) = 11.70, n > 23.4): gone, and 0's win over it with it.
    chosen, state = told("savage:delta=0.1", 4, [(1, 2, 1.0), (1, 3, 1.0)] + [(0, 1, 1.0)] * 24)
    assert state.alive[: state.left[0]].tolist() == [0, 2, 3]
    assert {int(chosen.module.recommend(state, np.random.default_rng(s))) for s in range(60)} == {0, 2, 3}


def test_savage_bounds_by_hand():
    chosen, state = told("savage:delta=0.1", 3, [(0, 1, 1.0)] * 22)
    lower, upper = chosen.module.bounds(state, chosen.params, 23)
    radius = math.sqrt(math.log(60_000) / 44)  # 0.50005: one duel short of leaving
    assert (upper[1, 0], lower[0, 1]) == pytest.approx((radius, 1 - radius))
    assert (upper[0, 1], lower[0, 2], upper[0, 2], upper[0, 0]) == pytest.approx((1 + radius, -1, 2, 0.5))


LEFT = [(0, 2, 1.0), (1, 2, 1.0), (0, 1, 0.0), (2, 0, 0.0)]


def test_btm_an_arm_that_left():
    chosen, state = told("btm:gamma=0.1", 3, LEFT)
    assert state.due[0]
    assert chosen.module.explored(state) == 0  # two will be left, not one
    chosen.module.select(state, chosen.params, 5, np.random.default_rng(0))
    assert state.extremes.tolist() == [0.0, 0.5, 1.0]  # n* = 0 again, so c* = 1
    before = deepcopy(state)
    for i, j in ((0, 2), (2, 0), (2, 2)):
        chosen.module.update(state, chosen.params, 5, i, j, 1.0)
    np.testing.assert_equal(state, before)


def test_btm_stays_explored():
    chosen, state = told("btm:gamma=0.1", 2, [(0, 1, 1.0), (1, 0, 0.0)])
    chosen.module.select(state, chosen.params, 3, np.random.default_rng(0))
    chosen.module.update(state, chosen.params, 3, 0, 0, 1.0)
    assert chosen.module.explored(state) == 2


@pytest.mark.parametrize("won", [0.0, 1.0])
def test_btm_extremes_on_one_side_of_a_half(won):
    _, state = told("btm", 2, [(0, 0, won), (1, 1, won)])
    assert state.extremes[:2].tolist() == [won, won]


def test_btm_leaves_at_equality():
    chosen = policy("btm")
    state = chosen.start(2, 1000)._replace(log_term=np.array([1 / 36]))  # c* = 3·√(1/36) = ½ at n* = 1
    chosen.module.update(state, chosen.params, 1, 0, 1, 1.0)
    chosen.module.update(state, chosen.params, 2, 1, 0, 0.0)
    assert state.due[0]  # 0 + ½ ≤ 1 − ½


def interleaved(wins_over_x, passes=146):
    """K = 3, T = 1000, 4 ln 9000 = 36.4: y, winning all, beats the incumbent once n > 145.7."""
    chosen = policy("interleaved_filter")
    state = chosen.start(3, 1000)
    b = int(chosen.module.select(state, chosen.params, 1, np.random.default_rng(0))[0])
    x, y = (arm for arm in range(3) if arm != b)
    for n in range(passes):
        chosen.module.update(state, chosen.params, 2 * n + 1, b, x, float(n < wins_over_x))
        chosen.module.update(state, chosen.params, 2 * n + 2, b, y, 0.0)
    return chosen, state, b, x, y


@pytest.mark.parametrize(("wins", "stays"), [(72, True), (73, True), (74, False)])
def test_interleaved_filter_prunes_what_is_behind_not_what_is_level(wins, stays):
    chosen, state, b, x, y = interleaved(wins)
    assert state.beaten[0]
    assert chosen.module.explored(state) == (0 if stays else 292)
    assert {int(chosen.module.recommend(state, np.random.default_rng(s))) for s in range(20)} == {y}
    before = deepcopy(state)
    chosen.module.update(state, chosen.params, 293, b, y, 1.0)  # too late: the succession is decided
    np.testing.assert_equal(state, before)
    assert choices(chosen, state, 293) == {(y, x if stays else y)}


def test_interleaved_filter_ignores_duels_without_the_incumbent():
    chosen, state, b, x, y = interleaved(0, passes=0)
    before = deepcopy(state)
    for pair in ((x, y), (y, x), (b, b)):
        chosen.module.update(state, chosen.params, 1, *pair, 1.0)
    np.testing.assert_equal(state, before)


def test_recommendation_before_the_first_step_favours_nobody():
    for name in ("rucb", "savage", "btm", "interleaved_filter", "random"):
        chosen, state = told(name, 4, [])
        assert {int(chosen.module.recommend(state, np.random.default_rng(s))) for s in range(100)} == {0, 1, 2, 3}, name
