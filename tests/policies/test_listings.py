"""Every policy against its paper's listing: the same duels on shared randomness, or choices with the same chances."""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
import sampling
from histories import CYCLE, FIVE, compiled_history, frozen, random_matrix, state_after, winners
from oracles import CHOICES, ORACLES

import duels
from duels.engine import loop
from duels.policies import BUILT_IN


@dataclass(frozen=True)
class Case:
    spec: str
    arms: int
    horizon: int
    seeds: Any = range(4)
    corners: dict[str, int] = field(
        default_factory=dict
    )  # in how many of these runs the listing must come there at least; 0: in none
    matrix: Any = random_matrix  # of (arms, seed)
    is_compiled: bool = True  # else the policy is stepped through by Python, which tells first and second arm apart
    ties: int = 0
    deep: bool = False

    def __str__(self):
        return f"{self.spec}-{self.arms}-{self.horizon}" + (f"-{self.seeds[0]}" if self.seeds[0] else "")


def random_and_cycle(arms, seed):
    return random_matrix(arms, seed) if seed < 3 else CYCLE


def even_matrix(arms, seed, spread):
    """With no arm made to win."""
    upper = np.triu(0.5 + spread * (2 * np.random.default_rng([arms, seed]).random((arms, arms)) - 1), 1)
    return frozen(upper + np.tril(1 - upper.T, -1) + np.eye(arms) / 2)


def led_matrix(arms, seed):
    """Arm 1 beats all."""
    matrix = even_matrix(arms, seed, 0.5).copy()
    matrix[1, :], matrix[:, 1], matrix[1, 1] = 0.8, 0.2, 0.5
    return frozen(matrix)


def clear_matrix(arms, seed):
    """Every pair is 9 to 1."""
    upper = np.triu(np.where(np.random.default_rng(arms - 1).random((arms, arms)) < 0.5, 0.1, 0.9), 1)
    return frozen(upper + np.tril(1 - upper.T, -1) + np.eye(arms) / 2)


def steep_order(arms, seed):
    return frozen(np.where(np.arange(arms)[:, None] < np.arange(arms), 0.98, 0.02) + 0.48 * np.eye(arms))


def spread_by_seed(arms, seed):
    return random_matrix(arms, seed, spread=0.2 + 0.3 * (seed % 2))


def constant(matrix):
    return lambda arms, seed: matrix


