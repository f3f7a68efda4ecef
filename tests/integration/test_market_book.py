"""The book of markets: what was listed when, what changed, and what is not processed yet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from collector.exchanges.port import Market, Markets
from collector.markets.book import MarketBook

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document

TICK = {"precision": {"price": 0.01}, "limits": {"amount": {"min": 0.1}}}


def market(symbol: str, **fields: Any) -> Market:
    base, _, quote = symbol.partition("/")
    usual = {"venue_id": base + quote, "base": base, "quote": quote, "raw": TICK}
    return Market(symbol, **{**usual, **fields})


def listing(*markets: Market) -> Markets:
    return Markets("simulated", markets, ("1m", "1h"))


BTC, ETH, SOL = market("BTC/USDT"), market("ETH/USDT"), market("SOL/USDT")


async def found(book: MarketBook, symbol: str) -> Document:
    document = await book.find("simulated", symbol)
    assert document is not None
    return document


async def news(book: MarketBook) -> dict[str, str]:
    return {each["symbol"]: each["news"]["kind"] for each in await book.news("simulated")}


async def test_nothing_is_news_on_the_first_look(database: Database) -> None:
    book = MarketBook(database)
    await book.save(listing(BTC, ETH))
    assert await news(book) == {}
    btc = await found(book, "BTC/USDT")
    assert btc["active"]
    assert btc["first_seen_at"] == btc["seen_at"]
    assert (btc["precision"], btc["limits"]) == (TICK["precision"], TICK["limits"])


async def test_a_market_leaves_and_comes_back_and_its_epochs_are_kept(database: Database) -> None:
    book = MarketBook(database)
    since = replace(BTC, listed_ms=1_000)
    await book.save(listing(since, ETH))
    await book.save(listing(replace(since, active=False), ETH))
    assert await news(book) == {"BTC/USDT": "delisted"}
    gone = await found(book, "BTC/USDT")
    assert not gone["active"]
    assert gone["epochs"] == [{"listed": 1_000, "delisted": gone["delisted_at"]}]
    await book.save(listing(since, ETH))
    assert await news(book) == {"BTC/USDT": "relisted"}
    back = await found(book, "BTC/USDT")
    assert back["active"]
    assert back["delisted_at"] is None
    # It was still gone at the last look, so the new epoch begins no earlier.
    assert back["relisted_ms"] >= gone["delisted_at"]
    await book.save(listing(ETH))
    again = await found(book, "BTC/USDT")
    assert [each["listed"] for each in again["epochs"]] == [1_000, back["relisted_ms"]]


async def test_a_listing_date_of_the_venue_opens_the_epoch(database: Database) -> None:
    book = MarketBook(database)
    await book.save(listing(BTC, ETH))
    await book.save(listing(ETH))
    later = (await found(book, "BTC/USDT"))["delisted_at"] + 1
    await book.save(listing(replace(BTC, listed_ms=later), ETH))
    assert (await found(book, "BTC/USDT"))["relisted_ms"] == later


async def test_the_same_answer_again_is_no_news(database: Database) -> None:
    book = MarketBook(database)
    await book.save(listing(BTC, ETH))
    for _ in range(2):
        await book.save(listing(ETH))
    assert len((await found(book, "BTC/USDT"))["epochs"]) == 1
    (told,) = await book.news("simulated")
    await book.heeded(told)
    await book.save(listing(ETH))
    assert await news(book) == {}


async def test_newer_news_outlive_the_older_ones_being_heeded(database: Database) -> None:
    book = MarketBook(database)
    await book.save(listing(BTC, ETH))
    await book.save(listing(ETH))
    (old,) = await book.news("simulated")
    await book.save(listing(BTC, ETH))
    await book.heeded({**old, "news": {**old["news"], "at": old["news"]["at"] - 1}})
    assert await news(book) == {"BTC/USDT": "relisted"}


async def test_a_new_symbol_with_an_old_name_at_the_venue_is_a_rename(database: Database) -> None:
    book = MarketBook(database)
    await book.save(listing(BTC, ETH))
    await book.save(listing(ETH, market("NEW/USDT", venue_id=BTC.venue_id)))
    assert await news(book) == {"BTC/USDT": "renamed"}
    old, new = await found(book, "BTC/USDT"), await found(book, "NEW/USDT")
    assert (old["active"], old["renamed_to"]) == (False, "NEW/USDT")
    assert (new["active"], new["renamed_from"]) == (True, "BTC/USDT")


async def test_a_contract_of_the_same_name_is_no_rename(database: Database) -> None:
    book = MarketBook(database)
    await book.save(listing(BTC, ETH))
    swap = market("BTC/USDT:USDT", venue_id=BTC.venue_id, kind="swap")
    await book.save(listing(ETH, swap))
    assert await news(book) == {"BTC/USDT": "delisted", "BTC/USDT:USDT": "listed"}


async def test_limits_and_precision_that_change_are_noted(database: Database) -> None:
    book = MarketBook(database)
    await book.save(listing(BTC, ETH))
    finer = {**TICK, "precision": {"price": 0.001}}
    await book.save(listing(replace(BTC, raw=finer), ETH))
    await book.save(listing(replace(BTC, raw=finer), ETH))
    (noted,) = (await found(book, "BTC/USDT"))["changes"]
    assert noted["precision"] == {"from": {"price": 0.01}, "to": {"price": 0.001}}
    assert "limits" not in noted
    assert "changes" not in await found(book, "ETH/USDT")


async def test_an_answer_that_lost_most_markets_delists_nobody(database: Database) -> None:
    book = MarketBook(database)
    many = [market(f"SIM{number}/USDT") for number in range(30)]
    await book.save(listing(*many))
    await book.save(listing(*many[:5]))
    assert await news(book) == {}
    assert (await found(book, "SIM29/USDT"))["active"]
    # What the venue itself says of a market is believed.
    await book.save(listing(replace(many[0], active=False), *many[1:5]))
    assert await news(book) == {"SIM0/USDT": "delisted"}
