"""`collector config check`: every mistake, and every value with where it comes from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from collector.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    return tmp_path


def checked(capsys: pytest.CaptureFixture[str], code: int = 0) -> Any:
    assert run(["config", "check", "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_each_value_says_where_it_comes_from(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "worker: {concurrency: 5, poll_seconds: 3}\nexchanges: {binance: {rate_limit: 9}}\n"
    (home / "collector.yaml").write_text(text + "gap_recovery_days: 3\n", "utf-8")
    monkeypatch.setenv("COLLECTOR_WORKER__CONCURRENCY", "16")
    found = checked(capsys)
    values = {each["name"]: (each["value"], each["from"]) for each in found["settings"]}
    assert values["worker.concurrency"] == ("16", "COLLECTOR_WORKER__CONCURRENCY")
    assert values["worker.poll_seconds"] == ("3.0", "collector.yaml")
    assert values["exchanges.binance.rate_limit"] == ("9", "collector.yaml")
    assert values["quality.gap_recovery_days"] == ("3", "collector.yaml")
    assert values["server.port"] == ("8000", "default")
    assert values["home"] == (str(home), "COLLECTOR_HOME")
    assert (found["file"], found["mistakes"]) == ("collector.yaml", [])


def test_every_mistake_is_named_at_once(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "collector.yaml").write_text(
        "exchanges: {binnance: {rate_limit: 5}}\n"
        "server: {host: 0.0.0.0}\n"
        "streams:\n"
        "  - {exchange: binance, symbol: BTC/USDT, timeframe: 1m, since: 2099-01-01}\n"
        "  - {exchange: binance, symbol: 1h, timeframe: 1m}\n"
        "  - {exchange: binance, symbol: ETH/USDT, timeframe: 7m}\n",
        "utf-8",
    )
    monkeypatch.setenv("COLLECTOR_WROKER__CONCURRENCY", "5")
    found = checked(capsys, 8)["mistakes"]
    wanted = [
        "COLLECTOR_WROKER__CONCURRENCY: there is no such setting; did you mean COLLECTOR_WORKER__",
        "refusing to listen on 0.0.0.0",
        "exchanges.binnance: there is no exchange called 'binnance'; did you mean binance",
        "streams.0.since: `since` is in the future",
        "streams.1.symbol: '1h' is a timeframe",
        "streams.2.timeframe: the exchange has no timeframe '7m'",
    ]
    assert len(found) == len(wanted)
    for words, mistake in zip(wanted, found, strict=True):
        assert words in mistake


def test_values_of_the_wrong_type_name_the_variable_or_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "collector.yaml").write_text("rate: 5\nworker: {concurrency: many}\n", "utf-8")
    monkeypatch.setenv("COLLECTOR_SERVER__PORT", "abc")
    found = sorted(checked(capsys, 8)["mistakes"])
    assert [each.split(": ")[:2] for each in found] == [
        ["COLLECTOR_SERVER__PORT", "server.port"],
        ["collector.yaml", "rate"],
        ["collector.yaml", "worker.concurrency"],
    ]


def test_no_secret_is_shown(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "collector.yaml").write_text("mongo_uri: mongodb://joe:se/cr@t1@db1/\n", "utf-8")
    monkeypatch.setenv("COLLECTOR_TOKEN", "secret-2")
    monkeypatch.setenv("COLLECTOR_REDIS_URL", "redis://:secret-3@127.0.0.1/0")
    for options in ([], ["--json"]):
        assert run(["config", "check", *options]) == 8
        out, err = capsys.readouterr()
        for secret in ("se/cr", "cr@t1", "secret-2", "secret-3"):
            assert secret not in out + err
    assert "(hidden)@db1/" in out


def test_a_file_that_cannot_be_read_is_one_mistake(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "collector.yaml").write_text("a: [1", "utf-8")
    [mistake] = checked(capsys, 8)["mistakes"]
    assert "is not YAML" in mistake
