"""The sealed file of a series: the whole calendar, ascending, what every tool reads.

Its footer: `data_hash`, `build_signature`, `source`, `generated_at`, `coverage` ([[from, to, bars],
...]), `cursor`, and `merged`: the group parts whose rows of this series are already inside. A file
that was made of a shorter timeframe says so in `derived_from` and `made_of` (see derived.py).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from collector.market.interval import Interval
from collector.store.coverage import Covered, Cursor, counted, cursor
from collector.store.port import Corrupt
from collector.store.segment import Segment
from collector.store.signature import DataHash, build_signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

    from collector.market.series import Series
    from collector.store.port import Draft


@dataclass(frozen=True, slots=True)
class SealedFooter:
    """What a sealed file tells about itself."""

    data_hash: str
    build_signature: str
    source: str
    generated_at: str
    coverage: tuple[Covered, ...]
    cursor: Cursor | None
    merged: frozenset[str]
    derived_from: str = ""
    """The timeframe whose bars it was made of; empty for bars that an exchange told."""
    made_of: str = ""
    """`data_hash` of the file it was made of."""

    def metadata(self) -> dict[str, str]:
        made = {"derived_from": self.derived_from, "made_of": self.made_of}
        return {
            "data_hash": self.data_hash,
            "build_signature": self.build_signature,
            "source": self.source,
            "generated_at": self.generated_at,
            "coverage": orjson.dumps(
                [[each.from_ms, each.to_ms, each.bars] for each in self.coverage]
            ).decode(),
            "cursor": orjson.dumps(asdict(self.cursor) if self.cursor else None).decode(),
            "merged": orjson.dumps(sorted(self.merged)).decode(),
            **(made if self.derived_from else {}),
        }


class Sealed(Segment):
    """A sealed file, open for reading."""

    def __init__(self, path: str, file: Any, footer: pq.FileMetaData | None = None) -> None:
        super().__init__(path, file, footer)
        self._footer: SealedFooter | None = None

    @property
    def footer(self) -> SealedFooter:
        if self._footer is None:
            try:
                self._footer = self._parse()
            except (ValueError, TypeError) as error:
                raise Corrupt(self.path, error) from error
        return self._footer

    def span(self) -> Interval | None:
        """From the first row's time to the last one's; None when there are no rows."""
        if not self.groups:
            return None
        return Interval(self.bounds(0)[0], self.bounds(self.groups - 1)[1] + 1)

    def _parse(self) -> SealedFooter:
        at = orjson.loads(self.metadata("cursor"))
        return SealedFooter(
            data_hash=self.metadata("data_hash"),
            build_signature=self.metadata("build_signature"),
            source=self.metadata("source"),
            generated_at=self.metadata("generated_at"),
            coverage=tuple(Covered(*each) for each in orjson.loads(self.metadata("coverage"))),
            cursor=Cursor(**at) if at else None,
            merged=frozenset(orjson.loads(self.metadata("merged"))),
            derived_from=self.metadata("derived_from"),
            made_of=self.metadata("made_of"),
        )


class SealedWriter:
    """Writes a sealed file a window at a time and works out its footer on the way."""

    def __init__(
        self, draft: Draft, series: Series, coverage: Sequence[Interval], out: pq.ParquetWriter
    ) -> None:
        self._draft = draft
        self._series = series
        self._coverage = coverage
        self._out = out
        self._hash = DataHash()
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
        )
        self._out.add_key_value_metadata(footer.metadata())
        self._out.close()
        self._draft.finish()
        return footer
