"""Simulated crowds: what a study learns from people is what `simulate` learns, also if many answer at once."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import duels
from duels.storage.storage import StudyRow
from duels.study.create import create_study
from duels.study.state.counts import next_event
from duels.study.state.live import LiveState
from duels.study.stats.goal import new_goal
from duels.study.stats.simulated_looks import NOT_YET, find_verdict, new_looks, take

PAGE = Path(__file__).parents[2] / "docs" / "study" / "plan.md"
BT = duels.load_problem("bradley-terry:arms=8")
LINEAR = duels.load_problem("linear:arms=4")


def begun(matrix, policy, seed, horizon=None):
    """The history of a study that has just been created, without a database."""
    chosen = duels.policies.load_policy(policy)
    goal = new_goal(ties=chosen.live_ties)._asdict()
    history = LiveState(StudyRow(1, "study", 0.0, policy, horizon, seed, 600.0, {"goal": goal}), chosen)
    history.apply([next_event(history, "create", 0.0, note=json.dumps({"arms": matrix.names}))])
    history.player().compile()
    return history


def ask(history, allow_self=True):
    left, right, swapped = history.question(0.0, allow_self)
    number = len(history.left)
    shown = {"left_arm": left, "right_arm": right, "swapped": swapped}
    history.apply([next_event(history, "ask", 0.0, duel=number, attempt=0, **shown)])
    return number


def tell(history, duel, answer):
    history.apply([next_event(history, "tell", 0.0, duel=duel, attempt=0, answer=answer)])


def opinion(matrix, left, right, luck, mistakes=0.0):
    """What somebody says; an arm and itself are alike."""
    left_wins = luck.random() < matrix.array[left, right]
    if luck.random() < mistakes:
        left_wins = not left_wins
    return "tie" if left == right else "left" if left_wins else "right"


class Crowd(NamedTuple):
    """A study that was answered."""

    history: LiveState
    regret: np.ndarray  # after each answer
    verdict: int  # of the last look: an arm or NOT_YET


def crowd(matrix, policy, seed, answers, at_once=1, mistakes=0.0, people=False):
    """`at_once` duels are always open, and any of them is answered next: the delays are random, 99 answers on average
    if 100 are open. Where people vote no arm meets itself, and the study ends with a verdict."""
    history, luck = begun(matrix, policy, seed, answers), np.random.default_rng([seed, at_once])
    looks, verdict = new_looks(matrix.arms, 0.05, 0.0), NOT_YET
    waiting, costs = [ask(history, not people) for _ in range(at_once)], []
    while len(costs) < answers:
        duel = waiting.pop(luck.integers(at_once))
        left, right = history.left[duel], history.right[duel]
        said = opinion(matrix, left, right, luck, mistakes)
        tell(history, duel, said)
        costs.append((matrix.gaps[left] + matrix.gaps[right]) / 2)
        if people:
            take(looks, left, right, {"left": 1.0, "right": 0.0, "tie": 0.5}[said])
            verdict = find_verdict(looks, left, right)
            if verdict != NOT_YET:
                break
        waiting.append(ask(history, not people))
    return Crowd(history, np.cumsum(costs), verdict)


def recommended(history):
    return history.player().recommend(history.row.seed)


def same_distribution(some, others):
    """Whether a two-sample Kolmogorov–Smirnov test lets it pass; false alarm 1e-4, fewer for values that repeat."""
    from scipy import stats

    return stats.ks_2samp(some, others).pvalue > 1e-4


@pytest.mark.parametrize("policy", [pytest.param(one, marks=pytest.mark.deep) for one in ("rucb", "savage", "random")])
def test_a_crowd_has_the_regret_of_simulate(policy):
    """50 studies of 300 answers against 1,000 runs; the answers of a crowd that errs in a fifth of them do not pass."""
    simulated = duels.simulate(LINEAR, policy, horizon=300, runs=1000, checkpoints=[]).frame["regret"]
    regret = [crowd(LINEAR, policy, seed, 300).regret[-1] for seed in range(1, 51)]
    assert same_distribution(regret, simulated)
    if policy == "rucb":
        careless = [crowd(LINEAR, policy, seed, 300, mistakes=0.2).regret[-1] for seed in range(1, 51)]
        assert not same_distribution(careless, simulated)


@pytest.mark.deep
def test_random_pairs_that_are_not_random_do_not_pass():
    """The test sees a policy in place of another."""
    simulated = duels.simulate(LINEAR, "random", horizon=300, runs=1000, checkpoints=[]).frame["regret"]
    assert not same_distribution([crowd(LINEAR, "savage", seed, 300).regret[-1] for seed in range(1, 51)], simulated)


@pytest.mark.parametrize("at_once", [pytest.param(1, marks=pytest.mark.deep), 7])
def test_a_crowd_at_the_database_is_the_crowd_without(tmp_path, at_once):
    """The same luck gives the same duels and answers, so what is measured without a database holds with one."""
    for seed in (1, 2):
        study = create_study(LINEAR.names, f"study {seed}", f"sqlite:///{tmp_path}/duels.db", policy="rucb", seed=seed)
        luck = np.random.default_rng([seed, at_once])
        waiting, costs = [study.ask() for _ in range(at_once)], []
        while len(costs) < 200:
            duel = waiting.pop(luck.integers(at_once))
            left, right = LINEAR.index(duel.left), LINEAR.index(duel.right)
            study.tell(duel, opinion(LINEAR, left, right, luck))
            costs.append((LINEAR.gaps[left] + LINEAR.gaps[right]) / 2)
            waiting.append(study.ask())
        without = crowd(LINEAR, "rucb", seed, 200, at_once)
        assert np.array_equal(np.cumsum(costs), without.regret)
        assert np.array_equal(study.tally().wins, without.history.wins)
        assert study.best_arm == LINEAR.names[recommended(without.history)]
        assert study.check() == without.history.seq


@pytest.mark.deep
def test_a_hundred_open_duels_cost_little():
    """Means of 5 studies: the extra regret is a third (docs/study/plan.md), and one standard error about a tenth."""
    costs = {}
    for at_once in (1, 100):
        studies = [crowd(BT, "rucb", seed, 3000, at_once) for seed in range(1, 6)]
        assert [recommended(study.history) for study in studies] == [BT.condorcet_winner] * 5
        assert all(len(study.history.open) == at_once for study in studies)
        costs[at_once] = np.mean([study.regret[-1] for study in studies])
    assert 1.05 < costs[100] / costs[1] < 1.9
    # Random pairs would cost the mean of all arms' gaps at every duel.
    assert costs[100] < 0.5 * 3000 * BT.gaps.sum() / (BT.arms - 1)


def test_people_who_answer_a_hundred_at_once_reach_the_right_verdict():
    """At 95 % and with a nearest rival of 59 %, the chance of an error is far below 1 %."""
    duels_needed = {}
    for at_once in (1, 10, 100):
        studies = [crowd(BT, "verdict", seed, 20_000, at_once, people=True) for seed in range(1, 6)]
        assert [study.verdict for study in studies] == [BT.condorcet_winner] * 5
        for study in studies:
            shown = zip(study.history.left, study.history.right)
            assert all(left != right for left, right in shown)
        duels_needed[at_once] = np.median([len(study.regret) for study in studies])
    assert duels_needed[10] < 1.5 * duels_needed[1]
    assert duels_needed[100] < 2.0 * duels_needed[1]


def test_people_at_the_database_reach_a_verdict(tmp_path):
    """Two open duels at a time, some of them skipped or called a tie; the verdict is asked for after every answer."""
    matrix = duels.load_problem("hard-condorcet:arms=4,gap=0.3")
    study = create_study(matrix.names, "people", f"sqlite:///{tmp_path}/duels.db", seed=3)
    luck, waiting = np.random.default_rng(3), []
    while study.verdict().kind == "not yet":
        waiting += study.ask(2, allow_self=False) if not waiting else [study.ask(allow_self=False)]
        duel = waiting.pop(luck.integers(len(waiting)))
        assert not duel.is_self
        said = opinion(matrix, matrix.index(duel.left), matrix.index(duel.right), luck)
        study.tell(duel, luck.choice([said, "tie", "skip"], p=[0.8, 0.1, 0.1]))
        assert study.tally().wins.sum() < 2000
    verdict = study.verdict()
    assert (verdict.kind, verdict.winner) == ("winner", matrix.names[matrix.condorcet_winner])
    assert study.best_arm == verdict.winner
    assert study.tally().ties.sum() > 0
    assert study.check()


def measured(at_once):
    """A line of the table in docs/study/plan.md."""
    people = [crowd(BT, "verdict", seed, 100_000, at_once, people=True) for seed in range(1, 61)]
    assert [study.verdict for study in people] == [BT.condorcet_winner] * 60
    return np.median([len(one.regret) for one in people]), np.median([one.regret[-1] for one in people])


@pytest.mark.deep
@pytest.mark.parametrize("at_once", [1, 10, 100])
def test_the_table_of_open_duels(at_once):
    """The page has what is measured here, to the last digit it shows."""
    (line,) = re.findall(rf"^\| {at_once} \| (.*) \|$", PAGE.read_text().split("| open at once |")[1], re.MULTILINE)
    assert line.split(" | ") == [f"{value:,.0f}" for value in measured(at_once)]
