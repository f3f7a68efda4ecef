"""What the contract tests share."""

from tests.support.fxcm.fixtures import (  # noqa: F401 - fixtures
    fxcm,
    fxcm_interpreter,
    fxcm_python,
    fxcm_real_python,
    fxcm_server,
)
from tests.support.lasting_tokens import lasting_tokens  # noqa: F401 - a fixture
