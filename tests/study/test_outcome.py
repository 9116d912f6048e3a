"""What a run of judges prints."""

import subprocess
import sys

import pytest

import duels
from duels.judges import Answer
from duels.storage.storage import Storage
from duels.study.outcome import alarm_line, money
from duels.study.positions import Position

PROMPTS = [f"prompt {k}" for k in range(12)]
OUTPUTS = {arm: [f"{arm} {k}" for k in range(12)] for arm in ("terse", "wordy", "日本語")}
ORDER = list(OUTPUTS)


def judge(prompt, left, right):
    """The first of the arms is the best, and so on."""
    places = [ORDER.index(text.split()[0]) for text in (left, right)]
    return Answer("left" if places[0] < places[1] else "right", cost=0.004)


def found(judge=judge, outputs=OUTPUTS, **more):
    more = {"prompts": PROMPTS, "storage": Storage("sqlite://"), "concurrency": 1} | more
    return duels.find_best(outputs, judge, **more)


def test_a_winner():
    result = found()
    verdict, *table, costs = str(result).split("\n")
    assert verdict == str(result.verdict)
    assert verdict.startswith("On these 12 items: terse is the winner")
    # The other two never met, which counts as a half each: (0 + ½) / 2.
    assert table == ["rank  score  arm", "   1   100%  terse", "   2    25%  wordy", "   2    25%  日本語"]
    saved = 100 * (36 - result.calls) // 36  # 3 pairs, 12 prompts
    assert result.cost == pytest.approx(0.004 * result.calls)
    assert costs == f"{result.calls} calls, {money(result.cost)}. All pairs on all items take 36 calls: {saved}% saved."


def test_without_a_verdict_nothing_is_said_to_be_saved():
    result = found(max_calls=3)
    assert str(result).split("\n")[1] == "Stopped at max_calls: raise it to go on."
    assert str(result).endswith("\n3 calls, $0.012.")
    assert "saved" not in str(result)


def test_before_the_first_answer_there_is_no_leaderboard():
    result = found(lambda left, right: "skip", max_calls=2)
    assert "rank" not in str(result)
    assert str(result).endswith("\n2 calls.")


def test_what_went_wrong_is_counted():
    result = found(lambda left, right: "perhaps", max_calls=2)
    assert str(result).endswith("\n2 calls (2 replies without a usable answer).")


def test_many_arms():
    names = [f"arm {k}" for k in range(14)]
    result = duels.find_best(names, lambda left, right: min(left, right), max_calls=20, storage=Storage("sqlite://"))
    lines = str(result).split("\n")
    assert "   …  4 more arms" in lines
    assert len([line for line in lines if line.endswith("%")]) == 0
    assert sum("  arm " in line for line in lines[2:]) == 10


def test_items_like_these():
    assert str(found(population=True, max_calls=3)).startswith("On items like these 12: No verdict yet")


def test_position_bias_keeps_the_judge_s_name():
    result = found({"GPT": lambda left, right: "left"}, max_calls=30, orders="one")
    assert "\nPosition bias: GPT prefers the left side in 100% of its decisive answers." in str(result)
    assert alarm_line(Position(None, 1, 3, 0.25, True), "auto") == (
        "position bias: the judge prefers the right side in 75% of its decisive answers; "
        "every question is now asked in both orders"
    )


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (0, "$0.00"),
        (1234.5, "$1,234.50"),
        (0.42, "$0.42"),
        (0.1, "$0.10"),
        (0.0999, "$0.10"),
        (0.0123, "$0.012"),
        (0.05, "$0.050"),
        (0.0000123, "$0.000012"),
        (1e-9, "$0.0000000010"),
    ],
)
def test_money(dollars, text):
    assert money(dollars) == text


def test_one_line_at_the_end_if_progress_is_asked_for(capsys):
    found()
    assert capsys.readouterr() == ("", "")
    found(max_calls=3, progress=True)
    assert capsys.readouterr() == ("", "3 calls · $0.012: no winner yet (max_calls)\n")
    result = found(progress=True)
    assert capsys.readouterr().err.endswith(": terse is the winner (verdict)\n")
    assert result.winner == "terse"


INTERRUPTED = """
import os, signal, threading, time
from duels.study.run import in_thread
import asyncio

async def work(stop):
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    while not stop.is_set():
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)  # what is in progress
    return "ended"

print(in_thread(work))
"""


def test_ctrl_c_waits_for_what_is_in_progress():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert done.stdout == "ended\n", done.stderr
    assert done.stderr == "stopping when the calls in progress have ended; Ctrl-C again to leave them\n"
