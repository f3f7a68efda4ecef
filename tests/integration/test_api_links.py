"""The links of the OpenAPI document: from what was made to what may be done with it, and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from api.openapi import OF_A_CONNECTOR, OF_A_JOB
from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from tests.support.local_api import LISTED, fresh_database, know_markets, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.local_api import Client

MADE = {
    "/api/v1/connectors": OF_A_CONNECTOR,
    "/api/v1/jobs": OF_A_JOB,
    "/api/v1/streams": OF_A_JOB,
}


@pytest.fixture(scope="module")
async def client(mongo_uri: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    async with (
        fresh_database(mongo_uri) as database,
        serving(database, tmp_path_factory.mktemp("lake")) as client,
    ):
        for exchange_id in ("simulated", "binance", "kraken"):
            await ConnectorRegistry(database).ensure(exchange_id, Limits(1000, 1000))
        await know_markets(database)
        yield client


@pytest.fixture(scope="module")
async def paths(client: Client) -> dict[str, Any]:
    document = (await client.get("/openapi.json")).body
    found: dict[str, Any] = document["paths"]
    return found


def links(paths: dict[str, Any], path: str, method: str, status: str) -> dict[str, Any]:
    found: dict[str, Any] = paths[path][method]["responses"][status]["links"]
    return found


@pytest.mark.parametrize("path", MADE)
@pytest.mark.parametrize("status", ["200", "201"])
async def test_what_was_made_links_to_all_that_may_be_done_with_it(
    paths: dict[str, Any], path: str, status: str
) -> None:
    linked = {link["operationId"] for link in links(paths, path, "post", status).values()}
    assert linked == set(MADE[path])
    below = f"{path}/{{".replace("streams", "jobs")
    possible = {
        operation["operationId"]
        for each, methods in paths.items()
        if each.startswith(below)
        for operation in methods.values()
    }
    assert linked == possible


async def test_every_list_links_to_its_next_page(client: Client, paths: dict[str, Any]) -> None:
    stream = {"exchange_id": "simulated", "symbols": list(LISTED), "timeframes": ["1m"]}
    assert (await client.post("/api/v1/streams", stream)).status == 201
    lists = [
        path
        for path, methods in paths.items()
        if any(each["name"] == "cursor" for each in methods.get("get", {}).get("parameters", ()))
    ]
    assert len(lists) >= 4
    questions = {
        "/api/v1/connectors": {"limit": "1"},
        "/api/v1/jobs": {"limit": "2", "order": "newest", "type": "ohlcv_backfill"},
        "/api/v1/markets": {"limit": "1", "exchange_id": "simulated"},
    }
    assert set(questions) <= set(lists)
    for path, asked in questions.items():
        link = links(paths, path, "get", "200")["next_page"]
        assert link["operationId"] == paths[path]["get"]["operationId"]
        whole = (await client.get(path, params={**asked, "limit": "1000"})).body["items"]
        followed, question = [], dict(asked)
        while question:
            page = (await client.get(path, params=question)).body
            followed += page["items"]
            question = next_question(link["parameters"], question, page)
        assert len(followed) == 3
        assert followed == whole


def next_question(
    parameters: dict[str, str], asked: dict[str, str], page: dict[str, Any]
) -> dict[str, str]:
    """The link's expressions, worked out; a value that was not sent is not sent again."""
    if page["next_cursor"] is None:
        return {}
    known = {f"$request.query.{name}": value for name, value in asked.items()}
    known["$response.body#/next_cursor"] = page["next_cursor"]
    return {name: known[value] for name, value in parameters.items() if value in known}
