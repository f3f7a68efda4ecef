"""What can go wrong with FXCM, as errors that name the reaction they need.

ConfigError
└── FxcmMissing            no Python 3.7, or no SDK in it
ExchangeUnavailable
├── FxcmNotReady           history cannot be requested yet; normal while the market is closed
├── FxcmNoData             the server has no history there; normal while the market is closed
└── SidecarLost            the process is gone: it died, or hung and was killed
    └── SessionLost        the session is gone, and its process with it
KeyRefused                 the server does not accept the user and the password
ExchangeRefused            the server knows no such user; it answers so in outages, too
ExchangeBlocked            the server counts too many requests
BadRequest                 unknown instrument or timeframe

After SidecarLost and SessionLost only a new login helps; it starts a process of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import (
    BadRequest,
    CollectorError,
    ConfigError,
    ExchangeBlocked,
    ExchangeRefused,
    ExchangeUnavailable,
    KeyRefused,
)

if TYPE_CHECKING:
    from collections.abc import Callable

EXCHANGE_ID = "fxcm"


class FxcmMissing(ConfigError):
    """FXCM's SDK cannot be run on this machine. The message names what to install."""

    code = "fxcm_missing"


class FxcmNotReady(ExchangeUnavailable):
    """The SDK is logged in, but its history is not ready."""

    code = "fxcm_not_ready"


class FxcmNoData(ExchangeUnavailable):
    """The server reports that it has no history for the requested time."""

    code = "fxcm_no_data"


class SidecarLost(ExchangeUnavailable):
    """The sidecar process is gone."""

    code = "fxcm_sidecar_lost"


class SessionLost(SidecarLost):
    """The account's session has ended, perhaps because another login took it."""

    code = "fxcm_session_lost"


_BY_KIND: dict[str, Callable[[str], CollectorError]] = {
    "login_refused": KeyRefused,
    "login_doubtful": lambda message: ExchangeRefused(message, kind="fxcm_login"),
    "session_lost": SessionLost,
    "not_ready": FxcmNotReady,
    "no_data": FxcmNoData,
    "limited": lambda message: ExchangeBlocked(EXCHANGE_ID, message),
    "bad_request": BadRequest,
    "sdk_missing": lambda message: FxcmMissing(
        f"FXCM's SDK cannot be imported ({message}): {HOW_TO_INSTALL}"
    ),
}

HOW_TO_INSTALL = (
    "install it into a Python 3.7 with"
    " `python3.7 -m pip install forexconnect==1.6.43 numpy==1.21.6 pandas==1.3.5`"
    " and set COLLECTOR_FXCM_PYTHON to that Python"
)


class SdkFailure(Exception):
    """The cause of an error that the sidecar answered: its kind, in the sidecar's words."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def failure(kind: str, message: str) -> CollectorError:
    """The error for what the sidecar answered. A kind that is not known may pass by itself."""
    error = _BY_KIND.get(kind, ExchangeUnavailable)(f"{EXCHANGE_ID}: {message}")
    error.__cause__ = SdkFailure(kind)
    return error


def kind_of(error: CollectorError) -> str:
    """The SDK's kind of failure where it is known, else the name of our own."""
    cause = error.__cause__
    if isinstance(cause, SdkFailure) and cause.kind != "unknown":
        return cause.kind
    return type(error).__name__
