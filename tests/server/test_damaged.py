"""A study whose log was changed by other hands: it is shown as damaged, and nothing else is."""

import sqlite3

import pytest
from commands import duels_command
from starlette.testclient import TestClient

import duels
from duels.errors import DamagedStudy
from duels.server.app import create_app
from duels.storage.storage import Storage

DAMAGE = {
    "an answer changed": "UPDATE events SET answer = 'tie' WHERE study_id = 1 AND kind = 'tell' AND seq = 3",
    "an event removed": "DELETE FROM events WHERE study_id = 1 AND seq = 2",
    "the first event removed": "DELETE FROM events WHERE study_id = 1 AND seq = 1",
    "all events removed": "DELETE FROM events WHERE study_id = 1",
    "arms changed": "UPDATE events SET note = 'x' WHERE study_id = 1 AND seq = 1",
    "not text": "UPDATE events SET note = CAST(x'ff' AS TEXT) WHERE study_id = 1 AND seq = 1",
    "settings": "UPDATE studies SET settings = '{' WHERE id = 1",
}


REPEATED = ("an event removed", "the first event removed", "arms changed", "not text")  # shown as the others are
ON_PAGES = [pytest.param(one, marks=pytest.mark.deep) if one in REPEATED else one for one in DAMAGE]


@pytest.fixture(params=DAMAGE)
def damaged(request, admin, study, storage):
    """The address of a server's first study, damaged; its second one is called 'fine'."""
    admin.post("/api/studies", json={"name": "fine", "arms": ["a", "b"]})
    for address in (study, "/api/studies/fine"):
        for _ in range(3):
            (duel,) = admin.post(f"{address}/ask", json={}).json()["duels"]
            assert admin.post(f"{address}/tell", json={"duel": duel["id"], "winner": "left"}).status_code == 200
    with storage.lock:  # as after a restart: nothing is known from before
        admin.app.service._studies.clear()
        storage.histories.clear()
        storage.release()
    with sqlite3.connect(storage.url.removeprefix("sqlite:///")) as database:
        assert database.execute(DAMAGE[request.param]).rowcount > 0
    return study


@pytest.fixture
def people(app, admin, study):
    with TestClient(app, "http://localhost", follow_redirects=False) as client:
        client.post("/signin", data={"token": admin.token})
        yield client


def test_the_list_shows_it_as_damaged_and_the_others_as_they_are(damaged, admin, storage):
    bad, good = admin.get("/api/studies").json()["studies"]
    assert bad["name"] == "search"
    assert bad["policy"] == "verdict"
    assert bad["damaged"]
    assert {bad[field] for field in ("arms", "answers", "open", "items", "retired", "seq")} == {None}
    assert (good["name"], good["answers"], good["damaged"]) == ("fine", 3, None)
    bad, good = duels.study.list_studies(storage)
    assert (bad.name, bad.answers, good.name, good.answers, good.damaged) == ("search", None, "fine", 3, None)
    assert bad.damaged


@pytest.mark.parametrize("damaged", ON_PAGES, indirect=True)
def test_its_own_routes_say_so_and_those_of_others_work(damaged, admin):
    for path in ("", "/verdict", "/leaderboard", "/details"):
        response = admin.get(damaged + path)
        assert (response.status_code, response.json()["error"]["kind"]) == (500, "damaged")
        assert "Restore the database from a backup, or delete this study" in response.json()["error"]["message"]
        assert "retry-after" not in response.headers
        assert admin.get(f"/api/studies/fine{path}").status_code == 200
    assert admin.post(f"{damaged}/ask", json={}).json()["error"]["kind"] == "damaged"
    assert admin.post("/api/studies/fine/ask", json={}).status_code == 200


@pytest.mark.parametrize("damaged", ON_PAGES, indirect=True)
def test_the_pages_say_so(damaged, people):
    listed = people.get("/")
    assert listed.status_code == 200
    assert "This study is damaged" in listed.text
    assert "3 answers" in " ".join(listed.text.split())
    page = people.get("/studies/search")
    assert page.status_code == 500
    assert "search is damaged" in page.text
    assert "Restore the database from a backup, or delete this study" in page.text
    assert 'id="delete-study"' in page.text
    assert people.get("/studies/fine").status_code == 200


def test_it_can_be_deleted(damaged, admin):
    assert admin.delete(damaged).status_code == 204
    assert [one["name"] for one in admin.get("/api/studies").json()["studies"]] == ["fine"]


def test_a_commit_with_answers_to_both_takes_those_to_the_other(damaged, storage):
    good, bad = duels.load_study("fine", storage), duels.load_study("search", storage)
    with pytest.raises(DamagedStudy):
        bad.ask()
    assert good.ask().id == 3


def test_damage_found_while_others_follow_does_not_end_their_streams(storage, admin, study):
    admin.post("/api/studies", json={"name": "fine", "arms": ["a", "b"]})
    with sqlite3.connect(storage.url.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE events SET note = 'x' WHERE study_id = 1")
    with TestClient(create_app(Storage(storage.url)), "http://localhost", headers=admin.headers) as client:
        assert client.get(study).status_code == 500
        with pytest.raises(DamagedStudy):
            client.app.service.state("search")
        assert client.app.service.state("fine")["seq"] == 1


def test_an_unknown_study_is_said_in_plain_words_on_a_page(people):
    page = people.get("/studies/none")
    assert page.status_code == 404
    assert "Study not found" in page.text
    assert "There is no study “none”" in page.text
    assert "Known:" not in page.text
    assert "duels study list" not in page.text


def test_the_client_and_the_command_list_it(serve):
    live = serve()
    with duels.connect(live.url, live.token) as client:
        client.create_study(["a", "b"], "bad")
        client.create_study(["a", "b", "c"], "good")
    live.stop()
    with sqlite3.connect(live.storage.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE events SET time = time + 1 WHERE study_id = 1")
    table = duels_command("study", "list", "--storage", live.storage).stdout
    assert "event 1 of study 'bad' is not what was written" in table
    again = serve(live.storage, environment={"DUELS_TOKEN": "a-token-of-thirty-characters.."})
    with duels.connect(again.url, again.token) as client:
        bad, good = client.list_studies()
        assert (bad.name, bad.arms, bad.answers, good.name, good.arms) == ("bad", None, None, "good", 3)
        assert "is not what was written" in bad.damaged
        with pytest.raises(DamagedStudy, match="Restore the database from a backup, or delete this study"):
            client.load_study("bad")
    done = duels_command("study", "delete", "bad", "--storage", live.storage, stdin="y\n")
    assert (done.returncode, "which is damaged" in done.stderr) == (0, True)
    assert "damaged" not in duels_command("study", "list", "--storage", live.storage).stdout


def test_voters_of_it_are_told_neither_its_name_nor_what_is_wrong(admin, study, storage, anybody):
    link = admin.post(f"{study}/links", json={}).json()["secret"]
    with storage.lock:
        storage.histories.clear()
    with sqlite3.connect(storage.url.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE events SET time = time + 1 WHERE study_id = 1")
    said = anybody.post(f"/api/vote/{link}/ask", json={})
    assert (said.status_code, said.json()["error"]["kind"]) == (500, "damaged")
    assert "search" not in said.text
