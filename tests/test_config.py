"""FXCM's settings: what holds when nothing is said, and what each key changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.backoff import Backoff
from collector.errors import ConfigError
from collector.exchanges.fxcm.backoff_settings import BackoffSettings
from collector.exchanges.fxcm.quota_settings import HistoryTarget, LoadThresholds, QuotaSettings
from collector.exchanges.fxcm.settings import FxcmSettings, FxcmStreamSettings
from collector.market.calendar.sessions import Override
from collector.settings import load

if TYPE_CHECKING:
    from pathlib import Path


def test_history_defaults() -> None:
    settings = QuotaSettings.of({})
    assert settings == QuotaSettings()
    assert (settings.max_calls_per_min, settings.max_calls_per_hour) == (120, 2400)
    assert settings.min_interval_by_tf == {"1m": 2.5, "5m": 7.0}
    assert settings.priority_targets == {
        *(HistoryTarget("XAUUSD", "1m"), HistoryTarget("XAUUSD", "5m")),
        *(HistoryTarget("EURUSD", "1m"), HistoryTarget("EURUSD", "5m")),
    }
    assert (settings.priority_reserve_per_min, settings.priority_reserve_per_hour) == (1, 12)
    assert settings.thresholds == LoadThresholds(0.45, 0.7, 0.7, 0.9)


def test_history_overrides() -> None:
    settings = QuotaSettings.of(
        {
            "history_max_calls_per_min": 30,
            "history_max_calls_per_hour": 300,
            "history_min_interval_seconds_m5": 9,
            "history_min_interval_seconds_m15": 20.5,
            "history_min_interval_seconds_H1": 60,
            "history_priority_targets": ["GBP/USD:m1", "USDJPY:5m"],
            "history_priority_reserve_per_min": 3,
            "history_priority_reserve_per_hour": 30,
            "history_load_thresholds": {"warn": 0.8, "critical": 7},
            "poll_seconds": 3,
        }
    )
    assert (settings.max_calls_per_min, settings.max_calls_per_hour) == (30, 300)
    assert settings.min_interval_by_tf == {"1m": 2.5, "5m": 9.0, "15m": 20.5, "1h": 60.0}
    assert settings.min_interval(HistoryTarget.of("EUR/USD", "H1")) == 60.0
    assert settings.min_interval(HistoryTarget.of("EUR/USD", "D1")) == 0.0
    assert settings.priority_targets == {
        HistoryTarget("GBPUSD", "1m"),
        HistoryTarget("USDJPY", "5m"),
    }
    assert (settings.priority_reserve_per_min, settings.priority_reserve_per_hour) == (3, 30)
    assert settings.thresholds == LoadThresholds(0.45, 0.8, 0.8, 1.0)


def test_targets_may_be_one_text_or_none() -> None:
    texts = QuotaSettings.of({"history_priority_targets": "XAU/USD:m1, EUR/USD:m5"})
    assert texts.priority_targets == {HistoryTarget("XAUUSD", "1m"), HistoryTarget("EURUSD", "5m")}
    assert QuotaSettings.of({"history_priority_targets": []}).priority_targets == frozenset()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("history_max_calls_per_min", 0),
        ("history_max_calls_per_min", "120"),
        ("history_max_calls_per_hour", 1.5),
        ("history_max_calls_per_hour", True),
        ("history_min_interval_seconds_m1", -1),
        ("history_min_interval_seconds_m1", float("nan")),
        ("history_priority_targets", ["XAUUSD"]),
        ("history_priority_targets", [":m1"]),
        ("history_priority_targets", [7]),
        ("history_priority_targets", 7),
        ("history_priority_reserve_per_min", -1),
        ("history_priority_reserve_per_min", 120),
        ("history_priority_reserve_per_hour", 2400),
        ("history_load_thresholds", {"warning": 0.5}),
        ("history_load_thresholds", 0.5),
        ("history_load_thresholds", {"warn": "high"}),
    ],
)
def test_a_history_setting_that_cannot_work_is_named(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=key):
        QuotaSettings.of({key: value})


def test_backoff_defaults() -> None:
    settings = BackoffSettings.of({})
    assert settings == BackoffSettings()
    assert settings.fxcm_history == Backoff(5, 180, 2.0, 0.15)
    assert settings.redis == Backoff(5, 60, 2.0, 0.15)


def test_backoff_overrides() -> None:
    settings = BackoffSettings.of(
        {"history_backoff": {"max_seconds": 300}, "redis_backoff": {"base_seconds": 1, "jitter": 0}}
    )
    assert settings.fxcm_history == Backoff(5, 300, 2.0, 0.15)
    assert settings.redis == Backoff(1, 60, 2.0, 0)


@pytest.mark.parametrize("key", ["history_backoff", "redis_backoff"])
@pytest.mark.parametrize(
    "value",
    [
        {"base_seconds": 0},
        {"base_seconds": 200},
        {"max_seconds": float("inf")},
        {"multiplier": 0.5},
        {"jitter": 1},
        {"jitter": "some"},
        {"base": 5},
        5,
    ],
)
def test_a_backoff_that_cannot_work_is_named(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=key):
        BackoffSettings.of({key: value})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(home: Path, text: str) -> FxcmSettings:
    (home / "collector.yaml").write_text(text, encoding="utf-8")
    settings = load().fxcm
    assert settings is not None
    return settings


def test_fxcm_defaults() -> None:
    settings = FxcmSettings()
    assert (settings.user, settings.password_ref) == (None, "secret://fxcm")
    assert settings.url == "http://www.fxcorporate.com/Hosts.jsp"
    assert (settings.connection, settings.overrides) == ("Demo", ())
    stream = settings.stream
    assert (stream.quota, stream.backoff) == (QuotaSettings(), BackoffSettings())
    assert (stream.poll_seconds_m1, stream.poll_seconds_m5) == (2.0, 3.0)
    assert (stream.price_snap_interval_seconds, stream.async_supervisor) == (3.0, True)


def test_without_a_section_there_is_none(home: Path) -> None:
    assert load().fxcm is None


OVERRIDES: dict[str, Any] = {
    "history_max_calls_per_min": 30,
    "history_max_calls_per_hour": 300,
    "history_min_interval_seconds_m1": 3.5,
    "history_min_interval_seconds_m5": 9.0,
    "history_priority_targets": ["GBP/USD:m1"],
    "history_priority_reserve_per_min": 3,
    "history_priority_reserve_per_hour": 30,
    "history_load_thresholds": LoadThresholds(0.1, 0.2, 0.3, 0.4),
    "history_backoff": Backoff(1, 10, 3.0, 0.1),
    "redis_backoff": Backoff(2, 20, 4.0, 0.2),
    "poll_seconds_m1": 4.0,
    "poll_seconds_m5": 5.0,
    "price_snap_interval_seconds": 5.0,
    "async_supervisor": False,
}
STREAM = """
  history_max_calls_per_min: 30
  history_max_calls_per_hour: 300
  history_min_interval_seconds_m1: 3.5
  history_min_interval_seconds_m5: 9
  history_priority_targets: ["GBP/USD:m1"]
  history_priority_reserve_per_min: 3
  history_priority_reserve_per_hour: 30
  history_load_thresholds: {min_interval: 0.1, warn: 0.2, reserve: 0.3, critical: 0.4}
  history_backoff: {base_seconds: 1, max_seconds: 10, multiplier: 3, jitter: 0.1}
  redis_backoff: {base_seconds: 2, max_seconds: 20, multiplier: 4, jitter: 0.2}
  poll_seconds_m1: 4
  poll_seconds_m5: 5
  price_snap_interval_seconds: 5
  async_supervisor: false
