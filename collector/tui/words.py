"""Short words for times, shares and trails. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.durations import DAY_MS, HOUR_MS, MINUTE_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 12) -> str:
    """The last values as blocks, from the least to the largest of them."""
    shown = list(values)[-width:]
    if not shown:
        return ""
    least, most = min(shown), max(shown)
    if most == least:
        return _BLOCKS[0] * len(shown)
    top = len(_BLOCKS) - 1
    return "".join(_BLOCKS[round((each - least) / (most - least) * top)] for each in shown)


def gauge(used: float, limit: float, width: int = 10) -> str:
    """A bar of how much of a limit is used."""
    share = 0.0 if limit <= 0 else min(1.0, max(0.0, used / limit))
    full = round(share * width)
    return "█" * full + "░" * (width - full)


def duration(ms: float) -> str:
    """`850 ms`, `45 s`, `3 m`, `2 h`, `5 d`: one unit, for a glance."""
    if ms < 0:
        return "0 s"
    if ms < 1_000:
        return f"{ms:.0f} ms"
    for size, unit in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "m")):
        if ms >= 2 * size:
            return f"{ms / size:.0f} {unit}"
    return f"{ms / 1_000:.0f} s"


def seconds(value: float | None) -> str | None:
    """To a tenth of a second."""
    return None if value is None else f"{value:.1f} s"


def price(value: float | None) -> str | None:
    """As many digits as a price has."""
    return None if value is None else f"{value:,.8g}"
