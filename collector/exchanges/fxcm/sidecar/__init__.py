"""The sidecar: FXCM's SDK in a process of its own, because the SDK only loads into Python 3.7.

Everything in this folder runs on Python 3.7 with nothing but the standard library, and the parent
never imports the SDK. The two talk in JSON lines over the sidecar's standard input and output.

    parent to sidecar   {"id": 7, "op": "history", "lease_ms": 20000, ...}
    sidecar to parent   {"id": 7, "result": {...}}
                        {"id": 7, "error": {"kind": "...", "type": "...", "message": "..."}}
                        {"seq": 12, "dropped": 0, "events_dropped": 0, "ticks": [...],
                         "events": [["session", "CONNECTED", 1700000000000], ...]}

Operations: hello, login, offers, subscribe, history, ping, logout, exit.
Events: session, tick (in `ticks`), table_status, error.

Threads, and what each may do:

    main      takes requests in turn and makes the calls of the SDK
    inbox     reads lines, answers ping, keeps the lease, ends the process
    outbox    the only one that writes lines
    the SDK's own   call back; a callback copies fields into the outbox's queue and returns

`lease_ms` is how long the parent still holds the right to the account's session. When it passes
without another line, or standard input ends, the sidecar logs out and exits by itself.
"""

PROTOCOL = 1
