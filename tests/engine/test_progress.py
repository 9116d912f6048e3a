"""What is being done is shown on a terminal, and nowhere else."""

import io

import pytest

from duels.engine.progress import working


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("kind", "shown", "seen"), [(Terminal, True, True), (Terminal, False, False), (io.StringIO, True, False)]
)
def test_work_is_shown_on_a_terminal_only(monkeypatch, kind, shown, seen):
    screen = kind()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with working("reading [b]votes[/b].csv", shown):
        pass
    assert ("reading [b]votes[/b].csv" in screen.getvalue()) == seen
    assert bool(screen.getvalue()) == seen
