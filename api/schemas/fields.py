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

from collector.market.moment import epoch_ms
from collector.market.timeframe import Timeframe
from collector.operations.connector_change import LARGEST_COUNT, LONGEST_PERIOD_MS

_DATE_DIGITS = 8


class Body(BaseModel):
    """A request's body. Unknown fields and values of the wrong type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class QueryFields(BaseModel):
    """A request's query. A misspelt filter must not pass as no filter."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class View(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(use_attribute_docstrings=True)


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""Lets 60000.0 pass as 60000: JSON has one kind of number, and some programs write it so."""


def moment_ms(value: object) -> int:
    """Epoch ms from whatever `collector.market.moment` understands. ValueError else."""
    if not isinstance(value, int | float | str):
        raise ValueError("must be a number or text")
    return epoch_ms(value)


def _body_moment_ms(value: object) -> int:
    # A number in a body is a number. As text only a date may be digits alone.
    if isinstance(value, str) and value.strip().isdigit() and len(value.strip()) != _DATE_DIGITS:
        raise ValueError("must be ISO 8601, or epoch milliseconds as a number, not as text")
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("must be a whole number of epoch milliseconds or seconds")
    return moment_ms(value)


def _canonical_timeframe(value: str) -> str:
    # The market decides whether it exists; only its spelling is normalised here.
    try:
        return Timeframe.parse(value).name
    except ValueError:
        return value


_FROM_1970 = r"^(19[7-9]|[2-9]\d)\d"
_MOMENT_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "integer", "minimum": 10**11, "maximum": 10**13 - 1},
        {"type": "integer", "minimum": 10**9, "maximum": 10**10 - 1},
        {"type": "integer", "enum": [0]},
        {"type": "string", "format": "date-time", "pattern": _FROM_1970},
        {"type": "string", "format": "date", "pattern": _FROM_1970},
    ],
    "description": "Epoch milliseconds (12 or 13 digits), epoch seconds (10 digits), or ISO 8601"
    " (UTC unless it has an offset, also as 20250101); from 1970 on",
    "examples": ["2025-01-01T00:00:00Z", 1735689600000],
}

Moment = Annotated[int, BeforeValidator(moment_ms), WithJsonSchema(_MOMENT_SCHEMA)]
"""Of a query, where a number is text like everything else."""
BodyMoment = Annotated[int, BeforeValidator(_body_moment_ms), WithJsonSchema(_MOMENT_SCHEMA)]
Count = Annotated[int, Field(ge=1, le=LARGEST_COUNT), WHOLE]
Period = Annotated[int, Field(ge=1, le=LONGEST_PERIOD_MS), WHOLE]
Name = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00]*$")]
Symbol = Annotated[
    str,
    StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00]*$"),
    Field(description="The market's symbol, as ccxt writes it", examples=["BTC/USDT"]),
]
TimeframeName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=10, pattern=r"^[^\x00]*$"),
    AfterValidator(_canonical_timeframe),
    Field(description="The length of a bar", examples=["1m", "1h"]),
]
ExchangeId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00]*$"),
    Field(description="The exchange, by ccxt's id", examples=["simulated", "binance"]),
]
Notes = Annotated[
    str,
    StringConstraints(max_length=2000, pattern=r"^[^\x00]*$"),
    Field(description="A word for colleagues"),
]
SearchText = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00]*$")]
Limit = Annotated[int, Field(ge=1, le=1000, description="How many items at most")]
ObjectIdText = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{24}$")]
ObjectIdCursor = Annotated[
    ObjectIdText,
    Field(description="`next_cursor` of the page before"),
]
