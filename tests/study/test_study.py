"""Live studies: ask and tell, replay, delays, ties, undo, arms that come and go."""

import html
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import duels
from duels.engine import loop
from duels.errors import Conflict, InvalidInput, PolicyError, StorageError, UnknownName
from duels.policies import BUILT_IN
from duels.server.results_tab import glance
from duels.storage.batches import read_stored
from duels.storage.storage import Storage
from duels.study import base as live
from duels.study.create import create_study, delete_study, list_studies, load_study
from duels.study.items import add_items
from duels.study.state.counts import COLUMNS
from duels.study.state.live import LiveState
from duels.study.stats.leaderboard import format_share
from duels.study.study import Study

POLICIES = ["rucb", "rucb:variant=icml", "savage", "btm:gamma=1", "interleaved_filter", "random", "verdict"]


def reopened(url, name="study"):
    """The study as another process finds it."""
    return load_study(name, Storage(url))


@pytest.mark.parametrize("policy", POLICIES)
def test_answers_one_by_one_go_through_the_states_of_simulate(url, policy):
    """With the world's luck of run 0, asking and telling is run 0 of `simulate`, duel for duel."""
    matrix = duels.load_problem("bradley-terry:arms=5,spread=0.8")
    steps = 400
    study = create_study(matrix.names, "study", url, policy, horizon=steps)
    luck = loop.streams(0, 0)[1]
    counts = np.zeros((5, 5))
    for _ in range(steps):
        duel = study.ask()
        history = study._log.history()
        swapped = history.swapped[duel.id]
        first, second = (matrix.index(arm) for arm in ((duel.right, duel.left) if swapped else (duel.left, duel.right)))
        counts[first, second] += 1
        if first == second and not policy.startswith("btm"):  # Beat the Mean's self-duels are drawn
            study.tell(duel, "tie")
        else:
            first_won = luck.random() < matrix.array[first, second]
            study.tell(duel, "left" if first_won != swapped else "right")
    simulated = duels.simulate(matrix, policy, horizon=steps, checkpoints=[], record="pairs")
    played = {(row["first"], row["second"]): row["duels"] for row in simulated.pairs.iter_rows(named=True)}
    both = counts + counts.T - np.diag(np.diag(counts))
    assert {pair: both[pair] for pair in played} == played
    assert study.best_arm == matrix.names[simulated.frame["recommended"][0]]


def answer_all(study, count, arms="abc", voter=None, **asked):
    """Earlier letters win."""
    for _ in range(count):
        duel = study.ask(**asked)
        study.tell(duel, "tie" if duel.is_self else min(duel.left, duel.right), voter=voter)


def test_the_log_replayed_gives_the_same_state_and_the_same_next_question(url, now):
    study = create_study(list("abcd"), "study", url)
    answer_all(study, 50)
    study.ask(3)
    study.tell(51, "tie")
    study.undo(7)
    study.retire_arm("d")
    study.add_arm("e")
    answer_all(study, 20)
    again = reopened(url)
    assert again.leaderboard() == study.leaderboard()
    assert np.array_equal(again.tally().wins, study.tally().wins)
    assert again.events() == study.events()
    state, replayed = study._log.history().player(), again._log.history().player()
    assert state.t == replayed.t
    for one, other in zip(state.state, replayed.state):
        assert np.array_equal(one, other)
    assert again.check() == len(study.events())
    mine, theirs = study.ask(), reopened(url)._log.history()
    assert (mine.left, mine.right) == (theirs.names[theirs.left[mine.id]], theirs.names[theirs.right[mine.id]])


def test_the_next_question_is_that_of_an_untouched_replay(url, now, tmp_path):
    study = create_study(list("abcd"), "study", url)
    answer_all(study, 30)
    with sqlite3.connect(tmp_path / "duels.db") as source, sqlite3.connect(tmp_path / "copy.db") as target:
        source.backup(target)
    duel = study.ask()
    other = load_study("study", Storage(f"sqlite:///{tmp_path}/copy.db")).ask()
    assert (duel.id, duel.left, duel.right) == (other.id, other.left, other.right)


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE events SET answer = 'right' WHERE kind = 'tell' AND answer = 'left' AND seq < 20",
        "UPDATE events SET answer = 'tie' WHERE seq = (SELECT max(seq) FROM events)",
        "UPDATE events SET left_arm = right_arm, right_arm = left_arm WHERE seq = 10",
        "UPDATE events SET time = time + 1 WHERE seq = 12",
        "UPDATE events SET note = replace(note, 'a', 'z') WHERE seq = 1",
        "DELETE FROM events WHERE seq = 15",
        "DELETE FROM events WHERE seq = 1",
    ],
)
def test_a_log_that_was_tampered_with_is_caught(url, tmp_path, tampering):
    study = create_study(list("abc"), "study", url)
    answer_all(study, 20)
    with sqlite3.connect(tmp_path / "duels.db") as database:
        assert database.execute(tampering).rowcount > 0
    with pytest.raises(StorageError, match="tampered with"):
        reopened(url).verdict()


def test_an_answer_cut_off_the_end_shows_as_an_open_duel(url, tmp_path):
    """What a shorter log cannot show is that it was longer; every part of it still fits."""
    study = create_study(list("abc"), "study", url)
    answer_all(study, 5)
    with sqlite3.connect(tmp_path / "duels.db") as database:
        database.execute("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)")
    assert len(reopened(url).open_duels()) == 1


