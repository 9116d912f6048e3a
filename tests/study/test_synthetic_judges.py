"""The judges that other tests trust: answers that stay, exact shares, and the truth by counting."""

import itertools
import random
from collections import Counter

import pytest
from synthetic_judges import JUDGES, Score, biased, clear, close, cyclic

from duels.study.voters.voter_tests import Sides
from duels.votes import items_of

every_judge = pytest.mark.parametrize("name", JUDGES)


def questions(judge):
    for (one, other), n in itertools.product(itertools.permutations(judge.arms, 2), range(len(judge.prompts))):
        yield judge.prompts[n], judge.outputs[one][n], judge.outputs[other][n]


@every_judge
def test_the_same_question_gets_the_same_answer(name):
    judge, again, other = (JUDGES[name](seed=seed) for seed in (3, 3, 4))
    answers = [judge(*question) for question in questions(judge)]
    assert answers == [again(*question) for question in questions(again)] == [judge(*q) for q in questions(judge)]
    assert len(answers) == 2 * judge.questions == 2 * 15 * 40
    assert answers != [other(*question) for question in questions(judge)]


@every_judge
def test_outputs_become_items(name):
    judge = JUDGES[name](arms=3, prompts=5)
    items = items_of(judge.outputs, judge.prompts)
    assert len(items) == 5
    texts = {arm: output.content for arm, output in items[4].outputs.items()}
    for one, other in itertools.permutations(texts, 2):
        assert judge("prompt 5", texts[one], texts[other]) == judge("prompt 5", one, other)


def truth(judge):
    """The winner, by asking every question in both orders: literal."""
    wins = Counter()
    for one, other in itertools.permutations(judge.arms, 2):
        for prompt in judge.prompts:
            if judge(prompt, one, other) == "left" and judge(prompt, other, one) == "right":
                wins[one, other] += 1
    beats_all = [a for a in judge.arms if all(wins[a, b] > wins[b, a] for b in judge.arms if b != a)]
    return beats_all[0] if beats_all else None


@every_judge
@pytest.mark.parametrize(("arms", "prompts"), [(6, 40), (3, 25), (8, 100)])
def test_the_truth(name, arms, prompts):
    winners = [JUDGES[name](arms, prompts, seed).winner for seed in range(8)]
    assert winners[:2] == [truth(JUDGES[name](arms, prompts, seed)) for seed in range(2)]
    if name == "cyclic":
        assert set(winners) == {None}
    else:
        assert None not in winners
        assert len(set(winners)) > 1  # not always the same arm


def test_scores_by_hand():
    # 40 prompts, 4 of them ties. 0.75 · 36 = 27 wins of the best, 0.6 · 36 = 21.6 of the others, 0.56 · 36 = 20.16.
    assert scores_of_the_best(clear()) == {Score(27, 9, 4)}
    assert scores_of_the_best(close()) == {Score(20, 16, 4)}
    judge = cyclic()
    assert {max(judge.score(*pair)[:2]) for pair in itertools.combinations(judge.arms, 2)} == {27}
    # Half of 40 prompts are blind; of the others 0.75 · 20 = 15 are wins.
    assert scores_of_the_best(biased()) == {Score(15, 5, 20)}


def scores_of_the_best(judge):
    return {judge.score(judge.winner, other) for other in judge.arms if other != judge.winner}


def test_the_biased_judge_says_left_to_three_quarters_of_the_questions():
    for name, share in (("clear", 0.5), ("close", 0.5), ("biased", 0.75), ("cyclic", 0.5)):
        judge = JUDGES[name]()
        answers = Counter(judge(*question) for question in questions(judge))
        assert answers["left"] / (answers["left"] + answers["right"]) == share


@pytest.mark.parametrize(("name", "alarm"), [("clear", False), ("biased", True)])
def test_the_alarm_tells_it_from_the_others(name, alarm):
    """Each prompt and pair once, in an order that a coin decides.

    A fair judge raises an alarm in at most 1 of 200 runs, and one with 75 % of 600 answers misses it in 1 of 10¹⁵.
    """
    coin, judge, sides = random.Random(1), JUDGES[name](seed=1), Sides()
    for prompt, pair in itertools.product(judge.prompts, itertools.combinations(judge.arms, 2)):
        sides.add("judge", judge(prompt, *coin.sample(pair, 2)))
    assert sides.biased("judge") == alarm
