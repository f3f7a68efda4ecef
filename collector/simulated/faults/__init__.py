"""Everything that can go wrong with an exchange, as data.

A fault is a frozen record that knows how to spoil one thing: a request's way here (`arrival`), the
history itself (`history`), the question that a page answers (`pages`), its rows (`rows`), the
answer on the wire (`answers`) or a websocket (`socket`).
`catalogue` reads and writes them as JSON, `book` decides which of those that are switched on strike
a request.
"""
