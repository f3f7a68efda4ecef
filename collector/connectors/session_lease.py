"""The session lease: which worker may be logged in to an account that allows one login.

Why it is built this way
------------------------
FXCM ends the first session of an account when a second one logs in. So one worker of the fleet
holds the account, runs all jobs of that exchange, and the others stand by. Nobody can tell from
outside whether a worker is dead, stopped or cut off. The lease therefore expires by itself, and
three parties keep one promise each, as with jobs (jobs/lease.py).

**MongoDB** hands the lease out in one statement on its own clock, to one worker. It lasts until
`lease_until`; the next worker may have it from `free_at` on, which is later by the time a logout
takes. Each holder gets a `fence` that is one higher, and whatever it writes here has to match it.

**The worker** renews every third of the lease. It trusts it only until a tenth before its end, from
the moment at which it *sent* the last renewal that succeeded, on its own monotonic clock. The
server's lease began later, so the worker always stops first.

**The sidecar process** that holds the session gets the seconds that are left with every line from
its worker. When they pass without another line, or its input ends, it logs out and exits; a worker
that was killed or stopped leaves no session behind. That takes at most `LOGOUT_MS`.

A worker that drains logs out first and then frees the lease, so that a successor need not wait.

The lease stands in the connector's document as `session`, with the state that its holder reports.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pymongo import ReturnDocument

from collector.exchanges.exclusive import SessionState
from collector.exchanges.registry import is_exclusive
from collector.lease_terms import LeaseTerms
from collector.mongo.client import EPOCH_SECONDS, NOW_MS, WAKE, Document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.clock import Clock
    from collector.connectors.connector import Connector
    from collector.mongo.client import Database

LOGOUT_MS = 30_000
"""A logout over a dead line takes up to 27 seconds before the sidecar is gone in any case."""
NOT_HELD = "no worker holds the session"


@dataclass(frozen=True, slots=True)
class SessionTerms(LeaseTerms):
    """How long a session lease lasts, and how long a logout may take."""

    logout_ms: int = LOGOUT_MS

    @property
    def free_ms(self) -> int:
        """How long after its last renewal a session that is not logged out is free."""
        return self.ttl_ms + self.logout_ms


@dataclass(frozen=True, slots=True)
class SessionLease:
    """The right to log in to an exchange's account, as long as the fence stands."""

    exchange_id: str
    worker_id: str
    fence: int
    trusted_until: float
    """On the holder's monotonic clock; after it the holder stops by itself."""

    def left(self, monotonic: float) -> float:
        return max(0.0, self.trusted_until - monotonic)


@dataclass(frozen=True, slots=True)
class ShownSession:
    """The session of an exchange as it is now; moments are epoch ms.

    `since` is when it came into this state.
    """

    state: SessionState
    since: int
    reason: str
    holder: str | None
    lease_until: int | None
    fence: int
    diag: Mapping[str, Any] | None = None
    """What its holder reported beside the state."""

    @classmethod
    def of(cls, session: Mapping[str, Any] | None, now_ms: int) -> ShownSession:
        """What was reported last counts as long as the lease of whoever reported it."""
        if not session:
            return cls(SessionState.DISCONNECTED, 0, NOT_HELD, None, None, 0)
        fence, until = int(session["fence"]), int(session["lease_until"])
        if session["holder"] is None or until <= now_ms:
            was_off = session["state"] == SessionState.DISCONNECTED
            since = session["state_at"] if was_off else until
            reason = session["reason"] if session["holder"] is None else NOT_HELD
            return cls(SessionState.DISCONNECTED, int(since), reason, None, None, fence)
        return cls(
            SessionState(session["state"]),
            int(session["state_at"]),
            session["reason"],
            session["holder"],
            until,
            fence,
            session.get("diag"),
        )


def shown_session(connector: Connector, now_ms: int) -> ShownSession | None:
    """The session of an exchange whose account allows one login; None for every other exchange."""
    if not is_exclusive(connector.exchange_id):
        return None
    return ShownSession.of(connector.document.get("session"), now_ms)


