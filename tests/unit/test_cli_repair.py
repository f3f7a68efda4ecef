"""What `collector repair` shows of what it did."""

from __future__ import annotations

import io

from rich.console import Console

from collector.cli.actions.repair import shown_repair
from collector.market.series import Series
from collector.operations.repair import Fetching, Repaired
from collector.store.repair import Damage

BTC = Series.of("binance", "BTC/USDT", "1m")
DAMAGE = Damage("binance/BTC-USDT/1m.parquet", "sealed", "a page is wrong", BTC, rows=9)


def text_of(
    *,
    damages: tuple[Damage, ...] = (),
    fetching: tuple[Fetching, ...] = (),
    unlisted: tuple[str, ...] = (),
) -> str:
    done = Repaired("binance", ["BTC/USDT"], damages, fetching, unlisted, False, ())
    out = Console(file=io.StringIO(), width=200)
    out.print(shown_repair(done))
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_what_other_files_still_have_is_not_announced_by_an_empty_table() -> None:
    text = text_of(damages=(DAMAGE,))
    assert "set aside" in text
    assert "will be fetched" not in text
    assert "no bar is lost" in text


def test_bars_that_are_lost_are_listed_with_or_without_a_damaged_file() -> None:
    lost = Fetching("BTC/USDT", "1m", 0, 60_000)
    for damages in ((), (DAMAGE,)):
        text = text_of(damages=damages, fetching=(lost,))
        assert "will be fetched" in text
        assert "1970-01-01 00:01" in text
        assert ("set aside" in text) == bool(damages)
        assert "no bar is lost" not in text


def test_a_loss_that_no_exchange_can_fill_is_not_called_none() -> None:
    assert "no bar is lost" not in text_of(damages=(DAMAGE,), unlisted=("BTC/USDT",))
