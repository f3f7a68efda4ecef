"""How long to wait after the n-th failure in a row. Pure: the caller brings the randomness."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential growth with a ceiling and a spread, the same for jobs, FXCM and Redis."""

    base_seconds: float = 5.0
    max_seconds: float = 180.0
    multiplier: float = 2.0
    jitter: float = 0.15

    def delay(self, failures: int, spread: float) -> float:
        """Seconds to wait after `failures` failures in a row.

        `spread` is a number in [0, 1): 0.5 gives the middle, the ends give +-jitter.
        The result never passes `max_seconds`, whatever the spread.
        """
        if failures <= 0:
            return 0.0
        # An exponent of a few hundred overflows a float; the ceiling is reached long before.
        grown = self.base_seconds * self.multiplier ** min(failures - 1, 64)
        spreaded = min(grown, self.max_seconds) * (1 + self.jitter * (2 * spread - 1))
        return min(spreaded, self.max_seconds)
