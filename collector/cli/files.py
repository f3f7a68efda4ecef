"""Files that verbs write rows to: their paths and formats."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from collector.cli.failures import UsageMistake
from collector.cli.verb import Asked


class Form(StrEnum):
    """Formats of one file."""

    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


class BarForm(StrEnum):
    """The same, and programs that have a folder of files of their own."""

    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    FREQTRADE = "freqtrade"
    NAUTILUS = "nautilus"


FormOption = Annotated[
    Form | None, typer.Option("--format", help="Default: what the file's name ends with.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file.")]


def form_of(asked: Asked, form: Form | None, out: Path) -> Form:
    """The given format, else the one of the file's name."""
    if str(out) == "-" and asked.json:
        raise UsageMistake("--json and --out - both want standard output")
    if form is not None:
        return form
    try:
        return Form(out.suffix.removeprefix("."))
    except ValueError:
        raise UsageMistake("--format is csv, parquet or arrow") from None
