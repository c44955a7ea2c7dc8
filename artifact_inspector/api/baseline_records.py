"""The records of a baseline as text, one kernel after the other; the index keeps them.

Neither the facts nor the records of all kernels are in memory at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from artifact_inspector.comparison.baseline import RecordedTime, record, stored_digests
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import Artifact
from artifact_inspector.files.digests import FilesSnapshot, index_key, snapshot_files
from artifact_inspector.files.index import Index
from artifact_inspector.report.json.baseline import SOURCE_LINE, recorded_text, times_text

_PER_ACCESS = 64
"""Records that are read from the index, or written to it, together."""


class KernelRecord(NamedTuple):
    """One kernel of a baseline."""

    has_facts: bool
    """Whether anything about it could be read."""
    text: str
    """As its part of the file."""


def record_kernels(
    artifacts: Sequence[Artifact],
    inspect: Callable[[Sequence[Artifact]], Iterator[KernelFacts]],
    find_source: Callable[[str], str | None],
    open_index: Callable[[], Index] | None,
    has_facts: Callable[[KernelFacts], bool],
    find_times: Callable[[Artifact], Sequence[RecordedTime]] = lambda artifact: (),
) -> Iterator[KernelRecord]:
    """The record of each kernel, in order.

    Args:
        inspect: the facts of some kernels, one after the other.
        find_source: the path of a source file from the root of the working tree; None if it is not in the tree.
        open_index: opens the index that keeps records; None to keep none.
        find_times: the predicted times of a kernel's launches.
    """
    snapshots = [None if open_index is None else snapshot_files(artifact) for artifact in artifacts]
    keys = [snapshot and _key_of(artifact, snapshot) for artifact, snapshot in zip(artifacts, snapshots, strict=True)]
    known: frozenset[bytes] = frozenset()
    if open_index is not None:
        with open_index() as index:
            known = index.find(key for key in keys if key is not None)
    stored, fresh = dict[bytes, bytes](), dict[bytes, bytes]()
    missing = [artifact for artifact, key in zip(artifacts, keys, strict=True) if key not in known]
    with stored_digests(missing, open_index) as find_digests:
        kernels = inspect(missing)
        for at, (artifact, snapshot, key) in enumerate(zip(artifacts, snapshots, keys, strict=True)):
            if open_index is not None and key in known and key not in stored:
                with open_index() as index:
                    stored = index.get(x for x in keys[at : at + _PER_ACCESS] if x in known)
            value = None if key is None else stored.get(key)
            if value is None:
                kernel = next(kernels) if key not in known else next(inspect([artifact]))
                recorded = record(kernel, str, find_digests)
                content = [has_facts(kernel), recorded.source, recorded_text(replace(recorded, source=None))]
                value = json.dumps(content).encode()
                if key is not None and snapshot is not None and snapshot.is_current(artifact):
                    fresh[key] = value
            if open_index is not None and (len(fresh) >= _PER_ACCESS or at == len(artifacts) - 1):
                with open_index() as index:
                    index.put(fresh)
                fresh.clear()
            is_known, file, text = json.loads(value)
            source = None if file is None else find_source(file) or file.rpartition("/")[2]
            line = SOURCE_LINE.format(json.dumps(source))
            text = text.replace(SOURCE_LINE.format("null"), line, 1)
            yield KernelRecord(is_known, text.replace(times_text(()), times_text(find_times(artifact)), 1))


def _key_of(artifact: Artifact, snapshot: FilesSnapshot) -> bytes:
    """The hash may be the name of the directory, which is in the record but in no file."""
    return index_key(snapshot.digest + artifact.hash.encode(errors="surrogatepass"), b"baseline")
