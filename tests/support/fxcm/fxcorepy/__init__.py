"""A stand-in for `forexconnect/lib/fxcorepy`, the native part of FXCM's SDK.

The SDK's own Python runs above it unchanged. It talks to `tests.support.fxcm.server` instead of
FXCM's servers. Standard library only; runs on Python 3.7 and on ours. Names, numbers, texts and the
order of callbacks are those of forexconnect 1.6.43, as far as they can be seen without an account;
`tests/contract/test_fxcm_honesty.py` compares both where a Python 3.7 is found.
"""

import os

from .enums import (
    Constants,
    O2GCandleOpenPriceMode,
    O2GRequestParamsEnum,
    O2GResponseType,
    O2GTableManagerMode,
    O2GTableManagerStatus,
    O2GTableStatus,
    O2GTableType,
    O2GTableUpdateType,
    O2GTimeFrameUnit,
)
from .listeners import (
    AO2GEachRowListener,
    AO2GResponseListener,
    AO2GSessionStatus,
    AO2GTableListener,
    AO2GTableManagerListener,
)
from .orders import O2GRequest, O2GRequestFactory, O2GResponse
from .price_history import O2GTimeFrame, PriceHistoryCommunicatorFactory
from .session import O2GSession, O2GTransport
from .tables import O2GRow, O2GTable, O2GTableManager

__all__ = [
    "AO2GEachRowListener",
    "AO2GResponseListener",
    "AO2GSessionStatus",
    "AO2GTableListener",
    "AO2GTableManagerListener",
    "Constants",
    "O2GAccountRow",
    "O2GCandleOpenPriceMode",
    "O2GGenericTableResponseReader",
    "O2GLoginRules",
    "O2GOfferRow",
    "O2GRequest",
    "O2GRequestFactory",
    "O2GRequestParamsEnum",
    "O2GResponse",
    "O2GResponseType",
    "O2GRow",
    "O2GSession",
    "O2GTable",
    "O2GTableManager",
    "O2GTableManagerMode",
    "O2GTableManagerStatus",
    "O2GTableStatus",
    "O2GTableType",
    "O2GTableUpdateType",
    "O2GTimeFrame",
    "O2GTimeFrameUnit",
    "O2GTradeTableRow",
    "O2GTransport",
    "PriceHistoryCommunicatorFactory",
]


class O2GAccountRow(O2GRow):
    """Named in the SDK's annotations, as the four below."""


class O2GOfferRow(O2GRow):
    pass


class O2GTradeTableRow(O2GRow):
    pass


class O2GGenericTableResponseReader:
    pass


class O2GLoginRules:
    pass


# The native library prints. A line like this one would be taken for an answer.
if __name__ == "forexconnect.lib.fxcorepy":
    os.write(1, b'{"id": 1, "result": "printed by the SDK"}\nno newline at the end')
