"""Troubles as lines for users, and as JSON for scripts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.cli.moments import shown_moment
from collector.durations import shown_span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.operations.troubles import Trouble


def trouble_line(trouble: Trouble, now_ms: int) -> str:
    """`binance: unreachable for 8 min, 40 jobs: the reason -> the command that helps`."""
    words = (
        f"{name_of(trouble)} for {shown_span(max(0, now_ms - trouble.since_ms))}"
        if (trouble.since_ms)
        else name_of(trouble)
    )
    jobs = f", {trouble.jobs:,} job{'s' if trouble.jobs != 1 else ''}" if trouble.jobs else ""
    reason = " ".join(trouble.reason.split())
    return f"{words}{jobs}: {reason} -> {trouble.help}"


def name_of(trouble: Trouble) -> str:
    """The kind, and the exchange where it is about one."""
    kind = trouble.kind.value.replace("_", " ")
    return kind if trouble.exchange_id is None else f"{trouble.exchange_id}: {kind}"


def trouble_lines(found: Sequence[Trouble], now_ms: int) -> list[str]:
    """All of them under a heading; none when all is well."""
    if not found:
        return []
    count = f"{len(found)} trouble{'s' if len(found) != 1 else ''}"
    return [f"{count}:", *(f"  ! {trouble_line(each, now_ms)}" for each in found)]


def as_facts(found: Sequence[Trouble]) -> list[dict[str, Any]]:
    """The same fields as `GET /api/v1/troubles`."""
    return [
        {
            "kind": each.kind.value,
            "exchange_id": each.exchange_id,
            "reason": each.reason,
            "since": each.since_ms,
            "jobs": each.jobs,
            "help": each.help,
        }
        for each in found
    ]


@dataclass(slots=True)
class TroubleChanges:
    """What began and what ended since the last look: for a log, where nothing is redrawn."""

    _known: Mapping[tuple[str, str], Trouble] = field(default_factory=dict)

    def lines(self, found: Sequence[Trouble], now_ms: int) -> list[str]:
        current = {each.key: each for each in found}
        began = [each for key, each in current.items() if key not in self._known]
        ended = [each for key, each in self._known.items() if key not in current]
        self._known = current
        return [
            *(f"! {trouble_line(each, now_ms)}" for each in began),
            *(f"over at {shown_moment(now_ms)}: {name_of(each)}" for each in ended),
        ]
