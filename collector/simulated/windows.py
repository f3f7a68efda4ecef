"""Was a rate limit kept? Judged over every window, not only those that begin on the clock.

A window is half open: two requests exactly `period_ms` apart never share one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Times = Sequence[float] | npt.NDArray[np.float64]


def sliding_violations(times: Times, limit: int, period_ms: float) -> int:
    """How many requests came when `limit` others had come less than `period_ms` before.

    `times` are arrivals in milliseconds, in any order. Zero means that no window of that length,
    wherever it begins, ever held more than `limit` requests.
    """
    if limit < 1:
        return len(times)
    arrivals = np.sort(np.asarray(times, dtype=np.float64))
    if len(arrivals) <= limit:
        return 0
    return int(np.count_nonzero(arrivals[limit:] - arrivals[:-limit] < period_ms))


def max_in_window(times: Times, period_ms: float) -> int:
    """The most requests that any window of `period_ms` held."""
    arrivals = np.sort(np.asarray(times, dtype=np.float64))
    # Counted as `sliding_violations` compares, by difference: adding the period could round.
    busiest, first = 0, 0
    moments = arrivals.tolist()
    for index, moment in enumerate(moments):
        while moment - moments[first] >= period_ms:
            first += 1
        busiest = max(busiest, index - first + 1)
    return busiest
