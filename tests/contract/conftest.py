"""What the contract tests share."""

from tests.support.fxcm.fixtures import (  # noqa: F401 - fixtures
    fxcm,
    fxcm_interpreter,
    fxcm_python,
    fxcm_real_python,
    fxcm_server,
)
