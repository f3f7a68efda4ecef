"""What is used of an exchange's windows, as answers show it."""

from typing import Literal, Self

from pydantic import BaseModel, Field

from collector.connectors.connector import Connector


class BudgetView(BaseModel):
    """One window: at most `limit` of `unit` in any `period_ms`."""

    unit: Literal["requests", "weight"] = Field(description="What is counted")
    limit: int = Field(description="The most of it")
    period_ms: int = Field(description="In this time")
    used: int = Field(description="How much of it is used now")
    resets_at: int | None = Field(
        description="Epoch ms at which all of what is used is free again; null when nothing is"
    )

    @classmethod
    def all_of(cls, connector: Connector, now_ms: int) -> list[Self]:
        """The fullest first: it is the one that limits."""
        found = [
            cls(
                unit=window.unit,
                limit=window.limit,
                period_ms=window.period_ms,
                used=usage.used,
                resets_at=max((at for at, _ in usage.drains), default=None),
            )
            for window, usage in zip(connector.all_windows, connector.usages(now_ms), strict=True)
        ]
        return sorted(found, key=lambda each: -each.used / each.limit)
