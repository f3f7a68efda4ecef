"""The Dockerfile, followed without Docker: the same files and commands, in a folder instead of /.

What is different from a container: the system's own libraries are this machine's, and the user is
the one that runs the tests. Downloading the locked packages again takes minutes, so by default
those of this environment replace them: the same versions, and only the locked ones.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
_OURS = re.compile(r"(?<![\w/.])/(?=(?:opt|data|home|run|src)\b)")


@dataclass(frozen=True)
class Step:
    """One instruction of a stage."""

    word: str
    rest: str

    @property
    def copied(self) -> tuple[list[str], str]:
        """Sources and target of a COPY from the checkout."""
        *sources, target = self.rest.split()
        return sources, target

    @property
    def pairs(self) -> dict[str, str]:
        """What an ENV or LABEL sets."""
        return dict(word.split("=", 1) for word in shlex.split(self.rest))


def stages(text: str) -> list[list[Step]]:
    """The steps of every stage, each beginning with its FROM."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    steps = [Step(*line.split(None, 1)) for line in lines.replace("\\\n", " ").splitlines() if line]
    starts = [number for number, step in enumerate(steps) if step.word == "FROM"]
    return [steps[a:b] for a, b in zip(starts, [*starts[1:], len(steps)], strict=True)]


BUILD, RUN = stages((ROOT / "Dockerfile").read_text())


@dataclass(frozen=True)
class Image:
    """A folder that holds what the image holds."""

    root: Path
    commit: str

    def path(self, text: str) -> str:
        """`text` with the container's own paths as they are on this machine."""
        return _OURS.sub(lambda _: f"{self.root}/", text)

    @property
    def environment(self) -> dict[str, str]:
        """What the image sets; nothing of ours comes in."""
        given: dict[str, str] = {}
        for step in RUN:
            given |= step.pairs if step.word == "ENV" else {}
        known = {"$PATH": "/usr/bin:/bin", "$COLLECTOR_COMMIT": self.commit}
        for name, value in known.items():
            given = {key: text.replace(name, value) for key, text in given.items()}
        return {key: self.path(value) for key, value in given.items()}

    def program(self, name: str) -> str:
        return self.path(f"/opt/collector/bin/{name}")


def build(root: Path, commit: str, *, download: bool) -> Image:
    """Follows the first stage in `root`/src. `download` needs a package index."""
    image = Image(root, commit)
    source = root / "src"
    source.mkdir(parents=True)
    for step in BUILD:
        if step.word == "COPY":
            _copy(*step.copied, source)
        elif step.word == "RUN" and not download and "requirements" in step.rest:
            _link(image)
        elif step.word == "RUN":
            _run(image, step.rest, source)
    shutil.rmtree(source)
    return image


def locked(name: str) -> dict[str, str]:
    """The versions that a lock file requires here."""
    asked: dict[str, str] = {}
    for line in (ROOT / name).read_text().splitlines():
        if line[:1].isalnum():
            wanted = Requirement(line.rstrip(" \\"))
            if wanted.marker is None or wanted.marker.evaluate():
                asked[wanted.name] = str(wanted.specifier).removeprefix("==")
    return asked


def _link(image: Image) -> None:
    """An environment of links to the locked packages, and this environment's pip to build with."""
    target = image.root / "opt" / "collector"
    venv.create(target, symlinks=True)
    packages = next(target.glob("lib/python*/site-packages"))
    for name, version in locked("requirements-run.lock").items():
        found = distribution(name)
        assert found.version == version, f"{name}: `make install` first"
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            link = packages / top
            if not link.exists():
                link.symlink_to(str(found.locate_file(top)))
    _script(image.root / "opt" / "build" / "bin" / "pip", f"{sys.executable} -m pip")


def _copy(sources: list[str], target: str, into: Path) -> None:
    for name in sources:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, into / target, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ROOT / name, into / target)


def _run(image: Image, command: str, source: Path) -> None:
    python = image.root / "bin" / "python"
    _script(python, sys._base_executable)  # type: ignore[attr-defined]
    ours = {key: value for key, value in os.environ.items() if not key.startswith("COLLECTOR_")}
    quick = {"PIP_NO_COMPILE": "1", "PIP_ONLY_BINARY": ":all:"}  # the base image has no compiler
    done = subprocess.run(
        ["sh", "-ec", image.path(command).replace("--no-cache-dir", "")],
        cwd=source,
        env={**ours, **quick, "PATH": f"{python.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def _script(path: Path, command: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o755)
