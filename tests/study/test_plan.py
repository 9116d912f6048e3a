"""The plan: studies until a verdict, against a literal simulation that asks for the verdict after every answer."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from histories import frozen
from oracles.verdict import helpful

import duels
from duels.engine import loop
from duels.errors import InvalidInput, PolicyError
from duels.policies import random as pairs_at_random
from duels.policies.evidence import margin_level, winner_level
from duels.study import plan as module
from duels.study.plan import LIMIT, PlanRow, estimate_votes, until_verdict
from duels.study.state.policy_state import rival, rival_alpha
from duels.study.stats.evidence import evidence, log_closeness
from duels.study.stats.simulated_looks import NO_WINNER, NOT_YET, TIED, new_looks
from duels.study.stats.tally import as_tally
from duels.study.stats.verdict import verdict

POLICIES = ["verdict", "rucb", "dts_plus", "savage", "random", "btm:gamma=1", "interleaved_filter", "rucb:alpha=0.9"]


def one_better(arms, gap):
    """Arm 0 wins against each other one with ½ + gap; the others are even."""
    array = np.full((arms, arms), 0.5)
    array[0, 1:] += gap
    array[1:, 0] -= gap
    return array


def stand_in(wins, champion, t, alpha):
    """The arm other than the champion with the largest w/n + √(α ln t / n) against it; one it never met comes first."""
    uppers = {}
    for k in range(len(wins)):
        n = wins[k, champion] + wins[champion, k]
        if k != champion:
            uppers[k] = wins[k, champion] / n + math.sqrt(alpha * math.log(t) / n) if n else math.inf
    return max(uppers, key=uppers.get)


def literal(array, policy, number, confidence=0.95, limit=LIMIT, seed=0, ties=0.0, margin=0.0):
    """Duels, regret and verdict of one study, all in the interpreter: nothing of it is the plan's."""
    arms, chosen = len(array), duels.policies.load_policy(policy).with_goal(confidence, margin)
    state, (coin, luck) = chosen.start(arms, limit), loop.streams(seed, number)
    doubt, names = np.random.default_rng([seed, number]), [str(arm) for arm in range(arms)]
    wins, level, regret, t = np.zeros((arms, arms), int), np.zeros((arms, arms), int), 0.0, 1
    for duel in range(1, limit + 1):
        i, j = chosen.module.select(state, chosen.params, t, coin)
        if chosen.name != "verdict":  # which does this itself
            i, j = helpful(wins, level, i, j, doubt, confidence, margin)
        if i == j:
            j = stand_in(wins, i, t, 0.9 if policy == "rucb:alpha=0.9" else 0.51)
        won = luck.random() < array[i, j]
        tie = ties > 0 and luck.random() < ties
        if not (tie and chosen.live_ties == "skipped" and margin == 0):
            chosen.module.update(state, chosen.params, t, i, j, 0.5 if tie else float(won))
            t += 1
        if tie:
            level[i, j] += 1
            level[j, i] += 1
        else:
            wins[(i, j) if won else (j, i)] += 1
        regret += ((array[0, i] - 0.5) + (array[0, j] - 0.5)) / 2
        said = verdict(as_tally(names, wins, level), confidence=confidence, margin=margin)
        if said.kind == "winner":
            return duel, regret, int(said.winner)
        if said.kind == "no condorcet winner":
            return duel, regret, NO_WINNER
        if said.kind == "practically tied":
            return duel, regret, TIED - int(said.leader)
    return limit, regret, NOT_YET


def kernel(array, policy, number, confidence=0.95, limit=LIMIT, seed=0, ties=0.0, margin=0.0, compiled=True):
    """The same by the plan's kernel."""
    arms, chosen = len(array), duels.policies.load_policy(policy).with_goal(confidence, margin)
    play = loop.bind_to(until_verdict, chosen, compiled=compiled)
    state, (coin, luck) = chosen.start(arms, limit), loop.streams(seed, number)
    told, redirects = chosen.live_ties == "halves" or margin > 0, not chosen.asks_for(confidence, margin)
    rest = (rival_alpha(chosen), limit, coin, luck, np.random.default_rng([seed, number]))
    looks = new_looks(arms, 1 - confidence, margin)
    return play(state, chosen.params, frozen(array), ties, told, redirects, frozen(array[0] - 0.5), looks, *rest)


