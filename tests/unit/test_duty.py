"""A duty that fails is retried, and logs it once."""

from __future__ import annotations

import logging

import pytest
from pymongo.errors import BulkWriteError, OperationFailure

from collector import metrics
from collector.errors import DatabaseUnavailable, SchemaMismatch
from workers.duty import Duty


def counted() -> float:
    return metrics.DUTY_FAILURES.labels("dusting")._value.get()


def test_a_row_of_failures_is_logged_when_it_begins_and_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    duty, before = Duty("dusting"), counted()
    with caplog.at_level(logging.WARNING):
        for error in (OperationFailure("interrupted", 11601), ZeroDivisionError("oops")) * 3:
            with duty.tolerated():
                raise error
        assert duty.pause() > 0
        with duty.tolerated():
            pass
    failed, recovered = (record.getMessage() for record in caplog.records)
    assert "duty_failed" in failed
    assert "OperationFailure" in failed
    assert "duty_recovered" in recovered
    assert counted() == before + 6
    assert (duty.failures, duty.pause()) == (0, 0)


def test_an_outage_is_left_to_the_database_s_own_line(caplog: pytest.LogCaptureFixture) -> None:
    duty = Duty("dusting")
    with caplog.at_level(logging.WARNING), duty.tolerated():
        raise DatabaseUnavailable("away")
    assert caplog.records == []
    assert duty.failures == 1


def test_what_makes_all_work_wrong_ends_the_process() -> None:
    duty = Duty("dusting")
    with pytest.raises(SchemaMismatch), duty.tolerated():
        raise SchemaMismatch("the database is newer")


def test_a_cancellation_is_not_swallowed() -> None:
    duty = Duty("dusting")
    with pytest.raises(KeyboardInterrupt), duty.tolerated():
        raise KeyboardInterrupt
    with duty.tolerated():
        raise BulkWriteError({"writeErrors": [{"code": 2}]})
