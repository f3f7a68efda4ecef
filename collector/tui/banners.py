"""One line for each thing that is wrong now, above every mode. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.tui.sheet import Cell, Tone
from collector.tui.words import duration

if TYPE_CHECKING:
    from collector.tui.fleet_picture import Document, FleetPicture

_NAMES = {"fxcm_history": "FXCM", "redis": "REDIS"}


def banners(picture: FleetPicture) -> list[Cell]:
    """The most urgent first; each text once."""
    found: list[Cell] = []
    if picture.trouble:
        found.append(Cell(f"NO UPDATES: {picture.trouble}", Tone.BAD))
    elif picture.workers == ():
        found.append(Cell("NO WORKER IS ALIVE", Tone.BAD))
    for exchange_id, connector in sorted(picture.connectors.items()):
        found += _stops(picture, exchange_id, connector)
    for _, beat in sorted(picture.heartbeats.items()):
        known = ((beat["payload"].get("context") or {}).get("diag") or {}).get("backoff") or {}
        found += [_backoff(name, state) for name, state in known.items() if state.get("active")]
    return list(dict.fromkeys(found))


def _backoff(name: str, state: Document) -> Cell:
    """`FXCM BACKOFF 45 s (NetworkError x3)`; a first failure has no count."""
    times = int(state.get("fail_count") or 0)
    count = f" x{times}" if times > 1 else ""
    pause = float(state.get("sleep_seconds") or 0)
    kind = state.get("last_error_type") or "unknown"
    return Cell(f"{_NAMES.get(name, name.upper())} BACKOFF {pause:.0f} s ({kind}{count})", Tone.BAD)


def _stops(picture: FleetPicture, exchange_id: str, connector: Document) -> list[Cell]:
    found = []
    name = exchange_id.upper()
    until = connector.get("blocked_until") or 0
    if until > picture.at_ms:
        why = connector.get("blocked_reason") or "the exchange demanded a stop"
        found.append(Cell(f"{name} BLOCKED {duration(until - picture.at_ms)} ({why})", Tone.BAD))
    circuit = connector.get("circuit") or {}
    if circuit.get("state") == "TRIPPED":
        held = (circuit.get("tripped_until") or picture.at_ms) - picture.at_ms
        rate = circuit.get("err_rate") or 0
        found.append(Cell(f"{name} CIRCUIT TRIPPED {duration(held)} ({rate:.0%} errors)", Tone.BAD))
    if connector.get("status") == "paused":
        found.append(Cell(f"{name} PAUSED", Tone.WARNING))
    return found
