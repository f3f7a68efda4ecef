"""States of a session: each is reached, and left again."""

from __future__ import annotations

from collector.exchanges.exclusive import SessionState
from collector.exchanges.fxcm.session_health import SessionHealth

STREAM, IDLE, DISCONNECTED, RECOVERING = (
    SessionState.STREAM,
    SessionState.IDLE,
    SessionState.DISCONNECTED,
    SessionState.RECOVERING,
)


def test_before_a_login_it_is_disconnected() -> None:
    assert SessionHealth().state(is_open=True) is DISCONNECTED
    assert SessionHealth().state(is_open=False) is DISCONNECTED


def test_a_login_recovers_until_data_arrives() -> None:
    health = SessionHealth().logged_in()
    assert health.state(is_open=True) is RECOVERING
    assert health.data_arrived().state(is_open=True) is STREAM


def test_a_closed_market_is_idle_and_recovers_when_it_opens() -> None:
    health = SessionHealth().logged_in().data_arrived().market(is_open=False)
    assert health.state(is_open=False) is IDLE
    opened = health.market(is_open=True)
    assert opened.state(is_open=True) is RECOVERING
    assert opened.data_arrived().state(is_open=True) is STREAM


def test_a_failure_disconnects_until_data_arrives_again() -> None:
    health = SessionHealth().logged_in().data_arrived().failed("HTTP request failed")
    assert health.state(is_open=True) is DISCONNECTED
    assert health.state(is_open=False) is DISCONNECTED
    assert health.data_arrived().state(is_open=True) is STREAM
    assert health.logged_in().state(is_open=True) is RECOVERING


def test_an_ended_session_needs_a_login() -> None:
    health = SessionHealth().logged_in().data_arrived().ended("SESSION_LOST")
    assert (health.state(is_open=True), health.reason) == (DISCONNECTED, "SESSION_LOST")
    # History that was asked for before may still arrive.
    assert health.data_arrived().state(is_open=True) is DISCONNECTED
    assert health.logged_in().state(is_open=False) is IDLE
