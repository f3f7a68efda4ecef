"""When a market is open, and which bars that leaves."""
