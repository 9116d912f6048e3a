"""The settings of a study over HTTP: what voters see of them, and who changed what."""

import pytest

from duels.server.keys import make_key
from duels.study.create import create_study
from duels.study.items import add_items

from .test_voting import Visitor, browser, patient, refused  # noqa: F401

AT = "/api/studies/zoo"
USUAL = {
    **{"question": "Which is better?", "instructions": "", "ties": True, "both_bad": True, "comments": False},
    **{"votes": 25, "after": "stop", "margin": 0.0, "about": "these-items"},
}


@pytest.fixture
def zoo(storage, patient):  # noqa: F811
    study = create_study(["ape", "bat", "cat"], "zoo", storage)
    add_items(study, [{"prompt": "Say something.", "outputs": {"ape": "uh", "bat": "iii", "cat": "meow"}}])
    return study


@pytest.fixture
def ann(zoo, storage, browser):  # noqa: F811
    key, secret = make_key(storage, "vote", "", study_id=zoo._log.id, settings={"votes": None})
    return Visitor(browser(), secret, key)


def whats(admin):
    return [one["what"] for one in admin.get(f"{AT}/changes").json()["changes"]]


def test_settings_are_read_and_changed(zoo, admin):
    assert admin.get(f"{AT}/settings").json() == USUAL
    changed = admin.patch(f"{AT}/settings", json={"ties": False, "votes": 3, "after": "rank"}).json()
    assert changed == USUAL | {"ties": False, "votes": 3, "after": "rank"} == admin.get(f"{AT}/settings").json()
    assert whats(admin) == [
        "When the winner is known, the study will go on and rank the others.",
        "Voters can no longer answer that both are equally good. Votes each: now 3.",
    ]
    admin.patch(f"{AT}/settings", json={"ties": False})  # as it is
    assert len(whats(admin)) == 2


def test_wrong_settings_change_nothing(zoo, admin):
    for wrong in ({"votes": 0}, {"votes": "x"}, {"question": "x" * 201}, {"question": "a\nb"}, {"after": "sing"}):
        sent = admin.patch(f"{AT}/settings", json={"comments": True, **wrong})
        assert sent.status_code in (400, 422), sent.text
    assert admin.get(f"{AT}/settings").json() == USUAL
    assert whats(admin) == []


def test_voters_get_the_settings_with_each_question(ann, admin):
    before = ann.ask()
    assert (before["goal"], before["question"], before["ties"]) == (25, "Which is better?", True)
    admin.patch(
        f"{AT}/settings", json={"question": "Who speaks best?", "ties": False, "votes": 4, "instructions": "Hi"}
    )
    after = ann.progress()
    assert (after["goal"], after["question"], after["ties"]) == (4, "Who speaks best?", False)
    assert after["page"] != before["page"]


def test_answers_that_were_ruled_out_are_refused(zoo, ann, admin):
    duel = ann.ask()["duel"]
    admin.patch(f"{AT}/settings", json={"ties": False, "both_bad": False})
    refused(ann.send("tell", duel=duel, winner="tie"), 409, "conflict", "'tie' is not possible here any more")
    refused(ann.send("tell", duel=duel, winner="both_bad"), 409, "conflict", "'both bad' is not possible")
    assert zoo._log.history().total == 0
    assert ann.ask()["duel"] == duel  # the same question
    ann.tell(duel, "a")
    zoo.tell(zoo.ask(), "tie")  # programs may still say so


def test_comments_are_kept_with_the_answer(zoo, ann, admin):
    duel = ann.ask()["duel"]
    refused(ann.send("tell", duel=duel, winner="a", comment="because"), 409, "conflict", "comments are not possible")
    admin.patch(f"{AT}/settings", json={"comments": True})
    refused(ann.send("tell", duel=duel, winner="a", comment="x" * 1001), 422, "invalid")
    refused(ann.send("tell", duel=duel, winner="a", comment="\x00"), 400, "invalid", "comment")
    assert zoo._log.history().total == 0
    assert ann.send("tell", duel=duel, winner="a", comment="  <b>louder</b> ").is_success
    assert [entry.note for entry in zoo.events() if entry.kind == "tell"] == [{"note": "<b>louder</b>"}]
    ann.send("tell", duel=ann.ask()["duel"], winner="b", comment=" ")
    assert zoo.events()[-1].note == {}
    assert zoo.check() == len(zoo.events())


