"""How fast the server is: a table, and benchmarks/out/server.json. Exit code 1 if a bar is missed.

    python benchmarks/server.py [--million]

With --million, which takes a minute and a half more, votes through a link are also measured in studies into which a
million votes were imported.
Votes over HTTP, an ask and a tell each, durable, K = 64, by 64 clients on connections of their own; servers, clients
and database share this machine. On SQLite, with 200 listeners as well, and with two servers on one PostgreSQL.
Then what others notice while one study imports a million votes and another, whose policy was never compiled on this
machine, asks its first question.
"""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import uvloop
from table import report

LINK = os.environ.get("BENCHMARK_LINK", "")
UNLIMITED = """
import os
import sys
from duels.server.http.limits import Limits, Rate
from duels.server.serving import serve

free = Rate(1e9, 10**9)
limits = {name: free for name in ("voter", "address", "new_voters")}
serve(sys.argv[1], port=0, token=os.environ["DUELS_TOKEN"], log_form="words", limits=Limits()._replace(**limits))
"""
ARMS = [f"model-{k}" for k in range(64)]
RANKERS = {f"ranker-{k}": [f"doc-{(7 * k + 3 * rank) % 50}" for rank in range(10)] for k in range(8)}
CLIENTS, LISTENERS = 64, 200
WARM_UP, SECONDS = 12.0, 10.0  # the first is until all is compiled
TOKEN = "a-token-for-benchmarks-only"
VOTES, LATENCY = 1000.0, 60.0  # the bars: a second, and milliseconds
LINK_VOTES, LINK_LATENCY = 500.0, 100.0  # the same for votes through a link
OTHERS, IMPORTED = 8, 1_000_000  # clients that vote meanwhile, and votes
CALM, HEALTH = 250.0, 100.0  # the bars: milliseconds within which 99 of 100 of their requests are answered


async def vote(call):
    duel = (await call("POST", "/api/studies/load/ask", {}))["duels"][0]
    winner = "left" if duel["left"] < duel["right"] else "right"
    await call("POST", "/api/studies/load/tell", {"duel": duel["id"], "winner": winner})


async def vote_by_link(call):
    """The connection keeps the voter's cookie."""
    question = await call("POST", f"{LINK}/ask", {"more": True})
    await call("POST", f"{LINK}/tell", {"duel": question["duel"], "winner": random.choice("ab")})


async def click(call):
    shown = await call("POST", "/api/studies/rankers/interleave", {"rankings": RANKERS, "missing": "last"})
    body = {"impression": shown["impression"], "clicks": shown["documents"][:1]}
    await call("POST", "/api/studies/rankers/clicks", body)


async def health(call):
    await call("GET", "/healthz", None)


def head(method, path, length, cookie=""):
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {TOKEN}"]
    lines += [f"Cookie: {cookie}"] if cookie else []
    lines += ["Content-Type: application/json", f"Content-Length: {length}", "", ""]
    return "\r\n".join(lines).encode()


async def repeat(port, turn, begin, times, ended=None):
    """One client: a turn after the other on one connection. The times of turns since `begin`, by the last of a path."""
    ended = ended or (lambda: time.perf_counter() >= begin + SECONDS)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    taken, cookie = [], ""

    async def call(method, path, body):
        nonlocal cookie
        content = b"" if body is None else json.dumps(body).encode()
        started = time.perf_counter()
        writer.write(head(method, path, len(content), cookie) + content)
        answer = await reader.readuntil(b"\r\n\r\n")
        if b"set-cookie: " in answer:
            cookie = answer.partition(b"set-cookie: ")[2].partition(b";")[0].decode()
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        said = await reader.readexactly(length)
        taken.append((path.rpartition("/")[2], time.perf_counter() - started))
        if answer[9:12] != b"200":
            raise RuntimeError(f"{path}: {said.decode()}")
        return json.loads(said)

    while not ended():
        taken.clear()
        started = time.perf_counter()
        await turn(call)
        if started >= begin:
            for name, took in [*taken, ("whole", time.perf_counter() - started)]:
                times.setdefault(name, []).append(took)
    writer.close()


async def others(port):
    """Votes and looks at the server's health, from when a line comes on standard input until another one does."""
    times: dict[str, list[float]] = {}
    lines = asyncio.Queue()
    asyncio.get_running_loop().run_in_executor(None, lambda: [lines.put_nowait(line) for line in sys.stdin])

    async def paced(call):
        await health(call)
        await asyncio.sleep(0.02)

    stop = False
    begin = time.perf_counter() + 1e9
    clients = [asyncio.create_task(repeat(port, vote, 0, times, lambda: stop)) for _ in range(OTHERS)]
    clients.append(asyncio.create_task(repeat(port, paced, 0, times, lambda: stop)))
    while lines.empty():
        await asyncio.sleep(0.05)
    lines.get_nowait()
    for taken in times.values():
        taken.clear()
    begin = time.perf_counter()
    while lines.empty():
        await asyncio.sleep(0.05)
    stop = True
    await asyncio.gather(*clients)
    found = {name: [1000 * np.quantile(taken, q) for q in (0.5, 0.99, 1)] for name, taken in times.items()}
    return found | {"rate": len(times["tell"]) / (time.perf_counter() - begin)}


