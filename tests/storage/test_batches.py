"""Imported votes: kept by columns beside one event, and as good as answers that came one by one."""

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from array import array

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import duels
from duels.errors import InvalidInput, StorageError
from duels.server.child_process import LARGE, MOST_ROWS, read_packed
from duels.storage import storage as registry
from duels.storage.batches import note_of, pack, unpack, unpack_voters
from duels.study.answers.table import AnswerLog
from duels.study.create import create_study, list_studies, load_study
from duels.study.state.counts import next_event
from duels.study.state.live import LiveState
from duels.votes.readers import read_votes

ARMS = ["a", "b", "c", "d"]
TIMES = st.none() | st.datetimes().map(lambda time: time.isoformat())
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "pair": st.permutations(ARMS).map(lambda arms: arms[:2]),
            "winner": st.sampled_from(["left", "right", "tie", "both_bad"]),
            "voter": st.none() | st.sampled_from(["ann", "bob", "Łukasz", "Zoë"]),
            "time": TIMES,
        }
    ).map(lambda row: {"left": row["pair"][0], "right": row["pair"][1]} | row),
    max_size=30,
).map(lambda rows: [{key: row[key] for key in ("left", "right", "winner", "voter", "time")} for row in rows])
SAMPLE = [
    {"left": "a", "right": "b", "winner": "left", "voter": "ann", "time": "2025-01-31T12:00:00Z"},
    {"left": "c", "right": "a", "winner": "right", "voter": "bob", "time": None},
    {"left": "b", "right": "c", "winner": "tie", "voter": "ann", "time": None},
    {"left": "a", "right": "d", "winner": "both_bad", "voter": None, "time": None},
]


def reopened(url, name="study"):
    """The study as another process finds it."""
    for storage in registry._storages.values():
        storage.close()
    registry._storages.clear()
    return load_study(name, url)


@given(ROWS)
def test_packed_votes_are_the_votes(rows):
    votes = read_votes(rows)
    packed = pack(votes)
    numbers = {name: number for number, name in enumerate(ARMS)}
    note = json.loads(json.dumps(note_of(packed, [numbers[name] for name in packed.names])))
    batch = unpack(packed.content, note, "the votes")
    assert [ARMS[arm] for arm in batch.left] == [vote.left for vote in votes]
    assert [ARMS[arm] for arm in batch.right] == [vote.right for vote in votes]
    voters = [None] * len(votes)
    if packed.voters is not None:
        found = unpack_voters(packed.voters)
        voters = [None if number < 0 else found.names[number] for number in found.given]
    assert voters == [vote.voter for vote in votes]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=settings.default.max_examples // 4,
    deadline=None,
)
@given(ROWS.filter(len))
def test_what_was_imported_is_exported(rows):
    votes = read_votes(rows)
    study = create_study(ARMS, "study", "sqlite://")
    assert study.import_votes(votes) == len(votes)
    for vote, exported in zip(votes, study.votes(), strict=True):
        assert exported[:4] == vote[:4]
        assert vote.time in (None, exported.time)
    registry._storages.pop("sqlite://").close()


