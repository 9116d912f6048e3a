"""What tests of verdicts share: tallies by hand and at random, and exact probabilities."""

import json
import math
import re

import numpy as np
import pytest
from hypothesis import strategies as st

from duels.errors import InvalidInput
from duels.study.stats.tally import as_tally
from duels.study.stats.verdict import headline, verdict


def verdict_of(tally, *, strength, **more):
    """The verdict on counts, where answers are independent draws or may depend on who was asked."""
    return verdict(tally._replace(strength=strength), **more)


def refused(message):
    return pytest.raises(InvalidInput, match=re.escape(message))


def table(names, results, ties=None, **more):
    """A tally from {"ab": (duels a won, duels b won)} and {"ab": ties}."""
    wins, tied = np.zeros((2, len(names), len(names)), int)
    for (a, b), (won, lost) in results.items():
        i, j = names.index(a), names.index(b)
        wins[i, j], wins[j, i] = won, lost
    for (a, b), number in (ties or {}).items():
        i, j = names.index(a), names.index(b)
        tied[i, j] = tied[j, i] = number
    return as_tally(list(names), wins, tied, **more)


def empty(arms, started_with=None, **more):
    return as_tally([f"arm {k}" for k in range(arms)], np.zeros((arms, arms)), started_with=started_with, **more)


@st.composite
def tallies(draw, most=60):
    arms = draw(st.integers(2, 5))
    cells = st.lists(st.integers(0, most), min_size=arms * arms, max_size=arms * arms)
    wins, ties = (np.array(draw(cells)).reshape(arms, arms) * (1 - np.eye(arms, dtype=int)) for _ in range(2))
    active = draw(st.lists(st.booleans(), min_size=arms, max_size=arms).filter(any))
    return as_tally([f"arm {k}" for k in range(arms)], wins, ties + ties.T, active, draw(st.integers(1, arms)))


def assert_adds_up(found, tally, test, certain):
    """The fields of a verdict say what its test and the tables show, and agree with each other."""
    place = {name: k for k, name in enumerate(tally.names)}
    active = [name for name in tally.names if tally.active[place[name]]]
    for loser, winner in found.losses:  # what shows it
        assert test.losses[place[winner], place[loser]]
        assert winner in active
    for a, b in zip(found.cycle, found.cycle[1:] + found.cycle[:1]):  # certain in the tables too
        assert (b, a) in found.losses
        assert certain[place[a], place[b]]
    if found.kind == "no condorcet winner":
        assert [loser for loser, _ in found.losses] == active
        assert not found.cycle or len(set(found.cycle)) == len(found.cycle) >= 3
    if found.kind == "not yet" and found.leader:
        (arm,) = {arm for arm, _ in found.open_pairs}
        assert {b for _, b in found.open_pairs} == {
            b for b in active if b != arm and not test.wins[place[arm], place[b]]
        }
        beaten = test.wins.any(axis=0)
        assert not beaten[place[arm]] or all(beaten[place[name]] for name in active)
    if found.kind == "practically tied":
        assert set(found.tied_with) == {
            name for name in active if name != found.leader and not test.wins[place[found.leader], place[name]]
        }
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict()
    assert str(found)
    assert headline(found.as_dict())
    assert headline(found.as_dict(), retired=True)


def ever(chance, tie, bad, duels):
    """The exact probability that within so many duels bad(wins, losses, ties) holds at least once."""
    here, total = np.zeros((duels + 1, duels + 1)), 0.0
    here[0, 0] = 1
    w, l = np.indices(here.shape).astype(float)  # noqa: E741
    for n in range(1, duels + 1):
        after = here * tie
        after[1:] += here[:-1] * chance
        after[:, 1:] += here[:, :-1] * (1 - tie - chance)
        possible = (after > 0) & (w + l <= n)
        hit = np.zeros_like(possible)
        hit[possible] = bad(w[possible], l[possible], n - (w + l)[possible])
        total += after[hit].sum()
        after[hit] = 0
        here = after
    return total


def square(above):
    """A matrix from what stands above its diagonal, row by row."""
    arms = round((1 + math.sqrt(1 + 8 * len(above))) / 2)
    p = np.full((arms, arms), 0.5)
    p[np.triu_indices(arms, 1)] = above
    return np.triu(p) + np.tril(1 - p.T, -1)
