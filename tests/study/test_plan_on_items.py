"""Plans of studies on exactly N items: the kernel against a literal simulation, and against a live study's history."""

import json
import math

import numpy as np
import pytest
from histories import frozen
from oracles.verdict import helpful

import duels
from duels.engine import loop
from duels.errors import InvalidInput
from duels.policies.evidence import closeness_on_items, evidence_on_items, margin_level, winner_level
from duels.storage.storage import StudyRow
from duels.study.plan import answers_on_items, estimate_votes, is_true, until_verdict_on_items
from duels.study.state.counts import next_event
from duels.study.state.item_schedule import ItemSet
from duels.study.state.live import LiveState
from duels.study.stats import evidence as arrays
from duels.study.stats.goal import new_goal
from duels.study.stats.simulated_looks import (
    NO_WINNER,
    NOT_YET,
    TIED,
    find_verdict,
    new_item_looks,
    take,
)
from duels.study.stats.tally import as_tally
from duels.study.stats.verdict import verdict

BETTER = np.array([[0.5, 0.75, 0.75], [0.25, 0.5, 0.5], [0.25, 0.5, 0.5]])
NEARLY_LEVEL = np.array([[0.5, 0.501, 0.501], [0.499, 0.5, 0.5], [0.499, 0.5, 0.5]])
LEVEL = np.array([[0.5, 0.5, 0.7], [0.5, 0.5, 0.7], [0.3, 0.3, 0.5]])
CYCLE = np.array([[0.5, 0.8, 0.2], [0.2, 0.5, 0.8], [0.8, 0.2, 0.5]])


def code_of(said):
    """A verdict on arms 0, 1, …, as the kernels return it."""
    if said.kind == "practically tied":
        return TIED - int(said.leader)
    return {"winner": int(said.winner or 0), "no condorcet winner": NO_WINNER, "not yet": NOT_YET}[said.kind]


def rules(W, T, items, confidence, margin):
    """Which arms are beaten for certain, and which need not meet again, literally."""
    K, delta = len(W), 1 - confidence

    def asked(i, j):
        return W[i, j] + W[j, i] + T[i, j] == items

    def evidence(i, j):
        return float(arrays.evidence_on_items(W[i, j], W[j, i], T[i, j], items))

    def beats(i, j):
        return evidence(i, j) >= winner_level(delta, K)

    def close(i, j):
        known = arrays.closeness_on_items(W[i, j], W[j, i], T[i, j], items, margin) if margin else evidence(i, j)
        return known >= margin_level(delta, K)

    def need_not_meet(i, j):
        level = any(k != i and asked(i, k) and W[i, k] <= W[k, i] for k in range(K))
        return asked(i, j) or (close(i, j) if level or margin > 0 else beats(i, j))

    return beats, need_not_meet


def with_an_item(W, T, i, j, items, by):
    """The pair itself if it has an item left; else the weakest lead of the first kind of pairs of which some have."""
    beats, need_not_meet = by
    K = len(W)
    pairs = [(a, b) for a in range(K) for b in range(K) if a != b and W[a, b] + W[b, a] + T[a, b] < items]
    if (i, j) in pairs:
        return i, j
    unbeaten = [a for a in range(K) if not any(beats(b, a) for b in range(K))]
    kinds = [
        [(a, b) for a, b in pairs if a in unbeaten and not need_not_meet(a, b)],
        [(a, b) for a, b in pairs if not need_not_meet(a, b) and not need_not_meet(b, a)],
        pairs,
    ]
    some = next(kind for kind in kinds if kind)
    return min(some, key=lambda one: (W[one] - W[one[::-1]]) / math.sqrt(W[one] + W[one[::-1]] + 10))


