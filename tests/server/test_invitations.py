"""Named invitations: one link per person, whose votes have the person's name from any device."""

import threading

import polars as pl
import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from duels.errors import Conflict, InvalidInput
from duels.server.app import create_app
from duels.server.http.limits import Limits, Rate
from duels.server.keys import make_key
from duels.study.create import load_study
from duels.study.invitations import check_names

FAST = Limits(address=Rate(10_000, 10_000), voter=Rate(10_000, 10_000))


@pytest.fixture
def app(storage):
    return create_app(storage, limits=FAST)


def invite(admin, study, *voters, **more):
    sent = admin.post(f"{study}/invitations", json={"voters": list(voters), **more})
    assert sent.status_code == 201, sent.text
    assert sent.headers["cache-control"] == "no-store"
    return {one["voter"]: one for one in sent.json()["invitations"]}


def device(app, link):
    client = TestClient(app, "http://localhost")
    client.at = f"/api/vote/{link['secret']}"
    return client


def vote(client, winner="a"):
    asked = client.post(f"{client.at}/ask", json={"more": True})
    if not asked.is_success:
        return asked.status_code
    duel = asked.json()["duel"]
    return 0 if duel is None else client.post(f"{client.at}/tell", json={"duel": duel, "winner": winner}).status_code


def listed(admin, study):
    return {one["voter"]: one for one in admin.get(f"{study}/invitations").json()["invitations"]}


def test_an_invited_person_votes_under_their_name_from_any_device(app, admin, study, storage):
    made = invite(admin, study, " Ann  Lee ", "Bob", votes=3, name="Which?")
    assert list(made) == ["Ann Lee", "Bob"]
    phone, laptop = device(app, made["Ann Lee"]), device(app, made["Ann Lee"])
    assert [vote(phone), vote(laptop), vote(device(app, made["Bob"]))] == [200] * 3
    assert laptop.get(laptop.at).json()["answered"] == 2
    assert "duels_ballot" not in phone.cookies
    duels_of = [client.post(f"{client.at}/ask", json={}).json()["duel"] for client in (phone, laptop)]
    assert duels_of[0] == duels_of[1]  # the same open question
    assert phone.post(f"{phone.at}/tell", json={"duel": duels_of[0], "winner": "a"}).status_code == 200
    assert laptop.post(f"{laptop.at}/tell", json={"duel": duels_of[0], "winner": "b"}).status_code == 409
    assert laptop.post(f"{laptop.at}/undo").status_code == 200
    people = listed(admin, study)
    assert [(name, one["answers"], one["state"]) for name, one in people.items()] == [
        ("Ann Lee", 2, "active"),
        ("Bob", 1, "active"),
    ]
    assert people["Bob"]["last_used"] > people["Bob"]["created"]
    assert [one.voter for one in load_study("search", storage).votes()] == ["Ann Lee", "Ann Lee", "Bob"]
    assert "Ann Lee" in admin.get(f"{study}/export?format=csv").text
    assert admin.get(f"{study}/links").json() == {"links": []}
    everything = admin.get(f"{study}/invitations").text + admin.get(f"{study}/changes").text
    assert made["Bob"]["secret"] not in everything
    assert "Invited 2 people." in everything
    assert "Bob" not in admin.get(f"{study}/changes").text  # nobody has to erase it there when Bob is forgotten


def test_the_page_says_under_which_name_people_vote(anybody, admin, study):
    made = invite(admin, study, "<b>Ann</b>", name="Which?")["<b>Ann</b>"]
    page = anybody.get(f"/vote/{made['secret']}").text
    assert 'You vote as <strong dir="auto">&lt;b&gt;Ann&lt;/b&gt;</strong>.' in page
    link = admin.post(f"{study}/links", json={}).json()
    assert "You vote as" not in anybody.get(f"/vote/{link['secret']}").text


def test_voters_of_other_links_keep_their_numbers(app, admin, study, storage):
    made = invite(admin, study, "Ann")
    shared = admin.post(f"{study}/links", json={}).json()
    assert [vote(device(app, one)) for one in (shared, made["Ann"], shared)] == [200] * 3
    assert [one.voter for one in load_study("search", storage).votes()] == ["Voter 1", "Ann", "Voter 2"]


