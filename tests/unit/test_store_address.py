"""Where a lake lies, as settings, environment and callers may say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.errors import ConfigError
from collector.reader import default_root
from collector.settings import Settings
from collector.store.address import ObjectAddress, absolute, with_endpoint
from collector.store.disk import LocalDisk
from collector.store.root import storage_at

SERVER = "endpoint_override=127.0.0.1%3A9000&scheme=http"


def test_an_address_names_bucket_prefix_and_server() -> None:
    assert ObjectAddress.parse("s3://lake") == ObjectAddress("lake", "", None, None)
    told = ObjectAddress.parse(f"s3://my-lake/a/b/?{SERVER}&region=eu-west-1")
    assert told == ObjectAddress("my-lake", "a/b", "http://127.0.0.1:9000", "eu-west-1")
    assert told.key("x/y") == "a/b/x/y"
    assert ObjectAddress.parse("s3://lake").key("x/y") == "x/y"


@pytest.mark.parametrize(
    "text",
    ["s3://", "s3:///a", "s3://Lake/a", "s3://lake/a/../b", "s3://lake/a//b", "s3://lake?x=1"],
)
def test_what_is_no_address_is_said_at_once(text: str) -> None:
    with pytest.raises(ConfigError):
        storage_at(text)


def test_keys_in_an_address_are_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="keys do not belong") as told:
        storage_at("s3://key:secret@lake/a")
    assert "secret" not in str(told.value).replace("AWS_SECRET", "")


@pytest.mark.parametrize(
    ("root", "endpoint", "expected"),
    [
        ("s3://lake/a", None, "s3://lake/a"),
        ("s3://lake/a", "http://127.0.0.1:9000", f"s3://lake/a?{SERVER}"),
        ("s3://lake/a", "http://127.0.0.1:9000/", f"s3://lake/a?{SERVER}"),
        ("s3://lake?region=x", "http://127.0.0.1:9000", f"s3://lake?region=x&{SERVER}"),
        ("s3://lake", "host:1", "s3://lake?endpoint_override=host%3A1&scheme=https"),
        (f"s3://lake?{SERVER}", "http://elsewhere", f"s3://lake?{SERVER}"),
        ("/srv/data", "http://127.0.0.1:9000", "/srv/data"),
    ],
)
def test_the_server_becomes_part_of_the_address(
    root: str, endpoint: str | None, expected: str
) -> None:
    assert with_endpoint(root, endpoint) == expected
    assert Settings(data=root, s3_endpoint=endpoint).data_root == expected


@pytest.mark.parametrize("endpoint", ["ftp://host", "http://user:word@host", "http://host/path/x"])
def test_an_endpoint_that_is_none_is_refused(endpoint: str) -> None:
    with pytest.raises(ConfigError, match="s3_endpoint"):
        with_endpoint("s3://lake", endpoint)


def test_a_reader_takes_the_server_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTOR_DATA", "s3://lake/a")
    monkeypatch.setenv("COLLECTOR_S3_ENDPOINT", "http://127.0.0.1:9000")
    assert default_root() == f"s3://lake/a?{SERVER}"


def test_a_folder_stays_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("data") == str(tmp_path / "data")
    assert absolute("s3://lake/a") == "s3://lake/a"
    assert isinstance(storage_at(Path("data")), LocalDisk)
