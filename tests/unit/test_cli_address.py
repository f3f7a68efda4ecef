"""Where `collector up` lets its API listen."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from collector.cli.address import Address, address_for
from collector.errors import ConfigError
from collector.settings import Settings
from collector.settings_sections import ServerSettings

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def settings(**fields: object) -> Settings:
    return Settings.model_construct(**{"server": ServerSettings(), "api_keys": None, **fields})


def test_a_port_that_was_only_a_default_gives_way(taken: int) -> None:
    found = address_for(settings(server=ServerSettings(port=taken)), None, None)
    assert found.host == "127.0.0.1"
    assert found.port not in (0, taken)


def test_a_port_that_was_asked_for_does_not(taken: int) -> None:
    with pytest.raises(ConfigError, match="--port"):
        address_for(settings(), None, taken)


def test_nobody_listens_to_the_world_without_keys() -> None:
    with pytest.raises(ConfigError, match="collector key new"):
        address_for(settings(), "0.0.0.0", 0)
    assert address_for(settings(), "localhost", 0).port > 0


def test_addresses_are_written_as_urls() -> None:
    assert Address("127.0.0.1", 80).url == "http://127.0.0.1:80"
    assert Address("::1", 80).url == "http://[::1]:80"
