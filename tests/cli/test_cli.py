"""The command: what it prints, in which form, and how it refuses."""

import contextlib
import csv
import fcntl
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import commands
import pytest
import typer.main
from commands import duels_command

import duels
import duels.cli
from duels import testing
from duels.errors import InvalidInput, UnknownName
from duels.figures.listing import FIGURES
from duels.rankers import clicks, interleaving

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def output(*arguments, cwd=None):
    done = duels_command(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("line", ["problems -f csv", "run cyclic-4 --horizon 100 --runs 2", "run nothing", "rnu", ""])
def test_a_process_of_its_own_prints_the_same(line, tmp_path):
    """What the other tests call without one."""
    alone = subprocess.run(
        [sys.executable, "-m", "duels", *line.split()], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert (alone.returncode, alone.stdout, alone.stderr) == duels_command(*line.split(), cwd=tmp_path)


def test_every_horizon_has_a_row_of_every_policy(tmp_path):
    """Also of policies that are run once, to the longest."""
    command = ("run", "cyclic-4", "-p", "rucb", "-p", "savage", "--horizon", "100", "--horizon", "1000", "--runs", "3")
    rows = json.loads(output(*command, "-f", "json", cwd=tmp_path))
    assert {(row["policy"], row["t"]) for row in rows} == {(p, t) for p in ("rucb", "savage") for t in (100, 1000)}
    assert len(rows) == 4
    assert {(row["policy"], row["horizon"]) for row in rows if row["t"] == 100} == {("rucb", 1000), ("savage", 100)}


def test_every_horizon_is_printed_where_no_policy_is_told_one(tmp_path):
    command = ("run", "cyclic-4", "-p", "rucb", "-p", "random", "--horizon", "100", "--horizon", "1e3", "--runs", "3")
    asked = [(p, t) for p in ("random", "rucb") for t in (100, 1000)]
    rows = json.loads(output(*command, "-f", "json", cwd=tmp_path))
    assert sorted((row["policy"], row["t"]) for row in rows) == asked
    listed = list(csv.DictReader(io.StringIO(output(*command, "-f", "csv", cwd=tmp_path))))
    assert sorted((row["policy"], int(row["t"])) for row in listed) == asked
    words = [line.split() for line in output(*command, cwd=tmp_path).splitlines()]
    for policy, t in asked:
        assert sum(policy in line and f"{t:,}" in line for line in words) == 1


def test_an_experiment_file_keeps_its_order(tmp_path):
    """Problems in the table in the order of the file; policies by regret at each horizon."""
    (tmp_path / "e.toml").write_text(
        'policies = ["savage", "rucb"]\nhorizons = [50, 5]\nruns = 2\n'
        '[problems]\nzebra = "arxiv-6"\nant = "cyclic-4"\nmole = "arxiv-6"\n'
    )
    rows = json.loads(output("run", "e.toml", "-f", "json", cwd=tmp_path))
    assert [(row["problem"], row["t"]) for row in rows] == [
        (name, t) for name in ("zebra", "ant", "mole") for t in (5, 5, 50, 50)
    ]


def test_a_matrix_without_a_condorcet_winner_is_played_with_copeland_regret(tmp_path):
    (tmp_path / "p.csv").write_text("0.5,0.6,0.4\n0.4,0.5,0.6\n0.6,0.4,0.5\n")
    done = duels_command("run", "p.csv", "-p", "rucb", "-p", "dts", "--horizon", "50", "--runs", "2", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "regret on p is copeland's: no arm beats every other one",
        "rucb is not made for p: it needs a Condorcet winner",
    ]


def test_policies():
    listed = json.loads(output("experiment", "policies", "-f", "json"))
    assert [set(policy) for policy in listed] == [
        {"name", "parameters", "needs_horizon", "may_never_end", "paper"}
    ] * len(listed)
    assert [policy["name"] for policy in listed] == list(duels.policies.BUILT_IN)
    assert listed[0]["parameters"] == {"confidence": 0.95, "margin": 0.0}
    assert listed[1]["parameters"] == {"alpha": 0.51, "variant": "seed", "unplayed": 2.0}
    assert [policy["needs_horizon"] for policy in listed[:2]] == [False, False]
    may_not = [policy["name"] for policy in listed if policy["may_never_end"]]
    assert sorted(may_not) == ["merge_dts", "merge_rucb", "scb", "versatile_db"]
    assert "UAI 2017" in listed[0]["paper"]
    assert "ICML 2014" in listed[1]["paper"]
    table = output("experiment", "policies")
    assert all(name in table for name in duels.policies.BUILT_IN)
    rows = list(csv.DictReader(io.StringIO(output("experiment", "policies", "-f", "csv"))))
    needing = {row["name"] for row in rows if row["needs_horizon"] == "yes"}
    assert needing == {"savage", "btm", "interleaved_filter", "rmed2fh"}


def test_problems():
    listed = json.loads(output("experiment", "problems", "-f", "json"))
    assert "arxiv-6" in [problem["name"] for problem in listed]
    assert "bradley-terry" in output("experiment", "problems")


def test_run_in_every_format(tmp_path):
    what = ["run", "cyclic-4", "arxiv-6", "-p", "rucb", "-p", "random", "--horizon", "1e3", "--runs", "3"]
    rows = json.loads(output(*what, "-f", "json", "--out", str(tmp_path / "out")))
    assert [(row["problem"], row["policy"]) for row in rows] == [
        ("cyclic-4", "rucb"),
        ("cyclic-4", "random"),
        ("arxiv-6", "rucb"),
        ("arxiv-6", "random"),
    ]
    simulated = duels.simulate("cyclic-4", "rucb", horizon=1000, runs=3).final().to_dicts()[0]
    assert rows[0] == simulated
    saved = duels.load_results(tmp_path / "out")
    assert list(saved.provenance["problems"]) == ["cyclic-4", "arxiv-6"]
    assert saved.provenance["command"][1:] == [*what, "-f", "json", "--out", str(tmp_path / "out")]
    table = list(csv.DictReader(io.StringIO(output(*what, "-f", "csv"))))
    assert [float(row["regret"]) for row in table] == [row["regret"] for row in rows]
    plain = output(*what)
    assert "cyclic-4" in plain
    assert "1,000" in plain


def test_rows_are_in_the_order_of_the_experiment(tmp_path):
    (tmp_path / "e.toml").write_text(
        'policies = ["random", "savage", "rucb"]\nhorizons = [100, 1000]\nruns = 2\n'
        '[problems]\nzebra = "cyclic-4"\nant = "arxiv-6"\n'
    )
    expected = [(p, t, q) for p in ("zebra", "ant") for t in (100, 1000) for q in ("random", "savage", "rucb")]

    def order(*command):
        return [(row["problem"], row["t"], row["policy"]) for row in json.loads(output(*command, cwd=tmp_path))]

    assert order("run", "e.toml", "--out", "whole", "-f", "json") == expected
    for shard in ("1/2", "2/2"):
        output("run", "e.toml", "--shard", shard, "--out", shard[0], "-q", cwd=tmp_path)
    assert order("experiment", "merge", "2", "1", "-f", "json") == expected


@pytest.mark.parametrize(
    ("arguments", "help_of"),
    [
        (["run", "arxiv-6", "--policy"], "duels run"),
        (["matrix", "generate", "cyclic-4", "--out"], "duels matrix generate"),
        (["matrix", "nothing"], "duels matrix"),
        (["--nothing"], "duels"),
        (["plan", "--arms", "many"], "duels plan"),
    ],
)
def test_a_mistake_points_at_the_help_of_its_command(arguments, help_of):
    assert duels_command(*arguments).stderr.endswith(f" See: {help_of} --help\n")


def test_help_cuts_no_description():
    assert "..." not in output("--help").replace("[ARGS]...", "")


def test_no_tokens_yet(tmp_path):
    for format in ("table", "csv"):
        done = duels_command("token", "list", "-f", format, cwd=tmp_path)
        assert done == (0, "", "no tokens yet. Create one: duels token create NAME\n")


def test_run_a_file_and_a_policy_of_ones_own(tmp_path):
    duels.problems.save_matrix(duels.load_problem("cyclic-4"), tmp_path / "mine.csv")
    source = Path(duels.policies.load_policy("random").module.__file__).read_text()
    (tmp_path / "coin.py").write_text(source.replace("from .kernels", "from duels.policies.kernels"))
    rows = json.loads(
        output("run", "mine.csv", "-p", "./coin.py", "--horizon", "100", "--runs", "2", "-f", "json", cwd=tmp_path)
    )
    assert (rows[0]["problem"], rows[0]["policy"], rows[0]["arms"]) == ("mine", "coin", 4)


def test_matrix_describe(tmp_path):
    assert output("matrix", "describe", "cyclic-4").startswith(duels.load_problem("cyclic-4").describe())
    assert json.loads(output("matrix", "describe", "cyclic-4", "-f", "json"))["gamma"] == pytest.approx(4)
    assert "condorcet_winner" in output("matrix", "describe", "cyclic-4", "-f", "csv")


LETOR = """\
0 qid:a 1:0.1 2:0.9 3:0.3 #docid = d1
1 qid:a 1:0.9 2:0.1 3:0.3 #docid = d2
0 qid:a 1:0.2 2:0.3 3:0.3 #docid = d3
1 qid:b 1:0.8 2:0.2 3:0.1 #docid = d1
0 qid:b 1:0.3 2:0.7 3:0.1 #docid = d4
"""


def test_matrix_estimate(tmp_path):
    (tmp_path / "train.txt").write_text(LETOR)
    what = ["matrix", "estimate", "--letor", "train.txt", "--clicks", "perfect", "--comparisons", "500", "--out"]
    said = output(*what, "p.csv", cwd=tmp_path)
    matrix = duels.load_matrix(tmp_path / "p.csv")
    assert matrix.names == ("f1", "f2", "f3")
    assert matrix.names[matrix.condorcet_winner] == "f1"
    assert said.startswith(matrix.describe())
    assert "estimated from        500 comparisons per pair\nsampling error        the winner is at least" in said
    again = output(*what, "again.csv", "--jobs", "1", "-f", "json", cwd=tmp_path)
    assert duels.load_matrix(tmp_path / "again.csv") == matrix
    described = json.loads(output("matrix", "describe", "p.csv", "-f", "json", cwd=tmp_path))
    assert json.loads(again) == described | {"name": "train-perfect"}
    described = output("matrix", "describe", "p.csv", cwd=tmp_path)
    assert "Condorcet winner      f1" in described
    assert "RUCB regret bound     E[R_t] ≤ " in described


def test_matrix_estimate_from_runs(tmp_path):
    (tmp_path / "one.run").write_text("q Q0 x 1 3 one\nq Q0 y 2 2 one\n")
    (tmp_path / "two.run").write_text("q Q0 y 1 3 two\nq Q0 x 2 2 two\n")
    (tmp_path / "qrels").write_text("q 0 x 1\nq 0 y 0\n")
    what = ["matrix", "estimate", "--run", "one.run", "--run", "two.run", "--comparisons", "200", "--out", "p.csv"]
    output(*what, "--qrels", "qrels", cwd=tmp_path)
    assert duels.load_matrix(tmp_path / "p.csv")["one", "two"] > 0.6
    assert "--run needs --qrels" in duels_command(*what, cwd=tmp_path).stderr


def test_what_does_not_fit_is_counted_aloud(tmp_path):
    (tmp_path / "train.txt").write_text(LETOR + "0 qid:c 1:0.5 2:0.1 3:0.2\n")
    what = ["matrix", "estimate", "--comparisons", "5", "--out", "p.csv"]
    said = duels_command(*what, "--letor", "train.txt", cwd=tmp_path).stderr
    assert said.startswith("1 query has no relevant document: kept; --relevant-only leaves it out\n")
    said = duels_command(*what, "--letor", "train.txt", "--relevant-only", cwd=tmp_path).stderr
    assert said.startswith("1 query has no relevant document: left out\n")
    (tmp_path / "one.run").write_text("q Q0 x 1 3 one\nq Q0 y 2 2 one\nr Q0 x 1 1 one\n")
    (tmp_path / "two.run").write_text("q Q0 y 1 3 two\n")
    (tmp_path / "qrels").write_text("q 0 x 1\ns 0 x 1\n")
    said = duels_command(*what, "--run", "one.run", "--run", "two.run", "--qrels", "qrels", cwd=tmp_path).stderr
    assert (
        "1 document without a judgment, treated as not relevant; left out: 1 query without judgments, 1 in no run"
        in said
    )


def test_matrix_generate(tmp_path):
    output("matrix", "generate", "cyclic-4", "--out", "c.npz", cwd=tmp_path)
    assert duels.load_matrix(tmp_path / "c.npz") == duels.load_problem("cyclic-4")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "arxiv-6", "-p", "rucd"],
            "unknown policy 'rucd'. Did you mean 'rucb'? See: duels experiment policies",
        ),
        (["run", "arxiv-7"], "unknown problem 'arxiv-7'. Did you mean 'arxiv-6'? See: duels experiment problems"),
        (["run", "nowhere.csv"], "nowhere.csv cannot be read: No such file or directory"),
        (["run", "arxiv-6", "--horizon", "0"], "horizon is 0: expected from 1 to 1e15"),
        (["run", "arxiv-6", "--horizon", "1.5"], "horizon is '1.5': expected a whole number"),
        (["run", "arxiv-6", "--horizon", "soon"], "horizon is 'soon': expected a whole number"),
        (["run", "arxiv-6", "--runs", "-2"], "runs is -2: expected at least 1"),
        (["run", "arxiv-6", "--runs", "x"], "runs is 'x': expected a whole number"),
        (["run", "arxiv-6", "--jobs", "x"], "Invalid value for '--jobs'"),
        (["run", "arxiv-6", "--horizon", "1e99999999"], "horizon is '1e99999999': expected a whole number"),
        (["run", "arxiv-6", "arxiv-6"], "two problems are called 'arxiv-6'"),
        (["run", "arxiv-6", "-p", "rucb", "-p", "rucb:alpha=0.51"], "two policies are called 'rucb'"),
        (["run", "arxiv-6", "--out", "bad.csv"], "cannot write to the folder 'bad.csv'"),
        (["run"], "Missing argument 'PROBLEM'."),
        (["frob"], "No such command 'frob'."),
        (["matrix", "estimate", "--out", "p.csv"], "no collection given: expected one of --letor, --synthetic, --run"),
        (["matrix", "estimate", "--letor", "x", "--synthetic", "--out", "p.csv"], "--letor and --synthetic given"),
        (["matrix", "estimate", "--letor", "x", "--out", "p.pdf"], "unknown kind of file '.pdf'"),
        (["matrix", "estimate", "--letor", "x", "--out", "no/p.csv"], "there is no folder 'no'"),
        (["matrix", "estimate", "--letor", "x", "--out", "p.npy"], "an .npy file cannot hold the arms' names"),
        (["matrix", "estimate", "--letor", "x", "--out", "/proc/p.csv"], "/proc/p.csv.probe cannot be written"),
        (
            ["matrix", "estimate", "--letor", "x", "--keep", "k.txt", "--out", "p.csv"],
            "--keep is only for the file that",
        ),
        (["matrix", "estimate", "--letor", "x", "--qrels", "q", "--out", "p.csv"], "--qrels needs --run"),
        (["matrix", "generate", "cyclic4", "--out", "p.csv"], "Did you mean 'cyclic-4'?"),
        (["run", "bad.csv"], "bad.csv, line 2, entry 1: 'x' is not a number"),
        (["run", "cycle.csv", "--regret", "condorcet"], "gaps and regret need an arm that beats every other arm"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(arguments, message, tmp_path):
    (tmp_path / "bad.csv").write_text("0.5,0.6\nx,0.5\n")
    (tmp_path / "cycle.csv").write_text("0.5,0.6,0.4\n0.4,0.5,0.6\n0.6,0.4,0.5\n")
    done = duels_command(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("duels: ")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [[], ["matrix"]])
def test_no_command_shows_the_help(arguments):
    assert output(*arguments).startswith("Usage: duels")


MARKED = """
import pathlib
from duels.cli import main
from duels.simulation import Task
play = Task.play
def marked(self, *more):
    pathlib.Path("playing").touch()
    return play(self, *more)
Task.play = marked
main()
"""


def test_ctrl_c_says_so(tmp_path):
    running = subprocess.Popen(
        [sys.executable, "-c", MARKED, "run", "arxiv-6", "-p", "random", "--horizon", "1e14"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "playing").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.2)  # it plays
    running.send_signal(signal.SIGINT)
    try:
        printed, said = running.communicate(timeout=20)
    finally:
        running.kill()
    assert (running.returncode, printed) == (130, "")
    assert said.endswith("duels: interrupted\n")


def test_version():
    assert output("--version") == f"duels {duels.__version__}\n"


def in_terminal(width, *arguments):
    """What the command shows on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    command = [sys.executable, "-c", "from duels.cli import main; main()", *arguments]
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=environment):
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):
            while part := os.read(ours, 4096):
                shown += part
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r", "").splitlines()


def test_tables_fit_the_terminal():
    what = ["run", "arxiv-6", "-p", "rucb", "-p", "savage", "--horizon", "100000", "--runs", "3"]
    lines = commands.in_terminal(80, *what).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) == 6  # head, rule, two policies, a space, what is not shown: nothing is broken across lines
    assert lines[-1] == "Not shown: arms, runs, least, most. To see them: -f csv"
    assert "least" in commands.in_terminal(200, *what).stdout.splitlines()[0]


def test_a_process_of_its_own_shows_the_same_table():
    """What the tests of all widths call without one."""
    assert (
        in_terminal(60, "experiment", "problems")
        == commands.in_terminal(60, "experiment", "problems").stdout.splitlines()
    )


def test_square_brackets_are_shown_as_they_are():
    assert "P[i, j]" in output("experiment", "problems")


def test_warnings_are_one_line_too():
    done = duels_command("run", "cyclic-4", "-p", "rucb:alpha=0.5", "--horizon", "10", "--runs", "1")
    assert done.returncode == 0
    assert done.stderr == "duels: warning: rucb with alpha = 0.5: its regret bounds need alpha > 0.5\n"


def test_help_is_quick_and_names_every_command():
    started = time.perf_counter()
    said = output("--help")
    assert time.perf_counter() - started < 3  # a heavy import would show; benchmarks/startup.py measures it
    assert all(name in said for name in ("run", "policies", "problems", "matrix"))


@pytest.mark.parametrize("code", ["import duels", "import duels.cli"])
def test_importing_stays_light(code):
    loaded = subprocess.run(
        [sys.executable, "-c", f"{code}, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert not {"numba", "polars", "rich.progress", "altair", "numpy"} & set(loaded.stdout.split())


def test_shards_are_run_and_merged(tmp_path):
    (tmp_path / "e.toml").write_text(
        'problems = ["arxiv-6", "cyclic-4"]\npolicies = ["rucb", "savage"]\nhorizons = [100, 1000]\nruns = 4\n'
    )
    whole = json.loads(output("run", "e.toml", "-f", "json", cwd=tmp_path))
    for shard in ("1/2", "2/2"):
        done = duels_command("run", "e.toml", "--shard", shard, "--out", f"part{shard[0]}", "-q", cwd=tmp_path)
        assert done.returncode == 0
        assert f"part {shard} is kept in part{shard[0]}" in done.stderr
    merged = duels_command("experiment", "merge", "part1", "part2", "--out", "all", "-f", "json", cwd=tmp_path)
    assert json.loads(merged.stdout) == whole
    assert "saved in all" in merged.stderr
    again = duels_command("run", "e.toml", "--runs", "5", cwd=tmp_path)
    assert (again.returncode, "runs is 5, but the experiment has its own runs" in again.stderr) == (2, True)


@pytest.mark.deep
def test_figures_are_drawn_from_a_folder_and_from_a_matrix(tmp_path):
    what = ["arxiv-6", "-p", "rucb", "-p", "savage", "--horizon", "1e3", "--runs", "3"]
    output("run", *what, "--out", "o", cwd=tmp_path)
    output("experiment", "plot", "o", "--out", "figures", cwd=tmp_path)
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["accuracy.png", "regret.png"]
    output("experiment", "plot", "o", "--figure", "bounds", "--out", "b.svg", cwd=tmp_path)
    assert "<svg" in (tmp_path / "b.svg").read_text()
    output("experiment", "plot", "arxiv-6", "--figure", "preferences", "--out", "p.json", cwd=tmp_path)
    assert "vega-lite" in (tmp_path / "p.json").read_text()
    output("experiment", "report", "o", cwd=tmp_path)
    page = (tmp_path / "o" / "report.html").read_text()
    assert "rucb, savage on arxiv-6</h1>" in page
    assert "the paper" not in page.lower()  # it says nothing of one's own experiment
    for arguments, said in (
        (["o", "--figure", "regrets"], "unknown figure 'regrets'. Did you mean 'regret'?"),
        (
            ["o", "--out", "one.pdf"],
            "one.pdf is one file, but there are 2 figures: name a folder (--out one --format pdf)",
        ),
        (["o", "--format", "gif"], "unknown format 'gif': expected png, svg, pdf, html or json"),
        (["o", "--figure", "regret", "--out", "r.svg", "--format", "pdf"], "r.svg is not a .pdf file"),
        (["o", "--figure", "regret", "--out", "r.gif"], "cannot write a figure as 'r.gif': expected"),
        (["nowhere"], "unknown problem 'nowhere'"),
    ):
        done = duels_command("experiment", "plot", *arguments, cwd=tmp_path)
        assert said in done.stderr


def test_figures_and_tables_for_papers(tmp_path):
    what = ["cyclic-4", "-p", "rucb:alpha=0.6", "-p", "dts_plus", "--horizon", "100", "--runs", "2", "-q"]
    table = output("run", *what, "--out", "o", "-f", "latex", cwd=tmp_path)
    assert r"RUCB ($\alpha$ = 0.6) & 100 & 2 & " in table
    assert "D-TS$^{+}$" in table
    assert table == duels.load_results(tmp_path / "o").to_latex() + "\n"
    named = output("run", *what, "--out", "o", "-f", "markdown", "--label", "dts_plus=Ours", cwd=tmp_path)
    assert named == duels.load_results(tmp_path / "o").to_markdown({"dts_plus": "Ours"}) + "\n"
    look = ["--width", "300", "--label", "rucb:alpha=0.6=Ours", "--color", "dts_plus=navy", "--title", "Mine"]
    look += ["--font", "serif", "--band", "none", "--legend", "direct"]
    output("experiment", "plot", "o", "--figure", "regret", *look, "--out", "r.svg", cwd=tmp_path)
    svg = (tmp_path / "r.svg").read_text()
    assert all(f">{text}<" in svg for text in ("Ours", "D-TS⁺", "Mine"))
    assert 'stroke="navy"' in svg
    assert 297 < float(re.search(r'width="([\d.]+)"', svg)[1]) <= 300
    for arguments, said in (
        (["--label", "RUCB"], "--label is 'RUCB': expected NAME=VALUE, such as rucb=RUCB"),
        (["--width", "wide"], "width is 'wide': expected 'column', 'page' or a number of points"),
        (["--label", "rcub=Ours"], "unknown name in labels 'rcub'. Known: rucb:alpha=0.6, dts_plus, "),
        (["--label", "dts_plus=Ours", "--label", "rcub=X"], "unknown name in labels 'rcub'. Known: "),
        (["--x-range", "10"], "x_range is (10.0,): expected two numbers, the lower one first"),
        (["--x-range", "1 to 10"], "--x-range is '1 to 10': expected two numbers, such as 1000,1e6"),
        (["--y-scale", "logarithmic"], "y_scale is 'logarithmic': expected 'log' or 'linear'"),
    ):
        assert said in duels_command("experiment", "plot", "o", "--figure", "regret", *arguments, cwd=tmp_path).stderr
    more = ["--label", "cyclic-4=Four arms", "--label", "time t=rounds", "--x-range", "10,100", "--y-scale", "linear"]
    output("experiment", "plot", "o", "--figure", "regret_and_accuracy", *more, "--out", "b.svg", cwd=tmp_path)
    assert all(f">{text}<" in (tmp_path / "b.svg").read_text() for text in ("rounds", "share naming the winner"))
    for arguments, said in (
        (["--label", "dts_plus=Ours"], "--label is for tables of papers: add -f latex or -f markdown, or leave it out"),
        (["--label", "dts=Ours", "-f", "latex"], "unknown name in labels 'dts'"),
    ):
        assert said in duels_command("run", *what, *arguments, cwd=tmp_path).stderr


def test_figures_share_labels_and_colors():
    """Each figure takes the names that it has; a name that no figure has is refused, also beside others."""
    from duels.cli.runs import _figures

    look = {"labels": {"0": "the best"}, "colors": {"total order": "navy"}}
    with pytest.raises(InvalidInput, match="expected three colors"):
        _figures("cyclic-4", ["preferences", "subsets"], look)
    drawn = _figures("cyclic-4", ["subsets", "preferences"], {"labels": look["labels"]})
    assert "the best" in drawn["preferences"].chart.to_json()
    assert "the best" not in drawn["subsets"].chart.to_json()
    assert "navy" in _figures("cyclic-4", ["subsets"], {"colors": look["colors"]})["subsets"].chart.to_json()
    for names in (["subsets"], ["subsets", "preferences"]):
        with pytest.raises(UnknownName, match="unknown name in labels 'elsewhere'"):
            _figures("cyclic-4", names, {"labels": {"elsewhere": "x"}})
        with pytest.raises(UnknownName, match="unknown name in labels 'elsewhere'"):
            _figures("cyclic-4", names, {"labels": {"total order": "ranking", "elsewhere": "x"}})


def test_colors_of_a_heat_map(tmp_path):
    colors = [word for color in ("#112233", "white", "#445566") for word in ("--color", color)]
    output("experiment", "plot", "cyclic-4", "--figure", "preferences", *colors, "--out", "p.json", cwd=tmp_path)
    assert re.search(r'"#112233",\s*"white",\s*"#445566"', (tmp_path / "p.json").read_text())


@pytest.mark.parametrize(
    ("format", "lines"),
    [
        ("latex", [r"policy & n \\", r"D-TS$^{+}$ & 1 \\"]),
        ("markdown", ["| policy | n |", "| --- | --: |", "| D-TS⁺ | 1 |"]),
    ],
)
def test_rows_for_papers(format, lines, capsys):
    from duels.cli.printing import Format, print_rows

    print_rows([{"policy": "dts_plus", "n": 1}], Format(format))
    shown = capsys.readouterr().out.split("\n")
    assert [line for line in shown if line in lines] == lines
    assert Format(format).is_rows


def test_all_figures_in_one_format_and_the_matrices_of_a_folder(tmp_path):
    output("run", "arxiv-6", "cyclic-4", "-p", "rucb", "--horizon", "100", "--runs", "2", "--out", "o", cwd=tmp_path)
    output("experiment", "plot", "o", "--out", "f", "--format", "pdf", cwd=tmp_path)
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == ["accuracy.pdf", "regret.pdf"]
    assert all(path.read_bytes().startswith(b"%PDF") for path in (tmp_path / "f").iterdir())
    output("experiment", "plot", "o", "--figure", "preferences,subsets", "--out", "m", "-f", "svg", cwd=tmp_path)
    names = ["preferences-0.svg", "preferences-1.svg", "subsets-0.svg", "subsets-1.svg"]
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == names
    for place, problem in enumerate(("arxiv-6", "cyclic-4")):
        assert f"Preferences of {problem}" in (tmp_path / "m" / f"preferences-{place}.svg").read_text()


def test_an_interrupted_experiment_says_how_to_go_on(tmp_path):
    what = ["run", "arxiv-6", "-p", "rucb", "-p", "random", "--horizon", "3e7", "--runs", "60", "--out", "o"]
    running = subprocess.Popen(
        [sys.executable, "-c", "from duels.cli import main; main()", *what],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("o/parts/*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    printed, said = running.communicate(timeout=20)
    assert (running.returncode, printed) == (130, "")
    assert re.search(
        r"duels: interrupted; \d+ of 120 tasks are kept in o: the same command resumes the experiment", said
    )


def commands_of(group, *path):
    """Each command of the program by its words."""
    found = getattr(group, "commands", None)
    if found is None:
        return {" ".join(path): group}
    return {name: one for key in found for name, one in commands_of(found[key], *path, key).items()}


def undocumented(text, commands):
    """The commands without a section, and the options that neither their section nor the first one names.

    Of a flag that can be set and unset, only the name that changes the default counts.
    """
    first, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    explained = {}
    for section in sections:
        title = section.partition("\n")[0].removeprefix("duels ")
        explained |= {name.removeprefix("duels "): section for name in title.split(", ")}
    missing = [f"duels {name}" for name in commands if name not in explained]
    for name in commands.keys() & explained.keys():
        named = set(re.findall(r"(?<![\w-])-{1,2}\w[\w-]*", first + explained[name]))
        names = [
            one.secondary_opts if one.secondary_opts and one.default else one.opts for one in commands[name].params
        ]
        options = [option for several in names for option in several]
        missing += [f"duels {name} {option}" for option in options if option[0] == "-" and option not in named]
    return sorted(missing)


@pytest.mark.parametrize(
    ("command", "option", "names"),
    [
        ("experiment plot", "--figure", FIGURES),
        ("matrix estimate", "--clicks", [*clicks.PRESETS, clicks.POSITION]),
        ("matrix estimate", "--interleave", interleaving.DEFAULTS),
    ],
    ids=["figures", "click models", "interleaving"],
)
def test_help_and_documentation_name_every_choice(command, option, names):
    (chosen,) = [
        one for one in commands_of(typer.main.get_command(duels.cli.app))[command].params if option in one.opts
    ]
    assert [name for name in names if name not in re.findall(r"[\w-]+", chosen.help)] == [], "not in the help"
    section = re.search(rf"^## duels {command}\b.*?(?=^## )", PAGE.read_text(), re.MULTILINE | re.DOTALL)[0]
    assert [name for name in names if not re.search(rf"\b{name}\b", section)] == [], "not in docs/cli.md"


def test_every_command_and_option_is_in_the_documentation():
    text = PAGE.read_text()
    commands = commands_of(typer.main.get_command(duels.cli.app))
    assert undocumented(text, commands) == []
    assert "duels run --regret" in undocumented(text.replace("`--regret`", ""), commands)
    assert "duels race --no-check" in undocumented(text.replace("--no-check", ""), commands)
    assert "duels matrix estimate" in undocumented(text.replace("## duels matrix estimate", "## x"), commands)


def test_check(tmp_path):
    """A policy passes eight checks; one that fails stops with exit code 2 and the reason."""
    assert output("experiment", "check", "random").split() == [
        word for check in testing.CHECKS for word in (check.__name__.removeprefix("check_"), "passed")
    ]
    source = (
        Path(duels.policies.load_policy("random").module.__file__)
        .read_text()
        .replace("from .kernels", "from duels.policies.kernels")
    )
    (tmp_path / "far.py").write_text(source.replace("return nth_pair(", "return 0, 99\n    return nth_pair("))
    done = duels_command("experiment", "check", "./far.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "99" in done.stderr
