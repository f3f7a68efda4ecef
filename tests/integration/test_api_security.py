"""Who may do what: tables made from the router, so that a new route cannot be forgotten."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from api.app import Door, all_routes, create_app
from api.middleware import trace
from api.middleware.authentication import WrongKeys
from collector.clock import ManualClock
from collector.keys import ApiKeys, Role
from tests.support.local_api import fresh_database, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from api.roles import Guarded
    from tests.support.local_api import Client

SECRETS = {role: f"the-{role.word}-key" for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN)}
KEYS = ApiKeys.parse(
    ",".join(
        f"{role.word}:{hashlib.sha256(key.encode()).hexdigest()}" for role, key in SECRETS.items()
    )
)
ROUTES = all_routes()
GUARDED = [route for route in ROUTES if route.role > Role.ANYONE]
EVENTS = "/api/v1/events"


@pytest.fixture(scope="module")
async def client(mongo_uri: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    door = Door(keys=KEYS, wrong_keys=WrongKeys(allowed=1_000_000))
    async with (
        fresh_database(mongo_uri) as database,
        serving(database, tmp_path_factory.mktemp("lake"), door=door) as client,
    ):
        yield client


def filled(route: Guarded) -> str:
    return route.path.format(exchange_id="nosuch", job_id="0" * 24, network="nosuch")


def name(route: Guarded) -> str:
    return f"{route.method} {route.path}"


def test_the_table_holds_every_documented_route(client: Client) -> None:
    paths = create_app(client.services, Door()).openapi()["paths"]
    documented = {(path, method.upper()) for path, methods in paths.items() for method in methods}
    assert documented == {(each.path, each.method) for each in ROUTES} - {("/openapi.json", "GET")}


def test_only_probes_are_open() -> None:
    open_routes = {route.path for route in ROUTES if route.role is Role.ANYONE}
    assert open_routes == {"/healthz", "/readyz"}


def test_reading_is_for_viewers_and_deleting_for_admins() -> None:
    for route in GUARDED:
        if route.method == "GET":
            assert route.role is Role.VIEWER
        else:
            assert route.role >= Role.OPERATOR
        if route.method == "DELETE":
            assert route.role is Role.ADMIN
    limits = next(each for each in GUARDED if each.method == "PATCH" and "connectors" in each.path)
    assert limits.role is Role.ADMIN


@pytest.mark.parametrize("route", ROUTES, ids=name)
async def test_without_a_key(client: Client, route: Guarded) -> None:
    answer = await client(route.method, filled(route))
    if route.role is Role.ANYONE:
        assert answer.status == 200
    else:
        assert (answer.status, answer.code) == (401, "unauthenticated")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("route", GUARDED, ids=name)
@pytest.mark.parametrize("authorization", ["Bearer nonsense", "Basic dXNlcjpwYXNz", "Bearer", ""])
async def test_with_a_wrong_key(client: Client, route: Guarded, authorization: str) -> None:
    headers = {"Authorization": authorization}
    answer = await client(route.method, filled(route), headers=headers)
    assert answer.status == 401
    assert "nonsense" not in str(answer.body)


@pytest.mark.parametrize("role", SECRETS, ids=lambda role: role.word)
@pytest.mark.parametrize("route", GUARDED, ids=name)
async def test_with_each_role(client: Client, route: Guarded, role: Role) -> None:
    headers = {"Authorization": f"Bearer {SECRETS[role]}"}
    async with client.session.request(route.method, filled(route), headers=headers) as response:
        # Only the status: an event stream has no end to read to.
        if role < route.role:
            assert response.status == 403
        else:
            # Past the door; what was asked for makes no sense.
            assert response.status in (200, 404, 422)


async def test_unknown_paths_tell_nothing_without_a_key(client: Client) -> None:
    assert (await client.get("/api/v1/nosuch")).status == 401
    assert (await client.get("/api/v1/nosuch", key=SECRETS[Role.VIEWER])).code == "no_such_route"


async def test_many_wrong_keys_from_one_address_are_put_off(
    mongo_uri: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    clock = ManualClock()
    door = Door(keys=KEYS, wrong_keys=WrongKeys(clock=clock))
    async with (
        fresh_database(mongo_uri) as database,
        serving(database, tmp_path_factory.mktemp("lake"), door=door) as client,
    ):
        url = "/api/v1/connectors"
        answers = [await client.get(url, key=f"guess {n}") for n in range(12)]
        assert [answer.status for answer in answers] == [401] * 10 + [429] * 2
        assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
        assert answers[-1].code == "too_many_wrong_keys"
        assert (await client.get(url, key=SECRETS[Role.VIEWER])).status == 200
        clock.advance(61)
        assert (await client.get(url, key="guess again")).status == 401


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200),
        ("localhost", 200),
        ("LOCALHOST:8000", 200),
        ("[::1]:8000", 200),
        ("evil.example", 400),
        ("127.0.0.1.evil.example:8000", 400),
        ("evil.example@127.0.0.1", 400),
        ("127.0.0.1:http", 400),
    ],
)
async def test_on_loopback_only_its_names_are_answered(
    client: Client, host: str, status: int
) -> None:
    answer = await client.get("/healthz", headers={"Host": host})
    assert answer.status == status
    if status == 400:
        assert answer.code == "bad_host"


async def test_pages_of_other_origins_are_refused(client: Client) -> None:
    headers = {"Origin": "https://evil.example"}
    key = SECRETS[Role.ADMIN]
    answer = await client.post("/api/v1/connectors/simulated/pause", key=key, headers=headers)
    assert (answer.status, answer.code) == (403, "cross_origin")
    assert "Access-Control-Allow-Origin" not in answer.headers
    own = {"Origin": str(client.session._base_url).rstrip("/")}
    assert (await client.get("/api/v1/connectors", key=key, headers=own)).status == 200


FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain")


@pytest.mark.parametrize("kind", FORM_TYPES)
async def test_a_form_changes_nothing_even_without_an_origin(client: Client, kind: str) -> None:
    key, url = SECRETS[Role.ADMIN], "/api/v1/connectors"
    body = b'{"exchange_id": "simulated"}'
    answer = await client("POST", url, key=key, headers={"Content-Type": kind}, data=body)
    assert (answer.status, answer.code) == (415, "json_only")
    empty = await client("POST", f"{url}/simulated/pause", key=key, headers={"Content-Type": kind})
    assert (empty.status, empty.code) == (415, "json_only")
    assert (await client.get(url, key=key)).body["items"] == []


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_another_site_reaches_nothing_of_the_api(client: Client, site: str) -> None:
    key, url, headers = SECRETS[Role.ADMIN], "/api/v1/connectors", {"Sec-Fetch-Site": site}
    body = {"exchange_id": "simulated"}
    answer = await client.post(url, body, key=key, headers=headers)
    assert (answer.status, answer.code) == (403, "cross_origin")
    # An image of its page asks for a report, which takes a while to make.
    for path in ("/api/v1/reports/missing", "/api/v1/reports/validation", "/api/v1/coverage", url):
        answer = await client.get(path, key=key, headers=headers)
        assert (answer.status, answer.code) == (403, "cross_origin")
    assert (await client.get(url, key=key)).body["items"] == []
    assert (await client.get("/healthz", headers=headers)).status == 200


@pytest.mark.parametrize("site", ["same-origin", "none"])
async def test_the_own_pages_and_what_is_typed_reach_the_api(client: Client, site: str) -> None:
    headers = {"Sec-Fetch-Site": site}
    answer = await client.get("/api/v1/me", key=SECRETS[Role.VIEWER], headers=headers)
    assert answer.status == 200


async def test_who_am_i(client: Client) -> None:
    for role, key in SECRETS.items():
        body = (await client.get("/api/v1/me", key=key)).body
        assert body["role"] == role.word
        assert body["key"] == KEYS.find(key).name  # type: ignore[union-attr]


async def test_headers_are_on_every_answer(client: Client) -> None:
    for path, headers in (("/healthz", {}), ("/api/v1/jobs", {}), ("/healthz", {"Host": "x.y"})):
        answer = await client.get(path, headers=headers)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert len(answer.headers["X-Request-Id"]) == 32
        assert "Server" not in answer.headers


async def test_a_sane_request_id_is_kept_and_another_replaced(client: Client) -> None:
    kept = await client.get("/healthz", headers={"X-Request-Id": "order-66.a_b"})
    assert kept.headers["X-Request-Id"] == "order-66.a_b"
    for given in ("a b", "x" * 65, "<script>", ""):
        answer = await client.get("/healthz", headers={"X-Request-Id": given})
        assert answer.headers["X-Request-Id"] != given


async def test_the_log_shows_the_role_and_the_name_of_the_key(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[dict[str, object]] = []
    monkeypatch.setattr(trace, "_log", SimpleNamespace(info=lambda _, **line: lines.append(line)))
    await client.get("/api/v1/jobs", key=SECRETS[Role.OPERATOR])
    await client.get("/api/v1/jobs", key="wrong")
    named = KEYS.entries[1].name
    assert [(line["role"], line["key"]) for line in lines] == [("operator", named), (None, None)]
    assert SECRETS[Role.OPERATOR] not in str(lines)
