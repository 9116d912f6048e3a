import os
from collections.abc import Callable
from pathlib import Path

import pytest

SHARED_DATA = Path(os.environ.get("DUELS_DATA") or Path(__file__).parents[2] / "shared" / "data")


@pytest.fixture(autouse=True, scope="session")
def cache_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests leave nothing in the user's cache, and find nothing there."""
    os.environ["DUELS_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """`shared_data("matrices/arxiv-6.csv")`: the path of public data kept outside the repository."""

    def find(name: str) -> Path:
        path = SHARED_DATA / name
        if not path.exists():
            pytest.skip(f"{path} is absent; point DUELS_DATA at the shared data to run this test")
        return path

    return find