def literal(wins, ties, items, policy, number, confidence=0.95, margin=0.0, seed=0):
    """Duels and verdict of one study in the interpreter: bags of answers, and a look at the verdict after each."""
    K, chosen = len(wins), duels.policies.load_policy(policy).with_goal(confidence, margin)
    state, (coin, luck) = chosen.start(K, 10**6), loop.streams(seed, number)
    doubt, names, t = np.random.default_rng([seed, number]), [str(arm) for arm in range(K)], 1
    W, T, answers = np.zeros((K, K), int), np.zeros((K, K), int), 0
    bags = {(i, j): [1] * wins[i, j] + [0] * wins[j, i] + [0.5] * ties[i, j] for i in range(K) for j in range(i)}
    while True:
        i, j = chosen.module.select(state, chosen.params, t, coin)
        by = rules(W, T, items, confidence, margin)
        i, j = with_an_item(W, T, *helpful(W, T, i, j, doubt, by=by), items, by)
        if i > j:
            bag = bags[i, j]
            outcome = bag.pop(int(luck.random() * len(bag)))
        else:  # the same bag from the other side: losses come first
            bag = [*(one for one in bags[j, i] if one == 0), *(one for one in bags[j, i] if one != 0)]
            outcome = 1 - bag.pop(int(luck.random() * len(bag)))
            bags[j, i].remove(1 - outcome)
        answers += 1
        if outcome != 0.5 or chosen.live_ties == "halves" or margin > 0:
            chosen.module.update(state, chosen.params, t, i, j, float(outcome))
            t += 1
        if outcome == 0.5:
            T[i, j] += 1
            T[j, i] += 1
        else:
            W[(i, j) if outcome else (j, i)] += 1
        said = verdict(as_tally(names, W, T, items=items, about="these-answers"), confidence=confidence, margin=margin)
        if said.kind != "not yet":
            return answers, code_of(said)


def kernel(wins, ties, items, policy, number, confidence=0.95, margin=0.0, seed=0, compiled=False):
    chosen = duels.policies.load_policy(policy).with_goal(confidence, margin)
    play = loop.bind_to(until_verdict_on_items, chosen, compiled=compiled)
    state, (coin, luck) = chosen.start(len(wins), 10**6), loop.streams(seed, number)
    known, doubt = new_item_looks(wins, ties, items, 1 - confidence, margin), np.random.default_rng([seed, number])
    told = chosen.live_ties == "halves" or margin > 0
    return play(state, chosen.params, known, told, frozen(np.zeros(len(wins))), 10**6, coin, luck, doubt)


@pytest.mark.parametrize(
    "policy", ["verdict", *(pytest.param(one, marks=pytest.mark.deep) for one in ("rucb", "random"))]
)
@pytest.mark.parametrize(("ties", "margin"), [(0.0, 0.0), (0.3, 0.0), (0.3, 0.1)])
def test_the_kernel_is_the_literal_simulation(policy, ties, margin):
    kinds = set()
    for number, matrix in enumerate([BETTER, LEVEL, CYCLE]):
        for items in (9, 20):
            drawn = answers_on_items(matrix, ties, items, np.random.default_rng(number))
            said = literal(*drawn, items, policy, number, margin=margin)
            played = kernel(*drawn, items, policy, number, margin=margin)
            assert played[0] == said[0]
            assert played[2] == said[1] or max(played[2], said[1]) <= TIED  # two arms may be close at once
            kinds.add(min(max(said[1], TIED), 0))
    assert kinds == {NO_WINNER, TIED} | ({0} if margin == 0 else set())  # the winner is close to all others first


@pytest.mark.deep
@pytest.mark.parametrize("policy", ["verdict", "rucb", "random", "dts_plus"])
def test_the_compiled_kernel_is_the_interpreted_one(policy):
    for number in range(10):
        drawn = answers_on_items(BETTER, 0.2, 40, np.random.default_rng(number))
        assert kernel(*drawn, 40, policy, number, compiled=True) == kernel(*drawn, 40, policy, number)


def test_the_evidence_is_that_of_the_verdict():
    rng = np.random.default_rng(1)
    for items in (1, 2, 7, 8, 40, 41, 300, 5000):
        for _ in range(40):
            counts = [int(one) for one in rng.multinomial(items, rng.dirichlet([2, 2, 0.5, 2]))[:3]]
            expected = float(arrays.evidence_on_items(*counts, items))
            assert evidence_on_items(*map(float, counts), items) == pytest.approx(expected, abs=1e-8)
            for margin in (0.02, 0.1) if items <= 300 else ():
                expected = arrays.closeness_on_items(*counts, items, margin)
                assert closeness_on_items(*map(float, counts), items, margin) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("ties", "margin"), [(0.0, 0.0), (0.3, 0.1)])