def test_a_batch_counts_as_its_votes_one_by_one(url):
    """The fold over one import event gives what a fold over an event for each vote gives, the policy's state too."""
    dice = np.random.default_rng(3)
    rows = [
        {"left": ARMS[i], "right": ARMS[j], "winner": ["left", "right", "tie", "both_bad"][dice.integers(4)]}
        for i, j in (dice.permutation(4)[:2] for _ in range(60))
    ]
    study = create_study(ARMS, "study", url, "dts", seed=4)
    duel = study.ask()
    study.import_votes(rows)
    study.tell(duel, "left")
    single = LiveState(study._log.row)
    single.apply(study._log.storage.read_events(study._log.storage.connection(), study._log.id, 0, 2))
    for row in rows:
        arms = {"left_arm": ARMS.index(row["left"]), "right_arm": ARMS.index(row["right"])}
        number = len(single.left)
        single.take(next_event(single, "ask", 1.0, duel=number, attempt=0, swapped=0, **arms))
        single.take(next_event(single, "tell", 1.0, duel=number, attempt=0, answer=row["winner"]))
    single.take(next_event(single, "tell", 2.0, duel=0, attempt=0, answer="left"))
    whole = study._log.history()
    for name in ("left", "right", "swapped", "answer", "attempt", "answered"):
        assert getattr(whole, name) == getattr(single, name)
    assert np.array_equal(whole.wins, single.wins)
    assert np.array_equal(whole.ties, single.ties)
    for one, other in zip(whole.player().state, single.player().state):
        assert np.array_equal(one, other)
    assert whole.question(3.0, True) == single.question(3.0, True)
    assert study.check() == 4


def test_the_log_has_one_event_for_an_import(url):
    study = create_study(ARMS, "study", url)
    assert study.import_votes(SAMPLE) == 4
    assert study.import_votes(SAMPLE[:2]) == 2
    assert study.import_votes([]) == 0
    create, first, second = study.events()
    assert create.kind == "create"
    assert (first.kind, first.duel, first.note["votes"], first.left) == ("import", 0, 4, None)
    assert (second.kind, second.duel, second.note["votes"]) == ("import", 4, 2)
    assert study.duel(5)[:3] == (5, "c", "a")
    assert [info.answers for info in list_studies(url)] == [6]
    assert len(reopened(url).votes()) == 6


def test_imported_votes_are_undone_answered_again_and_forgotten(url):
    study = create_study(ARMS, "study", url)
    study.import_votes(SAMPLE)
    study.undo(0)
    assert [info[3:5] for info in list_studies(url)] == [(3, 1)]
    study.tell(0, "right", voter="cleo")
    assert list(study.votes())[-1][:4] == ("a", "b", "right", "cleo")
    table = AnswerLog().follow(study)
    assert sorted(table.voters[voter] for voter in table.voter if voter >= 0) == ["ann", "bob", "cleo"]
    assert (table.voter < 0).sum() == 1
    assert study.forget("ann") == 1  # her other vote was undone before
    with pytest.raises(InvalidInput, match="has no voter named 'ann'"):
        study.forget("ann")
    assert [info.answers for info in list_studies(url)] == [3]
    assert "2 answers were taken back" in study.verdict().void
    again = reopened(url)
    assert [vote.voter for vote in again.votes()] == ["bob", None, "cleo"]
    with again._log.storage.engine.connect() as connection:
        (content,) = connection.exec_driver_sql("SELECT voters FROM votes").fetchone()
    assert unpack_voters(content).names == ["bob"]
    assert again.check()


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE votes SET content = (SELECT content FROM votes WHERE seq = 3) WHERE seq = 2",
        "DELETE FROM votes WHERE seq = 2",
        "UPDATE events SET note = replace(note, '\"arms\": [0, 1', '\"arms\": [1, 0') WHERE seq = 2",
    ],
)
def test_tampering_with_imported_votes_is_caught(url, tmp_path, tampering):
    study = create_study(ARMS, "study", url)
    study.import_votes(SAMPLE)
    study.import_votes(SAMPLE[::-1])
    with sqlite3.connect(tmp_path / "duels.db") as database:
        assert database.execute(tampering).rowcount == 1
    with pytest.raises(StorageError, match="event 2 of study 'study'"):
        reopened(url).tally()


