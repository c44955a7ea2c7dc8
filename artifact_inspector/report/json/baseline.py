"""A baseline as JSON, written and read, and the result of a check.

Each row has its own line, so that changes of a baseline can be reviewed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifact_inspector.comparison.baseline import Baseline, BaselineKernel, RecordedTime
from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.comparison.matching import Axis, Candidate
from artifact_inspector.comparison.pair_price import PairPrice
from artifact_inspector.errors import CacheError
from artifact_inspector.files.artifact import Completeness
from artifact_inspector.files.cache import Artifact
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Arch, Backend, TritonVersion
from artifact_inspector.model.tile import Tile
from artifact_inspector.report.json._document import SCHEMA_VERSION, Document
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
from artifact_inspector.vocabulary.fact import Row, Value
from artifact_inspector.vocabulary.names import STEPS
from artifact_inspector.vocabulary.rows import CATEGORIES, FACTS, Summary

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


def parse_baseline(text: str, name: str) -> Baseline:
    """The content of a baseline file.

    Args:
        name: of the file, for messages.

    Raises:
        CacheError: it is not a baseline, has an unknown schema version, or is damaged.
    """
    again = "Give a baseline, or record one: inspect-kernel baseline CACHE -o baseline.json"
    try:
        document = json.loads(text)
    except ValueError as error:
        raise CacheError(f"{name} is not JSON: {error}.", again) from None
    except RecursionError:
        raise CacheError(f"{name} is nested too deeply.", again) from None
    if not isinstance(document, dict) or document.get("document") != "baseline":
        raise CacheError(f"{name} is not a baseline.", again)
    version, generator = document.get("schema_version"), document.get("generator")
    if version not in (1, SCHEMA_VERSION):
        raise CacheError(
            f"{name} has schema version {version}, but inspect-kernel {__version__} reads "
            f"versions 1 to {SCHEMA_VERSION}.",
            again if generator is None else f"{again}, or check with inspect-kernel {generator}.",
        )
    try:
        document = upgrade_document(document)
        kernels = tuple(_parse_recorded(record) for record in document["kernels"])
        return Baseline(str(document["generator"]), kernels, frozenset(map(str, document.get("fact_keys", ()))))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise CacheError(f"{name} is damaged: {reason}.", again) from None


_RENAMED_FACTS: Mapping[str, str] = {
    "shared.values handed to partitions": "shared.values captured by partitions",
    "in_flight.covered": "in_flight.overlap",
}
"""Key of a fact in version 1 → in version 2, without the name of its region."""


def upgrade_document(document: dict[str, Any]) -> dict[str, Any]:
    """A baseline of version 1 in version 2: only keys of facts changed. Other documents keep their keys."""
    if document.get("schema_version") != 1:
        return document
    for row in (row for kernel in document.get("kernels", []) for row in kernel.get("facts", [])):
        region = f"{row['region']}." if row.get("region") else ""
        key = row["key"].removeprefix(region)
        row["key"] = region + _RENAMED_FACTS.get(key, key)
    return {**document, "schema_version": 2}


def _parse_recorded(record: Mapping[str, Any]) -> BaselineKernel:
    on = record["target"]
    gpu = None if on is None else Target(Backend(on["backend"]), Arch(_text(on["arch"])), int(on["warp_size"]))
    signature, tiles = record["signature"], record["tiles"]
    artifact = Artifact(
        directory=".",
        stem=_text(record["name"]),
        name=_text(record["symbol"]),
        display_name=_text(record["name"]),
        hash=_text(record["hash"]),
        target=gpu,
        triton_version=None if record["triton_version"] is None else TritonVersion(_text(record["triton_version"])),
        num_warps=_number(record["num_warps"]),
        num_stages=_number(record["num_stages"]),
        shared_bytes=_number(record["shared_bytes"]),
        state=Completeness.RECORDED,
        files={},
        metadata={},
    )
    summary = Summary(
        name=artifact.display_name,
        target=None if gpu is None else gpu.arch,
        triton=artifact.triton_version,
        signature=None if signature is None else tuple(map(_text, signature)),
        tiles=None if tiles is None else tuple(Tile(_text(tile)) for tile in tiles),
        options={_text(key): _value(value) for key, value in record["options"].items()},
        steps=tuple(map(_text, record["steps"])),
        rows=tuple(_parse_row(row) for row in record["facts"]),
    )
    digests = {_text(key): _text(value) for key, value in record["digests"].items()}
    source = None if record["source"] is None else _text(record["source"])
    times = tuple(_parse_time(time) for time in record.get("times", ()))
    return BaselineKernel(artifact=artifact, summary=summary, digests=digests, source=source, times=times)


def _parse_time(time: Mapping[str, Any]) -> RecordedTime:
    launch, (gpu, bottleneck) = time["launch"], (time[key] and _text(time[key]) for key in ("gpu", "bottleneck"))
    if not isinstance(launch, dict) or not isinstance(launch.get("args"), dict):
        raise TypeError("a recorded launch has no arguments")
    microseconds, cycles = (time[key] and float(time[key]) for key in ("microseconds", "cycles"))
    return RecordedTime(launch, gpu, microseconds, cycles, bottleneck)


def _parse_row(row: Mapping[str, Any]) -> Row:
    category = _text(row["category"])
    if category not in CATEGORIES:
        raise ValueError(f"{category!r} is not a category of facts")
    label, unit, step, region = (_text(row[name]) for name in ("label", "unit", "step", "region"))
    return Row(_text(row["key"]), category, label, unit, _value(row["value"]), step, region)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not text")
    return value


def _number(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise TypeError(f"{value!r:.40} is not a number")


def _value(value: object) -> Value:
    if isinstance(value, list):
        return tuple(map(_text, value))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{value!r:.40} is not a value of a fact")


def _format_lines(value: object, indent: str) -> str:
    items = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(items, list) or not any(isinstance(item, dict) or _has_containers(item) for item in items):
        return json.dumps(value, allow_nan=False)
    inner = indent + "  "
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(key)}: {_format_lines(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _format_lines(item, inner) for item in items) + f"\n{indent}]"


def _has_containers(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict | list) for item in value)
