"""Every venue that has quirks, as it is spoken to."""

from tests.support.dialects.binance import BINANCE, BINANCECOINM, BINANCEUS, BINANCEUSDM
from tests.support.dialects.bitfinex import BITFINEX
from tests.support.dialects.bitget import BITGET
from tests.support.dialects.bitstamp import BITSTAMP
from tests.support.dialects.bybit import BYBIT, BYBITEU
from tests.support.dialects.coinbase import COINBASE
from tests.support.dialects.dialect import Dialect
from tests.support.dialects.gate import GATE, GATEEU
from tests.support.dialects.gemini import GEMINI
from tests.support.dialects.htx import HTX
from tests.support.dialects.hyperliquid import HYPERLIQUID
from tests.support.dialects.kraken import KRAKEN
from tests.support.dialects.kucoin import KUCOIN, KUCOINFUTURES
from tests.support.dialects.mexc import MEXC
from tests.support.dialects.okx import MYOKX, OKX, OKXUS
from tests.support.dialects.upbit import UPBIT

_ALL = (
    BINANCE,
    BINANCEUSDM,
    BINANCECOINM,
    BINANCEUS,
    BITFINEX,
    BITGET,
    BITSTAMP,
    BYBIT,
    BYBITEU,
    COINBASE,
    GATE,
    GATEEU,
    GEMINI,
    HTX,
    HYPERLIQUID,
    KRAKEN,
    KUCOIN,
    KUCOINFUTURES,
    MEXC,
    MYOKX,
    OKX,
    OKXUS,
    UPBIT,
)
DIALECTS: dict[str, Dialect] = {dialect.exchange_id: dialect for dialect in _ALL}
