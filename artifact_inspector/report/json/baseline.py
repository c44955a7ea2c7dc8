"""A baseline as JSON, written and read again, and what came of holding a cache against one.

Every row stands on a line of its own, so that what changes in a baseline can be reviewed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from artifact_inspector.comparison.baseline import Baseline, Recorded
from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.comparison.matching import Axis, Candidate
from artifact_inspector.errors import CacheError
from artifact_inspector.files.artifact import Completeness
from artifact_inspector.files.cache import Artifact
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Arch, Backend, TritonVersion
from artifact_inspector.model.tile import Tile
from artifact_inspector.report.json._document import SCHEMA_VERSION, Document
from artifact_inspector.report.json._encoding import Words, encode, harmless, shape
from artifact_inspector.report.json.comparison import (
    CategoryName,
    GateName,
    Group,
    SideProblem,
    across,
    ambiguous,
)
from artifact_inspector.version import __version__
from artifact_inspector.vocabulary.fact import Row, Value
from artifact_inspector.vocabulary.names import STEPS
from artifact_inspector.vocabulary.rows import CATEGORIES, Summary

shape(
    Row,
    "key value unit category label step region",
    types={"category": CategoryName, "step": Annotated[str, Words((*STEPS, ""))]},
)


@dataclass(frozen=True, slots=True)
class RecordedDocument:
    """One kernel as it was recorded."""

    kernel: Recorded


shape(
    RecordedDocument,
    "name=kernel.artifact.display_name symbol=kernel.artifact.name hash=kernel.artifact.hash"
    " source=kernel.source target=kernel.artifact.target triton_version=kernel.artifact.triton_version"
    " num_warps=kernel.artifact.num_warps num_stages=kernel.artifact.num_stages"
    " shared_bytes=kernel.artifact.shared_bytes signature=kernel.summary.signature"
    " tiles=kernel.summary.tiles options=kernel.summary.options steps=kernel.summary.steps"
    " digests=kernel.digests facts=kernel.summary.rows",
    without="kernel",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineDocument(Document):
    """The facts of kernels as they are meant to stay: `inspect-kernel baseline`."""

    document: Literal["baseline"] = "baseline"
    generator: str
    """The version of inspect-kernel that recorded it."""
    kernels: tuple[RecordedDocument, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """One kernel in the baseline and in the cache."""

    change: Change
    failures: tuple[GateName, ...]
    """The gates that it shuts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDocument(Document):
    """A cache held against a baseline: `inspect-kernel check --json`."""

    document: Literal["check"] = "check"
    generator: str
    """The version of inspect-kernel that recorded the baseline."""
    passed: bool
    strict: bool
    """True if any change of a gated fact fails, not only a worse one."""
    gates: tuple[GateName, ...]
    """What it was asked to fail on."""
    failures: tuple[GateName, ...]
    """Those that are shut."""
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
    ambiguous: tuple[Group, ...]
    problems: tuple[SideProblem, ...]


def baseline_document(kernels: Iterable[Recorded]) -> BaselineDocument:
    """The records of some kernels, in an order that stays."""
    ordered = sorted(kernels, key=lambda x: (x.artifact.display_name, x.target or "", x.artifact.hash))
    return BaselineDocument(generator=__version__, kernels=tuple(map(RecordedDocument, ordered)))


def baseline_text(document: BaselineDocument) -> str:
    """The document with one line for each fact, in ASCII."""
    return harmless(_laid_out(encode(document), "") + "\n")


def check_document(
    corpus: Corpus, gates: Sequence[str], baseline: Baseline, *, is_strict: bool = False
) -> CheckDocument:
    """What came of a check."""
    failures = corpus.failures(gates, is_strict=is_strict)
    return CheckDocument(
        generator=baseline.generator,
        passed=not failures,
        strict=is_strict,
        gates=tuple(gates),
        failures=failures,
        across=across(corpus.matching),
        counts={degree: corpus.count(degree) for degree in Degree},
        by_category=corpus.by_category,
        kernels=tuple(Checked(found, found.failures(gates, is_strict=is_strict)) for found in corpus.changes),
        gone=corpus.matching.left,
        new=corpus.matching.right,
        ambiguous=ambiguous(corpus.matching),
        problems=tuple(SideProblem("right", problem) for _, problem in corpus.problems),
    )


