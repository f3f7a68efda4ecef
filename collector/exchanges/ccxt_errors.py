"""ccxt's errors sorted by the reaction they ask for.

What the venue said comes before what ccxt made of it: ccxt raises the same retryable error for a
400, a 404 and a 451, none for some 5xx, and takes a body cut short for an error of the exchange.
"""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from ccxt.base import errors as ccxt

from collector.errors import BadRequest, CollectorError, ExchangeBlocked, ExchangeUnavailable

if TYPE_CHECKING:
    from collector.clock import Clock
    from collector.exchanges.ccxt_visit import Reply
    from collector.exchanges.quirks import BanRule, Quirks

_STOP = frozenset({418, 429})
_UNAVAILABLE_FOR_LEGAL_REASONS = 451
_TRY_AGAIN = frozenset({408, 425})
_LONGEST_REASON = 300

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


def sorted_error(error: Exception, quirks: Quirks, reply: Reply | None, clock: Clock) -> Exception:
    """The error as Collector names it; Collector's own errors, and plain bugs, as they are."""
    if isinstance(error, CollectorError):
        return error
    venue, status = quirks.exchange_id, 0 if reply is None else reply.status
    if status == _UNAVAILABLE_FOR_LEGAL_REASONS or isinstance(error, ccxt.RestrictedLocation):
        return BadRequest(
            f"{venue} does not serve this address's country (451): {_reason(error, reply)}"
        )
    rule = None if reply is None else _ban_rule(quirks, reply)
    # Where a rule tells bans from other answers of that status, ccxt's guess does not count: a
    # country that Bybit does not serve is a 403 too.
    ruled = status >= 400 and any(known.status == status for known in quirks.bans)
    if status in _STOP or rule is not None or (isinstance(error, _BLOCKED) and not ruled):
        return ExchangeBlocked(
            venue,
            _reason(error, reply),
            retry_after_ms=_ban_ms(quirks, rule, reply, clock),
        )
    if reply is not None and any(phrase in reply.body.lower() for phrase in quirks.refusals):
        return BadRequest(f"{venue} refused the request: {_reason(error, reply)}")
    if status >= 500 or status in _TRY_AGAIN or _passing(error):
        return _unavailable(venue, error, reply, clock)
    if 400 <= status < 500 or isinstance(error, _OUR_MISTAKE):
        return BadRequest(f"{venue} refused the request: {_reason(error, reply)}")
    if isinstance(error, ccxt.BaseError) or reply is not None:
        # With an answer in hand, anything else that went wrong went wrong in reading it.
        return _unavailable(venue, error, reply, clock)
    return error


def _passing(error: Exception) -> bool:
    """Whether the venue says that the trouble is its own."""
    if isinstance(error, _PASSING):
        return True
    # ccxt raises this one of a bare status too, a 400 or a 404 as well, and then names the request.
    bare = str(error).partition(" ")[2].startswith(("GET http", "POST http"))
    return isinstance(error, ccxt.ExchangeNotAvailable) and not bare


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
    # Against the venue's own clock where it shows it, so that ours may be wrong.
    now = http_date_ms(reply.headers.get("date", ""))
    return max(0, until - (clock.wall_ms() if now is None else now))


def http_date_ms(text: str) -> int | None:
    """A date as HTTP writes it, in epoch milliseconds; None when it is not one."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return round(date.timestamp() * 1000)


def _ban_rule(quirks: Quirks, reply: Reply) -> BanRule | None:
    body = reply.body.lower()
    return next((r for r in quirks.bans if r.status == reply.status and r.phrase in body), None)


def _ban_ms(quirks: Quirks, rule: BanRule | None, reply: Reply | None, clock: Clock) -> int | None:
    if reply is None:
        return None
    said = retry_after_ms(reply, clock)
    if said is not None:
        return said
    until = re.search(quirks.banned_until, reply.body) if quirks.banned_until else None
    if until is not None:
        return max(0, int(until.group(1)) - clock.wall_ms())
    return None if rule is None else rule.wait_ms


def _unavailable(
    venue: str, error: Exception, reply: Reply | None, clock: Clock
) -> ExchangeUnavailable:
    wait = None if reply is None else retry_after_ms(reply, clock)
    return ExchangeUnavailable(f"{venue}: {_reason(error, reply)}", retry_after_ms=wait)


def _reason(error: Exception, reply: Reply | None) -> str:
    """What happened, short enough to read: status and body where there are any."""
    cause = error.__cause__
    said = str(error) or type(error).__name__
    if reply is not None and reply.status >= 400:
        said = f"{reply.status} {reply.body}".strip()
    elif cause is not None:
        said = f"{said}: {type(cause).__name__} {cause}".strip()
    said = f"{type(error).__name__}: {said}"
    return said if len(said) <= _LONGEST_REASON else said[: _LONGEST_REASON - 1] + "…"
