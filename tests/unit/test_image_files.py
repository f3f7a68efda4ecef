"""The Dockerfile and the lock files: what must be in the image comes into it, and nothing else."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.dockerfile import BUILD, ROOT, RUN, locked

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
COPIED = {name for step in BUILD if step.word == "COPY" for name in step.copied[0]}


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(one).name) for one in requirements}


def test_everything_the_wheel_is_made_of_is_copied() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert {*wheel, PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]} <= COPIED


def test_docker_gets_what_is_copied_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    assert {line[1:] for line in lines if line.startswith("!")} == COPIED
    for name in COPIED:
        assert (ROOT / name).exists(), name


def test_the_image_has_what_runs_and_no_tools_of_developers() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = names([*PROJECT["project"]["dependencies"], *extras["s3"]])
    inside = set(locked("requirements-run.lock"))
    assert wanted <= inside
    assert not (names([*extras["dev"], *extras["embedded"]]) - wanted) & inside


def test_the_image_has_the_versions_that_are_tested() -> None:
    tested = locked("requirements.lock").items()
    assert locked("requirements-run.lock").items() <= tested
    assert locked("requirements-build.lock").items() <= tested


def test_the_base_image_has_a_whole_version_and_the_python_of_the_lock_files() -> None:
    bases = {
        step.rest.split()[0] for stage in (BUILD, RUN) for step in stage if step.word == "FROM"
    }
    (base,) = bases
    assert re.fullmatch(r"python:3\.11\.\d+-slim-bookworm", base)
    assert "--python-version 3.11 " in (ROOT / "Makefile").read_text()


def test_an_image_knows_its_commit_and_version() -> None:
    words = [step.word for step in RUN]
    assert RUN[words.index("ARG")].rest == "COLLECTOR_COMMIT"
    assert RUN[words.index("ENV")].pairs["COLLECTOR_COMMIT"] == "$COLLECTOR_COMMIT"
    labels = RUN[words.index("LABEL")].pairs
    assert labels["org.opencontainers.image.version"] == PROJECT["project"]["version"]
