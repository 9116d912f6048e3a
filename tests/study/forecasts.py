"""Simulated studies whose forecast is compared with the answers that they needed, for tests and benchmarks/forecast.py.

A study is played for some answers, and if it has no verdict its forecast is noted; then it is played to its end. The
truths are drawn from the prior of `study/stats/forecast.py`, or are strengths that are given.
"""

import json
import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from duels.engine import loop
from duels.policies import load_policy
from duels.storage.storage import StudyRow
from duels.study.plan import until_verdict, until_verdict_on_items
from duels.study.state.counts import next_event
from duels.study.state.live import LiveState
from duels.study.state.look import find_asked_arms
from duels.study.stats import forecast as module
from duels.study.stats import verdict as verdicts
from duels.study.stats.exhausted import find_exhausted
from duels.study.stats.forecast import SPREADS, answers_needed, draw_strengths
from duels.study.stats.goal import new_goal
from duels.study.stats.simulated_looks import NOT_YET, new_item_looks, new_looks
from duels.study.stats.tally import as_tally, rank_arms

BETTER = float(special.logit(0.7))
CLEAR = {  # strengths, answers: a clear winner, which no forecast may take for a close one
    "3 arms, 70 %, after 20": ((BETTER, 0, 0), 20),
    "3 arms, 70 %, after 60": ((BETTER, 0, 0), 60),
    "5 arms, 70 %, after 50": ((BETTER, 0, 0, 0, 0), 50),
    "5 arms, 70 %, after 120": ((BETTER, 0, 0, 0, 0), 120),
    "Bradley-Terry 0, -0.5, -1, -1.5, after 40": ((0, -0.5, -1, -1.5), 40),
    "Bradley-Terry 0, -0.5, -1, -1.5, after 120": ((0, -0.5, -1, -1.5), 120),
}
KINDS = ("people come back", "people known by name", "an arm was retired", "an arm was added")  # of live studies
MOST = 10**6


class Row(NamedTuple):
    """One study without a verdict: the forecast, and how many more answers it took."""

    median: float  # infinite if half of the futures have no verdict
    most: float  # what nine in ten need
    is_said: bool  # whether it is not too early to say this
    actual: float  # infinite if it never had a verdict


def draw_truth(rng):
    """The strengths of two to seven arms, from the prior, and after how many answers to look: 3 to 1,000."""
    arms = int(rng.integers(2, 8))
    strengths = rng.normal(size=arms) * rng.choice(SPREADS, p=np.array(SPREADS) / sum(SPREADS))
    return strengths, int(10 ** rng.uniform(0.5, 3))


def studies(number, seed):
    """Random problems of the model, played by `verdict` for a while: counts, strengths, and what plays the rest."""
    rng = np.random.default_rng(seed)
    for study in range(number):
        strengths, answers = draw_truth(rng)
        yield from played(strengths, answers, [study], seed)


def played(strengths, answers, numbers, seed, *, ties=0.0, margin=0.0, chosen="verdict"):
    """As `studies`, of arms with these strengths, after so many answers or at a verdict before."""
    chosen, arms, strengths = load_policy(chosen).with_goal(0.95, margin), len(strengths), np.array(strengths, float)
    alpha = getattr(chosen.params, "alpha", 0.51)
    for study in numbers:
        chance = special.expit(strengths[:, None] - strengths)
        chance.flags.writeable = False
        looks, state = new_looks(arms, 0.05, margin), chosen.start(arms)
        random = (*loop.streams(seed, study), np.random.default_rng(study))
        redirects = not chosen.asks_for(0.95, margin)
        fixed = (state, chosen.params, chance, ties, True, redirects, np.zeros(arms), looks, alpha)
        play = loop.compile_for(chosen, until_verdict, partial(call_with, arguments=(*fixed, 0, *random)))
        play(*fixed, answers, *random)
        yield looks, strengths, partial(play, *fixed, MOST, *random)


def call_with(function, arguments):
    return function(*arguments)


def forecast(tally, margin=0.0, left=None):
    """The two figures of `forecast`, also where it is too early to say them, and whether it says them."""
    arms = np.array([arm for _, arm in rank_arms(tally).ranks if tally.active[arm]])
    strengths = draw_strengths(tally.wins[np.ix_(arms, arms)].astype(float), np.random.default_rng(module.STRENGTHS))
    strengths = strengths[np.random.default_rng(module.CHOICE).permutation(len(strengths))[: module.FUTURES]]
    needed = answers_needed(tally, arms, strengths, 0.95, margin, left)
    found = [module._find_quantile(needed, level) for level in (0.5, 0.9)]
    half, most = (math.inf if one is None else max(one, 1) for one in found)
    return half, most, module._forecast(needed, tally, len(arms))[0] is not None


def forecasts(found, *, margin=0.0, **about):
    """A row for each study of `played` that has no verdict yet.

    Args:
        found: Counts, strengths, and what plays the rest.
        margin: Of the verdict.
        **about: `items` and `about` of the tally.
    """
    rows = []
    for looks, _, rest in found:
        names = [str(arm) for arm in range(len(looks.wins))]
        tally = as_tally(names, looks.wins.astype(int), looks.ties.astype(int), **about)
        if verdicts.verdict(tally, margin=margin).kind != "not yet":
            continue
        left = np.maximum(about.get("items", MOST) - looks.wins - looks.wins.T - looks.ties, 0)
        np.fill_diagonal(left, 0)
        if about and find_exhausted(tally, left.astype(int), 0.95, margin) is not None:
            continue  # nothing is forecast, and nothing is asked
        predicted = forecast(tally, margin)
        duels, _, verdict = rest()
        everything = duels >= MOST and tally.is_finite
        actual = left.sum() / 2 if everything else math.inf if verdict == NOT_YET else duels
        rows.append(Row(*predicted, actual))
    return rows


