"""The records of a baseline as text, one kernel after the other; the index keeps them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from artifact_inspector.api.kept_values import is_object_text, kept_values
from artifact_inspector.comparison.baseline import RecordedTime, record, stored_digests
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import Artifact
from artifact_inspector.files.index import Index
from artifact_inspector.report.json.baseline import SOURCE_LINE, recorded_text, times_text


class KernelRecord(NamedTuple):
    """One kernel of a baseline."""

    has_facts: bool
    """Whether anything about it could be read."""
    text: str
    """As its part of the file."""


def _is_record(value: object) -> bool:
    match value:
        case [bool(), str() | None, text]:
            return is_object_text(text)
    return False


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

    def compute(missing: Sequence[Artifact]) -> Iterator[object]:
        with stored_digests(missing, open_index) as find_digests:
            for kernel in inspect(missing):
                recorded = record(kernel, str, find_digests)
                yield [has_facts(kernel), recorded.source, recorded_text(replace(recorded, source=None))]

    # The hash may be the name of the directory, which is in the record but in no file.
    values = kept_values(artifacts, b"baseline", lambda x: x.hash, compute, open_index, _is_record)
    for artifact, (is_known, file, text) in zip(artifacts, values, strict=True):
        source = None if file is None else find_source(file) or file.rpartition("/")[2]
        line = SOURCE_LINE.format(json.dumps(source))
        text = text.replace(SOURCE_LINE.format("null"), line, 1)
        yield KernelRecord(is_known, text.replace(times_text(()), times_text(find_times(artifact)), 1))
