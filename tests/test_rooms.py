"""Data flows one way: a file imports only from the rooms listed above it."""

import ast
from pathlib import Path

import duels

SOURCE = Path(duels.__file__).parent
# In this order; a folder is one room, whose files may import one another.
ROOMS = [
    "errors",
    "checks",
    "specs",
    "files",
    "judges",
    "orders",
    "preference",
    "estimated",
    "problems",
    "regrets",
    "theory",
    "policies",
    "engine",
    "rankers",
    "testing",
    "provenance",
    "results",
    "simulation",
    "figures",
    "experiments",
    "paper",
    "votes",
    "rating",
    "storage",
    "study",
    "continuous",
    "kinds",
    "client",
    "server",
    "cli",
    "__main__",
]


def room(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_rooms(path):
    """The rooms of this package that a file imports from, inside functions too."""
    package = path.relative_to(SOURCE).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            names = [node.module] if node.module else [alias.name for alias in node.names]
            for name in names:
                yield room_of((*base, *name.split("."))[0])
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("duels."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.module == "duels":
            yield from (room_of(alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            yield from (name[1] if name[1:] else "duels" for name in names if name[0] == "duels")


def room_of(name):
    """The room of a name that the package itself has, such as `simulate`; a room's own name is its room."""
    return duels._HOMES.get(name, name).partition(".")[0]


def test_every_file_has_a_room():
    assert {room(path) for path in SOURCE.rglob("*.py")} - {"__init__"} == set(ROOMS)


def test_imports_go_one_way():
    for path in SOURCE.rglob("*.py"):
        here = room(path)
        if here == "__init__":
            continue
        for used in imported_rooms(path):
            assert used != "duels", f"{path.name} imports all of duels: import from its rooms, as in from ..errors"
            if used in ROOMS and used != here:
                assert ROOMS.index(used) < ROOMS.index(here), f"{path.name} imports {used}, which is below it"


def test_imports_are_found_wherever_they_hide(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    (tmp_path / "policies").mkdir()
    hidden = tmp_path / "policies" / "x.py"
    hidden.write_text("from .. import loop\nfrom ..results import Results\n\ndef f():\n    import duels.cli\n")
    assert list(imported_rooms(hidden)) == ["loop", "results", "cli"]
    (tmp_path / "y.py").write_text("from .policies.kernels import choose\nfrom duels.theory import c\n")
    assert list(imported_rooms(tmp_path / "y.py")) == ["policies", "theory"]
    (tmp_path / "z.py").write_text(
        "import duels, duels.cli\nfrom duels import InvalidInput, run_experiment\nfrom . import load_matrix\n"
    )
    assert list(imported_rooms(tmp_path / "z.py")) == ["duels", "cli", "errors", "experiments", "problems"]


def test_files_stay_small():
    """A file past 700 lines is probably two."""
    for path in SOURCE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 700, path
