"""`duels serve` as a process: how it starts and ends, its streams, its log, its clock."""

import asyncio
import json
import os
import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2 as httpx
import pytest
import uvicorn
from prometheus_client.parser import text_string_to_metric_families

from duels.errors import UnknownName
from duels.server import streams
from duels.server.auth import SESSION_LASTS
from duels.server.serving import Server
from duels.storage.storage import Storage
from duels.study import base
from duels.study.create import create_study, load_study

from .conftest import run_duels

STUDY = "/api/studies/search"
TOKEN = "a-token-that-somebody-chose-for-tests"


def begin(client, arms=("bm25", "dense", "hybrid")):
    assert client.post("/api/studies", json={"name": "search", "arms": list(arms)}).status_code == 201


def ask(client, **body):
    response = client.post(f"{STUDY}/ask", json=body)
    assert response.status_code == 200, response.text
    return response.json()["duels"]


def tell(client, duel, winner="left"):
    response = client.post(f"{STUDY}/tell", json={"duel": duel, "winner": winner})
    assert response.status_code == 200, response.text


def vote(client):
    tell(client, ask(client)[0]["id"])


def until(true, patience=20.0):
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


class Listener:
    """Somebody who follows a study: the lines that came, and how it ended."""

    def __init__(self, url, token):
        self.lines, self.ended = [], None
        self._request = (f"{url}{STUDY}/stream", {"Authorization": f"Bearer {token}"})
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        url, headers = self._request
        try:
            with httpx.stream("GET", url, headers=headers, timeout=60, verify=False) as response:
                self.kind = response.headers["content-type"]
                for line in response.iter_lines():
                    self.lines.append(line)
            self.ended = "whole"
        except httpx.HTTPError as error:
            self.ended = repr(error)

    @property
    def events(self):
        return [line.removeprefix("event: ") for line in self.lines if line.startswith("event: ")]

    @property
    def states(self):
        told = [line.removeprefix("data: ") for line in self.lines if line.startswith("data: ")]
        return [state for state in map(json.loads, told) if state]

    def wait_for(self, answers):
        until(lambda: self.states and self.states[-1]["answers"] == answers)


