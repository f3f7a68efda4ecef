"""References to keys: where they lead, and that nothing on the way shows a key."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from collector.errors import ConfigError
from collector.secrets import Credentials, Keyring, resolve
from collector.settings import Settings, load

if TYPE_CHECKING:
    from pathlib import Path

REFERENCE = "secret://bybit/prod/read_key"
VARIABLE = "COLLECTOR_SECRET_BYBIT_PROD_READ_KEY"
TEXT = "the-key:the-secret"


def kept(home: Path, text: str = TEXT, mode: int = 0o600) -> Path:
    path = home / "secrets" / "bybit" / "prod" / "read_key"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_the_environment_is_asked_first(tmp_path: Path) -> None:
    kept(tmp_path, "of:the file")
    assert resolve(REFERENCE, tmp_path, {VARIABLE: TEXT}) == TEXT
    assert resolve(REFERENCE, tmp_path, {}) == "of:the file"


def test_a_name_with_dashes_and_dots_is_a_variable_all_the_same(tmp_path: Path) -> None:
    assert resolve("secret://okx/eu-1.read", tmp_path, {"COLLECTOR_SECRET_OKX_EU_1_READ": "x"})


def test_a_text_that_is_not_utf_8_is_refused_by_its_reference(tmp_path: Path) -> None:
    bytes_of_latin_1 = os.fsdecode("gr\xfc\xdfe".encode("latin-1"))
    with pytest.raises(ConfigError, match=rf"{REFERENCE}: {VARIABLE} is not UTF-8"):
        resolve(REFERENCE, tmp_path, {VARIABLE: bytes_of_latin_1})
    kept(tmp_path).write_bytes(b"\xff:\xfe")
    with pytest.raises(ConfigError, match=f"{REFERENCE}: .* cannot be read"):
        resolve(REFERENCE, tmp_path, {})


def test_env_in_a_reference_is_the_one_that_runs(tmp_path: Path) -> None:
    reference = "secret://bybit/{{ env }}/read_key"
    assert resolve(reference, tmp_path, {"COLLECTOR_ENV": "prod", VARIABLE: TEXT}) == TEXT
    for wrong in ({}, {"COLLECTOR_ENV": "../.."}):
        with pytest.raises(ConfigError, match="COLLECTOR_ENV"):
            resolve(reference, tmp_path, wrong)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    kept(tmp_path, mode=mode)
    with pytest.raises(ConfigError, match="chmod 600") as told:
        resolve(REFERENCE, tmp_path, {})
    assert "the-key" not in str(told.value)


@pytest.mark.parametrize("mode", [0o444, 0o644, 0o600])
def test_a_mounted_folder_takes_the_place_of_the_home_whatever_its_modes(
    tmp_path: Path, mode: int
) -> None:
    mounted = kept(tmp_path / "mounted", mode=mode).parents[2]
    kept(tmp_path / "home", "of:the home")
    where = {"COLLECTOR_SECRETS_DIR": str(mounted)}
    assert resolve(REFERENCE, tmp_path / "home", where) == TEXT
    with pytest.raises(ConfigError, match=str(mounted)):
        resolve("secret://bybit/prod/other_key", tmp_path / "home", where)


def test_a_reference_that_leads_nowhere_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=VARIABLE) as told:
        resolve(REFERENCE, tmp_path, {})
    assert str(tmp_path / "secrets") in str(told.value)


@pytest.mark.parametrize(
    "reference",
    [
        "the-key:the-secret",
        "secret://",
        "secret://a//b",
        "secret://../a",
        "secret://a/..",
        "file:a",
    ],
)
def test_only_references_are_accepted_and_others_are_not_repeated(
    tmp_path: Path, reference: str
) -> None:
    with pytest.raises(ConfigError, match="such as secret://") as told:
        resolve(reference, tmp_path, {})
    assert "the-key" not in str(told.value)


def test_settings_refuse_a_key_in_place_of_a_reference_without_showing_it(tmp_path: Path) -> None:
    path = tmp_path / "collector.yaml"
    for content in (
        "exchanges: {bybit: {key_ref: 'the-key:the-secret'}}",
        "api: {read_only_keys_ref: 'the-key:the-secret'}",
    ):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ConfigError, match="such as secret://") as told:
            load(path)
        assert "the-key" not in str(told.value)


def test_settings_say_which_exchange_has_which_reference(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path,
        api={"adapter": "bybit", "read_only_keys_ref": "secret://bybit/one"},
        exchanges={"binance": {"key_ref": "secret://binance/two"}, "kraken": {}},
    )
    assert settings.keyring == Keyring(
        {"bybit": "secret://bybit/one", "binance": "secret://binance/two"}, tmp_path
    )


def test_an_exchange_of_its_own_wins_over_the_adapter(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path,
        api={"adapter": "bybit", "read_only_keys_ref": "secret://bybit/one"},
        exchanges={"bybit": {"key_ref": "secret://bybit/two"}},
    )
    assert settings.keyring.references == {"bybit": "secret://bybit/two"}


def test_a_key_is_read_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring = Keyring({"bybit": REFERENCE}, tmp_path)
    assert keyring.credentials("kraken") is None
    monkeypatch.setenv(VARIABLE, TEXT)
    assert keyring.credentials("bybit") == Credentials("the-key", "the-secret")
    monkeypatch.setenv(VARIABLE, "new:other:pass:word")
    assert keyring.credentials("bybit") == Credentials("new", "other", "pass:word")


@pytest.mark.parametrize("text", ["the-key", "the-key:", ":the-secret", "\n"])
def test_half_a_key_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ConfigError, match="key:secret") as told:
        Credentials.parse(REFERENCE, text)
    assert "the-" not in str(told.value)


def test_no_repr_shows_a_key() -> None:
    for shown in (repr(Credentials("the-key", "the-secret", "pw")), str([Credentials("a", "b")])):
        assert "the-" not in shown
        assert "pw" not in shown
        assert "'a'" not in shown
