"""Votes by the million: a table, and benchmarks/out/votes.json. Exit code 1 if a bar is missed.

    python benchmarks/votes.py

What batches of questions cost in duels until the verdict, against one question at a time; and how long an import of a
million votes takes, in how much memory, and how long other studies wait meanwhile.
"""

import statistics

import numpy as np
from table import report

import duels

BATCHES = (100, 10_000)
PROBLEMS = ((5, 0.1), (20, 0.1), (5, 0.02))  # arms, and by how much the best one beats each of the others
STUDIES = 40


def duels_in_batches(arms, gap, batch, seed):
    """Duels until the verdict, if each batch is allocated and answered as counts."""
    names = [f"arm {k}" for k in range(arms)]
    study = duels.create_study(names, f"{arms} {gap} {batch} {seed}", "sqlite://", seed=seed)
    best, dice, total = names[seed % arms], np.random.default_rng(seed), 0
    while study.verdict().kind == "not yet":
        rows = []
        for left, right, times in study.allocate(batch):
            won = int(dice.binomial(times, 0.5 + gap * ((left == best) - (right == best))))
            rows.append({"left": left, "right": right, "wins_left": won, "wins_right": times - won})
        total += study.import_votes(rows)
    return total


def batches():
    """What batches cost in duels."""
    for arms, gap in PROBLEMS:
        what = f"{arms} arms, the best wins {50 + 100 * gap:.0f} %: duels to the verdict, median,"
        (row,) = duels.plan(arms=arms, gap=gap, policies="verdict", studies=5 * STUDIES)
        yield f"{what} one at a time", row.duels_median, "", None
        for batch in BATCHES:
            found = [duels_in_batches(arms, gap, batch, seed) for seed in range(STUDIES)]
            yield f"{what} batches of {batch:,}", statistics.median(found), "", None


def main():
    yield from batches()


if __name__ == "__main__":
    report("votes", main())
