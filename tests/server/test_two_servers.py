"""Servers under load that are ended, killed, doubled, or lose their database: what they acknowledged is there."""

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest
import sqlalchemy as sa

from duels.server import keys
from duels.storage.storage import Storage
from duels.study.create import load_study

STUDY = "/api/studies/search"
ARMS = [f"ranker-{k}" for k in range(8)]
TOKEN = {"DUELS_TOKEN": "a-token-that-somebody-chose-for-tests"}


def until(true, patience=60.0):
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def begin(client, name="search"):
    assert client.post("/api/studies", json={"name": name, "arms": ARMS}).status_code == 201


def ask(client):
    response = client.post(f"{STUDY}/ask", json={})
    assert response.status_code == 200, response.text
    return response.json()["duels"][0]["id"]


def tell(client, duel, winner="left"):
    return client.post(f"{STUDY}/tell", json={"duel": duel, "winner": winner})


def vote(client):
    assert tell(client, ask(client)).status_code == 200


class Load:
    """Clients that ask and tell, each on a separate connection, until the server ends it or they are told to."""

    def __init__(self, *lives, clients=32, streams=0):
        self.acknowledged = {}  # duel → answer
        self.sent = {}  # answers that were on the way to the server
        self.cut = []  # answers of which only a part came
        self.statuses = Counter()
        self.followed = []  # all that came on each stream
        self.ending = False
        self._work = [(self._vote, lives[k % len(lives)]) for k in range(clients)]
        self._work += [(self._follow, lives[k % len(lives)]) for k in range(streams)]

    async def _run(self):
        await asyncio.gather(*(work(live) for work, live in self._work))
        await asyncio.sleep(0.05)  # for transports to close

    async def _vote(self, live):
        writer = None
        try:
            reader, writer = await asyncio.open_connection(*address(live))
            while not self.ending:
                asked = await self._post(reader, writer, live, "ask", {})
                if asked is None:
                    continue
                duel, left, right = (asked["duels"][0][key] for key in ("id", "left", "right"))
                winner = "tie" if left == right else "left" if left < right else "right"
                self.sent[duel] = winner
                if await self._post(reader, writer, live, "tell", {"duel": duel, "winner": winner}):
                    self.acknowledged[duel] = winner
        except asyncio.IncompleteReadError as error:
            self.cut += [error.partial] if error.partial else []
        except ConnectionError:
            pass
        finally:
            if writer is not None:
                writer.close()

    async def _post(self, reader, writer, live, action, body):
        """The answer, or None if the server could not give one; then a moment has passed."""
        content = json.dumps(body).encode()
        writer.write(request(live, "POST", action, f"Content-Length: {len(content)}\r\n") + content)
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        try:
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            answer = json.loads(await reader.readexactly(length))
        except (ConnectionError, asyncio.IncompleteReadError):
            self.cut.append(head)
            raise
        self.statuses[status] += 1
        if status == 200:
            return answer
        assert status == 503, answer
        await asyncio.sleep(0.05)
        return None

    async def _follow(self, live):
        reader, writer = await asyncio.open_connection(*address(live))
        writer.write(request(live, "GET", "stream"))
        self.followed.append(await reader.read(-1))
        writer.close()

    @contextmanager
    def under_way(self, votes=200):
        """From when so many votes are acknowledged; at the end every client has stopped."""
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(asyncio.run, self._run())
            try:
                until(lambda: len(self.acknowledged) >= votes or running.done())
                yield
            except BaseException:
                for _, live in self._work:
                    live.process.kill()  # those who follow a stream would wait for ever
                raise
            finally:
                self.ending = True
            running.result(60)


def address(live):
    host, _, port = live.url.removeprefix("http://").partition(":")
    return host, int(port)


def request(live, method, action, more=""):
    head = f"{method} {STUDY}/{action} HTTP/1.1\r\nHost: {address(live)[0]}\r\nAuthorization: Bearer {live.token}\r\n"
    return f"{head}{more}\r\n".encode()


