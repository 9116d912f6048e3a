"""Votes through a link take one transaction each, and a server believes what it remembers only until then."""

from contextlib import ExitStack

import psycopg
import pytest
from starlette.testclient import TestClient

from duels.server.app import create_app
from duels.server.http.limits import Limits, Rate
from duels.server.keys import change_key, list_keys, make_key
from duels.server.writes import Background
from duels.storage.storage import Write, open_storage
from duels.study.create import create_study, load_study
from duels.study.voter_settings import change_voter_settings

FAST = Limits(address=Rate(1e6, 10**6), voter=Rate(1e6, 10**6))
ARMS = ["x", "y", "z"]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "postgresql":
        return request.getfixturevalue("postgres")
    return f"sqlite:///{tmp_path}/links.db"


class Server:
    """One of several servers with one database, and somebody who votes by it."""

    def __init__(self, url, opened):
        self.storage = open_storage(url)
        opened.callback(self.storage.close)
        self.app = create_app(self.storage, limits=FAST)
        self.client = opened.enter_context(TestClient(self.app, "http://localhost"))

    def send(self, link, action, **body):
        return self.client.post(f"/api/vote/{link}/{action}", json=body)

    def ask(self, link):
        sent = self.send(link, "ask", more=True)
        assert sent.status_code == 200, sent.text
        return sent.json()

    def vote(self, link, winner="a"):
        return self.send(link, "tell", duel=self.ask(link)["duel"], winner=winner)


@pytest.fixture
def servers(url):
    with ExitStack() as opened:
        yield [Server(url, opened) for _ in range(2)]


@pytest.fixture
def link(servers):
    study = create_study(ARMS, "load", servers[0].storage)
    return make_key(servers[0].storage, "vote", study_id=study._log.id, settings={"votes": 100})[1]


def note_statements(storage):
    """A list to which each statement on the held connection is added."""
    found = []
    with storage.lock:
        driver = storage.connection().connection.driver_connection
    if storage.is_sqlite:  # its driver tells of each statement, also of settings such as how long to wait
        driver.set_trace_callback(lambda text: None if text.startswith("PRAGMA") else found.append(text))
        return found

    class Noting(psycopg.Cursor):
        def execute(self, text, *more, **named):
            found.append(text)
            return super().execute(text, *more, **named)

        def executemany(self, text, *more, **named):
            found.append(text)
            return super().executemany(text, *more, **named)

    driver.cursor_factory = Noting
    return found


def test_a_vote_takes_few_statements_and_no_other_thread(servers, link, monkeypatch):
    """Each statement is a round trip to PostgreSQL for which all others wait: votes of one commit share most."""
    server, _ = servers
    for _ in range(3):
        assert server.vote(link).status_code == 200
    found, more = note_statements(server.storage), not server.storage.is_sqlite

    async def refuse(self, work, *arguments):
        raise AssertionError(f"{work} in another thread")

    monkeypatch.setattr(Background, "vote", refuse)
    duel = server.ask(link)["duel"]
    # begin, lock, whether the link works, new events, whether items are lacking, the question, commit
    assert len(found) <= 6 + more, found
    found.clear()
    assert server.send(link, "tell", duel=duel, winner="a").json()["answered"] == 4
    assert len(found) <= 5 + more, found


def change(server, **changes):
    (key,) = list_keys(server.storage, ("vote",))
    server.storage.write(Write(lambda connection: change_key(connection, key, **changes)))


def test_what_another_server_changes_holds_for_the_very_next_request(servers, link):
    """This one remembers the link and the voter, and looks whether both are what they were."""
    here, there = servers
    assert here.vote(link).status_code == 200
    duel = here.ask(link)["duel"]
    change(there, revoked=1.0, off=True)
    for sent in (here.send(link, "tell", duel=duel, winner="a"), here.send(link, "ask")):
        assert (sent.status_code, sent.json()["error"]["kind"]) == (404, "not_found")
        assert "paused" in sent.text
    assert len(load_study("load", there.storage).votes()) == 1
    change(there, revoked=None, off=False)
    assert here.send(link, "tell", duel=duel, winner="a").json()["answered"] == 2

    duel = here.ask(link)["duel"]
    change_voter_settings(load_study("load", there.storage), ties=False)
    assert here.send(link, "tell", duel=duel, winner="tie").status_code == 409
    change_voter_settings(load_study("load", there.storage), ties=True)
    assert here.send(link, "tell", duel=duel, winner="tie").json()["answered"] == 3

    duel = here.ask(link)["duel"]
    change(there, max_votes_per_voter=3)
    assert here.send(link, "tell", duel=duel, winner="a").status_code == 403
    assert here.ask(link)["done"] == "full"
    change(there, expires=1.0)
    assert "ended" in here.send(link, "ask").text


def test_a_voter_whom_another_server_forgot_is_new(servers, link):
    here, there = servers
    assert here.vote(link).status_code == 200
    duel, cookies = here.ask(link)["duel"], dict(here.client.cookies)
    load_study("load", there.storage).forget("Voter 1")
    assert here.send(link, "tell", duel=duel, winner="a").status_code == 404
    assert here.ask(link)["answered"] == 0
    assert dict(here.client.cookies) != cookies
    assert here.vote(link).status_code == 200
    assert [vote.voter for vote in load_study("load", there.storage).votes()] == ["Voter 2"]


def test_a_slow_verdict_is_found_while_others_vote(servers, link, monkeypatch):
    """In the transaction it is looked for only where that was quick before; a request asks for it once."""
    from duels.server import state

    here, _ = servers
    monkeypatch.setattr(state, "QUICK", -1.0)
    monkeypatch.setattr(state, "end_in", lambda *about: pytest.fail("all others would wait"))
    for _ in range(3):
        assert here.vote(link).status_code == 200


def test_a_verdict_that_fails_fails_no_vote(servers, link, monkeypatch):
    from duels.server import state

    here, _ = servers
    assert here.vote(link).status_code == 200

    def fail(*about):
        raise ZeroDivisionError

    duel = here.ask(link)["duel"]
    monkeypatch.setattr(state, "end_in", fail)
    assert here.send(link, "tell", duel=duel, winner="a").json()["answered"] == 2