@pytest.mark.parametrize(
    "names",
    [["Voter 7"], ["voter  7"], ["Ann", "Ann"], ["Ann", "Ann "], ["a\u200bb"], ["  "], ["Ann", " "], ["e\u0301", "é"]],
)
def test_names_that_cannot_be_used(admin, study, names):
    sent = admin.post(f"{study}/invitations", json={"voters": names})
    assert (sent.status_code, sent.json()["error"]["kind"]) == (400, "invalid")
    assert listed(admin, study) == {}


def test_how_many_are_invited_at_once(admin, study):
    everybody = [f"person {k}" for k in range(201)]
    assert admin.post(f"{study}/invitations", json={"voters": everybody}).status_code == 422
    assert admin.post(f"{study}/invitations", json={"voters": []}).status_code == 422
    assert len(invite(admin, study, *everybody[:200])) == 200
    with pytest.raises(InvalidInput, match="201 names"):
        check_names(everybody)


def test_a_name_belongs_to_one_voter_of_the_study(app, admin, study, storage):
    """Whoever comes second is refused: invited twice, a program's voter, a judge, and voters of a file."""
    live = load_study("search", storage)
    live.tell(live.ask(voter="program"), "left", voter="program")
    admin.post(f"{study}/import", content="left,right,winner,voter\nbm25,dense,left,from a file\n")
    invite(admin, study, "Ann")
    for taken in ("Ann", "program", "from a file"):
        sent = admin.post(f"{study}/invitations", json={"voters": ["Zoe", taken]})
        assert (sent.status_code, sent.json()["error"]["kind"]) == (409, "conflict"), taken
        assert taken in sent.json()["error"]["message"]
    assert list(listed(admin, study)) == ["Ann"]  # Zoe was not invited either
    before = live._log.history().seq
    for path, body in (("ask", {}), ("tell", {"duel": 0, "winner": "left"})):
        sent = admin.post(f"{study}/{path}", json={**body, "voter": "Ann"})
        assert (sent.status_code, "invited" in sent.json()["error"]["message"]) == (409, True)
    lists = {"rankings": {arm: [1, 2] for arm in ("bm25", "dense", "hybrid")}, "voter": "Ann"}
    assert admin.post(f"{study}/interleave", json=lists).status_code == 409
    sent = admin.post(f"{study}/import", content="left,right,winner,voter\nbm25,dense,left,Zoe\nbm25,dense,left,Ann\n")
    assert sent.status_code == 409
    with pytest.raises(Conflict, match="invited"):
        live.ask(voter="Ann")
    with pytest.raises(Conflict, match="invited"):
        live.import_votes(pl.DataFrame({"left": ["bm25"], "right": ["dense"], "winner": ["left"], "voter": ["Ann"]}))
    with pytest.raises(Conflict, match="invited"):
        live.run({"Ann": lambda left, right: "left"}, max_calls=2, progress=False)
    assert live._log.history().seq == before
    admin.post("/api/studies", json={"name": "other", "arms": ["a", "b"]})
    assert list(invite(admin, "/api/studies/other", "Ann")) == ["Ann"]  # names belong to a study
    assert admin.post("/api/studies/other/ask", json={"voter": "program"}).status_code == 200


