"""Whether what the settings file names exists, as strictly as `collector add`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import ConfigError, InvalidInput
from collector.operations.connectors import check_exchange
from collector.operations.market_names import check_bars
from collector.operations.new_job import check_range

if TYPE_CHECKING:
    from collector.operations.market_names import MarketNames
    from collector.settings import Settings
    from collector.settings_sections import StreamSettings

_NAMES = {"exchange_id": "exchange"}
"""Fields of a stream that are called otherwise in the file."""


async def check_wish(settings: Settings, now_ms: int, names: MarketNames) -> list[str]:
    """Raises ConfigError with the place of each mistake.

    Returns notes on exchanges whose markets, and so whose symbols, are not known yet.
    """
    mistakes, unknown = await wish_mistakes(settings, now_ms, names)
    if mistakes:
        raise ConfigError("the settings file: " + "; ".join(mistakes))
    return [
        f"the markets of {exchange_id} are not known yet: its symbols are checked once they are"
        for exchange_id in unknown
    ]


async def wish_mistakes(
    settings: Settings, now_ms: int, names: MarketNames
) -> tuple[list[str], list[str]]:
    """The place of each mistake, and exchanges whose markets are not known yet."""
    mistakes: list[str] = []
    unknown: dict[str, None] = {}
    for exchange_id, given in settings.exchanges.items():
        try:
            check_exchange(exchange_id)
            symbols = given.price_stream.symbols
            if symbols and not await names.check_series(exchange_id, symbols, ()):
                unknown[exchange_id] = None
        except InvalidInput as error:
            mistakes.append(f"exchanges.{exchange_id}: {error}")
    for at, stream in enumerate(settings.streams):
        try:
            if not await _is_known(stream, now_ms, names):
                unknown[stream.exchange] = None
        except InvalidInput as error:
            place = f"streams.{at}.{_NAMES.get(error.field, error.field)}"
            mistakes.append(f"{place}: {error}")
    return mistakes, list(unknown)


async def _is_known(stream: StreamSettings, now_ms: int, names: MarketNames) -> bool:
    check_exchange(stream.exchange)
    check_range(stream.since, None, now_ms)
    await check_bars(stream.exchange)
    return await names.check_series(stream.exchange, [stream.symbol], [stream.timeframe])