def test_an_import_killed_at_the_last_moment_leaves_nothing_behind(url, tmp_path):
    """Killed after everything was written, before the commit."""
    create_study(ARMS, "study", url)
    registry._storages[url].close()
    program = f"""
        import os, signal
        from duels.study import arm_log, create

        def killed(*given, store=arm_log.store):
            store(*given)
            os.kill(os.getpid(), signal.SIGKILL)

        arm_log.store = killed
        create.load_study("study", {url!r}).import_votes([("a", "b", "left")] * 100_000)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=os.environ, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    registry._storages.clear()
    study = load_study("study", url)
    assert [entry.kind for entry in study.events()] == ["create"]
    assert len(study.votes()) == 0
    with sqlite3.connect(tmp_path / "duels.db") as database:
        assert database.execute("SELECT count(*) FROM votes").fetchone() == (0,)
    study.import_votes(SAMPLE)
    assert study.check() == 2


def test_a_study_with_imported_votes_is_deleted(url):
    study = create_study(ARMS, "study", url)
    study.import_votes(SAMPLE)
    duels.study.delete_study("study", url)
    with study._log.storage.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM votes").scalar() == 0


def test_large_files_are_read_by_a_child_process():
    lines = ["left,right,winner,voter"] + [f"a,b,left,rater {k % 7}" for k in range(20_000)]
    content = "\n".join(lines).encode()
    assert len(content) > LARGE
    assert read_packed(content).packed == pack(read_votes(content))
    with pytest.raises(InvalidInput) as child:
        read_packed(content + b"\na,a,left,x")
    with pytest.raises(InvalidInput) as here:
        read_votes(content + b"\na,a,left,x")
    assert str(child.value) == str(here.value)


def parquet(frame):
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


VOTE = pl.DataFrame({"left": ["a"], "right": ["b"], "winner": ["left"]})


def test_a_small_parquet_file_with_many_rows_is_refused():
    """A few kilobytes, since all rows are equal."""
    content = parquet(VOTE.select(pl.all().repeat_by(MOST_ROWS + 1).explode()))
    assert len(content) < 100_000
    with pytest.raises(InvalidInput, match=r"the votes have 2,000,001 rows: expected at most 2,000,000"):
        read_packed(content)


def test_a_parquet_file_is_read_by_a_child_process():
    counts = VOTE.with_columns(count=pl.lit(10**9))
    assert read_packed(parquet(counts)).packed == pack(read_votes(counts))
    with pytest.raises(InvalidInput, match="cannot be read as Parquet"):
        read_packed(b"PAR1" + bytes(range(256)) + b"PAR1")


@pytest.mark.deep
@pytest.mark.parametrize("size", [4 * 10**7, 4 * 10**8])
def test_a_small_parquet_file_with_long_names_is_refused(size):
    content = parquet(VOTE.with_columns(left=pl.Series(["x" * size])))
    assert len(content) < 100_000
    with pytest.raises(InvalidInput, match=r"characters: send fewer|GiB of memory"):
        read_packed(content)


def test_a_snapshot_has_imported_votes(url, monkeypatch):
    from duels.study import base

    monkeypatch.setattr(base, "SNAPSHOT_EVERY", 2)
    study = create_study(ARMS, "study", url)
    study.import_votes(SAMPLE)
    before = study.tally()
    again = reopened(url)
    assert again._log.history().snapshot_seq == 2
    assert np.array_equal(again.tally().wins, before.wins)
    assert np.array_equal(again.tally().ties, before.ties)
    assert again._log.history().answered == array("q", range(4))
    assert again.check() == 2


def test_a_child_process_takes_no_code_from_the_folder_one_is_in(tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text("raise SystemExit('a stranger')")
    monkeypatch.chdir(tmp_path)
    lines = ["left,right,winner"] + ["first,second,left"] * 20_000
    assert read_packed("\n".join(lines).encode()).packed.size == 20_000


def test_an_imported_voter_can_always_be_forgotten(url):
    study = create_study(ARMS, "study", url)
    study.import_votes([SAMPLE[0] | {"voter": "Voter" + " " * 190 + "7"}])
    (vote,) = study.votes()
    assert vote.voter == "Voter 7 (imported)"
    assert study.forget(vote.voter) == 1
