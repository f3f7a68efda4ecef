"""Single bits of a network's files turned over, one at a time: what do readers and writers say?

`python -m tests.support.history_flips FOLDER KIND FIRST END STEP` flips every STEP-th bit of the
file of a kind, from FIRST to END, and prints how many gave the right answer and how many a named
error. It raises at the first wrong answer. In a process of its own, because a library that is given
damaged bytes may end the process.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector import logs
from collector.errors import CollectorError
from collector.history.reader import HistoryReader
from collector.history.segment_shelf import SMALL
from collector.history.writer import HistoryWriter
from collector.store.disk import LocalDisk
from tests.support.history_trades import GOLD, OIL, added, at, deleted, read, sale

if TYPE_CHECKING:
    from collections.abc import Iterable

NET = "n"
FEW, MANY = "few", "many"
LARGE = SMALL + 300
OTHERS = 8
KINDS = {
    "current.json": (FEW, "buckets/current.json"),
    "next.json": (FEW, "buckets/next.json"),
    "buckets": (FEW, "buckets/60/*/*.parquet"),
    "segment": (FEW, "ledger/*-4-*.parquet"),
    "large segment": (MANY, "ledger/*.parquet"),
}
"""In which lake the file of a kind lies, and where."""


def make(root: Path) -> None:
    """A lake with a few trades, saved and being made into longer buckets; one with many."""
    few = HistoryWriter(LocalDisk(root / FEW), NET)
    doomed = added("x", 1, sale(9))
    events = [added("a", 0, sale(5)), doomed, deleted(doomed), added("b", 2.5, sale(7))]
    few.apply(list(enumerate(events, start=1)))
    few.save()
    few.apply([(5, added("c", 3, sale(6)))])
    assert HistoryWriter(LocalDisk(root / FEW), NET, bucket_sec=120).rebucket()
    many = HistoryWriter(LocalDisk(root / MANY), NET)
    many.apply([(n, added(f"t{n}", n / 100, sale(n % 9 + 1))) for n in range(1, LARGE + 1)])


def answers(root: Path, *, cache: bool) -> list[Any]:
    """What a process that has just started answers."""
    reader = HistoryReader(NET, GOLD, OIL, root, cache=cache)
    window = at(0.5), at(2.7)
    made = [
        reader.market_rate("ohlcv"),
        reader.market_rate("spot"),
        reader.market_rate("vwap", *window),
        reader.volume(*window),
        reader.volume(at(40), at(40.3)),
    ]
    for each in made:
        del each["source"]
    return made


def written(root: Path) -> list[Any]:
    """What a worker that has just started has in memory."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(root, folder, dirs_exist_ok=True)
        writer = HistoryWriter(LocalDisk(folder), NET)
        writer.apply([(writer.applied_through + 1, added("new", 1.5, sale(4)))])
        return [writer.applied_through, read(writer.history)]


def file_of(root: Path, kind: str) -> Path:
    lake, pattern = KINDS[kind]
    [path] = (root / lake / "_history" / NET).glob(pattern)
    return path


def flips(root: Path, kind: str, bits: Iterable[int], others: int = 1) -> Counter[str]:
    """Right answers and errors, by who was asked. Raises AssertionError for a wrong answer.

    A reader of buckets is asked about each bit, a reader of the ledger and a writer about every
    `others`-th.
    """
    path, place = file_of(root, kind), root / KINDS[kind][0]
    data = path.read_bytes()
    asks = {
        "buckets": lambda: answers(place, cache=True),
        "ledger": lambda: answers(place, cache=False),
        "writer": lambda: written(place),
    }
    truth = {name: ask() for name, ask in asks.items()}
    found = Counter[str]()
    for number, bit in enumerate(bits):
        byte, shift = divmod(bit, 8)
        path.write_bytes(data[:byte] + bytes([data[byte] ^ 1 << shift]) + data[byte + 1 :])
        for name in asks if number % others == 0 else ["buckets"]:
            try:
                answer = asks[name]()
            except CollectorError as error:
                found[f"{name}: {type(error).__name__}"] += 1
            else:
                assert answer == truth[name], f"bit {bit} of {path.name}: a wrong answer"
                found[f"{name}: right"] += 1
    path.write_bytes(data)
    return found


def main() -> None:
    root, kind, bits = Path(sys.argv[1]), sys.argv[2], range(*map(int, sys.argv[3:]))
    logs.configure("CRITICAL", "json")
    os.fsync = lambda _handle: None  # type: ignore[assignment]
    print(json.dumps(flips(root, kind, bits, OTHERS)))


if __name__ == "__main__":
    main()
