"""Who may reach this collector: keys of the API, and the addresses it and the workers listen on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from collector.errors import ConfigError
from collector.keys import ApiKeys
from collector.listening import only_loopback
from collector.mongo.home import announced_dashboard
from collector.operations.doctor.finding import Finding, ok, problem

if TYPE_CHECKING:
    from collector.settings import Settings

AREA = "api keys"


def access(settings: Settings) -> list[Finding]:
    secret = settings.api_keys
    try:
        keys = ApiKeys.parse(secret.get_secret_value() if secret else None)
    except ConfigError as error:
        return [problem(AREA, str(error), "collector key new prints a line as it should be")]
    server, worker = settings.server, settings.worker
    running = announced_dashboard(settings.home) if settings.mongo_uri is None else None
    at = f"{server.host} port {server.port}" + (f" (running at {running})" if running else "")
    return [
        _configured(keys),
        _listening(server.host, keys, f"the API listens on {at}"),
        _listening(worker.metrics_host, keys, f"workers serve metrics on {worker.metrics_host}"),
    ]


def _configured(keys: ApiKeys) -> Finding:
    if not keys:
        return ok(AREA, "none: whoever can use this machine is an admin of the API")
    counts = Counter(entry.role.word for entry in keys.entries)
    return ok(AREA, ", ".join(f"{count} {role}" for role, count in sorted(counts.items())))


def _listening(host: str, keys: ApiKeys, words: str) -> Finding:
    try:
        alone = only_loopback(host, keys)
    except ConfigError as error:
        return problem(AREA, str(error), "set COLLECTOR_API_KEYS, or listen on 127.0.0.1")
    return ok(AREA, f"{words}: {'this machine only' if alone else 'others can reach it, by key'}")
