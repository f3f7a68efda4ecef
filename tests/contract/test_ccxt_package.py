"""ccxt in a process that uses few of its exchanges, and none of its synchronous half."""

from __future__ import annotations

import subprocess
import sys

from collector.version import __version__
from tests.support.processes import ROOT

PROGRAM = """
import sys
from collector.exchanges.ccxt.package import hold_back_exchanges
hold_back_exchanges()
from ccxt.async_support.binance import binance
print(sorted({"requests", "ccxt.async_support.kraken"} & set(sys.modules)))
print(binance().userAgent)
import requests
print(requests.Session().headers["User-Agent"].partition("/")[0])
"""


def test_neither_requests_nor_other_exchanges_are_loaded_and_both_can_be_used_later() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:3] == ["[]", f"collector/{__version__}", "python-requests"]
