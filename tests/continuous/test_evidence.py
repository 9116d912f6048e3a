"""The evidence against coin tossing: a martingale, whatever is asked, and what it learns by another way."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from duels.continuous.model.evidence import BLOCK, ENOUGH, Evidence, mixture
from duels.continuous.model.model import Answers, dueling_covariance

NUMBERS = np.zeros(2, np.int64)


def answers_of(count, seed=0, dimensions=2, ties=True):
    rng = np.random.default_rng(seed)
    left, right = rng.random((2, count, dimensions))
    return Answers(left, right, rng.choice([0.0, 0.5, 1.0] if ties else [0.0, 1.0], count))


def first(answers, count):
    return Answers(*(column[:count] for column in answers))


def evidence_of(answers, category=NUMBERS):
    found = Evidence(category)
    found.take(answers)
    return found


def last(answers, category=NUMBERS):
    """The evidence after the last answer."""
    return math.exp(evidence_of(answers, category)._before + evidence_of(answers, category)._last)


def literal_log_evidence(answers, category):
    """Models whose normal posterior of all differences is matched to each answer in turn, by sums over a fine grid."""
    logs = []
    for inverse, scale in zip(*mixture(answers.left.shape[1])):
        covariance = dueling_covariance(answers.left, answers.right, inverse, category, scale)
        mean, total = np.zeros(len(covariance)), 0.0
        for t, outcome in enumerate(answers.outcome):
            spread = math.sqrt(covariance[t, t])
            g = mean[t] + spread * np.linspace(-9, 9, 4001)
            weight = np.exp(-0.5 * ((g - mean[t]) / spread) ** 2)
            weight /= weight.sum()
            tilted = weight * expit(g) ** outcome * expit(-g) ** (1 - outcome)
            if outcome != 0.5:
                total += math.log(2 * tilted.sum())
            tilted /= tilted.sum()
            center = tilted @ g
            narrower = tilted @ (g - center) ** 2
            gain = covariance[:, t] / covariance[t, t]
            mean = mean + gain * (center - mean[t])
            covariance = covariance - np.outer(gain, gain) * (covariance[t, t] - narrower)
        logs.append(total)
    return math.log(np.mean(np.exp(logs)))


@pytest.mark.parametrize("category", [[0, 0], [0, 1]])
def test_each_answer_is_predicted_from_those_before_it(category):
    answers = answers_of(9, seed=4)
    if category[1]:
        answers = Answers(*(np.where([False, True], side.round(), side) for side in answers[:2]), answers.outcome)
    expected = literal_log_evidence(answers, np.array(category))
    assert math.log(last(answers, np.array(category))) == pytest.approx(expected, abs=2e-3)


def test_it_is_a_martingale_for_coins():
    """The mean over both outcomes of the next answer is the evidence before it: exactly, for every pair asked."""
    answers = answers_of(12, seed=1)
    for count in range(1, 12):
        before = last(first(answers, count))
        both = []
        for outcome in (0.0, 1.0):
            told = first(answers, count + 1)
            told.outcome[-1] = outcome
            both.append(last(Answers(told.left, told.right, np.append(told.outcome[:-1], outcome))))
        assert np.mean(both) == pytest.approx(before, rel=1e-9)


def test_a_tie_is_no_evidence():
    answers = answers_of(6)
    tied = Answers(answers.left, answers.right, np.append(answers.outcome[:5], 0.5))
    assert last(tied) == pytest.approx(last(first(answers, 5)), rel=1e-12)


def test_it_is_a_function_of_the_answers():
    """One that grows, one that is new, and one that has seen other answers."""
    answers, other = answers_of(30, seed=2), answers_of(20, seed=3)
    grown, misled = Evidence(NUMBERS), Evidence(NUMBERS)
    misled.take(other)
    highest = 0.0
    for count in range(31):
        grown.take(first(answers, count))
        if count:
            highest = max(highest, last(first(answers, count)))
            assert grown.most == pytest.approx(max(highest, 1.0), rel=1e-9)
    misled.take(answers)
    assert misled.most == grown.most == evidence_of(answers).most
    grown.take(first(answers, 3))  # answers were taken back
    assert grown.most == evidence_of(first(answers, 3)).most


def test_what_was_found_stays_found():
    rng = np.random.default_rng(0)
    left, right = rng.random((2, 60, 1))
    wins = (left < right)[:, 0].astype(float)
    clear = Answers(left, right, np.append(wins[:30], 1 - wins[30:]))
    found = evidence_of(first(clear, 30), np.zeros(1, np.int64))
    assert found.is_found
    assert found.most >= ENOUGH
    assert evidence_of(clear, np.zeros(1, np.int64)).most == found.most


def test_after_a_block_the_models_begin_again():
    """The evidence of two blocks is the product of theirs."""
    answers = answers_of(BLOCK + 5, dimensions=1, ties=False)
    category = np.zeros(1, np.int64)
    rest = Answers(*(column[BLOCK:] for column in answers))
    assert not evidence_of(answers, category).is_found
    expected = last(first(answers, BLOCK), category) * last(rest, category)
    assert last(answers, category) == pytest.approx(expected, rel=1e-9)


def chase(answers_left, answers_right, score):
    """Choose pairs that the answers so far make look most unlike coins: what has won against what has lost."""
    return answers_left[score.argmax()], answers_right[score.argmin()]


@pytest.mark.deep
@pytest.mark.parametrize("dimensions", [1, 3])
def test_coin_tossers_are_found_to_have_a_preference_in_five_percent(dimensions):
    """At any look, with pairs chosen by the answers. 600 studies; fails by chance in at most 1 of 1,000."""
    wrong, studies, category = 0, 600, np.zeros(dimensions, np.int64)
    for seed in range(studies):
        rng = np.random.default_rng([seed, dimensions])
        places = rng.random((6, dimensions))
        score, evidence = np.zeros(6), Evidence(category)
        rows = []
        for _ in range(60):
            order = np.argsort(score + 1e-3 * rng.random(6))
            one, other = (order[-1], order[0]) if rng.random() < 0.7 else rng.permutation(6)[:2]
            won = float(rng.random() < 0.5)
            score[one], score[other] = score[one] + won - 0.5, score[other] + 0.5 - won
            rows.append((places[one], places[other], won))
        evidence.take(Answers(*(np.array(column) for column in zip(*rows))))
        wrong += evidence.is_found
    assert stats.binomtest(wrong, studies, 1 / ENOUGH, "greater").pvalue > 1e-3