def answers_in(url):
    """The answers of the log, by duel: it must be in order, each question and answer there once."""
    study = load_study("search", Storage(url))
    entries = study.events()
    assert study.check() == len(entries)
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert max(Counter((entry.kind, entry.duel) for entry in entries if entry.duel is not None).values()) == 1
    return {entry.duel: entry.answer for entry in entries if entry.kind == "tell"}


def nothing_lost(load, url):
    found = answers_in(url)
    assert {duel: found.get(duel) for duel in load.acknowledged} == load.acknowledged
    assert {duel: load.sent.get(duel) for duel in found} == found


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_graceful_end_answers_all_that_it_took(serve, how):
    live = serve()
    with live.client() as client:
        begin(client)
    load = Load(live, streams=20)
    with load.under_way():
        started = time.monotonic()
        assert live.stop(how) == 0
        assert time.monotonic() - started < 8
    assert load.cut == []
    assert set(load.statuses) == {200}
    assert len(load.followed) == 20
    for stream in load.followed:
        assert stream.endswith(b"event: bye\ndata: {}\n\n\r\n0\r\n\r\n")
    assert answers_in(live.storage) == load.acknowledged, "what was written was acknowledged"
    assert not [line for line in live.log if "Traceback" in line or '"error"' in line]


def test_killed_under_load_on_sqlite(serve):
    live = serve()
    with live.client() as client:
        begin(client)
    load = Load(live)
    with load.under_way():
        assert live.stop(signal.SIGKILL) == -signal.SIGKILL
    nothing_lost(load, live.storage)
    again = serve(live.storage)
    again.token = live.token
    with again.client() as client:
        found, after = [], 0
        while after is not None:
            page = client.get(f"{STUDY}/events", params={"after": after}).json()
            found, after = found + page["events"], page["next"]
        told = {event["duel"]: event["answer"] for event in found if event["kind"] == "tell"}
        assert {duel: told.get(duel) for duel in load.acknowledged} == load.acknowledged
        vote(client)
        assert client.get(STUDY).json()["answers"] == len(told) + 1


@pytest.mark.deep
def test_one_of_two_killed_under_load_on_postgres(serve, postgres):
    one, two = serve(postgres, environment=TOKEN), serve(postgres, environment=TOKEN)
    with two.client() as client:
        begin(client)
    load = Load(one, two)
    with load.under_way():
        assert one.stop(signal.SIGKILL) == -signal.SIGKILL
        before = len(load.acknowledged)
        until(lambda: len(load.acknowledged) > before + 50)
    assert set(load.statuses) == {200}
    nothing_lost(load, postgres)
    with two.client() as client:
        vote(client)
    assert two.stop() == 0


def test_two_servers_on_one_postgres_are_one(serve, postgres):
    lives = one, two = serve(postgres, environment=TOKEN), serve(postgres, environment=TOKEN)
    with one.client() as here, two.client() as there:
        begin(here)
        duel = ask(here)
        assert there.get(f"{STUDY}/duels/{duel}").json()["id"] == duel
        assert tell(there, duel).status_code == 200
        assert tell(here, duel).json() == {"duel": duel, "answer": "left"}
        assert tell(here, duel, "right").status_code == 409
        load = Load(*lives, clients=16)
        with load.under_way():
            pass
        assert set(load.statuses) == {200}
        found = answers_in(postgres)
        assert found == load.acknowledged | {duel: "left"}
        boards = [client.get(f"{STUDY}/leaderboard").json() for client in (here, there)]
        assert boards[0] == boards[1]
        assert here.get(STUDY).json() == there.get(STUDY).json()
        assert there.get(STUDY).json()["answers"] == len(found)


