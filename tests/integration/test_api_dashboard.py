"""The dashboard's pages and files: open to everyone, locked down, and of one version."""

from __future__ import annotations

import gzip
import hashlib
import re
from typing import TYPE_CHECKING

import pytest

from api.app import Door
from api.dashboard.files import FOLDER, DashboardFiles, dashboard_files
from api.dashboard.pages import VIEWS
from collector.keys import ApiKeys
from tests.support.local_api import fresh_database, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.local_api import Client

KEYS = ApiKeys.parse(f"viewer:{hashlib.sha256(b'secret').hexdigest()}")
JOB = "/jobs/65f0c0ffee0000000000beef"


@pytest.fixture(scope="module")
async def client(mongo_uri: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    async with (
        fresh_database(mongo_uri) as database,
        serving(database, tmp_path_factory.mktemp("lake"), door=Door(keys=KEYS)) as client,
    ):
        yield client


@pytest.mark.parametrize("path", [*VIEWS, JOB])
async def test_every_view_is_the_page_without_a_key(client: Client, path: str) -> None:
    answer = await client.get(path)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert '<div id="app"></div>' in answer.body
    assert answer.headers["Cache-Control"] == "no-cache"


async def test_the_page_may_load_its_own_files_and_nothing_else(client: Client) -> None:
    answer = await client.get("/")
    rules = dict(
        rule.split(" ", 1) for rule in answer.headers["Content-Security-Policy"].split("; ")
    )
    assert rules["default-src"] == "'none'"
    assert {rules[name] for name in ("script-src", "style-src", "connect-src")} == {"'self'"}
    assert rules["frame-ancestors"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", answer.body)
    assert not re.search(r"(?:src|href)=\"(?!/assets/|#)", answer.body)


async def test_every_file_that_the_page_names_is_there_for_ever(client: Client) -> None:
    page = (await client.get("/")).body
    named = set(re.findall(r"/assets/[^\"]+", page))
    assert {f"/assets/{dashboard_files().stamp}/js/main.js"} < named
    for path in named:
        async with client.session.get(path) as response:
            assert response.status == 200, path
            assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
            assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_file_of_another_version_or_outside_is_not_found(client: Client) -> None:
    stamp = dashboard_files().stamp
    for path in (
        "/assets/000000000000/js/main.js",
        f"/assets/{stamp}/js/nosuch.js",
        f"/assets/{stamp}/index.html",
        f"/assets/{stamp}/../pages.py",
        f"/assets/{stamp}/..%2fpages.py",
        f"/assets/{stamp}//etc/passwd",
    ):
        assert (await client.get(path)).status in (401, 404), path


async def test_files_go_compressed_to_who_accepts_it(client: Client) -> None:
    path = f"/assets/{dashboard_files().stamp}/css/tokens.css"
    plain = (FOLDER / "css" / "tokens.css").read_bytes()
    headers = {"Accept-Encoding": "gzip"}
    async with client.session.get(path, headers=headers) as packed:
        assert packed.headers["Content-Encoding"] == "gzip"
        assert int(packed.headers["Content-Length"]) < len(plain)
        assert await packed.read() == plain, "aiohttp unpacks it"
    async with client.session.get(path, headers={"Accept-Encoding": "identity"}) as whole:
        assert "Content-Encoding" not in whole.headers
        assert await whole.read() == plain


async def test_head_is_get_without_a_body(client: Client) -> None:
    async with client.session.head("/") as answer:
        assert (answer.status, await answer.read()) == (200, b"")
        assert int(answer.headers["Content-Length"]) > 0


async def test_only_reading_is_answered_here(client: Client) -> None:
    assert (await client.post("/")).status == 401
    assert (await client.get("/jobs/nosuch")).status == 401


def test_the_stamp_changes_with_any_file(tmp_path: Path) -> None:
    folder = tmp_path
    (folder / "index.html").write_text("{{assets}}/a.css {{modules}}")
    (folder / "a.css").write_text("a {}")
    first = DashboardFiles.read(folder)
    (folder / "a.css").write_text("b {}")
    second = DashboardFiles.read(folder)
    assert first.stamp != second.stamp
    assert first.page.data.decode().startswith(f"/assets/{first.stamp}/a.css")
    packed = second.files["a.css"].packed
    assert packed is not None
    assert gzip.decompress(packed) == b"b {}"
