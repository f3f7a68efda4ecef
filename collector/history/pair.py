"""Assets and canonical pairs: which of two assets is the base, and how a pair is written."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from collector.history.refusal import Refused
from collector.market.symbol import symbol_to_name

_NET = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_TOKEN = re.compile(r"[^\s/\x00-\x1f\x7f\ud800-\udfff]{1,128}")
_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Asset:
    """A token of a chain, written `NET:TOKEN`. A net id that is a number is kept without zeros."""

    net_id: str
    token: str

    @classmethod
    def of(cls, net_id: Any, token: Any) -> Asset:
        """Raises Refused for a net id or a token that cannot be written down."""
        net = str(net_id) if isinstance(net_id, int) and not isinstance(net_id, bool) else net_id
        if not isinstance(net, str) or _NET.fullmatch(net) is None:
            raise Refused(f"{net_id!r} is no net id")
        if not isinstance(token, str) or _TOKEN.fullmatch(token) is None:
            raise Refused(f"{token!r} is no token")
        return cls(net.lstrip("0") or "0" if _NUMBER.fullmatch(net) else net, token)

    @classmethod
    def parse(cls, text: str) -> Asset:
        net, colon, token = text.partition(":")
        if not colon:
            raise Refused(f"{text!r} is not NET:TOKEN")
        return cls.of(net, token)

    @property
    def order(self) -> tuple[bool, int, str, str]:
        """Numbers by value and before names; names and tokens as text."""
        is_name = _NUMBER.fullmatch(self.net_id) is None
        return is_name, 0 if is_name else int(self.net_id), self.net_id, self.token

    def __str__(self) -> str:
        return f"{self.net_id}:{self.token}"


@dataclass(frozen=True, slots=True)
class Pair:
    """BASE/QUOTE, the base being the smaller asset. Prices are quote for one base."""

    base: Asset
    quote: Asset

    @classmethod
    def between(cls, one: Asset, other: Asset) -> Pair:
        """The canonical pair of two assets, whichever way round they are given."""
        if one == other:
            raise Refused(f"{one} cannot be traded for itself")
        return cls(*sorted((one, other), key=lambda asset: asset.order))

    @classmethod
    def canonical(cls, base: Asset, quote: Asset) -> Pair:
        """The pair as it was given. Raises Refused, naming the canonical one, when reversed."""
        pair = cls.between(base, quote)
        if pair.base != base:
            raise Refused(f"{base}/{quote} is reversed: the canonical pair is {pair}")
        return pair

    @classmethod
    def parse(cls, text: str) -> Pair:
        base, _, quote = text.partition("/")
        return cls.canonical(Asset.parse(base), Asset.parse(quote))

    @property
    def is_cross_net(self) -> bool:
        return self.base.net_id != self.quote.net_id

    @property
    def folder(self) -> str:
        """Its folder's name; no two pairs share one, even where case is ignored."""
        try:
            return symbol_to_name(str(self))
        except ValueError:  # Two long addresses: longer than a folder's name may be.
            return f"~{hashlib.sha256(str(self).encode()).hexdigest()[:40]}"

    def __str__(self) -> str:
        return f"{self.base}/{self.quote}"
