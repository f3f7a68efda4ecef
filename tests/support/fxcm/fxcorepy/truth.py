"""The prices of the stand-in market: exact, made up, and the same wherever they are worked out.

A price is known for the beginning of every minute. A minute's bar opens with it and closes with
the next minute's, so that every bar opens where the one before closed. While the market is closed
the price stays, and there are no bars. Longer bars are made of minutes, counted from the start of
the trading day at 17:00 in New York; a week is dated by the Saturday before it, a month by the
evening before its first day. (That FXCM dates them so is what its users report.)
"""

from collections import namedtuple
from datetime import datetime, timedelta

from .hours import closed_since, day_starts

MINUTE_MS = 60000
DAY_MS = 86400000
_EPOCH = datetime(1970, 1, 1)

Instrument = namedtuple("Instrument", "offer_id digits point_size points salt")
INSTRUMENTS = {
    "EUR/USD": Instrument("1", 5, 0.0001, 110000, 1),
    "USD/JPY": Instrument("2", 3, 0.01, 150000, 2),
    "XAU/USD": Instrument("4001", 2, 0.01, 420000, 3),
}
_OTHERS = (
    *("GBP/USD", "USD/CHF", "EUR/CHF", "AUD/USD", "USD/CAD", "NZD/USD", "EUR/GBP", "EUR/AUD"),
    *("EUR/CAD", "EUR/NZD", "GBP/CHF", "GBP/AUD", "GBP/CAD", "AUD/CAD", "AUD/NZD", "NZD/CAD"),
    "XAG/USD",
)
INSTRUMENTS.update(
    (name, Instrument(str(100 + number), 5, 0.0001, 100000 + 1000 * number, 10 + number))
    for number, name in enumerate(_OTHERS)
)
_MINUTES = {"m": 1, "H": 60, "D": 1440, "W": 7 * 1440}
TIMEFRAMES = (
    *("t1", "m1", "m2", "m3", "m4", "m5", "m10", "m15", "m30"),
    *("H1", "H2", "H3", "H4", "H6", "H8", "H12", "D1", "D2", "W1", "M1"),
)

Bar = namedtuple(
    "Bar",
    "date bid_open bid_high bid_low bid_close ask_open ask_high ask_low ask_close volume",
)


def _mixed(number, salt):
    """32 bits that look like chance."""
    bits = (number * 0x9E3779B1 + salt * 0x85EBCA77) & 0xFFFFFFFF
    bits = ((bits ^ (bits >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
    bits = ((bits ^ (bits >> 12)) * 0x297A2D39) & 0xFFFFFFFF
    return bits ^ (bits >> 15)


def _points(name, minute):
    """The bid at the beginning of a minute of open time, in the smallest steps of the price.

    Of the minute in which the market closes it is the last price.
    """
    instrument = INSTRUMENTS[name]
    return instrument.points + _mixed(minute, instrument.salt) % 2001 - 1000


def _spread(name, minute):
    return 5 + _mixed(minute, INSTRUMENTS[name].salt + 100) % 20


def _priced(ms):
    """The minute whose price holds at `ms`: while the market is closed the one of its close."""
    closed_ms = closed_since(ms)
    return (ms if closed_ms is None else closed_ms) // MINUTE_MS


def _price(name, points):
    return points / 10 ** INSTRUMENTS[name].digits


def price(name, ms):
    """The bid at the beginning of the minute in which `ms` lies."""
    return _price(name, _points(name, _priced(ms)))


def ask(name, ms):
    minute = _priced(ms)
    return _price(name, _points(name, minute) + _spread(name, minute))


def _minute(name, minute, now_ms):
    """Bid and ask in points, and the volume, of one minute; None when there is no such bar."""
    start = minute * MINUTE_MS
    if start > now_ms or closed_since(start) is not None:
        return None
    opened, closed = _points(name, minute), _points(name, minute + 1)
    volume = 1 + _mixed(minute, INSTRUMENTS[name].salt + 200) % 500
    up, down = _mixed(minute, 300) % 30, _mixed(minute, 400) % 30
    elapsed = min(now_ms - start, MINUTE_MS)
    if elapsed < MINUTE_MS:  # it is still running
        closed = opened + (closed - opened) * elapsed // MINUTE_MS
        volume, up, down = volume * elapsed // MINUTE_MS, 0, 0
    bid = (opened, max(opened, closed) + up, min(opened, closed) - down, closed)
    first, last = _spread(name, minute), _spread(name, minute + 1)
    wide, narrow = max(first, last), min(first, last)
    return bid, (opened + first, bid[1] + wide, bid[2] + narrow, closed + last), volume


def _joined(prices):
    return (
        prices[0][0],
        max(each[1] for each in prices),
        min(each[2] for each in prices),
        prices[-1][3],
    )


def minutes_of(timeframe):
    return _MINUTES[timeframe[0]] * int(timeframe[1:])


def _days(from_ms, to_ms):
    """The trading days from the one that holds `from_ms` on: start, end and number of each."""
    start = day_starts(from_ms)
    while start <= to_ms:
        end = day_starts(start + 26 * 3600000)
        yield start, end, (start + 12 * 3600000) // DAY_MS
        start = end


def _group(timeframe, day):
    """Days of one bar have the same group."""
    if timeframe == "W1":
        return (day - 3) // 7
    if timeframe == "M1":
        date = _EPOCH + timedelta(days=day)
        return date.year * 12 + date.month
    return day // int(timeframe[1:])


def _windows(timeframe, from_ms, to_ms):
    """Start and end of every bar that begins from `from_ms` to `to_ms`."""
    if timeframe[0] == "m" or timeframe == "H1":
        length = minutes_of(timeframe) * MINUTE_MS
        for start in range(-(-from_ms // length) * length, to_ms + 1, length):
            yield start, start + length
    elif timeframe[0] == "H":
        length = minutes_of(timeframe) * MINUTE_MS
        for day, end, _ in _days(from_ms, to_ms):
            for start in range(day, end, length):
                if from_ms <= start <= to_ms:
                    yield start, min(start + length, end)
    else:
        begun = group = last = None
        for day, end, number in _days(from_ms - DAY_MS, to_ms + 32 * DAY_MS):
            if _group(timeframe, number) != group:
                if begun is not None and from_ms <= begun <= to_ms:
                    yield begun, last
                begun = None if group is None else day
                group = _group(timeframe, number)
            last = end


def bars(name, timeframe, from_ms, to_ms, now_ms, first_ms=0):
    """Every bar that begins from `from_ms` to `to_ms`, the running one included.

    There is no history from before `first_ms`.
    """
    found = []
    for start, end in _windows(timeframe, max(from_ms, first_ms), min(to_ms, now_ms)):
        minutes = range(start // MINUTE_MS, end // MINUTE_MS)
        parts = [_minute(name, minute, now_ms) for minute in minutes]
        parts = [each for each in parts if each is not None]
        if parts:
            date = _EPOCH + timedelta(milliseconds=start)
            bids, asks = _joined([each[0] for each in parts]), _joined([each[1] for each in parts])
            volume = sum(each[2] for each in parts)
            found.append(Bar(date, *(_price(name, each) for each in bids + asks), volume))
    return found
