"""Processes that play runs on named functions, one line of JSON per task.

Processes, because a step is short work in Python between short work in compiled code, which threads cannot share out.
Each has one BLAS thread, so that a run has the same digits however many run at once. They are started by their
module's name: a script that calls `simulate_continuous` needs no guard around it, as `multiprocessing` would.

Simulation on continuous spaces: one policy on one function, many runs.

Answers are drawn with P(left wins) = σ(steepness · (f(left) − f(right))/sd), where sd is the standard deviation of f
over the space. Regret is in these standard deviations: that of a duel is the mean of both settings' shortfall from the
maximum, simple regret is the shortfall of the recommendation.
"""

import contextlib
import hashlib
import io
import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from .. import specs
from ..checks import check_int
from ..engine import loop
from ..engine.threads import in_threads, thread_count
from ..errors import DuelsError, InvalidInput, format_count, shorten
from ..experiments.folder import Folder, gather
from ..provenance import Provenance, Session, build, machine, read_sessions, version
from ..results import SCHEMA, Results
from .blas import one_thread
from .functions import Function, find_function
from .model.search import refine_blindly, sobol
from .policies import DEFAULT, Policy, load_policy
from .policies.context import History, Memory
from .spaces import Setting, Space

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
    from .policies import load_policy

    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        name, spec, duels, seed, run, times, steepness = json.loads(line)

        def go_on(share: float) -> bool:
            out.write(json.dumps({"share": share}).encode() + b"\n")
            out.flush()
            return True

        try:
            frame = play_run(make_world(name, steepness=steepness), load_policy(spec), duels, seed, run, times, go_on)
        except Exception as error:
            out.write(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n")
            out.flush()
            continue
        assert frame is not None  # nothing ends it
        content = io.BytesIO()
        frame.write_parquet(content)
        out.write(json.dumps({"bytes": len(content.getvalue())}).encode() + b"\n" + content.getvalue())
        out.flush()


MOST_DUELS = 10_000
SPREAD_POINTS, OWN_POINTS = 14, 10  # 2^n Sobol' points give the standard deviation of a named function, and of yours
FEW = 300  # duels: so many are played sooner than processes start
NOTION = "utility"
Utility = Callable[[Setting], float]  # a function of your own
COLUMNS = {**SCHEMA, "recommendation": pl.String}


def simulate_continuous(
    function: str | Utility,
    policy: str | Policy = DEFAULT,
    *,
    duels: int = 100,
    runs: int = 1,
    seed: int = 0,
    steepness: float = 8.0,
    space: Space | Mapping[str, object] | None = None,
    maximum: float | None = None,
    checkpoints: Iterable[int] | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    progress: bool | None = None,
    **parameters: specs.Value,
) -> Results:
    """Play a policy on a function of continuous parameters, and report its regret and recommendation.

    Args:
        function: A name such as `"branin"` or `"ackley:d=4"`, or a function of your own that takes a setting (a dict
            by parameter name) and returns its utility.
        policy: A name such as `"eubo"` or `"gp_rucb:beta=3"`.
        duels: The number of duels, initial ones included.
        runs: The number of independent runs. Run r depends only on `seed` and r.
        seed: The seed of all runs.
        steepness: Left wins with probability σ(steepness · (f(left) − f(right))/sd).
        space: The space of a function of your own, as `duels.Space` takes it.
        maximum: The largest value of a function of your own; by default it is searched for.
        checkpoints: The numbers of duels to report at; by default all.
        jobs: How many runs to play at once; by default one per core. Named functions run in processes, functions of
            your own on threads.
        out: A folder to keep finished runs in. If the simulation is interrupted, the same call resumes it.
        progress: Whether to show a progress bar; by default on a terminal only.
        **parameters: Parameters of the policy.

    Returns:
        One row per run and checkpoint, as `duels.simulate` returns it. There are no arms: `arms`, `recommended`,
        `correct` and `explored` are null, and a column `recommendation` has the recommended setting as JSON.

    Raises:
        InvalidInput: If an argument is wrong.

    Example:
        >>> results = simulate_continuous("branin", "eubo", duels=50, runs=20)
        >>> results.frame["simple_regret"]
    """
    chosen = load_policy(policy, **parameters)
    world = make_world(function, space, maximum, steepness)
    duels = check_int("duels", duels, 1, MOST_DUELS)
    runs, seed, jobs = check_int("runs", runs, 1), check_int("seed", seed, 0), thread_count(jobs)
    times = _times(checkpoints, duels)
    chosen.ask(world.space, [], seed=seed)  # refuses a space that the policy cannot play on
    what = _identity(world, chosen, duels, runs, seed, times)
    played = _Played(world, chosen, duels, seed, times)
    if out is None:
        frames: dict[int, pl.DataFrame] = {}
        session = Session(played.place(runs, jobs))

        def keep(run: int, frame: pl.DataFrame) -> None:
            frames[run] = frame
            session.count(machine())

        played.all(list(range(runs)), jobs, keep, progress)
        return Results(pl.concat([frames[run] for run in range(runs)]), build(what, [session.record]))
    return _in_folder(Folder(out), what, played, runs, jobs, progress)


class World:
    """A function with its space, its spread and its maximum: where answers and regrets come from.

    Args:
        name: The function's name.
        space: Its space.
        utility: Its values at settings.
        maximum: Its largest value.
        sd: Its standard deviation over the space.
        steepness: Of the answers.
        named: Whether the name alone is enough to find it again.
    """

    def __init__(
        self, name: str, space: Space, utility: Utility, maximum: float, sd: float, steepness: float, named: bool
    ) -> None:
        self.name, self.space, self.utility = name, space, utility
        self.maximum, self.sd, self.steepness, self.named = maximum, sd, steepness, named

    def shortfall(self, setting: Setting) -> float:
        """How far the setting's utility is from the maximum, in standard deviations."""
        return (self.maximum - self.utility(setting)) / self.sd

    def answer(self, left: float, right: float, luck: np.random.Generator) -> float:
        """Draw the outcome of a duel of two settings with these shortfalls."""
        return 1.0 if luck.random() < 0.5 + 0.5 * math.tanh(0.5 * self.steepness * (right - left)) else 0.0


def make_world(
    function: str | Utility, space: object = None, maximum: float | None = None, steepness: float = 8.0
) -> World:
    """Find a named function, or measure one of your own, as `simulate_continuous` takes it.

    Raises:
        InvalidInput: If it cannot be used.
    """
    if isinstance(steepness, bool) or not isinstance(steepness, int | float) or not 0 < steepness < math.inf:
        raise InvalidInput(f"steepness is {steepness!r}: expected a positive number")
    if isinstance(function, str):
        if space is not None or maximum is not None:
            raise InvalidInput(f"{function} has its own space and maximum: leave them out")
        found = find_function(function)
        return World(found.name, found.space, _at_settings(found), found.maximum, _spread(found), steepness, True)
    if not callable(function):
        raise InvalidInput(
            f"{shorten(function)} is not a function: expected a name such as 'branin', or a Python function"
        )
    if space is None:
        raise InvalidInput("a function of your own needs a space: expected space={'x': (0.0, 1.0), …}")
    own = Space(space)  # type: ignore[arg-type]
    name = getattr(function, "__name__", type(function).__name__)
    utility = _check_function(function, name)
    points = own.snap(sobol(len(own), OWN_POINTS, np.random.default_rng(0)))
    values = np.array([utility(own.decode(point)) for point in points])
    if not values.std() > 0:
        raise InvalidInput(f"{name} has the same value everywhere: there is nothing to find")
    if maximum is None:
        starts = points[np.argsort(-values, kind="stable")[:3]]
        ends = [refine_blindly(lambda point: utility(own.decode(point)), start, own) for start in starts]
        maximum = max(values.max(), *ends)
    elif not isinstance(maximum, int | float) or not values.max() <= maximum < math.inf:
        raise InvalidInput(f"maximum is {maximum!r}: expected a number of at least {values.max():g}, which {name} has")
    return World(name, own, utility, float(maximum), float(values.std()), steepness, False)


def _at_settings(function: Function) -> Utility:
    names = function.space.names

    def utility(setting: Setting) -> float:
        return float(function.values(np.array([[setting[name] for name in names]]))[0])

    return utility


def _spread(function: Function) -> float:
    """The standard deviation of a named function over its space."""
    bounds = np.array([(one.low, one.high) for one in function.space.parameters.values()])  # type: ignore[union-attr]
    points = sobol(len(bounds), SPREAD_POINTS, np.random.default_rng(0))
    return float(function.values(bounds[:, 0] + points * (bounds[:, 1] - bounds[:, 0])).std())


def _check_function(function: Utility, name: str) -> Utility:
    def utility(setting: Setting) -> float:
        try:
            value = float(function(setting))
        except Exception as error:
            raise DuelsError(f"{name} failed at {setting}: {type(error).__name__}: {error}") from error
        if not math.isfinite(value):
            raise InvalidInput(f"{name} is {value} at {setting}: expected a finite number")
        return value

    return utility


def play_run(
    world: World,
    policy: Policy,
    duels: int,
    seed: int,
    run: int,
    times: Iterable[int],
    go_on: Callable[[float], bool] = lambda share: True,
) -> pl.DataFrame | None:
    """Play one run.

    Args:
        world: The function.
        policy: The policy.
        duels: The number of duels.
        seed: The seed of all runs.
        run: The run's number.
        times: The numbers of duels to report at.
        go_on: Called with the share of the run that is done; False ends it.

    Returns:
        The rows of the run; None if it was ended.
    """
    space, memory = world.space, Memory()
    wanted, rows = set(times), []
    _, luck = loop.streams(seed, run)
    history = History.of(space, [])
    regret = weak = 0.0
    for t in range(1, duels + 1):
        if not go_on((t - 1) / duels):
            return None
        left, right = policy.ask(space, history, seed=(seed, run), memory=memory)
        short = world.shortfall(left), world.shortfall(right)
        regret += 0.5 * (short[0] + short[1])
        weak += min(short)
        outcome = world.answer(*short, luck)
        history = history.with_duel(space.encode(left), space.encode(right), outcome)
        if t in wanted:
            best = policy.recommend(space, history, seed=(seed, run), memory=memory)
            rows.append((t, regret, weak, world.shortfall(best), t, json.dumps(best, ensure_ascii=False)))
    columns = ["t", "regret", "weak_regret", "simple_regret", "duels", "recommendation"]
    frame = pl.DataFrame(rows, schema={name: COLUMNS[name] for name in columns}, orient="row")
    frame = frame.with_columns(
        problem=pl.lit(world.name), policy=pl.lit(str(policy)), horizon=pl.lit(duels), run=pl.lit(run)
    )
    return frame.select(
        pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, kind).alias(name)
        for name, kind in COLUMNS.items()
    )


