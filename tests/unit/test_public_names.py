"""What `import collector` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import collector
import collector.datalayer
from collector.errors import CollectorError


def test_every_public_name_is_the_real_thing() -> None:
    for name in set(collector.__all__) - {"__version__", "CollectorError"}:
        assert getattr(collector, name) is getattr(collector.datalayer, name)
    assert collector.CollectorError is CollectorError


def test_the_functions_of_datalayer_are_public() -> None:
    assert set(collector.datalayer.__all__) < set(collector.__all__)


def test_importing_the_package_imports_nothing_but_its_version() -> None:
    code = "import sys, collector; print([n for n in sys.modules if n[:10] == 'collector.'])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "['collector.version']"


def test_types_are_published() -> None:
    assert Path(str(collector.__file__)).with_name("py.typed").exists()
