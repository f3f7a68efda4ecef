"""A process that logs in and then holds the session, to be killed or stopped by a test.

`python -m tests.support.fxcm.owner PYTHON HOME URL LEASE_SECONDS` prints one line when it is logged
in.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from collector.exchanges.fxcm.client import FxcmClient, FxcmLogin
from collector.exchanges.fxcm.interpreter import find_interpreter


async def hold(python: str, home: str, url: str, lease_seconds: str) -> None:
    environ = {**os.environ, "COLLECTOR_FXCM_PYTHON": python}
    interpreter = await find_interpreter(environ)
    client = FxcmClient(interpreter, Path(home), environ, lambda: float(lease_seconds))
    await client.login(FxcmLogin("trader", "secret", url))
    print("logged in", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(hold(*sys.argv[1:]))
