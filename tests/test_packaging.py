"""The core works without the extras, the version has one source, and the lock has hashes."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import duels

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]

USE_THE_CORE = """
import duels

matrix = duels.load_problem("arxiv-6")
results = duels.simulate(matrix, "rucb", horizon=200, runs=2, seed=0)
results.save("out")
assert duels.load_results("out").final().height == 1
assert results.summarize().height > 1
duels.run_experiment(problems=["arxiv-6"], policies=["rucb"], horizons=[100], runs=2, out="experiment")

study = duels.create_study(["a", "b", "c"], "drinks", storage="sqlite:///drinks.db")
study.tell(study.ask(), "left")
assert duels.load_study("drinks", storage="sqlite:///drinks.db").verdict().duels == 1
assert duels.analyze([("a", "b", "left")] * 30).verdict.leader == "a"

try:
    duels.connect("http://127.0.0.1:9", "a-token", timeout=1).list_studies()
except duels.DuelsError as error:
    assert "127.0.0.1:9" in str(error), error

for namespace in "experiments judges policies problems rankers results study testing theory votes".split():
    for name in getattr(getattr(duels, namespace), "__all__", ()):
        getattr(getattr(duels, namespace), name)
"""

# Refuses modules the way an environment without them does.
REFUSE = """
import sys

class Refuse:
    names = frozenset({names!r})

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refuse())
"""


def closure(requirements):
    """The canonical names of everything that installing these requirements brings."""
    found, waiting = set(), [Requirement(text) for text in requirements]
    while waiting:
        one = waiting.pop()
        if one.marker and not any(one.marker.evaluate({"extra": extra}) for extra in one.extras or {""}):
            continue
        name = canonicalize_name(one.name)
        if name in found and not one.extras:
            continue
        found.add(name)
        for text in distribution(name).requires or ():
            inner = Requirement(text)
            extras = one.extras or {""}
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in extras):
                inner.marker = None
                waiting.append(inner)
    return found


@cache
def modules_outside_the_core():
    core = closure(PROJECT["dependencies"]) | {"duels"}
    owners = packages_distributions()
    return sorted(module for module, names in owners.items() if not {canonicalize_name(name) for name in names} & core)


def without_extras(script, folder, **variables):
    """Runs a script in a process that has the core's packages only."""
    refuse = REFUSE.format(names=modules_outside_the_core())
    environment = os.environ | {"PYTHONPATH": str(Path(duels.__file__).parents[1])} | variables
    return subprocess.run(
        [sys.executable, "-c", refuse + script], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_the_extras_are_outside_the_core():
    outside = modules_outside_the_core()
    heavy = {
        "altair",
        "vl_convert",
        "jinja2",
        "fastapi",
        "uvicorn",
        "nh3",
        "prometheus_client",
        "psycopg",
        "distributed",
    }
    assert heavy <= set(outside)
    assert not {"numpy", "numba", "polars", "sqlalchemy", "httpx2", "typer", "rich", "duels"} & set(outside)


def test_the_core_works_without_the_extras(tmp_path):
    done = without_extras(USE_THE_CORE, tmp_path)
    assert done.returncode == 0, done.stderr


def command(*arguments):
    return f"sys.argv = ['duels', *{list(arguments)!r}]\nfrom duels.cli import main\nmain()"


def test_the_command_line_works_without_the_extras(tmp_path):
    run = command("run", "arxiv-6", "-p", "rucb", "--horizon", "100", "--runs", "2")
    done = without_extras(run, tmp_path, NUMBA_DISABLE_JIT="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "arxiv-6" in done.stdout


@pytest.mark.parametrize(
    "arguments", [["experiment", "report", "experiment"], ["reproduce", "--quick"]], ids=lambda words: words[-2]
)
def test_a_missing_extra_is_one_line_that_says_what_to_install(arguments, tmp_path):
    """`tests/test_missing_extras.py` has the other commands."""
    duels.run_experiment(["cyclic-4"], ["random"], horizons=10, runs=1, out=tmp_path / "experiment")
    done = without_extras(command(*arguments), tmp_path, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 2, done.stderr
    assert re.fullmatch(r"duels: .*duels\[plots\].*\n", done.stderr), done.stderr


def test_all_has_every_extra_for_users():
    (everything,) = EXTRAS["all"]
    assert set(Requirement(everything).extras) == set(EXTRAS) - {"all", "test", "check", "docs"}


def test_the_version_has_one_source():
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)


def test_the_lock_pins_and_hashes_everything():
    lock = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    pins = [line for line in lock.splitlines() if line and line[0] != "#"]
    assert all(re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", pin) for pin in pins)
    locked = {canonicalize_name(pin.partition("==")[0]) for pin in pins}
    wanted = [*PROJECT["dependencies"], *(text for extra in EXTRAS.values() for text in extra)]
    assert {canonicalize_name(Requirement(text).name) for text in wanted} - {"duels"} <= locked
    assert "--require-hashes -r requirements.lock" in (ROOT / "Makefile").read_text()


def test_the_package_says_that_it_is_typed():
    assert (Path(duels.__file__).parent / "py.typed").is_file()


def interpreters():
    """Those of the classifiers that are installed here, by `pythonX.Y` or pyenv."""
    for text in PROJECT["classifiers"]:
        if found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text):
            pyenv = sorted(Path.home().glob(f".pyenv/versions/{found[1]}.*/bin/python"))
            yield pytest.param(str(pyenv[-1]) if pyenv else shutil.which(f"python{found[1]}"), id=found[1])


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("python", list(interpreters()))
def test_pip_install_brings_the_core(python, tmp_path):
    """A new environment per Python, with the newest versions that pip finds."""
    if python is None or subprocess.run([python, "--version"], capture_output=True).returncode != 0:
        pytest.skip("this Python is not installed here")
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    inside = tmp_path / "venv" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".git", ".venv*", "_build", "__pycache__"))
    install = [inside, "-m", "pip", "install", "-q", source]
    installed = subprocess.run(install, env=environment, capture_output=True, text=True)
    if "NewConnectionError" in installed.stderr or "No matching distribution" in installed.stderr:
        pytest.skip("there is no package index to install from")
    assert installed.returncode == 0, installed.stderr
    listed = subprocess.run(
        [inside, "-m", "pip", "list", "--format", "json"], env=environment, check=True, capture_output=True, text=True
    )
    names = {canonicalize_name(one["name"]) for one in json.loads(listed.stdout)}
    assert not names & {
        "altair",
        "vl-convert-python",
        "jinja2",
        "fastapi",
        "uvicorn",
        "psycopg",
        "distributed",
        "pandas",
    }
    done = subprocess.run([inside, "-c", USE_THE_CORE], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = subprocess.run([inside, "-m", "duels", "--version"], env=environment, capture_output=True, text=True)
    assert shown.stdout == f"duels {duels.__version__}\n"
