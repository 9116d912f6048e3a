"""Caps on the votes of a link: in all and from one address, for voters who bring no cookie."""

import threading
from contextlib import ExitStack

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from duels.server.app import create_app
from duels.server.http import limits
from duels.server.http.limits import Limits, Rate
from duels.storage.storage import open_storage
from duels.study import base
from duels.study.create import load_study

FAST = Limits(address=Rate(10_000, 10_000), voter=Rate(10_000, 10_000))


@pytest.fixture
def app(storage):
    return create_app(storage, limits=FAST)


def link_of(admin, study, **caps):
    made = admin.post(f"{study}/links", json={"votes": 1000, **caps})
    assert made.status_code == 201, made.text
    return f"/api/vote/{made.json()['secret']}"


class Voter:
    """Somebody at an address; a new cookie each time unless they keep it."""

    def __init__(self, app, at, address="192.0.2.1"):
        self.client, self.at = TestClient(app, "http://localhost", client=(address, 1)), at

    def ask(self):
        return self.client.post(f"{self.at}/ask", json={"more": True}).json()

    def tell(self, duel, winner="a"):
        return self.client.post(f"{self.at}/tell", json={"duel": duel, "winner": winner})

    def vote(self, winner="a"):
        """The status of one vote; 0 if there is nothing to vote on."""
        duel = self.ask()["duel"]
        return 0 if duel is None else self.tell(duel, winner).status_code


def test_without_caps_nothing_is_counted(app, admin, study, storage):
    at = link_of(admin, study)
    assert [Voter(app, at).vote() for _ in range(5)] == [200] * 5
    (link,) = admin.get(f"{study}/links").json()["links"]
    assert (link["max_votes"], link["max_votes_per_address"], link["votes_taken"]) == (None, None, None)
    with storage.lock:
        assert storage.connection().execute(sa.text("SELECT count(*) FROM link_votes")).scalar() == 0


def test_a_link_takes_no_more_votes_than_its_cap(app, admin, study, storage):
    """Without cookies, from any address, and after a restart; another link of the study goes on."""
    at = link_of(admin, study, max_votes=3)
    assert [Voter(app, at, f"192.0.2.{number}").vote() for number in range(5)] == [200, 200, 200, 0, 0]
    (link,) = admin.get(f"{study}/links").json()["links"]
    assert (link["max_votes"], link["max_votes_per_address"], link["votes_taken"]) == (3, None, 3)
    again = create_app(open_storage(storage.url), limits=FAST)
    late = Voter(again, at)
    assert late.ask()["done"] == "full"
    assert late.client.get(at).json()["done"] == "full"
    assert Voter(app, link_of(admin, study)).vote() == 200
    assert admin.get(study).json()["answers"] == 4


def test_an_address_gives_no_more_votes_than_its_cap(app, admin, study, storage):
    at = link_of(admin, study, max_votes_per_address=2)
    for address in ("192.0.2.1", "2001:db8:1:2::1", "192.0.2.2"):
        assert [Voter(app, at, address).vote() for _ in range(3)] == [200, 200, 0]
    assert Voter(app, at, "2001:db8:1:2:aaaa::9").vote() == 0  # of the same network
    assert Voter(app, at, "2001:db8:1:3::1").vote() == 200
    other = link_of(admin, study, max_votes_per_address=2)
    assert Voter(app, other, "192.0.2.1").vote() == 200
    with storage.lock:
        rows = storage.connection().execute(sa.text("SELECT key_id, address FROM link_votes")).all()
    assert len(rows) == 8
    assert len({address for _, address in rows}) == 5  # the same address is another one for another link
    assert all(len(address) == 64 and address[:3] != "192" for _, address in rows)


@pytest.fixture
def leases_end(monkeypatch):
    """After each question so much time passes that its lease is over, and another one may be asked."""
    now = [2e9]

    def end():
        now[0] += 3600.0

    monkeypatch.setattr(base, "clock", lambda: now[0])
    return end


def test_open_questions_count_against_caps(app, admin, study, leases_end):
    """Else somebody without cookies could fill the log with questions that nobody answers."""
    at = link_of(admin, study, max_votes=3, max_votes_per_address=2)
    asked = [Voter(app, at, f"192.0.2.{number}") for number in (1, 1, 1, 2, 3)]
    found = [voter.ask() for voter in asked]
    assert [one["duel"] for one in found] == [0, 1, None, 2, None]
    assert [one["done"] for one in found] == [None, None, "asked", None, "asked"]
    assert asked[0].ask()["duel"] == 0  # the voter's own
    assert admin.get(study).json()["open"] == 3
    assert asked[0].tell(0, "skip").status_code == 200  # gives it back
    assert Voter(app, at, "192.0.2.4").ask()["duel"] == 3
    assert admin.get(f"{study}/links").json()["links"][0]["votes_taken"] == 0
    leases_end()
    assert Voter(app, at, "192.0.2.1").ask()["duel"] == 4  # what nobody answers does not count for ever


def test_a_vote_that_was_asked_for_in_time_is_refused_too(app, admin, study, leases_end):
    at = link_of(admin, study, max_votes=1)
    first, second = Voter(app, at), Voter(app, at)
    duel = first.ask()["duel"]
    leases_end()
    late = second.ask()["duel"]
    assert first.tell(duel).status_code == 200
    answer = second.tell(late)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "forbidden")
    assert second.tell(late, "skip").status_code == 200  # is not a vote
    assert first.tell(duel).status_code == 200  # sent again: it is there already
    assert admin.get(f"{study}/links").json()["links"][0]["votes_taken"] == 1


