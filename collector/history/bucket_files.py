"""Saved buckets: an immutable file for each pair and month, and one document that names them.

    buckets/current.json                                       which files count
    buckets/next.json                                          of another length, being built
    buckets/{bucket_sec}/{pair}/{YYYY-MM}-{sequence}-{digest}.parquet
                                                               the buckets of a month

Replacing the document is the one step that makes a save count. It is exact for the ledger up to
`applied_through`; what came since is added when buckets are read. All of it can be made from the
ledger, so what is damaged or missing is made again, with one line in the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from collector import logs
from collector.history import uint256
from collector.history.bucket_columns import INTS, WIDES, BucketColumns
from collector.history.layout import SUFFIX, check_digest, digest_of
from collector.history.month import month_name, parse_month
from collector.history.pair import Pair
from collector.history.replay import month_of_ledger
from collector.store.port import Corrupt, Vanished
from collector.store.signature import build_signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collector.history.ledger import Ledger
    from collector.history.month import Month
    from collector.store.port import Storage

BUCKET_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.int64(), nullable=False) for name in INTS),
        *(pa.field(name, uint256.WIDE, nullable=False) for name in WIDES),
    ]
)
log = logs.get("collector.history")

MISSING = "it is missing"
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
            document["fence"],
        )

    def encode(self) -> bytes:
        """With a digest of everything else in it."""
        document = self.document()
        return orjson.dumps({**document, "digest": _digest(document)}, option=orjson.OPT_INDENT_2)

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        """Raises ValueError when the digest is another."""
        document = orjson.loads(data)
        if not isinstance(document, dict) or document.pop("digest", None) != _digest(document):
            raise ValueError("its digest is another")
        return cls.parse(document)

    def paths(self) -> set[str]:
        return {path for months in self.files.values() for path in months.values()}


class BucketFiles:
    """One network's folder of buckets."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self.storage = storage
        self.folder = folder
        self._reported: set[str] = set()

    def stamp(self, name: str = CURRENT) -> str | None:
        return self.storage.stamp(f"{self.folder}/{name}")

    def manifest(self, name: str = CURRENT) -> Manifest | None:
        """None when nothing was saved under this name. Raises Corrupt."""
        path = f"{self.folder}/{name}"
        try:
            return Manifest.decode(self.storage.read(path))
        except Vanished:
            return None
        except ValueError as error:
            raise Corrupt(path, error) from error

    def sound_manifest(self, name: str = CURRENT) -> Manifest | None:
        """None also when it is damaged: everything it names can be made again."""
        try:
            return self.manifest(name)
        except Corrupt as error:
            self.report(error.path, error.why)
            return None

    def report(self, path: str, why: str) -> None:
        """One line in the log for each file that has to be made again."""
        if path not in self._reported:
            self._reported.add(path)
            log.warning("history_buckets_made_again", path=path, why=why)

    def write(self, manifest: Manifest, expected: str | None, name: str = CURRENT) -> None:
        """Replaces the document. Raises Swapped when it is no longer the one that was read."""
        with self.storage.draft(f"{self.folder}/{name}") as draft:
            draft.sink.write(manifest.encode())
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
                data = _encoded(made.whole())
                name = f"{month_name(month)}-{sequence}-{digest_of(data)}{SUFFIX}"
                path = f"{manifest.bucket_sec}/{pair.folder}/{name}"
                self.storage.write_atomic(f"{self.folder}/{path}", data)
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

    def is_missing(self, path: str) -> bool:
        """Whether a file that is not there is named still, and not just replaced by a save."""
        current = self.sound_manifest()
        return current is not None and path in current.paths()

    def load(self, path: str) -> BucketColumns:
        """Raises Corrupt, before anything else looks at damaged bytes, and Vanished."""
        path = f"{self.folder}/{path}"
        data = self.storage.read(path)
        check_digest(path, digest_of(data))
        return _decoded(pq.read_table(pa.BufferReader(data), schema=BUCKET_SCHEMA))


@dataclass(frozen=True, slots=True)
class SavedBuckets:
    """The buckets a manifest names, a month at a time."""

    files: BucketFiles
    manifest: Manifest
    ledger: Ledger
    """What a month is made from that cannot be read."""

    def last_prices(self) -> Mapping[Pair, int]:
        return self.manifest.last_prices

    def months(self, pair: Pair) -> Iterable[int]:
        return self.manifest.files.get(pair, {})

    def load(self, pair: Pair, month: int) -> tuple[BucketColumns, bool]:
        """The buckets of one month, and whether they are saved as they are.

        Raises Vanished when a newer save has replaced the file.
        """
        path = self.manifest.files[pair][month]
        try:
            return self.files.load(path), True
        except Corrupt as error:
            why = error.why
        except Vanished:
            if not self.files.is_missing(path):
                raise
            why = MISSING
        self.files.report(f"{self.files.folder}/{path}", why)
        past = self.ledger.through(self.manifest.applied_through)
        made = month_of_ledger(past, month, self.manifest.bucket_sec * 1000)
        return made.get(pair, BucketColumns.empty()), False


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
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _decoded(table: pa.Table) -> BucketColumns:
    return BucketColumns(
        np.stack([table[name].to_numpy() for name in INTS]),
        np.stack([uint256.from_arrow(table[name]) for name in WIDES]),
    )


def _digest(document: Mapping[str, Any]) -> str:
    return digest_of(orjson.dumps(document))
