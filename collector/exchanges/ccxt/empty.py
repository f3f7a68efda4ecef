"""Whether an answer without rows means that there are none, or is broken.

ccxt turns an answer it does not understand into `[]`, and some venues report errors with a status
of 200 and an empty list. So an answer counts as empty only when the list is where rows are in a
normal answer (the very object that ccxt picked, or the place named by the venue's quirks), and when
nothing beside it reports an error. ccxt may pick the whole answer, or an object for its columns, so
what it picked must also be a page: a list without rows, or columns without cells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from collector.exchanges.ccxt.visit import Visit

_DEEPEST = 6
_CODES = frozenset({"code", "errorcode", "errcode", "errno", "retcode", "returncode", "rc"})
_FLAGS = frozenset({"success", "ok"})
_STATUS = "status"
_MESSAGES = frozenset(
    {"error", "errors", "err", "msg", "message", "errmsg", "errormsg", "errormessage", "retmsg"}
    | {"mc", "reason", "detail", "details"}
)
_RESULTS = frozenset({"result", "data"})
_NO_DATA = frozenset({"no_data", "nodata"})
_FINE = _NO_DATA | frozenset(
    {"", "0", "200", "200000", "ok", "true", "success", "successful", "operation successful"}
)
_WORDS = _CODES | _FLAGS | _MESSAGES | {_STATUS}
_TRADING_VIEW_STATUS = "s"
_BAD_TRADING_VIEW = "error"
_FEWEST_COLUMNS = 5
"""A time and four prices: an object with fewer lists is no page by columns."""


@dataclass(slots=True)
class EmptyAnswers:
    """Distinguishes empty pages from broken ones, and learns from the venue's good answers."""

    lists: Mapping[str, tuple[str, ...]]
    """Where an endpoint's list is, where that is known (see Quirks)."""
    _usual: dict[str, dict[str, str]] = field(default_factory=dict)

    def note_good(self, endpoint: str, json: Any) -> None:
        """An answer came with rows: its other fields are no error report."""
        if isinstance(json, dict):
            self._usual[endpoint] = dict(_remarks(json))

    def is_empty(self, endpoint: str, json: Any, visit: Visit, *, anywhere: bool = False) -> bool:
        """Whether this answer, from which ccxt read no row, means that there is none.

        `anywhere`: the place where ccxt looks is unknown, so any empty list is accepted.
        """
        place = self.lists.get(endpoint)
        stands = place is not None and at(json, place) == []
        picked = [visit.raw_rows, visit.raw_columns]
        if visit.wants_bars:  # Trades may be there: ccxt drops those before the requested time.
            picked = [each for each in picked if _has_no_bars(each)]
        stands = stands or _holds(json, picked)
        if not stands and not (anywhere and _holds_empty(json)):
            return False
        return not (isinstance(json, dict) and self._complains(endpoint, json))

    def _complains(self, endpoint: str, json: Mapping[str, Any]) -> bool:
        usual = self._usual.get(endpoint, {})
        agrees = _agrees(json)
        return any(
            usual.get(name) != remark and not _is_fine(name, remark, agrees)
            for name, remark in _remarks(json)
        )


def at(json: Any, path: tuple[str, ...]) -> Any:
    """The value at `path` of an answer; None when there is none."""
    for key in path:
        json = json.get(key) if isinstance(json, dict) else None
    return json


def _has_no_bars(picked: Any) -> bool:
    """Whether what ccxt took for a page is one, by rows or by columns, and holds no bar."""
    if not isinstance(picked, dict):
        return isinstance(picked, list) and not picked
    columns = [value for value in picked.values() if isinstance(value, list)]
    reports = {_text(picked.get(name)) for name in (_TRADING_VIEW_STATUS, _STATUS)}
    return not any(columns) and (len(columns) >= _FEWEST_COLUMNS or bool(reports & _NO_DATA))


def _holds(json: Any, picked: Sequence[Any], depth: int = 0) -> bool:
    """Whether what ccxt picked is a part of the answer, and not its own default."""
    if isinstance(json, (list, dict)) and any(json is each for each in picked):
        return True
    if depth == _DEEPEST:
        return False
    below = json.values() if isinstance(json, dict) else json if isinstance(json, list) else ()
    return any(_holds(value, picked, depth + 1) for value in below)


def _holds_empty(json: Any, depth: int = 0) -> bool:
    """Whether there is an empty list anywhere but among the messages."""
    if depth == _DEEPEST or not isinstance(json, dict):
        return isinstance(json, list) and not json
    below = (value for key, value in json.items() if _name(key) not in _MESSAGES)
    return any(_holds_empty(value, depth + 1) for value in below)


def _remarks(json: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What an answer reports beside its rows: codes, flags and messages."""
    for key, value in json.items():
        name = _name(key)
        if name in _WORDS and not isinstance(value, (list, dict)):
            yield name, _text(value)
        elif name in _MESSAGES and value:
            yield name, "it has a list of them"
        elif name in _RESULTS and value is None:
            yield name, "null"
        elif name == _TRADING_VIEW_STATUS and value == _BAD_TRADING_VIEW:
            yield name, _BAD_TRADING_VIEW


def _name(key: Any) -> str:
    return str(key).lower().replace("_", "")


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip().lower()


def _agrees(json: Mapping[str, Any]) -> bool:
    """Whether the answer explicitly reports success."""
    words = {_text(value) for key, value in json.items() if _name(key) in _WORDS}
    return bool(words & {"true", "ok", "success"})


def _is_fine(name: str, remark: str, agrees: bool) -> bool:
    if name in _FLAGS:
        return remark in {"", "1"} or (remark in _FINE and not remark.isdigit())
    # A 1 means success at some venues and failure at others.
    return remark in _FINE or not remark.strip("0") or (remark == "1" and agrees)
