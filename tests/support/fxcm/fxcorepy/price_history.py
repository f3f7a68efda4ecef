"""History: a communicator that becomes ready, requests that block, bars from the truth."""

import os
from datetime import datetime

from . import truth
from .enums import O2GCandleOpenPriceMode, O2GTimeFrameUnit

_NO_DATE = datetime(1899, 12, 30)
_EPOCH = datetime(1970, 1, 1)
_UNITS = {
    "t": O2GTimeFrameUnit.TICK,
    "m": O2GTimeFrameUnit.MIN,
    "H": O2GTimeFrameUnit.HOUR,
    "D": O2GTimeFrameUnit.DAY,
    "W": O2GTimeFrameUnit.WEEK,
    "M": O2GTimeFrameUnit.MONTH,
}


def failed(text, code):
    return Exception(f"PriceHistoryManager error: {text} code: {code}")


class O2GTimeFrame:
    def __init__(self, name):
        self.id = name
        self.size = int(name[1:])
        self.unit = _UNITS[name[0]]
        self.query_depth = -1


class TimeframeFactory:
    def create(self, name):
        if name not in truth.TIMEFRAMES:
            raise failed(f"Invalid timeframe tf={name}", "BadArguments")
        return O2GTimeFrame(name)


class PriceHistoryCommunicatorRequest:
    """Time zones and parts of a second are dropped here, without a word."""

    def __init__(self, instrument, timeframe, date_from, date_to, quotes_count):
        made = "Can't create IPriceHistoryCommunicatorRequest because {}"
        if not instrument:
            raise failed(made.format("instrument is NULL or empty."), "OtherError")
        if timeframe is None:
            raise failed(made.format("timeframe is NULL."), "OtherError")
        self.instrument = instrument
        self.timeframe = timeframe
        self.from_date = _kept(date_from)
        self.to_date = _kept(date_to)
        self.quotes_Count = quotes_count


def _kept(date):
    return _NO_DATE if date is None else date.replace(tzinfo=None, microsecond=0)


class PriceHistoryCommunicatorFactory:
    @staticmethod
    def create_communicator(session, path):
        if session is None:
            missing = "pointer to IO2GSessionIsNull is NULL."
            raise failed(f"Can't create PriceHistoryCommunicator because {missing}", "OtherError")
        os.makedirs(path, exist_ok=True)
        return PriceHistoryCommunicator(session)


class PriceHistoryCommunicator:
    def __init__(self, session):
        self.timeframe_factory = TimeframeFactory()
        self.candle_open_price_mode = O2GCandleOpenPriceMode.PREVIOUS_CLOSE
        self._session = session
        self._polls = 0

    def is_ready(self):
        """A method. Ready once it was called often enough; where that is None, never."""
        self._polls += 1
        return self._is_ready()

    def create_request(self, *arguments):
        return PriceHistoryCommunicatorRequest(*arguments)

    def get_history(self, instrument, timeframe, date_from, date_to, quotes_count):
        request = self.create_request(instrument, timeframe, date_from, date_to, quotes_count)
        if not self._is_ready():
            raise failed("PriceHistoryCommunicator is not ready.", "OtherError")
        answer = self._session.line.ask(
            op="history",
            instrument=instrument,
            timeframe=timeframe.id,
            count=quotes_count,
            to_ms=0 if request.to_date == _NO_DATE else _ms(request.to_date),
        )
        if answer is None:
            raise failed("Session is not valid", "OtherError")
        if answer.get("error"):
            raise Exception(answer["error"])  # noqa: TRY002 - as the SDK does
        if instrument not in truth.INSTRUMENTS:
            raise failed("Invalid request. Instrument is not found.", "BadArguments")
        now_ms = answer["now_ms"]
        to_ms = now_ms if request.to_date == _NO_DATE else _ms(request.to_date)
        from_ms, first_ms = _ms(request.from_date), answer.get("first_ms", 0)
        if to_ms < first_ms:
            raise failed("There are no quotes", "QuotesNotFound")
        return truth.bars(instrument, timeframe.id, from_ms, to_ms, now_ms, first_ms)

    def _is_ready(self):
        after = self._session.ready_after
        connected = self._session.table_manager is not None
        return connected and after is not None and self._polls > after


def _ms(date):
    return int((date - _EPOCH).total_seconds()) * 1000
