"""One exchange of ccxt is imported without the others, and nobody notices."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def run(program: str) -> None:
    """In a process of its own: what was imported here before would decide the outcome."""
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


def test_the_others_are_not_imported() -> None:
    run(
        """
        import sys
        from collector.clock import SystemClock
        from collector.exchanges.registry import open_exchange

        open_exchange("binance", None, urls={}, clock=SystemClock())
        assert "ccxt.async_support.binance" in sys.modules
        others = {"ccxt.binance", "ccxt.kraken", "ccxt.async_support.kraken"}
        assert not others & set(sys.modules), others & set(sys.modules)
        """
    )


def test_whoever_uses_ccxt_the_usual_way_finds_everything() -> None:
    run(
        """
        from collector.exchanges.ccxt.catalog import ccxt_class

        binance = ccxt_class("binance")
        import ccxt
        import ccxt.async_support

        assert ccxt.async_support.binance is binance
        assert ccxt.async_support.kraken.__name__ == "kraken"
        assert ccxt.binance.__name__ == "binance" and ccxt.binance is not binance
        assert "kraken" in ccxt.exchanges and "kraken" in ccxt.async_support.exchanges
        assert ccxt.__version__
        assert issubclass(ccxt.binance, ccxt.Exchange)
        assert issubclass(binance, ccxt.async_support.Exchange)
        """
    )


def test_ccxt_that_is_there_already_is_left_alone() -> None:
    run(
        """
        import ccxt.async_support
        from collector.exchanges.ccxt.catalog import ccxt_class

        assert ccxt_class("binance") is ccxt.async_support.binance
        assert type(ccxt).__name__ == "module"
        """
    )


def test_a_name_that_is_nowhere_is_an_attribute_error() -> None:
    run(
        """
        from collector.exchanges.ccxt.catalog import ccxt_class

        ccxt_class("binance")
        import ccxt

        assert not hasattr(ccxt, "no_such_exchange")
        """
    )
