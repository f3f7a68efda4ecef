"""`plan` and `apply`: the database becomes what the settings file asks, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.registry import ConnectorRegistry
from collector.errors import ConfigError, NotFound
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State, Status
from collector.operations.applied_settings import SettingsPlan, apply_settings, plan_settings
from collector.settings import load
from tests.support.local_api import know_markets
from tests.support.verbs import run_here

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from tests.support.verbs import Ended

BTC = "{exchange: simulated, symbol: BTC/USDT, timeframe: 1m, since: 2025-03-01}"
ETH = "{exchange: simulated, symbol: ETH/USDT, timeframe: 1m, since: 2025-03-01}"
MARCH, JANUARY = 1_740_787_200_000, 1_735_689_600_000


class File:
    """A settings file that a test edits and applies."""

    def __init__(self, database: Database, path: Path) -> None:
        self._database = database
        self._path = path

    async def applied(self, text: str, *, prune: bool = False) -> SettingsPlan:
        self._path.write_text(text)
        settings = load(self._path)
        planned = await plan_settings(self._database, settings, prune=prune)
        done = await apply_settings(self._database, settings, prune=prune)
        assert actions(planned) == actions(done)
        assert actions(await plan_settings(self._database, settings)) == [], "it has to be enough"
        return done

    async def job(self, symbol: str, kind: str = "ohlcv_backfill") -> Job:
        (job,) = await JobQueue(self._database).find({"symbol": symbol, "type": kind})
        return job


def actions(plan: SettingsPlan) -> list[tuple[str, str]]:
    return [(each.action.value, each.subject) for each in plan.changes]


@pytest.fixture
def file(database: Database, tmp_path: Path) -> File:
    return File(database, tmp_path / "collector.yaml")


async def test_a_changed_limit_reaches_the_connector(database: Database, file: File) -> None:
    registry = ConnectorRegistry(database)
    await file.applied("exchanges: {kraken: {rate_limit: 7, circuit: {circuit_window_sec: 60}}}\n")
    edited = "exchanges: {kraken: {rate_limit: 3, circuit: {circuit_window_sec: 90}}}\n"
    plan = await file.applied(edited)
    (change,) = plan.changes
    assert change.details == ("circuit_window_sec 60 -> 90", "rate_limit 7 -> 3")
    limits = (await registry.get("kraken")).limits
    assert (limits.rate_limit, limits.circuit.circuit_window_sec) == (3, 90)


async def test_what_the_file_does_not_name_stays_and_what_it_names_wins(
    database: Database, file: File
) -> None:
    registry = ConnectorRegistry(database)
    text = "exchanges: {kraken: {rate_limit: 7, circuit: {circuit_window_sec: 60}}}\n"
    await file.applied(text)
    changed = {"rate_limit": 9, "max_concurrent_jobs": 4, "notes": "by hand"}
    await registry.change_limits("kraken", {**changed, "circuit.settings.circuit_min_events": 50})
    await registry.pause("kraken")
    await file.applied(text)
    connector = await registry.get("kraken")
    limits = connector.limits
    assert (limits.rate_limit, limits.max_concurrent_jobs) == (7, 4)
    assert (limits.circuit.circuit_min_events, limits.circuit.circuit_window_sec) == (50, 60)
    assert (connector.status, connector.document["notes"]) == ("paused", "by hand")


async def test_a_limit_that_left_the_file_goes_back_to_the_exchanges_own(
    database: Database, file: File
) -> None:
    registry = ConnectorRegistry(database)
    await file.applied("exchanges: {kraken: {}}\n")
    usual = (await registry.get("kraken")).limits
    await file.applied("exchanges: {kraken: {rate_limit: 3, max_concurrent_jobs: 2}}\n")
    await registry.change_limits("kraken", {"max_concurrent_jobs": 5})
    await file.applied("exchanges: {kraken: {rate_limit: 3}}\n")
    assert (await registry.get("kraken")).limits.max_concurrent_jobs == 5
    await file.applied("exchanges: {kraken: {}}\n")
    assert (await registry.get("kraken")).limits.rate_limit == usual.rate_limit


async def test_an_earlier_since_of_the_file_extends_the_history_and_a_later_one_is_reported(
    file: File,
) -> None:
    await file.applied(f"streams: [{BTC}]\n")
    earlier = await file.applied(f"streams: [{BTC.replace('2025-03', '2025-01')}]\n")
    assert actions(earlier) == [("extend", "simulated BTC/USDT 1m ohlcv_backfill")]
    assert earlier.changes[0].details == ("history begins 2025-03-01 -> 2025-01-01",)
    assert (await file.job("BTC/USDT")).cursor.since_ms == JANUARY
    later = await file.applied(f"streams: [{BTC}]\n")
    assert actions(later) == []
    assert "begins at 2025-01-01 already; a later one changes nothing" in " ".join(later.notes)
    assert (await file.job("BTC/USDT")).cursor.since_ms == JANUARY
    without = BTC.replace(", since: 2025-03-01", "")
    first_bar = await file.applied(f"streams: [{without}]\n")
    assert first_bar.changes[0].details == ("history begins 2025-01-01 -> its first bar",)


async def test_a_stream_that_left_the_file_is_paused_and_resumed_when_it_is_back(
    database: Database, file: File
) -> None:
    queue = JobQueue(database)
    await file.applied(f"streams: [{BTC}, {ETH}]\n")
    left = await file.applied(f"streams: [{BTC}]\n")
    assert actions(left) == [
        ("pause", "simulated ETH/USDT 1m ohlcv_backfill"),
        ("pause", "simulated ETH/USDT 1m ohlcv_incremental"),
    ]
    assert (await file.job("ETH/USDT")).status is Status.PAUSED
    assert (await file.job("BTC/USDT")).status is Status.ACTIVE
    await queue.resume((await file.job("ETH/USDT")).id)
    assert actions(await file.applied(f"streams: [{BTC}]\n")) == [], "an operator resumed it"
    back = await file.applied(f"streams: [{BTC}, {ETH}]\n")
    assert actions(back) == [("resume", "simulated ETH/USDT 1m ohlcv_incremental")]
    assert (await file.job("ETH/USDT", "ohlcv_incremental")).status is Status.ACTIVE


async def test_what_an_operator_added_or_paused_is_left_alone(
    database: Database, file: File
) -> None:
    queue = JobQueue(database)
    await file.applied(f"streams: [{BTC}]\n")
    own, _ = await queue.add(JobSpec("simulated", "ohlcv_incremental", "XRP/USDT", "1m"))
    await queue.pause((await file.job("BTC/USDT")).id)
    assert actions(await file.applied(f"streams: [{BTC}]\n", prune=True)) == []
    assert (await file.job("BTC/USDT")).status is Status.PAUSED
    await file.applied("streams: []\n", prune=True)
    assert (await queue.get(own.id)).status is Status.ACTIVE
    assert (await ConnectorRegistry(database).get("simulated")).status == "active"


async def test_prune_deletes_what_left_the_file_also_what_is_finished(
    database: Database, file: File
) -> None:
    await file.applied(f"streams: [{BTC}, {ETH}]\nexchanges: {{kraken: {{}}}}\n")
    done = await file.job("ETH/USDT")
    finished = {"state": "success", "status": "paused", "cursor.done": True}
    await database.jobs.update_one({"_id": done.id}, {"$set": finished})
    await file.applied(f"streams: [{BTC}]\n")
    assert (await file.job("ETH/USDT")).state is State.SUCCESS
    pruned = await file.applied(f"streams: [{BTC}]\n", prune=True)
    assert sorted(actions(pruned)) == [
        ("delete", "connector kraken"),
        ("delete", "simulated ETH/USDT 1m ohlcv_backfill"),
        ("delete", "simulated ETH/USDT 1m ohlcv_incremental"),
    ]
    assert await JobQueue(database).find({"symbol": "ETH/USDT"}) == []
    with pytest.raises(NotFound):
        await ConnectorRegistry(database).get("kraken")


async def test_a_priority_of_the_file_reaches_both_jobs_and_goes_back(file: File) -> None:
    await file.applied(f"streams: [{BTC}]\n")
    await file.applied(f"streams: [{BTC.replace('1m,', '1m, priority: 5,')}]\n")
    assert (await file.job("BTC/USDT", "ohlcv_incremental")).priority == 5
    assert (await file.job("BTC/USDT")).priority == 25
    await file.applied(f"streams: [{BTC}]\n")
    assert (await file.job("BTC/USDT", "ohlcv_incremental")).priority == 50
    assert (await file.job("BTC/USDT")).priority == 70


async def test_backfill_and_price_stream_that_are_switched_off_are_paused(file: File) -> None:
    live = "exchanges: {simulated: {price_stream: {enabled: true}}}\n"
    await file.applied(f"{live}streams: [{BTC}]\n")
    off = await file.applied(f"streams: [{BTC.replace('1m,', '1m, backfill: false,')}]\n")
    assert sorted(actions(off)) == [
        ("pause", "simulated BTC/USDT 1m ohlcv_backfill"),
        ("pause", "simulated price_stream"),
    ]


async def test_the_symbols_of_a_price_stream_follow_the_file(
    database: Database, file: File
) -> None:
    await know_markets(database)

    def live(symbols: str) -> str:
        return f"exchanges: {{simulated: {{price_stream: {{enabled: true{symbols}}}}}}}\n"

    async def params() -> dict[str, Any]:
        (job,) = await JobQueue(database).find({"type": "price_stream"})
        return dict(job.params)

    await file.applied(live(", symbols: [BTC/USDT]"))
    assert await params() == {"symbols": ["BTC/USDT"]}
    (job,) = await JobQueue(database).find({"type": "price_stream"})
    await JobQueue(database).change(job.id, params={**job.params, "watch_bars": False})
    changed = await file.applied(live(", symbols: [BTC/USDT, ETH/USDT]"))
    assert [each.details for each in changed.changes] == [
        ("symbols BTC/USDT -> BTC/USDT, ETH/USDT",)
    ]
    assert await params() == {"symbols": ["BTC/USDT", "ETH/USDT"], "watch_bars": False}
    await file.applied(live(""))
    assert await params() == {"watch_bars": False}
    with pytest.raises(ConfigError, match="BTC/USDX"):
        await file.applied(live(", symbols: [BTC/USDX]"))


async def test_a_global_limit_is_set_when_it_differs(database: Database, file: File) -> None:
    made = await file.applied("global_limit: {rate_limit: 50}\n")
    assert actions(made) == [("create", "limit on all exchanges")]
    assert actions(await file.applied("global_limit: {rate_limit: 40}\n")) == [
        ("change", "limit on all exchanges")
    ]
    found = await database.system.find_one({"exchange_id": "all exchanges"})
    assert found is not None
    assert found["rate_limit"] == 40


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            f"streams: [{BTC.replace('BTC/', 'BTX/')}]",
            r"streams\.0\.symbol: .*did you mean BTC/USDT",
        ),
        (f"streams: [{BTC.replace('1m', '7m')}]", r"streams\.0\.timeframe: .*no timeframe '7m'"),
        (f"streams: [{BTC.replace('2025', '2999')}]", r"streams\.0\.since: .*in the future"),
        (f"streams: [{BTC.replace('simulated', 'binnance')}]", r"streams\.0\.exchange: .*binance"),
        ("exchanges: {binnance: {}}", r"exchanges\.binnance: .*did you mean binance"),
    ],
)
async def test_the_file_is_checked_as_strictly_as_add(
    database: Database, file: File, text: str, complaint: str
) -> None:
    await file.applied("exchanges: {simulated: {}}\n")
    await know_markets(database)
    with pytest.raises(ConfigError, match=complaint):
        await file.applied(f"{text}\n")
    assert await JobQueue(database).find({"type": "ohlcv_incremental"}) == []


async def test_a_timeframe_that_an_exchange_never_has_is_refused_before_markets_are_known(
    file: File,
) -> None:
    text = "streams: [{exchange: binance, symbol: BTC/USDT, timeframe: 7m}]\n"
    with pytest.raises(ConfigError, match=r"streams\.0\.timeframe: .*no timeframe '7m'"):
        await file.applied(text)


@pytest.fixture
def cli(
    database: Database, mongo_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Awaitable[Ended]]:
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_MONGO_URI", mongo_uri)
    monkeypatch.setenv("COLLECTOR_MONGO_DB", database.raw.name)
    return lambda line: run_here(*line.split())


async def test_the_verbs_show_and_do_the_same(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "collector.yaml").write_text(f"streams: [{BTC}]\n")
    planned = (await cli("plan --json")).facts
    assert [each["action"] for each in planned["changes"]] == ["create"] * 3
    shown = await cli("plan")
    assert (shown.code, shown.out.count("would create")) == (0, 3)
    assert "would create simulated BTC/USDT 1m ohlcv_backfill: history from 2025-03-01" in shown.out
    applied = (await cli("apply --json")).facts
    assert applied["changes"] == planned["changes"]
    again = await cli("plan")
    assert (again.code, "nothing to change" in again.out) == (0, True)
    (tmp_path / "collector.yaml").write_text("streams: []\n")
    paused = await cli("apply")
    assert "paused simulated BTC/USDT 1m ohlcv_backfill: not in the file" in paused.out
    assert "deleted simulated BTC/USDT 1m ohlcv_backfill" in (await cli("apply --prune")).out
