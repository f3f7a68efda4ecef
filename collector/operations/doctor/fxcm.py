"""FXCM: a Python that runs its SDK, an account, and with a request its server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from collector.exchanges.fxcm.check import check
from collector.exchanges.fxcm.failures import EXCHANGE_ID, FxcmMissing
from collector.exchanges.fxcm.interpreter import find_interpreter
from collector.exchanges.fxcm.settings import FxcmSettings
from collector.operations.doctor.finding import Finding, ok, problem

if TYPE_CHECKING:
    from collector.settings import Settings

AREA = "fxcm"


async def fxcm(settings: Settings, *, used: bool, ask: bool) -> list[Finding]:
    """`used`: there is a connector. `ask` also tries its server, without a login."""
    named = {*settings.exchanges, *(stream.exchange for stream in settings.streams)}
    if settings.fxcm is None and EXCHANGE_ID not in named and not used:
        return [ok(AREA, "not used")]
    section = settings.fxcm or FxcmSettings()
    found = [await _interpreter(), _account(section, settings)]
    if ask:
        found.append(await _server(section, settings))
    return found


async def _interpreter() -> Finding:
    try:
        found = await find_interpreter(os.environ)
    except FxcmMissing as error:
        return problem(AREA, str(error), "install what is missing on a machine that runs a worker")
    words = f"Python {found.python} at {found.path} with forexconnect {found.sdk}"
    return ok(AREA, words)


def _account(section: FxcmSettings, settings: Settings) -> Finding:
    lacking = section.lacks(settings.home)
    if lacking is not None:
        return problem(AREA, lacking, "set what is missing where a worker runs")
    return ok(AREA, f"account {section.user}, with a password (not tried)")


async def _server(section: FxcmSettings, settings: Settings) -> Finding:
    url = settings.exchange_urls.get(EXCHANGE_ID) or section.url
    report = await check(os.environ, settings.home / "fxcm", url=url)
    if report.ok:
        return ok(AREA, f"{url} answers")
    return problem(AREA, f"{url}: {report.message or 'no answer'}", "collector fxcm check")
