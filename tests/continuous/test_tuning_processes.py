"""Tuning studies in several processes at once, and in processes that are killed."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

import duels
from duels.storage.storage import Storage

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
START = """
import os, sys, time
import duels
from duels.continuous.tuning import log as tuning
from duels.storage.storage import Storage
"""
ASKS_AND_TELLS = (  # in two processes
    START
    + """
os.fork()
study = duels.load_study("study", sys.argv[1])
for _ in range(int(sys.argv[2])):
    duel = study.ask()
    study.tell(duel, "left" if duel.left["x"] > duel.right["x"] else "right")
    os.write(1, f"{duel.id}\\n".encode())  # acknowledged
"""
)
HANGS_WHILE_IT_CHOOSES = (
    START
    + """
study = duels.load_study("study", sys.argv[1])
def hang(*arguments):
    print("here", flush=True)
    time.sleep(60)
tuning.choices = hang
study.ask()
"""
)
HANGS_BEFORE_IT_COMMITS = (
    START
    + """
study = duels.load_study("study", sys.argv[1])
study._log._choose(1)
flush = Storage.flush
def hang(self, connection):
    unwritten = bool(self._state.unwritten)
    flush(self, connection)
    if unwritten:
        print("here", flush=True)
        time.sleep(60)
Storage.flush = hang
study.ask()
"""
)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/duels.db"
    return request.getfixturevalue("postgres")


def started(program, url, *arguments):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    words = [sys.executable, "-c", program, url, *map(str, arguments)]
    return subprocess.Popen(words, start_new_session=True, **pipes)


def test_two_processes_ask_and_tell_at_once(url):
    duels.create_study(space=SPACE, storage=url, policy="eubo:initial=3", seed=1)
    out, errors = started(ASKS_AND_TELLS, url, 6).communicate(timeout=120)  # reads until both have ended
    assert errors == ""
    assert sorted(map(int, out.split())) == list(range(12))
    study = duels.load_study("study", Storage(url))
    assert (study.answers, study.open_duels()) == (12, [])
    assert study.check() == 25
    asked = [(duel.left, duel.right) for duel in map(study.duel, range(12))]
    assert not any(pair in asked[:place] for place, pair in enumerate(asked))


@pytest.mark.parametrize("program", [HANGS_WHILE_IT_CHOOSES, HANGS_BEFORE_IT_COMMITS], ids=["choosing", "writing"])
def test_killed_in_the_middle_of_a_question(url, program):
    """Nothing is lost, nothing is half written, and the next question is the one that was being asked."""
    if program is HANGS_WHILE_IT_CHOOSES and url.startswith("postgresql"):
        pytest.skip("no database is involved while it chooses")
    study = duels.create_study(space=SPACE, storage=url, policy="eubo:initial=3", seed=1)
    for _ in range(4):
        study.tell(study.ask(), "left")
    before, open_one = study.events(), study.ask()
    child = started(program, url)
    assert child.stdout.readline() == "here\n", child.stderr.read()
    child.kill()
    child.wait(60)
    child.communicate()
    kept = duels.load_study("study", Storage(url))
    assert kept.events()[: len(before)] == before
    assert kept.open_duels() == [open_one]
    undisturbed = duels.create_study(space=SPACE, study_name="other", storage=url, policy="eubo:initial=3", seed=1)
    for _ in range(4):
        undisturbed.tell(undisturbed.ask(), "left")
    undisturbed.ask()
    assert kept.ask()[:3] == undisturbed.ask()[:3]
    assert kept.check() == len(before) + 2


@pytest.mark.deep
def test_killed_at_random_moments_no_acknowledged_answer_is_lost(url):
    duels.create_study(space=SPACE, storage=url, policy="eubo:initial=3", seed=1)
    dice, acknowledged = random.Random(1), []
    for _ in range(8):
        both = started(ASKS_AND_TELLS, url, 1000)
        acknowledged.append(int(both.stdout.readline()))
        time.sleep(dice.uniform(0.0, 1.0))
        os.killpg(both.pid, signal.SIGKILL)
        out, _ = both.communicate()
        acknowledged += [int(line) for line in out.split("\n")[:-1]]
    assert len(set(acknowledged)) == len(acknowledged)  # nobody was given the same duel
    kept = duels.load_study("study", Storage(url))
    told = Counter(entry.duel for entry in kept.events() if entry.kind == "tell")
    assert set(acknowledged) <= set(told)
    assert set(told.values()) == {1}
    assert kept.check() == len(kept.events())
