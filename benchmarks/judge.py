"""Judges that answer a study's questions: a table, and benchmarks/out/judge.json. Exit code 1 if a bar is missed.

    python benchmarks/judge.py

How close runs come to the call rate that a judge's latency allows, what they compute per call, and their memory; how
many calls four seeded judges need until the verdict, and how often the winner is right, against asking all pairs about
all prompts; and what a preference for the first side costs. Judges and server are those of the tests. The tables of
benchmarks/judge.md are printed at the end.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

TESTS = Path(__file__).parents[1] / "tests"
sys.path += [str(TESTS / "study"), str(TESTS / "judges")]

from synthetic_judges import JUDGES  # noqa: E402
from table import report  # noqa: E402

import duels  # noqa: E402
from duels.storage.storage import Storage  # noqa: E402

LATENCY, CONCURRENCY = 0.2, 16
REPETITIONS = 200
STEPS = (1000, 5000)  # calls, between which memory is compared
Row = tuple[str, float, str, float | None]
ARMS = ["terse", "expert", "friendly", "formal", "playful", "plain"]


class Found(NamedTuple):
    """What one study found."""

    calls: int
    right: bool
    alarm: int | None  # how many answers came before it


def outputs(prompts: int) -> dict[str, Any]:
    texts = [f"Question {number}?" for number in range(prompts)]
    return {"outputs": {arm: [f"{arm} answer to {text}" for text in texts] for arm in ARMS}, "prompts": texts}


def undecided(prompt: str, left: str, right: str) -> str:
    """Prefer each side equally often, whatever is there: a study asks on for long."""
    return (
        "left" if crc32(f"{prompt}|{min(left, right)}|{max(left, right)}".encode()) % 2 == (left < right) else "right"
    )


def speed(folder: str) -> Iterator[Row]:
    """The share of the ideal call rate, over a socket and without, and the work per call."""

    async def slow(prompt: str, left: str, right: str) -> str:
        await asyncio.sleep(LATENCY)
        return undecided(prompt, left, right)

    def blocking(prompt: str, left: str, right: str) -> str:
        time.sleep(LATENCY)
        return undecided(prompt, left, right)

    run_once(f"{folder}/warm.db", undecided)
    for name, judge in (("async function", slow), ("function in threads", blocking)):
        cpu = time.process_time()
        calls, share = run_once(f"{folder}/{name}.db", judge)
        cpu = (time.process_time() - cpu) / calls
        yield f"call rate below the ideal, {name}, {calls} calls", 100 * (1 - share), "%", 10.0
        yield f"our work per call, {name}", 1000 * cpu, "ms", 2.0
    command = [sys.executable, str(TESTS / "judges" / "judge_server.py"), "--latency", str(LATENCY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            run_once(f"{folder}/first.db", duels.judges.openai(url, "fake"), prompts=2)
            calls, share = run_once(f"{folder}/openai.db", duels.judges.openai(url, "fake"))
            alone = asyncio.run(bare(duels.judges.openai(url, "fake"), calls))
        finally:
            server.terminate()
    yield f"call rate below the ideal, HTTP, {calls} calls", 100 * (1 - share), "%", None
    yield "the same calls without a study", 100 * (1 - alone), "%", None
    yield "call rate below that without a study, HTTP", 100 * (1 - share / alone), "%", 10.0


async def bare(judge: Any, calls: int) -> float:
    """The share of the ideal call rate if a judge is called with nothing else to do."""
    left = iter(range(calls))

    async def work() -> None:
        for number in left:
            await judge(f"Question {number}?", "terse", "plain")

    await judge("Question?", "terse", "plain")
    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    seconds = time.perf_counter() - started
    await judge.aclose()
    return calls * LATENCY / CONCURRENCY / seconds


def run_once(path: str, judge: Any, prompts: int = 40) -> tuple[int, float]:
    """How many calls a study makes, and the share of the ideal call rate that it reaches."""
    started = time.perf_counter()
    result = duels.find_best(
        **outputs(prompts),
        judge=judge,
        about="these-answers",
        concurrency=CONCURRENCY,
        storage=f"sqlite:///{path}",
        progress=False,
    )
    seconds = time.perf_counter() - started
    return result.calls, result.calls * LATENCY / CONCURRENCY / seconds


def memory(folder: str) -> Iterator[Row]:
    """How much memory grows while a run makes thousands of calls."""
    used = []
    for most in (STEPS[0] // 2, *STEPS):
        result = duels.find_best(
            **outputs(500),
            judge=undecided,
            max_calls=most,
            concurrency=CONCURRENCY,
            storage=f"sqlite:///{folder}/memory.db",
            progress=False,
        )
        assert result.calls == most, result
        used.append(resident())
    yield f"memory that {STEPS[1] - STEPS[0]:,} further calls take", used[2] - used[1], "MB", 10.0


def resident() -> float:
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(fields["VmRSS"].split()[0]) / 1024


@cache
def studies(name: str, orders: Any) -> list[Found]:
    """Many studies with one kind of judge."""
    found = []
    for seed in range(REPETITIONS):
        judge = JUDGES[name](seed=seed)
        result = duels.find_best(
            judge.outputs,
            judge,
            prompts=judge.prompts,
            about="these-answers",
            orders=orders,
            storage=Storage("sqlite://"),
            progress=False,
        )
        right = result.winner == judge.winner and result.ended == "verdict"
        found.append(Found(result.calls, right, alarm_of(result.study)))
        result.study._log.storage.close()
    return found


def alarm_of(study: duels.Study) -> int | None:
    answers = 0
    for entry in study.events():
        answers += entry.kind == "tell"
        if "position_bias" in entry.note:
            return answers
    return None


def savings(table: list[str]) -> Iterator[Row]:
    """Calls until the verdict against all pairs on all prompts, and how often the winner is right."""
    table += ["| judge | calls, mean | 9 in 10 need at most | all pairs | saved | right |"]
    table += ["| --- | --- | --- | --- | --- | --- |"]
    for name, judge in JUDGES.items():
        found, all_pairs = studies(name, "auto"), judge().questions
        if name == "biased":
            all_pairs *= 2  # in both orders
        calls, right = sorted(one.calls for one in found), sum(one.right for one in found) / len(found)
        mean, most = statistics.mean(calls), calls[int(0.9 * len(calls))]
        cells = [name, f"{mean:.0f}", f"{most:,}", f"{all_pairs:,}", f"{1 - mean / all_pairs:.0%}", f"{right:.1%}"]
        table.append(f"| {' | '.join(cells)} |")
        yield f"{name}: calls of {all_pairs:,} until the verdict, mean", mean, "", None
        yield f"{name}: wrong verdicts", round(100 * (1 - right), 6), "%", 5.0


def bias(table: list[str]) -> Iterator[Row]:
    """A judge that says left in 75 % of its answers."""
    table += ["| orders | calls, mean | 9 in 10 need at most | right | alarms | answers before, median |"]
    table += ["| --- | --- | --- | --- | --- | --- |"]
    for orders in ("one", "auto", "both"):
        found = studies("biased", orders)
        calls, right = sorted(one.calls for one in found), sum(one.right for one in found) / len(found)
        alarms = [one.alarm for one in found if one.alarm is not None]
        mean, most = statistics.mean(calls), calls[int(0.9 * len(calls))]
        median = statistics.median(alarms) if alarms else 0
        cells = [f"`{orders}`", f"{mean:.0f}", f"{most}", f"{right:.1%}", f"{len(alarms) / len(found):.0%}"]
        table.append(f"| {' | '.join([*cells, f'{median:.0f}'])} |")
        yield f"75 % for the first side, {orders}: calls, mean", mean, "", None
        yield (
            f"75 % for the first side, {orders}: wrong",
            round(100 * (1 - right), 6),
            "%",
            5.0 if orders == "auto" else None,
        )


def main(parts: list[str]) -> None:
    tables: list[str] = []

    def rows() -> Iterator[Row]:
        with tempfile.TemporaryDirectory() as folder:
            if "speed" in parts:
                yield from speed(folder)
            if "memory" in parts:
                yield from memory(folder)
        if "savings" in parts:
            yield from savings(tables)
        if "bias" in parts:
            yield from bias(tables)
        print("\n".join(["", *tables]))

    report("judge", rows())


if __name__ == "__main__":
    main(sys.argv[1:] or ["speed", "memory", "savings", "bias"])