def test_a_link_may_have_a_goal_of_its_own(zoo, ann, admin, storage, browser):  # noqa: F811
    _, secret = make_key(storage, "vote", "", study_id=zoo._log.id, settings={"votes": 2})
    ben = Visitor(browser(), secret)
    admin.patch(f"{AT}/settings", json={"votes": 4})
    assert (ann.progress()["goal"], ben.progress()["goal"]) == (4, 2)


def test_instructions_are_markdown_that_cannot_act(zoo, ann, admin):
    words = "**Look** [here](javascript:alert(1)) <script>alert(1)</script> <img src=x onerror=alert(1)>"
    admin.patch(f"{AT}/settings", json={"instructions": words, "question": "<i>Who?</i>"})
    page = ann.client.get(f"/vote/{ann.link}").text
    assert "<strong>Look</strong>" in page
    for bad in ("<script>alert", 'href="javascript', "<img src=x", "<i>Who"):
        assert bad not in page
    assert "&lt;i&gt;Who?&lt;/i&gt;" in page


def test_who_changed_what_is_noted(zoo, admin, storage):
    admin.post(f"{AT}/arms", json={"name": "dog"})
    admin.post(f"{AT}/arms", json={"name": "dog"})  # refused
    admin.post(f"{AT}/arms/bat/retire")
    admin.post(f"{AT}/retire")
    admin.post(f"{AT}/resume")
    admin.post(f"{AT}/import", content="left,right,winner\nape,cat,left\n")
    admin.post(f"{AT}/undo", json={"duel": 0})
    found = admin.get(f"{AT}/changes", params={"limit": 4}).json()
    assert [one["what"] for one in found["changes"]] == [
        "Took back the answer to duel 0.",
        "Imported past votes.",
        "Resumed the study.",
        "Retired the study.",
    ]
    assert {one["who"] for one in found["changes"]} == {"test"}
    older = admin.get(f"{AT}/changes", params={"before": found["next"]}).json()
    assert [one["what"] for one in older["changes"]] == ["Retired the arm “bat”.", "Added the arm “dog”."]
    assert older["next"] is None


def test_the_one_who_created_a_study_is_noted(admin):
    admin.post("/api/studies", json={"name": "new", "arms": ["a", "b"]})
    admin.post("/api/studies", json={"name": "new", "arms": ["a", "b"], "load_if_exists": True})
    found = admin.get("/api/studies/new/changes").json()["changes"]
    assert [(one["who"], one["what"]) for one in found] == [("test", "Created the study with 2 arms.")]


def test_the_margin_may_change_at_any_time_and_what_it_is_about_until_the_first_question(admin, zoo):
    changed = admin.patch(f"{AT}/settings", json={"margin": 0.05, "about": "new-items"})
    assert (changed.json()["margin"], changed.json()["about"]) == (0.05, "new-items")
    zoo.tell(zoo.ask(), "left")
    assert admin.patch(f"{AT}/settings", json={"margin": 0.1}).json()["margin"] == 0.1
    refused = admin.patch(f"{AT}/settings", json={"about": "these-items"})
    assert refused.status_code == 409
    assert "is about new-items and has asked questions" in refused.json()["error"]["message"]
    assert admin.patch(f"{AT}/settings", json={"about": "all"}).status_code == 422
    whats = [one["what"] for one in admin.get(f"{AT}/changes").json()["changes"]]
    assert whats[:3] == ["The margin is now 10 %.", "The margin is now 5 %.", "The verdict is now about new-items."]
    assert (zoo.goal.margin, zoo.goal.about) == (0.1, "new-items")
