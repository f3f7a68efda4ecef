"""ccxt's errors, sorted by the reaction they need.

The venue's own answer takes precedence over ccxt's reading of it: ccxt raises the same retryable
error for a 400, a 404 and a 451, none for some 5xx, and takes a truncated body for an error of the
exchange.

A refusal is permanent only by the venue's own answer: a code that ccxt maps, or a phrase of its
quirks. A bare status may come from a gateway that was just restarted; it is tried again.
"""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache
from traceback import walk_tb
from typing import TYPE_CHECKING

from ccxt.base import errors as ccxt

from collector.durations import DAY_MS
from collector.errors import (
    BadRequest,
    CollectorError,
    ExchangeBlocked,
    ExchangeRefused,
    ExchangeUnavailable,
)

if TYPE_CHECKING:
    from collector.clock import Clock
    from collector.exchanges.ccxt.visit import Reply
    from collector.exchanges.quirks import BanRule, Quirks

_TEAPOT = 418  # "you went on after a 429"
_STOP = frozenset({_TEAPOT, 429})
_UNAVAILABLE_FOR_LEGAL_REASONS = 451
_TRY_AGAIN = frozenset({408, 425})
_LONGEST_REASON = 300
_LONGEST_DELAY_MS = DAY_MS
_LONGEST_BAN_MS = 365 * DAY_MS
"""Whatever a venue demands: MongoDB cannot hold any number, and a person has to hear of it."""

_BLOCKED = (ccxt.DDoSProtection, ccxt.RateLimitExceeded)
_PASSING = (ccxt.RequestTimeout, ccxt.OnMaintenance)
_OUR_MISTAKE = (
    ccxt.BadRequest,
    ccxt.ArgumentsRequired,
    ccxt.NotSupported,
    ccxt.AuthenticationError,
    ccxt.OperationRejected,
    ccxt.ContractUnavailable,
)
_FAILED_ON_A_VALUE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_CODE = ("ccxt.", "collector.")


def sorted_error(error: Exception, quirks: Quirks, reply: Reply | None, clock: Clock) -> Exception:
    """The error as one of Collector's; Collector's own errors, and plain bugs, unchanged."""
    if isinstance(error, CollectorError):
        return error
    venue, status = quirks.exchange_id, 0 if reply is None else reply.status
    bare = status >= 400 and _names_the_request(error)
    by_venue = reply is not None and reply.body.lstrip().startswith("{")
    legal = status == _UNAVAILABLE_FOR_LEGAL_REASONS and by_venue
    if legal or isinstance(error, ccxt.RestrictedLocation):
        return BadRequest(
            f"{venue} does not serve this address's country (451): {_reason(error, reply)}"
        )
    rule = None if reply is None else ban_rule(quirks, reply)
    # Where a rule distinguishes bans from other answers of that status, ccxt's guess does not
    # count: a country that Bybit does not serve is a 403 too.
    ruled = status >= 400 and any(known.status == status for known in quirks.bans)
    if status in _STOP or rule is not None or (isinstance(error, _BLOCKED) and not ruled):
        return ExchangeBlocked(
            venue,
            _reason(error, reply),
            retry_after_ms=_ban_ms(quirks, rule, reply, clock),
            ban=status == _TEAPOT or rule is not None,
        )
    if reply is not None and any(phrase in reply.body.lower() for phrase in quirks.refusals):
        return BadRequest(f"{venue} refused the request: {_reason(error, reply)}")
    if status >= 500 or status in _TRY_AGAIN or (_passing(error) and not bare):
        return _unavailable(venue, error, reply, clock)
    if isinstance(error, _OUR_MISTAKE) and not bare:
        return BadRequest(f"{venue} refused the request: {_reason(error, reply)}")
    if reply is not None and 400 <= status < 500:
        message = f"{venue} refused the request: {_reason(error, reply)}"
        return ExchangeRefused(message, kind=str(status), retry_after_ms=_delay_ms(reply, clock))
    if isinstance(error, ccxt.BaseError) or reply is not None or _happened_in_ccxt(error):
        # With an answer received, any other failure happened in reading it.
        return _unavailable(venue, error, reply, clock)
    return error


