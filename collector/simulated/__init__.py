"""A whole exchange on this machine: Binance's public spot REST format, made-up bars, real faults.

It carries the demo, the tutorials and the load tests, and its journal is the witness that no rate
limit was ever exceeded. `server.SimulatedExchange` runs it inside a process,
`python -m collector.simulated` as one of its own.
"""
