"""The verdict that is kept up to date answer by answer is the one that is computed from the counts."""

import itertools

import numpy as np
import pytest

from duels.study import create_study, record
from duels.study.tally import Tally
from duels.study.verdict import FollowedVerdict, verdict


def random_answers(kind, seed, arms, duels):
    """Duels of an arm that beats all others, of a cycle, or of anything; a fifth are ties."""
    rng = np.random.default_rng(seed)
    chances = rng.choice([0.02, 0.3, 0.5, 0.7, 0.98], (arms, arms))
    for _ in range(duels):
        i, j = map(int, rng.permutation(arms)[:2])
        if kind == "winner":
            chance = 0.9 if i == 0 else 0.1 if j == 0 else 0.5
        elif kind == "cycle":
            chance = 0.9 if 0 < (j - i) % arms <= arms // 2 else 0.1
        else:
            chance = chances[i, j] if i < j else 1 - chances[j, i]
        yield i, j, 0.5 if rng.random() < 0.2 else float(rng.random() < chance)


@pytest.mark.parametrize("arms", [2, 3, 5, 7])
def test_it_is_the_verdict_of_the_counts(arms):
    kinds = set()
    for seed, kind in enumerate(("winner", "cycle", "any", "any")):
        wins, ties = np.zeros((arms, arms), np.int64), np.zeros((arms, arms), np.int64)

        def tally(wins=wins, ties=ties):
            names = tuple(map(str, range(arms)))
            return Tally(names, wins.copy(), ties.copy(), np.ones(arms, bool), arms, None)

        followed, rng = FollowedVerdict(tally(), 0.8), np.random.default_rng(seed)
        for i, j, outcome in random_answers(kind, seed, arms, 100 * arms):
            if outcome == 0.5:
                ties[i, j] += 1
                ties[j, i] += 1
            else:
                wins[(i, j) if outcome else (j, i)] += 1
            followed.note(i, j)
            if rng.random() < 0.3:
                continue  # several answers between two looks
            found = followed.verdict(wins, ties, None)
            assert found == verdict(tally(), confidence=0.8)
            kinds.add(found.kind)
    assert kinds == {"not yet", "winner", "no condorcet winner"} - ({"no condorcet winner"} if arms == 2 else set())


def test_which_studies_fit():
    ten = Tally(tuple(map(str, range(10))), np.zeros((10, 10)), np.zeros((10, 10)), np.ones(10, bool), 10, None)
    assert FollowedVerdict.fits(ten, "winner", 0.0)
    assert not FollowedVerdict.fits(ten, "all pairs", 0.0)
    assert not FollowedVerdict.fits(ten, "winner", 0.05)
    assert not FollowedVerdict.fits(ten._replace(started_with=9), "winner", 0.0)
    assert not FollowedVerdict.fits(ten._replace(items=5), "winner", 0.0)
    assert not FollowedVerdict.fits(ten._replace(active=np.arange(10) > 0), "winner", 0.0)


@pytest.mark.parametrize("change", ["add", "retire"])
def test_a_study_follows_answers_undo_imports_and_arms(monkeypatch, change):
    monkeypatch.setattr(record, "MANY", 3)
    study = create_study(list("abcd"), storage="sqlite://", policy="random")
    for step in itertools.count():
        duel = study.ask(allow_self=step % 5 == 0)
        study.tell(duel, "tie" if step % 7 == 0 else min(duel.left, duel.right))
        if step == 20:
            study.undo(duel)
        if step == 30:
            study.import_votes([{"left": "b", "right": "a", "winner": "left"}] * 3)
        if step == 60:
            study.add_arm("e") if change == "add" else study.retire_arm("d")
        if step % 3 == 1:
            continue  # several answers between two looks
        tally, void = study.read(lambda _, history: (history.tally, history.void))
        assert study.verdict() == study.goal.verdict(tally, void=void)
        if step > 90:
            break
