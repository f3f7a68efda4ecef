"""Mode 5: live prices, how old the last ticks are, and the cadence that follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.tui.sheet import Cell, Grid, Sheet, Tone, columns, line, row
from collector.tui.words import duration, price, seconds, sparkline

if TYPE_CHECKING:
    from collector.tui.fleet_picture import Document, FleetPicture

ROWS = 40
_STATES = {
    "ok": Tone.GOOD,
    "STREAM": Tone.GOOD,
    "active": Tone.GOOD,
    "open": Tone.GOOD,
    "waiting": Tone.WARNING,
    "lag": Tone.WARNING,
    "IDLE": Tone.WARNING,
    "RECOVERING": Tone.WARNING,
    "paused": Tone.WARNING,
    "closed": Tone.WARNING,
    "stale": Tone.BAD,
    "stopped": Tone.BAD,
    "DISCONNECTED": Tone.BAD,
}
_COLUMNS = columns("exchange|symbol|>bid|>ask|>mid|>spread@110|>tick age|trail")
_CADENCE = columns("exchange|prices|history|>m1|>m5|reason|>silence")


def prices(picture: FleetPicture) -> Sheet:
    beats = sorted(picture.heartbeats.items())
    return Sheet(
        "Live prices",
        lines=tuple(_stream(picture, name, beat["payload"]) for name, beat in beats),
        grids=(
            Grid(_CADENCE, tuple(_cadence(name, beat) for name, beat in beats), "Adaptive cadence"),
            Grid(_COLUMNS, tuple(_rows(picture)), "Prices"),
        ),
    )


def mid_trail(exchange_id: str, symbol: str) -> str:
    return f"mid:{exchange_id}:{symbol}"


def toned(state: Any) -> Cell:
    """A state in its tone."""
    return Cell(str(state or "-"), _STATES.get(str(state), Tone.PLAIN))


def _stream(picture: FleetPicture, name: str, beat: Document) -> tuple[Cell, ...]:
    stream = (beat.get("context") or {}).get("price_stream") or {}
    market = (picture.markets.get(name) or {}).get("payload") or {}
    opens = market.get("next_open_seconds") if market.get("state") == "closed" else None
    return line(
        Cell(name, Tone.STRONG),
        "  ",
        toned(beat.get("state")),
        "  prices ",
        toned(stream.get("state")),
        f"  silence {seconds(beat.get('tick_silence_seconds')) or '-'}",
        "  market ",
        toned(market.get("state")),
        "" if opens is None else f", opens in {duration(opens * 1000)}",
        f"  fence {beat.get('fence') or '-'}",
        f"  errors {stream.get('tick_errors') or 0}",
        f"  reconnects {stream.get('reconnects') or 0}",
    )


def _cadence(name: str, beat: Document) -> tuple[Cell, ...]:
    stream = (beat["payload"].get("context") or {}).get("price_stream") or {}
    state, poll = stream.get("stream_state") or {}, stream.get("adaptive_poll") or {}
    return row(
        Cell(name, Tone.STRONG),
        toned(state.get("prices")),
        toned(state.get("history")),
        seconds(poll.get("current_m1")),
        seconds(poll.get("current_m5")),
        str(poll.get("target_reason") or ""),
        seconds(poll.get("tick_silence_seconds")),
    )


def _rows(picture: FleetPicture) -> list[tuple[Cell, ...]]:
    rows = []
    for (exchange_id, symbol), found in sorted(picture.prices.items())[:ROWS]:
        known = found["payload"]
        bid, ask = known.get("bid"), known.get("ask")
        age = picture.at_ms / 1000 - float(known.get("tick_ts") or 0)
        tone = Tone.GOOD if age < 10 else Tone.WARNING if age <= 30 else Tone.BAD
        spread = None if bid is None or ask is None else f"{ask - bid:,.6g}"
        rows.append(
            row(
                exchange_id,
                Cell(symbol, Tone.STRONG),
                price(bid),
                price(ask),
                price(known.get("mid")),
                spread,
                Cell(duration(max(0.0, age) * 1000), tone),
                sparkline(picture.trail(mid_trail(exchange_id, symbol)), 12),
            )
        )
    return rows
