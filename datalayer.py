"""The data layer's public functions, by the name their users import them under."""

from collector.datalayer import (
    DataReader,
    TradeReader,
    backfill,
    missing_report,
    resample,
    validate,
)

__all__ = ["DataReader", "TradeReader", "backfill", "missing_report", "resample", "validate"]
