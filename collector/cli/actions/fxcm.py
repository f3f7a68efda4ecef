"""What `collector fxcm check` finds."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING

from collector.cli.output import Output, table
from collector.errors import CollectorError, ConfigError, ExchangeUnavailable
from collector.exchanges.fxcm.check import check
from collector.exchanges.fxcm.failures import EXCHANGE_ID, FxcmMissing
from collector.exchanges.fxcm.settings import FxcmSettings

if TYPE_CHECKING:
    from collector.exchanges.fxcm.check import FxcmReport
    from collector.settings import Settings


async def checked(settings: Settings) -> Output:
    """Without a login: the account has one session, and a worker may hold it."""
    section = settings.fxcm or FxcmSettings()
    url = settings.exchange_urls.get(EXCHANGE_ID) or section.url
    report = await check(os.environ, settings.home / "fxcm", url=url)
    account = section.lacks(settings.home)
    found = asdict(report)
    facts = {
        "ok": report.ok and account is None,
        **{name: found[name] for name in ("interpreter", "python", "sdk", "server_answers")},
        "url": url,
        "user": section.user,
        "message": report.message or account,
    }
    answers = {None: "not checked", True: "answers", False: "does not answer"}
    rows = [
        ("python", f"{report.python} at {report.interpreter}" if report.interpreter else None),
        ("SDK", report.sdk and f"forexconnect {report.sdk}"),
        ("server", f"{url} {answers[report.server_answers]}"),
        ("account", account or f"{section.user}, with a password (not tried)"),
    ]
    failure = _failure(report, account)
    return Output(facts, table(("", ""), rows), failures=[] if failure is None else [failure])


def _failure(report: FxcmReport, account: str | None) -> CollectorError | None:
    if report.interpreter is None:
        return FxcmMissing(report.message or "FXCM's SDK was not found")
    if not report.ok:
        return ExchangeUnavailable(report.message or "FXCM's server does not answer")
    return None if account is None else ConfigError(account)