EVEN = partial(even_matrix, spread=0.5)
SELF = {"self-duel": 1}
CCB = ("disproven", "removed", "thinned", "unsure", "narrowed", "among B^c", "self-duel")
CASES = [
    *(
        Case(spec, arms, horizon, corners=SELF if arms == 3 else {})
        for spec in ("rucb", "rucb:alpha=0.9", "rucb:alpha=2", "rucb:variant=icml", "rucb:unplayed=1")
        for arms, horizon in ((2, 300), (3, 400), (6, 500))
    ),
    *(
        Case(spec, arms, horizon, corners=SELF if arms == 3 else {})
        for spec in ("savage", "savage:delta=0.2", "savage:delta=0.2,sampling=least", "btm", "btm:gamma=0.3")
        for arms, horizon in ((2, 300), (3, 400), (6, 500))
    ),
    *(Case("random", arms, horizon, corners={"self-duel": 0}) for arms, horizon in ((2, 300), (3, 400), (6, 500))),
    Case("interleaved_filter", 2, 1800, deep=True),
    Case("interleaved_filter", 3, 2400, corners=SELF | {"succession": 1}, deep=True),
    Case("interleaved_filter", 6, 3000, deep=True),
    Case("interleaved_filter", 6, 3000, seeds=[0]),
    *(
        Case(spec, arms, 600 if spec.startswith("btm") else 3000, range(10, 20), matrix=spread_by_seed, deep=True)
        for spec in (
            *("rucb", "rucb:alpha=0.9", "rucb:alpha=2", "rucb:variant=icml", "rucb:unplayed=1"),
            *("savage", "savage:delta=0.2", "savage:delta=0.2,sampling=least", "btm", "btm:gamma=0.3"),
            *("interleaved_filter", "random"),
        )
        for arms in (2, 3, 4, 8, 13)
    ),
    *(
        Case("verdict", arms, horizon, range(3), matrix=partial(random_matrix, spread=spread))
        for arms, horizon, spread in ((2, 300, 0.3), (4, 600, 0.4), (7, 900, 0.45))
    ),
    *(
        Case(f"verdict:{given}", 5, 500, range(3), matrix=partial(random_matrix, spread=0.3))
        for given in ("margin=0.1", "confidence=0.6", "confidence=0.3,margin=0.2")
    ),
    Case("verdict", 3, 400, range(3), matrix=constant([[0.5, 0.9, 0.1], [0.1, 0.5, 0.9], [0.9, 0.1, 0.5]])),
    *(
        Case(spec, arms, horizon, matrix=random_and_cycle, deep=arms != 3)
        for spec in ("ecw_rmed", "ecw_rmed:alpha=1,beta=0.05")
        for arms, horizon in ((2, 200), (3, 400), (6, 400))
    ),
    *(
        Case(spec, arms, horizon, corners=SELF if arms < 6 else {}, deep=arms != 3)
        for spec in ("kl_rucb", "kl_rucb:alpha=1.5")
        for arms, horizon in ((2, 300), (3, 500), (6, 500))
    ),
    *(
        Case(spec, arms, horizon, [1, 2, 3], {"merge": 1, "batch of one": 1} if corners else {})
        for spec, arms, horizon, corners in (
            ("merge_rucb:delta=0.5", 2, 400, False),
            ("merge_rucb:delta=0.9,alpha=3", 5, 1500, True),
            ("merge_rucb:delta=0.9,alpha=2", 8, 2500, True),
            ("merge_rucb:delta=0.9,alpha=2", 9, 2500, True),
            ("merge_rucb:delta=0.9,batch=3", 21, 5000, True),
            ("merge_rucb", 24, 1000, False),
            ("merge_rucb:alpha=0.51", 9, 300, False),
        )
    ),
    *(
        Case(spec, arms, horizon, corners=SELF, deep=arms == 2 or (arms == 6 and spec != "rmed1"))
        for spec in ("rmed1", "rmed2", "rmed2fh")
        for arms, horizon in ((2, 200), (3, 400), (6, 250))
    ),
    Case("rmed2:alpha=1.5,scale=0.05,power=1", 4, 400, corners=SELF),
    Case("rmed2fh:alpha=0.4,scale=0.05,power=1", 4, 400, corners=SELF),
    *(
        Case(spec, arms, horizon, corners={"self-duel": int("strong" in spec)})
        for spec in ("winner_stays", "winner_stays:variant=strong", "winner_stays:variant=strong,beta=1.7")
        for arms, horizon in ((2, 200), (3, 300), (7, 2000))
    ),
    *(
        Case(
            f"self_sparring:eta={eta}",
            arms,
            800,
            range(3),
            {"self-duel": 3},
            constant(sampling.ladder(arms)),
        )
        for arms, eta in ((2, 1), (3, 2.5), (6, 1))
    ),
    *(
        Case(f"{name}:alpha={alpha}", arms, 600, range(3), corners, EVEN, is_compiled=False)
        for name, usual, corners in (("borda_ucb", 2, {}), ("multisbm", 2.5, {}), ("sparring", 2, {"self-duel": 3}))
        for arms, alpha in ((2, usual), (3, 0.5), (6, usual))
    ),
    *(
        Case(f"merge_dts:{given}", arms, horizon, corners=corners, matrix=led_matrix, is_compiled=False, ties=11)
        for arms, horizon, given, corners in (
            (2, 300, "alpha=0.262144,batch=16,c=4e5", {}),
            (7, 1500, "alpha=0.262144,batch=16,c=4e6", {}),
            (12, 2500, "alpha=0.15,batch=4,c=1e3", {"join": 1, "merge": 1, "self-duel": 1}),
            (23, 2500, "alpha=0.1,batch=5,c=50", {"join": 1, "merge": 1, "self-duel": 1}),
        )
    ),
    *(
        Case(spec, arms, horizon, range(2), {"winner": 2}, matrix, is_compiled=False)
        for spec in ("scb", "scb:factor=1,first=4,test=hoeffding", "scb:factor=0.8,first=30")
        for arms, horizon, matrix in (
            (5, 3000, constant(FIVE)),
            *((arms, 3000, clear_matrix) for arms in range(2, 7)),
            (14, 6000, steep_order),  # with many arms some leave before all pairs are known
        )
    ),
    *(
        Case(f"ccb:alpha={alpha},unplayed={unplayed}", arms, 1500, seeds, corners, matrix, is_compiled=False)
        for unplayed in (2, 1)
        for arms, alpha, seeds, corners, matrix in (
            (5, 0.51, [0], {}, constant(FIVE)),
            (2, 0.51, [1], {}, partial(even_matrix, spread=0.4)),
            (3, 0.51, [2], {}, partial(even_matrix, spread=0.4)),
            (4, 0.2, [3], {}, partial(even_matrix, spread=0.4)),
            (6, 0.2, [4, 5, 6], {}, partial(even_matrix, spread=0.4)),
            # Close and rash: certainties prove wrong.
            (5, 0.05, [7, 8, 9], dict.fromkeys(CCB, 1), partial(even_matrix, spread=0.05)),
        )
    ),
]


