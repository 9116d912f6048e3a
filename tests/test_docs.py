"""The documentation is true: its examples are run, every module and policy has its page, every page is reachable."""

import doctest
import importlib.util
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
REPORTS = sorted((ROOT / "benchmarks").glob("*.md"))

REFERENCE = DOCS / "reference"


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


def each(pages, deep=()):
    names = {page: str(page.relative_to(ROOT)) for page in pages}
    marks = {page: [pytest.mark.deep] if name in deep else [] for page, name in names.items()}
    return pytest.mark.parametrize("page", [pytest.param(page, id=names[page], marks=marks[page]) for page in pages])


SLOW = ["docs/figures/illustrations.md", "docs/paper/report.md"]
TOGETHER = DOCS / "votes" / "ranking.md"  # its commands read a file that its Python examples write


@each([page for page in [*PAGES, *REPORTS] if ">>>" in fenced(page.read_text(), "python")], deep=SLOW)
def test_python_examples(page, folder):
    run_python_examples(page)
    if page == TOGETHER:
        run_console_examples(page, folder)


def run_python_examples(page):
    session = doctest.DocTestParser().get_doctest(
        fenced(page.read_text(), "python"), {"__name__": "__main__"}, page.name, str(page), 0
    )
    complaints: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=complaints.append)
    assert not complaints, "".join(complaints)


def has_commands(page):
    return any(command.startswith("duels") for _, command, _ in commands(page.read_text()))


@each([page for page in PAGES if page != TOGETHER and has_commands(page)])
def test_console_examples(page, folder):
    run_console_examples(page, folder)


def run_console_examples(page, folder):
    for number, command, said in commands(page.read_text()):
        if command.startswith("duels "):
            got = run(command, folder)
            assert agrees("\n".join(said), got), f"{page.name}, line {number}: {command}\nprinted:\n{got}"


def test_the_tests_of_examples_can_fail():
    text = "```python\n>>> 1 + 1\n2\n```\n\n```console\n$ duels experiment policies\nname … \n```\n"
    assert [example.want for example in doctest.DocTestParser().get_examples(fenced(text, "python"))] == ["2\n"]
    assert commands(text) == [(7, "duels experiment policies", ["name … ", ""])]
    assert agrees("a\n...\nc", "\na  \nb\nc\n\n")
    assert not agrees("a\nb", "a\nc")


@pytest.mark.parametrize("page", ["docs/cli.md", "docs/server/api.md"])
def test_generated_tables_are_up_to_date(page):
    """Tables of commands and routes are those of the code. To write them again: python docs/generate.py"""
    pytest.importorskip("fastapi")
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert ROOT / page in generate.PAGES
    text = (ROOT / page).read_text()
    assert generate.write_page(text) == text, "python docs/generate.py"
    assert generate.write_page(text.replace("| List ", "| Lists ")) == text, "the test can fail"


def test_every_policy_has_its_page():
    assert [name for name in BUILT_IN if not (DOCS / "policies" / f"{name}.md").is_file()] == []


def test_every_policy_has_its_row():
    """In the table of policies, with its horizon."""
    rows = re.findall(
        r"^\| \[`(\w+)`\]\(policies/\1\.md\) \|.*?\| (.*?) \|", (DOCS / "policies.md").read_text(), re.MULTILINE
    )
    assert dict(rows) == {
        name: "needed" if duels.policies.load_policy(name).needs_horizon else "not needed" for name in BUILT_IN
    }


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_bytes()) < 9000


def test_simulate_s_arguments_are_all_explained():
    """By its docstring, which the reference shows."""
    listed = re.findall(r"^ *\**(\w+)(?: \(.*?\))?: ", inspect.getdoc(duels.simulate), re.MULTILINE)
    taken = [
        one.name for one in inspect.signature(duels.simulate).parameters.values() if one.kind is not one.VAR_KEYWORD
    ]
    assert [name for name in listed if name in taken] == taken


def test_the_policies_that_are_told_a_horizon_are_named():
    named = re.search(r"need a horizon\*\* \((.*?)\)", (DOCS / "experiments" / "experiment.md").read_text())[1]
    told = [f"`{name}`" for name in BUILT_IN if duels.policies.load_policy(name).needs_horizon]
    assert sorted(named.split(", ")) == sorted(told)


def test_every_page_is_in_a_table_of_contents():
    listed = {DOCS / "index.md"}
    for page in PAGES[1:]:
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            entries = [page.parent / entry for entry in block.split("\n") if entry and entry[0] != ":"]
            listed |= {
                next(file for file in (Path(f"{entry}.md"), Path(f"{entry}.rst")) if file.is_file())
                for entry in entries
            }
    assert listed == {*PAGES[1:], *REFERENCE.glob("*.rst")}


def test_every_namespace_has_its_reference():
    wanted = {"duels", *(f"duels.{name}" for name in (*duels._NAMESPACES, *duels._MODULES))}
    found = [
        re.search(r"^\.\. namespace:: (\S+)$", page.read_text(), re.MULTILINE)[1] for page in REFERENCE.glob("*.rst")
    ]
    assert sorted(found) == sorted(wanted)


def test_every_page_links_to_the_reference():
    without = {DOCS / "architecture.md", *REFERENCE.glob("*.md")}
    assert [page for page in PAGES if page not in without and "reference/" not in page.read_text()] == []


def test_links_go_somewhere():
    """Links between files; Sphinx checks those to headings."""
    for page in [*PAGES, *REPORTS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)|src=\"([^\"]+)\"", text):
            path = next(filter(None, target))
            assert "://" in path or (page.parent / path).exists(), f"{page.name} links to {path}"


@pytest.mark.parametrize("page", [DOCS / "architecture.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_the_map_names_files_and_names_that_exist(page):
    source, text = ROOT / "src" / "duels", page.read_text()
    for name in re.findall(r"`([\w./]+/|[\w./]+\.(?:py|md))`", text):
        assert any((base / name).exists() for base in (source, ROOT)) or "NAME" in name, name
    for names, file in re.findall(r"`(_?\w+)`(?:, by [\w ]+)? in `([\w/]+\.py)`", text):
        path = source / file if (source / file).exists() else ROOT / file
        assert re.search(rf"\b{names}\b", path.read_text()), f"{names} is not in {file}"
    listed = {
        room
        for row in re.findall(r"^\| ((?:`\w+/?`(?:, )?)+) \|", text, re.MULTILINE)
        for room in re.findall(r"`(\w+)", row)
    }
    if listed:
        rooms = {path.stem for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
        assert rooms - {"__init__", "__main__"} == listed


@pytest.mark.deep
def test_the_pages_build_without_warnings(tmp_path):
    pytest.importorskip("sphinx")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", DOCS, tmp_path],
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
