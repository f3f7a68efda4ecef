"""One parser for moments, whoever writes them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

from collector.market.moment import epoch_ms
from tests.support.bars import T0

NEXT = T0 + 86_400_000
"""2024-01-02."""


@pytest.mark.parametrize(
    ("moment", "ms"),
    [
        (T0, T0),
        (np.int64(T0), T0),
        (float(T0), T0),
        (str(T0), T0),
        (T0 // 1000, T0),
        (str(T0 // 1000), T0),
        (T0 / 1000 + 0.25, T0 + 250),
        (np.float64(T0 / 1000), T0),
        (20240102, NEXT),
        ("20240102", NEXT),
        ("2024-01-02", NEXT),
        (" 2024-01-02 ", NEXT),
        ("20240102T01", NEXT + 3_600_000),
        ("2024-01-01T00:00:00Z", T0),
        ("2024-01-01T00:00:00.123", T0 + 123),
        ("2024-01-01 02:00+02:00", T0),
        (date(2024, 1, 1), T0),
        (datetime(2024, 1, 1), T0),
        (datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), T0),
        (datetime(2024, 1, 1, tzinfo=UTC), T0),
        (pd.Timestamp("2024-01-01"), T0),
        (pd.Timestamp("2024-01-01 02:00", tz="Europe/Berlin"), T0 + 3_600_000),
        (np.datetime64("2024-01-02"), NEXT),
        (np.datetime64("2024"), T0),
        (np.datetime64("2024-01-01T00:00:00.123456789"), T0 + 123),
        (915_148_800_000, 915_148_800_000),
        (0, 0),
        ("1970-01-01", 0),
    ],
)
def test_a_moment_can_be_written_in_many_ways(moment: Any, ms: int) -> None:
    assert epoch_ms(moment) == ms


@pytest.mark.parametrize(
    "moment",
    [
        5,
        1_735_689,
        20241301,
        "20240230",
        17_040_672_000,
        T0 * 1000,
        T0 * 1_000_000,
        -1,
        -T0,
        20240102.5,
        0.5,
        float("nan"),
        float("inf"),
        True,
        None,
        "",
        "yesterday",
        "2024",
        "9" * 5000,
        "1735689600000x",
        np.datetime64("NaT"),
        pd.NaT,
        {},
    ],
)
def test_what_is_no_moment_is_refused_with_the_forms_that_are(moment: Any) -> None:
    with pytest.raises(ValueError, match=r"is no moment: write 2025-01-01, .*13 digits"):
        epoch_ms(moment)


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "1969-12-31", 19691231])
def test_moments_are_between_1970_and_9999(moment: Any) -> None:
    with pytest.raises(ValueError, match="is not between 1970 and 9999"):
        epoch_ms(moment)
