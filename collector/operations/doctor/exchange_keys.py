"""Keys of exchanges: whether every reference in the settings can be resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import ConfigError
from collector.operations.doctor.finding import Finding, ok, problem

if TYPE_CHECKING:
    from collector.settings import Settings

AREA = "exchange keys"


def exchange_keys(settings: Settings) -> list[Finding]:
    """Reads each key and forgets it. Whether the exchange takes it, a worker finds out."""
    keyring = settings.keyring
    if not keyring.references:
        return [ok(AREA, "none: bars are public")]
    found = []
    for exchange_id, reference in sorted(keyring.references.items()):
        try:
            keyring.credentials(exchange_id)
        except ConfigError as error:
            words = f"{exchange_id}: {error}"
            found.append(problem(AREA, words, "put key:secret there, or take the reference out"))
        else:
            found.append(ok(AREA, f"{exchange_id}: {reference} is there"))
    return found