def test_undo_gives_a_vote_back(app, admin, study):
    """Also from another address, as phones change theirs; and only once."""
    at = link_of(admin, study, max_votes=2, max_votes_per_address=2)
    voter = Voter(app, at)
    assert [voter.vote(), voter.vote(), voter.vote()] == [200, 200, 0]
    moved = Voter(app, at, "198.51.100.7")
    moved.client.cookies = voter.client.cookies
    back = moved.client.post(f"{at}/undo").json()
    assert back["done"] is None
    assert moved.tell(back["duel"], "b").status_code == 200
    assert moved.client.post(f"{at}/undo").status_code == 200
    assert voter.vote() == 200
    assert voter.vote() == 0
    assert admin.get(study).json()["answers"] == 2


def test_a_skip_that_is_undone_gives_nothing_back(app, admin, study):
    at = link_of(admin, study, max_votes=2)
    voter = Voter(app, at)
    assert [voter.vote("a"), voter.vote("skip")] == [200, 200]
    assert voter.client.post(f"{at}/undo").status_code == 200
    assert [voter.vote("a"), voter.vote("a")] == [200, 0]
    assert admin.get(study).json()["answers"] == 2


def test_votes_at_the_same_time_do_not_slip_through(admin, study, storage):
    """Ten voters who were asked before the link had a cap answer at once, by two applications on one database."""
    at = link_of(admin, study)
    statuses, barrier = [], threading.Barrier(10)

    def answer(client, cookie, duel):
        barrier.wait(20)
        sent = client.post(f"{at}/tell", json={"duel": duel, "winner": "a"}, headers={"Cookie": cookie})
        statuses.append(sent.status_code)

    with ExitStack() as stack:
        apps = [create_app(open_storage(storage.url), limits=FAST) for _ in range(2)]
        clients = [stack.enter_context(TestClient(app, "http://localhost")) for app in apps]
        asked = []
        for number in range(10):
            client = clients[number % 2]
            duel = client.post(f"{at}/ask", json={}).json()["duel"]
            asked.append((client, f"duels_ballot={client.cookies['duels_ballot']}", duel))
            client.cookies.clear()
        (link,) = admin.get(f"{study}/links").json()["links"]
        assert admin.patch(f"{study}/links/{link['id']}", json={"max_votes": 3}).status_code == 204
        threads = [threading.Thread(target=answer, args=one, daemon=True) for one in asked]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert sorted(statuses) == [200] * 3 + [403] * 7
    load_study("search", storage).check()
    assert admin.get(study).json()["answers"] == 3


@pytest.mark.parametrize("cap", [0, -1, 1.5, "3", 10**9, True])
def test_caps_are_whole_numbers(admin, study, cap):
    for name in ("max_votes", "max_votes_per_address"):
        assert admin.post(f"{study}/links", json={name: cap}).status_code == 422


def test_the_dashboard_shows_caps(app, admin, study):
    at = link_of(admin, study, max_votes=1200, max_votes_per_address=30)
    assert Voter(app, at).vote() == 200
    with TestClient(app, "http://localhost") as browser:
        browser.post("/signin", data={"token": admin.token})
        page = browser.get("/studies/search/share").text
    assert "1 of 1,200 in total, 30 per address" in page.replace("\n", " ")


def test_a_deleted_study_leaves_no_counts(app, admin, study, storage):
    at = link_of(admin, study, max_votes=5)
    assert Voter(app, at).vote() == 200
    assert admin.delete(study).status_code == 204
    with storage.lock:
        assert storage.connection().execute(sa.text("SELECT count(*) FROM link_votes")).scalar() == 0


def test_many_new_voters_of_one_address_have_to_wait_and_are_noticed(app, admin, study, monkeypatch):
    """1,200 votes by fresh cookies of one address in seconds must not pass unnoticed, even without caps."""
    now = [1000.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    app.service.limits = FAST._replace(new_voters=Rate(1, 5))
    at = link_of(admin, study, name="the link for all")
    crowd = [Voter(app, at) for _ in range(8)]
    answers = [voter.client.post(f"{at}/ask", json={}) for voter in crowd]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 3
    assert answers[-1].json()["error"]["message"] == "too many new voters come from here: try again in 1 s"
    assert [crowd[0].vote(), Voter(app, at, "192.0.2.2").vote()] == [200, 200]  # others, and those who are known
    now[0] += 2
    assert crowd[-1].vote() == 200
    (notice,) = admin.get(f"{study}/voters").json()["notices"]
    assert "through the link “the link for all”" in notice
    with TestClient(app, "http://localhost") as browser:
        browser.post("/signin", data={"token": admin.token})
        assert "Too many new voters came from one network address" in browser.get("/studies/search/voters").text
    with app.service.storage.lock:
        rows = app.service.storage.connection().exec_driver_sql("SELECT settings FROM keys").scalars()
        assert not any("192.0.2" in row for row in rows)
    assert Limits().new_voters.burst <= 120


def test_links_where_nothing_stands_out_have_no_notice(app, admin, study):
    at = link_of(admin, study)
    assert [Voter(app, at).vote() for _ in range(5)] == [200] * 5
    assert admin.get(f"{study}/voters").json()["notices"] == []