def played_on_items(items, about, number, seed, *, margin=0.0):
    """As `studies`, on so many items: about them, or about new ones of which they are a sample."""
    rng, chosen = np.random.default_rng(seed), load_policy("verdict").with_goal(0.95, margin)
    play = loop.bind_to(until_verdict_on_items, chosen)
    for study in range(number):
        strengths, answers = draw_truth(rng)
        arms = len(strengths)
        drawn = np.triu(rng.binomial(items, special.expit(strengths[:, None] - strengths)), 1)
        wins = drawn + np.tril(items - drawn.T, -1)
        known = new_item_looks(wins, np.zeros_like(wins), items, 0.05, margin, about == "new-items")
        random = (*loop.streams(seed, study), np.random.default_rng(study))
        fixed = (chosen.start(arms), chosen.params, known, True, np.zeros(arms))
        most = max(1, int(min(answers, 0.4 * items * arms * (arms - 1))))
        play(*fixed, most, *random)
        yield known, strengths, partial(play, *fixed, MOST, *random)


class LiveStudy:
    """A study in memory, asked and told as a live one, whose answers are drawn.

    Args:
        strengths: Of the arms.
        seed: Of its luck.
        people: How many people answer, again and again; nobody who is known by name if 0.
        strangers: Whether everybody is known by name, and answers once.
    """

    def __init__(self, strengths, seed, *, people=0, strangers=False):
        chosen = load_policy("verdict").with_goal(0.95, 0.0)
        goal = new_goal(0.95, ties=chosen.live_ties)
        row = StudyRow(0, "study", 0.0, str(chosen), MOST, seed, 600.0, {"goal": goal._asdict()})
        self.history, self.answers = LiveState(row, chosen), 0
        self._strengths, self._luck = list(strengths), np.random.default_rng([seed, 1])
        self._people, self._strangers = people, strangers
        names = [f"arm {arm}" for arm in range(len(strengths))]
        self.add("create", note=json.dumps({"arms": names}))

    def add(self, kind, **fields: Any):
        self.history.take(next_event(self.history, kind, 0.0, **fields))

    def add_arm(self, strength):
        self._strengths.append(strength)
        self.add("add_arm", note=json.dumps({"arm": f"arm {len(self._strengths) - 1}"}))

    def step(self):
        left, right, swapped = self.history.question(0.0, allow_self=False)
        who = f"{self._luck.integers(self._people)}" if self._people else f"{self.answers}" if self._strangers else None
        duel = len(self.history.left)
        self.add("ask", duel=duel, attempt=0, left_arm=left, right_arm=right, swapped=swapped, voter=who)
        chance = special.expit(self._strengths[left] - self._strengths[right])
        answer = "left" if self._luck.random() < chance else "right"
        self.add("tell", duel=duel, attempt=0, answer=answer, voter=who)
        self.answers += 1

    def look(self):
        return self.history.look(0.0)._replace(asked=find_asked_arms(self.history))

    def play(self, most):
        """Play so many answers, or until there is a verdict; returns whether there is one."""
        for _ in range(most):
            if self.look().verdict().kind != "not yet":
                return True
            self.step()
        return self.look().verdict().kind != "not yet"


def live_forecasts(kind, truths, seed, most=3000):
    """A row for each live study without a verdict at the look.

    Args:
        kind: One of `KINDS`.
        truths: Strengths, and the number of answers before the look.
        seed: Of their luck.
        most: Studies are given up after so many more answers, and longer forecasts are not compared: they are infinite.
    """
    rows = []
    for number, (strengths, answers) in enumerate(truths):
        late = kind == "an arm was added" and len(strengths) > 2
        people = {"people come back": {"people": 30}, "people known by name": {"strangers": True}}.get(kind, {})
        study = LiveStudy(strengths[:-1] if late else strengths, seed + number, **people)
        if study.play(answers // 2):
            continue
        if late:
            study.add_arm(strengths[-1])
        elif kind == "an arm was retired" and len(strengths) > 2:
            study.add("retire_arm", left_arm=int(rank_arms(study.history.tally).ranks[-1][1]))
        if study.play(answers - answers // 2):
            continue
        half, nine, is_said = forecast(study.look().tally, 0.0, study.look().questions_left())
        before = study.answers
        limit = int(nine if nine <= most else half if half <= most else 0)
        actual = study.answers - before if study.play(limit) else math.inf
        figures = (one if one <= most else math.inf for one in (half, nine))
        rows.append(Row(*figures, is_said, actual))
    return rows


def suffices(rows):
    """The shares of studies in which the median sufficed, and the 90 % figure, where they are finite."""
    found = []
    for name in ("median", "most"):
        known = [row for row in rows if math.isfinite(getattr(row, name))]
        found.append(np.mean([row.actual <= getattr(row, name) for row in known]) if known else math.nan)
    return tuple(found)
