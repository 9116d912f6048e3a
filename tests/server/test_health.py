"""What `/healthz` says of writing, and a server that recovers by itself when its database does."""

import resource
import shutil
import sqlite3
import subprocess
import threading
import time
from contextlib import closing, contextmanager, suppress

import httpx2 as httpx
import pytest
import sqlalchemy as sa

import duels
from duels.errors import StorageError
from duels.server import app
from duels.server.app import HealthCheck
from duels.server.keys import make_key
from duels.storage.database import Probe
from duels.storage.storage import Storage

STUDY = "/api/studies/search"


def until(true, patience=20.0):
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


def begin(client, name="search"):
    made = client.post("/api/studies", json={"name": name, "arms": ["bm25", "dense", "hybrid"]})
    assert made.status_code == 201, made.text


def vote(client):
    asked = client.post(f"{STUDY}/ask", json={})
    if asked.status_code != 200:
        return asked.status_code
    return client.post(f"{STUDY}/tell", json={"duel": asked.json()["duels"][0]["id"], "winner": "left"}).status_code


def answers(client):
    return client.get(STUDY).json()["answers"]


def healthy(live):
    return httpx.get(f"{live.url}/healthz", verify=False).status_code == 200


def file_of(live):
    return live.storage.removeprefix("sqlite:///")


