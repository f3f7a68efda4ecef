"""What `collector apply` makes of the settings file at first, and what a file may say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from collector.connectors.circuit.gate import DEFAULTS
from collector.connectors.registry import ConnectorRegistry
from collector.errors import ConfigError
from collector.jobs import types
from collector.jobs.queue import JobQueue
from collector.operations import connected_jobs
from collector.operations.applied_settings import apply_settings
from collector.settings import Settings, load
from collector.settings_sections import ExchangeSettings

if TYPE_CHECKING:
    from collector.mongo.client import Database

EXAMPLE = Path(__file__).parents[2] / "collector.example.yaml"


def configured(home: Path) -> Settings:
    return Settings(
        home=home,
        exchanges={
            "kraken": {
                "rate_limit": 7,
                "max_concurrent_jobs": 3,
                "circuit": {"circuit_window_sec": 60, "circuit_half_open_probe": 5},
            }
        },
        streams=[{"exchange": "bybit", "symbol": "BTC/USDT", "timeframe": "1m"}],
    )


async def test_an_exchange_gets_its_limits_and_its_gates_settings(
    database: Database, tmp_path: Path
) -> None:
    made = await apply_settings(database, configured(tmp_path))
    assert sorted(made.connectors_made) == ["bybit", "kraken"]
    limits = (await ConnectorRegistry(database).get("kraken")).limits
    assert (limits.rate_limit, limits.rate_limit_period_ms) == (7, 1_000)
    assert limits.max_concurrent_jobs == 3
    assert limits.circuit.circuit_window_sec == 60
    assert limits.circuit.circuit_half_open_probe == 5
    assert limits.circuit.circuit_min_closed_sec == DEFAULTS.circuit_min_closed_sec
    assert (await ConnectorRegistry(database).get("bybit")).limits.circuit == DEFAULTS


async def test_a_stream_becomes_jobs_and_the_second_time_nothing_is_new(
    database: Database, tmp_path: Path
) -> None:
    await apply_settings(database, configured(tmp_path))
    jobs = await JobQueue(database).find({"exchange_id": "bybit"}, limit=50)
    assert sorted(job.type for job in jobs) == sorted(
        ["ohlcv_incremental", "ohlcv_backfill", *types.duties()]
    )
    again = await apply_settings(database, configured(tmp_path))
    assert again.changes == []


async def test_live_prices_are_a_job_where_they_are_enabled(
    database: Database, tmp_path: Path
) -> None:
    path = tmp_path / "collector.yaml"
    path.write_text(
        "exchanges: {simulated: {price_stream: {enabled: true}}, "
        "kraken: {price_stream: {enabled: false}}}\n"
    )
    await apply_settings(database, load(path))
    (job,) = await JobQueue(database).find({"type": types.PRICE_STREAM.name})
    assert job.exchange_id == "simulated"
    gone, with_it = await connected_jobs.remove_connector(database, "simulated")
    assert (gone.status, with_it) == ("deleted", len(types.duties()) + 1)


@pytest.mark.parametrize(
    ("circuit", "complaint"),
    [
        ("{circuit_window_sec: 0}", "exchanges.kraken.circuit: .*circuit_window_sec must be at l"),
        ("{circuit_window_secs: 60}", "exchanges.kraken.circuit.circuit_window_secs"),
        ("{circuit_half_open_probe: many}", "exchanges.kraken.circuit.circuit_half_open_probe"),
    ],
)
def test_a_gate_that_makes_no_sense_is_told_with_its_place(
    tmp_path: Path, circuit: str, complaint: str
) -> None:
    path = tmp_path / "collector.yaml"
    path.write_text(f"exchanges: {{kraken: {{circuit: {circuit}}}}}\n")
    with pytest.raises(ConfigError, match=complaint):
        load(path)


def test_the_example_shows_the_gates_defaults() -> None:
    lines = EXAMPLE.read_text().splitlines()
    start = lines.index("#exchanges:")
    end = lines.index("", start)
    shown = yaml.safe_load("\n".join(line[1:] for line in lines[start:end]))["exchanges"]
    for given in shown.values():
        assert ExchangeSettings(**given).circuit == ExchangeSettings(circuit={}).circuit
