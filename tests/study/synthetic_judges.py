"""Judges with a known truth: of K arms on N prompts, with the outputs to compare and an answer to every question.

What a judge thinks of two arms on a prompt is drawn once, from a seed: the same question always gets the same answer,
from any thread. How many prompts each arm wins against each other is exact, so that the truth does not depend on luck;
the seed decides which prompts these are, and which arm is the best.
"""

import itertools
import random
from collections import Counter
from functools import cached_property
from typing import NamedTuple

TIES = 0.1  # of the prompts of a pair
BLIND = 0.5  # of the prompts of a pair, on which the biased judge says left: ½ + ½ · ½ = 75 % of all answers


class SyntheticJudge:
    """A judge to be called with a prompt and two outputs, or the names of two arms.

    Args:
        arms: How many arms there are.
        prompts: How many prompts there are.
        seed: Decides which arm is which, and who wins on which prompt.
        share: Called with the ranks i < j of two arms, 0 for the best; the share of decided prompts that i wins.
        ties: The share of tied prompts of each pair.
        blind: The share of prompts of each pair on which the judge says left whatever is there.

    Attributes:
        arms: The names.
        prompts: The prompts.
        outputs: For each arm a list of outputs, as `find_best` takes them.
    """

    def __init__(self, arms, prompts, seed, share, ties=TIES, blind=0.0):
        draw = random.Random(seed)
        self.arms = [f"arm {k + 1}" for k in range(arms)]
        self.prompts = [f"prompt {n + 1}" for n in range(prompts)]
        self.outputs = {arm: [f"{arm} on {prompt}" for prompt in self.prompts] for arm in self.arms}
        self._arm = {arm: arm for arm in self.arms}
        self._arm |= {text: arm for arm, texts in self.outputs.items() for text in texts}
        self._opinion = {}  # by pair and prompt: the better arm, "tie" or "left"
        ranked = draw.sample(self.arms, arms)
        for (i, one), (j, other) in itertools.combinations(enumerate(ranked), 2):
            undecided = round(blind * prompts), round(ties * prompts)
            decided = prompts - sum(undecided)
            wins = round(share(i, j) * decided)
            opinions = ["left"] * undecided[0] + ["tie"] * undecided[1] + [one] * wins + [other] * (decided - wins)
            draw.shuffle(opinions)
            self._opinion |= {(frozenset((one, other)), p): opinions[n] for n, p in enumerate(self.prompts)}

    def __call__(self, prompt, left, right):
        """Answer left, right or tie."""
        first, second = self._arm[left], self._arm[right]
        opinion = self._opinion[frozenset((first, second)), prompt]
        return {first: "left", second: "right"}.get(opinion, opinion)

    @property
    def questions(self):
        """How many questions it takes to judge all pairs on all prompts, each in one order."""
        return len(self._opinion)

    def score(self, one, other):
        """Ask about all prompts in both orders; an answer that changes with the order is a tie."""
        words = Counter((self(prompt, one, other), self(prompt, other, one)) for prompt in self.prompts)
        wins, losses = words["left", "right"], words["right", "left"]
        return Score(wins, losses, len(self.prompts) - wins - losses)

    @cached_property
    def winner(self):
        """The arm that wins more prompts than it loses against each of the others; None if there is none."""
        for one in self.arms:
            scores = [self.score(one, other) for other in self.arms if other != one]
            if all(score.wins > score.losses for score in scores):
                return one
        return None


class Score(NamedTuple):
    """On how many prompts an arm wins, loses and ties against another."""

    wins: int
    losses: int
    ties: int


def clear(arms=6, prompts=40, seed=0):
    """The best arm wins three quarters of the decided prompts, the others 60 % against worse ones."""
    return SyntheticJudge(arms, prompts, seed, lambda i, j: 0.6 if i else 0.75)


def close(arms=6, prompts=40, seed=0):
    """Each arm wins 56 % of the decided prompts against the worse ones: 20 of 36, if there are 40 prompts."""
    return SyntheticJudge(arms, prompts, seed, lambda i, j: 0.56)


def biased(arms=6, prompts=40, seed=0):
    """As clear, without ties, but on half of the prompts of each pair the first side wins: 75 % of all answers."""
    return SyntheticJudge(arms, prompts, seed, lambda i, j: 0.6 if i else 0.75, ties=0.0, blind=BLIND)


def cyclic(arms=6, prompts=40, seed=0):
    """The best three arms beat each other in a cycle, with three quarters of the decided prompts: nobody wins."""
    return SyntheticJudge(arms, prompts, seed, lambda i, j: 0.25 if (i, j) == (0, 2) else 0.75)


JUDGES = {"clear": clear, "close": close, "biased": biased, "cyclic": cyclic}