def _passing(error: Exception) -> bool:
    """Whether the venue reports a fault of its own."""
    return isinstance(error, (*_PASSING, ccxt.ExchangeNotAvailable))


def _happened_in_ccxt(error: Exception) -> bool:
    """Whether ccxt's own code failed on a value, such as a market's id that it takes for a number.

    The standard library may have raised it; what counts is whether ccxt called that or we did.
    """
    if not isinstance(error, _FAILED_ON_A_VALUE):
        return False
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    ours_or_theirs = [name.partition(".")[0] for name in modules if name.startswith(_CODE)]
    return ours_or_theirs[-1:] == ["ccxt"]


def _names_the_request(error: Exception) -> bool:
    """Whether ccxt judged by the status alone: then it names the request, not the venue's code."""
    return str(error).partition(" ")[2].startswith(("GET http", "POST http"))


def retry_after_ms(reply: Reply, clock: Clock) -> int | None:
    """The answer's Retry-After, in seconds or as a date; None when it has none."""
    text = reply.headers.get("retry-after", "").strip()
    try:
        return max(0, round(float(text) * 1000))
    except (ValueError, OverflowError):
        pass
    until = http_date_ms(text)
    if until is None:
        return None
    # By the venue's own clock where it is known, in case ours is wrong.
    now = http_date_ms(reply.headers.get("date", ""))
    return max(0, until - (clock.wall_ms() if now is None else now))


@lru_cache(maxsize=16)
def http_date_ms(text: str) -> int | None:
    """A date as HTTP writes it, in epoch milliseconds; None when it is not one.

    It is to the second: answers that come together have the same.
    """
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return round(date.timestamp() * 1000)


def ban_rule(quirks: Quirks, reply: Reply) -> BanRule | None:
    """The rule by which an answer means stop; None when it does not."""
    rules = [rule for rule in quirks.bans if rule.status in (None, reply.status)]
    body = _without_spaces(reply.body.lower()) if rules else ""
    return next((rule for rule in rules if _without_spaces(rule.phrase) in body), None)


def _without_spaces(text: str) -> str:
    return text.replace(" ", "")


def _ban_ms(quirks: Quirks, rule: BanRule | None, reply: Reply | None, clock: Clock) -> int | None:
    if reply is None:
        return None
    wait_ms = retry_after_ms(reply, clock)
    until = re.search(quirks.banned_until, reply.body) if quirks.banned_until else None
    if wait_ms is None and until is not None:
        wait_ms = max(0, int(until.group(1)) - clock.wall_ms())
    if wait_ms is not None:
        return min(wait_ms, _LONGEST_BAN_MS)
    return None if rule is None else rule.wait_ms


def _delay_ms(reply: Reply | None, clock: Clock) -> int | None:
    """How long an answer that is no ban wants the job to wait."""
    wait_ms = None if reply is None else retry_after_ms(reply, clock)
    return None if wait_ms is None else min(wait_ms, _LONGEST_DELAY_MS)


def _unavailable(
    venue: str, error: Exception, reply: Reply | None, clock: Clock
) -> ExchangeUnavailable:
    message = f"{venue}: {_reason(error, reply)}"
    return ExchangeUnavailable(message, retry_after_ms=_delay_ms(reply, clock))


def _reason(error: Exception, reply: Reply | None) -> str:
    """What happened, short enough to read: status and body where there are any."""
    cause = error.__cause__
    message = str(error) or type(error).__name__
    if reply is not None and reply.status >= 400:
        message = f"{reply.status} {reply.body}".strip()
    elif cause is not None:
        message = f"{message}: {type(cause).__name__} {cause}".strip()
    message = f"{type(error).__name__}: {message}"
    return message if len(message) <= _LONGEST_REASON else message[: _LONGEST_REASON - 1] + "…"
