"""The server's log: one line of JSON per event, or plain text on a terminal."""

import json
import logging
import sys
import warnings
from datetime import UTC, datetime


class Lines(logging.Formatter):
    """Formats a record as one line of JSON, with its `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        entry |= getattr(record, "fields", {})
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


class Words(logging.Formatter):
    """Formats a record for people."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        text = f"{datetime.now():%H:%M:%S} {record.getMessage()}"
        text += "".join(f" {key}={value}" for key, value in fields.items())
        return text + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")


def set_up(form: str, verbose: bool) -> None:
    """Send the log to standard error.

    Args:
        form: json or words.
        verbose: Whether to log requests with `words`; `json` always has them.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines() if form == "json" else Words())
    warnings.showwarning = _log_warning
    for name in ("duels", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("duels.server.access").setLevel(logging.INFO if verbose or form == "json" else logging.WARNING)


def _log_warning(message: object, *where: object, **more: object) -> None:
    logging.getLogger("duels.server").warning("%s", message)