def test_revoked_and_deleted_at_one_is_so_at_the_other(serve, postgres):
    one, two = serve(postgres, environment=TOKEN), serve(postgres, environment=TOKEN)
    with one.client() as here, two.client() as there:
        begin(here)
        made = here.post("/api/tokens", json={"name": "program"}).json()
        program = httpx.Client(
            verify=False, base_url=two.url, headers={"Authorization": f"Bearer {made['token']}"}, timeout=30
        )
        duel, left_open = ask(program), ask(program)
        assert tell(program, duel).status_code == 200
        assert here.delete(f"/api/tokens/{made['id']}").status_code == 204
        assert tell(program, left_open).status_code == 401
        assert program.post(f"{STUDY}/ask", json={}).status_code == 401
        assert program.get(STUDY).status_code == 401
        program.close()

        link = here.post(f"{STUDY}/links", json={}).json()
        vote_at = f"/api/vote/{link['secret']}"
        with httpx.Client(verify=False, base_url=two.url, timeout=30) as voter:
            question = voter.post(f"{vote_at}/ask").json()
            assert question["duel"] is not None
            assert here.delete(f"{STUDY}/links/{link['id']}").status_code == 204
            answer = {"duel": question["duel"], "winner": "a"}
            assert voter.post(f"{vote_at}/tell", json=answer).status_code == 404
            assert voter.post(f"{vote_at}/ask").status_code == 404
            assert voter.get(vote_at).status_code == 404
            assert voter.get(f"/vote/{link['secret']}").status_code == 404

        assert tell(there, left_open).status_code == 200
        assert here.delete(STUDY).status_code == 204
        assert there.post(f"{STUDY}/ask", json={}).status_code == 404
        assert tell(there, left_open).status_code == 404
        assert there.get(STUDY).status_code == 404
        begin(here)
        assert ask(there) == 0, "a study made anew begins anew"


def unavailable(response):
    """Why is said in the log only."""
    assert response.status_code == 503, response.text
    assert response.json()["error"]["kind"] == "storage"
    assert "the database is unavailable" in response.json()["error"]["message"]
    assert int(response.headers["retry-after"]) > 0


