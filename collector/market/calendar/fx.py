"""Foreign exchange: from Sunday 17:00 to Friday 16:55 New York, through every night.

A trading day ends at 17:00 New York, as is usual for foreign exchange (how FXCM dates its days was
not verified): Monday's daily bar opens on Sunday at 17:00, 4h bars at 17:00, 21:00, 01:00 and so
on. New York changes its clocks on a Sunday at 02:00, when the market is closed, so every trading
day with a session lasts 24 hours. A week is five such days, from Sunday 17:00.

The holidays are the hours that are closed in every year. Longer closures differ from year to year
and between brokers: a slot in one of them reads `no_trade` once an answer covers it, or an override
closes it. A bar that came in closed time is kept all the same.
"""

from __future__ import annotations

from collector.market.calendar.sessions import Holiday, Session, Sessions

FX = Sessions(
    name="fx",
    zone="America/New_York",
    week=(Session("sun 17:00", "fri 16:55"),),
    day_starts=-7 * 60,
    holidays=(Holiday("12-24 17:00", "12-25 17:00"), Holiday("12-31 17:00", "01-01 17:00")),
)
