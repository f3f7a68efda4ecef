"""Times as users write them: what `collector.market.moment` reads, or a span such as 30d."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from collector.durations import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, WEEK_MS
from collector.errors import InvalidInput
from collector.market.moment import EARLIEST_MS, LATEST_MS, epoch_ms

if TYPE_CHECKING:
    from collector.market.moment import Moment

SPAN_MS = {"s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": WEEK_MS}
_SPAN = re.compile(r"([0-9]{1,6})([smhdw])")


def moment_ms(moment: Moment, now_ms: int, span: Literal["ago", "ahead"] = "ago") -> int:
    """A moment as `collector.market.moment` reads it, or a span such as `30d` ago or ahead.

    Raises InvalidInput for anything else.
    """
    match = _SPAN.fullmatch(moment) if isinstance(moment, str) else None
    if match is None:
        try:
            return epoch_ms(moment)
        except ValueError as error:
            raise InvalidInput("moment", "bad_moment", f"{error}; or a span such as 30d") from None
    length = int(match[1]) * SPAN_MS[match[2]]
    found = now_ms - length if span == "ago" else now_ms + length
    if not EARLIEST_MS <= found <= LATEST_MS:
        message = f"{moment!r} is not between 1970 and 9999"
        raise InvalidInput("moment", "bad_moment", message)
    return found
