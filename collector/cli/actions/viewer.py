"""What `collector watch` does on a terminal: the viewer, on the API that is meant."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from collector.cli.database import keep_quiet
from collector.cli.demo_settings import demo_home
from collector.clock import SystemClock
from collector.listening import is_on_this_machine
from collector.mongo.home import announced_dashboard
from collector.tui.app import Viewer
from collector.tui.remote_fleet import RemoteFleet

if TYPE_CHECKING:
    from collector.cli.verb import Asked
    from collector.settings import Settings


def view(asked: Asked, every: float, mode: str) -> None:
    """Until q or Ctrl-C. Raises what ended it, if something did."""
    settings = asked.settings()
    keep_quiet(settings)
    figures_every = max(2.0, every)
    url = api_url(settings)
    # Nobody has named this address for the key: a file or a process may have.
    token = settings.token if settings.url or is_on_this_machine(url) else None
    fleet = RemoteFleet(url, token, random.random, figures_every)
    viewer = Viewer(fleet, SystemClock(), every, mode)
    viewer.run()
    if viewer.failure is not None:
        raise viewer.failure


def api_url(settings: Settings) -> str:
    """What was configured, else the API that `collector up` started, else where one listens.

    Of two in a home the real one goes before the demo.
    """
    if settings.url:
        return settings.url
    for home in (settings.home, demo_home(settings.home)):
        if (announced := announced_dashboard(home)) is not None:
            return announced
    server = settings.server
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"http://{host}:{server.port}"
