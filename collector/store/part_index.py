"""Which pages of which series are in the group parts of one exchange, cached for every read.

A part never changes, so its footer is read once per process, for all series. Looking up one series
then costs a listing of the folder and the pages of that series, however many parts there are; one
listing may serve many series. Footers are kept packed, some 80 bytes a page: an hour of ten
thousand series is 600,000 pages.
"""

from __future__ import annotations

import threading
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector import logs
from collector.store import layout
from collector.store.packed_part import PackedPart, pack
from collector.store.part import read_part
from collector.store.port import Corrupt, Vanished

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from collector.store.layout import PartName
    from collector.store.part import PageEntry
    from collector.store.port import Storage

SeriesKey = tuple[str, str]
"""Symbol and timeframe."""

log = logs.get("collector.store")

_LINE_BITS = 24
_LINE = (1 << _LINE_BITS) - 1
_FEW = 50_000


@dataclass(frozen=True, slots=True, eq=False)
class SeriesPages:
    """A group part and the pages of one series in it; none when another part replaces it."""

    part: PackedPart
    pages: tuple[PageEntry, ...]


class PartIndex:
    """The group parts of one exchange. Safe to use from many threads."""

    def __init__(self, storage: Storage, exchange_id: str) -> None:
        self._storage = storage
        self._folder = layout.groups_folder(exchange_id)
        self._lock = threading.RLock()
        self._numbers: dict[str, int] = {}
        """Every part of the last listing, by name."""
        self._next = 0
        self._unread: dict[str, PartName] = {}
        self._damaged: dict[str, tuple[PartName, Corrupt]] = {}
        self._read: dict[int, PackedPart] = {}
        self._keys: dict[SeriesKey, int] = {}
        self._names: list[SeriesKey] = []
        self._frames: dict[str, set[str]] = {}
        """The timeframes of each symbol."""
        self._places: dict[int, array[int]] = {}
        """By series, part and line of each of its pages, in one number."""
        self._live = self._dead = 0

    @property
    def weight(self) -> int:
        """Pages kept."""
        return self._live

    def refresh(self) -> None:
        """Lists the folder: what is new, and what is gone."""
        names = self._storage.names(self._folder)
        with self._lock:
            gone = self._numbers.keys() - names
            for name in gone:
                self._drop(name)
            for name in names:
                if name not in self._numbers:
                    self._note(name)

    def view(self, key: SeriesKey) -> PartsView:
        """What is known of one series now. Later listings do not change it."""
        with self._lock:
            held = self._held(self._keys.get(key, -1))
            return PartsView(
                self, key, held, list(self._unread.values()), list(self._damaged.values())
            )

    def read(self, name: str) -> PackedPart:
        """A part that was listed. Raises Vanished when it is gone, and Corrupt."""
        with self._lock:
            number = self._numbers.get(name)
            if number is None:
                raise Vanished(f"{self._folder}/{name} is not there any more")
            known = self._read.get(number)
            if known is not None:
                return known
            damaged = self._damaged.get(name)
            if damaged is not None:
                raise damaged[1]
            return self._load(name, number)

    def parts(self) -> Iterator[PackedPart]:
        """Every sound part of the last listing, in the order of their names."""
        with self._lock:
            names = list(self._numbers)
        for name in sorted(names):
            try:
                yield self.read(name)
            except (Vanished, Corrupt):
                continue

    def damaged(self) -> dict[str, Corrupt]:
        """By path, the parts that were found damaged and are still there."""
        with self._lock:
            return {part.path: error for part, error in self._damaged.values()}

    def keys(self) -> set[SeriesKey]:
        """Every series in a sound part."""
        self._read_all()
        with self._lock:
            return {
                self._names[series]
                for series, places in self._places.items()
                if any(place >> _LINE_BITS in self._read for place in reversed(places))
            }

    def timeframes(self, symbol: str) -> set[str]:
        """The timeframes of a symbol that sound parts hold, or held until recently."""
        self._read_all()
        with self._lock:
            return set(self._frames.get(symbol, ()))

    def keys_in(self, part: PackedPart) -> list[SeriesKey]:
        """The series of a part, each once."""
        return [self._names[number] for number in part.series()]

    def key_of(self, number: int) -> SeriesKey:
        """The series behind a number in packed parts."""
        return self._names[number]

    def pages_in(self, part: PackedPart, key: SeriesKey) -> tuple[PageEntry, ...]:
        """The pages of one series in a part."""
        number = self._keys.get(key)
        return () if number is None else part.pages(part.lines_of(number))

    def forget(self, path: str) -> None:
        """The part is gone, or its cached footer cannot be trusted."""
        with self._lock:
            self._drop(path.rpartition("/")[2])

    def _read_all(self) -> None:
        for part in self.parts():
            del part

    def _note(self, name: str) -> None:
        part = layout.parse_part(self._folder, name)
        if part is not None:
            self._numbers[name] = self._next
            self._unread[name] = part
            self._next += 1

    def _load(self, name: str, number: int) -> PackedPart:
        place = self._unread[name]
        try:
            found = read_part(self._storage, place.path)
        except Corrupt as error:
            log.error("part_damaged", path=error.path, why=error.why)
            self._damaged[name] = place, error
            del self._unread[name]
            raise
        except Vanished:
            self._drop(name)
            raise
        part = pack(found, place.hull, self._number_of)
        self._read[number] = part
        del self._unread[name]
        self._live += len(part)
        for line, series in enumerate(part.line_series()):
            places = self._places.get(series)
            if places is None:
                places = self._places[series] = array("Q")
            places.append(number << _LINE_BITS | line)
        return part

    def _number_of(self, key: SeriesKey) -> int:
        number = self._keys.get(key)
        if number is None:
            number = self._keys[key] = len(self._names)
            self._names.append(key)
            self._frames.setdefault(key[0], set()).add(key[1])
        return number

    def _held(self, series: int) -> list[SeriesPages]:
        lines: dict[int, list[int]] = {}
        for place in self._places.get(series, ()):
            lines.setdefault(place >> _LINE_BITS, []).append(place & _LINE)
        found = ((self._read.get(number), its) for number, its in lines.items())
        alive = [(part, its) for part, its in found if part is not None]
        replaced = {name for part, _ in alive for name in part.replaces}
        # Just after a gathering every row is there twice: the old parts' pages are not unpacked.
        return [
            SeriesPages(part, () if part.name in replaced else part.pages(its))
            for part, its in alive
        ]

    def _drop(self, name: str) -> None:
        number = self._numbers.pop(name, None)
        self._unread.pop(name, None)
        self._damaged.pop(name, None)
        part = self._read.pop(number, None) if number is not None else None
        if part is None:
            return
        self._live -= len(part)
        self._dead += len(part)
        if self._dead > max(self._live, _FEW):
            self._sweep_places()

    def _sweep_places(self) -> None:
        """Forgets the places of pages whose parts are gone."""
        for series, places in list(self._places.items()):
            kept = [place for place in places if place >> _LINE_BITS in self._read]
            if kept:
                self._places[series] = array("Q", kept)
            else:
                del self._places[series]
        self._dead = 0


