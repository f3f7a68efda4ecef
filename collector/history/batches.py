"""Ordered events, cut into batches that are applied at a time."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from collector.history.refusal import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.history.event import Event

LARGEST_BATCH = 65_536
"""Inputs that are applied at a time; more are cut."""


def check_order(sequences: Sequence[int]) -> None:
    if any(later <= earlier for earlier, later in itertools.pairwise(sequences)):
        raise Refused("events come in ascending order of their sequence")
    if sequences and sequences[0] < 1:
        raise Refused("sequences begin at 1")


def batches(events: Sequence[tuple[int, Event]]) -> Iterator[Sequence[tuple[int, Event]]]:
    first, inputs = 0, 0
    for at, (_, event) in enumerate(events):
        if inputs and inputs + len(event.inputs) > LARGEST_BATCH:
            yield events[first:at]
            first, inputs = at, 0
        inputs += len(event.inputs)
    if first < len(events):
        yield events[first:]
