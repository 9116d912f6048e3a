"""What tests of tuning studies share: a database and a clock."""

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