def test_a_question_the_policy_would_not_ask_is_found(url, tmp_path):
    """A forger who mends the digests is caught by replaying the questions."""
    from duels.study.state.counts import chain_digest

    study = create_study(list("abcdef"), "study", url)
    answer_all(study, 30)
    with sqlite3.connect(tmp_path / "duels.db") as database:
        database.execute(
            "UPDATE events SET answer = CASE answer WHEN 'left' THEN 'right' ELSE 'left' END WHERE seq < 30 "
            "AND kind = 'tell'"
        )
        digest = ""
        rows = database.execute(
            "SELECT seq, kind, duel, attempt, left_arm, right_arm, swapped, answer, voter, time, note,"
            " digest FROM events ORDER BY seq"
        ).fetchall()
        for row in rows:
            digest = chain_digest(digest, row)
            database.execute("UPDATE events SET digest = ? WHERE seq = ?", (digest, row[0]))
    forged = reopened(url)
    forged.verdict()
    with pytest.raises(StorageError, match="asks what policy verdict would not"):
        forged.check()


def test_telling_twice_is_harmless_and_telling_otherwise_is_not(url, now):
    study = create_study(list("abc"), "study", url)
    duel = study.ask()
    study.tell(duel, "left")
    study.tell(duel.id, duel.left)
    assert [entry.kind for entry in study.events()] == ["create", "ask", "tell"]
    with pytest.raises(Conflict, match=r"duel 0 was answered 'left' already, not 'tie': undo that first"):
        study.tell(duel, "tie")
    study.undo(duel)
    assert study.open_duels() == [duel]
    study.tell(duel, "tie")
    study.undo(duel)
    study.tell(duel, "tie")
    kinds = ["create", "ask", "tell", "undo", "tell", "undo", "tell"]
    assert [(entry.kind, entry.duel) for entry in study.events()] == [
        (kinds[0], None),
        *((kind, 0) for kind in kinds[1:]),
    ]
    assert study.tally().ties.sum() == 2
    assert study.tally().wins.sum() == 0


@pytest.mark.parametrize("said", ["Left", "RIGHT", "Tie", "Both_Bad", "SKIP"])
def test_answers_are_taken_in_any_case(url, said):
    study = create_study(list("abc"), "study", url)
    study.tell(study.ask(), said)
    assert [entry.answer for entry in study.events() if entry.kind == "tell"] == [said.lower()]


def test_the_name_of_an_arm_goes_before_an_answer_in_another_case(url):
    """An arm on the right called Left: its name is the right side, and LEFT is nobody's name."""
    study = create_study(["Left", "owl"], "study", url)
    duel = next(duel for duel in iter(lambda: study.ask(allow_self=False), None) if duel.right == "Left")
    study.tell(duel, "Left")
    study.undo(duel)
    study.tell(duel, "LEFT")
    assert [entry.answer for entry in study.events() if entry.kind == "tell"] == ["right", "left"]


def test_both_bad_counts_as_a_tie_and_is_kept_as_said(url):
    study = create_study(list("abc"), "study", url)
    study.tell(study.ask(), "both_bad", voter="ann")
    study.tell(study.ask(), "skip")
    tally = study.tally()
    assert (tally.ties.sum(), tally.wins.sum()) == (2, 0)
    assert [entry.answer for entry in study.events() if entry.kind == "tell"] == ["both_bad", "skip"]
    assert study.open_duels() == []
    assert study._log.history().player().t == 2  # the skip was no step
    with pytest.raises(Conflict, match="answered 'skip' already"):
        study.tell(1, "left")


@pytest.mark.parametrize(("policy", "most"), [("rucb", 5), ("verdict", 7)])
def test_many_questions_at_once_spread_out(url, policy, most):
    study = create_study([f"m{k}" for k in range(12)], "study", url, policy)
    duels = study.ask(100, allow_self=False)
    pairs = [frozenset((duel.left, duel.right)) for duel in duels]
    assert all(len(pair) == 2 for pair in pairs)
    assert len(set(pairs)) >= 50  # of 66
    assert max(pairs.count(pair) for pair in pairs) <= most


PATIENT = """
from typing import NamedTuple

import numpy as np


class Params(NamedTuple):
    pass


class State(NamedTuple):
    open: np.ndarray


def init(arms, horizon, params):
    return State(np.zeros((arms, arms)))


def select(state, params, t, rng):
    return 0, 1 + int(state.open.sum())


def update(state, params, t, i, j, outcome):
    pass


def wait(state, params, i, j):
    state.open[i, j] += 1


def recommend(state, rng):
    return 0
"""


def test_a_policy_is_told_of_open_duels_only(url, tmp_path):
    (tmp_path / "patient.py").write_text(PATIENT)
    study = create_study(list("abcdef"), "study", url, str(tmp_path / "patient.py"))
    met = [{duel.left, duel.right} - {"a"} for duel in [*study.ask(3), study.ask()]]
    assert met == [{"b"}, {"c"}, {"d"}, {"e"}]
    study.tell(0, "left")
    study.tell(2, "tie")
    duel = study.ask()
    assert {duel.left, duel.right} == {"a", "d"}
    study.check()


def test_sides_are_shuffled_fairly(url):
    """Of 600 duels the policy's first arm is left in half: false alarm of 5 standard deviations 6e-7."""
    study = create_study(list("abc"), "study", url)
    study.ask(600)
    swapped = study._log.history().swapped
    assert abs(sum(swapped) - 300) < 5 * np.sqrt(150)