class _Played:
    """The runs of one simulation: on threads, or in processes if there is enough to do."""

    def __init__(self, world: World, policy: Policy, duels: int, seed: int, times: list[int]) -> None:
        self.world, self.policy, self.duels, self.seed, self.times = world, policy, duels, seed, times

    def place(self, runs: int, jobs: int) -> str:
        """Where runs are played, for the provenance."""
        return (
            format_count(jobs, "process", "processes")
            if self._in_processes(runs, jobs)
            else format_count(jobs, "thread")
        )

    def _in_processes(self, runs: int, jobs: int) -> bool:
        return self.world.named and min(jobs, runs) > 1 and runs * self.duels > FEW

    def all(self, runs: list[int], jobs: int, keep: Callable[[int, pl.DataFrame], None], progress: bool | None) -> None:
        """Play runs and keep the table of each."""
        lock, idle = threading.Lock(), list[Worker]()
        elsewhere = self._in_processes(len(runs), jobs)

        def one(place: int, stop: threading.Event, share: Callable[[float], None]) -> None:
            def go_on(done: float) -> bool:
                share(done)
                return not stop.is_set()

            run = runs[place]
            if elsewhere:
                with lock:
                    worker = idle.pop() if idle else Worker()
                opened.append(worker)
                task = self.world.name, str(self.policy), self.duels, self.seed, run, self.times, self.world.steepness
                frame = worker.play(task, go_on)
                with lock:
                    idle.append(worker)
            else:
                with one_thread():
                    frame = play_run(self.world, self.policy, self.duels, self.seed, run, self.times, go_on)
            if frame is not None and not stop.is_set():
                with lock:
                    keep(run, frame)

        opened: list[Worker] = []
        try:
            if runs:
                in_threads(one, len(runs), jobs, progress, f"{self.policy} on {self.world.name}")
        finally:
            for worker in opened:
                worker.close()


