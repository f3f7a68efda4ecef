"""What goes to Redis in one step: an offer for the gate and the texts that it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.publication.gate import GateOffer


@dataclass(frozen=True, slots=True)
class Publication:
    """A text for each time of the offer, as JSON.

    With an `envelope`, what is new becomes one message: the texts, with commas, between its two
    halves. Without one each text is a message of its own.
    """

    key: str
    """Where the mark is."""
    channel: str
    offer: GateOffer
    texts: tuple[bytes, ...]
    envelope: tuple[bytes, bytes] | None = None
