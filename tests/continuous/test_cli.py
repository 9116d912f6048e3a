"""`duels experiment run-continuous`: its formats, its folder, and what it refuses."""

import csv
import io
import json

from commands import duels_command

import duels

SHORT = ("--duels", "4", "--runs", "2", "-q")


def test_formats_agree_with_the_library():
    text = duels_command("experiment", "run-continuous", "branin", "-p", "random", *SHORT, "-f", "json").stdout
    (row,) = json.loads(text)
    expected = duels.simulate("branin", "random", horizon=4, runs=2, checkpoints=[]).frame
    assert row["regret"] == expected["regret"].mean()
    assert row["simple_regret"] == expected["simple_regret"].median()
    listed = duels_command("experiment", "run-continuous", "branin", "-p", "random", *SHORT, "-f", "csv").stdout
    assert next(csv.DictReader(io.StringIO(listed)))["function"] == "branin"


def test_a_folder_resumes_and_is_drawn(tmp_path):
    arguments = (
        "experiment",
        "run-continuous",
        "branin",
        "camel",
        "-p",
        "random",
        "-p",
        "dbgd:delta=0.2",
        *SHORT,
        "--out",
        "out",
    )
    first = duels_command(*arguments, cwd=tmp_path)
    assert "saved in out" in first.stderr
    assert duels_command(*arguments, cwd=tmp_path).stdout == first.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir()) == [
        "branin-dbgd-delta=0.2",
        "branin-random",
        "camel-dbgd-delta=0.2",
        "camel-random",
    ]
    assert duels.load_results(tmp_path / "out").frame["problem"].unique().sort().to_list() == ["branin", "camel"]
    for folder in ("out", "out/camel-random"):
        duels_command("experiment", "plot", folder, "-f", "svg", cwd=tmp_path)
        assert sorted(path.name for path in (tmp_path / folder).glob("*.svg")) == ["regret.svg", "simple_regret.svg"]
    refused = duels_command("experiment", "report", "out/camel-random", cwd=tmp_path).stderr
    assert "there is no report" in refused


def test_what_is_refused():
    for arguments, message in {
        ("experiment", "run-continuous", "brannin"): "Did you mean 'branin'",
        ("experiment", "run-continuous", "branin", "-p", "eubbo"): "Did you mean 'eubo'",
        ("experiment", "run-continuous", "branin", "--duels", "1.5"): "duels is '1.5'",
        ("run", "ackley:d=2"): "use duels experiment run-continuous ackley:d=2",
    }.items():
        done = duels_command(*arguments)
        assert done.returncode == 2
        assert message in done.stderr
