"""The dashboard in a real Chromium, against real processes."""
