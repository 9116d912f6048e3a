"""Verdicts that were shown, and what is said when a study is open again."""

import duels
from duels.server.app import create_app
from duels.storage.registry import open_storage
from duels.study.given import Given, last_given, note_given


def votes(winner: str, count: int) -> list[dict[str, str]]:
    return [{"left": "a", "right": "b", "winner": winner}] * count


def test_a_study_that_is_open_again_says_so(tmp_path):
    storage = open_storage(f"sqlite:///{tmp_path}/d.db")
    study = duels.create_study(["a", "b"], "back", storage)
    service = create_app(storage).service
    study.import_votes(votes("a", 14))
    shown = service.glance(study)["verdict"]
    assert (shown["kind"], "open again" in shown["words"]) == ("winner", False)
    study.import_votes(votes("b", 5))  # a winner that was certain stays the winner
    shown = service.glance(study)["verdict"]
    assert (shown["kind"], "open again" in shown["words"]) == ("winner", False)
    study.add_arm("c")
    again = service.glance(study)["verdict"]
    assert again["kind"] == "not yet"
    assert "After 14 answers a was the winner. It is open again: answers were taken back, people" in again["words"]
    other = create_app(storage).service  # after a restart too
    assert other.glance(study)["verdict"] == again
    study.import_votes(votes("a", 20) + [{"left": "a", "right": "c", "winner": "a"}] * 14)
    assert service.glance(study)["verdict"]["kind"] == "winner"
    assert last_given(study) == Given("winner", "a", 14)  # the same as before


def test_only_a_different_verdict_is_noted(tmp_path):
    study = duels.create_study(["a", "b"], "notes", f"sqlite:///{tmp_path}/d.db")
    assert last_given(study) is None
    assert note_given(study, Given("winner", "a", 10)) == Given("winner", "a", 10)
    assert note_given(study, Given("winner", "a", 12)) == Given("winner", "a", 10)
    none = note_given(study, Given("no condorcet winner", None, 50)).words()
    assert none.startswith("After 50 answers there was no winner. Answers since then leave it open again, as chance has")
    assert last_given(study) == Given("no condorcet winner", None, 50)
