"""Every policy on continuous spaces has its page and its row; every function has its row."""

import re
from pathlib import Path

from duels.continuous import list_functions, load_policy
from duels.continuous.policies import BUILT_IN

DOCS = Path(__file__).parents[2] / "docs" / "continuous"


def test_every_policy_has_its_page_with_its_parameters():
    for name in BUILT_IN:
        text = (DOCS / f"{name}.md").read_text()
        listed = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", text, re.MULTILINE))
        assert {key: f"{value:g}" for key, value in load_policy(name).params._asdict().items()} == listed, name


def test_every_policy_and_function_has_its_row():
    text = (DOCS / "continuous.md").read_text()
    assert re.findall(r"^\| \[`(\w+)`\]\(\1\.md\) \|", text, re.MULTILINE) == list(BUILT_IN)
    table = text.partition("## Functions")[2]
    assert [name for name in list_functions() if f"`{name}`" not in table] == []
    assert [
        name for name in BUILT_IN if f"`{name}`" not in (DOCS.parents[1] / "benchmarks" / "continuous.md").read_text()
    ] == []
