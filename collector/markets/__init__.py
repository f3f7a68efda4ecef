"""What each exchange lists: the `markets` and `tickers` collections."""
