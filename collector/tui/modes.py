"""The modes by their keys, and the figures whose trails they show. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.tui.views.backoff import backoff
from collector.tui.views.exchanges import exchanges, usage_trail
from collector.tui.views.history_budget import history_budget
from collector.tui.views.jobs import RUNNING_TRAIL, jobs, running
from collector.tui.views.lag import lag, lag_trail, lags, worst
from collector.tui.views.prices import mid_trail, prices
from collector.tui.views.workers import workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.tui.fleet_picture import FleetPicture
    from collector.tui.sheet import Sheet


@dataclass(frozen=True, slots=True)
class ViewMode:
    key: str
    name: str
    view: Callable[[FleetPicture], Sheet]


MODES = (
    ViewMode("1", "exchanges", exchanges),
    ViewMode("2", "jobs", jobs),
    ViewMode("3", "workers", workers),
    ViewMode("4", "lag", lag),
    ViewMode("5", "price", prices),
    ViewMode("6", "history", history_budget),
    ViewMode("7", "back-off", backoff),
)
BY_KEY = {mode.key: mode for mode in MODES}


def figures(picture: FleetPicture) -> dict[str, float]:
    """What is sampled for sparklines."""
    found: dict[str, float] = {RUNNING_TRAIL: running(picture)}
    for name, connector in picture.connectors.items():
        found[usage_trail(name)] = connector.get("rate_limit_usage") or 0
    for (exchange_id, timeframe), each in worst(lags(picture)).items():
        found[lag_trail(exchange_id, timeframe)] = each.bars
    for (exchange_id, symbol), known in picture.prices.items():
        found[mid_trail(exchange_id, symbol)] = known["payload"].get("mid") or 0.0
    return found
