"""A program as a judge."""

import asyncio
import contextlib
import json
import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from duels.errors import InvalidInput
from duels.judges import Answer, JudgeError, command
from duels.judges.questions import Question, as_judge

QUESTION = Question("2 + 2?", "4", "fünf\n\ud800", "terse", "wordy")


@pytest.fixture
def program(tmp_path):
    """Write a shell script, which starts faster than Python, and return the command that runs it."""

    def write(script):
        path = tmp_path / "judge me.sh"
        path.write_text(script)
        return f"sh {shlex.quote(str(path))}"

    return write


def ask(judge, question=QUESTION):
    return asyncio.run(as_judge(judge)(question))


def refused(judge):
    with pytest.raises(JudgeError) as error:
        ask(judge)
    return error.value


@pytest.mark.parametrize(
    ("printed", "answer"),
    [
        ("left", Answer("left")),
        ("RIGHT\\n\\n  \\n", Answer("right")),
        ("  Both_Bad  ", Answer("both_bad")),
        ("skip", Answer("skip")),
        ("wordy", Answer("right")),
        ("4 is shorter.\\n\\nleft is better, so\\nleft\\n", Answer("left", "4 is shorter.\n\nleft is better, so")),
        ("right\\r\\n", Answer("right")),
    ],
)
def test_answers(program, printed, answer):
    assert ask(command(program(f"printf '{printed}'"))) == answer


@pytest.mark.parametrize("printed", ["", "A", "WORDY", "left or right"])
def test_other_words_are_bad_skips(program, printed):
    answer = ask(command(program(f"echo '{printed}'")))
    assert (answer.answer, answer.bad) == ("skip", True)
    assert answer.note.startswith(f"the judge returned {printed!r}: expected left, right, tie")


def test_the_question_is_json_on_one_line(tmp_path):
    script = "import sys\nopen(sys.argv[1], 'w').write(sys.stdin.read())\nprint('tie')"
    (tmp_path / "judge.py").write_text(script)
    words = [sys.executable, str(tmp_path / "judge.py"), str(tmp_path / "$HOME; 'x'")]
    assert ask(command(shlex.join(words), criteria="Short.")) == Answer("tie")
    text = (tmp_path / "$HOME; 'x'").read_text()
    assert text.count("\n") == 1
    assert json.loads(text) == {"prompt": "2 + 2?", "left": "4", "right": QUESTION.right, "criteria": "Short."}
    ask(command(shlex.join(words)), QUESTION._replace(prompt=None))
    given = json.loads((tmp_path / "$HOME; 'x'").read_text())
    assert (given["prompt"], given["criteria"]) == (None, None)


def test_failures(program):
    error = refused(command(program("echo about it >&2; echo left; echo 'no \033[31mmodel' >&2; exit 3")))
    assert str(error) == "sh ended with exit code 3: about it\nno [31mmodel"
    assert error.can_retry
    assert str(refused(command(program("kill -9 $$")))).startswith("sh was ended by signal 9")
    long = refused(command(program("for i in 1 2 3 4 5 6 7 8 9; do printf '%0100d' $i >&2; done; exit 1")))
    assert len(str(long)) < 400
    assert str(long).endswith("9")


def test_a_program_need_not_read_and_may_print_much(program):
    long = QUESTION._replace(left="x" * 1_000_000)
    assert ask(command(program("echo left")), long) == Answer("left")
    answer = ask(
        command(program("head -c 3000000 /dev/zero | tr '\\0' y; echo; head -c 900000 /dev/zero >&2; echo tie"))
    )
    assert answer.answer == "tie"
    assert len(answer.note) == 2000


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition):
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_after_the_time_limit_all_that_was_started_is_killed(program, tmp_path):
    line = program(f"sleep 300 & echo $! > '{tmp_path}/child'; echo $$ > '{tmp_path}/parent'; wait")
    error = refused(command(line, timeout=0.5))
    assert str(error) == "sh did not answer within 0.5 seconds, and was killed"
    assert error.can_retry
    pids = [int((tmp_path / name).read_text()) for name in ("child", "parent")]
    wait_for(lambda: not any(map(alive, pids)))


def test_a_cancelled_question_ends_its_program(program, tmp_path):
    line = program(f"echo $$ > '{tmp_path}/pid'; sleep 300")

    async def main():
        task = asyncio.create_task(as_judge(command(line))(QUESTION))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    wait_for(lambda: not alive(int((tmp_path / "pid").read_text())))


def test_a_question_that_is_cancelled_while_its_program_starts_leaves_nothing(program):
    """At any moment of the start; asyncio alone would wait for what the program has started itself."""
    mark = f"300.{os.getpid()}"  # seconds, by which the program's own child is found
    judge = as_judge(command(program(f"sleep {mark}; echo left")))

    def running():
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if f"sleep\0{mark}\0" in path.read_text():
                    return True
        return False

    async def cancelled_after(steps):
        task = asyncio.create_task(judge(QUESTION))
        for _ in range(steps):
            await asyncio.sleep(0)
        if steps % 2:
            time.sleep(0.03)  # the program is faster than we are
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def main():
        for steps in range(16):
            await asyncio.wait_for(cancelled_after(steps), 10)

    asyncio.run(main())
    wait_for(lambda: not running())


def test_programs_run_together(program):
    judge = as_judge(command(program("sleep 0.3; echo left")))

    async def main():
        return await asyncio.gather(*(judge(QUESTION) for _ in range(8)))

    began = time.monotonic()
    assert asyncio.run(main()) == [Answer("left")] * 8
    assert time.monotonic() - began < 1.8, "one after the other takes 2.4 seconds"


def test_a_program_that_disappeared(tmp_path):
    path = tmp_path / "judge"
    path.write_text("#!/bin/sh\necho left\n")
    path.chmod(0o755)
    judge = command(str(path))
    assert ask(judge) == Answer("left")
    path.unlink()
    error = refused(judge)
    assert "cannot be started: No such file" in str(error)
    assert not error.can_retry


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"line": ""}, "command is ''"),
        ({"line": None}, "command is None"),
        ({"line": ["python", "judge.py"]}, "expected a program and its arguments, such as 'python judge.py'"),
        ({"line": "python 'judge.py"}, "cannot be split into words: No closing quotation"),
        ({"line": "no-such-program-here --fast"}, "there is no program 'no-such-program-here'"),
        ({"line": os.curdir}, "there is no program '.'"),
        ({"line": "sh", "timeout": 0}, "timeout is 0"),
        ({"line": "sh", "criteria": 3}, "criteria is 3"),
    ],
)
def test_arguments_that_are_refused(given, found):
    with pytest.raises(InvalidInput, match=found):
        command(**given)


def test_it_is_shown_as_it_was_made():
    assert repr(command("sh 'my judge.sh' --x=1")) == "command(\"sh 'my judge.sh' --x=1\")"
