"""Symbols and exchange ids as names of folders.

`BTC/USDT` lives in `BTC-USDT`, `BTC/USDT:USDT` in `BTC-USDT_USDT`. Capital letters and digits stand
for themselves, `/` is written `-`, `:` is written `_`, and every other byte of the symbol's UTF-8
is written `~XX`. So a name holds nothing but `A-Z 0-9 - _ ~`: it cannot leave its folder, means the
same where file names ignore case or are normalised, and decodes to exactly one symbol.
"""

from __future__ import annotations

import re

LONGEST_NAME = 200
"""Bytes of one folder's name; file systems end at 255 and temporary names need room."""

_PLAIN = {**{c: c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"}, "/": "-", ":": "_"}
_SYMBOL_OF = {name: char for char, name in _PLAIN.items()}
_EXCHANGE_ID = re.compile(r"[a-z][a-z0-9_]{0,63}")
# Names Windows keeps for devices, and the folder of an exchange that holds its group parts.
_TAKEN = {"CON", "PRN", "AUX", "NUL", "PARTS"} | {
    f"{d}{n}" for d in ("COM", "LPT") for n in "0123456789"
}


def symbol_to_name(symbol: str) -> str:
    """The folder of a symbol; no two symbols share one. ValueError if it cannot have one."""
    if not symbol:
        raise ValueError("a symbol cannot be empty")
    try:
        name = "".join(_PLAIN.get(char) or _escape(char) for char in symbol)
    except UnicodeEncodeError:
        raise ValueError(f"{symbol!r} is not valid text") from None
    if name in _TAKEN:
        name = _escape(name[0]) + name[1:]
    if len(name) > LONGEST_NAME:
        raise ValueError(f"{symbol[:40]!r}... is too long for a symbol")
    return name


def name_to_symbol(name: str) -> str:
    """The symbol whose folder this is. ValueError for a name that no symbol has."""
    raw = bytearray()
    at = 0
    while at < len(name):
        if name[at] == "~":
            raw += _unescape(name[at + 1 : at + 3], name)
            at += 3
        elif name[at] in _SYMBOL_OF:
            raw += _SYMBOL_OF[name[at]].encode()
            at += 1
        else:
            raise ValueError(f"{name!r} is not the folder of a symbol")
    try:
        symbol = raw.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{name!r} is not the folder of a symbol") from None
    if not symbol or symbol_to_name(symbol) != name:
        raise ValueError(f"{name!r} is not how a symbol's folder is written")
    return symbol


def checked_exchange_id(exchange_id: str) -> str:
    """The id itself, which is also its folder. ValueError unless it is a plain lower-case word."""
    if _EXCHANGE_ID.fullmatch(exchange_id) is None or exchange_id.upper() in _TAKEN:
        raise ValueError(f"{exchange_id!r} is not an exchange id such as binance")
    return exchange_id


def _escape(char: str) -> str:
    return "".join(f"~{byte:02X}" for byte in char.encode())


def _unescape(digits: str, name: str) -> bytes:
    if re.fullmatch(r"[0-9A-F]{2}", digits) is None:
        raise ValueError(f"{name!r} is not the folder of a symbol")
    return bytes.fromhex(digits)
