"""How pytest runs this suite: its settings, the order of its files and what its workers share. See README.md here."""

import gc
import os
import sys
import time
from pathlib import Path

import pytest
import quick_compiler
from hypothesis import settings

# What tests compile goes into a cache of its own. Code with fewer optimizations takes a fifth of the time.
COMPILED = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "duels-tests"
os.environ.setdefault("NUMBA_OPT", "1")
os.environ.setdefault("NUMBA_CACHE_DIR", str(COMPILED))
# Tests share few cores: BLAS threads that wait for one another make small matrices five times as slow.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
KEPT = 30 * 24 * 3600  # seconds
QUICK = 40  # examples of a property in `make test`; in `make deep` it is Hypothesis's default, 100

# Files that take much longer than others of their size, longest first: they start first, so that no worker is left
# with one of them at the end.
LONG = (
    *("test_docs", "test_browser", "test_promise_cells", "test_two_servers", "test_browser_items", "test_executors"),
    *("test_conformance", "test_listings", "test_browser_share", "test_browser_tuning", "test_browser_voting"),
    *("test_tuning_processes", "test_client_tuning", "test_exhausted", "test_impressions", "test_unusable_replies"),
    *("test_live", "test_batches"),
)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and config.getoption("numprocesses", None):
        remove_old_code()
        return  # with workers, this process runs no tests
    gc.disable()  # what is imported and collected stays
    if config.option.markexpr == "not deep":
        settings.register_profile("quick", max_examples=QUICK)
        settings.load_profile("quick")
    quick_compiler.install()
    if hasattr(config, "workerinput") and config.args == ["tests"]:
        config.args = rotate_files(**config.workerinput)


def remove_old_code() -> None:
    """Remove from the cache what no test has loaded for long: the code has changed since."""
    for path in (*COMPILED.rglob("*.nb?"), *COMPILED.glob("locks/*")):
        if time.time() - path.stat().st_mtime > KEPT:
            path.unlink(missing_ok=True)


def rotate_files(workerid: str, workercount: int, **_: object) -> list[str]:
    """List all test files, starting with another one in each worker: each finds what the others have rewritten.

    pytest rewrites the assertions of a file that is new, which takes as long as importing it.
    """
    files = sorted(str(path) for path in Path("tests").rglob("test_*.py"))
    start = len(files) * int(workerid.removeprefix("gw")) // workercount
    return files[start:] + files[:start]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first: those of the list, then by size. All workers must have the same order."""
    place = {name: number for number, name in enumerate(LONG)}
    sizes = {path: path.stat().st_size for path in {item.path for item in items}}
    items.sort(key=lambda item: (place.get(item.path.stem, len(LONG)), -sizes[item.path], item.path))


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.markexpr == "not deep" and "altair" in sys.modules:
        from altair.utils import schemapi

        schemapi.DEBUG_MODE = False  # a chart is validated when it is saved, and not every part of it before
    gc.freeze()  # looking through what was imported for garbage again and again takes time
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
