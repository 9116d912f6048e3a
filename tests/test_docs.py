"""The documentation is true: its examples are run, every module and policy has its page, every page is reachable."""

import doctest
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from commands import duels_command

import duels
from duels.policies import BUILT_IN

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)]

# Modules whose page has another name.


def fenced(text, language):
    """The text with every line blanked that is not in a block of that language: line numbers stay, fences go."""
    kept, inside = [], False
    for line in text.splitlines():
        fence = line.startswith("```")
        inside = line.strip() == f"```{language}" if fence else inside
        kept.append(line if inside and not fence else "")
    return "\n".join(kept) + "\n"


def commands(text):
    """Each command of the console blocks with its line number and the lines that follow it."""
    found = []
    for number, line in enumerate(fenced(text, "console").splitlines(), 1):
        if line.startswith("$ "):
            found.append((number, line[2:], []))
        elif found:
            found[-1][2].append(line)
    return found


def bare(text):
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def run(command, folder):
    """What `duels …` prints, standard error included, in the order of a terminal."""
    done = duels_command(*shlex.split(command)[1:], cwd=folder, environment={"COLUMNS": "120"}, together=True)
    return done.stdout


def agrees(said, got):
    return doctest.OutputChecker().check_output(bare(said) + "\n", bare(got) + "\n", doctest.ELLIPSIS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to run examples in, where `examples/` is the repository's."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def each(pages):
    return pytest.mark.parametrize("page", pages, ids=lambda page: str(page.relative_to(ROOT)))


@each([page for page in PAGES if ">>>" in fenced(page.read_text(), "python")])
def test_python_examples(page, folder):
    session = doctest.DocTestParser().get_doctest(
        fenced(page.read_text(), "python"), {"__name__": "__main__"}, page.name, str(page), 0
    )
    complaints: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=complaints.append)
    assert not complaints, "".join(complaints)


@each([page for page in PAGES if any(command.startswith("duels") for _, command, _ in commands(page.read_text()))])
def test_console_examples(page, folder):
    for number, command, said in commands(page.read_text()):
        if command.startswith("duels "):
            got = run(command, folder)
            assert agrees("\n".join(said), got), f"{page.name}, line {number}: {command}\nprinted:\n{got}"


def test_the_tests_of_examples_can_fail():
    text = "```python\n>>> 1 + 1\n2\n```\n\n```console\n$ duels policies\nname … \n```\n"
    assert [example.want for example in doctest.DocTestParser().get_examples(fenced(text, "python"))] == ["2\n"]
    assert commands(text) == [(7, "duels policies", ["name … ", ""])]
    assert agrees("a\n...\nc", "\na  \nb\nc\n\n")
    assert not agrees("a\nb", "a\nc")


def test_every_policy_has_its_page():
    assert [name for name in BUILT_IN if not (DOCS / "policies" / f"{name}.md").is_file()] == []


def test_simulate_s_arguments_are_all_explained():
    listed = re.findall(r"^\| `(\w+)` \|", (DOCS / "simulate.md").read_text(), re.MULTILINE)
    taken = inspect.signature(duels.simulate).parameters.values()
    assert listed == [one.name for one in taken if one.kind is not one.VAR_KEYWORD]


def test_the_policies_that_are_told_a_horizon_are_named():
    named = re.search(r"need a horizon\*\* \((.*?)\)", (DOCS / "experiments" / "experiment.md").read_text())[1]
    told = [f"`{name}`" for name in BUILT_IN if duels.policy(name).needs_horizon]
    assert sorted(named.split(", ")) == sorted(told)


def test_every_page_is_in_a_table_of_contents():
    listed = {DOCS / "index.md"}
    for page in PAGES[1:]:
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            listed |= {page.parent / f"{entry}.md" for entry in block.split("\n") if entry and entry[0] != ":"}
    assert listed == set(PAGES[1:])


@pytest.mark.deep
def test_the_pages_build_without_warnings(tmp_path):
    pytest.importorskip("sphinx")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", DOCS, tmp_path],
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