def choosing(select, name):
    """A policy of one's own that differs from `random` in what it selects."""
    kernels = {key: getattr(pairs_at_random, key) for key in ("Params", "State", "init", "update", "recommend")}
    return SimpleNamespace(**kernels, select=select, __name__=name)


def quantile(values, share):
    """The value that far through the sorted sample, or the next one up."""
    return sorted(values)[math.ceil(share * (len(values) - 1))]


@pytest.mark.parametrize(
    "policy",
    [one if one == "verdict" else pytest.param(one, marks=pytest.mark.deep) for one in POLICIES],
)
def test_the_kernel_is_the_literal_simulation(policy):
    array = one_better(3, 0.3)
    for number in range(3):
        said = literal(array, policy, number, seed=7)
        assert 28 <= said[0] < 2000  # two arms to beat, each by fourteen wins at least: see below
        assert kernel(array, policy, number, seed=7) == said
        assert kernel(array, policy, number, seed=7, compiled=False) == said


@pytest.mark.parametrize(
    "policy", ["verdict", *(pytest.param(one, marks=pytest.mark.deep) for one in ("rucb", "dts_plus"))]
)
@pytest.mark.parametrize(("ties", "margin"), [(0.4, 0.0), (0.0, 0.15), (0.4, 0.15)])
def test_the_kernel_is_the_literal_simulation_with_ties_and_a_margin(policy, ties, margin):
    array, kinds = one_better(3, 0.25), set()
    array[:2, :2] = 0.5  # arms 0 and 1 are level
    if margin == 0:
        array = one_better(3, 0.3)
    for number in range(4):
        said = literal(array, policy, number, ties=ties, margin=margin, seed=5)
        found = kernel(array, policy, number, ties=ties, margin=margin, seed=5)
        assert found[:2] == said[:2]
        assert found[2] == said[2] or max(found[2], said[2]) <= TIED  # two arms may come close at once
        kinds.add(said[2] <= TIED)
    assert kinds == {margin > 0}


def test_a_champion_meets_its_rivals_in_the_right_order():
    """If arm 0 is always to meet itself, the largest upper limit decides every duel, and regret tells which it was."""

    def select(state, params, t, rng):
        return 0, 0

    array, content = one_better(5, np.array([0.1, 0.2, 0.3, 0.4])), choosing(select, "content")
    for number in range(30):
        played = kernel(array, content, number, limit=60, compiled=False)
        assert played == literal(array, content, number, limit=60)


