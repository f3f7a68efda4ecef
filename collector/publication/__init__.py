"""Bars and live prices for other programs: Redis channels, each message once and in order."""
