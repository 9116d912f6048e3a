"""What voters read and may answer can be changed while a study runs; so can what happens after the winner."""

import pytest

from duels.errors import InvalidInput
from duels.storage.storage import Storage
from duels.study import base
from duels.study.create import create_study, load_study
from duels.study.voter_settings import VoterSettings, change_voter_settings, voter_settings


@pytest.fixture
def study(tmp_path):
    return create_study(["a", "b", "c"], "study", f"sqlite:///{tmp_path}/duels.db")


def beat_all(study, winner="a", times=30):
    """One arm wins against all others, which are equally good."""
    for duel in study.ask(times, allow_self=False):
        arms = (duel.left, duel.right)
        study.tell(duel, winner if winner in arms else "tie")


def test_settings_are_stored_and_others_stay(study, tmp_path):
    assert voter_settings(study) == VoterSettings()
    change_voter_settings(study, question="Which one?", comments=True)
    found = change_voter_settings(study, votes=7, instructions="**Look** closely.\nThen answer.")
    assert found == VoterSettings("Which one?", "**Look** closely.\nThen answer.", comments=True, votes=7)
    elsewhere = load_study("study", Storage(f"sqlite:///{tmp_path}/duels.db"))
    assert voter_settings(elsewhere) == found
    assert elsewhere.goal == study.goal  # the other settings of a study are not touched
    assert elsewhere.check() == 1


def test_an_empty_question_is_the_usual_one(study):
    change_voter_settings(study, question="Which one?", instructions="x")
    assert change_voter_settings(study, question="  ", instructions=" ") == VoterSettings()


@pytest.mark.parametrize(
    "wrong",
    [
        {"votes": 0},
        {"votes": "many"},
        {"question": "x" * 201},
        {"question": "two\nlines"},
        {"question": None},
        {"instructions": "x" * 10_001},
        {"instructions": "\ud800"},
        {"instructions": "\x00"},
        {"ties": 1},
        {"color": "red"},
        {"comments": True, "votes": -1},
    ],
)
def test_wrong_settings_change_nothing(study, wrong):
    with pytest.raises(InvalidInput, match="expected"):
        change_voter_settings(study, **wrong)
    assert voter_settings(study) == VoterSettings()


def test_a_study_goes_on_after_its_winner_if_that_is_wanted(study, tmp_path):
    while study.verdict().kind != "winner":
        beat_all(study)
    assert study.goal.is_reached(study.verdict(), study.tally)
    elsewhere = load_study("study", Storage(f"sqlite:///{tmp_path}/duels.db"))
    assert elsewhere.goal.after == "stop"
    study.set_after("rank")
    study.set_after("rank")  # changes nothing
    for one in (study, elsewhere):
        assert one.goal.after == "rank"
        assert not one.goal.is_reached(one.verdict(), one.tally)
    pairs = [{duel.left, duel.right} for duel in study.ask(40, allow_self=False)]
    assert pairs.count({"b", "c"}) > 30  # these two are left to be ranked
    assert [entry.note for entry in study.events() if entry.kind == "goal"] == [{"after": "rank"}]
    assert study.check() == study.events()[-1].seq  # every question is asked again by a replay
    study.set_after("stop")
    assert elsewhere.goal.after == "stop"
    assert study.check() == study.events()[-1].seq


def test_a_snapshot_has_the_goal(study, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "SNAPSHOT_EVERY", 20)
    study.set_after("rank")
    beat_all(study, times=30)
    study._log.storage.close()
    elsewhere = load_study("study", Storage(f"sqlite:///{tmp_path}/duels.db"))
    assert elsewhere._log.history().snapshot_seq > 2
    assert elsewhere.goal.after == "rank"


def test_what_a_study_was_created_with_is_not_a_conflict_later(study, tmp_path):
    study.set_after("rank")
    again = create_study(["a", "b", "c"], "study", study._log.storage, after="stop", load_if_exists=True)
    assert again.goal.after == "rank"


def test_only_two_things_can_happen_after_the_winner(study):
    with pytest.raises(InvalidInput, match="after is 'sing': expected 'stop' or 'rank'"):
        study.set_after("sing")
    assert len(study.events()) == 1
