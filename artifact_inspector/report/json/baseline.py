"""A baseline as JSON, and the result of a check.

Each row has its own line, so that changes of a baseline can be reviewed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from artifact_inspector.comparison.baseline import Baseline, BaselineKernel, RecordedTime
from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.comparison.matching import Axis, Candidate
from artifact_inspector.comparison.pair_price import PairPrice
from artifact_inspector.files.cache import Artifact
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import (
    define_shape,
    encode,
    escape_text,
    hidden,
    named,
    narrowed,
    rounded,
    words,
)
from artifact_inspector.report.json.comparison import (
    AmbiguousGroup,
    CategoryName,
    GateName,
    SideProblem,
    across,
    ambiguous,
)
from artifact_inspector.version import __version__
from artifact_inspector.vocabulary.fact import Row
from artifact_inspector.vocabulary.names import STEPS
from artifact_inspector.vocabulary.rows import FACTS

define_shape(
    Row, lambda x: (
        x.key, x.value, x.unit, narrowed(x.category, CategoryName), x.label, narrowed(x.step, words(*STEPS, "")),
    ),
)  # fmt: skip
define_shape(RecordedTime, lambda x: (x.launch, x.gpu, rounded(x.microseconds, 3), rounded(x.cycles, 1)))


@dataclass(frozen=True, slots=True)
class RecordedKernelDocument:
    """One recorded kernel."""

    kernel: BaselineKernel


def _recorded_keys(x: RecordedKernelDocument) -> tuple[object, ...]:
    artifact, summary = x.kernel.artifact, x.kernel.summary
    return (
        named("name", artifact.display_name), named("symbol", artifact.name), artifact.hash, x.kernel.source,
        artifact.target, artifact.triton_version, artifact.num_warps, artifact.num_stages, artifact.shared_bytes,
        summary.signature, summary.tiles, summary.options, summary.steps, x.kernel.digests, x.kernel.times,
        named("facts", summary.rows), *hidden(x.kernel),
    )  # fmt: skip


define_shape(RecordedKernelDocument, _recorded_keys)


@dataclass(frozen=True, kw_only=True)
class BaselineDocument(Document):
    """The facts of kernels to compare later caches with: `inspect-kernel baseline`."""

    generator: str
    """The version of inspect-kernel that recorded it."""
    fact_keys: tuple[str, ...]
    """Keys of the facts that this version knows; later facts are not compared with the baseline."""
    kernels: tuple[RecordedKernelDocument, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """One kernel in the baseline and in the cache."""

    change: Change
    failures: tuple[GateName, ...]
    """The gates that fail for it."""
    price: PairPrice | None
    """The predicted times of the launch that got worst; null if the code is equal."""


@dataclass(frozen=True, kw_only=True)
class CheckDocument(Document):
    """A cache compared with a baseline: `inspect-kernel check --json`."""

    generator: str
    """The version of inspect-kernel that recorded the baseline."""
    passed: bool
    strict: bool
    """True if any change of a checked fact fails, not only a worse one."""
    gates: tuple[GateName, ...]
    """The gates that were checked."""
    threshold: float
    """Percent by which a predicted time may get longer."""
    failures: tuple[GateName, ...]
    """The gates that failed."""
    across: tuple[Axis, ...]
    """What was allowed to differ."""
    counts: Mapping[Degree, int]
    by_category: Mapping[CategoryName, int]
    kernels: tuple[Checked, ...]
    """Worst first; the left side is the baseline."""
    gone: tuple[Candidate, ...]
    """In the baseline only."""
    new: tuple[Candidate, ...]
    """In the cache only."""
    ambiguous: tuple[AmbiguousGroup, ...]
    problems: tuple[SideProblem, ...]


SOURCE_LINE = '"source": {},'
"""The line of a record with its source file."""


def record_order(artifact: Artifact) -> tuple[str, ...]:
    """Sort key of the records of a baseline."""
    return artifact.display_name, "" if artifact.target is None else str(artifact.target), artifact.hash


def baseline_text(records: Iterable[str]) -> Iterator[str]:
    """The parts of a baseline with some records in order: one line for each fact, in ASCII."""
    document = BaselineDocument(generator=__version__, fact_keys=tuple(fact.key for fact in FACTS), kernels=())
    text = _format_lines({**encode(document), "kernels": [{}]}, "")
    part, _, tail = escape_text(text + "\n").rpartition("{}")
    for record in records:
        yield part
        yield record
        part = ",\n    "
    yield tail


def times_text(times: Sequence[RecordedTime]) -> str:
    """The line of a record with its predicted times."""
    return f'"times": {escape_text(_format_lines(encode(times), "      "))},'


def recorded_text(kernel: BaselineKernel) -> str:
    """A record as part of a baseline."""
    return escape_text(_format_lines(encode(RecordedKernelDocument(kernel)), "    "))


def check_document(
    corpus: Corpus, gates: Sequence[str], baseline: Baseline, threshold: float, *, is_strict: bool = False
) -> CheckDocument:
    """The result of a check."""
    failures = corpus.failures(gates, is_strict=is_strict)
    return CheckDocument(
        generator=baseline.generator,
        passed=not failures,
        strict=is_strict,
        gates=tuple(gates),
        threshold=threshold,
        failures=failures,
        across=across(corpus.matching),
        counts={degree: corpus.count(degree) for degree in Degree},
        by_category=corpus.by_category,
        kernels=tuple(
            Checked(change, change.failures(gates, is_strict=is_strict), change.price) for change in corpus.changes
        ),
        gone=corpus.matching.left,
        new=corpus.matching.right,
        ambiguous=ambiguous(corpus.matching),
        problems=tuple(SideProblem("right", problem) for _, problem in corpus.problems),
    )


def _format_lines(value: object, indent: str) -> str:
    items = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(items, list) or not any(
        isinstance(x, dict) or (isinstance(x, list) and any(isinstance(y, dict | list) for y in x)) for x in items
    ):
        return json.dumps(value, allow_nan=False)
    inner = indent + "  "
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(key)}: {_format_lines(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _format_lines(item, inner) for item in items) + f"\n{indent}]"
