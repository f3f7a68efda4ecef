"""The report of a connector with spacing: when it warns, and what it shows first."""

from __future__ import annotations

from typing import Any

import pytest

from collector.connectors.connector import Connector
from collector.connectors.history_budget import history_budget
from collector.exchanges.quirks.spacing import Spacing

NOW_MS = 1_800_000_000_000


def shown(used: int, **budget: Any) -> dict[str, Any]:
    """With so many of ten calls a minute."""
    document = {
        "exchange_id": "x",
        "rate_limit": 10,
        "rate_limit_period_ms": 60_000,
        "spacing": Spacing().to_document(),
        "limiter": {"windows": [{"t": NOW_MS, "cur": used, "bins": []}]},
        "budget": budget,
    }
    found = history_budget(Connector.from_document(document), NOW_MS)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("used", "state"), [(10, "critical"), (9, "critical"), (8, "warn"), (7, "warn"), (6, "ok")]
)
def test_after_a_refusal_by_a_quota_the_load_says_how_bad_it_is(used: int, state: str) -> None:
    assert shown(used, quota_denied_at=NOW_MS - 59_999)["throttle_state"] == state
    assert shown(used, quota_denied_at=NOW_MS - 60_000)["throttle_state"] == "ok"
    assert shown(used, last_denied_reason="min_interval")["throttle_state"] == "ok"


def test_the_ten_series_with_the_most_skipped_polls_come_first() -> None:
    skipped = {
        f"FX{number:02}:1m": {
            "symbol": f"FX{number:02}",
            "tf": "1m",
            "count": number // 2,
            "last_reason": "min_interval",
            "by_reason": {"min_interval": number // 2},
        }
        for number in range(2, 20)
    }
    polls = shown(0, skipped=skipped)["skipped_polls"]
    assert [each["symbol"] for each in polls] == [
        *("FX18", "FX19", "FX16", "FX17", "FX14", "FX15", "FX12", "FX13", "FX10", "FX11")
    ]


def test_a_connector_without_spacing_has_no_such_budget() -> None:
    document = {"exchange_id": "x", "rate_limit": 10, "rate_limit_period_ms": 60_000}
    assert history_budget(Connector.from_document(document), NOW_MS) is None
