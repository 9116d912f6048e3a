"""`duels judge`: real files, real programs, a real HTTP server, and a real terminal."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Person, duels_command
from judge_server import serving
from rich.cells import cell_len

import duels

KEY = "sk-secret-0123456789"
# The shorter output is better. It also keeps what it was asked.
PROGRAM = """
import json, sys
question = json.load(sys.stdin)
with open("asked", "a") as file:
    file.write(json.dumps(question) + "\\n")
print("left" if len(question["left"]) < len(question["right"]) else "right")
"""
ARMS = ("terse", "wordy", "very wordy")
PROMPTS = 40
JUDGE = f"{sys.executable} -S judge.py"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with forty prompts in wide format and a judge."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("DUELS_STORAGE", raising=False)
    write("wide.csv", ["prompt", *ARMS], [[f"prompt {k}", *(output(arm, k) for arm in ARMS)] for k in range(PROMPTS)])
    (tmp_path / "judge.py").write_text(PROGRAM)
    return tmp_path


def write(name, header, rows):
    with open(name, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def output(arm, k):
    return f"{arm} {k} {'…' * ARMS.index(arm)}"


def process(*arguments, **environment):
    """What `duels judge …` prints and its exit code, in a process of its own."""
    command = [sys.executable, "-m", "duels", "judge", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, timeout=60)


def judged(*arguments, **environment):
    """The same, in this process."""
    return duels_command("judge", *arguments, environment=environment)


def asked():
    with open("asked") as file:
        return [json.loads(line) for line in file]


def test_a_program_finds_the_winner_and_a_resumed_study_asks_nothing_twice(folder):
    first = judged("wide.csv", "--command", JUDGE, "--max-calls", "6", "--criteria", "Short.")
    assert first.returncode == 3, first.stderr
    assert "On prompts like these 40: no verdict yet" in first.stdout
    assert "Stopped at max_calls: raise it to continue." in first.stdout
    assert first.stdout.endswith("\n6 calls.\n")
    second = process("wide.csv", "--command", JUDGE, "--criteria", "Short.")
    assert (second.returncode, second.stderr) == (0, "")
    assert "On prompts like these 40: terse is the winner" in second.stdout
    assert re.search(r"\nrank +wins  won–lost–tied  arm\n   1 +\d+ % \(\d+–\d+\) +\d+–0–0  terse\n", second.stdout)
    questions = asked()
    assert {one["criteria"] for one in questions} == {"Short."}
    unique = {(one["prompt"], *sorted((one["left"], one["right"]))) for one in questions}
    assert len(unique) > 6
    again = len(questions) - len(unique)  # one in ten is asked a second time
    assert again > 1
    assert f"\nThe judge gave the same answer in {again} of {again} repeated questions." in second.stdout
    assert (
        f"\n{len(questions)} calls, {again} of them repeats. All pairs on all items take 120 calls: " in second.stdout
    )
    again = judged("wide.csv", "--command", JUDGE, "--criteria", "Short.")
    assert (again.returncode, again.stdout, len(asked())) == (0, second.stdout, len(questions))


def test_json_says_it_all(folder):
    done = judged("wide.csv", "--command", JUDGE, "-f", "json", "--study", "mine", "--storage", "sqlite:///own.db")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    study = duels.load_study("mine", "sqlite:///own.db")
    assert found["verdict"] == study.verdict().as_dict()
    assert found["leaderboard"] == [row._asdict() for row in study.leaderboard()]
    calls = len(asked())
    assert (found["study"], found["ended"], found["error"], found["calls"]) == ("mine", "verdict", None, calls)
    assert (found["cost"], found["agreements"]) == (0.0, [])
    (position,), (repeated,) = found["positions"], found["repeatability"]
    assert repeated == {"judge": None, "repeats": found["repeats"], "same": found["repeats"]}
    left_or_right = position["left"] + position["right"]
    assert (position["judge"], left_or_right, position["biased"]) == (None, calls - found["repeats"], False)
    assert (found["saved"], found["unanswered"], found["identical"]) == (pytest.approx(1 - calls / 120), 0, 0)
    assert found["words"] == str(study.verdict())
    rows = judged("wide.csv", "--command", JUDGE, "-f", "csv", "--study", "mine", "--storage", "sqlite:///own.db")
    assert rows.stdout.splitlines()[1].startswith("1,terse,")


def test_what_is_to_be_found_out(folder):
    """On prompts like these, ten are too few to ask anything; by these answers they are enough."""
    write("few.csv", ["prompt", *ARMS], [[f"prompt {k}", *(output(arm, k) for arm in ARMS)] for k in range(10)])
    few = judged("few.csv", "--command", JUDGE)
    assert (few.returncode, few.stderr) == (3, "")
    assert "\nWith 10 prompts no winner can be shown: 14 at least.\n" in few.stdout
    assert few.stdout.endswith("\nNo question that is left can bring a verdict.\n0 calls.\n")
    assert not Path("asked").exists()
    final = judged("few.csv", "--command", JUDGE, "--about", "these-answers")
    assert (final.returncode, final.stderr) == (0, "")
    assert "By the answers given on these 10 prompts: terse is the winner" in final.stdout
    count = len(asked())
    these = judged("few.csv", "--command", JUDGE, "--about", "these-items", "--max-calls", "60", "-f", "json")
    found = json.loads(these.stdout)
    assert (these.returncode, found["winner"], found["verdict"]["about"]) == (0, "terse", "these-items")
    assert len(asked()) == count + found["calls"]  # another study


@pytest.mark.parametrize("name", ["long.csv", "results.json"])
def test_other_files(folder, name):
    """Long format and promptfoo's results, as far as the first question; tests/votes has every detail."""
    write("long.csv", ["prompt", "arm", "output"], [[f"p {k}", arm, output(arm, k)] for k in range(3) for arm in ARMS])
    results = [
        {
            "testIdx": k,
            "promptIdx": p,
            "vars": {"question": f"p {k}"},
            "provider": {"id": arm},
            "prompt": {"raw": f"p {k}", "label": "answer"},
            "response": {"output": output(arm, k)},
        }
        for k in range(3)
        for p, arm in enumerate(ARMS)
    ]
    (folder / "results.json").write_text(json.dumps({"results": {"version": 3, "results": results}}))
    done = judged(name, "--command", JUDGE, "--max-calls", "1", "--about", "these-answers")
    assert done.returncode == 3, done.stderr
    assert "By the answers given on these 3 prompts: no verdict yet" in done.stdout
    assert {asked()[0][side].split(" ")[0] for side in ("left", "right")} <= {"terse", "wordy", "very"}


