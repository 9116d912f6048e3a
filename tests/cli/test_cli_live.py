"""The commands of live studies: what they print, in which form, and how they refuse."""

import csv
import io
import json
import shlex
import shutil

import commands
import numpy as np
import pytest

import duels
from duels.errors import InvalidInput, StorageError
from duels.storage.database_errors import quote_url, without_password
from duels.storage.storage import Storage
from duels.study import create
from duels.study.arm_log import ArmLog
from duels.study.duels import duel_number
from duels.study.stats.forecast import TOO_EARLY
from duels.study.study import Study
from duels.votes.names import arm_names, study_name, voter_name
from duels.votes.readers import read_votes

ARMS = ["fox", "owl", "wren"]
PAIRS = (("fox", "owl"), ("fox", "wren"), ("owl", "wren"))


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


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A database with a study in which fox beat owl twice, owl beat wren, and fox and wren tied."""
    file = tmp_path_factory.mktemp("template") / "duels.db"
    storage = Storage(f"sqlite:///{file}")
    study = duels.create_study(ARMS, "logo", storage)
    study.import_votes(
        [("fox", "owl", "left"), ("owl", "fox", "right"), ("owl", "wren", "left"), ("fox", "wren", "tie")]
    )
    storage.close()
    return file


@pytest.fixture
def logo(template, tmp_path):
    """A folder with a copy of that database."""
    shutil.copyfile(template, tmp_path / "duels.db")
    return tmp_path


def test_create_ask_and_tell(tmp_path):
    said = output("study", "create", "logo", *ARMS, cwd=tmp_path)
    assert said == "study 'logo': 3 arms, policy verdict. Next: duels study ask logo\n"
    (asked,) = json.loads(output("study", "ask", "logo", "-f", "json", cwd=tmp_path))
    assert asked["duel"] == 0
    assert {asked["left"], asked["right"]} < set(ARMS)
    assert output("study", "tell", "logo", "0", "right", "--voter", "ann", cwd=tmp_path) == ""
    (vote,) = loaded(tmp_path).votes()
    assert (vote.left, vote.right, vote.winner, vote.voter) == (asked["left"], asked["right"], "right", "ann")
    assert output("study", "tell", "logo", "0", asked["right"], cwd=tmp_path) == ""  # the same again
    assert output("study", "tell", "logo", "0", "RIGHT", cwd=tmp_path) == ""
    assert "was answered 'right' already" in refusal("study", "tell", "logo", "0", "tie", cwd=tmp_path)
    assert output("study", "undo", "logo", "0", cwd=tmp_path) == ""
    assert len(loaded(tmp_path).votes()) == 0
    assert "no answer to undo" in refusal("study", "undo", "logo", "0", cwd=tmp_path)


def test_what_was_done_as_json_and_csv(tmp_path):
    made = output("study", "create", "logo", *ARMS, "-f", "json", cwd=tmp_path)
    assert json.loads(made) == {"study": "logo", "policy": "verdict", "arms": ARMS}
    (asked,) = json.loads(output("study", "ask", "logo", "--no-self", "-f", "json", cwd=tmp_path))
    told = json.loads(output("study", "tell", "logo", "0", "left", "--voter", "ann", "-f", "json", cwd=tmp_path))
    assert told == {"study": "logo"} | asked | {"winner": "left", "voter": "ann"}
    done = duels_command("study", "export", "logo", "--out", "v.csv", "-f", "json", cwd=tmp_path)
    assert (json.loads(done.stdout), done.stderr) == ({"study": "logo", "votes": 1, "file": "v.csv"}, "")
    done = duels_command("study", "import", "copy", "v.csv", "--create", "-f", "json", cwd=tmp_path)
    said = {"study": "copy", "votes": 1, "skipped": 0, "unread": 0, "columns": "left, right, winner, voter, time, duel"}
    assert (json.loads(done.stdout), done.stderr) == (said, "")
    assert json.loads(output("study", "undo", "logo", "0", "-f", "json", cwd=tmp_path)) == {"study": "logo"} | asked
    (row,) = rows_of(output("study", "tell", "logo", "0", "tie", "-f", "csv", cwd=tmp_path))
    assert (row["duel"], row["winner"], row["voter"]) == ("0", "tie", "")
    (row,) = rows_of(output("study", "create", "more", *ARMS, "-f", "csv", cwd=tmp_path))
    assert row == {"study": "more", "policy": "verdict", "arms": "fox owl wren"}


def test_open_duels(tmp_path):
    output("study", "create", "logo", *ARMS, cwd=tmp_path)
    done = duels_command("study", "open-duels", "logo", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "no duel of 'logo' is open. Ask for one: duels study ask logo\n"
    assert output("study", "open-duels", "logo", "-f", "json", cwd=tmp_path) == "[]\n"
    asked = json.loads(output("study", "ask", "logo", "-n", "3", "-f", "json", cwd=tmp_path))
    output("study", "tell", "logo", "1", "skip", cwd=tmp_path)
    rows = json.loads(output("study", "open-duels", "logo", "-f", "json", cwd=tmp_path))
    times = [row.pop("asked") for row in rows]
    assert rows == [asked[0], asked[2]]
    assert times == [duel.time for duel in loaded(tmp_path).open_duels()]
    head, table = table_of(output("study", "open-duels", "logo", cwd=tmp_path))
    assert (head, [row[0] for row in table]) == (["duel", "left", "right", "asked"], ["0", "2"])


def test_arms_come_and_go(logo):
    assert output("study", "add-arm", "logo", "hen house", cwd=logo) == ""
    assert loaded(logo).arms == [*ARMS, "hen house"]
    assert "exists already" in refusal("study", "add-arm", "logo", "fox", cwd=logo)
    assert output("study", "retire-arm", "logo", "owl", cwd=logo) == ""
    assert loaded(logo).arms == ["fox", "wren", "hen house"]
    said = output("study", "retire-arm", "logo", "fox", "-f", "json", cwd=logo)
    assert json.loads(said) == {"study": "logo", "arms": ["wren", "hen house"]}
    assert "a study needs two active arms" in refusal("study", "retire-arm", "logo", "wren", cwd=logo)


def test_forget(logo):
    loaded(logo).import_votes([("fox", "owl", "left", voter) for voter in ("ann", "bob", "ann", "cat")])
    assert output("study", "forget", "logo", "ann", cwd=logo) == "'ann' is forgotten, with 2 answers\n"
    assert [vote.voter for vote in loaded(logo).votes()] == [None] * 4 + ["bob", "cat"]
    assert "has no voter named 'ann'" in refusal("study", "forget", "logo", "ann", cwd=logo)
    assert output("study", "forget", "logo", "bob", cwd=logo) == "'bob' is forgotten, with 1 answer\n"
    assert json.loads(output("study", "forget", "logo", "cat", "-f", "json", cwd=logo)) == {
        "study": "logo",
        "answers": 1,
    }


@pytest.mark.parametrize("answer", ["", "n\n", "\n", "perhaps\n"])
def test_delete_study_asks(logo, answer):
    done = duels_command("study", "delete", "logo", cwd=logo, stdin=answer)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Delete study 'logo' with its 4 answers? [y/N] "
        "duels: study 'logo' was not deleted: answer y to delete it, or use --yes\n"
    )
    assert len(loaded(logo).votes()) == 4


def test_delete_study(logo):
    for name in "one", "two":
        output("study", "create", name, *ARMS, cwd=logo)
    assert output("study", "delete", "logo", cwd=logo, stdin="y\n") == "study 'logo' was deleted\n"
    done = duels_command("study", "delete", "one", "--yes", "-f", "json", cwd=logo)
    assert (json.loads(done.stdout), done.stderr) == ({"study": "one"}, "")
    assert [row["name"] for row in json.loads(output("study", "list", "-f", "json", cwd=logo))] == ["two"]
    assert "unknown study 'logo'" in refusal("study", "delete", "logo", cwd=logo)


def test_ask_for_several_in_every_format(tmp_path):
    output("study", "create", "logo", *ARMS, cwd=tmp_path)
    head, rows = table_of(output("study", "ask", "logo", "-n", "2", "--voter", "ann", cwd=tmp_path))
    assert head == ["duel", "left", "right"]
    assert [row[0] for row in rows] == ["0", "1"]
    more = rows_of(output("study", "ask", "logo", "-n", "3", "--no-self", "-f", "csv", cwd=tmp_path))
    assert [row["duel"] for row in more] == ["2", "3", "4"]
    study = loaded(tmp_path)
    assert [list(duel[:3]) for duel in study.open_duels()] == [
        [int(number), left, right] for number, left, right in [*rows, *(row.values() for row in more)]
    ]
    asked = study.events()[1:]
    assert [entry.voter for entry in asked] == ["ann", "ann", None, None, None]
    assert [entry.note for entry in asked] == [{}, {"person": True}] + [{"allow_self": False}] * 3


def test_no_self_is_heeded(tmp_path):
    """RUCB has an arm that won all of many duels meet itself, unless it is told not to."""
    study = duels.create_study(["fox", "owl"], "logo", Storage(f"sqlite:///{tmp_path / 'duels.db'}"))
    study.import_votes([("fox", "owl", "left")] * 200)
    (asked,) = json.loads(output("study", "ask", "logo", "-f", "json", cwd=tmp_path))
    assert (asked["left"], asked["right"]) == ("fox", "fox")
    (asked,) = json.loads(output("study", "ask", "logo", "--no-self", "-f", "json", cwd=tmp_path))
    assert {asked["left"], asked["right"]} == {"fox", "owl"}


def test_arms_from_a_file_and_options(tmp_path):
    (tmp_path / "arms.txt").write_text("step by step\n\n  größer  \n", encoding="utf-8")
    what = ["study", "create", "logo", "fox", "--arms-file", "arms.txt", "-p", "savage", "--horizon", "1e4"]
    said = output(*what, "--seed", "7", "--lease", "30", cwd=tmp_path)
    assert said == "study 'logo': 3 arms, policy savage. Next: duels study ask logo\n"
    study = loaded(tmp_path)
    assert study.arms == ["fox", "step by step", "größer"]
    assert (study._log.row.horizon, study._log.row.seed, study._log.row.lease) == (10_000, 7, 30.0)
    assert "arms.csv cannot be read" in refusal("study", "create", "x", "--arms-file", "arms.csv", cwd=tmp_path)


def test_load_if_exists(logo):
    assert "there is a study 'logo' already" in refusal("study", "create", "logo", *ARMS, cwd=logo)
    assert "3 arms" in output("study", "create", "logo", *ARMS, "--load-if-exists", cwd=logo)
    assert len(loaded(logo).votes()) == 4
    assert "other arms" in refusal("study", "create", "logo", "fox", "owl", "--load-if-exists", cwd=logo)
    assert "policy verdict" in refusal("study", "create", "logo", *ARMS, "-p", "random", "--load-if-exists", cwd=logo)
    said = refusal("study", "create", "logo", *ARMS, "--confidence", "0.9", "--load-if-exists", cwd=logo)
    assert said == "study 'logo' exists with confidence 0.95, not 0.9: leave confidence out, or choose another name"
    output("study", "create", "logo", *ARMS, "--margin", "0.05", "--load-if-exists", cwd=logo)
    assert loaded(logo).goal.margin == 0.05


def test_studies(logo):
    output("study", "create", "empty", "a", "b", "-p", "random", cwd=logo)
    output("study", "ask", "empty", "-n", "2", cwd=logo)
    rows = json.loads(output("study", "list", "-f", "json", cwd=logo))
    created = [row.pop("created") for row in rows]
    assert rows == [
        {"name": "logo", "policy": "verdict", "arms": 3, "answers": 4, "open": 0, "damaged": None, "parameters": None},
        {"name": "empty", "policy": "random", "arms": 2, "answers": 0, "open": 2, "damaged": None, "parameters": None},
    ]
    assert [row["created"] for row in rows_of(output("study", "list", "-f", "csv", cwd=logo))] == created
    head, table = table_of(output("study", "list", cwd=logo))
    assert head == ["name", "policy", "arms", "answers", "open", "created"]
    assert [row[:5] for row in table] == [["logo", "verdict", "3", "4", "0"], ["empty", "random", "2", "0", "2"]]


def test_no_studies(tmp_path):
    done = duels_command("study", "list", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("no studies yet")
    assert output("study", "list", "-f", "json", cwd=tmp_path) == "[]\n"


def test_leaderboard(logo):
    """fox: 2 wins over owl, a tie with wren. owl: 1 win over wren. wren: ½ of 2, one against each: expects ½ / 2.

    The likelihood is largest where each arm is expected to win as often as it did, a tie being half a win.
    """
    rows = json.loads(output("study", "leaderboard", "logo", "-f", "json", cwd=logo))
    assert [(row["rank"], row["arm"], row["answers"], row["wins"], row["losses"], row["ties"]) for row in rows] == [
        (1, "fox", 3, 2, 0, 1),
        (2, "owl", 3, 1, 2, 0),
        (3, "wren", 2, 0, 1, 1),
    ]
    fox, owl, wren = (row["rating"] for row in rows)
    over_owl, over_wren = (1 / (1 + 10 ** ((other - fox) / 400)) for other in (owl, wren))
    assert 2 * over_owl + over_wren == pytest.approx(2.5, abs=1e-3)
    assert rows[0]["share"] == pytest.approx((over_owl + over_wren) / 2, abs=1e-3)
    assert rows[2]["share"] == pytest.approx(0.25, abs=1e-6)
    table = rows_of(output("study", "leaderboard", "logo", "-f", "csv", cwd=logo))
    assert [float(row["lower"]) for row in table] == [row["lower"] for row in rows]
    narrower = json.loads(output("study", "leaderboard", "logo", "--confidence", "0.5", "-f", "json", cwd=logo))
    limits = [(row["lower"], row["upper"], wide["lower"], wide["upper"]) for row, wide in zip(narrower, rows)]
    assert all(wide_lower <= lower and upper <= wide_upper for lower, upper, wide_lower, wide_upper in limits)
    assert narrower[1]["upper"] < rows[1]["upper"]
    loaded(logo).retire_arm("wren")
    shown = output("study", "leaderboard", "logo", cwd=logo).splitlines()
    assert shown[0].split()[:4] == ["rank", "arm", "wins", "between"]
    assert shown[2].split()[:2] == ["1", "fox"]
    assert shown[4].split()[:3] == ["–", "wren", "(retired)"]
    assert "won–lost–tied" in shown[0].split()
    assert shown[5] == "ranked by Bradley–Terry rating"


def test_verdict_and_leaderboard_agree_on_who_is_first(tmp_path):
    """Of a cycle of three and an arm that never met them, the last row is not said to be first."""
    study = duels.create_study([*"abcd"], "logo", Storage(f"sqlite:///{tmp_path / 'duels.db'}"))
    study.import_votes([("a", "b", "left"), ("b", "c", "left"), ("c", "a", "left")] * 60)
    assert output("study", "verdict", "logo", cwd=tmp_path).startswith(
        "On the comparisons made: no verdict yet: a, b and c share the first rank, but"
    )
    rows = json.loads(output("study", "leaderboard", "logo", "-f", "json", cwd=tmp_path))
    assert [(row["rank"], row["arm"]) for row in rows] == [(1, "a"), (1, "b"), (1, "c"), (None, "d")]
    found = json.loads(output("study", "verdict", "logo", "-f", "json", cwd=tmp_path))
    assert (found["leader"], found["level_with"]) == ("a", ["b", "c"])


def test_verdict(tmp_path):
    """Two arms at 95 % need 13 wins in a row: 4/(3δ) = 26.7, and the evidence is 25.4 after 12, 39.2 after 13."""
    study = duels.create_study(["fox", "owl"], "logo", Storage(f"sqlite:///{tmp_path / 'duels.db'}"))
    study.import_votes([("fox", "owl", "left")] * 12)
    assert output("study", "verdict", "logo", cwd=tmp_path).startswith(
        "On the comparisons made: no verdict yet: fox ranks"
    )
    said = output("study", "verdict", "logo", "--confidence", "0.9", cwd=tmp_path)
    assert "fox is the winner" in said
    assert "Nothing is promised about errors: a confidence of 0.9 was chosen afterwards" in said
    study.import_votes([("owl", "fox", "right")])
    found = json.loads(output("study", "verdict", "logo", "-f", "json", cwd=tmp_path))
    assert (found["kind"], found["winner"], found["duels"], found["void"]) == ("winner", "fox", 13, None)
    (row,) = rows_of(output("study", "verdict", "logo", "-f", "csv", cwd=tmp_path))
    assert (row["kind"], row["winner"], row["void"]) == ("winner", "fox", "")
    output("study", "undo", "logo", "0", cwd=tmp_path)
    assert "1 answer was taken back" in output("study", "verdict", "logo", cwd=tmp_path)
    assert "confidence" in refusal("study", "verdict", "logo", "--confidence", "1.5", cwd=tmp_path)


def test_standing_and_ranking(logo):
    """As the study says, in each format."""
    study = loaded(logo)
    assert output("study", "forecast", "logo", cwd=logo).startswith("Chance to be the best: fox ")
    assert " ".join(output("study", "forecast", "logo", cwd=logo).split()) == str(study.forecast())
    assert json.loads(output("study", "forecast", "logo", "-f", "json", cwd=logo)) == study.forecast().as_dict()
    assert (study.forecast().answers_median, study.forecast().reason) == (None, TOO_EARLY)  # 4 answers, 3 arms
    assert TOO_EARLY in output("study", "forecast", "logo", cwd=logo)
    assert "likely needed" not in output("study", "verdict", "logo", cwd=logo)
    chances = [
        (row["arm"], float(row["chance"]))
        for row in rows_of(output("study", "forecast", "logo", "-f", "csv", cwd=logo))
    ]
    assert chances == [tuple(one) for one in study.forecast().chances]
    assert json.loads(output("study", "ranking", "logo", "-f", "json", cwd=logo)) == [
        one._asdict() for one in study.ranking()
    ]
    study.import_votes([(*pair, side) for pair in PAIRS for side in ["left"] * 7 + ["right"] * 4])
    answers = study.forecast().answers_median
    about = f"About {float(f'{answers:.2g}'):,.0f} more answers are likely needed"
    assert about in output("study", "forecast", "logo", cwd=logo)
    assert about in output("study", "verdict", "logo", cwd=logo)
    assert json.loads(output("study", "verdict", "logo", "-f", "json", cwd=logo))["answers_to_go"] == answers
    study.import_votes([pair for pair in PAIRS for _ in range(20)])
    head, table = table_of(output("study", "ranking", "logo", cwd=logo))
    assert (head, table[0]) == (["rank", "arm", "certain"], ["1", "fox", "yes"])


def test_a_new_study_without_a_margin_says_so_once(tmp_path):
    made = ("study", "create", "logo", *ARMS, "--load-if-exists")
    assert duels_command(*made, cwd=tmp_path).stderr.startswith(
        "without a margin, a study of equally good arms never ends; "
    )
    assert duels_command(*made, cwd=tmp_path).stderr == ""
    assert duels_command("study", "create", "b", *ARMS, "--margin", "0.05", cwd=tmp_path).stderr == ""
    assert duels_command("study", "create", "c", *ARMS, "-f", "json", cwd=tmp_path).stderr == ""
    assert duels_command("study", "create", "e", *ARMS, "--about", "new-items", cwd=tmp_path).stderr == ""
    goal = ("--confidence", "0.9", "--margin", "0.02", "--after", "rank")
    output("study", "create", "d", *ARMS, *goal, cwd=tmp_path)
    assert loaded(tmp_path, "d").goal[:3] == (0.9, 0.02, "rank")


def test_names_that_a_spreadsheet_would_run(tmp_path):
    study = duels.create_study(["-O2", "=x", "-1.5"], "flags", Storage(f"sqlite:///{tmp_path / 'duels.db'}"))
    study.import_votes([("-O2", "=x", "left"), ("-O2", "-1.5", "left"), ("=x", "-1.5", "left")])
    rows = rows_of(output("study", "leaderboard", "flags", "-f", "csv", cwd=tmp_path))
    assert [row["arm"] for row in rows] == ["'-O2", "'=x", "-1.5"]
    rows = json.loads(output("study", "leaderboard", "flags", "-f", "json", cwd=tmp_path))
    assert [row["arm"] for row in rows] == ["-O2", "=x", "-1.5"]
    assert output("study", "leaderboard", "flags", cwd=tmp_path).splitlines()[2].split()[1] == "-O2"
    output("study", "export", "flags", "--out", "votes.csv", cwd=tmp_path)
    output("study", "import", "copy", "votes.csv", "--create", cwd=tmp_path)
    assert loaded(tmp_path, "copy").arms == ["-O2", "=x", "-1.5"]
    assert loaded(tmp_path, "copy").votes() == study.votes()


def test_lists_of_a_verdict_are_json_in_csv(logo):
    """Names may have blanks, and pairs are lists of lists; what is empty is a list as well."""
    loaded(logo).add_arm("snow owl")
    for _ in range(2):
        (row,) = rows_of(output("study", "verdict", "logo", "-f", "csv", cwd=logo))
        found = json.loads(output("study", "verdict", "logo", "-f", "json", cwd=logo))
        lists = ("level_with", "tied_with", "losses", "cycle", "open_pairs")
        assert {key: json.loads(row[key]) for key in lists} == {key: found[key] for key in lists}
        assert found["open_pairs" if found["kind"] == "not yet" else "losses"]
        # Fifty wins each: of the cycle all lose for certain, and so does the snow owl.
        cycle = [("fox", "owl"), ("owl", "wren"), ("wren", "fox"), ("fox", "snow owl")]
        loaded(logo).import_votes(cycle * 50)
    assert found["kind"] == "no condorcet winner"


def test_a_margin(tmp_path):
    study = duels.create_study(["old", "new"], "logo", Storage(f"sqlite:///{tmp_path / 'duels.db'}"))
    study.import_votes([("old", "new", "tie")] * 500)
    assert output("study", "verdict", "logo", cwd=tmp_path).startswith("On the comparisons made: no verdict yet")
    found = json.loads(output("study", "verdict", "logo", "--margin", "0.2", "-f", "json", cwd=tmp_path))
    assert (found["kind"], found["margin"]) == ("practically tied", 0.2)


@pytest.mark.parametrize("name", ["votes.csv", "votes.jsonl.gz"])
def test_export_and_import(logo, name):
    done = duels_command("study", "export", "logo", "--out", name, cwd=logo)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"4 votes saved in {name}\n")
    done = duels_command("study", "import", "copy", name, "--create", "-p", "random", cwd=logo)
    assert (done.returncode, done.stdout) == (0, "4 votes were imported into 'copy'\n")
    assert "left, right, winner" in done.stderr
    original, copy = loaded(logo), loaded(logo, "copy")
    assert (copy.policy, copy.arms) == ("random", ARMS)
    assert [vote[:5] for vote in copy.votes()] == [vote[:5] for vote in original.votes()]
    assert copy.leaderboard() == original.leaderboard()
    assert refusal("study", "import", "logo", name, cwd=logo) == (
        "4 of these 4 votes are in 'logo' already (same arms, answer, voter and time): use --new to import only the "
        "others, or --again to count them twice; nothing was imported"
    )
    assert len(loaded(logo).votes()) == 4
    assert output("study", "import", "logo", name, "--again", cwd=logo) == "4 votes were imported into 'logo'\n"
    assert len(loaded(logo).votes()) == 8


def test_import_refuses_votes_that_are_there(tmp_path):
    """The same vote has the same arms, answer, voter and time; without a time nobody can tell."""
    head = "left,right,winner,voter,time\n"
    first = "fox,owl,left,ann,2025-01-31T12:00:00Z\nfox,owl,tie,,1738324800\nfox,owl,left,bob,\n"
    output("study", "import", "logo", "-", "--create", cwd=tmp_path, stdin=head + first)
    for row in [
        "owl,fox,right,ann,2025-01-31T13:00:00+01:00",  # the sides are swapped, the zone is another
        "fox,owl,tie,,2025-01-31T12:00:00",
    ]:
        said = refusal("study", "import", "logo", "-", cwd=tmp_path, stdin=f"{head}{row}\nfox,owl,right,cat,\n")
        assert said.startswith("1 of these 2 votes is in 'logo' already")
        assert "or --again to count it twice" in said
    for row in [
        "fox,owl,right,ann,2025-01-31T12:00:00Z",
        "owl,fox,left,ann,2025-01-31T12:00:00Z",
        "fox,owl,both_bad,,1738324800",
        "fox,owl,left,cat,2025-01-31T12:00:00Z",
        "fox,owl,left,ann,2025-01-31T12:00:01Z",
        "fox,owl,left,bob,",
    ]:
        assert (
            output("study", "import", "logo", "-", cwd=tmp_path, stdin=f"{head}{row}\n")
            == "1 vote was imported into 'logo'\n"
        )
        loaded(tmp_path).undo(len(loaded(tmp_path)._log.history().left) - 1)
    assert len(loaded(tmp_path).votes()) == 3


def test_votes_are_the_same_one_by_one(tmp_path):
    """Of a vote that is there once and given twice, one is there already; what was taken back is not there."""
    text = "left,right,winner,time\n" + "fox,owl,left,0\n" * 2
    output("study", "import", "logo", "-", "--create", cwd=tmp_path, stdin=text)
    output("study", "undo", "logo", "0", cwd=tmp_path)
    assert refusal("study", "import", "logo", "-", cwd=tmp_path, stdin=text).startswith("1 of these 2 votes is in")
    output("study", "undo", "logo", "1", cwd=tmp_path)
    output("study", "import", "logo", "-", cwd=tmp_path, stdin=text)
    assert len(loaded(tmp_path).votes()) == 2


def test_export_in_the_arena_form(logo):
    output("study", "export", "logo", "--out", "votes.csv", "--form", "arena", cwd=logo)
    rows = rows_of((logo / "votes.csv").read_text())
    assert [(row["model_a"], row["model_b"], row["winner"]) for row in rows] == [
        ("fox", "owl", "model_a"),
        ("owl", "fox", "model_b"),
        ("owl", "wren", "model_a"),
        ("fox", "wren", "tie"),
    ]
    assert "arean" in refusal("study", "export", "logo", "--out", "votes.csv", "--form", "arean", cwd=logo)


def test_export_to_a_pipe(logo):
    """Votes go to standard output, messages to standard error, whatever their format."""
    output("study", "export", "logo", "--out", "votes.csv", cwd=logo)
    for more in ([], ["-f", "json"]):
        assert output("study", "export", "logo", "--out", "-", *more, cwd=logo) == (logo / "votes.csv").read_text()
    output("study", "export", "logo", "--out", "votes.parquet", cwd=logo)
    assert read_votes(logo / "votes.parquet") == read_votes(logo / "votes.csv")


def test_export_of_pairs_needs_items(logo):
    said = refusal("study", "export", "logo", "--out", "pairs.jsonl", "--form", "trl", cwd=logo)
    assert "expected votes of a study with items" in said
    assert not (logo / "pairs.jsonl").exists()


def test_import_into_no_study_mentions_create(logo):
    said = refusal("study", "import", "lgo", "-", cwd=logo, stdin="left,right,winner\nfox,owl,left\n")
    assert said.startswith("unknown study 'lgo'")
    assert said.endswith("use --create to create it with the arms of the votes")


def test_import_of_counts(logo):
    """A billion votes are two rows; the duplicates are counted by votes too."""
    table = "left,right,winner,time,count\nfox,owl,left,0,600000000\nfox,owl,right,0,400000000\n"
    said = output("study", "import", "logo", "-", cwd=logo, stdin=table)
    assert said == "1,000,000,000 votes were imported into 'logo'\n"
    said = refusal("study", "import", "logo", "-", cwd=logo, stdin=table.replace("600000000", "600000001"))
    assert said.startswith("1,000,000,000 of these 1,000,000,001 votes are in 'logo' already")
    assert rows_of(output("study", "list", "-f", "csv", cwd=logo))[0]["answers"] == "1000000004"
    rows = rows_of(output("study", "export", "logo", "--out", "-", cwd=logo))
    assert [row["count"] for row in rows] == ["1"] * 4 + ["600000000", "400000000"]


def test_allocation(logo):
    rows = rows_of(output("study", "allocate", "logo", "-n", "1e6", "-f", "csv", cwd=logo))
    assert list(rows[0]) == ["left", "right", "times"]
    assert sum(int(row["times"]) for row in rows) == 10**6
    assert refusal("study", "allocate", "logo", "-n", "0", cwd=logo).startswith("n is 0")


def test_import_from_standard_input(tmp_path):
    said = output("study", "import", "logo", "-", "--create", cwd=tmp_path, stdin="winner,loser\nfox,owl\nfox,wren\n")
    assert said == "2 votes were imported into 'logo'\n"
    assert loaded(tmp_path).leaderboard()[0].arm == "fox"


def test_import_without_a_header(tmp_path):
    """Arms called a and b look like a header, unless they come again; a number is a position from 0."""
    pairs = ["--column", "winner=1", "--column", "loser=0"]
    said = refusal("study", "import", "logo", "-", "--create", cwd=tmp_path, stdin="a,b\nc,d\n")
    assert said.endswith("of pairs without a header, by --column winner=0 --column loser=1")
    done = duels_command("study", "import", "logo", "-", "--create", *pairs, cwd=tmp_path, stdin="a,b\nb,c\n")
    assert done.stderr == "columns: column 1 → winner, column 0 → loser\n"
    assert [vote[:3] for vote in loaded(tmp_path).votes()] == [("b", "a", "left"), ("c", "b", "left")]
    said = output("study", "import", "more", "-", "--create", cwd=tmp_path, stdin="a,b\na,c\nb,c\na,b\n")
    assert said == "4 votes were imported into 'more'\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("v.csv", "left,right,winner\n", "v.csv has a header and no votes"),
        ("v.csv", "left,right,winner\nfox,owl,skip\n", "v.csv has 1 skip and no votes"),
        ("v.json", "[]", "v.json has no votes"),
    ],
)
def test_no_votes_begin_no_study(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    assert refusal("study", "import", "logo", name, "--create", cwd=tmp_path).startswith(said)
    assert output("study", "list", "-f", "json", cwd=tmp_path) == "[]\n"


def test_import_mentions_skips(tmp_path):
    rows = "left;right;winner\nfox;owl;left\nfox;owl;skip\nowl;fox;pass\n"
    done = duels_command("study", "import", "logo", "-", "--create", cwd=tmp_path, stdin=rows)
    assert (done.stdout, done.stderr) == (
        "1 vote was imported into 'logo'\n",
        "columns: left, right, winner\n2 skips left out\n",
    )


def test_import_with_a_horizon(tmp_path):
    what = ["study", "import", "logo", "-", "--create", "-p", "savage"]
    assert "horizon" in refusal(*what, cwd=tmp_path, stdin="winner,loser\nfox,owl\n")
    assert "horizon is 'few'" in refusal(*what, "--horizon", "few", cwd=tmp_path, stdin="winner,loser\nfox,owl\n")
    output(*what, "--horizon", "1e4", cwd=tmp_path, stdin="winner,loser\nfox,owl\n")
    assert (loaded(tmp_path).policy, loaded(tmp_path)._log.row.horizon) == ("savage", 10_000)


def full(study, votes):
    raise StorageError("the disk is full")


def test_import_that_fails_begins_no_study(tmp_path, monkeypatch):
    what = ["study", "import", "logo", "-", "--create"]
    with monkeypatch.context() as broken:
        broken.setattr(ArmLog, "import_packed", full)
        assert refusal(*what, cwd=tmp_path, stdin="winner,loser\nfox,owl\n") == "the disk is full"
        assert output("study", "list", "-f", "json", cwd=tmp_path) == "[]\n"
        broken.setattr(create, "delete_study", full)
        said = refusal(*what, cwd=tmp_path, stdin="winner,loser\nfox,owl\n")
        assert said == "the disk is full; study 'logo' was created without votes: duels study delete logo"
    said = refusal(*what, cwd=tmp_path, stdin="winner,loser\nfox,owl\n")
    assert said.endswith("already: choose another name, or leave out --create to add the votes to it")
    output(*what[:4], cwd=tmp_path, stdin="winner,loser\nfox,owl\n")
    assert len(loaded(tmp_path).votes()) == 1


def test_voters_that_could_not_be_forgotten(logo):
    rows = f"left,right,winner,voter\nfox,owl,left,ann\nfox,owl,left,{'v' * 201}\n"
    done = duels_command("study", "import", "logo", "-", cwd=logo, stdin=rows)
    assert (done.returncode, done.stdout) == (2, "")
    assert "line 3: voter is 'vvv" in done.stderr
    assert len(loaded(logo).votes()) == 4


def test_import_takes_all_or_nothing(logo):
    (logo / "more.csv").write_text("left,right,winner\nfox,owl,left\nfox,hen,left\n")
    for more, said in ([], "does not have: hen"), (["--create"], "there is a study 'logo' already"):
        done = duels_command("study", "import", "logo", "more.csv", *more, cwd=logo)
        (error,) = done.stderr.splitlines()
        assert (done.returncode, done.stdout) == (2, "")
        assert error.startswith("duels: ")
        assert said in error
    assert len(loaded(logo).votes()) == 4
    assert refusal("study", "import", "logo", "more.csv", cwd=logo).endswith(
        "add them with add_arm first; here: duels study add-arm logo hen"
    )
    assert "none.csv" in refusal("study", "import", "logo", "none.csv", cwd=logo)


def test_the_storage_is_an_option_or_the_environment(tmp_path):
    """The option wins over the environment, which wins over the default."""
    url = f"sqlite:///{tmp_path / 'env.db'}"
    output("study", "create", "logo", *ARMS, cwd=tmp_path, storage=url)
    assert [path.name for path in tmp_path.glob("*.db")] == ["env.db"]
    assert [row["name"] for row in json.loads(output("study", "list", "-f", "json", cwd=tmp_path, storage=url))] == [
        "logo"
    ]
    output("study", "create", "other", *ARMS, "--storage", "sqlite:///option.db", cwd=tmp_path, storage=url)
    assert loaded(tmp_path, "other", "option.db").arms == ARMS
    assert [info.name for info in duels.study.list_studies(Storage(url))] == ["logo"]


def test_the_next_command_finds_the_storage(tmp_path):
    said = output("study", "create", "a", *ARMS, "--storage", "sqlite:///my file.db", cwd=tmp_path)
    assert said.endswith("Next: duels study ask a --storage 'sqlite:///my file.db'\n")
    said = output("study", "create", "b", *ARMS, cwd=tmp_path, storage="sqlite:///env.db")
    assert said.endswith("Next: duels study ask b\n")
    said = output(
        "study", "create", "c", *ARMS, "--storage", "sqlite:///duels.db", cwd=tmp_path, storage="sqlite:///e.db"
    )
    assert said.endswith("Next: duels study ask c --storage sqlite:///duels.db\n")


SECRET = "postgresql://me:hunter2@host/name"


@pytest.mark.parametrize(
    ("option", "hint"), [(["--storage", SECRET], " --storage 'postgresql://me:***@host/name'"), ([], "")]
)
def test_no_password_is_printed(tmp_path, monkeypatch, option, hint):
    here = Storage(f"sqlite:///{tmp_path / 'stand-in.db'}")
    monkeypatch.setattr(create, "open_storage", lambda url: here)
    said = output("study", "create", "logo", *ARMS, *option, cwd=tmp_path, storage=None if option else SECRET)
    assert said == f"study 'logo': 3 arms, policy verdict. Next: duels study ask logo{hint}\n"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (SECRET, "postgresql://me:***@host/name"),
        ("postgresql://host/name?user=me&password=hunter2", "postgresql://host/name?user=me&password=***"),
        ("postgresql://me:hunter2@host:port/name", "postgresql://me:***@host:port/name"),
        (
            "postgresql://me:hun@ter/2@host:port/name?sslpassword=hunter2",
            "postgresql://me:***@host:port/name?sslpassword=***",
        ),
        ("me:hunter2@host", "me:***@host"),
        ("sqlite:///duels.db", "sqlite:///duels.db"),
        ("sqlite:////tmp/a:b@c.db", "sqlite:////tmp/a:b@c.db"),
        ("postgresql://me@host:5432/name", "postgresql://me@host:5432/name"),
        ("duels.db", "duels.db"),
    ],
)
def test_urls_without_their_password(url, expected):
    assert (without_password(url), quote_url(url)) == (expected, repr(expected))
    assert quote_url(5) == "5"


PLAN = ["plan", "--arms", "2", "--gap", "0.5", "--studies", "3", "-q"]


def test_plan(tmp_path):
    """The better of two arms wins always: 13 duels make a verdict, in every study and for every policy.

    The regret of a duel between them is half the gap, ¼: 3.25 in all.
    """
    rows = json.loads(output(*PLAN, "-f", "json", cwd=tmp_path))
    common = {"answers_median": 13, "answers_90": 13, "regret_median": 3.25, "regret_90": 3.25}
    common |= {"undecided": 0, "wrong": 0, "tied": 0}
    assert rows == [{"policy": policy} | common for policy in ("verdict", "rucb", "random")]
    (row,) = rows_of(output(*PLAN, "-p", "rucb:alpha=0.6", "-f", "csv", cwd=tmp_path))
    assert (row["policy"], row["answers_90"], row["regret_90"]) == ("rucb:alpha=0.6", "13.0", "3.25")
    shown = output(*PLAN, "-p", "random", cwd=tmp_path).splitlines()
    assert shown[2].split() == ["random", "13", "13", "3", "3", "0.0%", "0.0%"]


def test_a_plan_with_a_budget(tmp_path):
    """13 answers that are not ties make the verdict; with ties and several at once, more."""
    enough = output(*PLAN, "-p", "verdict", "--budget", "13", cwd=tmp_path).splitlines()
    assert enough[0].split()[-2:] == ["within", "budget"]
    assert enough[-1] == "with 13 answers you will know with probability 1.00 (verdict)"
    assert (
        output(*PLAN, "--budget", "12", cwd=tmp_path).count("with 12 answers you will know with probability 0.00") == 3
    )
    (row,) = json.loads(output(*PLAN, "-p", "verdict", "--budget", "12", "-f", "json", cwd=tmp_path))
    assert row["within_budget"] == 0
    more = ("--ties", "0.5", "--parallel", "3", "--margin", "0.05", "--budget", "13")
    (row,) = json.loads(output(*PLAN, "-p", "verdict", *more, "-f", "json", cwd=tmp_path))
    assert row["answers_median"] > 13
    assert row["within_budget"] < 1
    assert "ties is 1.5" in refusal("plan", "--arms", "2", "--gap", "0.1", "--ties", "1.5", cwd=tmp_path)


def test_a_plan_that_ends_at_the_limit(tmp_path):
    what = [*PLAN, "-p", "random", "--limit", "7"]
    assert json.loads(output(*what, "-f", "json", cwd=tmp_path)) == [
        {
            "policy": "random",
            "answers_median": None,
            "answers_90": None,
            "regret_median": 1.75,
            "regret_90": 1.75,
            "undecided": 1.0,
            "wrong": 0.0,
            "tied": 0.0,
        }
    ]
    assert output(*what, cwd=tmp_path).count("beyond the limit") == 2


def test_a_plan_of_equal_arms(tmp_path):
    """Each of few studies of equal arms ends as practically tied, and their regret is not defined: no arm is best."""
    what = ["plan", "--arms", "2", "--gap", "0", "--margin", "0.2", "-p", "verdict", "--studies", "3", "-q"]
    (row,) = json.loads(output(*what, "-f", "json", cwd=tmp_path))
    assert (row["tied"], row["undecided"], row["regret_median"]) == (1.0, 0.0, None)
    head, (shown,) = table_of(output(*what, cwd=tmp_path))
    assert head[-2:] == ["practically", "tied"]
    assert shown[-1] == "100.0%"
    assert "regret" not in head
    assert "gap is 0: such a study has no verdict without a margin" in refusal(*what[:5], cwd=tmp_path)


def test_a_plan_of_a_problem(tmp_path):
    (tmp_path / "p.csv").write_text("0.5,1\n0,0.5\n")
    rows = json.loads(output("plan", "p.csv", "-p", "random", "--studies", "2", "-q", "-f", "json", cwd=tmp_path))
    assert [row["answers_90"] for row in rows] == [13]


NEEDING_A_STUDY = [("open-duels",), ("forget", "ann"), ("delete",), ("add-arm", "hen"), ("retire-arm", "fox")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["study", "ask", "lego"], "unknown study 'lego'. Did you mean 'logo'? See: duels study list"),
        (["study", "tell", "lego", "0", "left"], "unknown study 'lego'"),
        (["study", "undo", "lego", "0"], "unknown study 'lego'"),
        (["study", "leaderboard", "lego"], "unknown study 'lego'"),
        (["study", "verdict", "lego"], "unknown study 'lego'"),
        (["study", "export", "lego", "--out", "votes.csv"], "unknown study 'lego'"),
        (["study", "tell", "logo", "9", "left"], "study 'logo' has no duel 9: expected one that was asked (0 to 3)"),
        (["study", "undo", "logo", "9"], "study 'logo' has no duel 9"),
        (["study", "tell", "logo", "one", "left"], "Invalid value for 'DUEL'"),
        (["study", "tell", "logo", "0", "hen"], "winner is 'hen': duel 0 is 'fox' against 'owl'"),
        (["study", "ask", "logo", "-n", "0"], "n is 0: expected from 1 to 10000"),
        (["study", "create", "logo", *ARMS], "there is a study 'logo' already"),
        (["study", "create", "none"], "0 arms were given: expected at least two"),
        (["study", "create", "one", "fox"], "1 arm was given: expected at least two"),
        (["study", "create", "same", "fox", "fox"], "two arms are called 'fox'"),
        (["study", "create", "words", "fox", "tie"], "an arm cannot be called 'tie'"),
        (["study", "create", "x", "a", "b", "-p", "rucd"], "unknown policy 'rucd'. Did you mean 'rucb'?"),
        (["study", "create", "x", "a", "b", "-p", "savage"], "horizon"),
        (["study", "create", "x", "a", "b", "--horizon", "many"], "horizon is 'many'"),
        (["study", "create", "x", "a", "b", "--lease", "0"], "lease is 0.0: expected a positive number of seconds"),
        (["study", "list", "--storage", "duels.db"], "storage is 'duels.db': expected a URL"),
        (
            ["study", "list", "--storage", "mysql://host/name"],
            "expected sqlite:///file.db or postgresql://user@host/name",
        ),
        (["study", "create", "x", "a", "b", "--storage", "sqlite:///nowhere/duels.db"], "cannot be opened"),
        (
            ["study", "verdict", "x", "--storage", "sqlite:///none.db"],
            "there is no database 'sqlite:///none.db', so no study",
        ),
        (
            ["study", "ask", "my x", "--storage", "sqlite:///none.db"],
            "create it with duels study create 'my x' …, or say where",
        ),
        (["study", "delete", "x", "--storage", "sqlite:///none.db"], "(storage, --storage)"),
        (["study", "create", "x", "a\udcff", "b"], r"arm is 'a\udcff', which is not text"),
        (["study", "create", "x\udcff", "a", "b"], r"study_name is 'x\udcff', which is not text"),
        (["study", "tell", "logo", "0", "left", "--voter", "\udcff"], r"voter is '\udcff', which is not text"),
        (["study", "ask", "logo", "--voter", "\udcff"], r"voter is '\udcff', which is not text"),
        (["study", "forget", "logo", "\udcff"], r"voter is '\udcff', which is not text"),
        (["study", "ask", "\udcff"], r"unknown study '\udcff'"),
        (["study", "delete", "\udcff", "--yes"], r"unknown study '\udcff'"),
        (["study", "add-arm", "logo", "\udcff"], r"arm is '\udcff', which is not text"),
        (["study", "retire-arm", "logo", "\udcff"], r"unknown arm '\udcff'"),
        (["study", "retire-arm", "logo", "hen"], "unknown arm 'hen'"),
        *((["study", command, "lego", *more], "unknown study 'lego'") for command, *more in NEEDING_A_STUDY),
        (["study", "import", "x", "-", "--column", "left"], "--column left is not of the form left=NAME"),
        (["plan"], "say arms and gap"),
        (["plan", "--arms", "4"], "say arms and gap"),
        (["plan", "cyclic-4", "--arms", "4", "--gap", "0.1"], "say arms and gap"),
        (["plan", "--arms", "1", "--gap", "0.1"], "arms is 1"),
        (["plan", "--arms", "4", "--gap", "0.6"], "gap is 0.6"),
        (["plan", "--arms", "4", "--gap", "0.1", "--studies", "0"], "studies is 0"),
        (["plan", "--arms", "4", "--gap", "0.1", "--limit", "few"], "limit is 'few'"),
        (["plan", "--arms", "4", "--gap", "0.1", "-p", "rucd"], "unknown policy 'rucd'"),
    ],
    ids=lambda value: ascii(" ".join(value)) if isinstance(value, list) else "",
)
def test_errors(logo, arguments, said):
    before = len(loaded(logo).events())
    assert said in refusal(*arguments, cwd=logo)
    assert len(loaded(logo).events()) == before
    assert [info.name for info in duels.study.list_studies(Storage(f"sqlite:///{logo / 'duels.db'}"))] == ["logo"]


@pytest.mark.parametrize("broken", ["\ud800", "a\udcffb"])
def test_names_that_no_file_can_hold(broken):
    for check in (study_name, voter_name, lambda name: arm_names(["a", name])):
        with pytest.raises(InvalidInput, match="is not text: expected characters that UTF-8 can write"):
            check(broken)
        check("größer 🦊 \ud7ff\ue000")  # next to the surrogates, and beyond them


def test_numbers_of_duels():
    for number in (7, np.int64(7), np.uint8(7), "7"):
        found = duel_number(number)
        assert (found, type(found)) == (7, int)
    for wrong in (True, np.True_, 7.0, "seven", "", None, "7" * 5000):
        with pytest.raises(InvalidInput, match="expected a Duel from ask, or its id"):
            duel_number(wrong)


def test_numbers_of_duels_may_be_numpys(logo):
    study = loaded(logo)
    duel = study.ask()
    study.tell(np.int64(duel.id), "tie")
    assert study.open_duels() == []


def test_loading_a_study_reads_one_event(logo, monkeypatch):
    def events(study, after=0, limit=None, before=Study.events):
        assert limit == 1
        return before(study, after, limit)

    monkeypatch.setattr(Study, "events", events)
    duels.create_study(ARMS, "logo", Storage(f"sqlite:///{logo / 'duels.db'}"), load_if_exists=True)


def test_the_arms_that_a_study_lacks_are_all_named_and_added_at_once(tmp_path):
    """An error that names all of them, and the command that adds them, which can be copied as it is."""
    output("study", "create", "zoo", "cat", "dog", cwd=tmp_path)
    names = [f"arm {k}" for k in range(8)]
    rows = "".join(f"{name},cat,left\n" for name in names)
    (tmp_path / "votes.csv").write_text(f"left,right,winner\n{rows}")
    refused = duels_command("study", "import", "zoo", "votes.csv", cwd=tmp_path)
    assert refused.returncode == 2
    assert "does not have: " + ", ".join(names) + ";" in refused.stderr
    command = refused.stderr.partition("here: ")[2].strip()
    assert command == "duels study add-arm zoo " + " ".join(f"'{name}'" for name in names)
    assert duels_command(*shlex.split(command)[1:], cwd=tmp_path).returncode == 0
    assert output("study", "import", "zoo", "votes.csv", cwd=tmp_path) == "8 votes were imported into 'zoo'\n"
