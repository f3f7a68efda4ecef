"""A column of few texts reads like the texts themselves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from collector.market.labels import Labels

TEXTS = st.lists(st.sampled_from(["", "binance", "fxcm", "trades"]), max_size=12)


def labels(texts: list[str]) -> Labels:
    return Labels.repeated(texts, [1] * len(texts))


@given(TEXTS, TEXTS)
def test_it_is_the_texts_it_was_made_of(one: list[str], other: list[str]) -> None:
    both = Labels.concat([labels(one), labels(other)])
    assert list(both) == one + other
    assert len(both) == len(one) + len(other)
    assert both.to_arrow().to_pylist() == one + other
    assert both.to_arrow().type == pa.string()
    again = Labels.from_arrow(pa.chunked_array([pa.array(one, pa.string()), both.to_arrow()]))
    assert list(again) == one + one + other


@given(TEXTS, st.data())
def test_rows_are_picked_and_replaced(texts: list[str], data: st.DataObject) -> None:
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))))
    rows = np.flatnonzero(mask)
    assert list(labels(texts).take(rows)) == [texts[at] for at in rows]
    others = data.draw(st.lists(st.sampled_from("abc"), min_size=len(rows), max_size=len(rows)))
    expected = list(texts)
    for at, other in zip(rows, others, strict=True):
        expected[at] = other
    assert list(labels(texts).replaced(rows, labels(others))) == expected


def test_each_text_is_repeated_by_its_count() -> None:
    assert list(Labels.repeated(["a", "b", "a"], [2, 0, 1])) == ["a", "a", "a"]
    assert list(Labels.repeated(["a", "b"], [1, 2])) == ["a", "b", "b"]
    assert list(Labels.repeated([], [])) == []
