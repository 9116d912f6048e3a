"""`duels tune`, `duels best`, and tuning studies in the other commands; files with spaces."""

import csv
import io
import json
import re
import signal
import sys

import pytest
from commands import Person, duels_command

import duels
from duels import InvalidInput
from duels.continuous.space_files import read_space

SPACE = 'temperature = [0.0, 1.5]\nstyle = ["terse", "warm"]\n\n[top_k]\nlow = 1\nhigh = 100\nlog = true\nint = true\n'
# Temperatures near 0.6 are better.
PROGRAM = """
import json, sys, time
question = json.loads(sys.stdin.readline())
away = [abs(question[side]["temperature"] - 0.6) for side in ("left", "right")]
time.sleep(float(sys.argv[1]))
print("because it is nearer")
print("left" if away[0] < away[1] else "right")
"""
JUDGE = f"{sys.executable} -S judge.py"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.toml").write_text(SPACE)
    (tmp_path / "judge.py").write_text(PROGRAM)
    return tmp_path


def run(*words):
    done = duels_command(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def parsed(*words):
    return json.loads(run(*words, "-f", "json"))


def test_from_a_space_to_the_best_setting_and_on():
    tune = ("tune", "space.toml", "--command", f"{JUDGE} 0", "--study", "voice", "-p", "eubo:initial=6")
    said = run(*tune, "--max-duels", "12")
    assert re.match(r"Best setting after 12 answers: temperature 0\.\d+, style \w+, top_k \d+\.\n", said)
    assert "12 duels asked, as many as wanted" in said
    found = parsed(*tune, "--max-duels", "15")
    assert (found["study"], found["duels"], found["ended"], found["calls"]) == ("voice", 15, "max_duels", 15)
    assert found["setting"]["temperature"] == pytest.approx(0.6, abs=0.2)
    best = parsed("best", "voice")
    assert {key: found[key] for key in best} == best
    (row,) = csv.DictReader(io.StringIO(run("best", "voice", "-f", "csv")))
    assert json.loads(row["setting"]) == best["setting"]
    (listed,) = parsed("studies")
    assert (listed["name"], listed["arms"], listed["parameters"], listed["answers"]) == ("voice", None, 3, 15)
    assert "parameters" in run("studies")
    study = duels.load_tuning("voice")
    assert study.check() == len(study.events())
    assert study.votes()["comment"][0] == "because it is nearer"


def test_each_task_has_a_study_of_its_own():
    """By space, judge, policy and seed; the same command goes on with it."""
    common = ("--max-duels", "2", "-p", "random")
    names = [
        parsed("tune", "space.toml", "--command", f"{JUDGE} {wait}", *common, "--seed", seed)["study"]
        for wait, seed in ((0, 0), (0, 0), (0.0, 0), (0, 1))
    ]
    assert names[0] == names[1]
    assert len(set(names)) == 3


def test_ask_tell_undo_open_forget_export_and_import():
    duels.create_tuning(read_space("space.toml"), "voice", policy="random")
    asked = parsed("ask", "voice", "-n", "3", "--voter", "ann")
    assert [row["duel"] for row in asked] == [0, 1, 2]
    assert set(asked[0]["left"]) == {"temperature", "style", "top_k"}
    assert [row["left"] for row in parsed("open", "voice")] == [row["left"] for row in asked]
    assert "style" in run("open", "voice")
    told = parsed("tell", "voice", "0", "left", "--voter", "ann")
    assert (told["winner"], told["left"]) == ("left", asked[0]["left"])
    run("tell", "voice", "1", "tie", "--voter", "bob")
    assert parsed("undo", "voice", "0")["right"] == asked[0]["right"]
    run("tell", "voice", "0", "right", "--voter", "ann")
    for file in ("v.csv", "v.jsonl", "v.parquet"):
        run("export", "voice", "--out", file)
        name = f"copy of {file}"
        duels.create_tuning(read_space("space.toml"), name, policy="random")
        assert run("import", name, file) == f"2 duels imported into '{name}'\n"
        one, other = duels.load_tuning("voice").votes(), duels.load_tuning(name).votes()
        assert one.drop("time", "duel").equals(other.drop("time", "duel"))
    assert run("export", "voice", "--out", "-").splitlines()[0].startswith("left.temperature,left.style,left.top_k")
    assert run("forget", "voice", "ann") == "'ann' is forgotten, with 1 answer\n"
    assert duels.load_tuning("voice").answers == 1


@pytest.mark.parametrize(
    "line",
    [
        "leaderboard voice",
        "verdict voice",
        "standing voice",
        "ranking voice",
        "allocate voice -n 5",
        "add-arm voice c",
        "retire-arm voice left",
        "create-study voice left right --load-if-exists",
    ],
)
def test_commands_about_arms_say_that_there_are_none(line):
    duels.create_tuning({"x": (0.0, 1.0)}, "voice")
    done = duels_command(*line.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "duels: study 'voice' tunes 1 parameter and has no arms to compare: load it with duels.load_tuning, and see "
        "its best setting with study.best (duels best)\n"
    )


def test_best_of_a_study_of_arms():
    duels.create_study(["a", "b"], "logo")
    done = duels_command("best", "logo")
    assert done.returncode == 2
    assert "'logo' compares arms" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("space.toml",), "there is no judge, and no terminal to ask you: add --command LINE"),
        (("none.toml", "--command", "true"), "none.toml cannot be read: No such file or directory"),
        (("space.toml", "--command", "no-such-program"), "there is no program 'no-such-program'"),
        (("space.toml", "--command", "true", "-p", "rucb"), "unknown policy for continuous spaces 'rucb'"),
        (("space.toml", "--command", "true", "--max-duels", "0"), "max_duels is 0"),
    ],
)
def test_what_cannot_be_run(words, message, folder):
    done = duels_command("tune", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_program_that_fails(monkeypatch):
    monkeypatch.setattr("duels.judges.retries.FIRST", 0.0)
    done = duels_command("tune", "space.toml", "--command", "false", "-p", "random", "--max-duels", "20")
    assert done.returncode == 2
    assert "the judge failed: false ended with exit code 1" in done.stderr
    assert "the same command continues" in done.stderr


@pytest.mark.deep
def test_ctrl_c_says_how_to_go_on():
    person = Person("tune", "space.toml", "--command", f"{JUDGE} 0.2", "-p", "random", "--name", "voice", width=200)
    person.until("asked")
    person.process.send_signal(signal.SIGINT)
    rest, code = person.end()
    assert code == 130
    said = " ".join(rest.split())
    assert re.search(r"study 'voice' keeps its \d+ answers?: the same command continues, and duels best voice", said)
    assert duels.load_tuning("voice").answers > 0


def test_a_person_at_the_terminal():
    person = Person("tune", "space.toml", "-p", "random", "--study", "mine", "--max-duels", "2", "--criteria", "Warm?")
    for key in "aub":  # the first answer is taken back
        shown = person.until("Q quit")
        assert "Warm?" in shown
        assert re.search(r"temperature [\d.]+", shown)
        person.press(key)
    person.until("Q quit")
    person.press("t")
    shown, code = person.end()
    assert code == 0
    assert "Best setting after 2 answers" in shown
    assert [row["winner"] for row in duels.load_tuning("mine").votes().iter_rows(named=True)] == ["right", "tie"]


# Files with spaces


def test_ways_to_write_a_space(folder):
    wanted = duels.space({"t": (0.0, 1.5), "k": (1, 100, "log int"), "n": {"choices": [1, 2]}, "s": ["a", "b"]})
    texts = {
        "short.toml": 't = [0.0, 1.5]\nk = [1, 100, "log int"]\nn = {choices = [1, 2]}\ns = ["a", "b"]\n',
        "long.toml": "[t]\nlow = 0.0\nhigh = 1.5\n[k]\nlow = 1\nhigh = 100\nint = true\nlog = true\n"
        '[n]\nchoices = [1, 2]\n[s]\nchoices = ["a", "b"]\n',
        "plain.json": json.dumps(wanted.to_dict()),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        assert read_space(name) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t = [0.0, x]", "bad.toml cannot be read: .*line 1"),
        ("t = [2.0, 1.0]", "bad.toml: t has the bounds 2 and 1"),
        ("t = [0, 1]", "bad.toml: t goes from 0 to 1: are these whole numbers only"),
        ("t = [1, 2, 3]", "bad.toml: t is"),
        ('t = ["a"]', "bad.toml: t has 1 choice"),
        ("t = 5", "bad.toml: t is 5"),
        ('[t]\nlow = 0.0\nhigh = 1.0\nif = "x"', "bad.toml: .*t.*"),
        ("", "bad.toml: .*is not a space"),
    ],
)
def test_errors_name_the_parameter(folder, text, message):
    (folder / "bad.toml").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_space("bad.toml")


def test_other_files_are_refused(folder):
    with pytest.raises(InvalidInput, match=r"judge.py is not a space: expected a \.toml or \.json file"):
        read_space("judge.py")
    (folder / "list.json").write_text("[1]")
    with pytest.raises(InvalidInput, match=r"list.json: .* is not a space"):
        read_space("list.json")
