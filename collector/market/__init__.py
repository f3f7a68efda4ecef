"""The vocabulary of markets: pure values, no driver, no network, no asyncio."""
