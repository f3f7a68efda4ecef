"""Where Chromium is, and how it is started without a screen."""

from __future__ import annotations

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium_binary() -> str | None:
    """None when there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)
