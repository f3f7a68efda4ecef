"""Why something is not accepted into the history, or not answered from it."""

from __future__ import annotations

from collector.errors import CollectorError, RetryLater


class Refused(CollectorError, ValueError):
    """The request is wrong, and will be when repeated. The message names the fault."""

    code = "history_refused"
    exit_name = "E_USAGE"
    exit_code = 2


class SumOverflow(Refused):
    """A bucket's sum would pass 2^256-1. Nothing was changed."""

    code = "history_overflow"


class FilledTooMuch(Refused):
    """More candles would be made where nothing was traded than one answer may have."""

    code = "history_too_long"


class NotApplied(RetryLater):
    """An event that an answer is to include is not in the ledger yet."""

    code = "history_not_applied"


class HistoryDamaged(RetryLater):
    """A file that an answer needs is damaged. Other networks, and sending events, go on."""

    code = "history_damaged"
