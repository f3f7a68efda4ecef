"""`datalayer`: seed 003's own command line. Its verbs arrive with the lake."""

from __future__ import annotations

import sys

from collector.errors import ConfigError


def main() -> int:
    """Says honestly that there is nothing here yet."""
    print(
        f"{ConfigError.exit_name}: datalayer backfill, resample, validate and missing-report "
        "are not built yet (docs/ROADMAP.md)",
        file=sys.stderr,
    )
    return ConfigError.exit_code
