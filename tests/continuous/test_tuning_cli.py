"""`duels tune`, `duels study best`, and tuning studies in the other commands; files with spaces."""

import csv
import io
import json
import re
import shlex
import signal
import sys

import pytest
import typer.main
from commands import Person, duels_command

import duels
from duels import InvalidInput
from duels.cli import app
from duels.continuous.spaces import read_space
from duels.continuous.tuning.files import write_duels
from duels.study.items import scripts_allowed

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
    assert said.startswith("No preference found after 12 answers: the answers could be coin tosses")
    assert re.search(r"\nThe best guess is temperature 0\.\d+, style \w+, top_k \d+\.\n", said)
    assert "12 duels asked, as many as wanted" in said
    found = parsed(*tune, "--max-duels", "15")
    assert (found["study"], found["duels"], found["ended"], found["calls"]) == ("voice", 15, "max_duels", 15)
    assert found["setting"]["temperature"] == pytest.approx(0.6, abs=0.2)
    best = parsed("study", "best", "voice")
    assert {key: found[key] for key in best} == best
    (row,) = csv.DictReader(io.StringIO(run("study", "best", "voice", "-f", "csv")))
    assert json.loads(row["setting"]) == best["setting"]
    (listed,) = parsed("study", "list")
    assert (listed["name"], listed["arms"], listed["parameters"], listed["answers"]) == ("voice", None, 3, 15)
    assert "parameters" in run("study", "list")
    study = duels.load_study("voice")
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
    duels.create_study(space=read_space("space.toml"), study_name="voice", policy="random")
    asked = parsed("study", "ask", "voice", "-n", "3", "--voter", "ann")
    assert [row["duel"] for row in asked] == [0, 1, 2]
    assert set(asked[0]["left"]) == {"temperature", "style", "top_k"}
    assert [row["left"] for row in parsed("study", "open-duels", "voice")] == [row["left"] for row in asked]
    assert "style" in run("study", "open-duels", "voice")
    told = parsed("study", "tell", "voice", "0", "left", "--voter", "ann")
    assert (told["winner"], told["left"]) == ("left", asked[0]["left"])
    run("study", "tell", "voice", "1", "tie", "--voter", "bob")
    assert parsed("study", "undo", "voice", "0")["right"] == asked[0]["right"]
    run("study", "tell", "voice", "0", "right", "--voter", "ann")
    for file in ("v.csv", "v.jsonl", "v.parquet"):
        run("study", "export", "voice", "--out", file)
        name = f"copy of {file}"
        duels.create_study(space=read_space("space.toml"), study_name=name, policy="random")
        assert run("study", "import", name, file) == f"2 duels imported into '{name}'\n"
        one, other = duels.load_study("voice").votes(), duels.load_study(name).votes()
        assert one.drop("duel").equals(other.drop("duel"))  # numbered as they were answered
    assert (
        run("study", "export", "voice", "--out", "-")
        .splitlines()[0]
        .startswith("left.temperature,left.style,left.top_k")
    )
    assert run("study", "forget", "voice", "ann") == "'ann' is forgotten, with 1 answer\n"
    assert duels.load_study("voice").answers == 1


WORKS, REFUSES, NO_STUDY = "works", "refuses", "is about no study"
# Every command, with words that name a tuning study with two answers and an open duel, or a file of its answers.
COMMANDS = {
    "tune": (f"space.toml --study voice --command '{JUDGE} 0' -p random --max-duels 3", WORKS),
    "study create-tuning": ("voice space.toml --load-if-exists", WORKS),
    "study template": ("voice page.html", WORKS),
    "study best": ("voice", WORKS),
    "study list": ("", WORKS),
    "study delete": ("voice --yes", WORKS),
    "study ask": ("voice", WORKS),
    "study open-duels": ("voice", WORKS),
    "study tell": ("voice 2 both_bad", WORKS),
    "study undo": ("voice 0", WORKS),
    "study forget": ("voice ann", WORKS),
    "study export": ("voice --out out.csv", WORKS),
    "study import": ("voice answers.csv --again", WORKS),
    "study create": ("voice a b --load-if-exists", REFUSES),
    "judge": ("outputs.csv --command true --study voice", REFUSES),
    "study add-arm": ("voice c", REFUSES),
    "study retire-arm": ("voice left", REFUSES),
    "study allocate": ("voice -n 5", REFUSES),
    "study leaderboard": ("voice", REFUSES),
    "study verdict": ("voice", REFUSES),
    "study forecast": ("voice", REFUSES),
    "study ranking": ("voice", REFUSES),
    "analyze": ("answers.csv", "no column is known to be left or right"),
    "rate": ("answers.csv", "no column is known to be left or right"),
    "votes agreement": ("answers.csv", "no column is known to be left or right"),
    "matrix count": ("answers.csv", "no column is known to be left or right"),
    **dict.fromkeys(("reproduce", "run", "race", "plan", "serve"), ("", NO_STUDY)),
    **dict.fromkeys(
        (f"experiment {one}" for one in ("merge", "plot", "report", "run-continuous", "policies", "problems", "check")),
        ("", NO_STUDY),
    ),
    **dict.fromkeys((f"matrix {one}" for one in ("describe", "estimate", "generate")), ("", NO_STUDY)),
    **dict.fromkeys((f"token {one}" for one in ("create", "list", "revoke")), ("", NO_STUDY)),
}
NO_ARMS = (
    "study 'voice' tunes 3 parameters and has no arms to compare: load it with duels.load_study, and see its best "
    "setting with study.best (duels study best)"
)


