"""`collector market-rate` and `collector volume`: trade history of a network's pair."""

from enum import StrEnum
from typing import Annotated

import typer

from collector.cli.arguments import End, Start
from collector.cli.verb import Asked, given, verb

app = typer.Typer()


class RateMode(StrEnum):
    SPOT = "spot"
    VWAP = "vwap"
    OHLCV = "ohlcv"


Network = Annotated[str, typer.Argument(metavar="NETWORK", help="A network of `history.networks`.")]
Base = Annotated[str, typer.Argument(metavar="BASE", help="NET:TOKEN, the smaller of the two.")]
Quote = Annotated[str, typer.Argument(metavar="QUOTE", help="NET:TOKEN.")]
Bucket = Annotated[
    int | None, typer.Option(min=1, help="Seconds, a multiple of `history.bucket_sec`.")
]
Fill = Annotated[bool, typer.Option("--fill", help="Candles at the last price in the gaps.")]
Limit = Annotated[int, typer.Option(min=1, max=100_000, help="At most so many candles.")]
Cursor = Annotated[str | None, typer.Option(help="Go on after an earlier list.")]


@verb(app, "market-rate")
def market_rate(
    asked: Asked,
    network: Network,
    base: Base,
    quote: Quote,
    mode: Annotated[
        RateMode, typer.Option(help="The last price, the mean, or candles.")
    ] = RateMode.SPOT,
    start: Start = None,
    end: End = None,
    bucket: Bucket = None,
    fill: Fill = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """Show the price of a pair: that of the last trade, the mean by volume, or candles.

    Example: `collector market-rate riemann 1:GOLD 1:OIL --mode ohlcv --bucket 3600 --since 7d`
    """
    from collector.cli.actions import history
    from collector.fleet.interface import PairName

    wanted = history.TypedRange(start, end, bucket, fill, limit, cursor)
    pair = PairName(network, base, quote)
    given(asked, history.market_rate(asked, pair, mode.value, wanted))


@verb(app, "volume")
def volume(
    asked: Asked,
    network: Network,
    base: Base,
    quote: Quote,
    start: Start = None,
    end: End = None,
    bucket: Bucket = None,
    fill: Fill = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """Show what was traded of a pair; with `--bucket` in each interval of time.

    Example: `collector volume riemann 1:GOLD 1:OIL --since 30d --bucket 86400`
    """
    from collector.cli.actions import history
    from collector.fleet.interface import PairName

    wanted = history.TypedRange(start, end, bucket, fill, limit, cursor)
    given(asked, history.volume(asked, PairName(network, base, quote), wanted))
