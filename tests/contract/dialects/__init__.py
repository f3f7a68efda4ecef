"""Every venue that has quirks, as it is spoken to."""

from tests.contract.dialects.binance import BINANCE, BINANCECOINM, BINANCEUSDM
from tests.contract.dialects.bitfinex import BITFINEX
from tests.contract.dialects.bitget import BITGET
from tests.contract.dialects.bitstamp import BITSTAMP
from tests.contract.dialects.bybit import BYBIT
from tests.contract.dialects.coinbase import COINBASE
from tests.contract.dialects.dialect import Dialect
from tests.contract.dialects.gate import GATE
from tests.contract.dialects.htx import HTX
from tests.contract.dialects.kraken import KRAKEN
from tests.contract.dialects.kucoin import KUCOIN
from tests.contract.dialects.mexc import MEXC
from tests.contract.dialects.okx import OKX

_ALL = (
    BINANCE,
    BINANCEUSDM,
    BINANCECOINM,
    BITFINEX,
    BITGET,
    BITSTAMP,
    BYBIT,
    COINBASE,
    GATE,
    HTX,
    KRAKEN,
    KUCOIN,
    MEXC,
    OKX,
)
DIALECTS: dict[str, Dialect] = {dialect.exchange_id: dialect for dialect in _ALL}
