"""Requests that wait: for a turn, and for what others compute."""

import asyncio
import os
import subprocess
import sys
import threading
from functools import partial

import pytest

from duels.server.computed import Computed
from duels.server.http.turns import AT_ONCE, WAITING, TakeTurns, Turns


class Slow:
    """An application whose answers about a study called `big` wait until all may go."""

    def __init__(self):
        self.inside, self.go = [], asyncio.Event()

    async def __call__(self, scope, receive, send):
        self.inside.append(scope["path"])
        if "big" in scope["path"]:
            await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"].endswith("stream"):
            await asyncio.sleep(10)
        await send({"type": "http.response.body", "body": b""})


async def get(app, path, method="GET"):
    sent = []

    async def send(message):
        sent.append(message)

    await app({"type": "http", "method": method, "path": path, "headers": []}, None, send)
    return sent[0]["status"]


def test_requests_about_one_study_leave_threads_to_others():
    async def run():
        slow = Slow()
        app = TakeTurns(slow, Turns())
        paths = ["/api/studies/big/forecast", "/studies/big", "/api/studies/big/details"]
        waiting = [asyncio.create_task(get(app, paths[k % 3])) for k in range(AT_ONCE + WAITING)]
        await asyncio.sleep(0.01)
        assert len(slow.inside) == AT_ONCE
        assert await get(app, "/studies/big/share") == 429
        for path in ("/api/studies/small/forecast", "/studies/bi", "/healthz", "/vote/big-not", "/"):
            slow.go.set() if path.startswith("/vote") else None
            assert await asyncio.wait_for(get(app, path), 1) == 200
        assert await asyncio.gather(*waiting) == [200] * len(waiting)
        assert await get(app, "/studies/big/share") == 200
        assert not app.turns._known

    asyncio.run(run())


def test_a_stream_has_its_turn_only_until_it_begins_and_a_body_has_none():
    async def run():
        slow = Slow()
        app = TakeTurns(slow, Turns())
        streams = [asyncio.create_task(get(app, "/api/studies/small/stream")) for _ in range(3 * AT_ONCE)]
        await asyncio.sleep(0.01)
        assert len(slow.inside) == len(streams)
        posts = [asyncio.create_task(get(app, "/api/studies/big/undo", "POST")) for _ in range(3 * AT_ONCE)]
        await asyncio.sleep(0.01)
        assert len(slow.inside) == len(streams) + len(posts)
        for one in (*streams, *posts):
            one.cancel()

    asyncio.run(run())


def test_those_who_wait_share_the_next_value_though_the_state_has_changed():
    computed, state, begun, go = Computed(10), [0], [], threading.Event()

    def compute():
        begun.append(state[0])
        go.wait(10)
        state[0] += 1
        return len(begun)

    found = []
    threads = [
        threading.Thread(target=lambda: found.append(computed.get("a", compute, lambda: state[0]))) for _ in range(20)
    ]
    for one in threads:
        one.start()
    while len(computed._turns) < 1 or computed._turns["a"][1][0] < 20:
        pass
    go.set()
    for one in threads:
        one.join()
    assert sorted(found) == [1] + 19 * [2]
    assert computed.get("a", compute, lambda: state[0]) == 3
    assert not computed._turns


def test_the_last_used_are_kept_by_size():
    computed = Computed(10, len)
    for text in ("aaaa", "bbbb", "cccc"):
        computed.get(text[0], partial(str, text))
    assert [computed.get_known(key) for key in "abc"] == [None, "bbbb", "cccc"]
    computed.get("b", lambda: pytest.fail("it is kept"))
    computed.get("d", lambda: "d")
    computed.get("e", lambda: "ee")
    assert [computed.get_known(key) for key in "bcde"] == ["bbbb", None, "d", "ee"]
    with pytest.raises(ZeroDivisionError):
        computed.get("f", lambda: 1 / 0)
    assert computed.get("f", lambda: 50 * "f") == 50 * "f"
    assert computed.values() == [50 * "f"]


STUCK = """
import threading, time, signal, uvicorn
from concurrent.futures import ThreadPoolExecutor
from duels.server import serving
from duels.server.app import create_app

serving.SHUTDOWN_SECONDS, serving.STUCK_SECONDS = 0, 0.5
server = serving.Server(serving.configuration(create_app("sqlite://")))
server.config.port = 0
ThreadPoolExecutor().submit(time.sleep, 60)
threading.Timer(0.5, signal.raise_signal, (signal.SIGTERM,)).start()
server.run()
"""


def test_a_thread_that_is_stuck_does_not_keep_a_server_alive():
    ended = subprocess.run([sys.executable, "-c", STUCK], timeout=30, env=dict(os.environ), check=False)
    assert ended.returncode == 0
