"""Which of the events that are sent repeat what is known already. Pure.

An input is known by its transaction, its position and the bucket of its time, as in the ledger. An
event is a repetition when the last event of each of its inputs had the same op: an addition after a
deletion counts again, which is what a reorganised chain sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collector.history.event import Event, Op
    from collector.history.lookup import Known

    InputKey = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class WaitingEvent:
    """An event that is in the inbox and not in the ledger yet, as far as repeats need it."""

    sequence: int
    op: Op
    tx_hash: str
    ts: int
    inputs: int


@dataclass(frozen=True, slots=True)
class Sorted:
    """Fresh events in their order, how many were repetitions, and the last sequence of both."""

    fresh: tuple[Event, ...]
    repeats: int
    last: int


def without_repeats(
    events: Sequence[Event],
    bucket_ms: int,
    waiting: Iterable[WaitingEvent],
    known: Mapping[InputKey, Known],
    head: int,
) -> Sorted:
    """The events that are to be given the sequences after `head`."""
    latest: dict[InputKey, tuple[int, Op]] = {
        key: (found.sequence, found.op) for key, found in known.items()
    }
    for each in sorted(waiting, key=lambda row: row.sequence):
        for key in input_keys(each.tx_hash, each.ts, each.inputs, bucket_ms):
            latest[key] = each.sequence, each.op
    fresh: list[Event] = []
    repeated = 0
    for event in events:
        keys = input_keys(event.tx_hash, event.ts, len(event.inputs), bucket_ms)
        last = [latest.get(key) for key in keys]
        if all(each is not None and each[1] is event.op for each in last):
            repeated = max(repeated, *(each[0] for each in last if each is not None))
            continue
        fresh.append(event)
        latest |= dict.fromkeys(keys, (head + len(fresh), event.op))
    last_sequence = head + len(fresh) if fresh else repeated
    return Sorted(tuple(fresh), len(events) - len(fresh), last_sequence)


def input_keys(tx_hash: str, ts: int, inputs: int, bucket_ms: int) -> list[InputKey]:
    return [(tx_hash, index, ts // bucket_ms) for index in range(inputs)]