def test_looks_are_those_of_a_live_study(ties, margin):
    """After every answer of a live study: the verdict, and the pairs that need no more answers."""
    ended = 0
    for number, matrix in enumerate([BETTER, LEVEL, CYCLE]):
        wins, tied = answers_on_items(matrix, ties, 12, np.random.default_rng(number))
        known, history = new_item_looks(wins, tied, 12, 0.05, margin), new_history(12, number, margin)
        bags = {(i, j): [1] * wins[i, j] + [0] * wins[j, i] + [0.5] * tied[i, j] for i in range(3) for j in range(3)}
        draw = np.random.default_rng(number)
        for bag in bags.values():
            draw.shuffle(bag)
        while history.can_ask(0.0):
            left, right, outcome = asked_and_told(history, bags)
            take(known, left, right, outcome)
            said = history.goal.verdict(history.tally)
            played = find_verdict(known, left, right)
            assert played == code_of(said) or max(played, code_of(said)) <= TIED or ended == number + 1
            assert known.losses.tolist() == history._questions.settled.losses.tolist()
            for arm in range(3):
                others = [k for k in range(3) if k != arm]
                assert known.done[arm, others].tolist() == history._questions.settled.with_others(arm)[others].tolist()
            ended = number + 1 if said.kind != "not yet" else ended
        assert ended == number + 1


def new_history(items, number, margin=0.0, policy="verdict"):
    chosen = duels.policies.load_policy(policy).with_goal(0.95, margin)
    goal = new_goal(0.95, margin, "stop", "these-answers", ties=chosen.live_ties)
    history = LiveState(StudyRow(0, "s", 0.0, str(chosen), None, number, 600.0, {"goal": goal._asdict()}), chosen)
    history.take(next_event(history, "create", 0.0, note=json.dumps({"arms": ["0", "1", "2"]})))
    history.player()
    history.items.fix(ItemSet(tuple(range(1, items + 1)), frozenset(range(3))))
    return history


def asked_and_told(history, bags):
    """Ask and answer the next question; returns the arms and the outcome of the left one."""
    left, right, swapped = history.question(0.0, allow_self=False)
    low, high = min(left, right), max(left, right)
    duel, note = len(history.left), json.dumps({"item": history.next_place(left, right, 0.0)[1]})
    shown = {"left_arm": left, "right_arm": right, "swapped": swapped, "note": note}
    history.take(next_event(history, "ask", 0.0, duel=duel, attempt=0, **shown))
    outcome = bags[low, high].pop()
    outcome = outcome if left == low else 1 - outcome
    answer = {1: "left", 0: "right", 0.5: "tie"}[outcome]
    history.take(next_event(history, "tell", 0.0, duel=duel, attempt=0, answer=answer))
    return left, right, outcome


def test_a_live_study_takes_as_many_answers():
    """Means of 60 live studies and 200 of the plan. If they are equal, z is beyond 4.5 with a chance of 7e-6."""
    live, items = [], 24
    for number in range(60):
        wins, tied = answers_on_items(BETTER, 0.0, items, np.random.default_rng(number))
        history, draw = new_history(items, number), np.random.default_rng([7, number])
        bags = {(i, j): [1] * wins[i, j] + [0] * wins[j, i] for i in range(3) for j in range(i + 1, 3)}
        for bag in bags.values():
            draw.shuffle(bag)
        known, said = new_item_looks(wins, tied, items, 0.05, 0.0), NOT_YET
        while said == NOT_YET:
            left, right, outcome = asked_and_told(history, bags)
            take(known, left, right, outcome)
            said = find_verdict(known, left, right)
        live.append(len(history.answered))
    played = []
    for number in range(200):
        wins, tied = answers_on_items(BETTER, 0.0, items, np.random.default_rng(number))
        played.append(kernel(wins, tied, items, "verdict", number)[0])
    error = math.sqrt(np.var(live, ddof=1) / len(live) + np.var(played, ddof=1) / len(played))
    assert abs(np.mean(live) - np.mean(played)) < 4.5 * error
    assert error < 0.05 * np.mean(live)  # so that a policy which asks 22 % more is noticed


def test_answers_are_the_shares_of_the_problem():
    wins, ties = answers_on_items(BETTER, 0.5, 40, np.random.default_rng(0))
    assert wins.tolist() == [[0, 15, 15], [5, 0, 10], [5, 10, 0]]
    assert ties.tolist() == [[0, 20, 20], [20, 0, 20], [20, 20, 0]]
    # 7 · ¾ = 5¼: five or six. The mean of 2,000 is within 0.05 but for a chance of 3e-7.
    drawn = [answers_on_items(BETTER, 0.0, 7, np.random.default_rng(k))[0] for k in range(2000)]
    assert {int(one[0, 1]) for one in drawn} == {5, 6}
    assert abs(np.mean([one[0, 1] for one in drawn]) - 5.25) < 0.05
    assert all(((one + one.T)[~np.eye(3, dtype=bool)] == 7).all() for one in drawn)


