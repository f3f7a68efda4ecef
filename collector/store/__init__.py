"""The lake: immutable parts, one sealed file a series, and the ledger of what answers cover.

docs/store-format.md explains the files and how the store recovers from a crash at each point.
"""
