"""Whether FXCM can be used from here: which Python, which SDK, and whether the server answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.errors import CollectorError, ExchangeRefused, KeyRefused
from collector.exchanges.fxcm.client import FxcmClient, FxcmLogin
from collector.exchanges.fxcm.failures import FxcmMissing
from collector.exchanges.fxcm.interpreter import find_interpreter
from collector.exchanges.fxcm.settings import URL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from collector.exchanges.fxcm.process import Timeouts

# Longer than a login may take.
_LEASE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class FxcmReport:
    """What was found. `message` explains the first thing that is not as it should be.

    `server_answers` is None when it was not checked. `logged_in` is None when no credentials were
    given.
    """

    interpreter: str | None = None
    python: str | None = None
    sdk: str | None = None
    server_answers: bool | None = None
    logged_in: bool | None = None
    message: str | None = None

    @property
    def ok(self) -> bool:
        return self.server_answers is True and self.logged_in is not False


async def check(
    environ: Mapping[str, str],
    home: Path,
    *,
    credentials: FxcmLogin | None = None,
    url: str = URL,
    timeouts: Timeouts | None = None,
) -> FxcmReport:
    """Tries it out, up to a login.

    A login with credentials ends the session that the account has elsewhere, so they are for a
    moment in which no worker holds it. Without them a user that does not exist tries: a server that
    answers at all refuses it.
    """
    report = FxcmReport()
    try:
        interpreter = await find_interpreter(environ)
        report = replace(
            report,
            interpreter=str(interpreter.path),
            python=interpreter.python,
            sdk=interpreter.sdk,
        )
        client = FxcmClient(interpreter, home, environ, lambda: _LEASE_SECONDS, timeouts=timeouts)
        async with client:
            await client.login(credentials or FxcmLogin("nobody", "nothing", url))
    except FxcmMissing as error:
        return replace(report, message=str(error))
    except (KeyRefused, ExchangeRefused) as error:
        if credentials is None:
            return replace(report, server_answers=True)
        return replace(report, server_answers=True, logged_in=False, message=str(error))
    except CollectorError as error:
        logged_in = None if credentials is None else False
        return replace(report, server_answers=False, logged_in=logged_in, message=str(error))
    return replace(report, server_answers=True, logged_in=True if credentials else None)
