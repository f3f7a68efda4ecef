"""Troubles as lines for users."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.cli.moments import shown_moment
from collector.durations import shown_span
from collector.operations.troubles import TroubleKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Shown = Mapping[str, Any]


def trouble_line(trouble: Shown, now_ms: int) -> str:
    """`binance: unreachable for 8 min, 40 jobs: the reason -> the command that helps`."""
    since, count = trouble["since"], trouble["jobs"]
    words = name_of(trouble)
    if since:
        words += f" for {shown_span(max(0, now_ms - since))}"
    jobs = f", {count:,} job{'s' if count != 1 else ''}" if count else ""
    reason = " ".join(trouble["reason"].split())
    return f"{words}{jobs}: {reason} -> {trouble['help']}"


def name_of(trouble: Shown) -> str:
    """The kind, and the exchange or network where it is about one."""
    kind, whose = str(trouble["kind"]).replace("_", " "), _whose(trouble)
    return f"{whose}: {kind}" if whose else kind


def trouble_lines(found: Sequence[Shown], now_ms: int) -> list[str]:
    """All of them under a heading; none when all is well."""
    if not found:
        return []
    count = f"{len(found)} trouble{'s' if len(found) != 1 else ''}"
    return [f"{count}:", *(f"  ! {trouble_line(each, now_ms)}" for each in found)]


@dataclass(slots=True)
class TroubleChanges:
    """What began and what ended since the last look: for a log, where nothing is redrawn."""

    _known: Mapping[tuple[str, str], Shown] = field(default_factory=dict)

    def lines(self, found: Sequence[Shown], now_ms: int) -> list[str]:
        current = {(each["kind"], _whose(each)): each for each in found}
        began = [each for key, each in current.items() if key not in self._known]
        if any(each["kind"] == TroubleKind.MONGODB for each in found):
            # Nothing else is known now: what was wrong before is not over.
            current = {**self._known, **current}
        ended = [each for key, each in self._known.items() if key not in current]
        self._known = current
        return [
            *(f"! {trouble_line(each, now_ms)}" for each in began),
            *(f"over at {shown_moment(now_ms)}: {name_of(each)}" for each in ended),
        ]


def _whose(trouble: Shown) -> str:
    return str(trouble["exchange_id"] or trouble["network"] or "")
