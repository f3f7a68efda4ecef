"""The renewal of leases, the same for jobs and for sessions of accounts.

Every lease of a worker is renewed each third of its term, whatever the work under it is doing. A
lease that could not be renewed in time is dropped by its holder, a tenth of a term before the
database gives it to somebody else (collector/lease_terms.py).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from collector.errors import DatabaseUnavailable
from workers.duty import Duty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.clock import Clock
    from collector.lease_terms import LeaseTerms

LOOKS_A_TERM = 10
"""How often within the time that a lease is trusted its holder looks at the clock."""


class Leasehold(Protocol):
    """A lease as its holder has it."""

    @property
    def trusted_until(self) -> float:
        """On the holder's monotonic clock; after it the holder stops by itself."""


L = TypeVar("L", bound=Leasehold)


class Lessor(Protocol[L]):
    """Where the leases come from."""

    @property
    def terms(self) -> LeaseTerms: ...

    async def renew(self, leases: Sequence[L]) -> tuple[list[L], list[L]]:
        """The leases for another term, and those that another worker holds by now."""


class LeaseRenewal(ABC, Generic[L]):
    """Keeps the leases of one worker."""

    def __init__(self, lessor: Lessor[L], clock: Clock, duty: str) -> None:
        self._lessor = lessor
        self._clock = clock
        self._duty = Duty(duty)

    @abstractmethod
    def leases(self) -> list[L]:
        """Those that are held now."""

    @abstractmethod
    def replace(self, lease: L) -> None:
        """Takes over a renewed lease, unless it was released meanwhile."""

    @abstractmethod
    def drop(self, lease: L, why: str) -> None:
        """Stops the work under a lease that is lost."""

    async def keep_renewing(self) -> None:
        """Until cancelled."""
        terms = self._lessor.terms
        look_every = min(terms.renew_every, terms.trust_seconds / LOOKS_A_TERM)
        next_renewal = self._clock.monotonic() + terms.renew_every
        while True:
            await self.pause(look_every)
            with self._duty.tolerated():
                self._drop_untrusted()
                is_due = self._clock.monotonic() >= next_renewal
                if is_due:
                    next_renewal = self._clock.monotonic() + terms.renew_every
                    await self._renew()
                await self.looked(renewed=is_due)

    async def pause(self, seconds: float) -> None:
        """Waits until the next look."""
        await asyncio.sleep(seconds)

    async def looked(self, *, renewed: bool) -> None:
        """What else is done with each look at the leases."""

    async def _renew(self) -> None:
        try:
            # A renewal that hangs must not keep us from looking at the clock.
            async with asyncio.timeout(self._lessor.terms.renew_every):
                renewed, lost = await self._lessor.renew(self.leases())
        except (DatabaseUnavailable, TimeoutError):
            return
        for lease in renewed:
            self.replace(lease)
        for lease in lost:
            self.drop(lease, "another worker holds it")

    def _drop_untrusted(self) -> None:
        now = self._clock.monotonic()
        for lease in self.leases():
            if now >= lease.trusted_until:
                self.drop(lease, "it could not be renewed in time")
