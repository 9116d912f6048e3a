import os
from collections.abc import Callable
from pathlib import Path

import pytest

SHARED_DATA = Path(os.environ.get("DUELS_DATA") or Path(__file__).parents[2] / "shared" / "data")


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """`shared_data("matrices/arxiv-6.csv")`: the path of public data kept outside the repository."""

    def find(name: str) -> Path:
        path = SHARED_DATA / name
        if not path.exists():
            pytest.skip(f"{path} is absent; point DUELS_DATA at the shared data to run this test")
        return path

    return find
