"""Kinds of values that several requests share. None of them can be a query operator or a path."""

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from collector.market.timeframe import Timeframe
from collector.reader import epoch_ms

LATEST_MS = 2**52
LARGEST_COUNT = 2**31 - 1
LONGEST_PERIOD_MS = 366 * 86_400_000


class Body(BaseModel):
    """A request's body. Unknown fields and values of the wrong type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Asked(BaseModel):
    """A request's query. A misspelt filter must not pass as no filter."""

    model_config = ConfigDict(extra="forbid")


def moment_ms(value: object) -> int:
    """Epoch ms from epoch ms or ISO 8601. ValueError when it is neither, or out of range."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be epoch milliseconds or ISO 8601")
    try:
        moment = epoch_ms(value)
    except (ValueError, OverflowError):
        raise ValueError("must be epoch milliseconds or ISO 8601") from None
    if not 0 <= moment <= LATEST_MS:
        raise ValueError(f"must be between 1970 and {LATEST_MS} ms after it")
    return moment


def _canonical_timeframe(value: str) -> str:
    # Whether it exists is for the market to say; only its spelling is made one here.
    try:
        return Timeframe.parse(value).name
    except ValueError:
        return value


_MOMENT_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "maximum": LATEST_MS},
        {"type": "string", "format": "date-time"},
    ],
    "description": "Epoch milliseconds, or ISO 8601 (UTC unless it says otherwise)",
    "examples": ["2025-01-01T00:00:00Z", 1735689600000],
}

Moment = Annotated[int, BeforeValidator(moment_ms), WithJsonSchema(_MOMENT_SCHEMA)]
Count = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
Period = Annotated[int, Field(ge=1, le=LONGEST_PERIOD_MS)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00]*$")]
Symbol = Annotated[
    str,
    StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00]*$"),
    Field(examples=["BTC/USDT"]),
]
TimeframeName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=10, pattern=r"^[^\x00]*$"),
    AfterValidator(_canonical_timeframe),
    Field(examples=["1m", "1h"]),
]
ExchangeId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00]*$"),
    Field(examples=["simulated", "binance"]),
]
Notes = Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00]*$")]
Limit = Annotated[int, Field(ge=1, le=1000, description="How many items at most")]
ObjectIdCursor = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-f]{24}$"),
    Field(description="`next_cursor` of the page before"),
]
