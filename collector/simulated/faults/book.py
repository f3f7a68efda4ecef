"""Which faults are switched on, and which requests they affect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.simulated.faults.arrival import LateArrival
from collector.simulated.faults.catalogue import fault_json
from collector.simulated.faults.history import Missing, NoTrade, Revision
from collector.simulated.faults.record import RequestFault, Strike
from collector.simulated.faults.socket import SocketFault
from collector.simulated.noise import fraction

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from collector.simulated.faults.record import Fault
    from collector.simulated.request import PublicRequest


@dataclass(slots=True)
class _Entry:
    """A fault that is switched on, and what it has done so far."""

    id: int
    fault: Fault
    until: float | None
    struck: int = 0
    seen: set[Hashable] = field(default_factory=set)

    def strikes(self, ask: PublicRequest, now: float, seed: int) -> bool:
        fault = self.fault
        if not isinstance(fault, RequestFault) or not fault.concerns(ask.symbol):
            return False
        if fault.endpoint is not None and fault.endpoint != ask.endpoint:
            return False
        if self.until is not None and now >= self.until:
            return False
        if fault.count is not None and self.struck >= fault.count:
            return False
        if fault.probability >= 1.0:
            return True
        return fraction(seed, "strike", self.id, ask.number) < fault.probability


class FaultBook:
    """The faults of a running exchange. They strike in the order they were switched on.

    Chance is fixed by the seed, the fault's number and the request's, so a run can be repeated.
    """

    def __init__(self, seed: int, monotonic: Callable[[], float]) -> None:
        self._seed = seed
        self._monotonic = monotonic
        self._entries: list[_Entry] = []
        self._next_id = 1
        self.no_trade: tuple[NoTrade, ...] = ()
        self.missing: tuple[Missing, ...] = ()
        self.revisions: tuple[Revision, ...] = ()

    def add(self, *faults: Fault) -> list[int]:
        """Switches faults on and gives their numbers."""
        now = self._monotonic()
        ids = []
        for fault in faults:
            seconds = fault.seconds if isinstance(fault, RequestFault) else None
            until = None if seconds is None else now + seconds
            self._entries.append(_Entry(self._next_id, fault, until))
            ids.append(self._next_id)
            self._next_id += 1
        self._refresh()
        return ids

    def remove(self, *ids: int) -> None:
        """Switches the faults with these numbers off."""
        self._entries = [entry for entry in self._entries if entry.id not in ids]
        self._refresh()

    def clear(self) -> None:
        """Switches everything off."""
        self._entries = []
        self._refresh()

    def replace(self, faults: Iterable[Fault]) -> list[int]:
        """Switches everything off and these on."""
        self._entries = []
        return self.add(*faults)

    def hold_up(self, ask: PublicRequest) -> list[float]:
        """How late this request arrives, in milliseconds: a figure for each fault that struck."""
        struck = self._struck(ask, (entry for entry in self._entries if _on_the_way(entry.fault)))
        return [fault.late_ms(turn) for fault, turn in struck if isinstance(fault, LateArrival)]

    def strike(self, ask: PublicRequest) -> list[tuple[RequestFault, Strike]]:
        """The faults that hit this request once it is here, each with its die and its memory."""
        here = (entry for entry in self._entries if _on_arrival(entry.fault))
        return list(self._struck(ask, here))

    def disturb(self, ask: PublicRequest) -> list[tuple[RequestFault, Strike]]:
        """The faults that hit this round of a websocket."""
        entries = (entry for entry in self._entries if isinstance(entry.fault, SocketFault))
        return list(self._struck(ask, entries))

    def listing(self) -> list[dict[str, Any]]:
        """Every fault that is switched on, as JSON, with its number and how often it struck."""
        return [
            {"id": entry.id, **fault_json(entry.fault), "struck": entry.struck}
            for entry in self._entries
        ]

    def _struck(
        self, ask: PublicRequest, entries: Iterable[_Entry]
    ) -> Iterator[tuple[RequestFault, Strike]]:
        now = self._monotonic()
        for entry in entries:
            if entry.strikes(ask, now, self._seed) and isinstance(entry.fault, RequestFault):
                entry.struck += 1
                roll = fraction(self._seed, "roll", entry.id, ask.number)
                yield entry.fault, Strike(ask, roll, self._seed, entry.seen)

    def _refresh(self) -> None:
        faults = [entry.fault for entry in self._entries]
        self.no_trade = tuple(fault for fault in faults if isinstance(fault, NoTrade))
        self.missing = tuple(fault for fault in faults if isinstance(fault, Missing))
        self.revisions = tuple(fault for fault in faults if isinstance(fault, Revision))


def _on_the_way(fault: Fault) -> bool:
    return isinstance(fault, LateArrival)


def _on_arrival(fault: Fault) -> bool:
    return not isinstance(fault, (LateArrival, SocketFault))
