"""A column of texts of which there are few: nearly always one, the exchange's name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """For each row the place of its text in `names`."""

    names: tuple[str, ...]
    places: NDArray[np.int32]

    @classmethod
    def repeated(cls, texts: Sequence[str], counts: Sequence[int]) -> Labels:
        """Each text as often as its count."""
        names = tuple(dict.fromkeys(texts))
        if len(names) == 1:
            return cls(names, np.zeros(sum(counts), dtype=np.int32))
        each = np.array([names.index(text) for text in texts], dtype=np.int32)
        return cls(names, np.repeat(each, counts))

    @classmethod
    def concat(cls, parts: Sequence[Labels]) -> Labels:
        held = [part for part in parts if len(part)]
        if len(held) == 1:
            return held[0]
        names = tuple(dict.fromkeys(name for part in held for name in part.names))
        places = [part._among(names) for part in held]
        return cls(names, np.concatenate([np.zeros(0, dtype=np.int32), *places]))

    @classmethod
    def from_arrow(cls, column: pa.ChunkedArray) -> Labels:
        """From a column of texts without nulls."""
        coded = column.combine_chunks().dictionary_encode()
        return cls(tuple(coded.dictionary.to_pylist()), coded.indices.to_numpy())

    def to_arrow(self) -> pa.Array:
        if len(self.names) == 1:
            return pa.repeat(self.names[0], len(self))
        names = pa.array(self.names, pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(self.places), names).cast(pa.string())

    def take(self, rows: NDArray[Any] | slice) -> Labels:
        """The rows a mask, an index or a slice picks."""
        return Labels(self.names, self.places[rows])

    def replaced(self, rows: NDArray[Any], others: Labels) -> Labels:
        """The same with `others` in these rows."""
        names = tuple(dict.fromkeys((*self.names, *others.names)))
        places = self._among(names).copy()
        places[rows] = others._among(names)
        return Labels(names, places)

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[str]:
        return (self.names[place] for place in self.places.tolist())

    def _among(self, names: tuple[str, ...]) -> NDArray[np.int32]:
        if names[: len(self.names)] == self.names:
            return self.places
        return np.array([names.index(name) for name in self.names], dtype=np.int32)[self.places]
