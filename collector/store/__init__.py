"""The lake: immutable parts, one sealed file a series, and the ledger of what was asked.

docs/store-format.md explains the files and how a crash at each point is healed.
"""