def test_a_lease_ends_and_a_late_answer_is_kept_and_does_not_count(url, now):
    study = create_study(list("abcdefgh"), "study", url, lease=60)
    first = study.ask()
    now[0] += 59
    assert study.ask() != (1, first.left, first.right, *first[3:])
    with_lease = study._log.history().question(now[0], True)
    now[0] += 1000
    without = study._log.history().question(now[0], True)
    history = study._log.history()
    empty = reopened(url)._log.history()
    empty.open.clear()
    assert without == empty.question(now[0], True)  # as if nothing were open
    assert (with_lease, history.open) != (without, {})
    study.tell(first, "left")
    study.tell(first, "left")  # again: it is known
    assert [entry.answer for entry in study.events() if entry.kind == "tell"] == ["left"]
    assert (study.tally().wins.sum(), study.verdict().duels, len(study.votes())) == (0, 0, 0)
    with pytest.raises(Conflict, match="duel 0 was answered 'left' already"):
        study.tell(first, "right")
    study.undo(first)  # which begins its lease again
    now[0] += 59
    study.tell(first, "right")
    assert study.tally().wins.sum() == 1
    assert study.check()


def test_no_arm_meets_itself_where_people_vote(url):
    study = create_study(list("abc"), "study", url)
    answer_all(study, 300)
    assert study.ask().is_self  # the policy is content
    duel = study.ask(allow_self=False)
    assert "a" in (duel.left, duel.right)
    assert duel.left != duel.right
    # The rival is the arm with the largest u = w/n + √(α ln t / n) against the champion.
    tally, t = study.tally(), study._log.history().player().t + 1
    met = tally.wins + tally.wins.T
    upper = {
        arm: tally.wins[k, 0] / met[k, 0] + np.sqrt(0.51 * np.log(t) / met[k, 0]) for k, arm in ((1, "b"), (2, "c"))
    }
    assert {duel.left, duel.right} == {"a", max(upper, key=upper.get)}
    assert study.check()


def test_voters_are_forgotten(url, tmp_path):
    study = create_study(list("abc"), "study", url)
    answer_all(study, 5, voter="ann")
    answer_all(study, 5, voter="bob")
    assert study.verdict().void is None
    wins = study.tally().wins.sum()
    assert study.forget("ann") == 5
    assert study.tally().wins.sum() == wins - 5
    assert "5 answers were taken back" in study.verdict().void
    assert {entry.voter for entry in study.events()} == {None, "bob"}
    assert (
        b"ann"
        not in sqlite3.connect(tmp_path / "duels.db")
        .execute("SELECT group_concat(voter) FROM events")
        .fetchone()[0]
        .encode()
    )
    assert reopened(url).tally().wins.sum() == wins - 5
    assert study.check()
    with pytest.raises(InvalidInput, match="has no voter named 'ann'"):
        study.forget("ann")


def test_what_was_forgotten_stays_closed(url):
    study = create_study(list("abc"), "study", url)
    duel = study.ask()
    study.tell(duel, "left", voter="ann")
    study.forget("ann")
    with pytest.raises(Conflict, match="duel 0 was closed when its answer was withdrawn"):
        study.tell(duel, "left")
    with pytest.raises(InvalidInput, match="duel 0 has no answer to undo"):
        study.undo(duel)
    assert study.open_duels() == []


def test_duels_of_another_study_are_refused(url):
    one, two = create_study(list("ab"), "one", url), create_study(list("xy"), "two", url)
    one.ask()
    duel = two.ask()
    for action in (lambda: one.tell(duel, "left"), lambda: one.undo(duel)):
        with pytest.raises(InvalidInput, match="the duel belongs to study 'two': expected one of study 'one'"):
            action()
    assert len(one.events()) == 2


def test_looking_makes_no_database(tmp_path):
    nowhere = f"sqlite:///{tmp_path}/nowhere.db"
    assert list_studies(nowhere) == []
    for look in (load_study, delete_study):
        with pytest.raises(StorageError, match=r"there is no database .*nowhere\.db', so no study 'x'"):
            look("x", nowhere)
    assert list(tmp_path.iterdir()) == []


def test_undoing_voids_the_promise(url):
    study = create_study(list("abc"), "study", url)
    study.tell(study.ask(), "left")
    study.undo(0)
    assert "1 answer was taken back" in study.verdict().void
    assert study.tally().wins.sum() == 0
    with pytest.raises(InvalidInput, match="duel 0 has no answer to undo"):
        study.undo(0)


def test_a_self_duel_taken_back_leaves_the_promise(url):
    """It is not in the tally, so nothing that the verdict knows was dropped."""
    study = create_study(list("abc"), "study", url)
    answer_all(study, 200)
    duel = next(duel for duel in (study.ask() for _ in range(50)) if duel.left == duel.right)
    study.tell(duel, "tie")
    study.undo(duel)
    assert study.verdict().void is None


def test_arms_come_and_go(url):
    study = create_study(list("bcd"), "study", url)
    answer_all(study, 200)
    assert study.best_arm == "b"
    study.add_arm("a")
    answer_all(study, 400)
    assert study.best_arm == "a"
    study.retire_arm("a")
    assert study.arms == ["b", "c", "d"]
    for duel in study.ask(30):
        assert "a" not in (duel.left, duel.right)
    assert study.best_arm == "b"
    assert reopened(url).best_arm == "b"
    assert study.check()
    with pytest.raises(Conflict, match="arm 'a' was retired: choose another name"):
        study.add_arm("a")
    with pytest.raises(Conflict, match="arm 'b' exists already"):
        study.add_arm("b")
    with pytest.raises(Conflict, match="was retired already"):
        study.retire_arm("a")
    study.retire_arm("c")
    with pytest.raises(InvalidInput, match="a study needs two active arms"):
        study.retire_arm("b")


