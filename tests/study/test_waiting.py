"""What is slow for one study keeps nobody else waiting."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from duels.files import pack_arrays
from duels.policies import load_policy
from duels.server import child_process
from duels.storage import storage as registry
from duels.storage.storage import NotReady
from duels.study import base
from duels.study.answering import write_answer
from duels.study.create import create_study, load_study
from duels.study.state.live import FEW, LiveState
from duels.study.state.policy_state import PolicyState

SOON = 20  # seconds; what waits for the slow study would wait for ever


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as pool:
        yield pool


class Slow:
    """Stands in for something slow: says when it has begun, and ends when it may."""

    def __init__(self, function):
        self.function, self.begun, self.may_end = function, threading.Event(), threading.Event()

    def __call__(self, *given, **named):
        self.begun.set()
        assert self.may_end.wait(60)
        return self.function(*given, **named)


def past(count):
    return [("a", "b", "left"), ("b", "c", "right")] * (count // 2)


def others_go_on(other, threads):
    """Ask, tell and look at another study of the same storage, as another thread would."""

    def work():
        duel = other.ask()
        other.tell(duel, duel.left)
        return other.verdict()

    assert threads.submit(work).result(SOON)


def slowly(threads, slow, work, other):
    """Do the work while something in it is slow, and others meanwhile."""
    asked = threads.submit(work)
    assert slow.begun.wait(SOON)
    try:
        others_go_on(other, threads)
        assert not asked.done()
    finally:
        slow.may_end.set()
    return asked.result(SOON)


def test_compiling_keeps_nobody_waiting(url, threads, monkeypatch):
    monkeypatch.setattr("duels.study.state.policy_state.INTERPRETED", {True: -1.0, False: -1.0})
    study, other = create_study(list("abc"), "study", url), create_study(list("abc"), "other", url)
    other.ask()  # compiled from here on
    slow = Slow(PolicyState.compile)
    monkeypatch.setattr(PolicyState, "compile", lambda self: slow(self))
    assert slowly(threads, slow, study.ask, other).id == 0
    assert study._log.history().player().compiled


def test_taking_in_many_answers_keeps_nobody_waiting(url, threads, monkeypatch):
    study, other = create_study(list("abc"), "study", url), create_study(list("abc"), "other", url)
    slow = Slow(PolicyState.catch_up)
    monkeypatch.setattr(PolicyState, "catch_up", lambda self, *given: slow(self, *given))
    study.import_votes(past(FEW + 2))
    assert slowly(threads, slow, study.ask, other).id == FEW + 2
    monkeypatch.undo()
    assert study.check()


def test_a_snapshot_is_read_while_others_go_on(url, threads, monkeypatch):
    monkeypatch.setattr(base, "SNAPSHOT_EVERY", 2)
    create_study(list("abc"), "study", url).import_votes(past(10))
    create_study(list("abc"), "other", url)
    registry._storages.pop(url).close()
    slow = Slow(LiveState.restore)
    monkeypatch.setattr(LiveState, "restore", lambda self, content: slow(self, content))
    study, other = load_study("study", url), load_study("other", url)
    assert slowly(threads, slow, study.ask, other).id == 10


def test_a_snapshot_is_written_while_others_go_on(url, threads, monkeypatch):
    study, other = create_study(list("abc"), "study", url), create_study(list("abc"), "other", url)
    monkeypatch.setattr(base, "SNAPSHOT_EVERY", 2)
    slow = Slow(pack_arrays)
    packed = past(10)
    study.import_votes(packed[:2])
    study._log.storage._background.submit(lambda: None).result(60)
    monkeypatch.setattr("duels.study.state.live.pack_arrays", slow)
    study._log.storage.write(base.Write(lambda connection: study._log.storage.after_commit(study._log._save)))
    assert slow.begun.wait(SOON)
    try:
        others_go_on(other, threads)
    finally:
        slow.may_end.set()


def test_a_long_log_is_loaded_in_pages(url, monkeypatch):
    study, other = create_study(list("abc"), "study", url), create_study(list("abc"), "other", url)
    for _ in range(20):
        study.tell(study.ask(), "left")
    other.ask()
    expected = study.tally().wins.tolist()
    registry._storages.pop(url).close()
    study, other, turns = load_study("study", url), load_study("other", url), []
    monkeypatch.setattr(base, "PAGE", 5)

    def between():
        assert not study._log.storage.lock._is_owned()
        turns.append(other.ask())

    monkeypatch.setattr(NotReady, "prepare", lambda slow: between())
    assert study.tally().wins.tolist() == expected
    assert len(turns) == 8  # 41 events in pages of five
    assert study.check() == 41


@pytest.mark.parametrize("meanwhile", ["nothing", "answer", "undo", "add_arm", "retire_arm"])
def test_what_happens_while_the_policy_takes_in_answers_is_not_lost(url, meanwhile):
    study = create_study(list("abcd"), "study", url, "dts")
    duel = study.ask()
    study.import_votes(past(FEW + 10))
    history = study._log.history()
    work = history.lend()
    assert len(work.first) == FEW + 10
    assert history.lend() is None
    if meanwhile == "answer":
        study.tell(duel, "right")
    elif meanwhile == "undo":
        study.undo(3)
    elif meanwhile == "add_arm":
        study.add_arm("e")
    elif meanwhile == "retire_arm":
        study.retire_arm("d")
    work.player.catch_up(work.first, work.second, work.outcomes)
    history.take_back(work, True)
    asked = study.ask()
    assert study.check()
    fresh = LiveState(study._log.row, load_policy("dts"))
    rows = study._log.storage.read_events(study._log.storage.connection(), study._log.id, 0)[:-1]
    from duels.storage.batches import read_stored

    fresh.apply(rows, lambda seq: read_stored(study._log.storage.connection(), study._log.id, seq)[0])
    fresh.catch_up()
    last = study._log.history()
    place = (last.left[asked.id], last.right[asked.id], last.swapped[asked.id])
    assert fresh.question(last.asked[asked.id], True) == place


def test_a_policy_that_fails_while_it_takes_in_answers_is_named_and_answers_are_taken(url, tmp_path):
    from duels.errors import PolicyError

    mine = tmp_path / "mine.py"
    mine.write_text(
        "from duels.policies.random import *\n\n\ndef select(state, params, t, rng):\n"
        "    if t > 100:\n        raise ValueError('enough')\n    return 0, 1\n"
    )
    study = create_study(list("abc"), "study", url, str(mine))
    duel = study.ask()
    study.import_votes(past(FEW + 2))
    for _ in range(2):
        with pytest.raises(PolicyError, match="enough"):
            study.ask()
    study.tell(duel, "left")
    assert len(study.votes()) == FEW + 3


def test_studies_leave_memory_and_come_back(url):
    storage = registry.open_storage(url)
    studies = [create_study([f"arm {k}" for k in range(50)], f"study {n}", url) for n in range(4)]
    for study in studies:
        for _ in range(3):
            study.tell(study.ask(), "left")
    assert list(storage.histories) == [study._log.id for study in studies]
    storage.histories.memory = 2 * studies[0]._log.history().size + 1000
    before = [study.tally() for study in studies]
    fifth = create_study(["a", "b"], "fifth", url)
    fifth.ask()
    assert len(storage.histories) <= 3
    assert fifth._log.id in storage.histories
    for study, tally in zip(studies, before):
        assert np.array_equal(study.tally().wins, tally.wins)
        assert study.ask().id == 3
        assert study.check() == 8
    assert sum(history.size for history in storage.histories.values()) <= storage.histories.memory


def test_a_study_that_is_busy_stays_in_memory(url):
    storage = registry.open_storage(url)
    busy = create_study(list("abc"), "busy", url)
    busy.import_votes(past(FEW + 2))
    work = busy._log.history().lend()
    storage.histories.memory = 0
    other = create_study(list("abc"), "other", url)
    other.ask()
    assert set(storage.histories) == {busy._log.id, other._log.id}
    busy._log.history().take_back(work, False)
    create_study(list("abc"), "third", url).ask()
    assert busy._log.id not in storage.histories
    assert busy.ask().id == FEW + 2


def test_a_server_compiles_before_it_asks_about_many_arms(url):
    storage, compiled = registry.open_storage(url), []
    storage.compile = compiled.append
    study = create_study([f"arm {k}" for k in range(33)], "study", url)
    assert compiled == []
    study.ask()
    assert [str(one) for one in compiled] == ["verdict"]
    assert study._log.history().player().compiled
    small = create_study(list("abc"), "small", url)
    small.ask()
    assert not small._log.history().player().compiled
    assert len(compiled) == 1


def test_a_study_that_a_commit_needs_stays_in_memory(url):
    """Answers to two studies share a commit, and both do not fit into memory."""
    storage = registry.open_storage(url)
    storage.histories.memory = 0
    studies = [create_study(list("abc"), name, url) for name in ("one", "two")]
    asked = [study.ask() for study in studies]
    tell_one, tell_two = (
        study._log.make_write(partial(write_answer, log=study._log, duel=duel.id, winner="left"))
        for study, duel in zip(studies, asked)
    )
    ask_one = studies[0]._log.make_write(studies[0]._log.ask, last=True)

    def operation(connection):
        values = [write.operation(connection) for write in (tell_one, tell_two, ask_one)]
        assert set(storage.histories) == {study._log.id for study in studies}
        return values

    storage.write(base.Write(operation))
    assert [study.check() for study in studies] == [4, 3]


def test_a_snapshot_of_a_database_that_was_replaced_meanwhile_is_not_used(url, monkeypatch):
    monkeypatch.setattr(base, "SNAPSHOT_EVERY", 2)
    create_study(list("abc"), "study", url).import_votes(past(10))
    registry._storages.pop(url).close()
    study, restore, seen = load_study("study", url), LiveState.restore, []

    def replaced(self, content):
        restore(self, content)
        seen.append(self)
        if len(seen) == 1:
            study._log.storage.generation += 1

    monkeypatch.setattr(LiveState, "restore", replaced)
    assert study.tally().wins.sum() == 10
    assert len(seen) == 2
    assert study._log.history() is seen[1]


def test_a_snapshot_is_kept_only_of_events_that_are_there(url, monkeypatch):
    study = create_study(list("abc"), "study", url)
    study.tell(study.ask(), "left")
    snapshot = LiveState.snapshot

    def cut_off_meanwhile(self):
        written = snapshot(self)
        with study._log.storage.engine.connect() as connection:
            connection.exec_driver_sql("DELETE FROM events WHERE seq = 3")
        return written

    monkeypatch.setattr(LiveState, "snapshot", cut_off_meanwhile)
    study._log._save()
    with study._log.storage.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM snapshots").scalar() == 0


def test_large_imports_are_loaded_one_at_a_time_and_get_a_snapshot(url, monkeypatch):
    study = create_study(list("abc"), "study", url)
    for _ in range(3):
        study.import_votes(past(20))
    registry._storages.pop(url).close()
    study, pauses = load_study("study", url), []
    monkeypatch.setattr(base, "VOTES", 10)
    monkeypatch.setattr(NotReady, "prepare", lambda slow: pauses.append(slow.study))
    assert study.tally().wins.sum() == 60
    assert len(pauses) == 2
    monkeypatch.undo()
    monkeypatch.setattr(base, "SNAPSHOT_EVERY", 70)
    study.import_votes(past(20))  # 80 votes and 5 events
    study._log.storage._background.submit(lambda: None).result(60)
    registry._storages.pop(url).close()
    assert load_study("study", url)._log.history().snapshot_seq == 5


@pytest.mark.parametrize(("switch", "compiles"), [("", True), ("0", True), ("1", False)])
def test_where_numba_is_turned_off_nothing_waits_for_it(monkeypatch, switch, compiles):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", switch)
    monkeypatch.setattr(child_process, "_compiled", set())
    tasks = []
    monkeypatch.setattr(child_process.POLICIES, "run", lambda *task: tasks.append(task))
    child_process.compile_policy(load_policy("rucb"))
    assert tasks == ([(child_process.fill_cache, "rucb")] if compiles else [])
    player = PolicyState(load_policy("rucb"), 300, None, 0)
    assert player.wants_compiling(at_once=True) == compiles
    assert player.look_ahead(np.zeros(0, np.int64), np.zeros(0, np.int64))
