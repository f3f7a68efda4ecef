"""Collector: market data from exchanges into a lake one can trust."""

__version__ = "0.1.0"