def test_a_policy_of_ones_own_works_live(url, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text((Path(__file__).parents[2] / "examples" / "my_policy.py").read_text())
    study = create_study(list("abc"), "study", url, str(mine))
    answer_all(study, 60)
    assert study.best_arm == "a"
    assert reopened(url).check() == 121
    mine.unlink()
    left = reopened(url)  # what needs no policy can still be had
    assert left.verdict().kind == study.verdict().kind
    assert len(left.votes()) == len(study.votes())
    left.tell(study.ask(), "left")
    for needing in (left.ask, lambda: left.best_arm, left.check):
        with pytest.raises(InvalidInput, match=r"mine\.py' does not exist"):
            needing()
    kept = tmp_path / "elsewhere" / "mine.py"
    kept.parent.mkdir()
    kept.write_text((Path(__file__).parents[2] / "examples" / "my_policy.py").read_text())
    assert load_study("study", Storage(url), str(kept)).check() == 123


def test_a_policy_that_chooses_no_arm_is_named(url, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("from duels.policies.random import *\n\n\ndef select(state, params, t, rng):\n    return -1, 0\n")
    study = create_study(list("abc"), "study", url, str(mine))
    with pytest.raises(PolicyError, match="policy mine chose arms -1 and 0 of 3"):
        study.ask()
    assert len(study.events()) == 1


def test_a_policy_that_fails_is_named_and_spoils_nothing(url, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from duels.policies.random import *\nfrom duels.policies import random\n\n\n"
        "def select(state, params, t, rng):\n    return 1 // (t < 3), 0\n\n\n"
        "def recommend(state, rng):\n    return 1 // 0\n\n\n"
        "def bounds(state, params, t):\n    return state.wins, state.wins\n"
    )
    study = create_study(list("abc"), "study", url, str(mine))
    study.tell(study.ask(), "b")
    duel = study.ask()
    with pytest.raises(PolicyError, match="policy mine failed: ZeroDivisionError"):
        study.ask()
    with pytest.raises(PolicyError, match="policy mine failed: ZeroDivisionError"):
        assert study.best_arm
    study.tell(duel, "b")
    study.import_votes([{"left": "b", "right": "a", "winner": "left"}])
    assert study.tally().wins[1, 0] == 3
    assert glance(study)["answers"] == 3


def test_a_policy_that_cannot_be_compiled_goes_on_without(url, tmp_path, monkeypatch):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from duels.policies.random import *\nfrom duels.policies import random\n\n\n"
        "def select(state, params, t, rng):\n    return eval('0'), 1\n"
    )
    monkeypatch.setattr("duels.study.state.policy_state.INTERPRETED", {True: 0.0, False: 0.0})
    study = create_study(list("abc"), "study", url, str(mine))
    for _ in range(5):
        study.tell(study.ask(), "a")
    assert study.check() == 11


def test_policies_that_need_a_horizon_say_so(url):
    with pytest.raises(InvalidInput, match="policy savage needs a horizon"):
        create_study(list("abc"), "study", url, "savage")
    assert list_studies(url) == []
    assert create_study(list("abc"), "study", url, "savage", horizon=100).policy == "savage"


def test_studies_are_listed_loaded_and_deleted(url):
    create_study(list("abc"), "one", url)
    two = create_study(list("ab"), "two", url, "random")
    two.tell(two.ask(), "left")
    two.ask()
    two.add_arm("c")
    infos = list_studies(url)
    assert [(info.name, info.policy, info.arms, info.answers, info.open) for info in infos] == [
        ("one", "verdict", 3, 0, 0),
        ("two", "random", 3, 1, 1),
    ]
    delete_study("one", url)
    assert [info.name for info in list_studies(url)] == ["two"]
    with pytest.raises(UnknownName, match=r"unknown study 'tow'\. Did you mean 'two'"):
        load_study("tow", url)
    with pytest.raises(UnknownName, match="unknown study 'one'"):
        delete_study("one", url)


def test_answers_are_counted_without_skips_and_what_was_taken_back(url):
    study = create_study(list("abc"), "study", url)
    answer_all(study, 6, voter="ann")
    study.tell(study.ask(), "skip")
    study.undo(6)
    study.tell(6, "left", voter="bob")
    study.undo(6)
    study.undo(0)
    study.ask()
    assert [(info.answers, info.open) for info in list_studies(url)] == [(5, 3)]
    study.forget("ann")
    assert [(info.answers, info.open) for info in list_studies(url)] == [(0, 3)]
    assert len(study.open_duels()) == 3
    assert study.votes().winner.size == 0


def test_a_relative_file_is_that_of_the_present_folder(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        create_study(list("abc"), name, "sqlite:///duels.db")
        assert [info.name for info in list_studies("sqlite:///duels.db")] == [name]
        assert (tmp_path / name / "duels.db").exists()


def test_a_study_deleted_elsewhere_is_missed(url):
    study = create_study(list("abc"), "study", url)
    delete_study("study", Storage(url))
    with pytest.raises(StorageError, match="deleted"):
        study.ask()
    fresh = create_study(list("xyz"), "study", url)
    assert fresh.ask().left in "xyz"
    with pytest.raises(StorageError, match="deleted"):
        study.verdict()


def test_a_study_that_exists(url):
    create_study(list("abc"), "study", url)
    with pytest.raises(Conflict, match="there is a study 'study' already"):
        create_study(list("abc"), "study", url)
    assert create_study(list("abc"), "study", url, load_if_exists=True).arms == ["a", "b", "c"]
    with pytest.raises(Conflict, match="exists with other arms"):
        create_study(list("abd"), "study", url, load_if_exists=True)
    with pytest.raises(Conflict, match="exists with the policy verdict"):
        create_study(list("abc"), "study", url, "random", load_if_exists=True)


def test_a_study_that_exists_keeps_its_goal(url):
    goal = {"confidence": 0.9, "margin": 0.05, "after": "rank", "about": "these-answers"}
    study = create_study(list("abc"), "study", url, **goal)
    add_items(study, [{"prompt": str(k), "outputs": dict.fromkeys("abc", "text")} for k in range(5)])
    given = [{}, {"policy": "verdict"}, goal, goal | {"policy": "verdict"}]
    for more in given + [{name: value} for name, value in goal.items()]:
        found = create_study(list("abc"), "study", url, load_if_exists=True, **more)
        assert {name: getattr(found.goal, name) for name in goal} == goal
        assert found.policy == "verdict:confidence=0.9,margin=0.05"
        found.ask()
    for more, said in [
        ({"confidence": 0.95}, "exists with confidence 0.9, not 0.95: leave confidence out, or choose another name"),
        ({"after": "stop"}, "exists with after rank, not stop"),
        ({"about": "new-items"}, "exists with about these-answers, not new-items: leave about out"),
        ({"policy": "rucb"}, "exists with the policy verdict:confidence=0.9,margin=0.05"),
    ]:
        with pytest.raises(Conflict, match=said):
            create_study(list("abc"), "study", url, load_if_exists=True, **more)
    with pytest.raises(InvalidInput, match="after is 'go'"):
        create_study(list("abc"), "other", url, after="go")
    found = create_study(list("abc"), "study", url, load_if_exists=True, margin=0.1)  # may be chosen at any time
    assert {name: getattr(found.goal, name) for name in goal} == goal | {"margin": 0.1}
    assert found.policy == "verdict:confidence=0.9,margin=0.05"
    assert create_study(list("abc"), "study", url, load_if_exists=True).goal.margin == 0.1
    assert found.check()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"arms": ["a"]}, "1 arm was given: expected at least two"),
        ({"arms": ["a", "a"]}, "two arms are called 'a'"),
        ({"arms": ["a", ""]}, "no usable name"),
        ({"arms": ["a", "left"]}, "cannot be called 'left': that is an answer"),
        ({"arms": "abc"}, "arms is 'abc': expected a list of names"),
        ({"arms": 3}, "arms is 3: expected a list of names"),
        ({"arms": ["a", "a "]}, "arm 'a ' has blanks around its name"),
        ({"study_name": ""}, "study_name is ''"),
        ({"study_name": "a/b"}, "study_name is 'a/b'"),
        ({"policy": "rucd"}, "unknown policy 'rucd'. Did you mean 'rucb'?"),
        ({"policy": "rucb:alpha=-1"}, "alpha of rucb is -1"),
        ({"policy": "rucb:beta=1"}, "unknown parameter of rucb 'beta'"),
        ({"lease": 0}, "lease is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"horizon": 0}, "horizon is 0"),
        ({"storage": "duels.db"}, "expected a URL such as sqlite:///duels.db"),
        ({"storage": "mysql://x/y"}, "expected"),
        ({"storage": "sqlite://d.db"}, "expected three slashes and a file, such as sqlite:///duels.db"),
        ({"storage": "sqlite:///d.db?mode=ro"}, "expected three slashes and a file"),
        ({"storage": "postgresql://h:notaport/x"}, "expected a URL such as sqlite:///duels.db"),
    ],
)
def test_bad_studies_are_refused(url, arguments, said):
    with pytest.raises(InvalidInput) as caught:
        create_study(**{"arms": ["a", "b"], "study_name": "study", "storage": url} | arguments)
    assert said in str(caught.value)
    assert list_studies(url) == []