def test_writing_that_fails_is_said_and_so_is_that_it_works_again(serve):
    """The server's process may not make files larger: every write to a database fails, as on a full disk."""
    live = serve()
    with live.client() as client:
        begin(client)
        assert vote(client) == 200
        assert healthy(live)
        _, most = resource.prlimit(live.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        assert vote(client) == 503
        until(lambda: not healthy(live))
        said = httpx.get(f"{live.url}/healthz", verify=False).json()["error"]
        assert said["kind"] == "storage"
        assert "cannot be written" in said["message"]
        assert file_of(live) not in said["message"]
        assert client.get(f"{STUDY}/leaderboard").status_code == 200
        resource.prlimit(live.process.pid, resource.RLIMIT_FSIZE, (most, most))
        until(lambda: healthy(live))
        assert vote(client) == 200
        assert answers(client) == 2


@pytest.mark.deep
def test_writing_that_fails_is_noticed_without_anybody_writing(serve):
    live = serve()
    with live.client() as client:
        begin(client)
    assert healthy(live)
    resource.prlimit(live.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    until(lambda: not healthy(live), app.RECENT_WRITE + 20)


@pytest.fixture
def small_disk(tmp_path):
    """A folder with room for 600 KB."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", folder], capture_output=True)
    if made.returncode:
        pytest.skip("this account cannot mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk(serve, small_disk):
    live = serve(f"sqlite:///{small_disk}/duels.db")
    with live.client() as client:
        begin(client)
        assert vote(client) == 200
        with open(small_disk / "ballast", "wb", buffering=0) as file, suppress(OSError):
            while file.write(b"0" * 4096):
                pass
        told = 1
        while vote(client) == 200:
            told += 1
        until(lambda: not healthy(live))
        time.sleep(2 * app.CACHE_SECONDS)
        assert not healthy(live)
        (small_disk / "ballast").unlink()
        until(lambda: healthy(live))
        assert vote(client) == 200
        assert answers(client) == told + 1
        assert duels.load_study("search", Storage(live.storage)).check()


@pytest.mark.deep
def test_a_file_that_is_moved_away_and_back(serve, tmp_path):
    live = serve()
    file, away = file_of(live), str(tmp_path / "away.db")
    with live.client() as client:
        begin(client)
        assert vote(client) == 200
        assert healthy(live)
        shutil.move(file, away)
        assert vote(client) == 503
        until(lambda: not healthy(live))
        assert file not in httpx.get(f"{live.url}/healthz", verify=False).text
        assert client.get("/api/studies").status_code == 503
        shutil.move(away, file)
        until(lambda: healthy(live))
        assert vote(client) == 200
        assert answers(client) == 2
    assert duels.load_study("search", Storage(live.storage)).check() == 5


@pytest.mark.deep
def test_a_health_check_alone_opens_a_file_that_came_back(serve, tmp_path):
    """A balancer sends no requests to a server that is not healthy."""
    live = serve()
    with live.client() as client:
        begin(client)
    shutil.move(file_of(live), tmp_path / "away.db")
    until(lambda: not healthy(live))
    shutil.move(tmp_path / "away.db", file_of(live))
    until(lambda: healthy(live))


def backed_up(file, copy):
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


@pytest.mark.parametrize("how", ["rename", "copy"])
def test_a_back_up_in_the_place_of_the_file(serve, tmp_path, how):
    live = serve()
    file, copy, old = file_of(live), tmp_path / "copy.db", tmp_path / "old.db"
    with live.client() as client:
        begin(client)
        assert vote(client) == 200
        backed_up(file, copy)
        for _ in range(5):
            assert vote(client) == 200
        shutil.move(file, old)
        if how == "rename":
            shutil.move(copy, file)
        else:
            shutil.copy(copy, file)
        until(lambda: vote(client) == 200)
        assert answers(client) == 2
        until(lambda: healthy(live))
    assert duels.load_study("search", Storage(live.storage)).check() == 5
    assert duels.load_study("search", Storage(f"sqlite:///{old}")).check() == 13  # with all that was written to it
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_what_is_known_of_the_old_file_is_not_used_on_another(serve, tmp_path):
    """Both have a first study and a first token of the same numbers."""
    other = Storage(f"sqlite:///{tmp_path}/other.db")
    strange = duels.create_study(["x", "y"], "strange", other)
    make_key(other, "admin", "theirs")
    other.close()
    live = serve()
    with live.client() as client:
        begin(client)
        assert vote(client) == 200
        shutil.move(file_of(live), tmp_path / "away.db")
        shutil.move(tmp_path / "other.db", file_of(live))
        time.sleep(1.5)
        until(lambda: healthy(live))
        assert client.post(f"{STUDY}/ask", json={}).status_code == 401  # the token is not one of this file's
        assert client.get(STUDY).status_code == 401
    found = duels.load_study("strange", Storage(live.storage))
    assert [event.kind for event in found.events()] == ["create"]
    assert found._log.row == strange._log.row


def test_a_study_of_the_old_file_never_writes_to_another_of_its_number(tmp_path):
    url, file = f"sqlite:///{tmp_path}/duels.db", tmp_path / "duels.db"
    old = duels.create_study(["a", "b"], "old", url)
    new = duels.create_study(["x", "y"], "new", f"sqlite:///{tmp_path}/new.db")
    assert old._log.id == new._log.id
    new._log.storage.close()
    shutil.move(file, tmp_path / "away.db")
    shutil.move(tmp_path / "new.db", file)
    time.sleep(1.1)
    for _ in range(2):  # also when the other one is known already
        with pytest.raises(duels.errors.StorageError, match="no longer exists"):
            old.ask()
        assert duels.load_study("new", old._log.storage).arms == ["x", "y"]
        with pytest.raises(duels.errors.StorageError, match="no longer exists"):
            old.leaderboard()
    assert old._log.storage.generation == 1
    assert len(duels.load_study("new", Storage(url)).events()) == 1


@pytest.mark.parametrize("content", [b"", b"this is a text file, and no database " * 200])
def test_another_file_that_is_no_database_is_left_alone(tmp_path, content):
    url, file = f"sqlite:///{tmp_path}/duels.db", tmp_path / "duels.db"
    study = duels.create_study(["a", "b"], "study", url)
    shutil.move(file, tmp_path / "away.db")
    file.write_bytes(content)
    time.sleep(1.1)
    with pytest.raises(duels.errors.StorageError):
        study.ask()
    assert file.read_bytes() == content
    file.unlink()
    shutil.move(tmp_path / "away.db", file)
    assert study.ask().id == 0


def test_a_wal_of_the_old_file_is_not_taken_for_one_of_the_new(tmp_path):
    """It cannot be completed where nobody holds it open any more; then the file is refused rather than spoilt."""
    url, file = f"sqlite:///{tmp_path}/duels.db", tmp_path / "duels.db"
    study = duels.create_study(["a", "b"], "study", url)
    study.ask()
    with closing(sqlite3.connect(file)) as reader:  # another process, which keeps the WAL from being removed
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM studies").fetchall()
        study.ask()
        backed_up(file, tmp_path / "copy.db")
        study._log.storage.release()
        shutil.move(tmp_path / "copy.db", file)
        before = file.read_bytes()
        time.sleep(1.1)
        with pytest.raises(duels.errors.StorageError, match="belongs to the one that was there before"):
            study.ask()
        assert file.read_bytes() == before


def test_the_probe_writes_to_the_disk_and_changes_nothing(tmp_path):
    url = f"sqlite:///{tmp_path}/duels.db"
    study = duels.create_study(["a", "b"], "study", url)
    wal = tmp_path / "duels.db-wal"
    before, content = wal.stat().st_size, wal.read_bytes()
    probe = Probe(url, 1.0)
    probe.read()
    assert wal.read_bytes() == content
    probe.write()
    assert wal.stat().st_size > before or wal.read_bytes() != content
    assert study.check() == 1
    for side in tmp_path.glob("duels.db*"):
        side.unlink()
    for look in (probe.read, probe.write):
        with pytest.raises(sa.exc.OperationalError):
            look()
    assert not list(tmp_path.glob("duels.db*"))


def test_health_waits_for_nobody_who_holds_the_storage(storage, admin):
    begin(admin)
    asked, held = threading.Event(), threading.Event()

    def hold():
        with storage.lock:
            held.set()
            asked.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(20)
    began = time.monotonic()
    assert admin.get("/healthz").json()["status"] == "ok"
    assert time.monotonic() - began < 10
    asked.set()
    holder.join(20)


def test_a_transaction_under_way_is_no_trouble(storage, admin):
    """A long import by this server holds the database's lock."""
    begin(admin)
    with closing(sqlite3.connect(storage.url.removeprefix("sqlite:///"), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert admin.get("/healthz").status_code == 200


@contextmanager
def counted(monkeypatch, check):
    looks, look = [], check._check

    def looking():
        looks.append(threading.current_thread())
        return look()

    monkeypatch.setattr(check, "_check", looking)
    yield looks


def test_many_who_ask_cost_one_look_a_second(storage, monkeypatch):
    import asyncio

    check = HealthCheck(storage)
    with counted(monkeypatch, check) as looks:

        async def ask():
            return await asyncio.gather(*(check.trouble() for _ in range(500)))

        for _ in range(3):
            assert asyncio.run(ask()) == [None] * 500
        assert len(looks) == 1


def test_a_database_that_hangs_is_said_in_time(storage, monkeypatch):
    import asyncio

    check, hang = HealthCheck(storage), threading.Event()
    monkeypatch.setattr(check, "_check", lambda: hang.wait(30) and None)

    async def ask():
        began = time.monotonic()
        return await check.trouble(), time.monotonic() - began

    said, took = asyncio.run(ask())
    assert (said, 0.9 * app.TIMEOUT <= took < app.TIMEOUT + 3) == (app.SILENT, True)
    said, took = asyncio.run(ask())  # the look that hangs is not waited for again, nor is there another
    assert (said, took < 1.0) == (app.SILENT, True)
    hang.set()
    until(lambda: asyncio.run(ask())[0] is None)


def test_the_probe_on_postgres(postgres, postgres_server):
    """A connection that was lost is not trouble; a lock that somebody holds is not waited for long."""
    storage = Storage(postgres)
    duels.create_study(["a", "b"], "study", storage)
    probe = Probe(postgres, 0.2)
    probe.write()
    with storage.engine.connect() as other:
        other.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND datname = current_database()"
        )
        probe.read()
        probe.write()
        other.exec_driver_sql("BEGIN")
        other.exec_driver_sql("LOCK TABLE alembic_version IN EXCLUSIVE MODE")
        with pytest.raises(sa.exc.OperationalError, match="lock timeout"):
            probe.write()
        check = HealthCheck(storage)
        assert check._check() is None
        storage.write_failure = "a commit failed"
        assert check._check() == app.UNWRITABLE
        other.exec_driver_sql("ROLLBACK")
        assert check._check() is None
        assert storage.write_failure is None
    probe.engine.dispose()
    check._probe.engine.dispose()


def test_a_write_that_failed_counts_more_than_a_small_one_that_succeeds(tmp_path):
    """On a nearly full disk; and where new connections cannot write, but the one in use can."""
    storage = Storage(f"sqlite:///{tmp_path}/duels.db")
    study, check = duels.create_study(["a", "b"], "study", storage), HealthCheck(storage)
    assert check._check() is None
    storage._note_failure(StorageError("the disk is full"))
    assert check._check() == app.UNWRITABLE
    storage.failed_at -= app.RECENT_FAILURE
    assert check._check() is None
    assert storage.write_failure is None
    check._found = app.UNWRITABLE
    check._probe.write = lambda: pytest.fail("the last vote says that it works")
    study.ask()
    assert check._check() is None
    storage.close()
