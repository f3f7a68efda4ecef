"""Collector: market data from exchanges into a verified lake.

The public names are here. Each is imported on first use: the command line shows its help without
pandas, and a worker runs without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from collector.version import __version__

if TYPE_CHECKING:
    from collector.datalayer import (
        DataReader,
        TradeReader,
        backfill,
        missing_report,
        resample,
        validate,
    )
    from collector.errors import CollectorError

__all__ = [
    "CollectorError",
    "DataReader",
    "TradeReader",
    "__version__",
    "backfill",
    "missing_report",
    "resample",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = "collector.errors" if name == "CollectorError" else "collector.datalayer"
    return getattr(import_module(place), name)