async def listen(port, begin):
    """One listener: how many messages a second come."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head("GET", "/api/studies/load/stream", 0))
    count, end = 0, begin + SECONDS
    while (left := end - time.perf_counter()) > 0:
        try:
            said = await asyncio.wait_for(reader.read(65536), left)
        except TimeoutError:
            break
        count += said.count(b"event: change") if time.perf_counter() >= begin else 0
    writer.close()
    return count / SECONDS


async def work(kind, ports):
    """What a process of clients does, and what it has measured."""
    if kind == "others":
        return await others(ports[0])
    begin = time.perf_counter() + WARM_UP
    if kind == "listen":
        return {"fewest": min(await asyncio.gather(*(listen(ports[k % len(ports)], begin) for k in range(LISTENERS))))}
    times: dict[str, list[float]] = {}
    turn = {"vote": vote, "link": vote_by_link, "click": click, "health": health}[kind]
    await asyncio.gather(*(repeat(ports[k % len(ports)], turn, begin, times) for k in range(CLIENTS)))
    ended = time.perf_counter() - begin
    found = {name: [1000 * np.quantile(taken, q) for q in (0.5, 0.99)] for name, taken in times.items()}
    return found | {"rate": len(times["whole"]) / ended}


def clients(kind, ports, link=""):
    """A process of clients, started."""
    command = [sys.executable, __file__, kind, *map(str, ports)]
    environment = {**os.environ, "BENCHMARK_LINK": link}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def measured(process):
    said, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"the clients failed: {process.args}")
    return json.loads(said)


@contextmanager
def server(url, limited=True, **environment):
    """`duels serve` in a process of its own; its port. All voters share an address here, so they need no limits."""
    command = [sys.executable, "-m", "duels", "serve", url, "--port", "0", "--log", "words"]
    command = command if limited else [sys.executable, "-c", UNLIMITED, url]
    environment = {**os.environ, "DUELS_TOKEN": TOKEN, **environment}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().rpartition(":")[2])
    finally:
        process.terminate()
        process.communicate()


def post(port, path, body, kind="application/json"):
    """A request, and how many seconds it took."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}
    started = time.perf_counter()
    urlopen(Request(f"http://127.0.0.1:{port}{path}", content, headers)).close()
    return time.perf_counter() - started


def begin_studies(port):
    for name, arms in (("load", ARMS), ("rankers", list(RANKERS))):
        post(port, "/api/studies", {"name": name, "arms": arms})


def past_votes():
    dice = np.random.default_rng(0)
    left = dice.integers(20, size=IMPORTED)
    right = (left + dice.integers(1, 20, size=IMPORTED)) % 20
    winner = np.where(dice.random(IMPORTED) < 0.6, "left", "right")
    rows = [f"m{i},m{j},{won}" for i, j, won in zip(left.tolist(), right.tolist(), winner.tolist())]
    return "\n".join(["left,right,winner", *rows]).encode()


def while_busy(folder):
    """What others notice of a large import and of a policy that has to be compiled."""
    content = past_votes()
    cold = Path(folder) / "compiled"
    cold.mkdir()
    with server(f"sqlite:///{folder}/busy.db", NUMBA_CACHE_DIR=str(cold)) as port, ThreadPoolExecutor(2) as threads:
        begin_studies(port)
        post(port, "/api/studies", {"name": "big", "arms": [f"m{k}" for k in range(20)]})
        process = clients("others", [port])
        time.sleep(60)  # until the policy of "load" is compiled
        process.stdin.write("begin\n")
        process.stdin.flush()

        def ask_cold():
            post(port, "/api/studies", {"name": "cold", "arms": ARMS[:20], "policy": "dts_plus"})
            return post(port, "/api/studies/cold/ask", {})

        imported = threads.submit(post, port, "/api/studies/big/import", content, "text/csv")
        asked = threads.submit(ask_cold)
        took = imported.result(), asked.result()
        after = post(port, "/api/studies/big/ask", {})
        found = json.loads(process.communicate("end\n")[0])
    yield f"import of {IMPORTED:,} votes over HTTP", took[0], "s", None
    yield "first question after it", after, "s", None
    yield "first question of dts_plus, never compiled before", took[1], "s", None
    for name, said, bar in (("ask", "an ask", CALM), ("tell", "a tell", CALM), ("healthz", "/healthz", HEALTH)):
        yield f"  meanwhile {said} of {OTHERS} others: median", found[name][0], "ms", None
        yield f"  meanwhile {said} of {OTHERS} others: 99 of 100 within", found[name][1], "ms", bar
        yield f"  meanwhile {said} of {OTHERS} others: longest", found[name][2], "ms", None


