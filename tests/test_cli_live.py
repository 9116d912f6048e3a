"""The commands of live studies: what they print, in which form, and how they refuse."""

import csv
import io
import json

import commands
import pytest

import duels
from duels.study.storage import Storage

ARMS = ["fox", "owl", "wren"]


def duels_command(*arguments, cwd, storage=None, stdin=""):
    return commands.duels_command(*arguments, cwd=cwd, stdin=stdin, environment={"DUELS_STORAGE": storage})


def output(*arguments, cwd, **more):
    done = duels_command(*arguments, cwd=cwd, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(*arguments, cwd, **more):
    """What an error says: one line on standard error, nothing on standard output, exit code 2."""
    done = duels_command(*arguments, cwd=cwd, **more)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("duels: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("duels: ").strip()


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def table_of(text):
    """The rows of a table for people, without its rule, as lists of words."""
    head, _, *rows = text.splitlines()
    return head.split(), [row.split() for row in rows]


def loaded(folder, name="logo", file="duels.db"):
    return duels.load_study(name, Storage(f"sqlite:///{folder / file}"))


@pytest.fixture
def logo(tmp_path):
    """A folder with a study in which fox beat owl twice, owl beat wren, and fox and wren tied."""
    study = duels.create_study(ARMS, "logo", Storage(f"sqlite:///{tmp_path / 'duels.db'}"))
    study.import_votes(
        [("fox", "owl", "left"), ("owl", "fox", "right"), ("owl", "wren", "left"), ("fox", "wren", "tie")]
    )
    return tmp_path


def test_create_ask_and_tell(tmp_path):
    said = output("create-study", "logo", *ARMS, cwd=tmp_path)
    assert said == "study 'logo': 3 arms, policy rucb. Next: duels ask logo\n"
    (asked,) = json.loads(output("ask", "logo", "-f", "json", cwd=tmp_path))
    assert asked["duel"] == 0
    assert {asked["left"], asked["right"]} < set(ARMS)
    assert output("tell", "logo", "0", "right", "--voter", "ann", cwd=tmp_path) == ""
    (vote,) = loaded(tmp_path).votes()
    assert (vote.left, vote.right, vote.winner, vote.voter) == (asked["left"], asked["right"], "right", "ann")
    assert output("tell", "logo", "0", asked["right"], cwd=tmp_path) == ""  # the same again
    assert "was answered 'right' already" in refusal("tell", "logo", "0", "tie", cwd=tmp_path)
    assert output("undo", "logo", "0", cwd=tmp_path) == ""
    assert len(loaded(tmp_path).votes()) == 0
    assert "no answer to undo" in refusal("undo", "logo", "0", cwd=tmp_path)


def test_ask_for_several_in_every_format(tmp_path):
    output("create-study", "logo", *ARMS, cwd=tmp_path)
    head, rows = table_of(output("ask", "logo", "-n", "2", "--voter", "ann", cwd=tmp_path))
    assert head == ["duel", "left", "right"]
    assert [row[0] for row in rows] == ["0", "1"]
    more = rows_of(output("ask", "logo", "-n", "3", "--no-self", "-f", "csv", cwd=tmp_path))
    assert [row["duel"] for row in more] == ["2", "3", "4"]
    study = loaded(tmp_path)
    assert [list(duel[:3]) for duel in study.open_duels()] == [
        [int(number), left, right] for number, left, right in [*rows, *(row.values() for row in more)]
    ]
    asked = study.events()[1:]
    assert [entry.voter for entry in asked] == ["ann", "ann", None, None, None]
    assert [entry.note for entry in asked] == [{}, {}] + [{"allow_self": False}] * 3


def test_no_self_is_heeded(tmp_path):
    """RUCB has an arm that won all of many duels meet itself, unless it is told not to."""
    study = duels.create_study(["fox", "owl"], "logo", Storage(f"sqlite:///{tmp_path / 'duels.db'}"))
    study.import_votes([("fox", "owl", "left")] * 200)
    (asked,) = json.loads(output("ask", "logo", "-f", "json", cwd=tmp_path))
    assert (asked["left"], asked["right"]) == ("fox", "fox")
    (asked,) = json.loads(output("ask", "logo", "--no-self", "-f", "json", cwd=tmp_path))
    assert {asked["left"], asked["right"]} == {"fox", "owl"}


def test_arms_from_a_file_and_options(tmp_path):
    (tmp_path / "arms.txt").write_text("step by step\n\n  größer  \n", encoding="utf-8")
    what = ["create-study", "logo", "fox", "--arms-file", "arms.txt", "-p", "savage", "--horizon", "1e4"]
    said = output(*what, "--seed", "7", "--lease", "30", cwd=tmp_path)
    assert said == "study 'logo': 3 arms, policy savage. Next: duels ask logo\n"
    study = loaded(tmp_path)
    assert study.arms == ["fox", "step by step", "größer"]
    assert (study._row.horizon, study._row.seed, study._row.lease) == (10_000, 7, 30.0)
    assert "arms.csv cannot be read" in refusal("create-study", "x", "--arms-file", "arms.csv", cwd=tmp_path)


def test_load_if_exists(logo):
    assert "there is a study 'logo' already" in refusal("create-study", "logo", *ARMS, cwd=logo)
    assert "3 arms" in output("create-study", "logo", *ARMS, "--load-if-exists", cwd=logo)
    assert len(loaded(logo).votes()) == 4
    assert "other arms" in refusal("create-study", "logo", "fox", "owl", "--load-if-exists", cwd=logo)
    assert "policy rucb" in refusal("create-study", "logo", *ARMS, "-p", "random", "--load-if-exists", cwd=logo)


def test_studies(logo):
    output("create-study", "empty", "a", "b", "-p", "random", cwd=logo)
    output("ask", "empty", "-n", "2", cwd=logo)
    rows = json.loads(output("studies", "-f", "json", cwd=logo))
    created = [row.pop("created") for row in rows]
    assert rows == [
        {"name": "logo", "policy": "rucb", "arms": 3, "answers": 4, "open": 0},
        {"name": "empty", "policy": "random", "arms": 2, "answers": 0, "open": 2},
    ]
    assert [row["created"] for row in rows_of(output("studies", "-f", "csv", cwd=logo))] == created
    head, table = table_of(output("studies", cwd=logo))
    assert head == ["name", "policy", "arms", "answers", "open", "created"]
    assert [row[:5] for row in table] == [["logo", "rucb", "3", "4", "0"], ["empty", "random", "2", "0", "2"]]


def test_no_studies(tmp_path):
    done = duels_command("studies", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("no studies yet")
    assert output("studies", "-f", "json", cwd=tmp_path) == "[]\n"


def test_leaderboard(logo):
    """fox: 2 wins over owl, a tie with wren: score (1 + ½)/2. owl: (0 + 1)/2. wren: (½ + 0)/2. Each leads: 1, 1, 0."""
    rows = json.loads(output("leaderboard", "logo", "-f", "json", cwd=logo))
    assert [
        (row["rank"], row["arm"], row["duels"], row["wins"], row["losses"], row["ties"], row["score"], row["beats"])
        for row in rows
    ] == [(1, "fox", 3, 2, 0, 1, 0.75, 1), (2, "owl", 3, 1, 2, 0, 0.5, 1), (3, "wren", 2, 0, 1, 1, 0.25, 0)]
    table = rows_of(output("leaderboard", "logo", "-f", "csv", cwd=logo))
    assert [float(row["lower"]) for row in table] == [row["lower"] for row in rows]
    narrower = json.loads(output("leaderboard", "logo", "--confidence", "0.5", "-f", "json", cwd=logo))
    assert all(row["upper"] < wide["upper"] for row, wide in zip(narrower[1:], rows[1:]))
    loaded(logo).retire_arm("wren")
    shown = output("leaderboard", "logo", cwd=logo).splitlines()
    assert shown[0].split()[:4] == ["rank", "arm", "score", "between"]
    assert shown[2].split()[:3] == ["1", "fox", "1.000"]
    assert shown[4].split()[:2] == ["wren", "(retired)"]


def test_verdict(tmp_path):
    """Two arms at 95 % need eight wins in a row: 1/δ' = 40, and the evidence is 26.8 after seven, 50.3 after eight."""
    study = duels.create_study(["fox", "owl"], "logo", Storage(f"sqlite:///{tmp_path / 'duels.db'}"))
    study.import_votes([("fox", "owl", "left")] * 7)
    assert output("verdict", "logo", cwd=tmp_path).startswith("No verdict yet: fox ranks first")
    assert "fox is the winner" in output("verdict", "logo", "--confidence", "0.9", cwd=tmp_path)
    study.import_votes([("owl", "fox", "right")])
    found = json.loads(output("verdict", "logo", "-f", "json", cwd=tmp_path))
    assert (found["kind"], found["winner"], found["duels"], found["void"]) == ("winner", "fox", 8, None)
    (row,) = rows_of(output("verdict", "logo", "-f", "csv", cwd=tmp_path))
    assert (row["kind"], row["winner"], row["void"]) == ("winner", "fox", "")
    output("undo", "logo", "0", cwd=tmp_path)
    assert "1 answer was taken back" in output("verdict", "logo", cwd=tmp_path)
    assert "confidence" in refusal("verdict", "logo", "--confidence", "1.5", cwd=tmp_path)


def test_a_margin(tmp_path):
    study = duels.create_study(["old", "new"], "logo", Storage(f"sqlite:///{tmp_path / 'duels.db'}"))
    study.import_votes([("old", "new", "tie")] * 500)
    assert output("verdict", "logo", cwd=tmp_path).startswith("No verdict yet")
    found = json.loads(output("verdict", "logo", "--margin", "0.2", "-f", "json", cwd=tmp_path))
    assert (found["kind"], found["margin"]) == ("practically tied", 0.2)


@pytest.mark.parametrize("name", ["votes.csv", "votes.jsonl.gz"])
def test_export_and_import(logo, name):
    done = duels_command("export", "logo", "--out", name, cwd=logo)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"4 votes are in {name}\n")
    done = duels_command("import", "copy", name, "--create", "-p", "random", cwd=logo)
    assert (done.returncode, done.stdout) == (0, "4 votes were taken into 'copy'\n")
    assert "left, right, winner" in done.stderr
    original, copy = loaded(logo), loaded(logo, "copy")
    assert (copy.policy, copy.arms) == ("random", ARMS)
    assert [vote[:5] for vote in copy.votes()] == [vote[:5] for vote in original.votes()]
    assert copy.leaderboard() == original.leaderboard()
    assert output("import", "logo", name, cwd=logo) == "4 votes were taken into 'logo'\n"
    assert len(loaded(logo).votes()) == 8


def test_export_in_the_arena_form(logo):
    output("export", "logo", "--out", "votes.csv", "--form", "arena", cwd=logo)
    rows = rows_of((logo / "votes.csv").read_text())
    assert [(row["model_a"], row["model_b"], row["winner"]) for row in rows] == [
        ("fox", "owl", "model_a"),
        ("owl", "fox", "model_b"),
        ("owl", "wren", "model_a"),
        ("fox", "wren", "tie"),
    ]
    assert "arean" in refusal("export", "logo", "--out", "votes.csv", "--form", "arean", cwd=logo)


def test_import_from_standard_input(tmp_path):
    said = output("import", "logo", "-", "--create", cwd=tmp_path, stdin="winner,loser\nfox,owl\nfox,wren\n")
    assert said == "2 votes were taken into 'logo'\n"
    assert loaded(tmp_path).leaderboard()[0].arm == "fox"


def test_import_takes_all_or_nothing(logo):
    (logo / "more.csv").write_text("left,right,winner\nfox,owl,left\nfox,hen,left\n")
    for more, said in ([], "does not have: hen"), (["--create"], "there is a study 'logo' already"):
        done = duels_command("import", "logo", "more.csv", *more, cwd=logo)
        (error,) = done.stderr.splitlines()
        assert (done.returncode, done.stdout) == (2, "")
        assert error.startswith("duels: ")
        assert said in error
    assert len(loaded(logo).votes()) == 4
    assert "none.csv" in refusal("import", "logo", "none.csv", cwd=logo)


def test_the_storage_is_an_option_or_the_environment(tmp_path):
    """The option wins over the environment, which wins over the default."""
    url = f"sqlite:///{tmp_path / 'env.db'}"
    output("create-study", "logo", *ARMS, cwd=tmp_path, storage=url)
    assert [path.name for path in tmp_path.glob("*.db")] == ["env.db"]
    assert [row["name"] for row in json.loads(output("studies", "-f", "json", cwd=tmp_path, storage=url))] == ["logo"]
    output("create-study", "other", *ARMS, "--storage", "sqlite:///option.db", cwd=tmp_path, storage=url)
    assert loaded(tmp_path, "other", "option.db").arms == ARMS
    assert [info.name for info in duels.list_studies(Storage(url))] == ["logo"]


PLAN = ["plan", "--arms", "2", "--gap", "0.5", "--studies", "3", "-q"]


def test_plan(tmp_path):
    """The better of two arms wins always: eight duels make a verdict, in every study and for every policy.

    The regret of a duel between them is half the gap, ¼: 2 in all.
    """
    rows = json.loads(output(*PLAN, "-f", "json", cwd=tmp_path))
    common = {"duels_median": 8, "duels_90": 8, "regret_median": 2, "regret_90": 2, "undecided": 0, "wrong": 0}
    assert rows == [{"policy": policy} | common for policy in ("rucb", "savage", "random")]
    (row,) = rows_of(output(*PLAN, "-p", "rucb:alpha=0.6", "-f", "csv", cwd=tmp_path))
    assert (row["policy"], row["duels_90"], row["regret_90"]) == ("rucb:alpha=0.6", "8.0", "2.0")
    shown = output(*PLAN, "-p", "random", cwd=tmp_path).splitlines()
    assert shown[2].split() == ["random", "8", "8", "2", "2", "0.0%", "0.0%"]


def test_a_plan_that_ends_at_the_limit(tmp_path):
    what = [*PLAN, "-p", "random", "--limit", "7"]
    assert json.loads(output(*what, "-f", "json", cwd=tmp_path)) == [
        {
            "policy": "random",
            "duels_median": None,
            "duels_90": None,
            "regret_median": 1.75,
            "regret_90": 1.75,
            "undecided": 1.0,
            "wrong": 0.0,
        }
    ]
    assert output(*what, cwd=tmp_path).count("beyond the limit") == 2


def test_a_plan_of_a_problem(tmp_path):
    (tmp_path / "p.csv").write_text("0.5,1\n0,0.5\n")
    rows = json.loads(output("plan", "p.csv", "-p", "random", "--studies", "2", "-q", "-f", "json", cwd=tmp_path))
    assert [row["duels_90"] for row in rows] == [8]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask", "lego"], "unknown study 'lego'. Did you mean 'logo'? See: duels studies"),
        (["tell", "lego", "0", "left"], "unknown study 'lego'"),
        (["undo", "lego", "0"], "unknown study 'lego'"),
        (["leaderboard", "lego"], "unknown study 'lego'"),
        (["verdict", "lego"], "unknown study 'lego'"),
        (["export", "lego", "--out", "votes.csv"], "unknown study 'lego'"),
        (["tell", "logo", "9", "left"], "study 'logo' has no duel 9: expected one that was asked (0 to 3)"),
        (["undo", "logo", "9"], "study 'logo' has no duel 9"),
        (["tell", "logo", "one", "left"], "Invalid value for 'DUEL'"),
        (["tell", "logo", "0", "hen"], "winner is 'hen': duel 0 is 'fox' against 'owl'"),
        (["ask", "logo", "-n", "0"], "n is 0: expected from 1 to 10000"),
        (["create-study", "logo", *ARMS], "there is a study 'logo' already"),
        (["create-study", "none"], "0 arms were given: expected at least two"),
        (["create-study", "one", "fox"], "1 arm was given: expected at least two"),
        (["create-study", "same", "fox", "fox"], "two arms are called 'fox'"),
        (["create-study", "words", "fox", "tie"], "an arm cannot be called 'tie'"),
        (["create-study", "x", "a", "b", "-p", "rucd"], "unknown policy 'rucd'. Did you mean 'rucb'?"),
        (["create-study", "x", "a", "b", "-p", "savage"], "horizon"),
        (["create-study", "x", "a", "b", "--horizon", "many"], "horizon is 'many'"),
        (["create-study", "x", "a", "b", "--lease", "0"], "lease is 0.0: expected a positive number of seconds"),
        (["studies", "--storage", "duels.db"], "storage is 'duels.db': expected a URL"),
        (["studies", "--storage", "mysql://host/name"], "expected sqlite:///file.db or postgresql://user@host/name"),
        (["create-study", "x", "a", "b", "--storage", "sqlite:///nowhere/duels.db"], "cannot be opened"),
        (["verdict", "x", "--storage", "sqlite:///none.db"], "there is no database 'sqlite:///none.db'"),
        (["import", "x", "-", "--column", "left"], "--column left is not of the form left=NAME"),
        (["plan"], "say arms and gap"),
        (["plan", "--arms", "4"], "say arms and gap"),
        (["plan", "cyclic-4", "--arms", "4", "--gap", "0.1"], "say arms and gap"),
        (["plan", "--arms", "1", "--gap", "0.1"], "arms is 1"),
        (["plan", "--arms", "4", "--gap", "0.6"], "gap is 0.6"),
        (["plan", "--arms", "4", "--gap", "0.1", "--studies", "0"], "studies is 0"),
        (["plan", "--arms", "4", "--gap", "0.1", "--limit", "few"], "limit is 'few'"),
        (["plan", "--arms", "4", "--gap", "0.1", "-p", "rucd"], "unknown policy 'rucd'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors(logo, arguments, said):
    before = len(loaded(logo).events())
    assert said in refusal(*arguments, cwd=logo)
    assert len(loaded(logo).events()) == before
    assert [info.name for info in duels.list_studies(Storage(f"sqlite:///{logo / 'duels.db'}"))] == ["logo"]