def commands_of(group, *path):
    found = getattr(group, "commands", None)
    return [" ".join(path)] if found is None else [one for key in found for one in commands_of(found[key], *path, key)]


def test_the_table_has_all_commands():
    assert sorted(COMMANDS) == sorted(commands_of(typer.main.get_command(app)))


@pytest.mark.parametrize("command", [name for name, (_, how) in COMMANDS.items() if how != NO_STUDY])
def test_each_command_works_or_refuses_in_plain_words(command, folder):
    study = duels.create_study(space=read_space("space.toml"), study_name="voice", policy="random")
    for duel in study.ask(3)[:2]:
        study.tell(duel, "left", voter="ann")
    write_duels(study, "answers.csv")
    (folder / "page.html").write_text("<p>{{ style }}</p>")
    (folder / "outputs.csv").write_text("prompt,one,other\nWhy?,a,b\n")
    before = study.events()
    words, how = COMMANDS[command]
    done = duels_command(*command.split(), *shlex.split(words))
    if how == WORKS:
        assert done.returncode == 0, done.stderr
        return
    assert (done.returncode, done.stdout) == (2, "")
    assert (NO_ARMS if how == REFUSES else how) in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert study.events() == before


def test_creating_a_study_says_what_is_next(folder, monkeypatch):
    (folder / "page.html").write_text("<p>{{ style }} at {{ temperature }}, {{ top_k }}</p>")
    said = run(
        "study", "create-tuning", "my voice", "space.toml", "--template", "page.html", "-p", "random", "--seed", "3"
    )
    assert said == (
        "study 'my voice': 3 parameters, policy random. Next: duels serve for people who vote in a browser, or duels "
        "study ask 'my voice'\n"
    )
    study = duels.load_study("my voice")
    assert (study.space, study.policy, study._log.row.seed) == (read_space("space.toml"), "random", 3)
    assert study.template == "<p>{{ style }} at {{ temperature }}, {{ top_k }}</p>"
    assert not scripts_allowed(study)
    elsewhere = "sqlite:///other.db"
    options = ("--confidence", "0.8", "--lease", "60", "--scripts", "--template", "page.html")
    said = run("study", "create-tuning", "voice", "space.toml", *options, "--storage", elsewhere)
    assert f"Next: duels serve {elsewhere} for" in said
    assert said.endswith(f"or duels study ask voice --storage {elsewhere}\n")
    study = duels.load_study("voice", elsewhere)
    assert (study.confidence, study._log.row.lease, scripts_allowed(study)) == (0.8, 60.0, True)
    assert parsed("study", "create-tuning", "other", "space.toml") == {
        "study": "other",
        "policy": "eubo",
        "parameters": ["temperature", "style", "top_k"],
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("voice none.toml", "none.toml cannot be read: No such file or directory"),
        ("voice space.toml --template none.html", "none.html cannot be read: No such file or directory"),
        ("voice space.toml --template judge.py", "the template has no place for any parameter"),
        ("voice space.toml --scripts", "--scripts is about the page of --template"),
        ("voice space.toml -p rucb", "unknown policy for continuous spaces 'rucb'"),
        ("voice space.toml --confidence 2", "confidence is 2"),
        ("logo space.toml", "there is a study 'logo' already"),
        ("logo space.toml --load-if-exists", "study 'logo' compares arms"),
    ],
)
def test_what_cannot_be_created(words, message):
    duels.create_study(["a", "b"], "logo")
    done = duels_command("study", "create-tuning", *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert [one.name for one in duels.study.list_studies("sqlite:///duels.db")] == ["logo"]


def test_the_template_of_a_study(folder):
    page = "<p>{{ style }} at {{ temperature }}</p>\n"
    (folder / "page.html").write_text(page)
    study = duels.create_study(space=read_space("space.toml"), study_name="voice")
    assert run("study", "template", "voice") == "study 'voice' has no template: voters see the values\n"
    done = duels_command("study", "template", "voice", "page.html")
    assert done.stdout == "study 'voice': voters see page.html with the values; its scripts do not run\n"
    assert done.stderr == "the page has no place for top_k\n"
    assert study.template == page
    assert run("study", "template", "voice") == f"{page}\n"
    assert run("study", "template", "voice", "--scripts").endswith("; its scripts run\n")
    assert (study.template, scripts_allowed(study)) == (page, True)
    assert parsed("study", "template", "voice") == {
        "study": "voice",
        "template": page,
        "scripts": True,
        "unused": ["top_k"],
    }
    run("study", "template", "voice", "page.html", "--no-scripts")
    assert not scripts_allowed(study)
    for words, message in (
        ("page.html --remove", "page.html is to be set, and --remove removes the page"),
        ("--remove --scripts", "without a page there are no scripts"),
        ("judge.py --scripts", "the template has no place for any parameter"),
        ("none.html", "none.html cannot be read: No such file or directory"),
    ):
        done = duels_command("study", "template", "voice", *words.split())
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
    assert (study.template, scripts_allowed(study)) == (page, False)
    assert run("study", "template", "voice", "--remove") == "study 'voice': voters see the values\n"
    assert study.template is None
    run("study", "template", "voice", "page.html")
    run("study", "delete", "voice", "--yes")
    duels.create_study(space=read_space("space.toml"), study_name="voice")
    assert run("study", "template", "voice") == "study 'voice' has no template: voters see the values\n"
    duels.create_study(["a", "b"], "logo")
    assert "'logo' compares arms" in duels_command("study", "template", "logo", "page.html").stderr


def test_duels_that_are_there_already_are_noticed(folder):
    """As for votes on arms: by settings, answer, voter and time; without times, exactly the same file."""
    study = duels.create_study(space=read_space("space.toml"), study_name="voice", policy="random")
    for duel in study.ask(3):
        study.tell(duel, "left", voter="ann")
    run("study", "export", "voice", "--out", "three.csv")
    known = (
        "duels: 3 of these 3 duels are in 'voice' already (same settings, answer, voter and time): use --new to import "
        "only the others, or --again to count them twice; nothing was imported\n"
    )
    done = duels_command("study", "import", "voice", "three.csv")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", known)
    assert run("study", "import", "voice", "three.csv", "--new") == "0 duels imported into 'voice'\n"
    assert study.answers == 3
    assert "use one of them" in duels_command("study", "import", "voice", "three.csv", "--new", "--again").stderr
    assert (
        "--column is about votes on arms"
        in duels_command("study", "import", "voice", "three.csv", "--column", "left=a").stderr
    )
    copy = duels.create_study(space=read_space("space.toml"), study_name="copy", policy="random")
    assert run("study", "import", "copy", "three.csv") == "3 duels imported into 'copy'\n"
    assert duels_command("study", "import", "copy", "three.csv").stderr == known.replace("voice", "copy")
    study.tell(study.ask(), "tie", voter="bob")
    for file in ("four.csv", "four.jsonl", "four.parquet"):
        run("study", "export", "voice", "--out", file)
    assert "3 of these 4 duels are in 'copy' already" in duels_command("study", "import", "copy", "four.jsonl").stderr
    assert run("study", "import", "copy", "four.parquet", "--new") == "1 duel imported into 'copy'\n"
    assert copy.votes().equals(study.votes())  # with the times at which they were given
    assert run("study", "import", "copy", "four.csv", "--new") == "0 duels imported into 'copy'\n"
    assert run("study", "import", "copy", "four.csv", "--again") == "4 duels imported into 'copy'\n"
    assert copy.answers == 8
    lines = [json.loads(line) for line in (folder / "four.jsonl").read_text().splitlines()]
    plain = [{name: cell for name, cell in line.items() if name not in ("time", "voter")} for line in lines]
    (folder / "plain.jsonl").write_text("\n".join(map(json.dumps, plain)))
    assert run("study", "import", "copy", "plain.jsonl") == "4 duels imported into 'copy'\n"
    assert duels_command("study", "import", "copy", "plain.jsonl").stderr == (
        "duels: exactly these duels were imported into 'copy' before: use --again to count them twice; nothing was "
        "imported\n"
    )
    (folder / "plain.jsonl").write_text("\n".join(map(json.dumps, [*plain, plain[0]])))  # which may be another answer
    assert run("study", "import", "copy", "plain.jsonl") == "5 duels imported into 'copy'\n"
    assert (copy.answers, copy.check()) == (17, 35)


def test_best_of_a_study_of_arms():
    duels.create_study(["a", "b"], "logo")
    done = duels_command("study", "best", "logo")
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
    assert re.search(
        r"study 'voice' keeps its \d+ answers?: the same command continues, and duels study best voice", said
    )
    assert duels.load_study("voice").answers > 0


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
    assert "No preference found after 2 answers" in shown
    assert [row["winner"] for row in duels.load_study("mine").votes().iter_rows(named=True)] == ["right", "tie"]


# Files with spaces


def test_ways_to_write_a_space(folder):
    wanted = duels.Space({"t": (0.0, 1.5), "k": (1, 100, "log int"), "n": {"choices": [1, 2]}, "s": ["a", "b"]})
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
