"""How fast live studies are: a table, and benchmarks/out/study.json. Exit code 1 if a bar is missed.

    pip install optuna && python benchmarks/study.py

Durable ask + tell at K = 64 on SQLite, one thread and 32, with Optuna's ask + tell on the same disk in the same run;
how long a study of a million events takes to load, from its log and from its oldest snapshot; and a verdict of 200
arms after each of 100,000 answers.
"""

import json
import statistics
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
from table import report

import duels
from duels.storage.storage import Storage
from duels.study import base as live
from duels.study.state.counts import next_event
from duels.study.state.live import LiveState

ARMS = [f"model-{k}" for k in range(64)]
SECONDS = 3.0


def answer(study):
    duel = study.ask()
    study.tell(duel, "left" if duel.left < duel.right else "right")


def warm_study(folder, name):
    study = duels.create_study(ARMS, name, f"sqlite:///{folder}/duels.db")
    until = time.perf_counter() + 2.0
    while time.perf_counter() < until:  # until it is compiled
        answer(study)
    return study


def rate(study, threads):
    """ask + tell a second."""
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


def pace(step, seconds=1.0):
    """Steps a second on one thread."""
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        step()
        count += 1
    return count / (time.perf_counter() - started)


def against_optuna(folder, study, rounds=10):
    """Medians of both rates, measured in turns: a shared disk's speed changes from second to second."""
    try:
        import optuna
    except ImportError:  # it is no dependency
        return pace(lambda: answer(study), 5.0), None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    peer = optuna.create_study(storage=f"sqlite:///{folder}/optuna.db", sampler=optuna.samplers.RandomSampler(seed=0))
    both = [(pace(lambda: answer(study)), pace(lambda: peer.tell(peer.ask(), 0.5))) for _ in range(rounds)]
    return tuple(statistics.median(rates) for rates in zip(*both))


def grow(study, upto, arms=64, voters=0, items=0):
    """Append asks and tells until there are so many duels, past the policy; perhaps by many voters about many items."""
    store, history = study._log.storage, LiveState(study._log.row)
    history.apply(store.read_events(store.connection(), study._log.id, 0))
    rows = []
    for k in range(len(history.left), upto):
        left, right = k % arms, (k * 7 + 1 + k // arms) % arms
        right = right if right != left else (left + 1) % arms
        more = {"voter": f"voter of {k * k % voters}"} if voters else {}
        first = {} if k or not items else {"items": [[1, items]], "ready": list(range(arms))}
        note = {"note": json.dumps({"item": 1 + k * 13 % items} | first)} if items else {}
        ask = next_event(
            history, "ask", 1e9 + k, duel=k, attempt=0, left_arm=left, right_arm=right, swapped=0, **more, **note
        )
        history.seq, history.digest = ask.seq, ask.digest
        said = "left" if left < right else "right"
        tell = next_event(history, "tell", 1e9 + k, duel=k, attempt=0, answer=said, **more)
        history.seq, history.digest = tell.seq, tell.digest
        rows += [(study._log.id, *ask), (study._log.id, *tell)]
    store.connection().exec_driver_sql("BEGIN")
    for start in range(0, len(rows), 100_000):
        store.connection().exec_driver_sql(store._insert, rows[start : start + 100_000])
    store.connection().exec_driver_sql("COMMIT")
    store.histories.clear()


def million(folder, count=500_000):
    """A study of a million events; seconds to load it from the log, and from a snapshot as old as it ever gets."""
    url = f"sqlite:///{folder}/million.db"
    study = duels.create_study(ARMS, "million", url)

    def loaded():
        started = time.perf_counter()
        again = duels.load_study("million", Storage(url))
        again._log.prepare()
        again.verdict()
        return time.perf_counter() - started, again._log.history()

    grow(study, count - count // 25)
    live.SNAPSHOT_EVERY = 1
    answer(study)  # writes a snapshot
    grow(study, count)
    quick, history = min((loaded() for _ in range(3)), key=lambda one: one[0])
    assert (history.seq, history.snapshot_seq > 0.95 * history.seq) == (2 * count + 1, True)
    study._log.storage.connection().exec_driver_sql("DELETE FROM snapshots")
    full = min(loaded()[0] for _ in range(2))
    return full, quick


def verdicts(arms=200, answers=100_000):
    """Milliseconds of CPU for a verdict of many arms after each answer, and from the counts every hundredth time."""
    rng = np.random.default_rng(0)
    strength = rng.normal(0, 0.7, arms)
    row = duels.create_study([f"model-{k}" for k in range(arms)], "many", "sqlite://").row
    history = LiveState(row)
    history._add([f"model-{k}" for k in range(arms)])
    history.started_with = arms
    first = np.where(rng.random(answers) < 0.3, strength.argmax(), rng.integers(arms, size=answers))
    second = (first + 1 + rng.integers(arms - 1, size=answers)) % arms
    won = rng.random(answers) < 1 / (1 + np.exp(strength[second] - strength[first]))
    kept = counted = 0.0
    for duel, (left, right, is_left) in enumerate(zip(first.tolist(), second.tolist(), won.tolist())):
        history._ask(left, right, 0, 0.0)
        started = time.process_time()
        history._answer(duel, 0 if is_left else 1)
        found = history.verdict()
        kept += time.process_time() - started
        if duel % 100 == 0:
            started = time.process_time()
            assert found == history.goal.verdict(history.tally)
            counted += time.process_time() - started
    return 1e3 * kept / answers, 1e5 * counted / answers


def rows():
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        study = warm_study(folder, "study")
        one, peer = against_optuna(folder, study)
        yield "ask + tell a second, durable, K = 64, one thread", one, "/s", None
        if peer is not None:
            yield "Optuna's ask + tell a second", peer, "/s", None
            yield "  twenty times that over ours", 20 * peer / one, "x", 1.0
        many = statistics.median(rate(study, 32) for _ in range(3))
        yield "ask + tell a second, durable, K = 64, 32 threads", many, "/s", None
        yield "  5,000 a second over that", 5000 / many, "x", 1.0
        full, quick = million(folder)
        yield "a study of 1,000,000 events, loaded from its log", full, "s", 5
        yield "  from a snapshot and the 40,000 events since", quick, "s", 0.5
        kept, counted = verdicts()
        yield "a verdict of 200 arms after each of 100,000 answers", kept, "ms", 1
        yield "  computed from the counts", counted, "ms", None


if __name__ == "__main__":
    report("study", rows())
