"""What tests share. In CI a missing PostgreSQL or browser is a failure, elsewhere a skip."""

import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

SHARED_DATA = Path(os.environ.get("DUELS_DATA") or Path(__file__).parents[2] / "shared" / "data")

pytest_plugins = ["plugin"]


@pytest.fixture(autouse=True, scope="session")
def cache_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests leave nothing in the user's cache, and find nothing there."""
    os.environ["DUELS_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The address of a database that does not exist yet."""
    return f"sqlite:///{tmp_path}/duels.db"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock of studies that stands still until it is moved."""
    time = [1_000_000.0]
    monkeypatch.setattr("duels.study.base.clock", lambda: time[0])
    return time


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """`shared_data("matrices/arxiv-6.csv")`: the path of public data kept outside the repository."""

    def find(name: str) -> Path:
        path = SHARED_DATA / name
        if not path.exists():
            pytest.skip(f"{path} is absent; point DUELS_DATA at the shared data to run this test")
        return path

    return find


def missing(what):
    if os.environ.get("DUELS_CI"):
        pytest.fail(f"{what} is not installed, and in CI it must be: see .ci/run")
    pytest.skip(f"{what} is not installed")


@pytest.fixture(scope="session")
def postgres_server():
    """A cluster of its own on a Unix socket, gone afterwards."""
    if shutil.which("pg_config") is None:
        binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    else:
        binaries = [Path(subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True).stdout.strip())]
    if not binaries or not (binaries[-1] / "initdb").exists():
        binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not binaries or not (binaries[-1] / "initdb").exists():
        missing("PostgreSQL")
    folder = Path(tempfile.mkdtemp(prefix="duels-pg-", dir="/tmp"))
    as_user = []
    if os.geteuid() == 0:  # initdb refuses root
        shutil.chown(folder, "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]
    data = folder / "data"
    run = {"check": True, "capture_output": True, "cwd": "/tmp", "timeout": 90}
    subprocess.run([*as_user, binaries[-1] / "initdb", "-N", "-D", data, "-U", "postgres", "-A", "trust"], **run)
    options = f"-c listen_addresses= -k {folder} -c max_connections=200 -c fsync=off"
    control = [*as_user, binaries[-1] / "pg_ctl", "-D", data, "-w"]
    subprocess.run([*control, "-l", folder / "log", "-o", options, "start"], **run)
    yield folder
    subprocess.run([*control, "-m", "immediate", "stop"], **run)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server):
    """The URL of an empty database."""
    import psycopg

    name = f"d{uuid.uuid4().hex}"
    with psycopg.connect(host=str(postgres_server), user="postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql://postgres@/{name}?host={postgres_server}"


@functools.cache
def new_tables(upgrade) -> list[str]:
    """The statements that make a new SQLite database what migrations make it, its own secret included."""
    from duels.storage.database import engine_for

    engine = engine_for("sqlite://")
    upgrade(engine)
    with contextlib.closing(engine.raw_connection()) as connection:
        statements = list(connection.driver_connection.iterdump())
    engine.dispose()
    return [one for one in statements if one not in ("BEGIN TRANSACTION;", "COMMIT;")]


def make_tables(upgrade, engine) -> None:
    """As `upgrade`, of which it takes a tenth of the time where a SQLite database is new."""
    from duels.storage.database import _revision

    if engine.dialect.name == "sqlite":
        statements = new_tables(upgrade)
        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            is_new = _revision(connection) is None
            for statement in statements if is_new else ():
                connection.exec_driver_sql(statement)
            connection.exec_driver_sql("COMMIT")
        if is_new:
            return
    upgrade(engine)


@pytest.fixture(autouse=True)
def no_open_databases(monkeypatch, request):
    """Closes what a test opened.

    Only the tests of the storage wait for the disk at every commit, and run the migrations of every new file.
    """
    from duels.storage import database, storage

    set_up = database._set_up_sqlite

    def without_sync(connection, record):
        set_up(connection, record)
        connection.execute("PRAGMA synchronous=OFF")

    if request.path.parent.name != "storage":
        monkeypatch.setattr(database, "_set_up_sqlite", without_sync)
        monkeypatch.setattr(database, "upgrade", functools.partial(make_tables, database.upgrade))

    opened = []
    begin = storage.Storage.__init__

    def noted(self, url):
        opened.append(self)
        begin(self, url)

    monkeypatch.setattr(storage.Storage, "__init__", noted)
    yield
    for one in opened:
        if hasattr(one, "engine"):
            one.close()
    storage._storages.clear()
