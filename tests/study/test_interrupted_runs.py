"""Programs that are interrupted, killed, or run twice at once, and what the next one finds."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from judging_program import ARMS, CONCURRENCY, PROMPTS

import duels
from duels.study.items import add_items
from duels.study.judging import run
from duels.study.judging.ledger import Ledger

PROGRAM = Path(__file__).with_name("judging_program.py")
SERVER = Path(__file__).parents[1] / "judges" / "judge_server.py"
RETRIES = 4  # after the first attempt at a question


def started(*arguments):
    environment = os.environ | {"PYTHONPATH": str(Path(duels.__file__).parents[1])}
    command = [sys.executable, str(PROGRAM), *map(str, arguments)]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(program):
    """What it printed last: why it ended, the winner, calls, and calls that were not stored."""
    out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    reason, winner, calls, unstored = out.splitlines()[-1].rsplit(" ", 3)
    return reason, winner, int(calls), int(unstored)


def log_of(url):
    return duels.load_study("killed", url).events()


def folded(events):
    ledger = Ledger()
    for entry in events:
        ledger.take(entry)
    return ledger


@pytest.fixture
def server():
    strengths = json.dumps({"terse": 0.0, "plain": 0.0, "wordy": 0.0})
    command = [sys.executable, str(SERVER), "--strengths", strengths, "--latency", "0.02", "--errors", "0.05"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip()
        process.terminate()


def counters(server):
    with urllib.request.urlopen(server.removesuffix("/v1") + "/counters", timeout=10) as reply:
        return json.load(reply)


# Ctrl-C in a real process


def wait_for(program, lines):
    for _ in range(lines):
        assert program.stdout.readline() == "asked\n"


def test_the_first_interrupt_waits_for_calls_in_flight_and_stores_them(url):
    program = started(url, 0.5)
    wait_for(program, CONCURRENCY)
    program.send_signal(signal.SIGINT)
    reason, _, calls, unstored = ended(program)
    assert (reason, calls, unstored) == ("interrupted", CONCURRENCY, 0)
    kinds = Counter(entry.kind for entry in log_of(url))
    assert kinds == {"create": 1, "ask": CONCURRENCY, "tell": CONCURRENCY}


def test_the_second_interrupt_leaves_calls_in_flight(url):
    program = started(url, 120)
    wait_for(program, CONCURRENCY)
    program.send_signal(signal.SIGINT)
    assert "Ctrl-C again" in program.stderr.readline()
    before = time.monotonic()
    program.send_signal(signal.SIGINT)
    _, error = program.communicate(timeout=100)
    assert time.monotonic() - before < 20  # not two minutes
    assert "KeyboardInterrupt" in error
    ledger = folded(log_of(url))
    assert ledger.total()[:2] == (CONCURRENCY, CONCURRENCY)
    assert len(ledger.open) == CONCURRENCY
    again = ended(started(url, 0, 2 * CONCURRENCY + 1))  # asks these first
    assert again == ("max_calls", "None", 2 * CONCURRENCY + 1, CONCURRENCY)
    events = log_of(url)
    assert [entry.duel for entry in events if entry.kind == "again"] == list(range(CONCURRENCY))
    assert folded(events).open == {}


# kill -9


def kill_and_resume(url, server, kills, seed):
    """Kill the program at random moments, then let it end; return what it printed at the end."""
    chance, stored = random.Random(seed), []
    for _ in range(kills):
        program = started(url, server)
        at_least = counters(server)["calls"] + chance.randint(1, 12)
        until = time.monotonic() + 30
        while counters(server)["calls"] < at_least and program.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.03))  # also between two calls
        program.kill()
        program.communicate()
        answers = [(one.duel, one.answer) for one in log_of(url) if one.kind == "tell"]
        assert answers[: len(stored)] == stored  # no stored answer was lost
        stored = answers
    return ended(started(url, server))


def check_after(url, server, kills, end):
    study = duels.load_study("killed", url)
    events = study.events()
    told = Counter(entry.duel for entry in events if entry.kind == "tell" and "failed" not in entry.note)
    again = Counter(entry.duel for entry in events if entry.kind == "again")
    assert all(count <= 1 + again[duel] for duel, count in told.items())  # none twice, unless it was asked again
    about = Counter((frozenset((one.left, one.right)), one.note["item"]) for one in events if one.kind == "ask")
    assert set(about.values()) == {1}  # no question twice
    made = counters(server)["calls"]
    reason, _, calls, unstored = end
    assert made <= calls + kills * CONCURRENCY * RETRIES
    assert calls <= made + kills * CONCURRENCY  # begun, and not made
    assert unstored <= kills * CONCURRENCY
    assert calls == folded(events).calls
    # What was made and not stored was lost at a kill: of each worker one question, with its retries.
    assert calls - unstored <= made <= calls - unstored + kills * CONCURRENCY * (RETRIES + 1)
    assert study.check() == len(events)
    assert study.open_duels() == [] or reason == "verdict"
    assert reason in ("verdict", "exhausted")


def test_kill_and_resume(url, server):
    check_after(url, server, 2, kill_and_resume(url, server, 2, seed=1))


@pytest.mark.deep
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_twenty_kills(request, url, server, database):
    url = url if database == "sqlite" else request.getfixturevalue("postgres")
    check_after(url, server, 20, kill_and_resume(url, server, 20, seed=2))


# twice at once


@pytest.mark.parametrize("database", [pytest.param("sqlite", marks=pytest.mark.deep), "postgres"])
@pytest.mark.deep
def test_two_programs_at_once(request, url, server, database):
    url = url if database == "sqlite" else request.getfixturevalue("postgres")
    programs = [started(url, server) for _ in range(2)]
    ends = [ended(program) for program in programs]
    assert {end[0] for end in ends} <= {"verdict", "exhausted"}
    study = duels.load_study("killed", url)
    events = study.events()
    ledger = folded(events)
    assert set(Counter(one.duel for one in events if one.kind == "tell").values()) == {1}
    about = Counter((frozenset((one.left, one.right)), one.note["item"]) for one in events if one.kind == "ask")
    assert set(about.values()) == {1}
    assert ledger.total().unstored == 0
    assert ledger.calls == counters(server)["calls"]  # nothing was lost, so they are equal
    assert study.check() == len(events)
    assert len(about) <= len(PROMPTS) * len(ARMS)


def test_a_second_run_waits_for_what_the_first_one_asks(url):
    """It pays for no question twice, and ends when the first one's answers are there."""
    asked, first_are_out, go = [], threading.Event(), threading.Event()

    def judge(prompt, left, right):
        asked.append((prompt, frozenset((left, right))))
        if len(asked) == 3:
            first_are_out.set()
        if len(asked) <= 3:
            go.wait(20)
        return "left" if left.startswith("a") == (int(prompt) % 2 == 0) else "right"  # level up to the end

    arms, prompts = ["a", "b"], [str(k) for k in range(12)]
    study = duels.create_study(arms, "both", url, about="these-answers")
    add_items(study, [{"prompt": prompt, "outputs": {arm: f"{arm} {prompt}" for arm in arms}} for prompt in prompts])
    options = {"concurrency": 3, "orders": "one", "progress": False}
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(study.run, judge, **options)
        assert first_are_out.wait(20)
        second = pool.submit(duels.load_study("both", url).run, judge, **options)
        until = time.monotonic() + 20
        while len(set(asked)) < 12 and not second.done() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.2)
        assert not second.done()  # there is nothing left but what the first one asks
        go.set()
        ends = {first.result(30).ended, second.result(30).ended}
    assert len(study.votes()) == 12
    repeats = sum(entry.kind == "again" for entry in study.events())  # one in ten, to see how often it agrees
    assert len(asked) == 12 + repeats
    assert len(set(asked)) == 12
    assert ends <= {"all asked", "exhausted", "verdict"}, ends
    assert folded(study.events()).total().unstored == 0


def test_a_run_that_has_ended_is_not_waited_for():
    token = run.new_token()
    host, _, number = token.split("-")
    assert not run.is_running(token, 1.0, 3600.0)
    with run.noted_as_running(token):
        assert run.is_running(token, 10_000.0, 3600.0)
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    assert not run.is_running(f"{host}-{gone.pid}-{number}", 1.0, 3600.0)
    parent = f"{host}-{os.getppid()}-{number}"
    assert (run.is_running(parent, 1.0, 3600.0), run.is_running(parent, 3600.0, 3600.0)) == (True, False)
    elsewhere = f"{'0' * len(host)}-{gone.pid}-{number}"
    assert (run.is_running(elsewhere, 599.0, 3600.0), run.is_running(elsewhere, 600.0, 3600.0)) == (True, False)
