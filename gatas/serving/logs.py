"""Logs as JSON lines: what happened, when and for how long; never what a request or a response holds."""

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

LOGGER = logging.getLogger("gatas.serving")
UVICORN = logging.getLogger("uvicorn.error")


class JsonFormatter(logging.Formatter):
    """Writes one JSON object per line. An error is logged by type and place: its text might hold what a client sent."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname.lower(), "event": record.getMessage(), **getattr(record, "fields", {})}
        if record.exc_info and record.exc_info[1] is not None:
            line.update(describe_error(record.exc_info[1]))
        return json.dumps(line, ensure_ascii=False)


def describe_error(error: BaseException) -> dict[str, Any]:
    """Return the type of an error and the lines of code that led to it."""
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": type(error).__name__, "where": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]}


def log(event: str, *, level: int = logging.INFO, error: BaseException | None = None, **fields: Any) -> None:
    """Write one line."""
    LOGGER.log(level, event, extra={"fields": fields}, exc_info=error)


def log_to(stream: TextIO) -> None:
    """Write all lines to a stream from now on."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    for logger, level in ((LOGGER, logging.INFO), (UVICORN, logging.WARNING)):
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
