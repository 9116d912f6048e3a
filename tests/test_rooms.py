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

# Within a room, in the same way: what is imported when a file is, at its top.
PARTS = {
    "study": [
        "stats",
        "state",
        "duels",
        "base",
        "invitations",
        "items",
        "answering",
        "event_study",
        "voter_settings",
        "answers",
        "voters",
        "arm_log",
        "impressions",
        "allocation",
        "study",
        "analysis",
        "plan",
        "create",
        "link_voting",
        "judging",
    ],
    "continuous": ["blas", "spaces", "functions", "model", "policies", "simulation", "tuning"],
}


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


def imported_files():
    """The modules that each module imports at its top, so that Python needs them first."""
    files = {name_of(path): path for path in SOURCE.rglob("*.py")}
    found = {name: set() for name in files}
    for name, path in files.items():
        package = name if path.stem == "__init__" else name.rpartition(".")[0]
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.level:
                base = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], node.module or ""])
                base = base.rstrip(".")
                names = [f"{base}.{alias.name}" for alias in node.names]
                found[name] |= {one if one in files else base for one in names} - {name}
    return found


def name_of(path):
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def test_no_file_needs_itself():
    """Files that import one another can only be read together."""
    needed, done = imported_files(), set()
    while ready := [name for name in needed if name not in done and needed[name] & set(needed) <= done]:
        done |= set(ready)
    assert sorted(set(needed) - done) == []


def test_parts_of_a_room_go_one_way():
    for name, uses in imported_files().items():
        _, here, *rest = [*name.split("."), "", ""]
        if here not in PARTS or not rest[0]:
            continue
        parts = PARTS[here]
        for used in uses:
            other = used.split(".")
            if other[1] == here and other[2:] and other[2] != rest[0]:
                assert parts.index(other[2]) < parts.index(rest[0]), f"{name} imports {used}, which is below it"


def test_every_part_has_its_place():
    for here, parts in PARTS.items():
        assert {path.relative_to(SOURCE / here).with_suffix("").parts[0] for path in (SOURCE / here).rglob("*.py")} == {
            "__init__",
            *parts,
        }


def test_no_folder_is_crowded():
    """A stranger reads twenty names; the policies are a list of papers."""
    for folder in {path.parent for path in SOURCE.rglob("*.py")} - {SOURCE / "policies"}:
        assert len(list(folder.glob("*.py"))) <= 21, folder  # with __init__.py
