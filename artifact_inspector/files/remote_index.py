"""An index of facts at an fsspec address, which machines share: one object per value, named for its key.

Objects are written at once, and each has a checksum: a value that is half written or damaged counts as missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files.index import Index, read_checked, write_checked
from artifact_inspector.files.remote import address_of, naming_errors, open_address

INDEX_BYTES = 1 << 40
"""An index of a fleet forgets nothing."""


def open_shared_index(path: Path) -> Index | RemoteIndex:
    """The index in a local SQLite file, or at an address.

    Raises:
        CacheError: a package is missing, or the address cannot be read.
    """
    address = address_of(path)
    return Index(path, lambda _: None, INDEX_BYTES) if address is None else RemoteIndex(address)


class RemoteIndex:
    """Values by key, as `Index`."""

    def __init__(self, address: str) -> None:
        self._system, self._root = open_address(address)
        with naming_errors(address):
            self._system.exists(self._root)

    def __enter__(self) -> RemoteIndex:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def get_packed(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values as they are stored, of those keys whose value has the right checksum."""
        paths = {self._path(key): key for key in keys}
        contents: dict[str, bytes] = {}
        with suppress(CacheError), naming_errors(self._root):
            contents = self._system.cat(list(paths), on_error="omit") if paths else {}
        values = {key: read_checked(key, contents.get(path)) for path, key in paths.items()}
        return {key: value for key, value in values.items() if value is not None}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Store some values; those that cannot be stored are computed again."""
        contents = {self._path(key): write_checked(key, value) for key, value in values.items()}
        with suppress(CacheError), naming_errors(self._root):
            for parent in {path.rpartition("/")[0] for path in contents}:
                self._system.makedirs(parent, exist_ok=True)
            self._system.pipe(contents)

    def _path(self, key: bytes) -> str:
        return f"{self._root}/{key.hex()[:2]}/{key.hex()}"
