"""Processes that play runs on named functions, one line of JSON per task.

Processes, because a step is short work in Python between short work in compiled code, which threads cannot share out.
Each has one BLAS thread, so that a run has the same digits however many run at once. They are started by their
module's name: a script that calls `simulate_continuous` needs no guard around it, as `multiprocessing` would.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl

from ..errors import DuelsError

ONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
Task = tuple[str, str, int, int, int, list[int], float]  # function, policy, duels, seed, run, checkpoints, steepness


class Worker:
    """One process, from its first task to `close`."""

    def __init__(self) -> None:
        package = str(Path(__file__).parents[2])
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C reaches this process, which then ends its workers
        )

    def play(self, task: Task, go_on: Callable[[float], bool]) -> pl.DataFrame | None:
        """Play one run.

        Args:
            task: What to play.
            go_on: Called with the share of the run that is done; False ends the process.

        Returns:
            The rows of the run; None if it was ended.

        Raises:
            DuelsError: If the process fails.
        """
        sink, source = self._process.stdin, self._process.stdout
        assert sink is not None
        assert source is not None
        with contextlib.suppress(BrokenPipeError):
            sink.write(json.dumps(task).encode() + b"\n")
            sink.flush()
        for line in source:
            told = json.loads(line)
            if "error" in told:
                raise DuelsError(told["error"])
            if "bytes" in told:
                return pl.read_parquet(io.BytesIO(source.read(told["bytes"])))
            if not go_on(told["share"]):
                self.close()
                return None
        raise DuelsError(f"a process that played run {task[4]} of {task[1]} ended with code {self._process.wait()}")

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def serve() -> None:
    """Play tasks from standard input until it ends."""
    from .policies import policy
    from .simulation import make_world, play_run

    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        name, spec, duels, seed, run, times, steepness = json.loads(line)

        def go_on(share: float) -> bool:
            out.write(json.dumps({"share": share}).encode() + b"\n")
            out.flush()
            return True

        try:
            frame = play_run(make_world(name, steepness=steepness), policy(spec), duels, seed, run, times, go_on)
        except Exception as error:
            out.write(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n")
            out.flush()
            continue
        assert frame is not None  # nothing ends it
        content = io.BytesIO()
        frame.write_parquet(content)
        out.write(json.dumps({"bytes": len(content.getvalue())}).encode() + b"\n" + content.getvalue())
        out.flush()


if __name__ == "__main__":
    serve()