def test_bad_answers_are_refused_and_change_nothing(url):
    study = create_study(list("abc"), "study", url)
    duel = study.ask()
    third = next(arm for arm in "abc" if arm not in (duel.left, duel.right))
    for number, winner, said in (
        (duel, third, f"winner is {third!r}: duel 0 is {duel.left!r} against {duel.right!r}"),
        (duel, "nobody", "winner is 'nobody'"),
        (7, "left", "has no duel 7: expected one that was asked (0 to 0)"),
        (-1, "left", "has no duel -1"),
        ("x", "left", "duel is 'x'"),
        (True, "left", "duel is True"),
    ):
        with pytest.raises(InvalidInput) as caught:
            study.tell(number, winner)
        assert said in str(caught.value)
    for wrong in (0, 10_001, 1.5, "many"):
        with pytest.raises(InvalidInput, match="n is"):
            study.ask(wrong)
    with pytest.raises(InvalidInput, match="voter is ''"):
        study.ask(voter="")
    with pytest.raises(UnknownName, match="unknown arm 'z'"):
        study.retire_arm("z")
    assert [entry.kind for entry in study.events()] == ["create", "ask"]


def test_votes_are_taken_in_and_given_out(url, tmp_path):
    study = create_study(list("abc"), "study", url)
    rows = [
        {"model_a": "a", "model_b": "b", "winner": "model_a", "judge": "ann", "tstamp": 1_700_000_000},
        {"model_a": "b", "model_b": "c", "winner": "tie", "judge": "bob", "tstamp": 1_700_000_001},
        {"model_a": "c", "model_b": "a", "winner": "both_bad", "judge": "ann", "tstamp": 1_700_000_002},
    ]
    assert study.import_votes(rows) == 3
    tally = study.tally()
    assert (tally.wins[0, 1], tally.wins.sum(), tally.ties.sum()) == (1, 1, 4)
    assert study.ask().id == 3
    given = study.votes()
    assert [vote.winner for vote in given] == ["left", "tie", "both_bad"]
    assert [vote.voter for vote in given] == ["ann", "bob", "ann"]
    assert next(vote.time[:19] for vote in given) == "2023-11-14T22:13:20"
    before = study.events()
    with pytest.raises(InvalidInput, match="arms that study 'study' does not have: z"):
        study.import_votes([{"model_a": "a", "model_b": "z", "winner": "model_a"}])
    assert study.events() == before
    study.forget("ann")
    assert study.tally().wins.sum() == 0


