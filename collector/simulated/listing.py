"""What the simulated exchange lists, and since when."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from collector.durations import MINUTE_MS
from collector.simulated.noise import fraction


@dataclass(frozen=True, slots=True)
class SimulatedMarket:
    """One spot market. Bars exist for the minutes in [listed_ms, delisted_ms) outside `away`.

    Prices are whole ticks of 10**-price_digits, volumes whole lots of 10**-volume_digits.
    `swing` is how far a minute moves, `turnover` what a usual minute trades in the quote currency.
    `away` are the stretches between a delisting and the next listing. A `hidden` market is not in
    the list at all while it is delisted. `code` is the exchange's own name of a market that has
    been renamed since.
    """

    base: str
    quote: str
    listed_ms: int
    price: float
    price_digits: int = 2
    volume_digits: int = 2
    swing: float = 0.0008
    turnover: float = 50_000.0
    delisted_ms: int | None = None
    away: tuple[tuple[int, int], ...] = ()
    hidden: bool = False
    code: str | None = None

    def __post_init__(self) -> None:
        ends = [moment for stretch in self.away for moment in stretch]
        for moment in (self.listed_ms, self.delisted_ms or 0, *ends):
            if moment < 0 or moment % MINUTE_MS:
                raise ValueError(f"{self.symbol}: {moment} is not the start of a minute")

    @property
    def id(self) -> str:
        """As the exchange spells it: BTCUSDT."""
        return self.code or self.base + self.quote

    @property
    def symbol(self) -> str:
        """As ccxt spells it: BTC/USDT."""
        return f"{self.base}/{self.quote}"

    @property
    def moments(self) -> tuple[int, ...]:
        """When its entry in the list changes."""
        ends = tuple(moment for stretch in self.away for moment in stretch)
        return (self.listed_ms, *ends, *(() if self.delisted_ms is None else (self.delisted_ms,)))

    def trading(self, now_ms: int) -> bool:
        if any(start <= now_ms < end for start, end in self.away):
            return False
        return self.delisted_ms is None or now_ms < self.delisted_ms

    def gone(self, now_ms: int) -> bool:
        """Whether the exchange denies that there ever was such a market."""
        return self.hidden and not self.trading(now_ms)


def _at(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp()) * 1000  # type: ignore[arg-type, misc]


WELL_KNOWN = (
    SimulatedMarket("BTC", "USDT", _at(2017, 8, 17, 4), 42_000.0, 2, 5, 0.0005, 900_000.0),
    SimulatedMarket("ETH", "USDT", _at(2017, 8, 17, 4), 2_300.0, 2, 4, 0.0006, 500_000.0),
    SimulatedMarket("SOL", "USDT", _at(2020, 8, 11, 6), 100.0, 2, 3, 0.0009, 200_000.0),
    SimulatedMarket("XRP", "USDT", _at(2018, 5, 4, 8, 11), 0.55, 4, 0, 0.0008, 150_000.0),
    SimulatedMarket("LINK", "USDT", _at(2019, 1, 16, 10), 15.0, 3, 2, 0.0008, 60_000.0),
)


def listings(
    count: int = len(WELL_KNOWN), listed_ms: int | None = None
) -> tuple[SimulatedMarket, ...]:
    """The well-known five first, then SIM00001/USDT and so on, `count` in all.

    `listed_ms` gives every one of them the same listing date.
    """
    made_up = (_made_up(number) for number in range(1, count - len(WELL_KNOWN) + 1))
    chosen = (*WELL_KNOWN[:count], *made_up)
    if listed_ms is None:
        return chosen
    return tuple(replace(listing, listed_ms=listed_ms) for listing in chosen)


def _made_up(number: int) -> SimulatedMarket:
    """A small market listed at some minute of 2021 to 2023."""
    name = f"SIM{number:05d}"
    age = int(fraction("listed", name) * 3 * 365 * 1440)
    return SimulatedMarket(
        base=name,
        quote="USDT",
        listed_ms=_at(2021, 1, 1) + age * MINUTE_MS,
        price=round(0.5 + fraction("price", name) * 200, 2),
        price_digits=3,
    )
