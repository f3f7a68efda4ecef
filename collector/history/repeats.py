"""Which of the events that are sent repeat what is known already. Pure.

An input is known by its transaction and its position. It repeats its last event when that had the
same op, whatever its time and whatever effect it had: an addition after a deletion counts again,
which is what a reorganised chain sends. So the same requests lead to the same trades, no matter
when events are applied and how long buckets are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.history.event import Op

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.history.event import Event

    Inputs = tuple["LastEvent | None", ...]
    """What is known of a transaction, by the position of the input."""


@dataclass(frozen=True, slots=True)
class LastEvent:
    """The last event of one input."""

    op: Op
    sequence: int
    ts: int
    """The time of the trade that it added or deleted."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """What becomes of events that are sent."""

    fresh: tuple[Event, ...]
    """Those that get a sequence, in their order, with the time of the trade of each input."""
    repeats: int
    """How many were repetitions."""
    last: int
    """The last sequence of the fresh ones; without any, the greatest that is repeated."""
    known: Mapping[str, Inputs]
    """The transactions of the fresh ones, as they are known from now on."""


def without_repeats(events: Sequence[Event], known: Mapping[str, Inputs], head: int) -> Sorted:
    """Sorts out the events that are to be given the sequences after `head`."""
    fresh: list[Event] = []
    changed: dict[str, Inputs] = {}
    repeated = 0
    for event in events:
        inputs = changed.get(event.tx_hash) or known.get(event.tx_hash) or ()
        padded = [*inputs, *[None] * (len(event.inputs) - len(inputs))]
        last = padded[: len(event.inputs)]
        if all(each is not None and each.op is event.op for each in last):
            repeated = max(repeated, *(each.sequence for each in last if each is not None))
            continue
        sequence = head + len(fresh) + 1
        times = [_time(event, each) for each in last]
        for index, ts in enumerate(times):
            if ts is not None:
                padded[index] = LastEvent(event.op, sequence, ts)
        changed[event.tx_hash] = tuple(padded)
        fresh.append(replace(event, times=tuple(times)))
    last_sequence = head + len(fresh) if fresh else repeated
    return Sorted(tuple(fresh), len(events) - len(fresh), last_sequence, changed)


def _time(event: Event, last: LastEvent | None) -> int | None:
    """When the trade happened that this input adds or deletes; None for a repetition."""
    if last is None:
        return event.ts
    if last.op is event.op:
        return None
    return event.ts if event.op is Op.ADD else last.ts
