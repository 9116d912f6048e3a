"""What tests of studies share."""

import pytest


@pytest.fixture
def no_repeats(monkeypatch):
    """No question is drawn to be asked of the same judge again, for tests that count how often each one is asked."""
    monkeypatch.setattr("duels.study.judging.run.is_drawn", lambda seed, duel: False)


@pytest.fixture
def short_pauses(monkeypatch):
    """A judge that failed is called again at once."""
    monkeypatch.setattr("duels.judges.retries.FIRST", 0.001)