@pytest.mark.parametrize("case", [pytest.param(c, id=str(c), marks=[pytest.mark.deep] * c.deep) for c in CASES])
def test_same_duels_as_the_listing(case):
    """Corners that the listing never came to would prove nothing."""
    chosen, seen = duels.policies.load_policy(case.spec), Counter()
    parameters = chosen.params._asdict() | ({"ties": case.ties} if case.ties else {})
    for seed in case.seeds:
        matrix, (coin, luck) = frozen(case.matrix(case.arms, seed)), loop.streams(seed, 0)
        expected = ORACLES[chosen.name](matrix, case.horizon, coin, luck, **parameters)
        compare = compare_compiled if case.is_compiled else compare_steps
        compare(chosen, matrix, seed, expected, coin, luck)
        seen.update({corner for corner, times in expected.seen.items() if times})
        seen["self-duel"] += any(i == j for i, j, _ in expected)
    for corner, runs in case.corners.items():
        assert seen[corner] >= runs, seen
        assert runs or not seen[corner]


def compare_compiled(chosen, matrix, seed, expected, coin, luck):
    state, history, our_coin, our_luck = compiled_history(chosen, matrix, len(expected), seed)
    assert history == winners(expected)
    assert our_luck.bit_generator.state == luck.bit_generator.state
    assert our_coin.bit_generator.state == coin.bit_generator.state
    for name, value in expected.left.items():
        np.testing.assert_allclose(getattr(state, name), value)


def compare_steps(chosen, matrix, seed, expected, coin, luck):
    state, (ours, _) = chosen.start(len(matrix)), loop.streams(seed, 0)
    skip = chosen.kernel("skip")
    for t, (i, j, won) in enumerate(expected, 1):
        assert tuple(map(int, chosen.module.select(state, chosen.params, t, ours))) == (i, j), t
        if i == j:  # it is drawn like any other duel, or the policy knows its result
            assert (won is None) == (skip(state, chosen.params, t) > t)
        if won is not None:
            chosen.module.update(state, chosen.params, t, i, j, won)
    assert ours.bit_generator.state == coin.bit_generator.state


CHOSEN = [  # arms, answers so far, t; the second half is deep
    *((spec, of, False) for spec in ("rcs", "rcs:fallback=pool,unplayed=1") for of in ((2, 5, 6), (6, 400, 401))),
    *(("dts", of, False) for of in ((2, 5, 6), (4, 60, 61), (6, 400, 401))),
    *(("dts_plus", of, False) for of in ((2, 5, 6), (6, 200, 201))),
    *(
        (spec, of, True)
        for spec in ("rcs", "rcs:fallback=pool,unplayed=1")
        for of in ((4, 6, 7), (4, 60, 61), (5, 300, 10**6))
    ),
    *(("dts", of, True) for of in ((4, 6, 7), (5, 3000, 3001), (5, 300, 10**6))),
    *(("dts_plus", of, True) for of in ((3, 9, 10), (4, 20, 21), (5, 600, 10**6))),
]


@pytest.mark.parametrize(
    ("spec", "arms", "answered", "t"),
    [pytest.param(spec, *of, marks=[pytest.mark.deep] * deep) for spec, of, deep in CHOSEN],
)
def test_choices_are_distributed_as_in_the_listing(spec, arms, answered, t):
    chosen = duels.policies.load_policy(spec)
    answers = sampling.random_answers(arms, answered, seed=arms + answered)
    state = state_after(chosen, arms, answers)
    state.last[0] = arms // 2
    if chosen.name == "rcs":
        state.crowned[:] = [3, 1, 1, 2, 1, 4][:arms]
    np.testing.assert_array_equal(state.wins, sampling.wins_of(arms, answers))
    rng, choose = np.random.default_rng(5), CHOICES[chosen.name](state, t, **chosen.params._asdict())
    expected = Counter(choose(rng) for _ in range(6000))
    sampling.assert_alike(sampling.chosen_pairs(chosen, state, t, 6000, seed=6), expected)


def test_every_policy_is_compared():
    """`rex3` and `versatile_db` are compared weight for weight, `doubling` with fresh runs of its inner policy."""
    compared = {case.spec.partition(":")[0] for case in CASES} | {one[0].partition(":")[0] for one in CHOSEN}
    assert compared == {*ORACLES, *CHOICES} == {*BUILT_IN} - {"rex3", "versatile_db", "doubling"}
