"""Servers for tests: the application in this process, and `duels serve` as a process of its own."""

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import cache

import httpx2 as httpx
import pytest
from forks import Forks
from starlette.testclient import TestClient

from duels.server.app import create_app
from duels.server.keys import make_key
from duels.storage.storage import open_storage


@cache
def forks():
    found = Forks()
    atexit.register(found.close)
    return found


def run_duels(*arguments, environment=None):
    """Run the command `duels` to its end, in a process of its own: its exit code and what it printed."""
    started = forks().start(*arguments, environment=environment or dict(os.environ))
    with started.stdout as out, started.stderr as errors:
        return subprocess.CompletedProcess(arguments, started.wait(60), out.read(), errors.read())


class Live:
    """`duels serve` in a process of its own; its URL, an admin's token, and what it has printed.

    It is forked from a process that has imported everything, unless it shall be `from_scratch`; and it plays policies
    in the interpreter, unless it shall be `compiled`.
    """

    def __init__(self, storage, *options, environment=None, from_scratch=False, compiled=False):
        arguments = ["serve", storage, "--port", "0", *options]
        variables = {**os.environ, "NUMBA_DISABLE_JIT": "0" if compiled else "1", **(environment or {})}
        if from_scratch:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "duels", *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=variables,
            )
        else:
            self.process = forks().start(*arguments, environment=variables)
        self.storage, self.out, self.log = storage, [], []
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self.out), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, self.log), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        self.url = self._printed(r"Duels is at (\S+)")
        if "--open" not in options:
            self._printed(r"(/signin.)")  # the next line, which may have the first token
        self.token = None
        if "DUELS_TOKEN" in (environment or {}):
            self.token = environment["DUELS_TOKEN"]
        self._wait_until_up()

    def _read(self, stream, lines):
        for line in stream:
            lines.append(line)

    def _printed(self, pattern, patience=30):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            found = re.search(pattern, "".join(self.out))
            if found:
                return found[1]
            if self.process.poll() is not None:
                raise AssertionError("".join(self.log))
            time.sleep(0.01)
        raise AssertionError(f"not printed: {pattern}: {self.out} {self.log}")

    def _wait_until_up(self):
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if httpx.get(f"{self.url}/healthz", verify=False).status_code in (200, 503):
                    break
            except httpx.TransportError:
                time.sleep(0.02)
        if self.token is None:
            first = re.search(r"/signin#(\S+)", "".join(self.out))
            self.token = first[1] if first else None

    def client(self, **options):
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return httpx.Client(verify=False, base_url=self.url, headers=headers, timeout=30, **options)

    def stop(self, how=signal.SIGTERM, patience=15):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(patience)
        for reader in self._readers:
            reader.join(5)
        for reader, stream in zip(self._readers, (self.process.stdout, self.process.stderr)):
            if not reader.is_alive():  # closing a stream waits for whoever reads it
                stream.close()
        return self.process.returncode


@pytest.fixture
def serve(tmp_path):
    """Start servers; they are stopped afterwards. By default on a new SQLite file."""
    started = []

    def start(storage=None, *options, **more):
        one = Live(storage or f"sqlite:///{tmp_path}/duels.db", *options, **more)
        started.append(one)
        return one

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.stop()


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    """A file with all tables, to copy: making them takes longer than most tests."""
    path = tmp_path_factory.mktemp("empty") / "duels.db"
    open_storage(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def storage(tmp_path, empty_database):
    shutil.copy(empty_database, tmp_path / "duels.db")
    return open_storage(f"sqlite:///{tmp_path}/duels.db")


@pytest.fixture
def app(storage):
    return create_app(storage)


@pytest.fixture
def admin(app, storage):
    """A client of the application in this process, with an admin's token."""
    _, token = make_key(storage, "admin", "test")
    with TestClient(app, "http://localhost", headers={"Authorization": f"Bearer {token}"}) as client:
        client.token = token
        yield client


@pytest.fixture
def anybody(app):
    """A client without a token."""
    with TestClient(app, "http://localhost", follow_redirects=False) as client:
        yield client


@pytest.fixture
def study(admin):
    """A study of three arms, by its address."""
    made = admin.post("/api/studies", json={"name": "search", "arms": ["bm25", "dense", "hybrid"]})
    assert made.status_code == 201, made.text
    return "/api/studies/search"


# What playwright turns off itself, since the last such flag counts; and pages of the browser's own that nobody opens.
NO_FEATURES = (
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades", "LensOverlay"),
    *("HttpsFirstBalancedModeAutoEnable", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning"),
    *("AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled"),
    *("PreconnectToSearch", "PreloadTopChromeWebUI", "PreloadTopChromeWebUILessNavigations", "WebUIOmniboxPopup"),
    *("Translate", "SpareRendererForSitePerProcess"),
)


@pytest.fixture(scope="module")  # not longer: playwright keeps an event loop in this thread, where others want theirs
def chromium():
    """Debian's chromium, through playwright; its absence is a failure in CI and a skip elsewhere."""
    path = shutil.which("chromium")
    if path is None:
        if os.environ.get("DUELS_CI"):
            pytest.fail("chromium is not installed, and in CI it must be: see .ci/run")
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    flags = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
        *("--disable-background-networking", "--disable-component-update"),
        f"--disable-features={','.join(NO_FEATURES)}",
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()
