"""How many answers a verdict takes: a table, and benchmarks/out/verdict.json. Exit code 1 if a bar is missed.

    python benchmarks/verdict.py             all of benchmarks/verdict.md
    python benchmarks/verdict.py hard-5 BT-8 some problems

Studies are simulated with a look after every answer, at 95 %. Three ways to ask, on the same seeds:

- the default: the policy `verdict` and the test of a live study;
- RUCB, with ties as halves, and a test that is a union over all pairs;
- the oracle: it knows the best arm, and plays it against each other one until that is certain, by the same test.

Then the default with 10 and 100 open questions, asked and answered as in a live study. The data of three problems are
read from $DUELS_DATA or ../shared/data; where they are absent these problems are left out.
"""

import csv
import gzip
import math
import os
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats
from table import report

import duels
from duels.engine import loop
from duels.engine.compiling import compile_with
from duels.engine.threads import in_threads, thread_count
from duels.study.plan import LIMIT, _is_wrong, _Plan, _study_at_once, _study_one_by_one
from duels.study.state.policy_state import rival
from duels.study.stats.simulated_looks import NO_WINNER, NOT_YET, TIED, find_verdict, new_looks, take

DATA = Path(os.environ.get("DUELS_DATA") or Path(__file__).parents[2] / "shared" / "data")
DELTA = 0.05
LOG_2, LOG_PI = math.log(2.0), math.log(math.pi)
AT_ONCE = ("hard-5", "hard-10", "BT-8", "arxiv-6", "llmfao-12")

select = update = None  # placeholders for a policy's kernels


class Problem(NamedTuple):
    matrix: duels.PreferenceMatrix
    ties: float = 0.0
    margin: float = 0.0
    studies: int = 400


def hard(arms, gap=0.1):
    """The first arm wins against each other one with ½ + gap; the others are level."""
    array = np.full((arms, arms), 0.5)
    array[0, 1:], array[1:, 0] = 0.5 + gap, 0.5 - gap
    return array


def level_on_top():
    """Two level arms win 65 % against four others, which are level."""
    array = np.full((6, 6), 0.5)
    array[:2, 2:], array[2:, :2] = 0.65, 0.35
    return array


def close_rival():
    """The first of ten arms wins 55 % against the second, which is its equal against the rest, and 75 % there."""
    array = np.full((10, 10), 0.5)
    array[:2, 2:], array[2:, :2] = 0.75, 0.25
    array[0, 1], array[1, 0] = 0.55, 0.45
    return array


def models():
    """Every fifth model of a Bradley–Terry fit to the votes of LLMFAO, and the share of ties."""
    with gzip.open(DATA / "votes" / "llmfao-crowd.csv.gz", "rt") as file:
        votes = list(csv.DictReader(file))
    names = sorted({vote[side] for vote in votes for side in ("left", "right")})
    wins = np.zeros((len(names), len(names)))
    for vote in votes:
        if vote["winner"] != "tie":
            left, right = names.index(vote["left"]), names.index(vote["right"])
            wins[(left, right) if vote["winner"] == "left" else (right, left)] += 1
    strength = np.ones(len(names))
    for _ in range(2000):  # the usual fixed point, with half a win for each pair that met
        met = wins + wins.T
        won = wins.sum(axis=1) + 0.5
        strength = won / ((met / (strength[:, None] + strength)).sum(axis=1) + 1 / (strength + 1))
        strength /= np.exp(np.log(strength).mean())
    chosen = np.sort(strength)[::-1][::5]
    ties = sum(vote["winner"] == "tie" for vote in votes) / len(votes)
    return chosen[:, None] / (chosen[:, None] + chosen), ties


def problems():
    """Name → problem: twelve that were used to find the rule, and four that were not."""
    matrix = duels.PreferenceMatrix
    yield "hard-5", Problem(matrix(hard(5)))
    yield "hard-10", Problem(matrix(hard(10)))
    yield "hard-20", Problem(matrix(hard(20)))
    yield "hard-64", Problem(matrix(hard(64)), studies=100)
    yield "BT-8", Problem(duels.load_problem("bradley-terry:arms=8"))
    yield "BT-16", Problem(duels.load_problem("bradley-terry:arms=16,spread=0.5"))
    yield "BT-64", Problem(duels.load_problem("bradley-terry:arms=64"))
    yield "arxiv-6", Problem(duels.load_problem("arxiv-6"))
    yield "arithmetic-8", Problem(duels.load_problem("arithmetic-8"))
    if (DATA / "matrices").exists():
        rankers = duels.load_matrix(DATA / "matrices" / "feature-rankers-64.csv")
        yield "feat-8", Problem(rankers.subset(list(range(5, 64, 8))))
        array, ties = models()
        yield "llmfao-12", Problem(matrix(array), ties)
        yield "feat-64", Problem(rankers, studies=40)
    yield "level-6, margin 0.05", Problem(matrix(level_on_top()), margin=0.05)
    yield "rival-10", Problem(matrix(close_rival()))
    yield "cyclic-4", Problem(duels.load_problem("cyclic-4"))
    yield "hard-8, 30 % ties", Problem(matrix(hard(8, 0.15)), 0.3)


