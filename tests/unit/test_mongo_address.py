"""Addresses of MongoDB: any password fits in, and no message shows one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pymongo.uri_parser import parse_uri

from collector.errors import ConfigError
from collector.mongo.address import address, for_other_processes
from collector.mongo.client import Database
from collector.settings import Settings, load

if TYPE_CHECKING:
    from pathlib import Path

URI = "mongodb://mongo:27017/?replicaSet=rs0&authSource=admin"
RESERVED = "p/a@s:s%w?o#r&d=[+]$ {'\"}\\é"


@pytest.mark.parametrize("password", [RESERVED, *"/@:%?#&=+ ", "%2F", "p" * 200])
def test_a_password_may_hold_any_character(password: str) -> None:
    parsed = parse_uri(address(URI, "co:ll@ector", password))
    assert (parsed["username"], parsed["password"]) == ("co:ll@ector", password)
    assert parsed["nodelist"] == [("mongo", 27017)]
    assert parsed["options"]["authSource"] == "admin"


def test_several_hosts_and_srv_addresses_take_a_login() -> None:
    several = parse_uri(address("mongodb://a,b:1,c/?replicaSet=rs0", "user", "p@ss"))
    assert several["nodelist"] == [("a", 27017), ("b", 1), ("c", 27017)]
    assert address("mongodb+srv://a.example/", "u", "@") == "mongodb+srv://u:%40@a.example/"


def test_without_a_login_the_address_stays_as_it_is() -> None:
    assert address("mongodb://u:p%40ss@a/", None, None) == "mongodb://u:p%40ss@a/"


def test_the_password_comes_from_its_file_without_the_line_end(tmp_path: Path) -> None:
    file = tmp_path / "mongo_password"
    file.write_text(f" {RESERVED} \n", encoding="utf-8")
    settings = Settings(mongo_uri=URI, mongo_user="collector", mongo_password_file=file)
    assert parse_uri(str(settings.mongo_address))["password"] == f" {RESERVED} "


@pytest.mark.parametrize(
    "given",
    [
        {"mongo_uri": URI, "mongo_user": "u"},
        {"mongo_uri": URI, "mongo_password": "the-password"},
        {"mongo_uri": "mongodb://v:w@mongo/", "mongo_user": "u", "mongo_password": "the-password"},
        {"mongo_user": "u", "mongo_password": "the-password"},
        {
            "mongo_uri": URI,
            "mongo_user": "u",
            "mongo_password": "the-password",
            "mongo_password_file": "a",
        },
        {"mongo_uri": URI, "mongo_user": "u", "mongo_password_file": "/there/is/no/such/file"},
        {"mongo_uri": URI, "mongo_user": "u", "mongo_password_file": "/dev/null"},
    ],
)
def test_parts_that_do_not_fit_together_are_one_line(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="mongo_") as caught:
        _ = Settings(**given).mongo_address
    assert "the-password" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_never_show_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTOR_MONGO_PASSWORD", "the-password")
    assert "the-password" not in repr(load())


def test_other_processes_use_the_very_address_whatever_their_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "collector.yaml"
    config.write_text("{mongo_uri: mongodb://b/, mongo_user: u, mongo_password: p}", "utf-8")
    monkeypatch.setenv("COLLECTOR_MONGO_PASSWORD_FILE", "elsewhere")
    for name, value in for_other_processes("mongodb://u:p%40@a/").items():
        monkeypatch.setenv(name, value)
    assert load(config).mongo_address == "mongodb://u:p%40@a/"


@pytest.mark.parametrize(
    "uri",
    [
        "mongodb://collector:se/cret@mongo:27017/?replicaSet=rs0",
        "mongodb://collector:12/cret@mongo:27017",
        "mongodb://collector:se@cret@mongo:27017/",
        "mongodb://collector:se:cret@mongo:27017/",
        "mongodb://collector:se%cret@mongo:27017/",
        "mongodb://collector:12?cret@mongo:27017/",
        "collector:secret@mongo",
        "mongodb:/collector:secret@mongo",
        "mongodb://collector:secret@mongo:port/",
        "mongodb://collector:secret@mongo/a b",
        "mongodb://",
        "mongodb://mongo:99999/",
        "mongodb://[::1",
    ],
)
async def test_an_address_that_is_none_is_one_line_without_the_password(uri: str) -> None:
    with pytest.raises(ConfigError, match="mongo_uri") as caught:
        await Database(address(uri, None, None), "any").close()
    said = str(caught.value)
    assert "\n" not in said
    assert "cret" not in said
    assert caught.value.__cause__ is None
