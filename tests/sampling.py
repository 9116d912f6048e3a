"""Is what a sampling policy chooses from one state distributed as its paper says?"""

from collections import Counter

import numpy as np
from histories import frozen
from scipy import stats

FALSE_ALARM = 1e-6


def wins_of(arms, answers):
    wins = np.zeros((arms, arms))
    for i, j, won in answers:
        if i != j:
            wins[i, j] += won
            wins[j, i] += 1 - won
    return wins


def random_answers(arms, number, seed):
    """Answers of all kinds, ties and self-duels too, about a random problem."""
    rng = np.random.default_rng(seed)
    strength = rng.random(arms)
    answers = []
    for _ in range(number):
        i, j = rng.integers(arms, size=2)
        chance = 0.5 + 0.4 * (strength[i] - strength[j])
        answers.append((int(i), int(j), 0.5 if rng.random() < 0.1 else float(rng.random() < chance)))
    return answers


def chosen_pairs(policy, state, t, draws, seed):
    """How often each pair is chosen at step t, always from the same state."""
    rng = np.random.default_rng(seed)
    before = [field.copy() if isinstance(field, np.ndarray) else field for field in state]
    counts: Counter = Counter()
    for _ in range(draws):
        i, j = policy.module.select(state, policy.params, t, rng)
        counts[int(i), int(j)] += 1
        for field, old in zip(state, before):
            if isinstance(field, np.ndarray):
                field[...] = old
    return counts


def assert_alike(ours, theirs):
    """Two tables of counts come from one distribution: a chi-square test with false alarms once in 10⁶."""
    cells = sorted(ours.keys() | theirs.keys())
    table = np.array([[counts[cell] for cell in cells] for counts in (ours, theirs)], float)
    rare = table.sum(axis=0) < 20
    if rare.any():
        table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
        table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] > 1:
        p = stats.chi2_contingency(table, correction=False).pvalue
        assert p > FALSE_ALARM, dict(zip(cells, zip((ours[c] for c in cells), (theirs[c] for c in cells))))


def assert_distributed(counts, chances):
    """The counts are a sample of these chances, which sum to 1: chi-square, false alarms once in 10⁶."""
    assert set(counts) <= set(chances)
    assert abs(sum(chances.values()) - 1) < 1e-12
    draws = sum(counts.values())
    expected = [draws * chance for chance in chances.values()]
    assert stats.chisquare([counts[cell] for cell in chances], expected).pvalue > FALSE_ALARM, counts


def ladder(arms=6, step=0.08):
    """A total order in which neighbors differ by `step`; the best arm is in the middle of the indices."""
    rank = np.roll(np.arange(arms), arms // 2)
    return frozen(np.clip(0.5 + step * (rank[None, :] - rank[:, None]), 0.02, 0.98))
