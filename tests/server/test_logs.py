"""The server's log."""

import io
import json
import logging
import sys
import warnings

from duels.server import serving


def test_warnings_are_lines_of_the_log(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    known = {name: logging.getLogger(name) for name in ("duels", "uvicorn", "duels.server.access")}
    before = {name: (one.handlers, one.propagate, one.level) for name, one in known.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        serving.set_up("json", False)
        try:
            warnings.warn("study 'a' may never end", stacklevel=1)
        finally:
            for name, one in known.items():
                one.handlers, one.propagate, level = before[name]
                one.setLevel(level)
    (line,) = map(json.loads, out.getvalue().splitlines())
    assert (line["level"], line["event"]) == ("warning", "study 'a' may never end")