@contextmanager
def inside(app):
    """The application behind uvicorn in a thread of this process; its URL."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=5))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        until(lambda: server.started)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def test_the_first_start_prints_a_link_that_opens_and_later_ones_do_not(serve):
    first = serve(from_scratch=True, compiled=True)
    printed = "".join(first.out)
    assert printed.count("/signin#") == 1
    assert f"{first.url}/signin#{first.token}" in printed
    with first.client() as client:
        begin(client)
        vote(client)
        signed = httpx.post(f"{first.url}/signin", data={"token": first.token}, verify=False)
        assert signed.status_code == 303
        assert "duels_session" in signed.cookies
        port = first.url.rpartition(":")[2]
        again = run_duels("serve", first.storage, "--port", port)
        assert again.returncode == 2
        assert f"cannot serve on 127.0.0.1:{port}: Address already in use" in again.stderr
    assert first.stop() == 0
    second = serve(first.storage)
    assert "/signin#" not in "".join(second.out)
    assert "duels token create NAME --kind admin" in "".join(second.out)
    second.token = first.token
    with second.client() as client:
        assert client.get(STUDY).json()["answers"] == 1
    assert second.stop(signal.SIGINT) == 0
    assert not [line for line in first.log + second.log if "Traceback" in line]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "there is no admin token yet, and 0.0.0.0 can be reached from other machines"),
        (["--open"], "--open on 0.0.0.0 would give everybody access"),
        (
            ["--open", "--host", "127.0.0.1", "--public-url", "https://duels.example.org"],
            "--open with --public-url 'https://duels.example.org' would give access to everybody who can reach that",
        ),
    ],
)
def test_serving_to_others_without_a_token_is_refused(tmp_path, options, words):
    clean = {key: value for key, value in os.environ.items() if key != "DUELS_TOKEN"}
    done = run_duels("serve", f"sqlite:///{tmp_path}/d.db", "--host", "0.0.0.0", *options, environment=clean)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())  # nor was a database made


def test_serving_to_others_with_a_token(serve):
    live = serve(None, "--host", "0.0.0.0", environment={"DUELS_TOKEN": TOKEN})
    assert httpx.get(f"{live.url}/api/studies", verify=False).status_code == 401
    with live.client() as client:
        assert client.get("/api/studies").json() == {"studies": []}


def test_the_demo_lives(serve):
    live = serve(None, "--demo", "--open")
    assert "sign in" not in "".join(live.out)
    with live.client() as client:
        before = client.get("/api/studies/demo").json()
        assert before["items"] > 0
        until(lambda: client.get("/api/studies/demo").json()["answers"] > before["answers"] + 2)
    assert live.stop() == 0


def test_streams(serve):
    """The state at once, changes whoever makes them, few in a burst, and a word when the study is gone."""
    live = serve()
    with live.client() as client:
        begin(client)
        assert client.get("/api/studies/nothing/stream").status_code == 404
        assert httpx.get(f"{live.url}{STUDY}/stream", verify=False).status_code == 401
        listener = Listener(live.url, live.token)
        listener.wait_for(0)
        assert listener.kind.startswith("text/event-stream")
        assert listener.states == [{"seq": 1, "answers": 0, "open": 0, "waiting": 0, "retired": False}]
        vote(client)
        listener.wait_for(1)
        study = load_study("search", live.storage)
        study.tell(study.ask(), "left")  # by this process
        listener.wait_for(2)
        assert f"id: {listener.states[-1]['seq']}" in listener.lines

        duels = ask(client, n=200)
        until(lambda: listener.states[-1]["open"] == 200)
        before, started = len(listener.events), time.monotonic()
        for duel in duels:
            tell(client, duel["id"])
        listener.wait_for(202)
        took = time.monotonic() - started
        assert len(listener.events) - before <= 2 * took + 2, "at most two a second"

        made = client.post("/api/tokens", json={"name": "guest"}).json()
        guest = Listener(live.url, made["token"])
        guest.wait_for(202)
        assert client.delete(f"/api/tokens/{made['id']}").status_code == 204
        until(lambda: guest.ended)  # revoked means revoked, for open streams too
        assert guest.ended == "whole"
        assert not listener.ended

        assert client.delete(STUDY).status_code == 204
        until(lambda: listener.ended)
        assert (listener.events[-1], listener.ended) == ("deleted", "whole")
        assert client.get(f"{STUDY}/stream").status_code == 404


async def _listeners(live, count, act):
    """How many of so many listeners saw the first answer, after `act`."""
    host, _, port = live.url.removeprefix("http://").partition(":")
    head = f"GET {STUDY}/stream HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {live.token}\r\n\r\n".encode()
    pairs = await asyncio.gather(*(asyncio.open_connection(host, port) for _ in range(count)))
    for _, writer in pairs:
        writer.write(head)
    await asyncio.wait_for(asyncio.gather(*(reader.readuntil(b'"answers": 0') for reader, _ in pairs)), 30)
    await asyncio.to_thread(act)
    seen = await asyncio.wait_for(asyncio.gather(*(reader.readuntil(b'"answers": 1') for reader, _ in pairs)), 30)
    for _, writer in pairs:
        writer.close()
    return len(seen)


def stuck(live):
    """A connection that has asked for much and never reads: the server cannot send it all."""
    host, _, port = live.url.removeprefix("http://").partition(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((host, int(port)))
    connection.settimeout(1)
    with suppress(TimeoutError):
        connection.sendall(f"GET /openapi.json HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() * 500)
    return connection


@pytest.mark.deep
def test_two_hundred_listeners_and_some_who_never_read(serve):
    live = serve()
    with live.client() as client:
        begin(client)
        assert asyncio.run(_listeners(live, 200, lambda: vote(client))) == 200
        deaf = [stuck(live) for _ in range(3)]
        until(lambda: "duels_requests_under_way 4.0" in client.get("/metrics").text)  # theirs and this one
        for _ in range(20):
            vote(client)
        assert client.get(STUDY).json()["answers"] == 21
    started = time.monotonic()
    assert live.stop() == 0
    assert time.monotonic() - started < 12, "five seconds for what is under way, and not more"
    for connection in deaf:
        connection.close()


def test_clients_that_leave_early_are_no_errors_of_the_server(serve):
    live = serve(None, "--log", "json")
    host, _, port = live.url.removeprefix("http://").partition(":")
    known = f"Host: {host}\r\nAuthorization: Bearer {live.token}\r\nContent-Type: application/json"
    with live.client() as client:
        begin(client)
        for action in ("ask", "tell", "undo", "import"):
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(
                    f"POST {STUDY}/{action} HTTP/1.1\r\n{known}\r\nContent-Length: 90\r\n\r\n{{".encode()
                )
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"GET {STUDY}/stream HTTP/1.1\r\n{known}\r\n\r\n".encode())
            connection.recv(100)
        until(lambda: "duels_requests_under_way 1.0" in client.get("/metrics").text)  # this one
        assert client.get(STUDY).json()["seq"] == 1
    assert live.stop() == 0
    lines = [json.loads(line) for line in live.log]
    assert [line for line in lines if line["level"] != "info" or line["status"] >= 500] == []
    assert [line["status"] for line in lines if line["status"] >= 400] == [400] * 4


def test_a_silent_stream_says_that_it_is_there(admin, app, study, monkeypatch):
    monkeypatch.setattr(streams, "KEEP_ALIVE", 0.1)
    with inside(app) as url:
        listener = Listener(url, admin.token)
        until(lambda: listener.lines.count(": still here") >= 3)
        assert listener.events == ["change"]
    until(lambda: listener.ended)
    assert (listener.events, listener.ended) == (["change", "bye"], "whole")


def test_the_end_of_a_lease_is_news(app, admin, study, monkeypatch):
    """It may bring a verdict without an event in the log."""
    now = [base.clock()]
    monkeypatch.setattr(base, "clock", lambda: now[0])
    monkeypatch.setattr(streams, "PULSE", 0.01)
    admin.post(f"{STUDY}/ask", json={"n": 2})

    async def scenario():
        shared = streams.Streams(app.service.storage)
        follow = shared.follow("search", lambda: app.service.state("search"))
        before = await anext(follow)
        assert b'"open": 2, "waiting": 2' in before
        now[0] += 3599
        assert app.service.state("search")["waiting"] == 2
        now[0] += 2
        after = await asyncio.wait_for(anext(follow), 5)
        assert after == before.replace(b'"waiting": 2', b'"waiting": 0')
        shared.close()

    asyncio.run(scenario())


def test_a_study_made_anew_has_listeners_of_its_own(monkeypatch):
    """Those of the old one, who leave late, do not take the new ones' news away."""
    monkeypatch.setattr(streams, "PULSE", 0.01)
    found = {"seq": 1}

    def state():
        if not found:
            raise UnknownName("study", "s", ())
        return dict(found)

    async def scenario():
        shared = streams.Streams(None)
        old = shared.follow("s", state)
        assert (await anext(old)).startswith(b"event: change\nid: 1\n")
        found.clear()
        assert (await anext(old)).startswith(b"event: deleted")
        found["seq"] = 7
        new = shared.follow("s", state)
        assert b"id: 7\n" in await anext(new)
        assert [message async for message in old] == []
        found["seq"] = 8
        assert b"id: 8\n" in await asyncio.wait_for(anext(new), 5)
        shared.close()
        assert [message async for message in new] == [b"event: bye\ndata: {}\n\n"]
        assert shared.feeds == {}

    asyncio.run(scenario())


