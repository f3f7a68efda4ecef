"""FXCM's connector and the section `fxcm` of the settings: whose word counts when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.connectors.registry import ConnectorRegistry
from collector.connectors.window import Window
from collector.durations import HOUR_MS
from collector.exchanges.fxcm.limits import spacing
from collector.exchanges.fxcm.quota_settings import QuotaSettings
from collector.operations import connectors
from collector.operations.applied_settings import apply_settings
from collector.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from collector.connectors.connector import Limits
    from collector.mongo.client import Database


def configured(home: Path, stream: dict[str, Any], **other: Any) -> Settings:
    return Settings(home=home, fxcm={"user": "D1", "stream": stream}, **other)


async def applied(database: Database, settings: Settings) -> Limits:
    await apply_settings(database, settings)
    return (await ConnectorRegistry(database).get("fxcm")).limits


async def test_without_a_section_the_defaults_hold(database: Database) -> None:
    limits = (await connectors.ensure(database, "fxcm")).connector.limits
    assert (limits.rate_limit, limits.rate_limit_period_ms) == (120, 60_000)
    assert limits.windows == (Window("requests", 2400, HOUR_MS, 288),)
    assert (limits.priority_reserve, limits.reserve_threshold) == (8, 0.7)
    assert limits.spacing == spacing(QuotaSettings())


async def test_the_section_makes_the_connector_with_its_budget(
    database: Database, tmp_path: Path
) -> None:
    stream = {
        "history_max_calls_per_min": 30,
        "history_priority_reserve_per_min": 11,
        "history_min_interval_seconds_m15": 20,
        "history_load_thresholds": {"min_interval": 0.2, "reserve": 0.8},
    }
    limits = await applied(database, configured(tmp_path, stream))
    assert (limits.rate_limit, limits.priority_reserve) == (30, 11)
    assert limits.reserve_threshold == 0.8
    assert limits.spacing is not None
    assert limits.spacing.intervals_ms == {"1m": 2_500, "5m": 7_000, "15m": 20_000}
    assert limits.spacing.threshold == 0.2


async def test_a_connector_follows_the_section_when_that_has_changed(
    database: Database, tmp_path: Path
) -> None:
    await connectors.ensure(database, "fxcm")  # made before there was a section
    first = configured(tmp_path, {"history_max_calls_per_min": 30})
    assert (await applied(database, first)).rate_limit == 30
    second = configured(tmp_path, {"history_min_interval_seconds_m1": 9})
    limits = await applied(database, second)
    assert limits.rate_limit == 120
    assert limits.spacing is not None
    assert limits.spacing.intervals_ms["1m"] == 9_000


async def test_what_the_section_names_wins_and_what_it_does_not_stays(
    database: Database, tmp_path: Path
) -> None:
    settings = configured(tmp_path, {"history_max_calls_per_min": 30})
    await applied(database, settings)
    changed = {"rate_limit": 7, "reserve_threshold": 0.5}
    await ConnectorRegistry(database).change_limits("fxcm", changed)
    limits = await applied(database, settings)
    assert (limits.rate_limit, limits.reserve_threshold) == (30, 0.5)


async def test_figures_of_the_connector_itself_win_over_the_section(
    database: Database, tmp_path: Path
) -> None:
    settings = configured(
        tmp_path,
        {"history_max_calls_per_min": 30, "history_max_calls_per_hour": 300},
        exchanges={"fxcm": {"rate_limit": 9, "max_concurrent_jobs": 2}},
    )
    for _ in range(2):
        limits = await applied(database, settings)
        assert (limits.rate_limit, limits.max_concurrent_jobs) == (9, 2)
        assert limits.windows[0].limit == 300