def _in_folder(
    folder: Folder, what: Provenance, played: _Played, runs: int, jobs: int, progress: bool | None
) -> Results:
    folder.claim(what, {})
    with folder.lock():
        if folder.finished:
            return folder.results(what)
        session = Session(played.place(runs, jobs))

        def keep(run: int, frame: pl.DataFrame) -> None:
            folder.keep(run, frame)
            session.count(machine())
            session.save(folder.parts)

        waiting = [run for run in range(runs) if folder.read_finished(run) is None]
        try:
            played.all(waiting, jobs, keep, progress)
        except BaseException as error:
            kept = sum(folder.part(run).exists() for run in range(runs))
            error.add_note(f"{kept} of {runs} runs are kept in {folder.path}: the same command resumes the simulation")
            raise
        table = gather([folder], range(runs), COLUMNS)
        results = Results(table, build(what, read_sessions([folder.parts])))
        results.save(folder.path)
        folder.remove_parts()
        return results


def _times(checkpoints: Iterable[int] | None, duels: int) -> list[int]:
    if checkpoints is None:
        return list(range(1, duels + 1))
    if not isinstance(checkpoints, Iterable) or isinstance(checkpoints, str):
        raise InvalidInput(f"checkpoints is {checkpoints!r}: expected a list of numbers of duels")
    return sorted({*(check_int("a checkpoint", t, 1, duels) for t in checkpoints), duels})


@cache
def _code() -> str:
    """Hash the code that plays: an interrupted simulation is not resumed with other code."""
    found = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        found.update(file.read_bytes())
    return found.hexdigest()[:16]


def _identity(world: World, policy: Policy, duels: int, runs: int, seed: int, times: list[int]) -> Provenance:
    """All that the table depends on, as plain data."""
    problem = {
        "function": "named" if world.named else "own",
        "space": world.space.to_dict(),
        "maximum": world.maximum,
        "sd": world.sd,
        "steepness": world.steepness,
        "regret": NOTION,
    }
    described = {
        "code": _code(),
        "parameters": {world.name: policy.params._asdict()},
        "name": getattr(policy.module, "NAME", policy.name),
    }
    return {
        "duels": version(),
        "problems": {world.name: problem},
        "policies": {str(policy): described},
        "horizons": [duels],
        "runs": runs,
        "seed": seed,
        "checkpoints": times,
        "tasks": runs,
    }


if __name__ == "__main__":
    serve()