def test_what_is_true_of_the_items():
    wins = np.array([[0, 5, 6], [4, 0, 5], [3, 5, 0]])
    assert [is_true(one, wins, 10, 0.0) for one in (0, 1, 2, NO_WINNER, NOT_YET)] == [True, False, False, False, True]
    assert [is_true(TIED - arm, wins, 10, 0.0) for arm in range(3)] == [True, False, False]
    assert [is_true(TIED - arm, wins, 10, 0.05) for arm in range(3)] == [True, True, False]  # 1 loses by 1 of 10
    cycle = np.array([[0, 5, 4], [4, 0, 5], [5, 4, 0]])
    assert [is_true(one, cycle, 9, 0.0) for one in (0, NO_WINNER, TIED)] == [False, True, False]
    level = np.array([[0, 5], [5, 0]])
    assert [is_true(one, level, 10, 0.0) for one in (0, 1, NO_WINNER, TIED, TIED - 1)] == [
        False,
        False,
        True,
        True,
        True,
    ]


@pytest.fixture
def interpreted(monkeypatch):
    """Compiling takes longer than these short studies."""
    monkeypatch.setattr(
        loop, "compile_for", lambda policy, function, trial: loop.bind_to(function, policy, compiled=False)
    )


def test_a_plan_worked_by_hand(interpreted):
    # Arm 0 wins all items: when it has more than half, nothing can change that. It takes 13 wins without items.
    for items, answers in ((1, 1), (2, 2), (10, 6), (11, 6)):
        (row,) = estimate_votes(arms=2, gap=0.5, policies="verdict", studies=3, items=items, about="these-answers")
        assert (row.answers_median, row.answers_90, row.undecided, row.wrong) == (answers, answers, 0.0, 0.0)
        assert row.regret_median == answers / 4
    # Nearly level arms win one each of two items, but for a chance of 1 %, and that is the verdict.
    (row,) = estimate_votes(arms=2, gap=0.005, policies="verdict", studies=3, items=2, about="these-answers")
    assert (row.answers_median, row.undecided, row.wrong) == (2, 0.0, 0.0)
    (row,) = estimate_votes(arms=2, gap=0.5, policies="verdict", studies=3, items=10, budget=5, about="these-answers")
    assert row.within_budget == 0
    (row,) = estimate_votes(arms=2, gap=0.5, policies="verdict", studies=3, items=10, limit=5, about="these-answers")
    assert row.undecided == 1


def test_a_plan_on_new_items_worked_by_hand(interpreted):
    # The verdict is about items like these: it takes 13 wins in a row whatever the number of items, or it ends without.
    for items, undecided in ((12, 1.0), (13, 0.0), (40, 0.0)):
        (row,) = estimate_votes(arms=2, gap=0.5, policies="verdict", studies=3, items=items)
        assert (row.undecided, row.wrong) == (undecided, 0.0)
        assert row.answers_median == (math.inf if undecided else 13)
    # Of three arms, 0.5 + 2·3/(3·0.05) = 40.5: 14 wins over each of two.
    (row,) = estimate_votes(arms=3, gap=0.5, policies="verdict", studies=3, items=14)
    assert (row.undecided, row.wrong) == (0.0, 0.0)
    assert 28 <= row.answers_median <= 42
    (row,) = estimate_votes(arms=3, gap=0.5, policies="verdict", studies=3, items=13)
    assert (row.undecided, row.wrong) == (1.0, 0.0)


def test_several_at_once_end_when_all_was_asked():
    (row,) = estimate_votes(NEARLY_LEVEL, policies="random", studies=3, items=4, parallel=5, about="these-answers")
    assert (row.undecided, row.wrong) == (0, 0)
    assert row.answers_90 <= 12


@pytest.mark.parametrize("items", [0, -1, 1.5, 10**6])
def test_bad_numbers_of_items_are_refused(items):
    with pytest.raises(InvalidInput, match=r"items is .*: expected (from 1 to 100000|a whole number)"):
        estimate_votes(arms=2, gap=0.1, items=items)