class SessionLeases:
    """Every statement on session leases, for one worker."""

    def __init__(
        self, database: Database, worker_id: str, clock: Clock, terms: SessionTerms | None = None
    ) -> None:
        self.terms = terms or SessionTerms()
        self._connectors = database.connectors
        self._worker_id = worker_id
        self._clock = clock

    async def take(self, exchange_id: str) -> SessionLease | None:
        """The lease, if it is free now; None when somebody has it or there is no connector."""
        asked_at = self._clock.monotonic()
        fields: Document = {
            "holder": self._worker_id,
            "fence": {"$add": [{"$ifNull": ["$session.fence", 0]}, 1]},
            **self._until(),
            "diag": None,
            **_state(SessionState.DISCONNECTED, "not logged in"),
        }
        document = await self._connectors.find_one_and_update(
            {
                "exchange_id": exchange_id,
                "status": {"$ne": "deleted"},
                "$expr": _FREE,
            },
            _changed(fields),
            projection={"session.fence": 1},
            return_document=ReturnDocument.AFTER,
        )
        if document is None:
            return None
        trusted_until = asked_at + self.terms.trust_seconds
        return SessionLease(
            exchange_id, self._worker_id, document["session"]["fence"], trusted_until
        )

    async def renew(
        self, leases: Sequence[SessionLease]
    ) -> tuple[list[SessionLease], list[SessionLease]]:
        """The leases for another term, and those that another worker holds by now."""
        renewed: list[SessionLease] = []
        lost: list[SessionLease] = []
        for lease in leases:
            trusted_until = self._clock.monotonic() + self.terms.trust_seconds
            result = await self._connectors.update_one(_held(lease), [_set(self._until())])
            if result.matched_count:
                renewed.append(replace(lease, trusted_until=trusted_until))
            else:
                lost.append(lease)
        return renewed, lost

    async def release(self, lease: SessionLease, reason: str) -> None:
        """Ends the lease: call it when the session is logged out. A successor may have it now."""
        fields: Document = {
            "holder": None,
            "lease_until": NOW_MS,
            "free_at": NOW_MS,
            **_state(SessionState.DISCONNECTED, reason),
        }
        await self._connectors.update_one(_held(lease), [*_changed(fields), {"$set": _NOTICED}])

    async def report(self, lease: SessionLease, state: SessionState, reason: str) -> None:
        """Writes the session's state, unless another worker has the session by now."""
        await self._connectors.update_one(_held(lease), _changed(_state(state, reason)))

    async def diagnose(self, lease: SessionLease, diag: Mapping[str, Any]) -> None:
        """Writes what is known beside the state, unless another worker has the session by now."""
        await self._connectors.update_one(
            _held(lease), _changed({"diag": {"$literal": dict(diag)}})
        )

    async def report_unable(self, exchange_id: str, reason: str) -> None:
        """Why no session can be opened here, shown as long as no worker holds it."""
        fields: Document = {
            "holder": None,
            "fence": {"$ifNull": ["$session.fence", 0]},
            "lease_until": {"$ifNull": ["$session.lease_until", 0]},
            "free_at": {"$ifNull": ["$session.free_at", 0]},
            **_state(SessionState.DISCONNECTED, reason),
        }
        await self._connectors.update_one(
            {"exchange_id": exchange_id, "status": {"$ne": "deleted"}, "$expr": _FREE},
            _changed(fields),
        )

    def _until(self) -> Document:
        return {
            "lease_until": {"$add": [NOW_MS, self.terms.ttl_ms]},
            "lease_ms": self.terms.ttl_ms,
            "free_at": {"$add": [NOW_MS, self.terms.free_ms]},
            "free_ms": self.terms.free_ms,
        }


def recovered_session(terms: SessionTerms | None = None) -> Document:
    """The session of a connector that is created again after its database was lost.

    Its fence is above all that were given before. It is free once a worker that still has the
    former lease has noticed that it cannot renew it, and has logged out.
    """
    lasting = terms or SessionTerms()
    return {
        "holder": None,
        "fence": EPOCH_SECONDS,
        "lease_until": 0,
        "lease_ms": lasting.ttl_ms,
        "free_at": {"$add": [NOW_MS, lasting.free_ms]},
        "free_ms": lasting.free_ms,
        "state": SessionState.DISCONNECTED.value,
        "state_at": NOW_MS,
        "reason": NOT_HELD,
    }


async def sessions_begin_anew(database: Database) -> None:
    """For connectors that came from a backup."""
    await database.connectors.update_many(
        {"session": {"$exists": True}}, [{"$set": {"session": recovered_session()}}]
    )


_FREE: Document = {"$lte": [{"$ifNull": ["$session.free_at", 0]}, NOW_MS]}
_NOTICED: Document = {"wake": WAKE}


def _held(lease: SessionLease) -> Document:
    """The connector, as long as its session is this lease's."""
    return {
        "exchange_id": lease.exchange_id,
        "session.fence": lease.fence,
        "session.holder": lease.worker_id,
    }


def _state(state: SessionState, reason: str) -> Document:
    """A state, with the moment from which on it has been this one."""
    same = {"$eq": ["$session.state", state.value]}
    return {
        "state": state.value,
        "state_at": {"$cond": [same, "$session.state_at", NOW_MS]},
        "reason": {"$literal": reason},
    }


def _changed(fields: Document) -> list[Document]:
    """A change that the API reports to its listeners."""
    return [_set(fields), {"$set": {"updated_at": "$$NOW"}}]


def _set(fields: Document) -> Document:
    return {"$set": {f"session.{name}": value for name, value in fields.items()}}
