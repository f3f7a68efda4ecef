import sys

if "pytest" in sys.modules:  # and not in a process that a test has started
    import pytest

    # Before anybody imports it: what fails inside tests/support shows its values, as in a test.
    pytest.register_assert_rewrite("tests.support")
