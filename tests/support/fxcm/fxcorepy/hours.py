"""When the stand-in market is open: Sunday 17:00 to Friday 16:55 in New York.

It is closed for a day from 17:00 on Christmas Eve and on New Year's Eve. Everything begins and ends
at a multiple of five minutes. A trading day begins at 17:00.
"""

from datetime import date, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1)
_SUNDAY, _FRIDAY = 6, 4
_OPENS, _CLOSES = timedelta(hours=17), timedelta(hours=16, minutes=55)


def _nth_sunday(year, month, count):
    first = date(year, month, 1)
    return first + timedelta(days=(_SUNDAY - first.weekday()) % 7 + 7 * (count - 1))


def _offset(day):
    """New York's distance from UTC on a day. Clocks are changed while the market is closed."""
    summer = _nth_sunday(day.year, 3, 2) <= day < _nth_sunday(day.year, 11, 1)
    return timedelta(hours=-4 if summer else -5)


def _local(ms):
    utc = _EPOCH + timedelta(milliseconds=ms)
    return utc + _offset((utc - timedelta(hours=5)).date())


def _ms(local):
    return int((local - _offset(local.date()) - _EPOCH).total_seconds()) * 1000


def closed_since(ms):
    """When the market closed, where it is closed at `ms`; None where it is open."""
    return _closed_since(ms - ms % 300000)


def day_starts(ms):
    """When the trading day that holds `ms` begins."""
    return _day_starts(ms - ms % 300000)


@lru_cache(maxsize=4096)
def _day_starts(ms):
    local = _local(ms)
    start = datetime(local.year, local.month, local.day) + _OPENS
    return _ms(start if start <= local else start - timedelta(days=1))


def _holiday(local):
    """The start of the holiday in which a local time lies."""
    for month, day in ((12, 24), (12, 31)):
        for year in (local.year - 1, local.year):
            start = datetime(year, month, day) + _OPENS
            if start <= local < start + timedelta(days=1):
                return start
    return None


@lru_cache(maxsize=65536)
def _closed_since(ms):
    local = _local(ms)
    weekend = _weekend(local)
    if weekend is not None:
        # A holiday that runs into the weekend: the price stood still from its start.
        before = _closed_since(_ms(weekend - timedelta(minutes=5)))
        return _ms(weekend) if before is None else before
    holiday = _holiday(local)
    if holiday is None:
        return None
    before = _weekend(holiday - timedelta(minutes=5))
    return _ms(holiday if before is None else before)


def _weekend(local):
    """When the weekend that holds a local time began; None where there is none."""
    midnight = datetime(local.year, local.month, local.day)
    since_friday = (local.weekday() - _FRIDAY) % 7
    if since_friday > 2 or (since_friday == 0 and local - midnight < _CLOSES):
        return None
    if since_friday == 2 and local - midnight >= _OPENS:
        return None
    return midnight - timedelta(days=since_friday) + _CLOSES
