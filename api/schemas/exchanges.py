"""Exchanges as answers show them."""

from pydantic import BaseModel, Field


class ExchangeView(BaseModel):
    """An exchange that can be connected."""

    exchange_id: str = Field(description="ccxt's id")
    connected: bool = Field(description="Whether there is a connector")


class ExchangePage(BaseModel):
    """All of them by name: `next_cursor` is always null."""

    items: list[ExchangeView] = Field(description="By id")
    next_cursor: None = Field(default=None, description="Always null")
