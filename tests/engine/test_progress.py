"""What is being done is shown on a terminal, and nowhere else."""

import io

import pytest

from duels.engine.progress import compute_each, show_working


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
    with show_working("reading [b]votes[/b].csv", shown):
        pass
    assert ("reading [b]votes[/b].csv" in screen.getvalue()) == seen
    assert bool(screen.getvalue()) == seen


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_a_bar_shows_progress_while_each_part_is_computed_on_a_terminal_only(monkeypatch, kind):
    screen, seen = kind(), []
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    for k, found in enumerate(compute_each([lambda k=k: k for k in range(4)], "describing p")):
        assert found == k
        seen.append(screen.getvalue())
        screen.truncate(0)
    assert all(("describing p" in text) == (kind is Terminal) for text in seen)
    assert ("75%" in seen[3]) == (kind is Terminal)
