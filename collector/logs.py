"""Structured logs: one line an event, its facts as fields. Text on a terminal, JSON elsewhere."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Literal

import structlog

from collector.text import printable, shortened

if TYPE_CHECKING:
    from structlog.types import EventDict, WrappedLogger

Format = Literal["auto", "text", "json"]

LONGEST_VALUE = 2_000
LONGEST_TRACEBACK = 20_000


def configure(level: str = "INFO", form: Format = "auto") -> None:
    """Sends structlog and the standard library's loggers to stderr in one format."""
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    as_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    renderer: structlog.types.Processor = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer()
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _cleaned,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # The driver repeats every heartbeat failure; mongo.client logs once what matters.
    logging.getLogger("pymongo").setLevel(logging.CRITICAL)


def _cleaned(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Every value as text of one line and of bounded length; only a traceback keeps its lines."""
    traceback = event.pop("exception", None)
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = shortened(printable(value), LONGEST_VALUE)
    if traceback is not None:
        lines = shortened(traceback, LONGEST_TRACEBACK).split("\n")
        event["exception"] = "\n".join(map(printable, lines))
    return event


def get(name: str) -> structlog.stdlib.BoundLogger:
    """A logger that takes facts as keyword arguments."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger
