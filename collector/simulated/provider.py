"""The simulated exchange, for demos and tests: a ccxt class of our own, behind ccxt's adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.exchanges.ccxt.provider import CcxtProvider

if TYPE_CHECKING:
    from collector.exchanges.ccxt.exchange import CcxtExchange


class SimulatedProvider(CcxtProvider):
    """One exchange, on this machine."""

    def ids(self) -> frozenset[str]:
        return frozenset({"simulated"})

    def adapter(self) -> type[CcxtExchange]:
        from collector.simulated.adapter import SimulatedAdapter

        return SimulatedAdapter


PROVIDER = SimulatedProvider()
