"""Confirmed trades as exact OHLCV buckets that survive a reorganised chain.

The ledger is the truth: every accepted input and every deletion is a row of it, in the order of
their sequence. Buckets are worked out from it, saved now and then, and brought up to the ledger's
head when they are read. docs/adr/0026 gives the reasons.
"""
