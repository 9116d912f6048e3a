"""docs/server/api.md is true: its commands are run against a live server, in one shell and in order."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from duels.server.app import create_app

PAGE = Path(__file__).parents[2] / "docs" / "server" / "api.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "--- what came of block"
ANY = "…"


def steps(text):
    """Each bash block with the block that follows it at once: (commands, kind, expected)."""
    blocks = list(BLOCK.finditer(text))
    found = []
    for block, after in zip(blocks, [*blocks[1:], None]):
        if block[1] == "bash":
            follows = after is not None and after.start() == block.end() + 1 and after[1] in ("json", "text")
            found.append((block[2], after[1] if follows else None, after[2] if follows else ""))
    return found


def run(commands, environment, folder):
    """What each command block prints."""
    script = "".join(f"{one}\nprintf '\\n{MARK}\\n'\n" for one in commands)
    done = subprocess.run(
        ["bash", "-c", script],
        env=os.environ | environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return done.stdout.split(MARK)[:-1]


def documents(text):
    """The JSON values that stand one after another in a text."""
    decoder, found, rest = json.JSONDecoder(), [], text.strip()
    while rest:
        value, end = decoder.raw_decode(rest)
        found.append(value)
        rest = rest[end:].strip()
    return found


def agrees(said, got):
    """Equal, where … in a text stands for anything, as does a value that is only …"""
    if said == ANY:
        return True
    if isinstance(said, str) and ANY in said:
        pattern = ".*".join(map(re.escape, said.split(ANY)))
        return isinstance(got, str) and re.fullmatch(pattern, got, re.DOTALL) is not None
    if isinstance(said, dict) and isinstance(got, dict):
        return list(said) == list(got) and all(agrees(said[key], got[key]) for key in said)
    if isinstance(said, list) and isinstance(got, list):
        return len(said) == len(got) and all(map(agrees, said, got))
    if isinstance(said, bool) or isinstance(got, bool):
        return said is got
    if isinstance(said, float) and isinstance(got, float):
        return said == pytest.approx(got, rel=1e-9)  # the last digits are the machine's
    return type(said) is type(got) and said == got


def test_every_answer_is_as_the_page_says(serve, tmp_path):
    live = serve()
    page = steps(PAGE.read_text())
    assert len(page) > 20
    folder = tmp_path / "shell"
    folder.mkdir()
    printed = run([one[0] for one in page], {"DUELS_URL": live.url, "DUELS_TOKEN": live.token}, folder)
    assert len(printed) == len(page)
    for (commands, kind, said), got in zip(page, printed):
        where = f"{commands}\nprinted:\n{got}"
        if kind == "json":
            assert agrees(documents(said), documents(got)), where
        elif kind == "text":
            assert agrees(said.strip(), got.strip()), where
        else:
            assert not got.strip(), where


def test_the_comparison_can_fail():
    assert steps("```bash\ncurl x\n```\n```json\n{}\n```\n\n```bash\ncurl y\n```\n\nwords\n\n```json\n1\n```\n") == [
        ("curl x\n", "json", "{}\n"),
        ("curl y\n", None, ""),
    ]
    assert documents('{"a": 1}\n\n[2]') == [{"a": 1}, [2]]
    assert agrees({"a": ANY, "b": ["x…z", 0.1]}, {"a": None, "b": ["xyz", 0.1 + 1e-12]})
    for said, got in [({"a": 1}, {"a": 2}), ({"a": 1}, {"a": 1, "b": 2}), ([1], [1, 1]), ("x…", "yx"), (1, True)]:
        assert not agrees(said, got)


def test_every_address_is_on_the_page(storage):
    text = PAGE.read_text()
    for path, methods in create_app(storage).fastapi.openapi()["paths"].items():
        for method in methods:
            address = f"`{method.upper()} {path.replace('/api/studies/{study}', 'S')}`"
            assert address in text, address
