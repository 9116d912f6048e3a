"""What tests of studies share: a database and a clock."""

import pytest

from duels.study import log


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/duels.db"


@pytest.fixture
def now(monkeypatch):
    """A clock that stands still until it is moved."""
    time = [1_000_000.0]
    monkeypatch.setattr(log, "clock", lambda: time[0])
    return time


@pytest.fixture
def no_repeats(monkeypatch):
    """No question is drawn to be asked of the same judge again, for tests that count how often each one is asked."""
    monkeypatch.setattr("duels.study.run.is_drawn", lambda seed, duel: False)