def test_a_language_model_with_a_key_that_never_shows(folder):
    with serving(strengths={"terse": 50.0, "wordy": 20.0, "very wordy": 0.0}, key=KEY) as server:
        model = ("wide.csv", "--openai", server.url, "--model", "fake", "--api-key-env", "MY_KEY")
        model += ("--price", "1000", "0", "--criteria", "The politer one.")
        wrong = judged(*model, MY_KEY="sk-another-987654321")
        assert wrong.returncode == 2
        assert "duels: the judge failed: " in wrong.stderr
        limited = judged(*model, "--max-cost", "1", "--concurrency", "1", MY_KEY=KEY)
        done = process(*model, "-f", "json", MY_KEY=KEY)
    assert (limited.returncode, limited.stderr) == (3, "")
    assert "Stopped at max_cost: raise it to continue." in limited.stdout
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["verdict"]["winner"], found["error"]) == ("terse", None)
    assert found["calls"] == sum(server.calls.values())
    # A call with the right key costs 0.2 dollars or a little more: the server counts 200 tokens, and some per output.
    assert 1 < server.kinds["answer"] < found["calls"]
    assert 0.2 <= found["cost"] / server.kinds["answer"] <= 0.22
    assert {request["authorization"] for request, _ in server.requests} == {
        f"Bearer {KEY}",
        "Bearer sk-another-987654321",
    }
    assert "Criteria: The politer one." in server.requests[0][1]["messages"][0]["content"]
    said = "".join(text for one in (wrong, limited, done) for text in (one.stdout, one.stderr))
    kept = b"".join(path.read_bytes() for path in folder.iterdir())
    for secret in (KEY, "sk-another"):
        assert secret not in said
        assert secret.encode() not in kept


def test_a_judge_that_prefers_a_side(folder):
    with serving(strengths=dict.fromkeys(ARMS, 0.0), first=0.999) as server:
        done = judged("wide.csv", "--openai", server.url, "--model", "fake", "--orders", "one", "-f", "json")
        turned = judged("wide.csv", "--openai", server.url, "--model", "fake", "--study", "auto")
    (position,) = json.loads(done.stdout)["positions"]
    assert position["biased"]
    assert position["share"] > 0.9
    assert "\nPosition bias: the judge prefers the left side in 100 % of its decisive answers.\n" in turned.stdout


