"""Many series, checked: the report that `datalayer validate` writes as validate.json."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from collector.errors import CollectorError, DataInvalid, TimeDrift
from collector.reports.gap_rule import gaps_error
from collector.reports.validation import reached
from collector.store.signature import build_signature

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.reports.clock_drift import Drift
    from collector.reports.validation import Demands, SeriesReport

ASK_THE_EXCHANGE = ("source", "clock")
"""Checks that are not about the files alone."""


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What was found. `drift` is None when no exchange was called, or it did not answer."""

    generated_at_ms: int
    series: Sequence[SeriesReport]
    demands: Demands
    drift: Drift | None = None

    @property
    def ok(self) -> bool:
        return all(each.ok for each in self.series)

    def document(self) -> dict[str, Any]:
        """validate.json."""
        generated = datetime.fromtimestamp(self.generated_at_ms / 1000, UTC)
        return {
            "generated_at": generated.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "build_signature": build_signature(),
            "series": [each.document() for each in self.series],
            "summary": self.summary(),
        }

    def to_json(self) -> str:
        return json.dumps(self.document(), indent=2) + "\n"

    def summary(self) -> dict[str, Any]:
        expected = sum(each.coverage.expected for each in self.series)
        missing = sum(each.coverage.missing for each in self.series)
        failed = Counter(
            name for each in self.series for name, check in each.checks.items() if not check.ok
        )
        return {
            "ok": self.ok,
            "series": len(self.series),
            "series_ok": sum(each.ok for each in self.series),
            "rows": sum(each.coverage.rows for each in self.series),
            "missing": missing,
            "gaps_pct": missing / expected if expected else 0.0,
            "max_gap_pct": self.demands.max_gap_pct,
            "over_limit": [str(each.series) for each in self.series if each.over_limit],
            "failed_checks": dict(sorted(failed.items())),
            "bars_compared": sum(
                len(each.sample)
                for each in self.series
                if each.sample is not None and "source" in each.checks
            ),
            "clock_drift_ms": None if self.drift is None else round(self.drift.drift_ms),
            "expected": expected,
            "unconfirmed": sum(each.coverage.unconfirmed for each in self.series),
        }

    def errors(self) -> Iterator[CollectorError]:
        """What a command exits with, the gravest first: data, clock, an exchange away, gaps."""
        for each in self.series:
            for name, check in each.checks.items():
                about_data = name not in ("calendar", "clock")
                if about_data and not check.ok and reached(check) is None:
                    times = "once" if check.count == 1 else f"{check.count:,} times"
                    yield DataInvalid(f"{each.series}: {name} failed {times}")
        if self.drift is not None and not self.drift.ok:
            yield TimeDrift(f"this machine's clock is {-self.drift.drift_ms:+,.0f} ms off")
        for each in self.series:
            for name in ASK_THE_EXCHANGE:
                away = reached(each.checks[name]) if name in each.checks else None
                if away is not None:
                    yield away
        over = [each.coverage for each in self.series if each.over_limit]
        gaps = gaps_error(over, self.demands.max_gap_pct)
        if gaps is not None:
            yield gaps
