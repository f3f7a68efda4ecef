"""Live prices of an exchange: ticks become snapshots, a heartbeat and a market status."""
