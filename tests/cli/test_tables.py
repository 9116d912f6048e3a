"""Every command at every width: no number and no name is cut, and tables say what JSON says.

The commands are found from the program, so that a new one cannot be forgotten: it needs an entry in `COMMANDS`.
"""

import contextlib
import fcntl
import importlib
import json
import os
import pty
import random
import re
import shutil
import struct
import subprocess
import sys
import termios
import unicodedata
from typing import Any, NamedTuple

import pytest
import typer.main
from commands import duels_command, in_terminal
from latex_reader import read_latex

import duels
from duels import testing
from duels.cli import app
from duels.cli.printing import column, table_lines, wrap_text
from duels.storage.storage import Storage

WIDTHS = (40, 60, 80, 120)
ARMS = [
    "Falcon Instruct 40B",
    "model-of-2024-05-13_instruct:quantised-to-four-bits/served",
    "日本語のモデル",
    "A prompt that is written as a whole sentence, and asks for a short answer",
    "3",
]


class Command(NamedTuple):
    line: str
    table: bool = False  # a table of the rows that -f json has; otherwise words
    stdin: str = ""


COMMANDS = {
    "reproduce": Command("--quick -q"),
    "run": Command("e.toml -q", table=True),
    "race": Command("cyclic-4 -p rucb -p random --horizon 1e5 --runs 3 --no-check -q", table=True),
    "experiment check": Command("random"),
    "experiment merge": Command("part1 part2 --out all", table=True),
    "experiment plot": Command("cyclic-4 --figure preferences --out p.json"),
    "experiment report": Command("whole --out r.html"),
    "judge": Command("outputs.csv --command ./judge.sh --about these-answers"),
    "tune": Command("space.toml --command ./judge.sh -p random --max-duels 3"),
    "study create-tuning": Command("other space.toml --template page.html"),
    "study template": Command("voice page.html"),
    "study best": Command("voice"),
    "study create": Command("other red green blue"),
    "study list": Command("", table=True),
    "study delete": Command("prompts", stdin="y\n"),
    "study add-arm": Command("prompts more"),
    "experiment run-continuous": Command("branin camel -p random --duels 2 --runs 1 --jobs 1 -q", table=True),
    "study retire-arm": Command("prompts 3"),
    "study ask": Command("prompts -n 3", table=True),
    "study allocate": Command("prompts -n 100", table=True),
    "study open-duels": Command("prompts", table=True),
    "study tell": Command("prompts 1201 left"),
    "study undo": Command("prompts 1200"),
    "study forget": Command("prompts ann"),
    "study leaderboard": Command("prompts", table=True),
    "study verdict": Command("prompts"),
    "study forecast": Command("prompts"),
    "study ranking": Command("prompts", table=True),
    "study import": Command("copied votes.csv --create"),
    "study export": Command("prompts --out v.csv"),
    "analyze": Command("battles.csv -f json"),  # its table is that of `leaderboard`, between two sentences
    "rate": Command("battles.csv", table=True),
    "plan": Command("--arms 4 --gap 0.2 --studies 20 -p rucb -p random --limit 900 -q", table=True),
    "votes agreement": Command("voters.csv"),
    "serve": Command("--help"),  # it runs until Ctrl-C; a test of its own is below
    "experiment policies": Command("", table=True),
    "experiment problems": Command("", table=True),
    "matrix describe": Command("cyclic-4"),
    "matrix estimate": Command("--letor train.txt --comparisons 200 --out m.csv -q"),
    "matrix count": Command("votes.csv"),
    "matrix generate": Command("cyclic-4 --out c.csv"),
    "token create": Command("laptop"),
    "token list": Command("", table=True),
    "token revoke": Command("1"),
}
# The fields of a column of JSON whose name is not its heading.
FIELDS = {
    "steps": ["t"],
    "regret": ["regret", "standard_error"],
    "least": ["least"],
    "most": ["most"],
    "between": ["lower", "upper"],
    "ranks": ["best_rank", "worst_rank"],
    "won–lost–tied": ["wins", "losses", "ties"],
    "ns per step": ["nanoseconds"],
    "answers (median)": ["answers_median"],
    "answers (90%)": ["answers_90"],
    "regret (median)": ["regret_median"],
    "regret (90%)": ["regret_90"],
    "no verdict": ["undecided"],
    "wrong verdict": ["wrong"],
    "median simple regret": ["simple_regret"],
    "middle half": ["simple_regret_q25", "simple_regret_q75"],
}
NAMES = {"name", "arm", "policy", "problem", "left", "right", "kind"}
LETOR = "0 qid:a 1:0.1 2:0.9 3:0.3\n1 qid:a 1:0.9 2:0.1 3:0.3\n1 qid:b 1:0.8 2:0.2 3:0.1\n0 qid:b 1:0.3 2:0.7 3:0.1\n"


