"""Without an extra, its features say in one line what to install, and everything else works."""

import os
import subprocess
import sys

import pytest

from duels.errors import DuelsError, MissingExtra, needs_extra

EXTRAS = {
    "server": ["fastapi", "starlette", "uvicorn", "httptools", "markdown_it", "nh3", "prometheus_client"],
    "plots": ["altair", "vl_convert", "jinja2"],
    "postgres": ["psycopg"],
    "dask": ["dask", "distributed"],
}
WITHOUT = "import sys\nfor name in {names}: sys.modules[name] = None\nfrom duels.cli import main\nmain()"


def duels_without(extra, *arguments, cwd):
    """Run `duels` in a process that cannot import the packages of an extra."""
    script = WITHOUT.format(names=EXTRAS[extra])
    command, interpreted = [sys.executable, "-c", script, *arguments], os.environ | {"NUMBA_DISABLE_JIT": "1"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=interpreted)


@pytest.mark.parametrize(
    ("extra", "command", "message"),
    [
        ("server", ["serve", "sqlite:///d.db"], "`duels serve` needs uvicorn: pip install 'duels[server]'"),
        ("plots", ["experiment", "plot", "arxiv-6"], "drawing figures needs altair: pip install 'duels[plots]'"),
        (
            "postgres",
            ["study", "list", "--storage", "postgresql://x@localhost/y"],
            "PostgreSQL needs psycopg: pip install 'duels[postgres]'",
        ),
        (
            "dask",
            ["run", "arxiv-6", "--horizon", "10", "--runs", "1", "--dask", "tcp://127.0.0.1:9"],
            "running on a cluster needs distributed: pip install 'duels[dask]'",
        ),
    ],
)
def test_a_missing_extra_is_one_line(tmp_path, extra, command, message):
    done = duels_without(extra, *command, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"duels: {message}\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("server", ["token", "create", "me"]),
        ("plots", ["race", "cyclic-4", "--horizon", "10", "--runs", "1", "-p", "random", "--no-check"]),
    ],
)
def test_commands_that_do_without_it(tmp_path, extra, command):
    done = duels_without(extra, *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_error_is_one_of_ours_and_an_import_error():
    with pytest.raises(MissingExtra) as found, needs_extra("dask", "this"):
        import no_such_package.part  # noqa: F401
    assert str(found.value) == "this needs no_such_package: pip install 'duels[dask]'"
    assert found.value.extra == "dask"
    assert isinstance(found.value, DuelsError)
    assert isinstance(found.value, ImportError)


def test_a_bug_in_an_import_is_not_a_missing_extra():
    with pytest.raises(ModuleNotFoundError) as found, needs_extra("dask", "this"):
        import duels.no_such_module  # noqa: F401
    assert not isinstance(found.value, MissingExtra)