def test_a_look_that_fails_is_not_the_end_of_a_stream(monkeypatch, caplog):
    monkeypatch.setattr(streams, "PULSE", 0.01)
    states = [{"seq": 1}, ZeroDivisionError("odd"), ZeroDivisionError("odd"), {"seq": 2}]

    def state():
        now = states.pop(0) if len(states) > 1 else states[0]
        if isinstance(now, Exception):
            raise now
        return now

    async def scenario():
        shared = streams.Streams(None)
        follow = shared.follow("s", state)
        assert b"id: 1\n" in await anext(follow)
        assert b"id: 2\n" in await asyncio.wait_for(anext(follow), 5)
        await follow.aclose()
        shared.close()

    asyncio.run(scenario())
    assert len([record for record in caplog.records if "cannot be followed now" in record.message]) == 1


def test_the_log_is_json_without_secrets_and_metrics_count(serve):
    live = serve(None, "--log", "json")
    secrets = {live.token}
    with live.client() as client:
        begin(client)
        vote(client)
        link = client.post(f"{STUDY}/links", json={"name": "team"}).json()["secret"]
        other = client.post("/api/tokens", json={"name": "program"}).json()["token"]
        guess = "a-guess-that-is-no-token-of-this-server"
        with httpx.Client(verify=False, base_url=live.url) as person:
            session = person.post("/signin", data={"token": live.token}).cookies["duels_session"]
            person.get("/")
            person.get(f"/signin?token={guess}")
            person.post("/signin", data={"token": guess})
            person.get("/api/studies", headers={"Authorization": f"Bearer {guess}"})
            person.post(f"{STUDY}/ask", headers={"Authorization": f"Bearer {other}"}, content=b"{")
        with httpx.Client(verify=False, base_url=live.url) as voter:
            voter.get(f"/vote/{link}")
            question = voter.post(f"/api/vote/{link}/ask").json()
            name = voter.cookies["duels_ballot"]
            voter.post(f"/api/vote/{link}/tell", json={"duel": question["duel"], "winner": "a"})
            voter.post(f"/api/vote/{link}/tell", json={"duel": 10**6, "winner": "a"})
            voter.post(f"/api/vote/{link}/undo")
            voter.get("/output/nothing")
            voter.get(f"/vote/{link}/nowhere")
            voter.get(f"/api/vote/{guess}")
        secrets |= {link, other, guess, session, name}
        listener = Listener(live.url, live.token)
        listener.wait_for(1)
        assert httpx.get(f"{live.url}/healthz", verify=False).json()["status"] == "ok"
        assert httpx.get(f"{live.url}/metrics", verify=False).status_code == 401
        text = client.get("/metrics").text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    counted = {
        (sample.labels["route"], sample.labels["method"], sample.labels["status"]): sample.value
        for sample in samples
        if sample.name == "duels_requests_total"
    }
    assert counted["/api/studies/{study}/tell", "POST", "200"] == 1
    assert counted["/api/vote/{link}/tell", "POST", "200"] == 1
    assert counted["/api/studies/{study}/ask", "POST", "422"] == 1
    assert [sample.value for sample in samples if sample.name == "duels_streams"] == [1]
    assert live.stop() == 0
    assert (listener.events[-1], listener.ended) == ("bye", "whole")
    lines = [json.loads(line) for line in live.log]
    requests = [line for line in lines if line["event"] == "request"]
    assert all({"method", "route", "status", "ms", "time", "level"} <= set(line) for line in requests)
    assert {"/vote/{link}", "/signin", "/api/studies/{study}/stream"} <= {line["route"] for line in requests}
    told = text + "".join(live.log) + "".join(line for line in live.out if "/signin#" not in line)
    assert [secret for secret in secrets if secret in told] == []


