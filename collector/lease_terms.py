"""How long a lease lasts, and how long its holder may trust it: the same rule for every lease."""

from __future__ import annotations

from dataclasses import dataclass

TTL_MS = 30_000


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """How long leases last. Every process on one database should use the same values."""

    ttl_ms: int = TTL_MS

    @property
    def renew_every(self) -> float:
        """Seconds between renewals: two may fail before the lease does."""
        return self.ttl_ms / 3000

    @property
    def trust_seconds(self) -> float:
        """How long a holder trusts a lease after sending the request for it: TTL minus a tenth."""
        return self.ttl_ms * 0.9 / 1000
