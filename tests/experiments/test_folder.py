"""The folder of an experiment: whose results it holds, locks, damage, and the sessions that filled it."""

import fcntl
import json

import pytest

import duels
from duels.errors import InvalidInput
from duels.experiments.folder import Folder, folder_matrices
from duels.provenance import machine

PLANNED = {"policies": ["rucb", "savage"], "horizons": [100, 1000], "runs": 2}  # three tasks


def run(out, seed=0, **how):
    return duels.run_experiment("arxiv-6", **PLANNED, seed=seed, out=out, **how)


@pytest.fixture
def whole(tmp_path):
    """The folder of a finished experiment, made of two shards beside it."""
    for shard in ("1/2", "2/2"):
        run(tmp_path / f"part{shard[0]}", shard=shard)
    duels.experiments.merge([tmp_path / "part1", tmp_path / "part2"], tmp_path / "whole")
    return tmp_path / "whole"


def test_a_merge_leaves_the_results_of_another_experiment_alone(whole, tmp_path):
    theirs = run(tmp_path / "other", seed=5)
    before = (tmp_path / "other" / "frame.parquet").read_bytes()
    with pytest.raises(InvalidInput, match="other' was written by another experiment: its seed is 5, expected 0"):
        duels.experiments.merge([whole, tmp_path / "part1"], tmp_path / "other")
    assert (tmp_path / "other" / "frame.parquet").read_bytes() == before
    assert run(tmp_path / "other", seed=5).frame.equals(theirs.frame)
    duels.simulate("arxiv-6", "rucb", horizon=10).save(tmp_path / "simulated")
    with pytest.raises(InvalidInput, match="holds results of something else"):
        duels.experiments.merge([whole], tmp_path / "simulated")


def test_a_finished_folder_is_merged_into_a_whole_one(whole, tmp_path):
    merged = duels.experiments.merge([tmp_path / "part2", whole], tmp_path / "copy")
    assert [matrix.arms for matrix in folder_matrices(tmp_path / "copy").values()] == [6]
    again = run(tmp_path / "copy")
    assert again.frame.equals(merged.frame)
    assert again.provenance == merged.provenance == duels.load_results(whole).provenance


def test_results_that_came_later_are_not_taken_for_the_experiments(tmp_path):
    run(tmp_path / "a")
    duels.simulate("arxiv-6", "rucb", horizon=10).save(tmp_path / "a")
    for again in (lambda: run(tmp_path / "a"), lambda: duels.experiments.merge([tmp_path / "a"], tmp_path / "b")):
        with pytest.raises(InvalidInput, match="a' holds results of something else than its experiment"):
            again()
    run(tmp_path / "c")
    run(None, seed=7).save(tmp_path / "c")
    with pytest.raises(
        InvalidInput, match=r"the table in the folder .*c' was written by another .*seed is 7, expected 0"
    ):
        run(tmp_path / "c")


def test_damaged_results_are_not_given(tmp_path):
    run(tmp_path)
    file = tmp_path / "frame.parquet"
    file.write_bytes(file.read_bytes()[:-40] + bytes(40))
    with pytest.raises(InvalidInput, match=r"frame\.parquet is damaged: .*; remove the folder .* to run it again"):
        run(tmp_path)