# RUCB with a union bound over all pairs


def log_martingale(wins, losses, p):
    """Kernel: ln M(p) for ties as halves."""
    known = math.lgamma(wins + 0.5) + math.lgamma(losses + 0.5) - math.lgamma(wins + losses + 1.0) - LOG_PI
    return known - wins * math.log(p) - losses * math.log(1.0 - p)


def certain(wins, losses, level):
    """Kernel: whether the first of a pair beats the second for certain."""
    lead = wins - losses
    if lead <= 0 or LOG_2 * lead * lead < level * (wins + losses):
        return False
    return log_martingale(wins, losses, 0.5) >= level


def close(wins, losses, ties, margin, level):
    """Kernel: whether the first of a pair is certain not to be worse than the second by more than the margin."""
    won, lost, null = wins + 0.5 * ties, losses + 0.5 * ties, 0.5 - margin
    return won > null * (won + lost) and log_martingale(won, lost, null) > level


def until_verdict_of_rucb(state, params, world, share_of_ties, margin, level, wins, ties, halves, limit, coin, luck):
    """Kernel: a study of RUCB with a union bound over all pairs; returns duels and verdict."""
    arms = len(world)
    for t in range(1, limit + 1):
        i, j = select(state, params, t, coin)
        if i == j:
            j = rival(halves, i, t, 0.51)
        outcome = 1.0 if luck.random() < world[i, j] else 0.0
        if share_of_ties > 0.0 and luck.random() < share_of_ties:
            outcome = 0.5
        update(state, params, t, i, j, outcome)
        halves[i, j] += outcome
        halves[j, i] += 1.0 - outcome
        if outcome == 0.5:
            ties[i, j] += 1.0
            ties[j, i] += 1.0
        else:
            wins[i, j] += outcome
            wins[j, i] += 1.0 - outcome
        # Only what this answer changed can have become certain: a win of the winner of this duel, or closeness.
        for k in (i, j):
            other = j if k == i else i
            if certain(wins[k, other], wins[other, k], level):
                beaten = 0
                for a in range(arms):
                    beaten += certain(wins[k, a], wins[a, k], level)
                if beaten == arms - 1:
                    return t, k
                lost = 0
                for a in range(arms):
                    for b in range(arms):
                        if certain(wins[b, a], wins[a, b], level):
                            lost += 1
                            break
                    if lost <= a:
                        break
                if lost == arms:
                    return t, NO_WINNER
            if margin > 0.0:
                near = 0
                for a in range(arms):
                    near += a == k or (
                        certain(wins[k, a], wins[a, k], level)
                        or close(wins[k, a], wins[a, k], ties[k, a], margin, level)
                    )
                if near == arms:
                    return t, TIED - k
    return limit, NOT_YET


def rucb_study(problem):
    matrix, rucb = problem.matrix, duels.policies.load_policy("rucb")
    level = math.log(matrix.arms**2 / (2 * DELTA))

    def study(number, limit, play):
        state, streams = rucb.start(matrix.arms, LIMIT), loop.streams(0, number)
        counts = np.zeros((3, matrix.arms, matrix.arms))
        told = (problem.ties, problem.margin, level, *counts, limit)
        return play(state, rucb.params, matrix.array, *told, *streams)

    play = loop.compile_for(rucb, until_verdict_of_rucb, lambda call: study(0, 0, call))
    return lambda number: study(number, 100 * LIMIT, play)


# The oracle


def play_oracle(world, share_of_ties, best, looks, luck):
    """Kernel: the best arm meets each other one until that is certain; returns duels and verdict."""
    duels_played = 0
    for k in range(len(world)):
        while k != best and not looks.done[best, k]:
            outcome = 1.0 if luck.random() < world[best, k] else 0.0
            if share_of_ties > 0.0 and luck.random() < share_of_ties:
                outcome = 0.5
            duels_played += 1
            take(looks, best, k, outcome)
            verdict = find_verdict(looks, best, k)
            if verdict != NOT_YET:
                return duels_played, verdict
    return duels_played, NOT_YET


