"""The sealed file of a series: the whole calendar, ascending, what every tool reads.

Its footer: `data_hash`, `build_signature`, `source`, `generated_at`, `rows`, `bars`, `coverage`
([[from, to, bars], ...]), `cursor`, and `merged`: the group parts whose rows of this series are
already inside. A file that was made of a shorter timeframe records that in `derived_from` and
`made_of` (see derived.py); one of a market that closes names its `calendar`, which explains absent
slots. footer.py has what every file's footer contains.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson

from collector.market.interval import Interval
from collector.store import footer as footers
from collector.store import layout
from collector.store.coverage import Covered, SeriesCursor, counted, cursor
from collector.store.earlier_files import check_calendar
from collector.store.port import Corrupt
from collector.store.segment import Segment
from collector.store.signature import DataHash, build_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    import pyarrow as pa
    import pyarrow.parquet as pq

    from collector.market.series import Series
    from collector.store.port import Draft, Storage


@dataclass(frozen=True, slots=True)
class SealedFooter:
    """What a sealed file records about itself."""

    data_hash: str
    build_signature: str
    source: str
    generated_at: str
    coverage: tuple[Covered, ...]
    cursor: SeriesCursor | None
    merged: frozenset[str]
    derived_from: str = ""
    """The timeframe whose bars it was made of; empty for bars from an exchange."""
    made_of: str = ""
    """`data_hash` of the file it was made of."""
    calendar: str = ""
    """Which calendar its empty slots follow; empty for a market that never closes."""

    @property
    def bars(self) -> int:
        """How many rows are bars; the others fill the calendar."""
        return sum(each.bars for each in self.coverage)

    def metadata(self, series: Series, rows: int) -> dict[str, str]:
        """From a file of this series with this many rows."""
        made = {"derived_from": self.derived_from, "made_of": self.made_of}
        calendar = {"calendar": self.calendar}
        return {
            **footers.identity("derived" if self.derived_from else "sealed", series),
            "data_hash": self.data_hash,
            "build_signature": self.build_signature,
            "source": self.source,
            "generated_at": self.generated_at,
            "rows": str(rows),
            "bars": str(self.bars),
            "coverage": orjson.dumps(
                [[each.from_ms, each.to_ms, each.bars] for each in self.coverage]
            ).decode(),
            "cursor": orjson.dumps(asdict(self.cursor) if self.cursor else None).decode(),
            "merged": orjson.dumps(sorted(self.merged)).decode(),
            **(made if self.derived_from else {}),
            **(calendar if self.calendar else {}),
        }


class Sealed(Segment):
    """A sealed file, open for reading."""

    def __init__(
        self,
        path: str,
        file: Any,
        footer: pq.FileMetaData | None = None,
        whose: Mapping[str, str] = MappingProxyType({}),
        doubtful: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(path, file, footer, whose, doubtful)
        try:
            self.footer = self._parse()
            if footer is None:
                self._check_rows()
        except (ValueError, TypeError, AttributeError) as error:
            self.close()
            raise Corrupt(path, f"its footer makes no sense ({error})") from error
        except BaseException:
            self.close()
            raise

    @classmethod
    def of(cls, storage: Storage, series: Series, footer: pq.FileMetaData | None = None) -> Self:
        """The sealed file of a series, or the file of longer bars in its place."""
        return cls.open(storage, layout.sealed_path(series), footer, footers.whose(series))

    def span(self) -> Interval | None:
        """From the first row's time to the last one's; None when there are no rows."""
        if not self.groups:
            return None
        return Interval(self.bounds(0)[0], self.bounds(self.groups - 1)[1] + 1)

    def _check_rows(self) -> None:
        recorded = self.metadata("rows")
        if not recorded:
            check_calendar(self, self.footer)
        elif int(recorded) != self.rows:
            raise Corrupt(self.path, f"{self.rows} rows where there should be {recorded}")

    def _parse(self) -> SealedFooter:
        at = orjson.loads(self.metadata("cursor"))
        return SealedFooter(
            data_hash=self.metadata("data_hash"),
            build_signature=self.metadata("build_signature"),
            source=self.metadata("source"),
            generated_at=self.metadata("generated_at"),
            coverage=tuple(Covered(*each) for each in orjson.loads(self.metadata("coverage"))),
            cursor=SeriesCursor(**at) if at else None,
            merged=frozenset(orjson.loads(self.metadata("merged"))),
            derived_from=self.metadata("derived_from"),
            made_of=self.metadata("made_of"),
            calendar=self.metadata("calendar"),
        )


@dataclass(frozen=True, slots=True)
class SealedFacts:
    """What is cached of a sealed file: enough for every lookup that needs no rows."""

    footer: SealedFooter
    rows: int
    span: Interval | None
    """From the first row's time to the last one's; None when there are no rows."""

    @classmethod
    def of(cls, file: Sealed) -> SealedFacts:
        return cls(file.footer, file.rows, file.span())

    @property
    def weight(self) -> int:
        return 1 + len(self.footer.coverage) + len(self.footer.merged)


class SealedView:
    """A sealed file in one snapshot: its facts, and the file itself once rows are needed."""

    def __init__(self, facts: SealedFacts, reopened: Callable[[], Sealed]) -> None:
        """`reopened` opens exactly the file of the facts, or raises Vanished."""
        self.footer = facts.footer
        self.rows = facts.rows
        self.span = facts.span
        self._reopened = reopened
        self._file: Sealed | None = None

    @property
    def file(self) -> Sealed:
        if self._file is None:
            self._file = self._reopened()
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class SealedWriter:
    """Writes a sealed file a window at a time and computes its footer on the way."""

    def __init__(
        self, draft: Draft, series: Series, coverage: Sequence[Interval], out: pq.ParquetWriter
    ) -> None:
        self._draft = draft
        self._series = series
        self._coverage = coverage
        self._out = out
        self._hash = DataHash(series.extra)
        self._bars = [0] * len(coverage)
        self._last_ts: int | None = None
        self.rows = 0

    def write(self, table: pa.Table) -> None:
        """The next rows, which become one row group."""
        self._out.write_table(table, row_group_size=len(table))
        self._hash.update(table)
        bars = table["ts"].to_numpy()[table["known_at"].is_valid().to_numpy()]
        if len(bars):
            came = counted(self._coverage, bars)
            self._bars = [had + new.bars for had, new in zip(self._bars, came, strict=True)]
            self._last_ts = int(bars[-1])
        self.rows += len(table)
        self._draft.checkpoint()

    def finish(self, now_ms: int, merged: frozenset[str]) -> SealedFooter:
        """Closes the file. It is durable, and not in place yet."""
        ledger = tuple(
            Covered(each.from_ms, each.to_ms, bars)
            for each, bars in zip(self._coverage, self._bars, strict=True)
        )
        footer = SealedFooter(
            data_hash=self._hash.hexdigest(),
            build_signature=build_signature(),
            source=self._series.exchange_id,
            generated_at=datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(),
            coverage=ledger,
            cursor=cursor(ledger, self._last_ts),
            merged=merged,
            calendar=self._series.timeframe.calendar_id,
        )
        footers.close(self._out, self._draft.sink, footer.metadata(self._series, self.rows))
        self._draft.finish()
        return footer