def test_a_rival_stands_in_where_nothing_is_left_to_ask():
    """With a margin that all pairs of arm 0 meet, while neither has shown that it is the winner."""
    wins = np.array([[0.0, 6.0, 2.0], [3.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    assert rival(wins, 0, 20, 0.51) == stand_in(wins, 0, 20, 0.51) == 2
    assert rival(wins, 1, 20, 0.51) == stand_in(wins, 1, 20, 0.51) == 2


@pytest.mark.parametrize("policy", ["verdict", pytest.param("rucb", marks=pytest.mark.deep)])
@pytest.mark.deep
def test_wrong_verdicts_are_those_of_the_literal_simulation(policy):
    """Of two arms that are nearly level, at a confidence of 5 %, some studies name the wrong one, and some none."""
    array, more = one_better(2, 0.02), {"confidence": 0.05, "limit": 60}
    said = [literal(array, policy, number, **more) for number in range(100)]
    assert {NOT_YET, 0, 1} == {found for _, _, found in said}
    for number, one in enumerate(said):
        assert kernel(array, policy, number, **more) == one
    (row,) = estimate_votes(arms=2, gap=0.02, policies=[policy], studies=100, **more)
    until = [math.inf if found == NOT_YET else t for t, _, found in said]
    assert (row.answers_median, row.answers_90) == (quantile(until, 0.5), quantile(until, 0.9))
    assert row.regret_median == pytest.approx(np.median([regret for _, regret, _ in said]))
    assert row.regret_90 == pytest.approx(np.quantile([regret for _, regret, _ in said], 0.9))
    assert row.undecided == sum(found == NOT_YET for _, _, found in said) / 100
    assert row.wrong == sum(found == 1 for _, _, found in said) / 100 > 0


@pytest.mark.deep
def test_no_winner_ends_a_study_and_denies_the_winner():
    cycle = np.array([[0.5, 0.9, 0.1], [0.1, 0.5, 0.9], [0.9, 0.1, 0.5]])
    for number in range(3):
        said = literal(cycle, "random", number)
        assert said[2] == NO_WINNER
        assert kernel(cycle, "random", number) == said
    # Arm 0 beats both, if only just, and 1 beats 2 always: luck makes a cycle of them now and then.
    array = np.array([[0.5, 0.51, 0.51], [0.49, 0.5, 1.0], [0.49, 0.0, 0.5]])
    more = {"confidence": 0.001, "limit": 100, "seed": 1}
    found = [kernel(array, "random", number, **more)[2] for number in range(2000)]
    assert {NOT_YET, NO_WINNER, 1} <= set(found)
    (row,) = estimate_votes(array, policies=["random"], studies=2000, **more)
    assert row.wrong == sum(one in (NO_WINNER, 1, 2) for one in found) / 2000


def test_worked_by_hand():
    # Arm 0 always wins. Two arms at 95 % need M = 4/(3 · 0.05) = 26.7. In a row, w wins give
    # 630 · 4! (w+4)! 2^w/(w+9)!: 25.4 at the twelfth, 39.2 at the thirteenth. Each duel costs (0 + ½)/2.
    assert estimate_votes(arms=2, gap=0.5, policies=["verdict", "random"], studies=5) == [
        PlanRow("verdict", 13, 13, 3.25, 3.25, 0.0, 0.0),
        PlanRow("random", 13, 13, 3.25, 3.25, 0.0, 0.0),
    ]
    # Three arms need 41: the fourteenth win over each of two arms gives 61.4. The even arms need not meet.
    row, blind = estimate_votes(arms=3, gap=0.5, policies=["verdict", "random"], studies=50)
    assert 28 <= row.answers_median <= 34
    assert row.answers_median < blind.answers_median <= 44


def test_undecided_studies_take_for_ever():
    # Twelve duels do not suffice; each costs (0 + 0.1)/2.
    (row,) = estimate_votes(arms=2, gap=0.1, policies="verdict", limit=12, studies=20)
    assert row == PlanRow("verdict", math.inf, math.inf, pytest.approx(0.6), pytest.approx(0.6), 1.0, 0.0)
    # At a chance of 0.8 more than half of the studies, but not nine in ten, end within 40 duels.
    (row,) = estimate_votes(arms=2, gap=0.3, policies="verdict", limit=40, studies=200)
    assert (row.answers_median < 40, row.answers_90) == (True, math.inf)
    assert 0.1 < row.undecided < 0.5


def test_a_budget():
    """The share of studies that end by then: 13 duels of an arm that always wins are needed, and 13 suffice."""
    for budget, share in ((12, 0.0), (13, 1.0), (14, 1.0)):
        (row,) = estimate_votes(arms=2, gap=0.5, policies="verdict", studies=10, budget=budget)
        assert row.within_budget == share
    (row,) = estimate_votes(arms=3, gap=0.3, policies="verdict", studies=100, budget=60)
    until = [kernel(one_better(3, 0.3), "verdict", number)[0] for number in range(100)]
    assert row.within_budget == sum(t <= 60 for t in until) / 100
    assert 0 < row.within_budget < 1
    assert estimate_votes(arms=2, gap=0.5, policies="verdict", studies=2)[0].within_budget is None


def test_ties_are_answers_too():
    """With half of the answers ties, a study of an arm that always wins takes 26 answers on average."""
    (row,) = estimate_votes(arms=2, gap=0.5, policies="verdict", studies=300, ties=0.5)
    assert 24 <= row.answers_median <= 28  # 13 wins: the 13th success of a fair coin, with a standard deviation of 5.1
    assert row.wrong == 0


def test_which_verdicts_are_wrong():
    """b loses to a by 0.06, with half of the answers ties by 0.03: beyond a margin of 0.05, or within it."""
    matrix = duels.PreferenceMatrix([[0.5, 0.56], [0.44, 0.5]])
    verdicts = np.array([NOT_YET, NO_WINNER, 0, 1, TIED, TIED - 1])
    for ties, b_is_far in ((0.0, True), (0.5, False)):
        settings = {"confidence": 0.95, "margin": 0.05, "parallel": 1, "budget": None, "studies": 1, "limit": 1}
        settings |= {"items": None, "about": "these-items"}
        wrong = module._is_wrong(module._Plan(matrix, ties=ties, seed=0, **settings), verdicts)
        assert wrong.tolist() == [False, True, False, True, False, b_is_far]


def test_a_margin_ends_studies_of_level_arms():
    level = np.full((2, 2), 0.5)
    level[0, 1], level[1, 0] = 0.501, 0.499
    (row,) = estimate_votes(level, policies="verdict", studies=20, limit=3000)
    assert row.undecided > 0.8
    (row,) = estimate_votes(level, policies="verdict", studies=20, limit=3000, margin=0.1)
    assert (row.undecided, row.wrong) == (0, 0)


def until_tied_or_won(share, margin, most):
    """(most + 1,): the exact probability that a study of two arms has a verdict after so many answers, without ties.

    The lead of the first arm is a Markov chain; where there is a verdict, it ends.
    """
    chance, ended = np.zeros(2 * most + 1), np.zeros(most + 1)
    chance[most] = 1.0
    for n in range(1, most + 1):
        chance[1:-1] = share * chance[:-2] + (1 - share) * chance[2:]
        lead = np.arange(-n, n + 1, 2)
        won, lost = (n + lead) // 2, (n - lead) // 2
        sure = evidence(won, lost) >= winner_level(0.05, 2)
        near = log_closeness(won, lost, np.zeros(n + 1), margin) >= margin_level(0.05, 2)
        over = most + lead[sure | near | near[::-1]]
        ended[n] = ended[n - 1] + chance[over].sum()
        chance[over] = 0.0
    return ended


@pytest.mark.parametrize(
    ("gap", "margin", "most"),
    [
        (0.0, 0.1, 500),
        pytest.param(0.1, 0.05, 500, marks=pytest.mark.deep),
        pytest.param(0.0, 0.05, 2000, marks=pytest.mark.deep),
    ],
)
def test_how_long_until_practically_tied(gap, margin, most):
    """Against the exact distribution at the median and the 90 % quantile of 1,000 studies.

    A deviation of 4.5 standard errors is a false alarm in fewer than one of 10⁵ checks; 0.01 is for whole numbers.
    """
    (row,) = estimate_votes(arms=2, gap=gap, margin=margin, policies="random", studies=1000, limit=most)
    exact = until_tied_or_won(0.5 + gap, margin, most)
    for duels_needed, level in ((row.answers_median, 0.5), (row.answers_90, 0.9)):
        error = 4.5 * math.sqrt(level * (1 - level) / 1000) + 0.01
        assert exact[int(duels_needed)] == pytest.approx(level, abs=error)
        if gap == 0:  # the check sees a margin that is a tenth too large
            assert until_tied_or_won(0.5, 1.1 * margin, most)[int(duels_needed)] > level + error


def test_equal_arms_end_as_practically_tied():
    (row,) = estimate_votes(arms=3, gap=0, margin=0.1, policies="verdict", studies=30)
    assert (row.undecided, row.regret_median, row.regret_90) == (0, None, None)
    assert row.tied + row.wrong == 1  # a winner is named wrongly
    assert row.tied > 0.8
    level = duels.PreferenceMatrix(np.full((3, 3), 0.5), name="3 arms, gap 0")
    assert estimate_votes(level, margin=0.1, policies="verdict", studies=30) == [row]
    (clear,) = estimate_votes(arms=3, gap=0.3, margin=0.1, policies="verdict", studies=30)
    assert clear.tied < row.tied
    assert clear.regret_median > 0


@pytest.mark.parametrize("about", ["new-items", "these-answers"])
def test_equal_arms_on_items(about):
    (row,) = estimate_votes(arms=2, gap=0, margin=0.1, items=1000, about=about, policies="verdict", studies=20)
    assert (row.undecided, row.regret_median) == (0, None)
    assert row.tied + row.wrong == 1
    (at_once,) = estimate_votes(arms=2, gap=0, margin=0.1, policies="random", studies=3, parallel=3)
    assert at_once.undecided == 0


def test_a_cycle_has_no_winner():
    cycle = [[0.5, 0.8, 0.2], [0.2, 0.5, 0.8], [0.8, 0.2, 0.5]]
    (row,) = estimate_votes(duels.PreferenceMatrix(cycle), policies="verdict", studies=10)
    assert (row.undecided, row.wrong, row.tied, row.regret_90) == (0, 0, 0, None)
    half = np.array([[0.5, 0.5, 0.7], [0.5, 0.5, 0.7], [0.3, 0.3, 0.5]])
    with pytest.raises(InvalidInput, match="no arm beats all others, and none beats 'x': such a study has no verdict"):
        estimate_votes(duels.PreferenceMatrix(half, names=["x", "y", "z"]))


@pytest.mark.parametrize("parallel", [pytest.param(2, marks=pytest.mark.deep), 10])
def test_several_at_once(parallel):
    (row,) = estimate_votes(arms=3, gap=0.4, policies="verdict", studies=5, parallel=parallel)
    (alone,) = estimate_votes(arms=3, gap=0.4, policies="verdict", studies=5)
    assert (row.undecided, row.wrong) == (0, 0)
    assert 28 <= row.answers_median < 2 * alone.answers_median


@pytest.mark.parametrize(
    ("policy", "arms", "expected"),
    [
        ("verdict", 5, 1_090),
        pytest.param("verdict", 10, 2_480, marks=pytest.mark.deep),
        ("rucb", 5, 1_700),
        pytest.param("rucb", 10, 6_300, marks=pytest.mark.deep),
        pytest.param("random", 5, 2_500, marks=pytest.mark.deep),
        pytest.param("random", 10, 10_000, marks=pytest.mark.deep),
    ],
)
def test_orientation(policy, arms, expected):
    """A best arm that wins 60 %: the numbers of docs/study/plan.md, as medians of 200 studies."""
    (row,) = estimate_votes(arms=arms, gap=0.1, policies=[policy])
    assert row.answers_median == pytest.approx(expected, rel=0.1)
    assert row.answers_median < row.answers_90
    assert (row.undecided, row.wrong <= 0.05) == (0, True)


@pytest.mark.deep
@pytest.mark.parametrize("policy", ["verdict", "rucb", "random"])
def test_wrong_verdicts_are_rarer_than_promised(policy):
    """Two in ten may be wrong. If they were, more than 250 of 1,000 studies would be with a chance of 5e-5."""
    (row,) = estimate_votes(arms=2, gap=0.02, policies=[policy], confidence=0.8, studies=1000)
    assert row.wrong <= 0.25
    (careless,) = estimate_votes(arms=2, gap=0.02, policies=[policy], confidence=0.05, studies=1000)
    assert careless.wrong > 0.1  # so there are errors to be made
    assert careless.answers_median < row.answers_median / 2


def test_a_policy_is_told_the_limit_as_its_horizon(monkeypatch):
    told, start = [], pairs_at_random.init

    def init(arms, horizon, params):
        told.append(horizon)
        return start(arms, horizon, params)

    monkeypatch.setattr(pairs_at_random, "init", init)
    estimate_votes(arms=3, gap=0.4, policies="random", limit=400, studies=3)
    assert set(told) == {400}


def test_a_problem_in_place_of_arms_and_gap():
    matrix = duels.PreferenceMatrix(one_better(3, 0.3), names=["x", "y", "z"])
    given = estimate_votes(matrix, studies=20)
    assert given == estimate_votes(arms=3, gap=0.3, studies=20)
    assert [row.policy for row in given] == ["verdict", "rucb", "random"]
    assert given != estimate_votes(matrix, studies=20, seed=1)
    # The winner's place does not matter to random pairs; regret and errors are counted from it.
    moved = duels.PreferenceMatrix(one_better(3, 0.3)[::-1, ::-1])
    (row,) = estimate_votes(moved, policies=["random"], studies=200)
    (usual,) = estimate_votes(matrix, policies=["random"], studies=200)
    assert (row.wrong, row.regret_median) == (0, pytest.approx(usual.regret_median, rel=0.2))
    assert estimate_votes("arithmetic-8", policies="rucb", studies=2)[0].undecided == 0


def test_threads_change_nothing():
    assert estimate_votes(arms=4, gap=0.2, studies=30, jobs=1) == estimate_votes(arms=4, gap=0.2, studies=30, jobs=3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"gap": 0}, "gap is 0: such a study has no verdict without a margin; say one, such as margin=0.02"),
        ({"gap": 0.6}, "gap is 0.6"),
        ({"gap": -0.1}, "gap is -0.1"),
        ({"gap": math.nan}, "gap is nan"),
        ({"gap": "wide"}, "gap is 'wide'"),
        ({"gap": None}, "say arms and gap"),
        ({"arms": None}, "say arms and gap"),
        ({"arms": None, "gap": None}, "say arms and gap"),
        ({"problem": "cyclic-4"}, "say arms and gap"),
        ({"problem": "cyclic-4", "arms": None}, "say arms and gap"),
        ({"problem": "cyclic-4", "gap": None}, "say arms and gap"),
        ({"problem": "cyclic-5", "arms": None, "gap": None}, "unknown problem 'cyclic-5'"),
        ({"arms": 1}, "arms is 1: expected from 2 to 1000"),
        ({"arms": 2.5}, "arms is 2.5"),
        ({"studies": 0}, "studies is 0: expected at least 1"),
        ({"limit": 0}, "limit is 0"),
        ({"jobs": 0}, "jobs is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"confidence": 1}, "confidence is 1: expected a number above 0 and below 1"),
        ({"confidence": 0}, "confidence is 0"),
        ({"margin": 0.5}, "margin is 0.5: expected a number at least 0 and below 0.5"),
        ({"ties": 1}, "ties is 1: expected the share of answers that are ties"),
        ({"ties": -0.1}, "ties is -0.1"),
        ({"ties": "many"}, "ties is 'many'"),
        ({"parallel": 0}, "parallel is 0: expected from 1 to 10000"),
        ({"budget": 0}, "budget is 0: expected at least 1"),
        ({"policies": ["rucd"]}, "unknown policy 'rucd'. Did you mean 'rucb'?"),
        ({"policies": ["random", "rucb:alpha=-1"]}, "alpha of rucb is -1"),
        ({"policies": []}, "there are no policies"),
    ],
)
def test_bad_input_is_refused(arguments, said):
    with pytest.raises(InvalidInput) as caught:
        estimate_votes(**{"arms": 3, "gap": 0.3} | arguments)
    assert said in str(caught.value)


def test_equal_arms_without_a_margin_are_refused():
    with pytest.raises(InvalidInput, match="none beats '0': such a study has no verdict without a margin"):
        estimate_votes(np.full((2, 2), 0.5))


@pytest.mark.deep
def test_a_policy_that_chooses_no_arm_is_named():
    def select(state, params, t, rng):
        return (0, 1) if t < 5 else (0, 3)

    astray = choosing(select, "astray")
    with pytest.raises(PolicyError, match=r"policy astray failed in study \d+: IndexError: select chose an arm that"):
        estimate_votes(arms=3, gap=0.1, policies=[astray], jobs=1)