@pytest.fixture
def cluster(postgres_server):
    """A PostgreSQL of this test's own, to stop and to start: its URL and what runs pg_ctl."""
    binaries = Path((postgres_server / "data" / "postmaster.opts").read_text().split()[0]).parent
    folder = Path(tempfile.mkdtemp(prefix="duels-own-", dir="/tmp"))
    as_user = []
    if os.geteuid() == 0:  # initdb refuses root
        shutil.chown(folder, "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]
    run = {"check": True, "capture_output": True, "cwd": "/tmp", "timeout": 90}
    data = folder / "data"
    subprocess.run([*as_user, binaries / "initdb", "-N", "-D", data, "-U", "postgres", "-A", "trust"], **run)

    def control(action):
        options = ["-l", folder / "log", "-o", f"-c listen_addresses= -k {folder}"] if action == "start" else []
        mode = ["-m", "immediate"] if action == "stop" else []
        subprocess.run([*as_user, binaries / "pg_ctl", "-D", data, "-w", *options, *mode, action], **run)

    control("start")
    yield f"postgresql://postgres@/postgres?host={folder}", control
    control("stop")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.deep
def test_a_database_that_goes_and_comes_back(serve, cluster):
    url, control = cluster
    live = serve(url)
    with live.client() as client:
        begin(client)
        load = Load(live, clients=8, streams=2)
        with load.under_way():
            control("stop")
            for path in (f"{STUDY}/leaderboard", "/api/studies"):
                unavailable(client.get(path))
            until(lambda: client.get("/healthz").status_code == 503, 5)  # a check counts for a second
            unavailable(client.post(f"{STUDY}/ask", json={}))
            unavailable(client.post(f"{STUDY}/tell", json={"duel": 0, "winner": "left"}))
            seen = len(load.acknowledged)
            control("start")
            until(lambda: client.get("/healthz").status_code == 200, 10)
            until(lambda: len(load.acknowledged) > seen + 50)
            load.ending = True
            time.sleep(1)  # for streams to tell of it
            assert live.stop() == 0
        assert set(load.statuses) == {200, 503}
    last = [json.loads(stream.split(b"data: ")[-2].partition(b"\n")[0]) for stream in load.followed]
    assert [state["answers"] > seen for state in last] == [True, True]
    nothing_lost(load, url)


def test_a_full_disk_is_said_and_with_room_it_goes_on(storage, admin, caplog):
    room = []
    sa.event.listen(
        storage.engine,
        "connect",
        lambda connection, _: connection.execute(f"PRAGMA max_page_count={room[0]}") if room else None,
    )
    begin(admin)
    vote(admin)
    with storage.lock:
        room.append(storage.connection().exec_driver_sql("PRAGMA page_count").scalar() + 6)
        storage.release()
    told, response = [0], None
    for _ in range(2000):
        response = admin.post(f"{STUDY}/ask", json={})
        if response.status_code != 200:
            break
        duel = response.json()["duels"][0]["id"]
        response = admin.post(f"{STUDY}/tell", json={"duel": duel, "winner": "right"})
        if response.status_code != 200:
            break
        told.append(duel)
    unavailable(response)
    assert "the disk is full" in caplog.text
    unavailable(admin.post(f"{STUDY}/import", content=b"left,right,winner\n" + b"ranker-0,ranker-1,left\n" * 3000))
    assert admin.get(f"{STUDY}/leaderboard").status_code == 200
    answers = answers_in(storage.url)
    assert list(answers) == told
    room.clear()
    with storage.lock:
        storage.release()
    vote(admin)
    assert len(answers_in(storage.url)) == len(told) + 1


@pytest.mark.deep
def test_a_database_that_another_process_holds(serve):
    """Its lock is waited for, but not for long; a request that waits for it at the end is answered too."""
    live = serve()
    with live.client() as client, ThreadPoolExecutor(1) as pool:
        begin(client)
        duel = ask(client)
        holder = sqlite3.connect(live.storage.removeprefix("sqlite:///"), isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        unavailable(tell(client, duel))
        assert "cannot be written" in client.get("/healthz").json()["error"]["message"]
        assert client.get(STUDY).json()["open"] == 1
        holder.execute("ROLLBACK")
        until(lambda: client.get("/healthz").status_code == 200, 5)
        assert tell(client, duel).status_code == 200
        holder.execute("BEGIN IMMEDIATE")
        late = pool.submit(client.post, f"{STUDY}/ask", json={})
        time.sleep(0.3)
        assert live.stop() == 0
        unavailable(late.result(60))
        assert "locked by others" in "".join(live.log)
        holder.close()
    assert answers_in(live.storage) == {duel: "left"}


def test_a_database_that_cannot_be_written(storage, admin, caplog):
    begin(admin)
    with storage.lock:
        storage.connection().exec_driver_sql("PRAGMA query_only=ON")
    unavailable(admin.post(f"{STUDY}/ask", json={}))
    assert "read-only" in caplog.text
    vote(admin)  # by another connection
    assert answers_in(storage.url) == {0: "left"}


def test_servers_that_start_at_once_have_one_token(postgres, monkeypatch):
    """Each looks for the token of DUELS_TOKEN before any has written it."""
    stores = [Storage(postgres) for _ in range(4)]
    ready, made, look = threading.Barrier(len(stores)), [], keys._find_keys

    def look_and_wait(connection, chosen):
        found = look(connection, chosen)
        if not found:
            ready.wait(20)
        return found

    def start(store):
        made.append(keys.make_key(store, "admin", "DUELS_TOKEN", secret="a token of at least 20 characters")[0])

    monkeypatch.setattr(keys, "_find_keys", look_and_wait)
    threads = [threading.Thread(target=start, args=(store,), daemon=True) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(made) == len(stores)
    assert len({key.id for key in made}) == 1
    for store in stores:
        store.close()
