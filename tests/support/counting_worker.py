"""`python -m tests.support.counting_worker`: a worker process that also runs jobs that count."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import workers.__main__ as program
import workers.main
from tests.support.counting import with_count

if TYPE_CHECKING:
    from workers.handlers.registry import HandlerRegistry

usual_handlers = workers.main.all_handlers


def handlers_and_count(*things: Any, **options: Any) -> HandlerRegistry:
    return with_count(usual_handlers(*things, **options))


if __name__ == "__main__":
    workers.main.all_handlers = handlers_and_count
    sys.exit(program.main())
