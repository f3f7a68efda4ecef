"""API keys and where the server may listen."""

from __future__ import annotations

import hashlib

import pytest

from api.middleware.authentication import MOST_ADDRESSES, WrongKeys
from collector.clock import ManualClock
from collector.errors import ConfigError
from collector.keys import ApiKeys, Role
from collector.listening import host_names, listen

DIGEST = hashlib.sha256(b"open sesame").hexdigest()


def test_a_key_is_known_by_its_hash() -> None:
    keys = ApiKeys.parse(f" viewer:{'0' * 64} , Operator:{DIGEST.upper()},")
    assert keys.role_of("open sesame") is Role.OPERATOR
    assert keys.role_of(DIGEST) is None
    assert keys.role_of("") is None


def test_the_greater_role_of_a_key_counts() -> None:
    keys = ApiKeys.parse(f"admin:{DIGEST},viewer:{DIGEST}")
    assert keys.role_of("open sesame") is Role.ADMIN


@pytest.mark.parametrize("text", [None, "", " , "])
def test_no_keys(text: str | None) -> None:
    assert not ApiKeys.parse(text)


@pytest.mark.parametrize(
    "text", ["root:" + DIGEST, "anyone:" + DIGEST, "admin:abc", DIGEST, f"admin:{DIGEST}0"]
)
def test_a_mistake_names_the_entry_and_not_the_digest(text: str) -> None:
    with pytest.raises(ConfigError, match="entry 2") as refusal:
        ApiKeys.parse(f"viewer:{DIGEST},{text}")
    assert DIGEST not in str(refusal.value)


def test_keys_do_not_show_themselves() -> None:
    assert DIGEST not in repr(ApiKeys.parse(f"admin:{DIGEST}"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_needs_no_keys(host: str) -> None:
    names = host_names(host, ApiKeys())
    assert names is not None
    assert {"127.0.0.1", "localhost", "::1", host} <= names


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1"])
def test_any_other_address_does(host: str) -> None:
    with pytest.raises(ConfigError, match="no API key"):
        host_names(host, ApiKeys())
    assert host_names(host, ApiKeys.parse(f"admin:{DIGEST}")) is None


def test_a_taken_port_is_one_clear_line() -> None:
    refused = pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1 port")
    with listen("127.0.0.1", 0) as taken, refused:
        listen("127.0.0.1", taken.getsockname()[1])


def test_wrong_keys_are_counted_by_address_and_forgotten() -> None:
    clock = ManualClock()
    wrong = WrongKeys(allowed=2, clock=clock)
    assert [wrong.note("a"), wrong.note("a"), wrong.note("b")] == [None, None, None]
    assert wrong.note("a") == 60
    clock.advance(50)
    assert wrong.note("a") == 10
    clock.advance(11)
    assert wrong.note("a") is None


def test_addresses_that_are_counted_are_bounded() -> None:
    wrong = WrongKeys(allowed=1)
    for number in range(MOST_ADDRESSES + 10):
        wrong.note(str(number))
    assert wrong.note("0") is None
    assert wrong.note(str(MOST_ADDRESSES + 9)) is not None


def test_a_key_has_the_name_it_was_given_or_the_first_digits_of_its_hash() -> None:
    keys = ApiKeys.parse(f"admin:{DIGEST}:grafana, viewer:{'0' * 64}")
    assert [entry.name for entry in keys.entries] == ["grafana", "00000000"]


@pytest.mark.parametrize("name", ["two words", "a:b", "x" * 41, "new\nline"])
def test_a_name_that_would_confuse_a_log_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="the name of entry 1"):
        ApiKeys.parse(f"admin:{DIGEST}:{name}")
