"""How fast live studies are: a table, and benchmarks/out/study.json. Exit code 1 if a bar is missed.

    pip install optuna && python benchmarks/study.py

Durable ask + tell at K = 64 on SQLite, one thread and 32, with Optuna's ask + tell on the same disk in the same run;
and how long a study of a million events takes to load, from its log and from its snapshot.
"""

import tempfile
import threading
import time
import warnings
from pathlib import Path

from table import report

import duels
from duels.study import log as live
from duels.study.history import History, made
from duels.study.storage import Storage, open_storage

ARMS = [f"model-{k}" for k in range(64)]
SECONDS = 5.0


def answer(study):
    duel = study.ask()
    study.tell(duel, "left" if duel.left < duel.right else "right")


def rate(folder, threads):
    """ask + tell a second."""
    study = duels.create_study(ARMS, f"study-{threads}", f"sqlite:///{folder}/duels.db")
    until = time.perf_counter() + 2.0
    while time.perf_counter() < until:  # until it is compiled
        answer(study)
    counts = [0] * threads
    end = time.perf_counter() + SECONDS

    def work(number):
        while time.perf_counter() < end:
            answer(study)
            counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    started = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - started)


def optuna_rate(folder):
    """None where Optuna is not installed: it is no dependency."""
    try:
        import optuna
    except ImportError:
        return None

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    study = optuna.create_study(storage=f"sqlite:///{folder}/optuna.db", sampler=optuna.samplers.RandomSampler(seed=0))
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < SECONDS:
        trial = study.ask()
        trial.suggest_categorical("arm", ARMS)
        study.tell(trial, 0.5)
        count += 1
    return count / (time.perf_counter() - started)


def million(folder, count=500_000):
    """A study of a million events; seconds to load it from the log and from a snapshot."""
    url = f"sqlite:///{folder}/million.db"
    study = duels.create_study(ARMS, "million", url)
    store = open_storage(url)
    history = History(study._row, study._policy)
    history.apply(store.read_events(store.connection(), study._row.id, 0))
    rows = []
    for k in range(count):
        left, right = k % 64, (k * 7 + 1 + k // 64) % 64
        right = right if right != left else (left + 1) % 64
        ask = made(history, "ask", 1e9 + k, duel=k, attempt=0, left_arm=left, right_arm=right, swapped=0)
        history.seq, history.digest = ask.seq, ask.digest
        said = "left" if left < right else "right"
        tell = made(history, "tell", 1e9 + k, duel=k, attempt=0, answer=said)
        history.seq, history.digest = tell.seq, tell.digest
        rows += [(study._row.id, *ask), (study._row.id, *tell)]
    store.connection().exec_driver_sql("BEGIN")
    for start in range(0, len(rows), 100_000):
        store.connection().exec_driver_sql(store._insert, rows[start : start + 100_000])
    store.connection().exec_driver_sql("COMMIT")

    def loaded():
        started = time.perf_counter()
        again = duels.load_study("million", Storage(url))
        again._looked_at().player()
        again.verdict()
        return time.perf_counter() - started

    full = min(loaded() for _ in range(2))
    live.SNAPSHOT_EVERY = 1
    store.followers.clear()
    answer(study)  # writes a snapshot
    quick = min(loaded() for _ in range(3))
    return full, quick


def rows():
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        one = rate(folder, 1)
        yield "ask + tell a second, durable, K = 64, one thread", one, "/s", None
        if (peer := optuna_rate(folder)) is not None:
            yield "Optuna's ask + tell a second", peer, "/s", None
            yield "  twenty times that over ours", 20 * peer / one, "x", 1.0
        many = rate(folder, 32)
        yield "ask + tell a second, durable, K = 64, 32 threads", many, "/s", None
        yield "  5,000 a second over that", 5000 / many, "x", 1.0
        full, quick = million(folder)
        yield "a study of 1,000,000 events, loaded from its log", full, "s", 5
        yield "  from its snapshot", quick, "s", 0.5


if __name__ == "__main__":
    report("study", rows())
