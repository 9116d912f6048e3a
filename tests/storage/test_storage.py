"""Durability: kills, many writers, sync before acknowledgement, full disks, newer and read-only databases."""

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
import sqlalchemy as sa

from duels.errors import StorageError
from duels.storage import tables
from duels.storage.database import HEAD
from duels.storage.database_errors import trouble
from duels.storage.storage import Storage, Write
from duels.study.create import create_study, delete_study, list_studies, load_study

BOTH = ["sqlite", "postgresql"]
# Where SQLite shows the same, PostgreSQL takes its turn in `make deep`.
SQLITE = pytest.mark.parametrize("url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)], indirect=True)


@pytest.fixture(params=BOTH)
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/duels.db"
    return request.getfixturevalue("postgres")


TELLERS = """
import json, os, sys
from duels.study.create import load_study
url = sys.argv[1]
for line in sys.stdin:
    files, pids = json.loads(line), []
    for number, file in enumerate(files):
        pids.append(os.fork())
        if pids[-1] == 0:
            study = load_study("study", url)
            said = open(file, "a", buffering=1)
            while True:
                duel = study.ask()
                study.tell(duel, "left", voter=f"voter{number}")
                print(duel.id, file=said)      # acknowledged
    print(json.dumps(pids), flush=True)
    for _ in files:
        os.wait()
    print("all ended", flush=True)
"""


class Tellers:
    """Processes that ask and tell, forked from one that has imported everything."""

    def __init__(self, url, tmp_path):
        self._folder = tmp_path
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self._parent = subprocess.Popen([sys.executable, "-c", TELLERS, url], text=True, **pipes)

    def run(self, count, seconds, kill):
        """So many processes for that long; the ids each was acknowledged."""
        files = [self._folder / f"said{number}-{time.monotonic_ns()}" for number in range(count)]
        print(json.dumps([*map(str, files)]), file=self._parent.stdin, flush=True)
        pids = json.loads(self._parent.stdout.readline())
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not all(file.exists() and file.stat().st_size for file in files):
            time.sleep(0.02)
        time.sleep(seconds)
        for pid in pids:
            os.kill(pid, kill)
        assert self._parent.stdout.readline() == "all ended\n"
        return [[int(line) for line in file.read_text().split("\n")[:-1]] for file in files]

    def errors(self):
        """All that they said, at the end."""
        return self._parent.communicate(timeout=60)[1]


@pytest.fixture
def tellers(url, tmp_path):
    made = Tellers(url, tmp_path)
    yield made
    if made._parent.poll() is None:
        made.errors()


@pytest.mark.parametrize(("kills", "answers"), [(4, 100), pytest.param(30, 10_000, marks=pytest.mark.deep)])
def test_killed_at_random_moments_no_acknowledged_answer_is_lost(url, tellers, kills, answers):
    study = create_study(list("abcd"), "study", url)
    dice = random.Random(1)
    acknowledged = []
    while kills > 0 or len(acknowledged) < answers:
        said = tellers.run(2, dice.uniform(0.05, 0.4), signal.SIGKILL)
        acknowledged += [number for one in said for number in one]
        kills -= 1
    assert len(set(acknowledged)) == len(acknowledged)  # nobody was given the same duel
    found = Storage(url)
    kept = load_study("study", found)
    told = Counter(entry.duel for entry in kept.events() if entry.kind == "tell")
    assert set(acknowledged) <= set(told)
    assert set(told.values()) == {1}
    assert kept.check() == len(kept.events())
    assert study.tally().wins.sum() == kept.tally().wins.sum()


@pytest.mark.deep
def test_sixteen_processes_at_once(url, tellers):
    create_study(list("abcd"), "study", url)
    said = tellers.run(16, 2.0, signal.SIGTERM)
    errors = tellers.errors()
    assert "locked" not in errors
    assert "Error" not in errors
    # Everyone gets through, and nobody much more often: where SQLite waits by itself, some get a hundredth of others'.
    assert min(map(len, said)) > max(map(len, said)) / 10, [*map(len, said)]
    every = [number for one in said for number in one]
    assert len(set(every)) == len(every)
    kept = load_study("study", Storage(url))
    entries = kept.events()
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    told = Counter(entry.duel for entry in entries if entry.kind == "tell")
    assert set(every) <= set(told)
    assert max(told.values()) == 1
    assert kept.check() == len(entries)


def test_many_threads_share_commits(url, monkeypatch):
    study = create_study([f"m{k}" for k in range(6)], "study", url)
    commits = []
    transaction = Storage._transaction

    def counted(self):
        commits.append(1)
        return transaction(self)

    monkeypatch.setattr(Storage, "_transaction", counted)
    seen, failed = [], []

    def work(number):
        try:
            for _ in range(25):
                duel = study.ask(voter=f"v{number}")
                study.tell(duel, "left", voter=f"v{number}")
                seen.append(duel.id)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed
    assert sorted(seen) == list(range(400))
    assert len(commits) < 700  # of 800 writes
    assert study.check() == 801
    assert load_study("study", Storage(url)).tally().wins.sum() == study.tally().wins.sum()


def test_one_bad_write_does_not_spoil_the_others_of_its_commit(url):
    """An operation that is refused shares a commit with one that is not."""
    study = create_study(list("abc"), "study", url)
    duel = study.ask()
    study.tell(duel, "left")
    store = study._log.storage
    started, outcomes = threading.Event(), {}

    def slow(connection):
        started.set()
        time.sleep(0.3)

    def attempt(name, action):
        try:
            action()
            outcomes[name] = "done"
        except Exception as error:
            outcomes[name] = type(error).__name__

    first = threading.Thread(target=lambda: store.write(Write(slow)))
    first.start()
    assert started.wait(60)
    others = [
        threading.Thread(target=attempt, args=("ask", study.ask)),
        threading.Thread(target=attempt, args=("wrong", lambda: study.tell(duel, "right"))),
        threading.Thread(target=attempt, args=("arm", lambda: study.add_arm("d"))),
    ]
    for thread in others:
        thread.start()
    for thread in [first, *others]:
        thread.join(60)
    assert outcomes == {"ask": "done", "wrong": "Conflict", "arm": "done"}
    assert sorted(entry.kind for entry in study.events()) == ["add_arm", "ask", "ask", "create", "tell"]
    assert study.check() == 5


def test_a_study_that_is_gone_does_not_spoil_the_commit_of_another(url):
    gone, stays = create_study(list("abc"), "gone", url), create_study(list("abc"), "stays", url)
    delete_study("gone", Storage(url))
    store, started, outcomes = stays._log.storage, threading.Event(), {}

    def slow(connection):
        started.set()
        time.sleep(0.3)

    def attempt(name, action):
        try:
            outcomes[name] = action().id
        except Exception as error:
            outcomes[name] = str(error)

    threads = [threading.Thread(target=lambda: store.write(Write(slow)))]
    threads[0].start()
    assert started.wait(60)
    threads += [threading.Thread(target=attempt, args=(study.name, study.ask)) for study in (gone, stays)]
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert outcomes == {"gone": "study 'gone' was deleted", "stays": 0}


FORK = """
import os, sys
from duels.study.create import create_study
study = create_study(list("abc"), "study", sys.argv[1])
study.tell(study.ask(), "left")
child = os.fork()
if child == 0:
    try:
        study.tell(study.ask(), "right")
        os._exit(0)
    except BaseException:
        os._exit(1)
assert os.waitpid(child, 0)[1] == 0
study.tell(study.ask(), "left")
"""


@SQLITE
def test_a_forked_process_makes_its_own_connection(url):
    """In a process of its own: a fork of this one would inherit locks that other tests' threads hold."""
    done = subprocess.run([sys.executable, "-c", FORK, url], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    study = load_study("study", url)
    assert [entry.duel for entry in study.events() if entry.kind == "tell"] == [0, 1, 2]
    assert study.check() == 7


def test_ctrl_c_while_waiting_leaves_the_lead_to_another(url, monkeypatch):
    study = create_study(list("abc"), "study", url)
    store, started = study._log.storage, threading.Event()

    def slow(connection):
        started.set()
        time.sleep(0.5)

    leader = threading.Thread(target=lambda: store.write(Write(slow)))
    leader.start()
    assert started.wait(60)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    usual = signal.signal(signal.SIGALRM, lambda number, frame: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        with pytest.raises(KeyboardInterrupt):
            study.ask()
    finally:
        signal.signal(signal.SIGALRM, usual)
    leader.join(60)
    assert study.ask().id == 0
    assert len(study.events()) == 2


def test_the_database_itself_refuses_a_second_answer(url):
    study = create_study(list("abc"), "study", url)
    study.tell(study.ask(), "left")
    again = study._log.storage.read_events(study._log.storage.connection(), study._log.row.id, 2)[0]
    forged = (study._log.row.id, 4, *again[1:])
    with pytest.raises(StorageError, match="refused to store this twice"):
        study._log.storage.write(Write(lambda connection: study._log.storage.append(forged[0], [forged[1:]])))
    assert len(load_study("study", Storage(url)).events()) == 3


def test_a_failed_commit_is_nobody_s_answer(url, monkeypatch):
    """When the log cannot be written, the asker is told, and what the process knows is what the log says."""
    study = create_study(list("abc"), "study", url)
    study.ask()
    append = Storage.append

    def broken(self, study_id, new):
        append(self, study_id, new)
        raise sa.exc.OperationalError("INSERT", None, Exception("disk is full"))

    monkeypatch.setattr(Storage, "append", broken)
    for action in (study.ask, lambda: study.tell(0, "left"), lambda: study.add_arm("z")):
        with pytest.raises(StorageError, match="the disk is full"):
            action()
    monkeypatch.undo()
    assert [entry.kind for entry in study.events()] == ["create", "ask"]
    assert study.ask().id == 1
    study.tell(0, "left")
    assert study.check() == 4


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """By how SQLite syncs: the system calls for ten answers, with a mark written after each acknowledgement."""
    if shutil.which("strace") is None:
        pytest.fail("strace is not installed") if os.environ.get("DUELS_CI") else pytest.skip("strace is not installed")
    code = (
        "import os, sys\n"
        "from duels.storage import database\n"
        "plain = database._set_up_sqlite\n"
        "def set_up(connection, record):\n"
        "    plain(connection, record)\n"
        "    connection.execute('PRAGMA synchronous=' + pragma)\n"
        "database._set_up_sqlite = set_up\n"
        "from duels.study.create import create_study\n"
        "for pragma in ('FULL', 'OFF', 'NORMAL'):\n"
        "    study = create_study(['a', 'b', 'c'], 'study', f'sqlite:///{sys.argv[1]}/{pragma}-duels.db')\n"
        "    for k in range(10):\n"
        "        duel = study.ask()\n"
        "        os.write(2, b'MARK begin\\n')\n"
        "        study.tell(duel, 'left')\n"
        "        os.write(2, b'MARK acknowledged\\n')\n"
        "    study._log.storage.close()\n"
        "    os.write(2, b'MARK next\\n')\n"
    )
    folder = tmp_path_factory.mktemp("traced")
    command = ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync,write,pwrite64", "-o", str(folder / "strace")]
    done = subprocess.run([*command, sys.executable, "-c", code, folder], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    lines, found = (folder / "strace").read_text().splitlines(), {"FULL": [], "OFF": [], "NORMAL": []}
    parts = iter(found.values())
    part = next(parts)
    for line in lines:
        part.append(line)
        if "MARK next" in line:
            part = next(parts, [])
    return found


def synced_before_acknowledged(lines):
    """For each answer, whether the log file was written and then synced before it was acknowledged."""
    found, written, synced = [], False, False
    for line in lines:
        if "MARK begin" in line:
            written = synced = False
        elif "pwrite64" in line and "duels.db-wal" in line:
            written, synced = True, False
        elif re.search(r"f(data)?sync\(", line) and "duels.db-wal" in line and "unfinished" not in line:
            synced = True
        elif "MARK acknowledged" in line:
            found.append(written and synced)
    return found


def test_the_sync_to_disk_comes_before_every_acknowledgement(traced):
    assert synced_before_acknowledged(traced["FULL"]) == [True] * 10


@pytest.mark.parametrize("pragma", ["OFF", "NORMAL"])
def test_the_test_of_the_sync_can_fail(traced, pragma):
    found = synced_before_acknowledged(traced[pragma])
    assert len(found) == 10
    assert not all(found)


def test_sqlite_syncs_fully_in_write_ahead_mode(tmp_path):
    store = Storage(f"sqlite:///{tmp_path}/duels.db")
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_a_full_disk_is_said_and_nothing_acknowledged_is_lost(tmp_path):
    """`max_page_count` makes SQLite itself run out of room."""
    url = f"sqlite:///{tmp_path}/duels.db"
    study = create_study(list("abc"), "study", url)
    connection = study._log.storage.connection()
    pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 6}")
    told = []

    def go_on():
        for _ in range(2000):
            duel = study.ask()
            study.tell(duel, "left")
            told.append(duel.id)

    with pytest.raises(StorageError, match="cannot be written: the disk is full"):
        go_on()
    assert told
    kept = load_study("study", Storage(url))
    assert {entry.duel for entry in kept.events() if entry.kind == "tell"} >= set(told)
    kept.tell(kept.ask(), "left")  # with room again it goes on
    assert study.tell(kept.ask().id, "left") is None
    assert study.check() == len(study.events())


def test_a_newer_database_is_left_alone(url):
    create_study(list("abc"), "study", url)
    engine = Storage(url).engine
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(
        StorageError, match=f"newer version of Duels .its schema is 9999, this version knows up to {HEAD}"
    ):
        Storage(url)


def test_the_migrations_make_the_tables_that_the_code_uses(url):
    """The newest schema by migrations is the metadata of `storage.py`, column for column."""
    store = Storage(url)
    found = sa.MetaData()
    found.reflect(store.engine)
    for name, table in tables.metadata.tables.items():
        assert [column.name for column in found.tables[name].columns] == [column.name for column in table.columns]
        for column in table.columns:
            assert found.tables[name].columns[column.name].nullable == column.nullable, (name, column.name)
    unique = {tuple(sorted(one["column_names"])) for one in sa.inspect(store.engine).get_unique_constraints("events")}
    assert ("attempt", "duel", "kind", "study_id") in unique


def test_a_read_only_database_is_said(tmp_path):
    url = f"sqlite:///{tmp_path}/duels.db"
    create_study(list("abc"), "study", url)._log.storage.close()
    with sqlite3.connect(tmp_path / "duels.db") as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    study = load_study("study", Storage(f"sqlite:///file:{tmp_path}/duels.db?mode=ro&uri=true"))
    with pytest.raises(StorageError, match="read-only"):
        study.ask()
    assert study.arms == ["a", "b", "c"]


LOOK = """
import sys, duels
study = duels.load_study("study", sys.argv[1])
print(study.verdict().duels, len(study.votes()), len(duels.study.list_studies(sys.argv[1])))
try:
    study.ask()
except duels.errors.StorageError as error:
    print(error)
"""


def test_a_study_where_nothing_can_be_written_is_looked_at(tmp_path):
    """A folder and a file without permission to write, as on a medium or somebody else's disk."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv of util-linux is not installed")
    url = f"sqlite:///{tmp_path}/duels.db"
    study = create_study(list("abc"), "study", url)
    for duel in study.ask(3, allow_self=False):
        study.tell(duel, "left")
    study._log.storage.close()
    (tmp_path / "duels.db").chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        caps = "-dac_override,-dac_read_search"
        command = ["setpriv", f"--bounding-set={caps}", sys.executable, "-c", LOOK, url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    finally:
        tmp_path.chmod(0o755)
    assert done.returncode == 0, done.stderr
    counts, refusal = done.stdout.splitlines()
    assert counts == "3 3 1"
    assert "cannot be written: it is read-only" in refusal


@pytest.mark.parametrize(
    "table",
    [
        "CREATE TABLE recipes (name TEXT)",
        "CREATE TABLE studies (study_id INTEGER)",
        "CREATE TABLE alembic_version (version_num TEXT)",
    ],
)
def test_somebody_else_s_database_is_left_alone(url, table):
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql(table)
        if "alembic" in table:
            connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('v3.2.0.a')")
        before = sa.inspect(connection).get_table_names()
    if "recipes" in table and not url.startswith("sqlite"):
        assert list_studies(Storage(url)) == []  # a server's database may hold other tables beside ours
    else:
        with pytest.raises(
            StorageError, match=r"does not belong to Duels: it has the tables .*; expected a new or empty"
        ):
            Storage(url)
        assert sa.inspect(engine).get_table_names() == before
    engine.dispose()


def test_a_file_that_is_removed_or_replaced_is_missed(tmp_path):
    url, file = f"sqlite:///{tmp_path}/duels.db", tmp_path / "duels.db"
    study = create_study(list("abc"), "study", url)
    duel = study.ask()
    for side in tmp_path.glob("duels.db*"):
        side.unlink()
    with pytest.raises(StorageError, match="was removed or replaced while it was in use: nothing was written"):
        study.tell(duel, "left")
    again = create_study(list("xyz"), "study", url)  # a new file, not the one that is gone
    assert file.exists()
    assert again.arms == ["x", "y", "z"]
    with pytest.raises(StorageError, match="was removed or replaced"):
        study.ask()
    assert load_study("study", url).arms == ["x", "y", "z"]


def test_what_is_no_database_is_said(tmp_path):
    (tmp_path / "duels.db").write_text("this is a text file, and a long enough one to be looked at " * 20)
    with pytest.raises(StorageError, match="is not a SQLite database"):
        Storage(f"sqlite:///{tmp_path}/duels.db")
    with pytest.raises(StorageError, match="cannot be opened"):
        Storage(f"sqlite:///{tmp_path}/nowhere/duels.db")


def test_no_postgres_there(tmp_path):
    with pytest.raises(StorageError, match="does not answer as expected") as caught:
        Storage(f"postgresql://user:secret@/x?host={tmp_path}")
    assert "secret" not in str(caught.value)


OPEN = """
import os, sys, warnings
import alembic.command
from duels.storage.storage import Storage
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks where libraries have threads
for _ in range(6):
    if os.fork() == 0:
        os.write(1, f"{Storage(sys.argv[1]).is_sqlite}\\n".encode())
        break
else:
    assert [os.wait()[1] for _ in range(6)] == [0] * 6
"""


@SQLITE
def test_several_processes_may_make_the_tables_at_once(url):
    done = subprocess.run([sys.executable, "-c", OPEN, url], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{url.startswith('sqlite')}\n" * 6
    assert list_studies(url) == []


def test_a_connection_that_was_lost_is_made_anew(postgres):
    study = create_study(list("abc"), "study", postgres)
    study.tell(study.ask(), "left")
    with Storage(postgres).engine.connect() as other:
        other.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND datname = current_database()"
        )
    with pytest.raises(StorageError):
        study.ask()
    study.tell(study.ask(), "right")  # the next one goes through
    assert study.check() == len(study.events())


def test_the_log_is_plain_data(tmp_path):
    url = f"sqlite:///{tmp_path}/duels.db"
    study = create_study(["a", "b"], "study", url)
    study.tell(study.ask(), "tie", voter="ann")
    rows = sqlite3.connect(tmp_path / "duels.db").execute("SELECT kind, answer, voter, note FROM events").fetchall()
    assert [row[0] for row in rows] == ["create", "ask", "tell"]
    assert json.loads(rows[0][3]) == {"arms": ["a", "b"]}
    assert rows[2][1:3] == ("tie", "ann")
    assert os.path.exists(tmp_path / "duels.db")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("disk I/O error", "is the disk full, or failing?"),
        ("database or disk is full", "the disk is full"),
        ("could not extend file: No space left on device", "the disk is full"),
        ("attempt to write a readonly database", "it is read-only"),
        ("Could not decode to UTF-8 column 'note' with text 'x'", "is damaged: restore it from a back-up"),
    ],
)
def test_what_a_database_says_is_explained(said, words):
    assert words in trouble(said)
    assert said in trouble(said)
