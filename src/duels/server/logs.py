"""The server's log: a line of JSON for each event, or plain words on a terminal."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any


class Lines(logging.Formatter):
    """A record as one line of JSON, with what its `fields` say."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        said |= getattr(record, "fields", {})
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False, default=str)


class Words(logging.Formatter):
    """A record for people."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        said = f"{datetime.now():%H:%M:%S} {record.getMessage()}"
        said += "".join(f" {key}={value}" for key, value in fields.items())
        return said + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")


def set_up(form: str, verbose: bool) -> None:
    """Send the log to standard error. Requests are logged unless people would read it, or if they want to."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines() if form == "json" else Words())
    for name in ("duels", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("duels.server.access").setLevel(logging.INFO if verbose or form == "json" else logging.WARNING)
