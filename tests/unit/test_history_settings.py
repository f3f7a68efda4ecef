"""Settings of trade history, by their own names and by those of a node's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.errors import ConfigError
from collector.history.policy import CrossNet
from collector.history.terms import HistoryTerms
from collector.settings import load

if TYPE_CHECKING:
    from pathlib import Path


def loaded(folder: Path, text: str) -> HistoryTerms:
    file = folder / "collector.yaml"
    file.write_text(text, "utf-8")
    return load(file).history.terms


def test_without_any_there_are_no_networks(tmp_path: Path) -> None:
    assert loaded(tmp_path, "") == HistoryTerms((), CrossNet.REJECT, cache=True, bucket_sec=60)


def test_all_of_them_are_read(tmp_path: Path) -> None:
    text = "history: {networks: [b, a, b], cross_net_policy: warn, cache: false, bucket_sec: 30}"
    assert loaded(tmp_path, text) == HistoryTerms(("b", "a"), CrossNet.WARN, False, 30)


def test_the_names_of_a_node_mean_the_same(tmp_path: Path) -> None:
    text = "history: {networks: [a]}\nsrv_dex: {history_cache: false, history_bucket_sec: 30}"
    assert loaded(tmp_path, text) == HistoryTerms(("a",), cache=False, bucket_sec=30)


def test_they_go_together_with_the_ones_of_fxcm(tmp_path: Path) -> None:
    text = "fxcm: {user: u}\nhistory: {networks: [a], bucket_sec: 30, max_calls_per_min: 9}"
    assert loaded(tmp_path, text) == HistoryTerms(("a",), bucket_sec=30)


def test_two_values_of_one_setting_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"srv_dex.history_bucket_sec: 30 and history.bucket_sec"):
        loaded(tmp_path, "history: {bucket_sec: 60}\nsrv_dex: {history_bucket_sec: 30}")


@pytest.mark.parametrize(
    "text",
    [
        "history: {networks: [Upper]}",
        "history: {networks: ['../x']}",
        "history: {bucket_sec: 0}",
        "history: {cross_net_policy: maybe}",
        "history: {surprise: 1}",
        "srv_dex: {history_cache: true, other: 1}",
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"history|srv_dex"):
        loaded(tmp_path, text)


def test_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTOR_HISTORY__BUCKET_SEC", "15")
    monkeypatch.setenv("COLLECTOR_HISTORY__NETWORKS", '["x"]')
    assert loaded(tmp_path, "history: {bucket_sec: 30}") == HistoryTerms(("x",), bucket_sec=15)