def oracle_study(problem):
    matrix, play = problem.matrix, compile_with(play_oracle, {}, name="play_oracle")
    best = 0 if matrix.condorcet_winner is None else matrix.condorcet_winner

    def study(number):
        looks = new_looks(matrix.arms, DELTA, problem.margin)
        return play(matrix.array, problem.ties, best, looks, loop.streams(0, number)[1])

    return study


# The default


def planned(problem, at_once=1):
    goal = {"confidence": 1 - DELTA, "margin": problem.margin, "ties": problem.ties, "items": None}
    goal["about"] = "these-items"
    return _Plan(problem.matrix, **goal, parallel=at_once, budget=None, studies=problem.studies, limit=LIMIT, seed=0)


class World(NamedTuple):
    """A problem as the plan sees it; a study of two level arms has no regret."""

    array: np.ndarray
    arms: int
    names: tuple
    gaps: np.ndarray
    condorcet_winner: int | None


def without_regret(matrix):
    return World(matrix.array, matrix.arms, tuple(matrix.names), np.zeros(matrix.arms), matrix.condorcet_winner)


def new_study(problem, at_once=1):
    plan = planned(problem, at_once)._replace(matrix=without_regret(problem.matrix))
    policy = duels.policies.load_policy("verdict").with_goal(1 - DELTA, problem.margin)
    play = (_study_at_once if at_once > 1 else _study_one_by_one)(plan, policy)

    def study(number):
        spent, _, verdict = play(number)
        return spent, verdict

    return study


class Sample(NamedTuple):
    duels: np.ndarray
    errors: int
    open: int


def sample(problem, study, studies):
    spent, verdicts = np.zeros(studies), np.zeros(studies, np.int64)

    def one(number, stop: threading.Event, share):
        spent[number], verdicts[number] = study(number)

    in_threads(one, studies, thread_count(None), False, "studies")
    return Sample(spent, int(_is_wrong(planned(problem), verdicts).sum()), int((verdicts == NOT_YET).sum()))


def bound(errors, studies):
    """The largest chance of an error that the errors seen do not refute at 99 %, by Clopper and Pearson."""
    return float(stats.beta.ppf(0.99, errors + 1, studies - errors))


def rows():
    asked = sys.argv[1:]
    chosen = {name: problem for name, problem in problems() if not asked or name in asked}
    dear, errors, studies, worst = 0, 0, 0, ("none", 0.0)
    for name, problem in chosen.items():
        new = sample(problem, new_study(problem), problem.studies)
        oracle = sample(problem, oracle_study(problem), problem.studies)
        rucb = sample(problem, rucb_study(problem), problem.studies // 4)
        ratio, saved = new.duels.mean() / oracle.duels.mean(), new.duels.mean() / rucb.duels.mean()
        for what, one in (("oracle", oracle), ("RUCB", rucb), ("default", new)):
            yield f"{name}: {what}, mean", one.duels.mean(), "", None
            yield f"{name}: {what}, 90 % quantile", float(np.quantile(one.duels, 0.9)), "", None
            if one.errors or one.open:
                yield f"{name}: {what}, wrong verdicts of {len(one.duels)}", one.errors, "", None
                yield f"{name}: {what}, studies without a verdict", one.open, "", 0 if what == "default" else None
        yield f"{name}: default / oracle", ratio, "x", 1.25
        yield f"{name}: default / RUCB", saved, "x", None
        dear += saved > 0.5
        errors, studies = errors + new.errors, studies + problem.studies
        worst = max(worst, (name, new.errors / problem.studies), key=lambda one: one[1])
    yield "problems on which the default takes more than half of RUCB's duels", dear, "", 2
    yield f"wrong verdicts of the default, of {studies:,} studies", errors, "", None
    yield "  their chance is at most, at 99 %", bound(errors, studies), "", DELTA
    yield f"  the largest share, on {worst[0]}", worst[1], "", None
    for name in AT_ONCE:
        if name in chosen:
            problem = chosen[name]
            alone = sample(problem, oracle_study(problem), problem.studies).duels.mean()
            for at_once in (10, 100):
                many = sample(problem, new_study(problem, at_once), 60)
                yield f"{name}: default with {at_once} open questions / oracle", many.duels.mean() / alone, "x", None


if __name__ == "__main__":
    report("verdict", rows())
