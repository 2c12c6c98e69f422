"""The object store of a location."""

from __future__ import annotations

from omnigraph.storage.files.local_objects import LocalObjects
from omnigraph.storage.files.location import Location
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.files.s3_objects import S3Objects


def object_store(location: Location, *, sync: bool = True) -> ObjectStore:
    """Return the object store of a location; with `sync`, local writes wait for the disk."""
    return LocalObjects(location.path, sync=sync) if location.path is not None else S3Objects(location)