class PartsView:
    """What the group parts of an exchange held of one series at one moment.

    Parts that were not read yet are read when they may matter. One that is gone by then has been
    merged since: that raises Vanished, and the caller takes a new view.
    """

    def __init__(
        self,
        index: PartIndex,
        key: SeriesKey,
        held: list[SeriesPages],
        unread: list[PartName],
        damaged: Iterable[tuple[PartName, Corrupt]],
    ) -> None:
        self._index = index
        self._key = key
        self._held = held
        self._unread = unread
        self._damaged = list(damaged)

    def near(self, from_ms: int, to_ms: int) -> list[SeriesPages]:
        """The parts with pages of the series that may touch `[from_ms, to_ms)`.

        A part that another one replaces is left out.
        """
        left = []
        for place in self._unread:
            if not place.touches(from_ms, to_ms):
                left.append(place)
                continue
            try:
                part = self._index.read(place.name)
            except Corrupt as error:
                self._damaged.append((place, error))
                continue
            pages = self._index.pages_in(part, self._key)
            if pages:
                self._held.append(SeriesPages(part, pages))
        self._unread = left
        replaced = self.replaced
        return [
            each
            for each in self._held
            if each.part.name not in replaced and each.part.touches(from_ms, to_ms)
        ]

    @property
    def replaced(self) -> frozenset[str]:
        """The names of parts whose rows of the series are also in a newer part."""
        return frozenset(name for each in self._held for name in each.part.replaces)

    @property
    def names(self) -> frozenset[str]:
        """The names of all parts that were read and hold pages of the series."""
        return frozenset(each.part.name for each in self._held)

    def earliest_ms(self) -> int | None:
        """Nothing of the series in any part begins before this."""
        starts = [place.hull.from_ms for place in self._unread]
        starts += [page.covered[0].from_ms for each in self._held for page in each.pages]
        return min(starts, default=None)

    def damaged(self, from_ms: int, to_ms: int) -> dict[str, Corrupt]:
        """By path, the damaged parts that may have held something of `[from_ms, to_ms)`."""
        return {
            place.path: error for place, error in self._damaged if place.touches(from_ms, to_ms)
        }