def test_invitations_at_the_same_time(admin, study, app):
    """Of ten who invite Ann at once, one succeeds."""
    statuses, barrier = [], threading.Barrier(10)

    def send():
        barrier.wait(20)
        statuses.append(admin.post(f"{study}/invitations", json={"voters": ["Ann"]}).status_code)

    threads = [threading.Thread(target=send) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(statuses) == [201] + [409] * 9
    assert list(listed(admin, study)) == ["Ann"]


def test_forgetting_somebody_erases_the_name_and_ends_the_link(app, admin, study, storage):
    made = invite(admin, study, "Ann", "Bob", "Cy")
    ann, bob = device(app, made["Ann"]), device(app, made["Bob"])
    assert [vote(ann), vote(ann), vote(bob)] == [200] * 3
    assert admin.patch(f"{study}/links/{made['Ann']['id']}", json={"on": False}).status_code == 204
    assert admin.post(f"{study}/forget", json={"voter": "Ann"}).json() == {"answers": 2}
    assert admin.post(f"{study}/forget", json={"voter": "Cy"}).json() == {"answers": 0}  # has not voted
    assert admin.post(f"{study}/forget", json={"voter": "Cy"}).status_code == 400
    assert [vote(ann), vote(device(app, made["Cy"])), vote(bob)] == [404, 404, 200]
    assert admin.patch(f"{study}/links/{made['Ann']['id']}", json={"on": True}).status_code == 409  # for good
    assert admin.post(f"{study}/invitations/{made['Ann']['id']}/renew").status_code == 404
    assert list(listed(admin, study)) == ["Bob"]
    assert admin.get(f"{study}/links").json() == {"links": []}
    with storage.lock:
        connection = storage.connection()
        for table in ("events", "keys", "invitations", "changes", "voters"):
            assert "Ann" not in str(connection.execute(sa.text(f"SELECT * FROM {table}")).all()), table
    again = device(app, invite(admin, study, "Ann")["Ann"])
    assert again.get(again.at).json()["answered"] == 0
    load_study("search", storage).check()


def test_a_new_link_for_the_same_person(app, admin, study):
    made = invite(admin, study, "Ann", votes=2, max_votes_per_voter=2)["Ann"]
    old = device(app, made)
    assert vote(old) == 200
    sent = admin.post(f"{study}/invitations/{made['id']}/renew")
    assert (sent.status_code, sent.headers["cache-control"]) == (201, "no-store")
    new = device(app, sent.json())
    assert vote(old) == 404
    assert [vote(new), vote(new)] == [200, 0]  # the cap counts the vote by the old link
    assert new.get(new.at).json()["answered"] == 2
    assert [(one["answers"], one["state"]) for one in listed(admin, study).values()] == [(2, "active")]
    for wrong in (made["id"], 999):
        assert admin.post(f"{study}/invitations/{wrong}/renew").status_code == 404
    link = admin.post(f"{study}/links", json={}).json()["id"]
    assert admin.post(f"{study}/invitations/{link}/renew").status_code == 404


def test_a_person_is_switched_off_and_on(app, admin, study):
    made = invite(admin, study, "Ann", "Bob")
    ann, bob = device(app, made["Ann"]), device(app, made["Bob"])
    at = f"{study}/links/{made['Ann']['id']}"
    assert admin.patch(at, json={"on": False}).status_code == 204
    assert [vote(ann), vote(bob)] == [404, 200]
    assert [one["state"] for one in listed(admin, study).values()] == ["off", "active"]
    assert admin.patch(at, json={"on": True}).status_code == 204
    assert vote(ann) == 200
    assert admin.delete(at).status_code == 204
    assert vote(ann) == 404
    assert [(one["state"], one["answers"]) for one in listed(admin, study).values()] == [("revoked", 1), ("active", 1)]
    assert admin.post(f"{study}/ask", json={"voter": "Ann"}).status_code == 409  # the name stays hers


def test_only_admins_invite(anybody, admin, study, storage):
    made = invite(admin, study, "Ann")["Ann"]
    _, token = make_key(storage, "api", "program")
    headers = {"Authorization": f"Bearer {token}"}
    for path in ("invitations", f"invitations/{made['id']}/renew"):
        assert anybody.post(f"{study}/{path}", json={"voters": ["Zoe"]}).status_code == 401
        assert anybody.post(f"{study}/{path}", json={"voters": ["Zoe"]}, headers=headers).status_code == 403
    link = {"Authorization": f"Bearer {made['secret']}"}
    assert anybody.get(f"{study}/invitations", headers=link).status_code == 401
    assert list(listed(admin, study)) == ["Ann"]


def test_links_of_another_study_are_not_its_people(admin, study):
    made = invite(admin, study, "Ann")["Ann"]
    admin.post("/api/studies", json={"name": "other", "arms": ["a", "b"]})
    assert admin.post(f"/api/studies/other/invitations/{made['id']}/renew").status_code == 404
    assert listed(admin, "/api/studies/other") == {}
