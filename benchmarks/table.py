"""What benchmarks share: how long work takes, and rows as a table and as JSON; a missed bar is exit code 1."""

import json
import platform
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from duels.engine.threads import thread_count

OUT = Path(__file__).parent / "out"


def seconds(work: Callable[[], object], times: int = 2, clock: Callable[[], float] = time.perf_counter) -> float:
    """How long work takes, at best; `time.process_time` counts what the processor does."""

    def once() -> float:
        started = clock()
        work()
        return clock() - started

    return min(once() for _ in range(times))


def report(name: str, rows: Iterable[tuple[str, float, str, float | None]]) -> None:
    """Print each row (what, value, unit, bar) as it comes, write them all, and leave."""
    found, missed = [], 0
    for what, value, unit, bar in rows:
        verdict = "" if bar is None else ("met" if value <= bar else "MISSED")
        missed += verdict == "MISSED"
        found.append({"what": what, "value": value, "unit": unit, "bar": bar})
        said = "" if bar is None else f"bar {bar:g} {unit}: {verdict}"
        print(f"{what:<75} {value:>12,.3g} {unit:<4} {said}", flush=True)
    machine = {
        "machine": platform.platform(),
        "cores": thread_count(None),
        "python": platform.python_version(),
        "date": time.strftime("%F"),
    }
    OUT.mkdir(exist_ok=True)
    (OUT / f"{name}.json").write_text(json.dumps({**machine, "rows": found}, indent=2) + "\n")
    sys.exit(1 if missed else 0)
