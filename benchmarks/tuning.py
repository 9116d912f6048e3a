"""People who vote on settings at once: a table, and benchmarks/out/tuning.json. Exit code 1 if a bar is missed.

    python benchmarks/tuning.py

A server in a process of its own has a tuning study of four parameters. 10, 30 and 100 people vote through a link, each
four seconds per question on average: how long they wait for the next question. Then what the results take after a vote.
"""

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request

import httpx2 as httpx
import numpy as np
from table import report

SPACE = {"hue": [0, 360, "int"], "size": [13, 24, "int"], "leading": [1.1, 2.0], "font": ["serif", "sans-serif"]}
TEMPLATE = "<p style='font: {{ size }}px/{{ leading }} {{ font }}; color: hsl({{ hue }} 60% 30%)'>A page</p>"
BARS = {10: 0.5, 30: 1.0, 100: None}  # people: seconds that 95 % of them wait at most
SECONDS, THINKING = 30.0, 4.0
PORT = 8197
BASE = f"http://127.0.0.1:{PORT}"


class Crowd:
    """People who ask and answer through a link; how long they wait."""

    def __init__(self, link):
        self.link, self.asks, self.tells = link, [], []
        self.end = time.monotonic() + SECONDS

    async def person(self):
        once = httpx.Limits(max_keepalive_connections=0)  # as browsers that come and go
        async with httpx.AsyncClient(base_url=BASE, timeout=120, limits=once) as client:
            await asyncio.sleep(random.random() * THINKING)
            while time.monotonic() < self.end:
                question = await self.timed(client, "ask", {"more": True}, self.asks)
                await asyncio.sleep(random.expovariate(1 / THINKING))
                await self.timed(client, "tell", {"duel": question["duel"], "winner": random.choice("ab")}, self.tells)

    async def timed(self, client, action, body, times):
        started = time.perf_counter()
        answer = await client.post(f"/api/vote/{self.link}/{action}", json=body)
        times.append(time.perf_counter() - started)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def all(self, people):
        await asyncio.gather(*(self.person() for _ in range(people)))


def made(client, name):
    answer = client.post("/api/tunings", json={"name": name, "space": SPACE, "template": TEMPLATE})
    assert answer.status_code == 201, answer.text
    return client.post(f"/api/studies/{name}/links", json={"votes": 1000}).json()["secret"]


def crowd(client, people):
    crowd = Crowd(made(client, f"crowd-{people}"))
    asyncio.run(crowd.all(people))
    middle, most = np.quantile(crowd.asks, [0.5, 0.95])
    yield f"{people} people: median wait for a question", float(middle), "s", None
    yield f"{people} people: wait for a question, 95 % of them", float(most), "s", BARS[people]
    yield f"{people} people: votes per second", len(crowd.tells) / SECONDS, "/s", None


def results(client, answers):
    """The median time of the results after a vote, and of the next question."""
    name, taken, asked = f"results-{answers}", [], []
    made(client, name)
    for number in range(answers + 10):
        started = time.perf_counter()
        (duel,) = client.post(f"/api/studies/{name}/ask", json={}).json()["duels"]
        asked.append(time.perf_counter() - started)
        client.post(f"/api/studies/{name}/tell", json={"duel": duel["id"], "winner": random.choice(["left", "right"])})
        if number >= answers:
            started = time.perf_counter()
            shown = client.get(f"/api/studies/{name}/results")
            taken.append(time.perf_counter() - started)
    yield f"{answers} answers: results after a vote", float(np.median(taken)), "s", 0.3
    yield f"{answers} answers: size of the results", len(shown.content) / 1000, "kB", 60.0
    yield f"{answers} answers: the next question, for a program", float(np.median(asked[-10:])), "s", 0.3


def measured():
    random.seed(0)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "duels",
            "serve",
            f"sqlite:///{folder}/duels.db",
            "--open",
            "--port",
            str(PORT),
        ]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen(command, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}, **quiet)
        try:
            for _ in range(200):
                try:
                    urllib.request.urlopen(f"{BASE}/healthz")
                    break
                except OSError:
                    time.sleep(0.1)
            with httpx.Client(base_url=BASE, timeout=120) as client:
                for answers in (50, 200):
                    yield from results(client, answers)
                for people in BARS:
                    yield from crowd(client, people)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    report("tuning", measured())
