"""Values that are computed from the facts of a kernel, one for each kernel, kept in the index.

Neither the facts nor the values of all kernels are in memory at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from artifact_inspector.files.artifact import Artifact
from artifact_inspector.files.digests import FilesSnapshot, index_key, snapshot_files
from artifact_inspector.files.index import Index

_PER_ACCESS = 64
"""Values that are read from the index, or written to it, together."""


def kept_values(
    artifacts: Sequence[Artifact],
    purpose: bytes,
    state_of: Callable[[Artifact], str],
    compute: Callable[[Sequence[Artifact]], Iterator[object]],
    open_index: Callable[[], Index] | None,
    is_sound: Callable[[Any], bool],
) -> Iterator[Any]:
    """The value of each kernel as parsed JSON, in order.

    Args:
        purpose: separates values of different kinds.
        state_of: all that a value depends on besides the kernel's files.
        compute: the values of some kernels, one after the other.
        open_index: opens the index that keeps values; None to keep none.
        is_sound: whether a parsed value has the expected form; others are computed again, as an index may say anything.
    """
    if open_index is None:
        yield from compute(artifacts)
        return
    snapshots = [snapshot_files(artifact) for artifact in artifacts]

    def key_of(artifact: Artifact, snapshot: FilesSnapshot) -> bytes:
        return index_key(snapshot.digest + state_of(artifact).encode(errors="surrogatepass"), purpose)

    keys = [snapshot and key_of(artifact, snapshot) for artifact, snapshot in zip(artifacts, snapshots, strict=True)]
    with open_index() as index:
        stored_keys = index.find(key for key in keys if key is not None)
    stored, fresh = dict[bytes, bytes](), dict[bytes, bytes]()
    computed = compute([artifact for artifact, key in zip(artifacts, keys, strict=True) if key not in stored_keys])
    for at, (artifact, snapshot, key) in enumerate(zip(artifacts, snapshots, keys, strict=True)):
        if key in stored_keys and key not in stored:
            with open_index() as index:
                stored = index.get(x for x in keys[at : at + _PER_ACCESS] if x in stored_keys)
        if key is not None and key in stored and (found := _parse(stored[key], is_sound)) is not None:
            yield found
            continue
        value = next(computed) if key not in stored_keys else next(compute([artifact]))
        if key is not None and snapshot is not None and snapshot.is_current(artifact):
            fresh[key] = json.dumps(value).encode()
        if len(fresh) >= _PER_ACCESS:
            _store(fresh, open_index)
        yield value
    next(computed, None)  # which lets it store what it keeps
    _store(fresh, open_index)


def is_object_text(text: object) -> bool:
    """Whether a value is the JSON of an object."""
    try:
        # `int` refuses NaN
        return isinstance(text, str) and isinstance(json.loads(text, parse_constant=int), dict)
    except (ValueError, RecursionError):
        return False


def _parse(content: bytes, is_sound: Callable[[Any], bool]) -> Any:
    """A kept value; None if the index holds something else in its place."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value if is_sound(value) else None


def _store(fresh: dict[bytes, bytes], open_index: Callable[[], Index]) -> None:
    with open_index() as index:
        index.put(fresh)
    fresh.clear()
