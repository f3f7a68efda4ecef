"""Reads an exported catalog with Nautilus's own reader and backtests on it. Run by its Python."""

import json
import sys
from decimal import Decimal

from nautilus_trader.backtest.engine import BacktestEngine, BacktestEngineConfig
from nautilus_trader.config import LoggingConfig
from nautilus_trader.examples.strategies.ema_cross import EMACross, EMACrossConfig
from nautilus_trader.model.currencies import USDT
from nautilus_trader.model.data import BarType
from nautilus_trader.model.enums import AccountType, OmsType
from nautilus_trader.model.identifiers import InstrumentId, Symbol, Venue
from nautilus_trader.model.instruments import CurrencyPair
from nautilus_trader.model.objects import Currency, Money, Price, Quantity
from nautilus_trader.persistence.catalog import ParquetDataCatalog

catalog, name = sys.argv[1:]
bar_type = BarType.from_str(name)
bars = ParquetDataCatalog(catalog).bars(bar_types=[name])


def digits(number):
    """As the exchange spelt it, without noughts behind it."""
    return str(number.as_decimal().normalize() + Decimal(0))


price, size = bars[0].open.precision, bars[0].volume.precision
instrument = CurrencyPair(
    instrument_id=bar_type.instrument_id,
    raw_symbol=Symbol("BTCUSDT"),
    base_currency=Currency.from_str("BTC"),
    quote_currency=USDT,
    price_precision=price,
    size_precision=size,
    price_increment=Price(10**-price, price),
    size_increment=Quantity(10**-size, size),
    ts_event=0,
    ts_init=0,
)
engine = BacktestEngine(BacktestEngineConfig(logging=LoggingConfig(log_level="ERROR")))
engine.add_venue(
    venue=Venue("BINANCE"),
    oms_type=OmsType.NETTING,
    account_type=AccountType.CASH,
    base_currency=None,
    starting_balances=[Money(1_000_000, USDT), Money(10, Currency.from_str("BTC"))],
)
engine.add_instrument(instrument)
engine.add_data(bars)
engine.add_strategy(
    EMACross(
        EMACrossConfig(
            instrument_id=InstrumentId.from_str("BTCUSDT.BINANCE"),
            bar_type=bar_type,
            trade_size=Decimal("0.1"),
            fast_ema_period=10,
            slow_ema_period=30,
        )
    )
)
engine.run()
orders = engine.cache.orders_total_count()
facts = {
    "rows": len(bars),
    "orders": orders,
    "bars": [
        [
            bar.ts_event,
            *(digits(each) for each in (bar.open, bar.high, bar.low, bar.close, bar.volume)),
        ]
        for bar in bars
    ],
}
with open("nautilus.json", "w") as out:
    json.dump(facts, out)
engine.dispose()