def parse_baseline(text: str, name: str) -> Baseline:
    """What a baseline file says.

    Args:
        name: of the file, for messages.

    Raises:
        CacheError: it is no baseline, of another schema version, or damaged.
    """
    again = f"Record it again: inspect-kernel baseline CACHE -o {name}"
    try:
        document = json.loads(text)
    except ValueError as error:
        raise CacheError(f"{name} is no JSON: {error}.", again) from None
    except RecursionError:
        raise CacheError(f"{name} is nested too deeply.", again) from None
    if not isinstance(document, dict) or document.get("document") != "baseline":
        raise CacheError(f"{name} is no baseline.", again)
    version, generator = document.get("schema_version"), document.get("generator")
    if version != SCHEMA_VERSION:
        raise CacheError(
            f"{name} is of schema version {version}, and this inspect-kernel ({__version__}) reads "
            f"version {SCHEMA_VERSION}.",
            again if generator is None else f"{again}, or check with inspect-kernel {generator}.",
        )
    try:
        kernels = tuple(_parse_recorded(found) for found in document["kernels"])
        return Baseline(str(document["generator"]), kernels)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise CacheError(f"{name} is damaged: {what}.", again) from None


def _parse_recorded(found: Mapping[str, Any]) -> Recorded:
    on = found["target"]
    gpu = None if on is None else Target(Backend(on["backend"]), Arch(_text(on["arch"])), int(on["warp_size"]))
    signature, tiles = found["signature"], found["tiles"]
    artifact = Artifact(
        directory=".",
        stem=_text(found["name"]),
        name=_text(found["symbol"]),
        display_name=_text(found["name"]),
        hash=_text(found["hash"]),
        target=gpu,
        triton_version=None if found["triton_version"] is None else TritonVersion(_text(found["triton_version"])),
        num_warps=_number(found["num_warps"]),
        num_stages=_number(found["num_stages"]),
        shared_bytes=_number(found["shared_bytes"]),
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
        options={_text(key): _value(value) for key, value in found["options"].items()},
        steps=tuple(map(_text, found["steps"])),
        rows=tuple(_parse_row(row) for row in found["facts"]),
    )
    digests = {_text(key): _text(value) for key, value in found["digests"].items()}
    source = _known_text(found["source"])
    return Recorded(artifact=artifact, summary=summary, digests=digests, source=source)


def _parse_row(row: Mapping[str, Any]) -> Row:
    category = _text(row["category"])
    if category not in CATEGORIES:
        raise ValueError(f"{category!r} is no category of facts")
    texts = [_text(row[name]) for name in ("label", "unit", "step", "region")]
    label, unit, step, region = texts
    return Row(_text(row["key"]), category, label, unit, _value(row["value"]), step, region)


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise TypeError(f"{found!r:.40} is no text")
    return found


def _known_text(found: object) -> str | None:
    return None if found is None else _text(found)


def _number(found: object) -> int | None:
    if found is None or (isinstance(found, int) and not isinstance(found, bool)):
        return found
    raise TypeError(f"{found!r:.40} is no number")


def _value(found: object) -> Value:
    if isinstance(found, list):
        return tuple(map(_text, found))
    if found is None or isinstance(found, bool | int | float | str):
        return found
    raise TypeError(f"{found!r:.40} is no value of a fact")


def _laid_out(value: object, indent: str) -> str:
    """JSON in which everything that holds nothing but scalars and lists of them takes one line."""
    parts = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(parts, list) or not any(isinstance(part, dict) or _is_deep(part) for part in parts):
        return json.dumps(value, allow_nan=False)
    inner = indent + "  "
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(key)}: {_laid_out(part, inner)}" for key, part in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _laid_out(part, inner) for part in parts) + f"\n{indent}]"


def _is_deep(part: object) -> bool:
    return isinstance(part, list) and any(isinstance(one, dict | list) for one in part)
