"""The token: one request may leave now."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Token:
    """The right to send one request. `asked_at` is when its command was sent, on our own clock."""

    number: int
    asked_at: float
    granted_ms: int
    """The same moment or a little later, on the server's clock."""
    life_ms: int
    resets_at: tuple[float, ...] = ()
    """When the fixed windows it was granted from end, on our own clock; never for sliding ones."""
    together: int = 1
    """How many came with one command."""
    probe: str | None = None
    """The probe's id when the circuit gate let this one request through; see circuit/fold.py."""

    @property
    def good_until(self) -> float:
        """When it may be spent at the latest. The grant happened after `asked_at`, never before."""
        return self.asked_at + self.life_ms / 1000
