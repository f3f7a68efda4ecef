"""Which inputs of an event are trades: the payout check and the cross-net policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from collector import logs

if TYPE_CHECKING:
    from collector.clock import Clock
    from collector.history.event import CanonicalTrade, Input
    from collector.history.pair import Pair

log = logs.get("collector.history")

_QUIET_S = 60.0


class CrossNet(StrEnum):
    """What becomes of trades between two nets."""

    REJECT = "reject"
    WARN = "warn"


class Outcome(StrEnum):
    """What became of one input, or of a whole event that was refused."""

    ADDED = "added"
    ADDED_CROSS_NET = "added_cross_net"
    DELETED = "deleted"
    DUPLICATE = "duplicate"
    UNMATCHED = "unmatched"
    """A deletion of a trade that does not stand."""
    NO_PAYOUT = "no_payout"
    NOT_EXECUTED = "not_executed"
    CROSS_NET = "cross_net"
    REFUSED = "refused"


def outcome_of(given: Input, trade: CanonicalTrade, policy: CrossNet) -> Outcome:
    """Whether an added input is a trade that counts."""
    if given.payout == 0:
        return Outcome.NO_PAYOUT
    if given.executed == 0:
        return Outcome.NOT_EXECUTED
    if not trade.pair.is_cross_net:
        return Outcome.ADDED
    return Outcome.ADDED_CROSS_NET if policy is CrossNet.WARN else Outcome.CROSS_NET


@dataclass
class CrossNetWarnings:
    """A line in the log for cross-net trades that count, once a pair and minute."""

    network: str
    clock: Clock
    _warned: dict[Pair, float] = field(default_factory=dict)

    def warn(self, trade: CanonicalTrade) -> None:
        now = self.clock.monotonic()
        if now - self._warned.get(trade.pair, float("-inf")) < _QUIET_S:
            return
        self._warned = {pair: at for pair, at in self._warned.items() if now - at < _QUIET_S}
        self._warned[trade.pair] = now
        log.warning("history_cross_net_trade", network=self.network, pair=str(trade.pair))
