"""Saved buckets: an immutable file for each pair and month, and one document that names them.

    buckets/current.json                                       which files count
    buckets/next.json                                          of another length, being built
    buckets/{bucket_sec}/{pair}/{YYYY-MM}-{sequence}.parquet   the buckets of a month

Replacing the document is the one step that makes a save count. It is exact for the ledger up to
`applied_through`; what came since is added when buckets are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from collector.history import uint256
from collector.history.bucket_columns import INTS, WIDES, BucketColumns
from collector.history.month import month_name, parse_month
from collector.history.pair import Pair
from collector.store.port import Corrupt, Vanished
from collector.store.signature import build_signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collector.history.month import Month
    from collector.store.port import Storage

BUCKET_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.int64(), nullable=False) for name in INTS),
        *(pa.field(name, uint256.WIDE, nullable=False) for name in WIDES),
    ]
)
CURRENT, NEXT = "current.json", "next.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is saved.

    files        by pair and month, the path of the file below the folder of buckets
    last_prices  of every pair that ever had a bucket
    built_to     up to which month a manifest that is being built has come; None for a whole one
    fence        of the writer that has the files now
    """

    bucket_sec: int
    applied_through: int = 0
    files: Mapping[Pair, Mapping[int, str]] = field(default_factory=dict)
    last_prices: Mapping[Pair, int] = field(default_factory=dict)
    built_to: int | None = None
    fence: int = 0

    def document(self) -> dict[str, Any]:
        pairs = {
            str(pair): {
                "last_price": str(price),
                "months": {
                    month_name(month): path for month, path in self.files.get(pair, {}).items()
                },
            }
            for pair, price in self.last_prices.items()
        }
        return {
            "format": 1,
            "bucket_sec": self.bucket_sec,
            "applied_through": self.applied_through,
            "built_to": self.built_to,
            "fence": self.fence,
            "pairs": pairs,
        }

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Manifest:
        pairs = {Pair.parse(text): each for text, each in document["pairs"].items()}
        return cls(
            document["bucket_sec"],
            document["applied_through"],
            {
                pair: {parse_month(name): path for name, path in each["months"].items()}
                for pair, each in pairs.items()
            },
            {pair: int(each["last_price"]) for pair, each in pairs.items()},
            document["built_to"],
            document.get("fence", 0),
        )

    def paths(self) -> set[str]:
        return {path for months in self.files.values() for path in months.values()}


class BucketFiles:
    """One network's folder of buckets."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self.storage = storage
        self.folder = folder

    def stamp(self, name: str = CURRENT) -> str | None:
        return self.storage.stamp(f"{self.folder}/{name}")

    def manifest(self, name: str = CURRENT) -> Manifest | None:
        """None when nothing was saved under this name."""
        path = f"{self.folder}/{name}"
        try:
            data = self.storage.read(path)
        except Vanished:
            return None
        try:
            return Manifest.parse(orjson.loads(data))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Corrupt(path, error) from error

    def write(self, manifest: Manifest, expected: str | None, name: str = CURRENT) -> None:
        """Replaces the document. Raises Swapped when it is no longer the one that was read."""
        with self.storage.draft(f"{self.folder}/{name}") as draft:
            draft.sink.write(orjson.dumps(manifest.document(), option=orjson.OPT_INDENT_2))
            draft.finish()
            draft.commit(expected)

    def with_months(
        self, manifest: Manifest, months: Mapping[tuple[Pair, int], Month], sequence: int
    ) -> Manifest:
        """Writes months and gives a manifest that names them. It does not count yet."""
        files = {pair: dict(named) for pair, named in manifest.files.items()}
        for (pair, month), made in months.items():
            named = files.setdefault(pair, {})
            if len(made):
                path = f"{manifest.bucket_sec}/{pair.folder}/{month_name(month)}-{sequence}.parquet"
                self.storage.write_atomic(f"{self.folder}/{path}", _encoded(made.whole()))
                named[month] = path
            else:
                named.pop(month, None)
        return replace(manifest, files=files)

    def delete(self, paths: Iterable[str]) -> None:
        for path in sorted(paths):
            self.storage.delete(f"{self.folder}/{path}")

    def sweep(self, manifests: Iterable[Manifest]) -> None:
        """Removes files that none of these manifests names: a save that died left them."""
        known = set().union(*(manifest.paths() for manifest in manifests))
        for length in self.storage.folders(self.folder):
            for pair in self.storage.folders(f"{self.folder}/{length}"):
                inside = f"{length}/{pair}"
                names = self.storage.names(f"{self.folder}/{inside}")
                self.delete({f"{inside}/{name}" for name in names} - known)


@dataclass(frozen=True, slots=True)
class SavedBuckets:
    """The buckets a manifest names, a month at a time."""

    files: BucketFiles
    manifest: Manifest

    def last_prices(self) -> Mapping[Pair, int]:
        return self.manifest.last_prices

    def months(self, pair: Pair) -> Iterable[int]:
        return self.manifest.files.get(pair, {})

    def load(self, pair: Pair, month: int) -> BucketColumns:
        """Raises Vanished when a newer save has replaced the file."""
        path = f"{self.files.folder}/{self.manifest.files[pair][month]}"
        data = self.files.storage.read(path)
        try:
            source = pa.BufferReader(data)
            table = pq.read_table(source, schema=BUCKET_SCHEMA, page_checksum_verification=True)
            return _decoded(table)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise Corrupt(path, error) from error


def _encoded(columns: BucketColumns) -> bytes:
    arrays = [pa.array(each) for each in columns.ints]
    arrays += [uint256.to_arrow(each) for each in columns.wides]
    table = pa.Table.from_arrays(arrays, schema=BUCKET_SCHEMA)
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.replace_schema_metadata({"build_signature": build_signature()}),
        sink,
        use_dictionary=False,
        compression="zstd",
        compression_level=1,
        write_page_checksum=True,
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _decoded(table: pa.Table) -> BucketColumns:
    return BucketColumns(
        np.stack([table[name].to_numpy() for name in INTS]),
        np.stack([uint256.from_arrow(table[name]) for name in WIDES]),
    )
