"""Opens the storage of a lake from its address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import ConfigError
from collector.store.address import ObjectAddress, in_object_store
from collector.store.disk import LocalDisk
from collector.store.port import no_fault

if TYPE_CHECKING:
    import os

    from collector.store.port import FaultHook, Storage


def storage_at(root: str | os.PathLike[str], faults: FaultHook = no_fault) -> Storage:
    """A folder, or `s3://bucket/prefix`. Does not check yet that it exists."""
    if not in_object_store(root):
        return LocalDisk(root, faults)
    try:
        from collector.store.object_store import ObjectStore
    except ModuleNotFoundError as error:
        raise ConfigError(f"{root} needs {error.name}: pip install 'collector[s3]'") from error
    return ObjectStore(ObjectAddress.parse(str(root)), faults)