def wait_for_snapshot(study):
    """Wait until the background task that stores a snapshot has ended."""
    study._log.storage._background.submit(lambda: None).result(60)


def test_a_snapshot_gives_what_the_log_gives(url, monkeypatch):
    study = create_study(list("abcd"), "study", url)
    monkeypatch.setattr(live, "SNAPSHOT_EVERY", 50)
    answer_all(study, 60)
    study.undo(3)
    answer_all(study, 60)
    wait_for_snapshot(study)
    study.ask(3)
    quick = reopened(url)._log.history()
    assert quick.snapshot_seq > 150
    with study._log.storage.engine.connect() as connection:
        connection.exec_driver_sql("DELETE FROM snapshots")
    full = reopened(url)._log.history()
    assert full.snapshot_seq == 0
    for name in ("seq", "digest", "names", "active", *COLUMNS):
        assert getattr(quick, name) == getattr(full, name), name
    assert list(quick.open) == list(full.open)
    assert np.array_equal(quick.wins, full.wins)
    assert quick.withdrawn == full.withdrawn == 1
    now = live.clock()
    assert quick.question(now, True) == full.question(now, True)


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE events SET answer = 'right' WHERE kind = 'tell' AND answer = 'left' AND seq < 50",
        "DELETE FROM events WHERE seq = 15",
        "DELETE FROM events WHERE seq > 30",
        "UPDATE events SET digest = '0123456789abcdef' WHERE seq = (SELECT seq FROM snapshots)",
    ],
)
def test_tampering_with_what_a_snapshot_covers_is_caught(url, tmp_path, monkeypatch, tampering):
    """When the log is read: by `check` and on export; what was cut off is missed at once."""
    monkeypatch.setattr(live, "SNAPSHOT_EVERY", 50)
    study = create_study(list("abc"), "study", url)
    answer_all(study, 40)
    wait_for_snapshot(study)
    with sqlite3.connect(tmp_path / "duels.db") as database:
        assert database.execute("SELECT seq FROM snapshots").fetchone()[0] >= 50
        assert database.execute(tampering).rowcount > 0
    for reading in (Study.votes, Study.check):
        with pytest.raises(StorageError, match="tampered with"):
            reading(reopened(url))
    if "seq > 30" in tampering or "SET digest" in tampering:  # the snapshot is not of this log
        with pytest.raises(StorageError, match="gone: it was tampered with"):
            reopened(url).verdict()


def test_a_damaged_snapshot_is_done_without(url, tmp_path, monkeypatch):
    monkeypatch.setattr(live, "SNAPSHOT_EVERY", 50)
    study = create_study(list("abc"), "study", url)
    answer_all(study, 40)
    wait_for_snapshot(study)
    for content in (b"", b"nonsense", b"PK\x03\x04" + bytes(100)):
        with sqlite3.connect(tmp_path / "duels.db") as database:
            database.execute("UPDATE snapshots SET content = ?", (content,))
        assert reopened(url).verdict() == study.verdict()
        assert reopened(url)._log.history().snapshot_seq == 0


def test_compiled_and_interpreted_studies_agree(url, tmp_path, monkeypatch):
    from duels.study.state import policy_state as player

    asked = []
    for name, patience in (("slow", 1e9), ("fast", -1.0)):
        monkeypatch.setattr(player, "INTERPRETED", {True: patience, False: patience})
        study = create_study(list("abcde"), name, url, "rucb")
        answer_all(study, 80)
        asked.append([(entry.left, entry.right, entry.answer) for entry in study.events()[1:]])
        assert study._log.history().player().compiled == (name == "fast")
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    "policy",
    [one if one in ("rucb", "savage") else pytest.param(one, marks=pytest.mark.deep) for one in POLICIES],
)
def test_a_compiled_player_goes_through_the_interpreted_one_s_states(policy):
    """With eliminations, and with arrays that a policy makes in any order."""
    from duels.study.state.policy_state import PolicyState

    matrix, none = duels.load_problem("linear:arms=4"), np.zeros(0, np.int64)
    for seed in range(1, 7):
        plain, fast = (PolicyState(duels.policies.load_policy(policy), 4, 300, seed) for _ in range(2))
        fast.compile()
        luck = np.random.default_rng(seed)
        for _ in range(300):
            pair = plain.look_ahead(none, none)
            assert fast.look_ahead(none, none) == pair
            won = float(luck.random() < matrix.array[pair])
            for player in (plain, fast):
                player.enter(np.array(pair[:1]), np.array(pair[1:]), np.array([won]))
        for one, other in zip(plain.state, fast.state):
            assert np.array_equal(one, other)


