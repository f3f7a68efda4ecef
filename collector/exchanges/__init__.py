"""Exchanges: translation only. No limits, no retries and no sleeping here."""