@contextmanager
def postgres():
    """The URL of a PostgreSQL of its own, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    binaries = found[-1].parent if found else Path(shutil.which("initdb") or "/nowhere/initdb").parent
    if not (binaries / "initdb").exists():
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="duels-bench-", dir="/tmp"))
    as_user = []
    if os.geteuid() == 0:  # initdb refuses root
        shutil.chown(folder, "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]

    def run(*command):
        subprocess.run([*as_user, *command], check=True, stdout=subprocess.DEVNULL, cwd="/tmp")

    data, options = folder / "data", f"-c listen_addresses= -k {folder}"
    run(binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust")
    run(binaries / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
    try:
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        run(binaries / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def of_votes(found, where):
    yield f"votes a second, {where}", found["rate"], "/s", None
    yield f"  {VOTES:,.0f} a second over that", VOTES / found["rate"], "x", 1.0
    for name, said in (("ask", "an ask"), ("tell", "a tell"), ("whole", "both together")):
        median, worst = found[name]
        yield f"  {said}: median", median, "ms", None
        yield f"  {said}: 99 of 100 within", worst, "ms", None if name == "whole" else LATENCY


def of_links(url, where, million=False):
    """Votes through a voting link, and after them those of a token, of another study of the same server."""
    with server(url, limited=False) as port:
        begin_studies(port)
        arms = [f"m{k}" for k in range(20)] if million else ARMS[:8]
        post(port, "/api/studies", {"name": "people", "arms": arms})
        if million:
            post(port, "/api/studies/people/import", past_votes(), "text/csv")
            post(port, "/api/studies/people/ask", {})  # answered once all votes are loaded
        body = json.dumps({"name": "benchmark"}).encode()
        asked = Request(f"http://127.0.0.1:{port}/api/studies/people/links", body, {"Authorization": f"Bearer {TOKEN}"})
        asked.add_header("Content-Type", "application/json")
        with urlopen(asked) as answer:
            secret = json.load(answer)["url"].rpartition("/")[2]
        found = measured(clients("link", [port], f"/api/vote/{secret}"))
        programs = measured(clients("vote", [port]))
    yield f"votes a second through a link, {where}", found["rate"], "/s", None
    yield f"  {LINK_VOTES:,.0f} a second over that", LINK_VOTES / found["rate"], "x", 1.0
    yield "  votes by a token over that", programs["rate"] / found["rate"], "x", 3.0
    for name, said in (("ask", "an ask"), ("tell", "a tell")):
        yield f"  {said}: median", found[name][0], "ms", LINK_LATENCY


def rows(million):
    with (
        tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder,
        server(f"sqlite:///{folder}/duels.db") as port,
    ):
        begin_studies(port)
        votes = measured(clients("vote", [port]))
        yield from of_votes(votes, f"{CLIENTS} clients, SQLite")
        plain = measured(clients("health", [port]))["rate"]
        yield "plain requests a second, /healthz", plain, "/s", None
        yield "  requests of votes over that", 2 * votes["rate"] / plain, "x", None
        listeners = clients("listen", [port])
        yield from of_votes(measured(clients("vote", [port])), f"{CLIENTS} clients, SQLite, {LISTENERS} listeners")
        fewest = max(measured(listeners)["fewest"], 1e-9)
        yield "  seconds between two messages, of the listener with the fewest", 1 / fewest, "s", 1.0
        shown = measured(clients("click", [port]))
        yield f"interleave + clicks a second, {len(RANKERS)} rankers", shown["rate"], "/s", None
        yield "  an interleave: 99 of 100 within", shown["interleave"][1], "ms", None
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        yield from of_links(f"sqlite:///{folder}/links.db", f"{CLIENTS} voters, SQLite")
        if million:
            yield from of_links(f"sqlite:///{folder}/million.db", f"{CLIENTS} voters, SQLite, {IMPORTED:,} votes", True)
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        yield from while_busy(folder)
    with postgres() as url:
        if url is None:
            print("PostgreSQL is not installed: two servers on it are left out")
            return
        yield from of_links(url, f"{CLIENTS} voters, PostgreSQL")
    if million:
        with postgres() as url:
            yield from of_links(url, f"{CLIENTS} voters, PostgreSQL, {IMPORTED:,} votes", True)
    with postgres() as url, server(url) as one, server(url) as two:
        begin_studies(one)
        yield from of_votes(measured(clients("vote", [one, two])), f"{CLIENTS} clients, two servers on PostgreSQL")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--million"]):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            print(json.dumps(runner.run(work(sys.argv[1], [int(port) for port in sys.argv[2:]]))))
    else:
        report("server", rows(million=sys.argv[1:] == ["--million"]))