def test_names_of_any_language_are_kept(url):
    arms = ["größe", "模型", "emoji 🦆", "'; DROP TABLE events; --", "<script>"]
    study = create_study(arms, "студия", url)
    duel = study.ask()
    study.tell(duel, duel.left, voter="Łukasz")
    assert reopened(url, "студия").arms == arms
    assert json.dumps([entry._asdict() for entry in study.events()])


def test_a_question_that_fails_midway_leaves_no_trace(url, monkeypatch):
    study = create_study(list("abc"), "study", url)
    answer_all(study, 3)
    question = LiveState.question

    def failing(self, *given):
        if len(self.left) == 6:
            raise InvalidInput("enough")
        return question(self, *given)

    monkeypatch.setattr(LiveState, "question", failing)
    with pytest.raises(InvalidInput, match="enough"):
        study.ask(10)
    monkeypatch.undo()
    assert len(study.events()) == 7
    assert study.ask().id == 3
    assert study.check() == 8


def test_questions_one_after_another_are_those_of_a_fresh_look(url, now):
    """The scratch copy that is carried from question to question gives what one made anew gives."""
    study = create_study(list("abcdef"), "study", url, lease=100)
    dice = np.random.default_rng(5)
    for _ in range(150):
        now[0] += dice.exponential(5)
        fresh = reopened(url)._log.history().question(now[0], True)
        duel = study.ask()
        history = study._log.history()
        assert fresh == (history.left[duel.id], history.right[duel.id], history.swapped[duel.id])
        waiting = list(history.open)
        if dice.random() < 0.4:
            study.tell(int(dice.choice(waiting)), ["left", "right", "tie", "skip"][dice.integers(4)])
    assert study.check()


def test_an_answer_taken_back_blindly_leaves_the_promise(url):
    study = duels.create_study(["a", "b", "c"], "blind", url)
    first, second = study.ask(2)
    study.tell(first, "left")
    study.tell(second, "right")
    study.undo(first, blind=True)
    assert study.verdict().void is None
    assert [duel.id for duel in study.open_duels()] == [first.id]
    study.tell(first, "tie")
    study.undo(second)
    assert study.verdict().void == "1 answer was taken back"
    assert study.check() == 8


def test_a_retired_study_asks_nothing_until_it_is_resumed(url):
    study = duels.create_study(["a", "b"], "retired", url)
    duel = study.ask()
    study.retire()
    study.retire()  # once is enough
    assert study.retired
    with pytest.raises(Conflict, match="was retired"):
        study.ask()
    study.tell(duel, "tie")  # late, and taken
    assert reopened(url, "retired").retired
    study.resume()
    study.ask()
    assert [event.kind for event in study.events()] == ["create", "ask", "retire", "tell", "resume", "ask"]
    assert study.check() == 6


@pytest.mark.parametrize("seed", range(6))
def test_questions_are_those_of_a_fresh_look_whatever_the_clock_does(url, now, seed):
    """Clocks of several hosts differ and are put back; leases end, and seem to run again."""
    chance = np.random.default_rng(seed)
    create_study(list("abcd"), "study", url, lease=600.0)
    hosts = [reopened(url), reopened(url)]
    for _ in range(60):
        now[0] += float(chance.choice([0, 1, 250, 700, -10, -200, -700]))
        study = hosts[chance.integers(2)]
        answered = [duel for duel, answer in enumerate(study._log.history().answer) if answer != -1]
        if chance.random() < 0.6:
            study.ask(int(chance.integers(1, 4)), allow_self=bool(chance.random() < 0.3))
        elif chance.random() < 0.2 and answered:
            study.undo(int(chance.choice(answered)))
        elif study.open_duels():
            # a wins, so that the policy comes to want a against itself
            duel = study.open_duels()[chance.integers(len(study.open_duels()))]
            study.tell(duel, "a" if "a" in (duel.left, duel.right) else "left")
    storage = hosts[0]._log.storage
    rows = storage.read_events(storage.connection(), hosts[0]._log.id, 0)
    for k, row in enumerate(rows):
        if row[1] == "ask":
            fresh = LiveState(hosts[0]._log.row, duels.policies.load_policy("verdict"))
            fresh.apply(rows[:k])
            assert fresh.question(row[9], not row[10]) == row[4:7]
    assert hosts[1].check() == len(rows)


def test_rivals_asked_for_at_once_are_those_of_a_fresh_look(url, now, tmp_path):
    """Where the champion would meet itself, the counts that choose its rival are carried from question to question."""
    mine = tmp_path / "mine.py"
    mine.write_text("from duels.policies.random import *\n\n\ndef select(state, params, t, rng):\n    return 0, 0\n")
    study = create_study(list("abcde"), "study", url, str(mine))
    study.import_votes([{"left": "a", "right": arm, "winner": "left"} for arm in "bcde" for _ in range(3)])
    study.ask(40, allow_self=False)
    connection = study._log.storage.connection()
    rows = study._log.storage.read_events(connection, study._log.id, 0)
    starts = [k for k, row in enumerate(rows) if row[1] == "ask"]
    rivals = []
    for k in starts:
        fresh = LiveState(study._log.row)
        fresh.apply(rows[:k], lambda seq: read_stored(connection, study._log.id, seq)[0])
        assert fresh.question(rows[k][9], False) == rows[k][4:7]
        rivals.append(max(rows[k][4:6]))
    assert len(rivals) == 40
    assert set(rivals) == {1, 2, 3, 4}  # each more open duel makes another one more interesting


