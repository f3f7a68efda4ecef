"""Bars as the JSON text Binance sends, at memory speed.

A page of a thousand bars is a table of bytes in which digits are filled in column by column; only
columns whose numbers differ in length are squeezed afterwards. A page of a few bars is formatted
the plain way, which is cheaper there. Both write the same text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import orjson

from collector.simulated import bars as row

if TYPE_CHECKING:
    from collector.market.timeframe import Timeframe
    from collector.simulated.bars import Bars
    from collector.simulated.noise import Flags, Ints

Row = list[Any]
Bytes = npt.NDArray[np.uint8]

_FEW = 24
_DECIMALS = 8
_SCALE = 10**_DECIMALS
_QUADS = np.frombuffer(b"".join(b"%04d" % number for number in range(10_000)), dtype=np.uint32)
_POWERS = 10 ** np.arange(19, dtype=np.int64)
_COLUMNS = (
    *(row.OPEN_MS, row.OPEN, row.HIGH, row.LOW, row.CLOSE, row.VOLUME),
    *(-1, row.QUOTE, row.TRADES, row.TAKER, row.TAKER_QUOTE),
)
"""Binance's order. -1 stands for the close time, which no bar stores."""
_PLAIN = {row.OPEN_MS, row.TRADES, -1}


def decimal(value: int, digits: int) -> str:
    """Binance's spelling of an amount: always eight decimals."""
    scaled = value * 10 ** (_DECIMALS - digits)
    return f"{scaled // _SCALE}.{scaled % _SCALE:08d}"


def page_rows(bars: Bars, frame: Timeframe) -> list[Row]:
    """Twelve values a bar, as a client sees them after parsing."""
    digits = bars.digits
    columns: list[list[Any]] = []
    for column in _COLUMNS:
        values = _values(bars, column, frame).tolist()
        if column not in _PLAIN:
            values = [decimal(value, digits[column]) for value in values]
        columns.append(values)
    return [[*values, "0"] for values in zip(*columns, strict=True)]


def page_json(bars: Bars, frame: Timeframe) -> bytes:
    """The body of an answer to /api/v3/klines."""
    if len(bars) <= _FEW:
        return orjson.dumps(page_rows(bars, frame))
    pieces: list[_Piece] = [_text(b"[")]
    for column in _COLUMNS:
        values = _values(bars, column, frame)
        if column in _PLAIN:
            pieces += [_number(values, 0), _text(b",")]
        else:
            digits = bars.digits[column]
            tail = b"0" * (_DECIMALS - digits) if digits else b".00000000"
            pieces += [_text(b'"'), _number(values, digits), _text(tail + b'",')]
    pieces.append(_text(b'"0"],'))
    return b"[" + _assemble(pieces, len(bars))[:-1] + b"]"


_Piece = tuple[Bytes, "Flags | None"]


def _assemble(pieces: list[_Piece], count: int) -> bytes:
    """Lays the pieces side by side and drops the leading zeros they marked."""
    width = sum(piece.shape[-1] for piece, _ in pieces)
    sheet = np.empty((count, width), dtype=np.uint8)
    kept: Flags | None = None
    at = 0
    for piece, keep in pieces:
        end = at + piece.shape[-1]
        sheet[:, at:end] = piece
        if keep is not None:
            kept = np.ones((count, width), dtype=np.bool_) if kept is None else kept
            kept[:, at : at + keep.shape[1]] = keep
        at = end
    return sheet.tobytes() if kept is None else sheet[kept].tobytes()


def _text(text: bytes) -> _Piece:
    return np.frombuffer(text, dtype=np.uint8), None


def _number(values: Ints, digits: int) -> _Piece:
    """Decimal text of every value, as wide as the widest, and which of its digits to keep."""
    fewest, most = (_length(int(bound), digits) for bound in (values.min(), values.max()))
    figures = _figures(values, most)
    keep: Flags | None = None
    if fewest != most:
        # Leading zeros, but never the digit before the point.
        limits = _POWERS[digits + 1 : most][::-1]
        keep = values[:, None] >= limits
    if not digits:
        return figures, keep
    point = np.full((len(values), 1), ord("."), dtype=np.uint8)
    return np.concatenate([figures[:, :-digits], point, figures[:, -digits:]], axis=1), keep


def _length(value: int, digits: int) -> int:
    return max(len(str(value)), digits + 1)


def _figures(values: Ints, width: int) -> Bytes:
    """The last `width` digits of every value, four at a time from a table."""
    groups = -(-width // 4)
    quads = np.empty((len(values), groups), dtype=np.uint32)
    rest = values
    for group in range(groups - 1, 0, -1):
        above = rest // 10_000
        quads[:, group] = _QUADS[rest - above * 10_000]
        rest = above
    quads[:, 0] = _QUADS[rest]
    return quads.view(np.uint8)[:, groups * 4 - width :]


def _values(bars: Bars, column: int, frame: Timeframe) -> Ints:
    return frame.ends(bars.open_ms) - 1 if column == -1 else bars.table[column]
