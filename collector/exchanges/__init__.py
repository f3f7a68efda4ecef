"""Exchanges: translation only. No limits, no retries, no sleeping live here."""
