"""How fast ratings are, beside evalica on the same votes: a table, and benchmarks/out/ratings.json.

    OPENBLAS_NUM_THREADS=1 python benchmarks/ratings.py [--votes 100000]

evalica is left out where it is not installed. Seconds are those of the processor, the best of three (one for evalica's
bootstrap), so that other work on the machine matters less. Exit code 1 if a bar is missed.
"""

import argparse
import importlib.util
import time

import numpy as np
from table import report, seconds

import duels

ARMS, ROUNDS = 200, 100


def votes_of(n, seed=0):
    """Indices of left and right arms, and winners: 0 left, 1 right, 2 a tie."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=ARMS)
    left = rng.integers(ARMS, size=n)
    right = (left + 1 + rng.integers(ARMS - 1, size=n)) % ARMS
    won = rng.random(n) < 1 / (1 + np.exp(strength[right] - strength[left]))
    return left, right, np.where(rng.random(n) < 0.1, 2, np.where(won, 0, 1))


def taken(work, times=3):
    return seconds(work, times, time.process_time)


def ours(left, right, winner):
    names, words = [f"arm {k}" for k in range(ARMS)], ("left", "right", "tie")
    votes = duels.read_votes([(names[i], names[j], words[w]) for i, j, w in zip(left, right, winner)])
    yield "ratings with intervals", taken(lambda: duels.ratings(votes)), "s", 0.5
    drawn = taken(lambda: duels.ratings(votes, interval="bootstrap", rounds=ROUNDS))
    yield f"ratings, {ROUNDS} rounds of the bootstrap", drawn, "s", 1.0


def theirs(left, right, winner):
    import evalica

    words = (evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw)
    given = left.tolist(), right.tolist(), [words[w] for w in winner]
    yield "evalica, no intervals", taken(lambda: evalica.bradley_terry(*given)), "s", None
    options = {"n_resamples": ROUNDS, "bootstrap_method": "percentile"}
    drawn = taken(lambda: evalica.bootstrap(evalica.bradley_terry, *given, **options), 1)
    yield f"evalica, {ROUNDS} rounds of the bootstrap", drawn, "s", None


def rows(*votes):
    yield from ours(*votes)
    if importlib.util.find_spec("evalica"):
        yield from theirs(*votes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--votes", type=int, default=100_000)
    report("ratings", rows(*votes_of(parser.parse_args().votes)))
