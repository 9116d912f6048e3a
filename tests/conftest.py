"""What tests share. In CI a missing PostgreSQL or browser is a failure, elsewhere a skip."""

import contextlib
import fcntl
import functools
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# Tests compile with fewer optimisations, which take a fifth of the time, into a cache of their own: all workers and
# child processes share it, and the next run finds it, in this checkout or another.
COMPILED = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "duels-tests"
os.environ.setdefault("NUMBA_OPT", "1")
os.environ.setdefault("NUMBA_CACHE_DIR", str(COMPILED))
# Tests share few cores: BLAS threads that wait for one another make small matrices five times as slow.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
KEPT = 30 * 24 * 3600  # seconds
QUICK = 40  # examples of a property in `make test`; in `make deep` it is Hypothesis's default, 100

SHARED_DATA = Path(os.environ.get("DUELS_DATA") or Path(__file__).parents[2] / "shared" / "data")


# Files that take long by themselves: begun first, so that the workers end together. The examples of the docs compile
# most policies, and numba keeps what they compile beside the source: the tests of the policies find it there.
LONG = (
    "test_docs",
    "test_browser",
    "test_browser_tuning",
    "test_browser_items",
    "test_browser_share",
    "test_client_tuning",
    "test_tuning_processes",
    "test_two_servers",
    "test_study",
    "test_testing",
    "test_executors",
    "test_plan",
    "test_storage",
    "test_report",
    "test_reproduce",
    "test_live",
    "test_health",
    "test_experiment",
    "test_certainty",
    "test_simulation",
)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and config.getoption("numprocesses", None):
        for path in (*COMPILED.rglob("*.nb?"), *COMPILED.glob("locks/*")):  # code that has changed since
            if time.time() - path.stat().st_mtime > KEPT:
                path.unlink(missing_ok=True)
        return  # with workers, this process runs no tests
    gc.disable()  # what is imported and collected stays
    if config.option.markexpr == "not deep":
        settings.register_profile("quick", max_examples=QUICK)
        settings.load_profile("quick")
    compile_quickly()
    compile_once()
    if hasattr(config, "workerinput") and config.args == ["tests"]:
        config.args = in_turns(**config.workerinput)


def in_turns(workerid: str, workercount: int, **_: object) -> list[str]:
    """All test files, beginning with another one in each worker: each finds what the others have rewritten meanwhile.

    pytest rewrites the assertions of a file that is new, which takes as long as importing it.
    """
    files = sorted(str(path) for path in Path("tests").rglob("test_*.py"))
    start = len(files) * int(workerid.removeprefix("gw")) // workercount
    return files[start:] + files[:start]


def compile_quickly() -> None:
    """Compile a quarter faster: what is only linked into other code is optimised there, not by itself before."""
    from numba.core import codegen, compiler

    library, compile_one, nested = codegen.JITCodeLibrary, compiler.compile_extra, 0
    optimise = library._optimize_final_module

    def compile_extra(*arguments, **options):
        nonlocal nested
        nested += 1
        try:
            return compile_one(*arguments, **options)
        finally:
            nested -= 1

    def optimise_last(self):
        if nested <= 1:
            optimise(self)

    compiler.compile_extra, library._optimize_final_module = compile_extra, optimise_last


def compile_once() -> None:
    """What one worker compiles for the cache, others that need it too wait for."""
    from numba.core.caching import NullCache
    from numba.core.dispatcher import Dispatcher

    compile_or_load = Dispatcher.compile
    locks = Path(os.environ["NUMBA_CACHE_DIR"]) / "locks"
    try:
        locks.mkdir(parents=True, exist_ok=True)
    except OSError:  # nothing can be kept there
        return

    def compile_alone(self, signature):
        if isinstance(self._cache, NullCache):
            return compile_or_load(self, signature)
        with open(locks / self.py_func.__name__, "w") as lock:  # closing it opens the lock
            fcntl.flock(lock, fcntl.LOCK_EX)
            return compile_or_load(self, signature)

    Dispatcher.compile = compile_alone


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: (place.get(item.path.stem, len(LONG)), item.path))  # the same in all workers


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.markexpr == "not deep" and "altair" in sys.modules:
        from altair.utils import schemapi

        schemapi.DEBUG_MODE = False  # a chart is validated when it is saved, and not every part of it before
    gc.freeze()  # looking through it for garbage again and again takes time
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def cache_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests leave nothing in the user's cache, and find nothing there."""
    os.environ["DUELS_CACHE"] = str(tmp_path_factory.mktemp("cache"))


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


def make_tables(upgrade, engine, revision="head") -> None:
    """As `upgrade`, of which it takes a tenth of the time where a SQLite database is new."""
    from duels.storage.database import _revision

    if engine.dialect.name == "sqlite" and revision == "head":
        statements = new_tables(upgrade)
        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            is_new = _revision(connection) is None
            for statement in statements if is_new else ():
                connection.exec_driver_sql(statement)
            connection.exec_driver_sql("COMMIT")
        if is_new:
            return
    upgrade(engine, revision)


@pytest.fixture(autouse=True)
def no_open_databases(monkeypatch, request):
    """Closes what a test opened.

    Only the tests of the storage wait for the disk at every commit, and run the migrations of every new file.
    """
    from duels.storage import database, registry, storage

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
    registry._storages.clear()
