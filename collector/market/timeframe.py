"""How long a bar is."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_FORM = re.compile(r"([1-9][0-9]{0,3})([smhdw])")
_EPOCH_MONDAY_MS = 4 * _UNIT_MS["d"]  # 1970-01-05: weekly bars open on Mondays.


@dataclass(frozen=True, slots=True, order=True)
class Timeframe:
    """A bar length such as 1m or 4h. Ordered by length; bars are aligned to UTC."""

    ms: int
    name: str

    @classmethod
    def parse(cls, name: str) -> Timeframe:
        """Accepts `1m`, and FXCM's spelling `m1`/`H1`. Raises ValueError for anything else."""
        text = name
        if re.fullmatch(r"[mHD][1-9][0-9]*", name):
            text = name[1:] + name[0].lower()
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(f"{name!r} is not a timeframe such as 1m, 15m, 1h or 1d")
        count, unit = match.groups()
        return cls(ms=int(count) * _UNIT_MS[unit], name=text)

    def floor(self, ts_ms: int) -> int:
        """The opening time of the bar that holds `ts_ms`."""
        return ts_ms - (ts_ms - self._origin) % self.ms

    def next_open(self, ts_ms: int) -> int:
        """The first opening time after `ts_ms`, which is also when the bar holding it closes."""
        return self.floor(ts_ms) + self.ms

    def aligned(self, ts_ms: int) -> bool:
        return self.floor(ts_ms) == ts_ms

    @property
    def _origin(self) -> int:
        return _EPOCH_MONDAY_MS if self.ms % _UNIT_MS["w"] == 0 else 0

    def __str__(self) -> str:
        return self.name