def test_any_changed_byte_of_a_part_is_noticed(tmp_path):
    part = run(tmp_path, shard="1/3")
    folder = Folder(tmp_path)
    whole = folder.part(0).read_bytes()
    for place in range(0, len(whole), len(whole) // 40):
        folder.part(0).write_bytes(whole[:place] + bytes([whole[place] ^ 128]) + whole[place + 1 :])
        with pytest.warns(UserWarning, match=r"00000\.parquet is damaged: .*; its task is repeated"):
            assert folder.read_finished(0) is None
    folder.part(0).write_bytes(whole)
    assert folder.read_finished(0).equals(part.frame)
    (tmp_path / "parts" / "00000.parquet.sha256").unlink()  # as a kill between the two files leaves it
    assert folder.read_finished(0) is None
    assert not folder.has(0)


def test_a_part_damaged_while_its_shard_ends_is_not_left_out(tmp_path, monkeypatch):
    keep = Folder.keep

    def badly(folder, number, frame):
        keep(folder, number, frame)
        if number == 2:
            folder.part(number).write_bytes(b"PAR1")

    monkeypatch.setattr(Folder, "keep", badly)
    with pytest.raises(InvalidInput, match=r"00002\.parquet is damaged"):
        run(tmp_path, shard="1/2")


def test_who_keeps_whom_out(tmp_path):
    busy = pytest.raises(InvalidInput, match="another process is running the experiment in")
    run(tmp_path, shard="1/3")
    with Folder(tmp_path).lock("1/2"):
        run(tmp_path, shard="2/3")  # shards work beside each other
        for refused in (
            lambda: run(tmp_path),
            lambda: duels.experiments.merge([tmp_path]),
            lambda: run(tmp_path, shard="1/2"),
        ):
            with busy:
                refused()
    with Folder(tmp_path).lock():
        for refused in (
            lambda: run(tmp_path),
            lambda: run(tmp_path, shard="3/3"),
            lambda: duels.experiments.merge([tmp_path], tmp_path / "out"),
        ):
            with busy:
                refused()
    assert len(run(tmp_path).frame) > 0


def test_a_file_system_without_locks_will_do(tmp_path, monkeypatch):
    def refuse(file, how):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.warns(UserWarning, match=r"\.lock cannot be locked \(Operation not supported\): make sure"):
        assert len(run(tmp_path).frame) > 0


@pytest.mark.parametrize("content", ["[]", "3", "{}", '{"problems": ["a"], "tasks": 3}', '{"problems": {}}'])
def test_another_file_of_that_name(tmp_path, content):
    (tmp_path / "experiment.json").write_text(content)
    for use in (lambda: run(tmp_path), lambda: duels.experiments.merge([tmp_path]), lambda: folder_matrices(tmp_path)):
        with pytest.raises(InvalidInput, match=r"experiment\.json does not describe an experiment"):
            use()


def test_where_else_an_experiment_may_be(tmp_path):
    run(tmp_path / "results")
    with pytest.raises(InvalidInput, match=r"is not an experiment's folder: .*; look in '.*/results'$"):
        folder_matrices(tmp_path)


def test_merged_shards_say_where_and_when_they_ran(whole):
    said = duels.load_results(whole).provenance
    first, second = said["sessions"]
    assert {first["shard"], second["shard"]} == {"1/2", "2/2"}
    assert first["tasks"] + second["tasks"] == said["tasks"] == 3
    assert said["seconds"] == pytest.approx(first["seconds"] + second["seconds"])
    assert said["started"] == min(first["started"], second["started"])
    assert {key: said[key] for key in machine()} == machine()  # once, though there were two sessions
    assert [name.rpartition("/")[2] for name in said["merged"]] == ["part1", "part2"]


def test_sessions_add_up_after_a_kill(tmp_path, monkeypatch):
    keep = Folder.keep

    def interrupted(folder, number, frame):
        if number == 2:
            raise KeyboardInterrupt
        keep(folder, number, frame)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "keep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, jobs=1)
    (record,) = tmp_path.glob("parts/session-*.json")
    before = json.loads(record.read_text())
    record.write_text(
        json.dumps(before | {"started": "2001-01-01T00:00:00+00:00", "seconds": 50, "machine": "a lathe"})
    )
    said = run(tmp_path, jobs=2).provenance
    assert [session["tasks"] for session in said["sessions"]] == [before["tasks"], 3 - before["tasks"]]
    assert 50 < said["seconds"] < 100
    assert said["started"] == "2001-01-01T00:00:00+00:00"
    assert said["machine"] == f"a lathe; {machine()['machine']}"
    assert said["executor"] == "1 thread; 2 threads"
    assert run(tmp_path).provenance == said


def test_a_shard_says_its_own_sessions(tmp_path):
    run(tmp_path, shard="1/2")
    said = run(tmp_path, shard="2/2").provenance
    assert [session["shard"] for session in said["sessions"]] == ["2/2"]


def test_parts_without_sessions_are_merged(tmp_path):
    for shard in ("1/2", "2/2"):
        run(tmp_path, shard=shard)
    for record in tmp_path.glob("parts/session-*.json"):
        record.unlink()
    assert "sessions" not in duels.experiments.merge([tmp_path]).provenance


@pytest.mark.parametrize("content", ["{", "[]", '{"seconds": 3}'])
def test_a_damaged_session_is_left_out_aloud(tmp_path, content):
    run(tmp_path, shard="1/2")
    (record,) = tmp_path.glob("parts/session-*.json")
    record.write_text(content)
    with pytest.warns(UserWarning, match="the provenance leaves that session out"):
        said = run(tmp_path).provenance
    assert len(said["sessions"]) == 1
