"""The first margin is chosen as soon as enough answers are known, not at the next report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.connectors import way
from collector.connectors.connector import Limits
from collector.connectors.lateness import ENOUGH_ANSWERS
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from tests.support.until import until

if TYPE_CHECKING:
    import pytest

    from collector.mongo.client import Database


async def answered(limiter: Limiter, count: int) -> None:
    for _ in range(count):
        token = await limiter.acquire("x", patience=5.0)
        limiter.sent("x", token, 1)
        limiter.answered("x", token, limiter.clock.monotonic())


async def test_the_answer_that_makes_them_enough_reports_them(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(way, "REPORT_SECONDS", 3600.0)
    registry = ConnectorRegistry(database)
    await registry.ensure("x", Limits(1_000, 1_000))

    async def lateness() -> dict[str, Any]:
        return (await registry.get("x")).document.get("lateness") or {}

    async with Limiter(database) as limiter:
        await answered(limiter, ENOUGH_ANSWERS - 1)
        assert not (await lateness()).get("histogram")
        await answered(limiter, 1)
        await until(lambda: _chosen(registry), "a margin is chosen")
        assert sum((await lateness())["histogram"]["now"]["counts"]) == ENOUGH_ANSWERS


async def test_a_second_worker_adds_what_is_lacking(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = ConnectorRegistry(database)
    await registry.ensure("x", Limits(1_000, 1_000))

    async def lateness() -> dict[str, Any]:
        return (await registry.get("x")).document.get("lateness") or {}

    monkeypatch.setattr(way, "REPORT_SECONDS", 0.05)
    async with Limiter(database) as first:
        await answered(first, ENOUGH_ANSWERS - 10)
        await until(lambda: _reported(lateness, ENOUGH_ANSWERS - 10), "they are reported")
    monkeypatch.setattr(way, "REPORT_SECONDS", 3600.0)
    async with Limiter(database) as second:
        await answered(second, 10)
        await until(lambda: _chosen(registry), "a margin is chosen")


async def _chosen(registry: ConnectorRegistry) -> bool:
    return any((await registry.get("x")).lateness.margins)


async def _reported(lateness: Any, answers: int) -> bool:
    histogram = (await lateness()).get("histogram")
    return bool(histogram and sum(histogram["now"]["counts"]) == answers)