@pytest.mark.deep
def test_a_clock_that_jumps(storage, admin, app, study, monkeypatch):
    """A year ahead and back: questions, answers and verdicts go on; sessions end by their date and not before."""
    jump = [0.0]
    monkeypatch.setattr(base, "clock", lambda: time.time() + jump[0])
    link = admin.post(f"{study}/links", json={}).json()["secret"]
    with inside(app) as url, httpx.Client(verify=False, base_url=url) as person:
        assert person.post("/signin", data={"token": admin.token}).status_code == 303
        listener = Listener(url, admin.token)
        answers = 0
        for jump[0] in (0.0, SESSION_LASTS - 60, 365 * 86400.0, 0.0, -365 * 86400.0, 0.0):
            signed_in = jump[0] < SESSION_LASTS
            assert person.get("/api/studies").status_code == (200 if signed_in else 401)
            (stays_open,) = ask(admin)
            vote(admin)
            question = person.post(f"/api/vote/{link}/ask").json()
            voted = person.post(f"/api/vote/{link}/tell", json={"duel": question["duel"], "winner": "a"})
            assert voted.status_code == 200, voted.text
            answers += 2
            listener.wait_for(answers)
            assert admin.get(f"{study}/verdict").status_code == 200
            tell(admin, stays_open["id"], "right")
            answers += 1
    again = load_study("search", Storage(storage.url))
    assert again.check() == len(again.events())
    assert len(again._log.history().answered) == answers


def test_a_server_runs_no_file_that_its_database_names(serve, tmp_path):
    """Whoever can write to the database chooses the file. With an option, it must be the one that was there before."""
    mine, ran = tmp_path / "mine.py", tmp_path / "ran"
    example = (Path(__file__).parents[2] / "examples" / "my_policy.py").read_text()
    mine.write_text(f"{example}\n\nopen({str(ran)!r}, 'w').close()\n")
    url = f"sqlite:///{tmp_path}/duels.db"
    create_study(["a", "b", "c"], "search", url, str(mine))
    ran.unlink()

    def ask(*options):
        live = serve(url, *options, environment={"DUELS_TOKEN": TOKEN})
        live.token = TOKEN
        with live.client() as client:
            said = client.post(f"{STUDY}/ask", json={})
            assert client.get(f"{STUDY}/results").status_code == 200
        assert live.stop() == 0
        return said.status_code, said.text

    status, words = ask()
    assert (status, "this server does not run" in words, ran.exists()) == (409, True, False)
    assert ask("--policy-files")[0] == 200
    assert ran.exists()
    ran.unlink()
    mine.write_text(mine.read_text() + "# changed\n")
    status, words = ask("--policy-files")
    assert (status, "is not the one that the study was created with" in words, ran.exists()) == (409, True, False)
