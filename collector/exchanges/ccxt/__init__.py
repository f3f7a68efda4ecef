"""The adapter for every exchange that ccxt supports."""