def commands_of(group: Any, *path: str) -> list[str]:
    found = getattr(group, "commands", None)
    if found is None:
        return [" ".join(path)]
    return [name for key, one in found.items() for name in commands_of(one, *path, key)]


def test_every_command_is_tried():
    assert sorted(COMMANDS) == sorted(commands_of(typer.main.get_command(app)))


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A folder with a study, an experiment in two parts, votes and tokens, for commands to work on copies of."""
    folder = tmp_path_factory.mktemp("template")
    storage = Storage(f"sqlite:///{folder / 'duels.db'}")
    study = duels.create_study(ARMS, "prompts", storage)
    draw = random.Random(0)
    pairs = [draw.sample(range(len(ARMS)), 2) for _ in range(1200)]
    study.import_votes(
        [(ARMS[i], ARMS[j], "left" if draw.random() < 0.5 + 0.1 * (j - i) else "right") for i, j in pairs]
    )
    study.tell(study.ask(voter="ann").id, "left", voter="ann")
    study.ask(3)
    study.retire_arm(ARMS[2])
    duels.create_study(ARMS, "a study with a long name, of which there are some", storage, "rucb:alpha=0.6")
    voice = duels.create_study(
        space={"temperature": (0.0, 1.5), "日本語": ["敬語", "plain"]},
        study_name="voice",
        storage=storage,
        policy="random",
    )
    for _ in range(5):
        voice.tell(voice.ask(), "left")
    storage.close()
    (folder / "space.toml").write_text('temperature = [0.0, 1.5]\nlevel_of_detail = [1, 10, "int"]\n')
    (folder / "page.html").write_text("<p>{{ temperature }}</p>")
    (folder / "votes.csv").write_text("left,right,winner\nfox,owl,left\n")
    voted = [f"fox,{ARMS[2]},left,{voter}" for voter in ("ann", "日本の人", "a voter with a long name")]
    (folder / "voters.csv").write_text("\n".join(["left,right,winner,voter", *voted]))
    battles = [f'"{a}","{b}",left' for a in ARMS for b in ARMS if a != b] + [f'"{ARMS[0]}","{ARMS[1]}",left'] * 5
    (folder / "battles.csv").write_text("\n".join(["left,right,winner", *battles]))
    (folder / "train.txt").write_text(LETOR)
    outputs = [",".join([f"prompt {k}", f"good {k}", "poor", "poor"]) for k in range(20)]
    arms = ",".join(f'"{arm}"' for arm in ARMS[1:4])
    (folder / "outputs.csv").write_text("\n".join([f"prompt,{arms}", *outputs]))
    (folder / "judge.sh").write_text("#!/bin/sh\ngrep -q 'left\": \"good' && echo left || echo right\n")
    (folder / "judge.sh").chmod(0o755)
    (folder / "e.toml").write_text(
        'policies = ["random", "rucb:alpha=0.6", "rucb:variant=icml"]\nhorizons = [20000]\nruns = 4\n'
        '[problems]\n"the one with a cycle" = "cyclic-4"\narxiv-6 = "arxiv-6"\n'
    )
    for line in (
        "run e.toml -q --shard 1/2 --out part1",
        "run e.toml -q --shard 2/2 --out part2",
        "run arxiv-6 -p random -q --horizon 1000 --runs 2 --out whole",
        "judge outputs.csv --command ./judge.sh --about these-answers",
        "token create laptop",
        "token create a-second-one --kind admin",
        "token revoke 2",
    ):
        done = duels_command(*line.split(), cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def run(template, tmp_path, monkeypatch):
    """Runs a command in a fresh copy of the template: in a terminal of a width, or with None in a pipe."""
    raced = {}

    def race_once(problem, policies, **how):  # two races take different times
        if not raced:
            raced[""] = kept(problem, policies, **how)
        return raced[""]

    passed = {}

    def check_once(check, policy):  # which takes a second, and says the same at every width
        if check not in passed:
            passed[check] = run_check(check, policy)
        return passed[check]

    def claims(out, *, say, **how):  # a real one takes a minute
        say("64 arms, Condorcet winner f3, γ = 4.85\n\n✓ holds: gamma\n  paper  All problems require γ > 1.")
        say("  found  γ is 4.85, 11.6 and 47.3 on 16, 32 and 64 arms of these problems, as is said\n         here.\n")

    places = ("experiments.race", "paper.reproduction", "paper.report")
    race, reproduce, report = (importlib.import_module(f"duels.{place}") for place in places)
    kept, run_check = race.run_race, testing.run_check
    monkeypatch.setattr(race, "run_race", race_once)
    monkeypatch.setattr(reproduce, "reproduce", claims)
    monkeypatch.setattr(report, "write_report", lambda path, *of: path)  # its figures take seconds
    monkeypatch.setattr(testing, "run_check", check_once)
    monkeypatch.setattr("secrets.token_urlsafe", lambda count: "secret" * (count // 6))
    made = iter(range(1000))

    def once(name, *more, width=None):
        folder = tmp_path / f"{next(made)}"
        shutil.copytree(template, folder)
        words = [*name.split(), *COMMANDS[name].line.split(), *more]
        how = {"cwd": folder, "stdin": COMMANDS[name].stdin}
        done = duels_command(*words, **how) if width is None else in_terminal(width, *words, **how)
        shutil.rmtree(folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return once


def letters(text):
    return re.sub(r"\s", "", text)


def to_cells(line):
    """The line with a filler after each wide character: one character per column of the terminal."""
    return "".join(c + "\0" if unicodedata.east_asian_width(c) in "WF" else c for c in line)


def read_table(lines, count):
    """Headings and rows; a cell is the list of its parts on the lines of the row."""
    rule = next(k for k, line in enumerate(lines) if set(line) == {" ", "─"})
    end = next((k for k, line in enumerate(lines) if line.startswith("Not shown:")), len(lines) + 1) - 1
    body = lines[rule + 1 : end]
    head = lines[:rule]
    grid = [to_cells(line) for line in head + body if line]
    wide = max(map(len, grid))
    grid = [line.ljust(wide) for line in grid]
    blank = "".join(" " if all(line[k] == " " for line in grid) else "x" for k in range(wide))
    spans = [match.span() for match in re.finditer(r"x+( {1,2}x+)*", blank)]

    def cut(line):
        line = to_cells(line).ljust(wide)
        return [line[start:stop].replace("\0", "").strip() for start, stop in spans]

    heads = [" ".join(filter(None, parts)) for parts in zip(*map(cut, head))]
    if "" in body or count == 1:
        groups = "\n".join(body).split("\n\n")
    elif len(body) == count:
        groups = body
    else:  # a row begins where the first column has something
        groups = []
        for line in body:
            groups = [*groups, line] if cut(line)[0] else [*groups[:-1], f"{groups[-1]}\n{line}"]
    return heads, [[[p for p in parts if p] for parts in zip(*map(cut, group.split("\n")))] for group in groups]


def read_blocks(lines, heads):
    """The rows of a table that did not fit: each a block of lines, whose headings are known."""
    rows = []
    for block in "\n".join(lines).split("\n\n"):
        row: dict[str, list[str]] = {}
        for line in block.split("\n"):
            head = max((h for h in heads if re.match(rf" {re.escape(h)}( |$)", line)), key=len, default=None)
            if head is None:
                row[next(reversed(row))].append(line.strip())
            else:
                row[head] = [part for part in [line[1 + len(head) :].strip()] if part]
        rows.append([row.get(head, []) for head in heads])
    return rows


def read(shown, count, all_heads):
    """Headings, rows, and the headings that are said to be left out."""
    shown = re.sub(r"\nranked by .*?(?=\n\n|\n?$)", "", shown, flags=re.DOTALL)  # a sentence below the leaderboard
    lines = shown.rstrip("\n").split("\n")
    if not any(set(line) == {" ", "─"} for line in lines):
        return all_heads, read_blocks(lines, all_heads), []
    heads, rows = read_table(lines, count)
    last = " ".join(shown.rpartition("\n\n")[2].split())
    found = re.fullmatch(r"Not shown: (.*)\. To see (?:it|them): -f csv", last)
    return heads, rows, found[1].split(", ") if found else []


def agrees(parts, head, row):
    """Whether a cell says what the JSON row says: text letter by letter, numbers to the digits shown, on one line."""
    if head in ("least", "most") and "regret_min" in row:
        fields = [{"least": "regret_min", "most": "regret_max"}[head]]
    elif head == "regret" and "regret" not in row:
        return False
    elif head == "wins" and "share" in row:
        fields = ["share"]
    else:
        fields = FIELDS.get(head, [head.replace(" ", "_")])
    values = [row[field] for field in fields if row[field] is not None]
    cell = " ".join(parts)
    if not values:
        return letters(cell) in ("", "–", "beyondthelimit")
    if row.get("active") is False and head in ("rank", "arm"):
        return letters(cell) == ("–" if head == "rank" else letters(f"{row['arm']} (retired)"))
    (first, *_) = values
    if isinstance(first, bool):
        return cell == ("yes" if first else "no")
    if isinstance(first, dict):
        return letters(cell) == "".join(f"{key}={value}" for key, value in first.items())
    if isinstance(first, str):
        return letters(cell) == letters(first)
    return len(parts) == 1 and numbers_agree(cell, values)


def numbers_agree(cell, values):
    found = re.findall(r"\d[\d,]*(?:\.\d+)?", cell)
    if len(found) != len(values) or re.sub(r"[\d,. ±–%-]", "", cell):
        return False
    for text, value in zip(found, values):
        digits = len(text.partition(".")[2])
        shown, exact = float(text.replace(",", "")), value * (100 if cell.endswith("%") else 1)
        if text not in (f"{shown:,.{digits}f}", f"{shown:.{digits}f}"):
            return False
        if abs(shown - exact) > 0.5000001 * 10**-digits:
            return False
    return True


def columns_of(line):
    return len(to_cells(line))


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.table])
def test_tables_say_what_json_says(name, run):
    rows = json.loads(run(name, "-f", "json"))
    assert rows
    all_heads, in_pipe, missing = read(run(name), len(rows), [])
    assert not missing  # in a pipe nothing needs to fit
    tables = {None: (all_heads, in_pipe)}
    for width in WIDTHS:
        shown = run(name, width=width)
        assert max(map(columns_of, shown.splitlines())) <= width
        assert "…" not in shown
        heads, cells, left_out = read(shown, len(rows), all_heads)
        assert [head for head in all_heads if head in heads] == heads
        assert sorted([*heads, *left_out]) == sorted(all_heads)
        assert not NAMES.intersection(left_out) or name == "study list"
        tables[width] = (heads, cells)
    for width, (heads, cells) in tables.items():
        assert len(cells) == len(rows)
        for row, line in zip(rows, cells):
            for head, parts in zip(heads, line, strict=True):
                assert agrees(parts, head, row), f"at {width}: {head} is {parts}, not that of {row}"


def has_formats(name):
    found = typer.main.get_command(app)
    for word in name.split():
        found = found.commands[word]
    return name not in ("experiment plot", "serve") and any(option.name == "format" for option in found.params)


@pytest.mark.parametrize("name", [name for name in COMMANDS if has_formats(name)])
def test_tables_for_papers(name, run):
    """LaTeX and Markdown print the same cells; numbers are those of the table, and no column is empty."""
    _, heads, rows = read_latex(run(name, "-f", "latex"))
    assert rows
    assert all(any(column) for column in zip(*rows))
    table = run(name, "-f", "markdown")
    cells = [re.split(r"(?<!\\) ?\| ?", line)[1:-1] for line in table.rstrip("\n").split("\n")]
    assert set(cells.pop(1)) <= {"---", "--:"}
    shown = [[re.sub(r"\\(.)", r"\1", re.sub(r"^\*\*(.*)\*\*$", r"\1", cell)) for cell in line] for line in cells]
    assert shown == [heads, *rows] or name in ("race", "judge", "study create", "study list")  # these differ in time
    assert [len(line) for line in shown] == [len(heads)] * (len(rows) + 1)
    policies = [row[heads.index("policy")] for row in rows] if "policy" in heads else []
    assert all(policy in ("Random", "Verdict") or policy.startswith("RUCB") for policy in policies)
    assert name == "experiment policies" or not any(re.search(r"\d\.\d{5}", cell) for row in rows for cell in row)
    assert (
        COMMANDS[name].table
        or heads == ["", "value"]
        or name in ("judge", "study forecast", "votes agreement", "analyze")
    )


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if not command.table])
def test_words_are_all_there_at_every_width(name, run):
    said = run(name)
    for width in WIDTHS:
        shown = run(name, width=width)
        assert letters(shown) == letters(said)
        if name != "serve" and max(map(len, said.split()), default=0) <= width:
            assert shown.split() == said.split()


@pytest.mark.parametrize("name", ["", "study", "experiment", "votes", "matrix", "token", *COMMANDS])
def test_help_is_all_there_at_every_width(name):
    said = duels_command(*name.split(), "--help").stdout
    for width in WIDTHS:
        shown = in_terminal(width, *name.split(), "--help").stdout
        assert letters(shown) == letters(said)
        assert not re.search(r"\w\.\.\.(?!\])", shown.replace("ARM...", "").replace("PROBLEM...", ""))


def test_the_comparison_of_cells_can_fail():
    row = {"score": 0.70312, "lower": 0.63, "upper": 0.77, "duels": 20185, "arm": "fox", "regret": 1.0}
    assert agrees(["0.703"], "score", row)
    assert agrees(["0.63 – 0.77"], "between", row)
    assert agrees(["20,185"], "duels", row)
    assert agrees(["f", "ox"], "arm", row)
    for head, *parts in (
        ("score", "0.704"),
        ("score", "0.", "703"),
        ("between", "0.63 – 0."),
        ("between", "0.63"),
        ("duels", "201"),
        ("duels", "20,18"),
        ("arm", "fo"),
    ):
        assert not agrees(parts, head, row)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_table_fits_every_width(rows):
    """From one column on: a number is broken only where the terminal is narrower than the number."""
    columns = (
        column("arm"),
        column("score", show=".3f"),
        column("duels", show=",", spare=1),
        column("paper", spare=2, least=30),
        column("empty", spare=1),
    )
    data = [
        {
            "arm": arm,
            "score": k / 7,
            "duels": 10**k * 1234,
            "paper": "Words and more words of a paper. " * k,
            "empty": "",
        }
        for k, arm in enumerate(ARMS[:rows])
    ]
    cells = [[one.show(row[one.fields[0]]) for one in columns] for row in data]
    heads = [one.head for one in columns]
    layouts = set()
    for width in range(1, 240):
        lines = table_lines(columns, cells, width)
        if width < 15:
            assert letters("".join(cells[0])) in letters("".join(re.sub(r"^ \S.*$", "", x) for x in lines)) or rows > 1
            continue
        assert max(map(columns_of, lines)) <= width
        found, body, left_out = read("\n".join(lines), rows, heads)
        layouts.add((tuple(found), bool(left_out)))
        assert sorted([*found, *left_out]) == sorted(heads)
        for row, line in zip(data, body, strict=True):
            assert all(agrees(parts, head, row) for head, parts in zip(found, line, strict=True))
    assert len(layouts) >= 2 + (rows > 1)
    assert table_lines(columns, cells, None) == table_lines(columns, cells, 1000)


def test_wrapping():
    assert wrap_text("one two three", None) == ["one two three"]
    assert wrap_text("one two three", 7) == ["one two", "three"]
    assert wrap_text("rucb:alpha=0.262144", 12) == ["rucb:alpha=", "0.262144"]
    assert wrap_text("interleaved_filter", 12) == ["interleaved_", "filter"]
    assert wrap_text("abcdefgh", 3) == ["abc", "def", "gh"]
    assert wrap_text("日本語", 4) == ["日本", "語"]
    assert wrap_text("", 5) == [""]


@pytest.mark.parametrize("size", ["0", ""])
def test_a_terminal_that_does_not_know_its_width_has_80_columns(size, template):
    lines = in_terminal(
        0, "study", "leaderboard", "prompts", cwd=template, environment={"COLUMNS": size or None}
    ).stdout
    assert 60 < max(map(columns_of, lines.splitlines())) <= 80


@pytest.mark.deep
@pytest.mark.parametrize("width", WIDTHS)
def test_the_server_says_where_it_is(width, tmp_path):
    """A process of its own, ended once it has spoken."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    running = subprocess.Popen([sys.executable, "-m", "duels", "serve", "--port", "0"], stdout=theirs, cwd=tmp_path)
    os.close(theirs)
    shown = b""
    try:
        with contextlib.suppress(OSError):
            while shown.count(b"\n") < 2:
                shown += os.read(ours, 4096)
    finally:
        running.kill()
        running.wait(60)
        os.close(ours)
    where, how = shown.decode().splitlines()
    assert re.fullmatch(r"Duels is at http://127\.0\.0\.1:\d+", where)
    assert re.search(r"/signin#\S{40,}$", how)
