"""A person at a terminal, which is a real pseudo-terminal with a process of its own."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from duels.errors import InvalidInput
from duels.judges import terminal
from duels.judges.terminal import HINT

SCRIPT = """
import asyncio, json, os, sys, termios
from duels.judges import terminal
from duels.judges.questions import JudgeError, Question, Undo, as_judge

async def main():
    judge = as_judge(terminal(**json.loads(sys.argv[2])))
    assert judge.most_at_once == 1
    for question in json.loads(sys.argv[1]):
        await asyncio.sleep(float(sys.argv[3]))
        before = termios.tcgetattr(0)
        try:
            print("GOT", (await judge(Question(*question, "terse", "wordy"))).answer, flush=True)
        except Undo:
            print("GOT Undo", flush=True)
        except JudgeError as error:
            os._exit(7 if str(error) == "the terminal was closed" and not error.can_retry else 8)
        finally:
            assert termios.tcgetattr(0) == before, "the terminal is as it was"

try:
    asyncio.run(main())
    print("DONE")
except KeyboardInterrupt:
    print("STOPPED")
"""
END = "Q quit"


class Person:
    """The other end of a terminal on which a program asks questions."""

    def __init__(self, questions, width=100, encoding="utf-8", pause=0, **given):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        environment = os.environ | {"TERM": "xterm", "PYTHONIOENCODING": encoding}
        environment = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, json.dumps(questions), json.dumps(given), str(pause)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = ""

    def until(self, text):
        """Read until this was shown; return all that was shown since the last call."""
        end = time.monotonic() + 30
        while text not in self.seen:
            assert select.select([self.ours], [], [], end - time.monotonic())[0], f"no {text!r} in {self.seen!r}"
            try:
                part = os.read(self.ours, 65536)
            except OSError:  # EIO: the program has ended
                part = b""
            assert part, f"no {text!r} in {self.seen!r}"
            self.seen += part.decode("utf-8", "replace")
        shown, _, self.seen = self.seen.partition(text)
        return shown + text

    def press(self, keys):
        os.write(self.ours, keys.encode())

    def answer(self, keys):
        """Wait for the next question, press keys, and return the question and the answer."""
        question = self.until(END)
        self.press(keys)
        self.until("GOT ")
        return question, self.until("\r\n").strip()

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.ours is not None:
            os.close(self.ours)


@pytest.fixture
def person():
    people = []

    def start(*arguments, **more):
        people.append(Person(*arguments, **more))
        return people[-1]

    yield start
    for one in people:
        one.close()


def plain(shown):
    """Without colors, which rich sets."""
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


KEYS = {"\x1b[D": "left", "\x1bOD": "left", "a": "left", "A": "left", "1": "left"}
KEYS |= {"\x1b[C": "right", "\x1bOC": "right", "b": "right", "2": "right", "t": "tie", "\x1b[B": "tie", "\x1bOB": "tie"}
KEYS |= {"x": "both_bad", "s": "skip", "u": "Undo", "\x7f": "Undo", "\x08": "Undo"}
# Keys that mean nothing are passed over, and what follows a key at once is dropped.
KEYS |= {"\x1b[A\x1b[1;5Xzé\x1aT": "tie", "left": "tie", "x" * 50: "both_bad"}


def test_keys(person):
    one = person([["2 + 2?", "4", "five"]] * (len(KEYS) + 1))
    assert [one.answer(keys)[1] for keys in KEYS] == list(KEYS.values())
    one.until(END)
    one.press("\x1b")  # an arrow key may arrive in parts
    time.sleep(0.1)
    one.press("[")
    time.sleep(0.1)
    one.press("C")
    assert "GOT right" in one.until("DONE")


def test_keys_pressed_before_a_question_is_shown_do_not_answer_it(person):
    one = person([["P", "x", "y"]] * 2, pause=0.2)
    assert one.answer("a")[1] == "left"
    one.press("xx")
    assert one.answer("b")[1] == "right"


@pytest.mark.parametrize("key", ["Q", "\x03"])
def test_stopping(person, key):
    one = person([["P", "x", "y"]] * 2)
    one.until(END)
    one.press(key)
    assert "GOT" not in one.until("STOPPED")
    assert one.process.wait(20) == 0


def test_side_by_side(person):
    one = person(
        [["What is\nit?", "first left\nsecond left", "only right " + "word " * 30]], criteria="The kinder one."
    )
    shown = plain(one.answer("a")[0])
    assert shown.index("The kinder one.") < shown.index("What is") < shown.index("first left")
    lines = shown.split("\r\n")
    (both,) = [line for line in lines if "first left" in line]
    assert "only right" in both, "on the same line"
    assert all(len(line) <= 100 for line in lines)
    assert HINT in shown
    assert shown.count("word") == 30, "nothing is cut"


def test_one_below_the_other_on_a_narrow_terminal(person):
    one = person([[None, "first", "w" * 200]], width=40)
    shown = plain(one.answer("a")[0])
    lines = shown.split("\r\n")
    (a,), (b,) = ([k for k, line in enumerate(lines) if letter in line] for letter in ("first", "┃ B"))
    assert a < b
    assert "Which is better?" in shown
    assert shown.count("w") >= 200
    assert all(len(line) <= 40 for line in lines)


def test_texts_cannot_control_the_terminal(person):
    evil = "[red]x[/red] :smile: \x1b[2J\x1b]0;title\x07 \x9b31m a\rb \x00\x08 \u202egnp.exe http://example.org"
    one = person([[evil, evil, evil]], criteria=evil)
    shown = one.answer("a")[0]
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown).count("\x1b") == 0
    assert not re.search("[\x00-\x07\x08\x0b\x0c\x0e-\x1a\x9b\u202e]", shown)
    assert not re.search("\r(?!\r?\n)", shown)
    text = plain(shown)
    assert text.count("[red]x[/red] :smile: [2J]0;title") == 4


def test_terminals_that_are_not_unicode(person):
    one = person([["Grüße →", "ja ✓", "no"]], encoding="ascii")
    one.until(END)
    one.press("b")
    assert "GOT right" in one.until("DONE")


def test_a_terminal_that_is_closed(person):
    one = person([["P", "x", "y"]])
    one.until(END)
    os.close(one.ours)
    one.ours = None
    assert one.process.wait(20) == 7


def test_without_a_terminal():
    with pytest.raises(InvalidInput, match="standard input or output is not a terminal"):
        terminal()
