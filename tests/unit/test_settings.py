"""What a settings file may contain, and what is refused while it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.errors import ConfigError
from collector.settings import load
from collector.settings_sections import ExchangeSettings

if TYPE_CHECKING:
    from pathlib import Path

SPECIFIED = """
api:
  adapter: bybit
  base_url: "https://api.bybit.com"
  read_only_keys_ref: "secret://bybit/{{ env }}/read_key"
  timeout_s: 10
  max_retries: 5
  max_concurrent: 2
  page_size: 1000
storage:
  base_dir: "/data"
  compression: "zstd"
  tail_days: 14
resample:
  tfs: ["5m", "15m", "1h"]
  strict_gaps: true
quality:
  max_gap_pct: 0.0001    # 0.01%
gap_recovery_days: 8
sanity_check_samples: 201
logging:
  level: INFO
"""
"""Section 11 of the datalayer specification as it is printed there: two keys of `quality` stand at
the top level. Their figures are changed here, so that they differ from the defaults."""


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.delenv("COLLECTOR_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


def written(tmp_path: Path, text: str) -> None:
    (tmp_path / "collector.yaml").write_text(text, encoding="utf-8")


def test_the_specified_settings_are_accepted_as_they_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, SPECIFIED)
    settings = load()
    assert settings.data_root == "/data"
    assert settings.addresses == {"bybit": "https://api.bybit.com"}
    assert (settings.api.timeout_ms, settings.api.page_sizes) == (10_000, {"bybit": 1000})
    assert settings.quality.gap_recovery_days == 8
    assert settings.quality.sanity_check_samples == 201
    monkeypatch.setenv("COLLECTOR_DATA", "elsewhere")
    monkeypatch.setenv("COLLECTOR_API__PAGE_SIZE", "500")
    monkeypatch.setenv("COLLECTOR_EXCHANGE_URLS", '{"bybit": "http://127.0.0.1:1"}')
    monkeypatch.setenv("COLLECTOR_QUALITY__GAP_RECOVERY_DAYS", "9")
    settings = load()
    assert settings.data_root == "elsewhere"
    assert settings.addresses == {"bybit": "http://127.0.0.1:1"}
    assert settings.api.page_sizes == {"bybit": 500}
    assert settings.quality.gap_recovery_days == 9
    assert settings.quality.sanity_check_samples == 201


def test_one_setting_with_two_values_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "gap_recovery_days: 7\nquality: {gap_recovery_days: 7}\n")
    assert load().quality.gap_recovery_days == 7
    written(tmp_path, "gap_recovery_days: 7\nquality: {gap_recovery_days: 8}\n")
    with pytest.raises(ConfigError, match=r"gap_recovery_days: 7 and quality\.gap_rec"):
        load()


@pytest.mark.parametrize("name", ["30s", "90s", "1m"])
def test_a_timeframe_that_minutes_cannot_make_is_refused_when_settings_are_read(
    tmp_path: Path, name: str
) -> None:
    written(tmp_path, f'resample: {{tfs: ["5m", "{name}"]}}\n')
    with pytest.raises(ConfigError, match=f"resample.tfs: .*{name} bars cannot be made of 1m bars"):
        load()


def test_timeframes_that_minutes_make_are_accepted(tmp_path: Path) -> None:
    written(tmp_path, 'resample: {tfs: ["7m", "H1", "1d", "1w"]}\n')
    assert load().resample.tfs == ["7m", "1h", "1d", "1w"]


@pytest.mark.parametrize("since", ["2024-01-02", "20240102", "1704153600", "1704153600000"])
def test_a_stream_begins_at_the_moment_that_is_meant(tmp_path: Path, since: str) -> None:
    stream = f"{{exchange: binance, symbol: BTC/USDT, timeframe: 1m, since: {since}}}"
    written(tmp_path, f"streams: [{stream}]\n")
    assert load().streams[0].since_ms == 1_704_153_600_000


def test_a_moment_that_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    stream = "{exchange: binance, symbol: BTC/USDT, timeframe: 1m, since: 2024}"
    written(tmp_path, f"streams: [{stream}]\n")
    with pytest.raises(ConfigError, match=r"streams\.0\.since: .*2024 is no moment"):
        load()


def test_the_seconds_between_snapshots_are_those_that_somebody_gave(tmp_path: Path) -> None:
    file = tmp_path / "collector.yaml"
    file.write_text(
        """
exchanges:
  binance: {price_stream: {enabled: true, price_snap_interval_seconds: 5}}
  bybit: {price_stream: {enabled: true}}
  fxcm: {price_stream: {enabled: true}}
fxcm: {stream: {price_snap_interval_seconds: 4}}
"""
    )
    loaded = load(file)
    assert loaded.snap_intervals == {"binance": 5.0, "fxcm": 4.0}
    assert loaded.exchanges["bybit"].price_stream.price_snap_interval_seconds == 3.0
    assert not ExchangeSettings().price_stream.enabled


@pytest.mark.parametrize("address", ["10.0.0.7:6379", "http://127.0.0.1", "user:secret@host"])
def test_an_address_that_is_no_redis_is_refused_without_showing_it(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTOR_REDIS_URL", address)
    with pytest.raises(ConfigError, match="redis://") as refused:
        load()
    assert address not in str(refused.value)