def test_a_failing_program_has_an_exit_code_of_its_own(folder):
    """After its first answer this program is gone, which no further attempt can cure."""
    program = folder / "once.sh"
    program.write_text('#!/bin/sh\nrm "$0"\necho left\n')
    program.chmod(0o755)
    done = judged("wide.csv", "--command", str(program), "--concurrency", "1")
    assert done.returncode == 2
    assert "Stopped, because the judge failed: " in done.stdout
    assert "2 calls (1 question without a reply)." in done.stdout
    assert f"duels: the judge failed: {program} cannot be started" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["none.csv", "--command", "true"], "none.csv cannot be read: No such file or directory"),
        (["judge.py", "--command", "true"], "judge.py, line 2: the columns are"),
        (["wide.csv"], "there is no judge, and no terminal to ask you: add --openai URL --model NAME, or --command"),
        (["wide.csv", "--command", "no-such-program"], "there is no program 'no-such-program'"),
        (["wide.csv", "--command", "true", "--openai", "http://x/v1"], "two judges: expected one of them"),
        (["wide.csv", "--openai", "http://x/v1"], "--openai needs the name of a model: add --model NAME"),
        (["wide.csv", "--openai", "x", "--model", "m"], "expected such as https"),
        (["wide.csv", "--command", "true", "--model", "m"], "--model is about a language model: add --openai URL"),
        (["wide.csv", "--command", "true", "--max-cost", "1"], "--max-cost needs to know what a call costs"),
        (["wide.csv", "--command", "true", "--max-calls", "0"], "max_calls is 0"),
        (["wide.csv", "--command", "true", "--orders", "two"], "'two' is not one of"),
    ],
)
def test_what_is_refused(folder, options, message):
    done = judged(*options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (folder / "duels.db").exists() or "max_calls" in message


def test_a_key_in_place_of_its_name_is_not_shown():
    done = judged("wide.csv", "--openai", "http://localhost:1/v1", "--model", "m", "--api-key-env", KEY)
    assert done.returncode == 2
    assert "--api-key-env is not the name of an environment variable" in done.stderr
    assert KEY not in done.stderr


def test_changed_outputs_are_refused():
    assert judged("wide.csv", "--command", JUDGE, "--study", "mine", "--max-calls", "1").returncode == 3
    write("wide.csv", ["prompt", *ARMS], [[f"prompt {k}", "new", *map(str, ARMS[1:])] for k in range(PROMPTS)])
    done = judged("wide.csv", "--command", JUDGE, "--study", "mine")
    assert done.returncode == 2
    assert "study 'mine' exists, but the output of 'terse' for prompt 1 has changed" in done.stderr


LONGER = f"{sys.executable} -S longer.py"


@pytest.mark.parametrize("other", [["--command", LONGER], ["--command", JUDGE, "--criteria", "Longer."]])
def test_another_judge_is_another_study_or_refused(other):
    """By default it starts from nothing; with --study it is refused, and has asked nothing."""
    Path("longer.py").write_text(PROGRAM.replace("<", ">"))
    first = json.loads(judged("wide.csv", "--command", JUDGE, "-f", "json").stdout)
    second = json.loads(judged("wide.csv", *other, "-f", "json").stdout)
    assert first["verdict"]["winner"] == "terse"
    assert second["verdict"]["winner"] == ("very wordy" if LONGER in other else "terse")
    assert first["study"] != second["study"]
    assert judged("wide.csv", "--command", JUDGE, "--study", "mine", "--max-calls", "4").returncode == 3
    before = len(asked())
    done = judged("wide.csv", *other, "--study", "mine")
    assert (done.returncode, done.stdout, len(asked())) == (2, "", before)
    assert "study 'mine' was answered by another judge, CommandJudge " in done.stderr
    assert "choose another study_name (--study)" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert judged("wide.csv", "--command", JUDGE, "--study", "mine").returncode == 0


def test_the_help_fits_80_columns():
    done = judged("--help")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "The exit code is 0 if" in done.stdout


def test_a_person_at_the_terminal():
    person = Person("judge", "wide.csv", "--criteria", "Which is kinder?", "--max-calls", "9")
    for key in "aut":  # the first answer is taken back, and becomes a tie
        shown = person.until("Q quit")
        assert "Which is kinder?" in shown
        assert "prompt " in shown
        assert "starting" not in shown, "no line of progress in between"
        person.press(key)
    person.until("Q quit")
    person.press("q")
    shown, code = person.end()
    assert code == 130
    assert "Interrupted: run it again to resume." in shown
    assert "calls" in shown


def test_progress_on_a_terminal_and_ctrl_c():
    """One line, never wider than the terminal: calls, cost, the leader, how sure, money and time left."""
    width = 100
    names = ["日本語のモデル", "A prompt that is written as a whole sentence, and asks for a short answer"]
    write("names.csv", ["prompt", *names], [[k, *names] for k in range(1000)])
    with serving(strengths={names[0]: 0.1, names[1]: 0.0}, latency=0.05) as server:
        model = ("--openai", server.url, "--model", "fake", "--price", "900", "0", "--max-calls", "500")
        person = Person("judge", "names.csv", *model, width=width)
        shown = person.until("leads")
        shown += person.until("leads")
        person.process.send_signal(signal.SIGINT)
        rest, code = person.end()
    assert code == 130
    assert "stopping when the calls in progress have ended" in rest
    assert "Interrupted: run it again to resume." in " ".join(rest.split())
    lines = [re.sub(r"\x1b\[[?0-9;]*\w", "", line).strip() for line in re.split(r"\r|\n|\x1b\[2K", shown + rest)]
    lines = [line for line in lines if " leads (" in line]
    assert max(map(cell_len, lines)) < width
    left = r"about (\d+ calls?, )?\$[\d.]+, .*\d+ s left"
    form = rf"\S [\d,]+ calls? · \$[\d.]+ · (日本|A p).* leads \(>?\d+% sure\) · {left}"
    assert [line for line in lines if not re.fullmatch(form, line)] == []
