"""Brings a database to the schema this program needs: `python -m migrations up|status`."""
