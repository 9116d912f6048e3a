"""Conformance checks of the built-in policies take fewer runs in `make test` than in `make deep`."""

import pytest

from duels import testing


@pytest.fixture(autouse=True)
def fewer_runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arms that are not treated alike differ by dozens of standard errors in 3000 runs: a third of them tells."""
    if request.config.option.markexpr == "not deep":
        monkeypatch.setattr(testing, "RUNS", 1000)
