"""What a study shows a user, and that no code asks which kind a study is."""

import re
from pathlib import Path

import pytest

import duels
from duels.continuous.tuning.study import TuningStudy
from duels.study.study import Study

SOURCE = Path(duels.__file__).parent
PLUMBING = {"id", "row", "storage", "read", "history", "current", "look", "prepare", "write"}
KIND = re.compile(r"isinstance\(.*\b(Event|Tuning)?Study\b|is_tuning")


@pytest.mark.parametrize(("kind", "most"), [(Study, 34), (TuningStudy, 30)])
def test_a_study_has_few_public_names(kind, most):
    names = {name for name in dir(kind) if not name.startswith("_")}
    assert len(names) <= most, sorted(names)
    assert not names & PLUMBING


def test_no_code_asks_which_kind_a_study_is():
    """What differs between kinds is a method, a generic function, or a table by `StudyRow.kind`."""
    found = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in SOURCE.rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if KIND.search(line)
    ]
    assert found == []