def test_abandoned_duels_are_not_looked_at_again(url, now):
    study = create_study(list("abc"), "study", url)
    study.ask(500)
    now[0] += 3601
    study.ask()
    assert len(study._log.history().fresh) == 1
    assert len(study.open_duels()) == 501
    now[0] -= 300  # a clock put back: they count again
    study.ask()
    assert len(study._log.history().fresh) == 502


def test_a_policy_that_may_never_end_says_so_once(url):
    for name in ("scb", "versatile_db", "merge_rucb", "merge_dts"):
        said = f"study '{name}' may never end with the policy {name}: it may stop asking what a verdict needs"
        with pytest.warns(UserWarning, match=said) as caught:
            create_study(list("abc"), name, url, name)
        assert [one.filename for one in caught] == [__file__]
        create_study(list("abc"), name, url, name, load_if_exists=True)  # a warning would be an error
        create_study(list("abc"), f"{name} on items", url, name, about="these-answers")


LIVE = ("verdict", "rucb", "savage", "interleaved_filter", "merge_rucb", "self_sparring")  # of every kind one


@pytest.mark.parametrize(
    "policy",
    [
        *LIVE,
        *(pytest.param(name, marks=pytest.mark.deep) for name in BUILT_IN if name not in (*LIVE, "doubling")),
        "doubling:policy=savage",
    ],
)
@pytest.mark.filterwarnings("ignore:study 'study' may never end")
def test_every_policy_works_live(url, policy):
    """With answers that come late and in any order, ties, skips, what is taken back, arms that come and go."""
    study = create_study(list("abcd"), "study", url, policy, horizon=1000)
    chance = np.random.default_rng(3)
    for step in range(40):
        study.ask(2, allow_self=bool(step % 2))
        duel = study.open_duels()[chance.integers(len(study.open_duels()))]
        study.tell(duel, ["left", "right", "tie", "both_bad", "skip"][chance.integers(5)])
        if step == 15:
            study.add_arm("e")
        elif step == 20:
            study.retire_arm("b")
        elif step == 25:
            study.undo(duel)
    assert study.best_arm in set("acde")
    again = reopened(url)
    assert again.check() == len(again.events())
    assert [again.ask()[:3] for _ in range(3)] == [reopened(url).duel(number)[:3] for number in range(80, 83)]


def test_words_for_the_winner_are_those_of_past_votes(url):
    study = create_study(["a", "x", "y"], "study", url)
    study.retire_arm("a")
    said = {"model_a": "left", "B": "right", "First": "left", "second": "right", "draw": "tie", "neither": "both_bad"}
    for word, answer in said.items():
        study.tell(study.ask(allow_self=False), word)
        assert study.events()[-1].answer == answer
    with pytest.raises(InvalidInput, match="expected one of these, left, right"):  # an arm, but not of this duel
        study.tell(study.ask(allow_self=False), "a")


def test_questions_of_other_code_are_not_compared(url, tmp_path):
    """A policy of one's own that has changed since the study began: the log is checked, its questions are not."""
    mine = tmp_path / "mine.py"
    text = "from duels.policies.random import *\n\n\ndef select(state, params, t, rng):\n    return 0, 1\n"
    mine.write_text(text)
    study = create_study(list("abc"), "study", url, str(mine))
    answer_all(study, 3)
    assert study.check() == 7
    mine.write_text(text.replace("0, 1", "1, 2"))
    with pytest.warns(UserWarning, match="asked by another version of policy"):
        assert reopened(url).check() == 7


def test_notebooks_show_a_study_and_its_verdict_escaped(url):
    study = create_study(["<b>", "&", "c"], "x <script>", url)
    assert "0 answers" in study._repr_html_()
    assert "<table" not in study._repr_html_()
    study.tell(study.ask(allow_self=False), "left")
    shown = study._repr_html_() + study.verdict()._repr_html_()
    assert "x &lt;script&gt;" in shown
    assert "<td style='text-align: left'>&lt;b&gt;</td>" in shown
    assert "3 arms · 1 answer<" in shown
    assert "<th>arm</th><th>wins of comparisons</th><th>rating</th>" in shown
    rows = study.leaderboard()
    assert sorted(row.answers for row in rows) == [0, 1, 1]
    for row in rows:
        rating = f"{row.rating:,.0f}" if row.answers else "–"
        assert f"{html.escape(row.arm)}</td><td>{format_share(row)}</td><td>{rating}</td>" in shown
    assert "<p>ranked by Bradley–Terry rating</p>" in shown
    assert not any(raw in shown for raw in ("<script>", "<b>", ">&<"))


def test_lists_count_what_the_fold_counts(url):
    """Skips, undone answers, forgotten voters and imports: `list_studies` says what the history says."""
    study = create_study(list("abc"), "study", url)
    for winner, voter in (("left", "ann"), ("skip", "ann"), ("right", "bob"), ("tie", None), ("left", "eve")):
        study.tell(study.ask(), winner, voter=voter)
    study.undo(3)
    study.forget("bob")
    study.import_votes([("a", "b", "left"), ("b", "c", "tie")])
    study.undo(5)
    study.add_arm("d")
    study.retire_arm("a")
    (info,) = list_studies(url)
    history = study._log.history()
    assert (info.arms, info.answers, info.open) == (3, 3, 2)
    assert (info.answers, info.open) == (len(history.answered), len(history.open))
    assert glance(study)["answers"] == 3
    answers = history.answers
    assert answers.include(np.arange(7), 0).tolist() == [True, False, False, False, True, False, True]
    assert [history.counts(duel, 0) for duel in range(7)] == answers.include(np.arange(7), 0).tolist()
    assert history.counts(1, 0, skips=True)
