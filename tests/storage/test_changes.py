"""Changes are noted in the transaction of the write that makes them."""

import threading

import pytest

import duels
from duels.errors import InvalidInput
from duels.storage.changes import list_changes, note_change
from duels.study.study import Study


@pytest.fixture
def study() -> Study:
    return duels.create_study(["a", "b", "c"], storage="sqlite://")


def changes(study: Study) -> list[tuple[str, str]]:
    with study._log.storage.lock:
        return [(one.who, one.what) for one in list_changes(study._log.storage.connection(), study._log.id)]


def test_a_write_is_noted_once(study: Study) -> None:
    study.retire_arm("b")
    with note_change(study._log.id, "ann", "Retired c."):
        study.add_arm("d")
        study.retire_arm("c")
    study.retire()
    assert changes(study) == [("ann", "Retired c.")]


def test_what_was_refused_is_not_noted(study: Study) -> None:
    with note_change(study._log.id, "ann", "Retired x."), pytest.raises(InvalidInput):
        study.retire_arm("x")
    assert changes(study) == []


def test_threads_do_not_share_notes(study: Study) -> None:
    with note_change(study._log.id, "ann", "Added e."):
        other = threading.Thread(target=study.add_arm, args=("d",))
        other.start()
        other.join()
        assert changes(study) == []
        study.add_arm("e")
    assert changes(study) == [("ann", "Added e.")]


def test_changes_are_listed_in_pages_the_newest_first(study: Study) -> None:
    for name in "def":
        with note_change(study._log.id, "ann", name):
            study.add_arm(name)
    with study._log.storage.lock:
        connection = study._log.storage.connection()
        first = list_changes(connection, study._log.id, limit=2)
        assert [one.what for one in first] == ["f", "e"]
        assert [one.what for one in list_changes(connection, study._log.id, first[-1].id)] == ["d"]
