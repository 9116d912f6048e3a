"""The example study, played without waiting: the time that its voters take is only counted."""

import heapq
import random

import numpy as np
import pytest

from duels.server.demo import ALWAYS_LEFT, FIRST, SECONDS, Demo, Turn, first_turns
from duels.server.keys import find_key
from duels.study.answers.table import AnswerLog
from duels.study.state.counts import LEFT
from duels.study.voter_settings import voter_settings


def play(demo: Demo, until) -> float:
    """Let the voters vote, and return how many seconds that would have taken."""
    turns, now = first_turns(), 0.0
    while not until():
        turn = heapq.heappop(turns)
        duel, pause = demo.take(turn)
        now = turn.when
        heapq.heappush(turns, Turn(now + pause, turn.voter, duel))
    return now


@pytest.fixture
def demo(storage):
    return Demo(storage, random.Random(1))


def test_the_verdict_comes_while_one_watches(demo, storage):
    """Of 60 such studies with random seeds half had their verdict within 95 s, and all within 150 s."""
    seconds = play(demo, lambda: demo.study.verdict().kind != "not yet")
    assert demo.study.verdict().winner == "concise"
    assert 30 < seconds < 400
    assert demo.study._log.history().total < 700

    table = AnswerLog().follow(demo.study)
    assert set(table.voters) == set(SECONDS)
    assert set(table.item.tolist()) == set(range(1, 13))  # every item was shown
    assert table.comments
    theirs = table.voter == table.voters.index(ALWAYS_LEFT)
    assert np.all(table.answer[theirs] == LEFT)
    assert voter_settings(demo.study).comments

    assert Demo(storage).study.name == "demo-2"  # the one with a verdict is left as it is


def test_a_voter_who_has_seen_everything_waits(demo):
    """Nobody is asked about the same pair and prompt twice."""
    while True:
        duel, pause = demo.take(Turn(0.0, "Ada", None))
        if duel is None:
            break
        demo.take(Turn(0.0, "Ada", duel))
    assert demo.study._log.history().total == 10 * 12  # pairs and prompts
    assert pause > SECONDS["Ada"]
    assert demo.take(Turn(0.0, "Ben", None))[0] is not None


def test_there_is_something_to_see_at_once(demo):
    seconds = play(demo, lambda: demo.study._log.history().total >= FIRST)
    assert seconds < 10


def test_an_unfinished_study_is_resumed(demo, storage):
    play(demo, lambda: demo.study._log.history().total >= 5)
    again = Demo(storage)
    assert (again.study.name, again.link) == ("demo", None)
    assert find_key(storage, demo.link).study_id == demo.study._log.id


def test_a_study_of_somebody_elses_is_not_touched(storage):
    import duels

    duels.create_study(["a", "b"], "demo", storage)
    assert Demo(storage).study.name == "demo-2"


def test_a_retired_study_is_left_as_it_is(demo, storage):
    demo.study.retire()
    assert Demo(storage).study.name == "demo-2"
