"""The configuration of trade history: which networks there are, and how each is kept."""

from __future__ import annotations

from dataclasses import dataclass

from collector.history.policy import CrossNet

BUCKET_SEC = 60


@dataclass(frozen=True, slots=True)
class HistoryTerms:
    """The same for every process of one deployment.

    networks    events are taken in for these and no others
    cross_net   what becomes of trades between two nets
    cache       False: every answer is made from the ledger
    bucket_sec  how long a stored bucket is
    """

    networks: tuple[str, ...] = ()
    cross_net: CrossNet = CrossNet.REJECT
    cache: bool = True
    bucket_sec: int = BUCKET_SEC