"""


def comparable(value: Any) -> Any:
    """A section as the record it is made of."""
    for record in (LoadThresholds, Backoff):
        if isinstance(value, record):
            names = record.__dataclass_fields__
            return record(**{name: getattr(value, name) for name in names})
    return value


@pytest.mark.parametrize("place", ["fxcm:\n stream:", "fxcm:\nstream:"])
def test_every_key_of_the_stream_can_be_set(home: Path, place: str) -> None:
    indent = " " if "\n " in place else ""
    text = place + STREAM.replace("\n", f"\n{indent}")
    stream = loaded(home, text).stream
    assert set(OVERRIDES) == set(FxcmStreamSettings.model_fields)
    for name, value in OVERRIDES.items():
        assert comparable(getattr(stream, name)) == value, name
        assert value != comparable(getattr(FxcmStreamSettings(), name)), name
    assert stream.quota.max_calls_per_min == 30
    assert stream.quota.min_interval_by_tf == {"1m": 3.5, "5m": 9.0}
    assert stream.quota.thresholds == LoadThresholds(0.1, 0.2, 0.3, 0.4)
    assert stream.backoff == BackoffSettings(Backoff(1, 10, 3.0, 0.1), Backoff(2, 20, 4.0, 0.2))


def test_every_key_can_be_set_in_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "USER": "D1",
        "PASSWORD_REF": "secret://fx/prod",
        "URL": "http://127.0.0.1:1/Hosts.jsp",
        "CONNECTION": "Real",
        "CALENDAR_OVERRIDES": '[{"start": "2026-12-24 13:00", "end": "2026-12-24 17:00"}]',
        "STREAM__HISTORY_MAX_CALLS_PER_MIN": "30",
        "STREAM__HISTORY_PRIORITY_TARGETS": "GBP/USD:m1, USDJPY:m5",
        "STREAM__HISTORY_MIN_INTERVAL_SECONDS_H1": "60",
        "STREAM__HISTORY_LOAD_THRESHOLDS__WARN": "0.8",
        "STREAM__REDIS_BACKOFF__BASE_SECONDS": "1",
        "STREAM__ASYNC_SUPERVISOR": "false",
    }.items():
        monkeypatch.setenv(f"COLLECTOR_FXCM__{name}", value)
    monkeypatch.setenv("COLLECTOR_FXCM_PYTHON", "python3.7")  # is no key of the section
    settings = load().fxcm
    assert settings is not None
    assert (settings.user, settings.connection) == ("D1", "Real")
    assert (settings.password_ref, settings.url) == (
        "secret://fx/prod",
        "http://127.0.0.1:1/Hosts.jsp",
    )
    assert settings.overrides == (Override("2026-12-24 13:00", "2026-12-24 17:00", False),)
    quota = settings.stream.quota
    assert quota.max_calls_per_min == 30
    assert quota.priority_targets == {HistoryTarget("GBPUSD", "1m"), HistoryTarget("USDJPY", "5m")}
    assert quota.min_interval_by_tf == {"1m": 2.5, "5m": 7.0, "1h": 60.0}
    assert quota.thresholds == LoadThresholds(0.45, 0.8, 0.8, 0.9)
    assert settings.stream.backoff.redis == Backoff(1, 60, 2.0, 0.15)
    assert not settings.stream.async_supervisor


def test_the_budget_may_stand_under_history_at_the_top(home: Path) -> None:
    quota = loaded(
        home,
        "fxcm: {user: D1}\n"
        "history:\n"
        "  max_calls_per_min: 20\n"
        "  max_calls_per_hour: 200\n"
        "  min_interval_by_tf: {1m: 5, m5: 9, 1h: 60}\n"
        "  priority_targets: [GBPUSD:1m]\n"
        "  priority_reserve_per_min: 2\n"
        "  priority_reserve_per_hour: 3\n"
        "  load_thresholds: {critical: 0.95}\n",
    ).stream.quota
    assert quota == QuotaSettings(
        20, 200, {"1m": 5.0, "5m": 9.0, "1h": 60.0},
        frozenset({HistoryTarget("GBPUSD", "1m")}), 2, 3,
        LoadThresholds(critical=0.95),
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "fxcm: {stream: {poll_seconds_m1: 3}}\nstream: {poll_seconds_m1: 4}",
        "fxcm: {stream: {history_max_calls_per_min: 3}}\nhistory: {max_calls_per_min: 4}",
        "fxcm:\nstream: {history_max_calls_per_min: 3}\nhistory: {max_calls_per_min: 4}",
    ],
)
def test_two_values_of_one_setting_are_refused(home: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="two values of one setting"):
        loaded(home, text)


def test_one_interval_under_two_names_is_refused(home: Path) -> None:
    text = "fxcm: {stream: {history_min_interval_seconds_m1: 3}}\n"
    with pytest.raises(ConfigError, match="are the same setting"):
        loaded(home, text + "history: {min_interval_by_tf: {1m: 4}}")
    same = loaded(home, text + "history: {min_interval_by_tf: {1m: 3}}")
    assert same.stream.quota.min_interval_by_tf == {"1m": 3.0, "5m": 7.0}


def test_other_keys_under_history_stay_where_they_are(home: Path) -> None:
    with pytest.raises(ConfigError, match="history"):
        loaded(home, "fxcm:\nhistory: {max_calls_per_min: 4, no_such_key: 1}")


def test_trade_history_keeps_its_own_keys_of_that_section(home: Path) -> None:
    text = "fxcm:\nhistory: {max_calls_per_min: 40, bucket_sec: 120}"
    assert loaded(home, text).stream.quota.max_calls_per_min == 40
    assert load().history.bucket_sec == 120


@pytest.mark.parametrize(
    "text", ["stream: {poll_seconds_m1: 4}", "history: {max_calls_per_min: 40}"]
)
def test_aliases_need_the_section(home: Path, text: str) -> None:
    (home / "collector.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=text.partition(":")[0]):
        load()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fxcm: {stream: {history_max_cals_per_min: 3}}", "history_max_cals_per_min"),
        ("fxcm: {stream: {history_max_calls_per_min: 0}}", "history_max_calls_per_min"),
        ("fxcm: {stream: {history_min_interval_seconds_x9: 1}}", "no timeframe"),
        ("fxcm: {stream: {history_min_interval_seconds_m15: soon}}", "has to be a number"),
        ("fxcm: {stream: {history_priority_reserve_per_min: 120}}", "reserve_per_min"),
        ("fxcm: {stream: {history_backoff: {max_seconds: 1}}}", "history_backoff"),
        ("fxcm: {stream: {redis_backoff: {base: 1}}}", "redis_backoff"),
        ("fxcm: {stream: {history_load_thresholds: {warning: 1}}}", "warning"),
        ("fxcm: {stream: {poll_seconds_m1: 1}}", "poll_seconds_m1"),
        ("fxcm: {stream: {price_snap_interval_seconds: 0}}", "price_snap_interval_seconds"),
        ("fxcm: {stream: 5}", "stream"),
        ("fxcm: 5", "fxcm"),
        ("fxcm: {password_ref: hunter2}", "must be a reference"),
        ("fxcm: {calendar_overrides: [{start: 2026-01-02 10:00, end: 2026-01-02 09}]}", "no time"),
        ("fxcm: {calendar_overrides: [{start: noon, end: 2026-01-02 09:00}]}", "noon"),
    ],
)  # fmt: skip
def test_a_section_that_cannot_work_is_refused(home: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        loaded(home, text)


def test_the_password_is_looked_up_where_its_reference_says(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLLECTOR_SECRETS_DIR", raising=False)
    (home / "secrets").mkdir()
    (home / "secrets" / "fxcm").touch(mode=0o600)
    (home / "secrets" / "fxcm").write_text("a:b c\n", encoding="utf-8")
    assert FxcmSettings().password(home) == "a:b c"
    monkeypatch.setenv("COLLECTOR_SECRET_FXCM", "other")
    assert FxcmSettings().password(home) == "other"
