"""Facts as a table with a stable schema: one row for each kernel, each region at each stage, and each launch.

A column is defined once: those of facts by the fact itself. A column that does not apply to a row is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_args

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.facts.kernel import KernelFacts, StageFacts
from artifact_inspector.files.records import artifact_size
from artifact_inspector.model.string_enum import StringEnum
from artifact_inspector.vocabulary.fact import Absent, Fact, FactValue, Of, RegionSubject, StageSubject, Subject
from artifact_inspector.vocabulary.rows import FACTS

Cell = bool | int | float | str | None


class RowKind(StringEnum):
    """What a row describes."""

    KERNEL = "kernel"
    REGION = "region"
    LAUNCH = "launch"


class ColumnType(StringEnum):
    """Type of a column, by the name that SQL has for it."""

    TEXT = "TEXT"
    INTEGER = "BIGINT"
    REAL = "DOUBLE"
    BOOLEAN = "BOOLEAN"


class ExportColumn(NamedTuple):
    """One column."""

    name: str
    type: ColumnType
    meaning: str
    rows: tuple[RowKind, ...]


_ALL = tuple(RowKind)
_CODE = (RowKind.KERNEL, RowKind.REGION)
_REGION = (RowKind.REGION,)
_LAUNCH = (RowKind.LAUNCH,)
_TEXT, _INTEGER, _BOOLEAN = ColumnType.TEXT, ColumnType.INTEGER, ColumnType.BOOLEAN
_IDENTITY = (
    ExportColumn("row", _TEXT, "kernel, region or launch", _ALL),
    ExportColumn("cache", _TEXT, "the cache that was exported", _ALL),
    ExportColumn("label", _TEXT, "the text of --label: a release, a date", _ALL),
    ExportColumn("kernel", _TEXT, "name of the kernel", _ALL),
    ExportColumn("hash", _TEXT, "Triton's hash, or the directory", _ALL),
    ExportColumn("target", _TEXT, "GPU architecture", _ALL),
    ExportColumn("triton_version", _TEXT, "Triton that compiled it", _ALL),
    ExportColumn("directory", _TEXT, "directory of the entry, in the cache", _CODE),
    ExportColumn("num_warps", _INTEGER, "warps per CTA", _CODE),
    ExportColumn("num_stages", _INTEGER, "requested stages of pipelined loops", _CODE),
    ExportColumn("constants", _TEXT, "constants on record, as JSON", _CODE),
    ExportColumn("state", _TEXT, "complete, binary-only or partial", _CODE),
    ExportColumn("bytes", _INTEGER, "size of its files", (RowKind.KERNEL,)),
    ExportColumn("problems", _INTEGER, "files or facts that could not be read", (RowKind.KERNEL,)),
    ExportColumn("stage", _TEXT, "stage of the facts; of a kernel, its last", _CODE),
    ExportColumn("region", _TEXT, "loop@LINE or straight-line code; of a kernel, its main region", _CODE),
    ExportColumn("verdict", _TEXT, "order of loads and computes", _CODE),
    ExportColumn("phrase", _TEXT, "the verdict with its distance", _CODE),
    ExportColumn("is_main", _BOOLEAN, "whether it is the main region", _REGION),
    ExportColumn("is_in_program", _BOOLEAN, "whether the source has this loop", _REGION),
    ExportColumn("depth", _INTEGER, "loops around it", _REGION),
    ExportColumn("first_line", _INTEGER, "first line in the stage", _REGION),
    ExportColumn("last_line", _INTEGER, "last line in the stage", _REGION),
    ExportColumn("rounds", _INTEGER, "groups of loads and the math that uses them", _REGION),
    ExportColumn("unroll_factor", _INTEGER, "times that the compiler unrolled it", _REGION),
    ExportColumn("grid", _TEXT, "blocks, as JSON", _LAUNCH),
    ExportColumn("arguments", _TEXT, "arguments by name, as JSON; without values of tensors", _LAUNCH),
    ExportColumn("is_tuning", _BOOLEAN, "whether only an autotuner launched it", _LAUNCH),
)


def _type_of(fact: Fact) -> ColumnType:
    alternatives = get_args(fact.value_type) or (fact.value_type,)
    if float in alternatives:
        return ColumnType.REAL
    if bool in alternatives:
        return ColumnType.BOOLEAN
    return (
        ColumnType.INTEGER
        if int in alternatives and getattr(fact.value_type, "__origin__", None) is not dict
        else ColumnType.TEXT
    )


_NAMES = {column.name for column in _IDENTITY}
_FACTS = {
    name: fact
    for fact in FACTS
    if (name := fact.record or fact.key.replace(".{step}", "").replace(".{}", "_by_use").replace(".", "_"))
    not in _NAMES
}
COLUMNS: tuple[ExportColumn, ...] = (
    *_IDENTITY,
    *(
        ExportColumn(
            name,
            _type_of(fact),
            f"{fact.label.replace('{}', 'shared memory by use').replace(' at {step}', '').strip()}, {fact.unit}".strip(
                ", "
            ),
            _CODE,
        )
        for name, fact in _FACTS.items()
    ),
)
"""All columns, in the order of every export."""


def columns_of(kind: RowKind) -> tuple[ExportColumn, ...]:
    """The columns that rows of one kind can have values in."""
    return tuple(column for column in COLUMNS if kind in column.rows)


def fact_rows(kernel: KernelFacts, cache: str, label: str | None = None) -> Iterator[dict[str, Cell]]:
    """The row of a kernel, with the facts of its main region, and those of its regions at each stage."""
    artifact, last = kernel.artifact, kernel.last
    identity: dict[str, Any] = {
        "cache": cache, "label": label, "kernel": artifact.display_name, "hash": artifact.hash,
        "target": None if artifact.target is None else artifact.target.arch, "triton_version": artifact.triton_version,
        "directory": artifact.directory, "num_warps": artifact.num_warps, "num_stages": artifact.num_stages,
        "constants": json.dumps(dict(artifact.constants), sort_keys=True, default=str) if artifact.constants else None,
        "state": artifact.state,
    }  # fmt: skip
    identity |= _values(Subject(kernel), Of.KERNEL)
    main = kernel.principal_region
    yield _row(
        RowKind.KERNEL, identity, bytes=artifact_size(artifact), problems=len(kernel.problems),
        **({} if last is None else _stage_values(kernel, last)),
        **({} if main is None or last is None else _region_values(kernel, last, main)),
    )  # fmt: skip
    for facts in kernel.stages.values():
        for region in facts.regions:
            yield _row(
                RowKind.REGION, identity, **_stage_values(kernel, facts), **_region_values(kernel, facts, region),
                is_main=region.id == kernel.principal, is_in_program=region.is_in_program, depth=region.depth,
                first_line=region.lines[0], last_line=region.lines[1], rounds=len(region.rounds),
                unroll_factor=region.unroll_factor,
            )  # fmt: skip


def launch_row(launch: Mapping[str, Any], cache: str, label: str | None = None) -> dict[str, Cell]:
    """The row of a launch, as a record has it."""
    arguments = launch.get("args")
    return _row(
        RowKind.LAUNCH, {"cache": cache, "label": label}, kernel=_text(launch.get("kernel")),
        hash=_text(launch.get("hash")), target=_text(launch.get("target")), grid=json.dumps(launch.get("grid")),
        arguments=json.dumps(_without_values(arguments), sort_keys=True) if isinstance(arguments, dict) else None,
        is_tuning=bool(launch.get("tuning")),
    )  # fmt: skip


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _without_values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {key: inner for key, inner in value.items() if key != "values"} if isinstance(value, dict) else value
        for name, value in arguments.items()
    }


def _row(kind: RowKind, identity: Mapping[str, Any], **values: Any) -> dict[str, Cell]:
    """A row with every column; enumerations and versions become plain text."""
    cells = {"row": kind, **identity, **values}
    return {c.name: str(v) if isinstance(v := cells.get(c.name), str) else v for c in COLUMNS}


def _stage_values(kernel: KernelFacts, facts: StageFacts) -> dict[str, Any]:
    kinds = (Of.FILE, Of.STAGE) if facts is kernel.last else (Of.STAGE,)
    return {"stage": facts.stage.value, **_values(StageSubject(kernel, facts), *kinds)}


def _region_values(kernel: KernelFacts, facts: StageFacts, region: RegionFacts) -> dict[str, Any]:
    """Facts of a region; those of the last text only there."""
    identity = {"region": region.id, "verdict": region.verdict, "phrase": region.phrase}
    return identity | _values(
        RegionSubject(kernel, facts, region), Of.REGION, Of.REGION_AT_STAGE, only_records=facts is not kernel.last
    )


def _values(subject: Subject, *kinds: Of, only_records: bool = False) -> dict[str, Cell]:
    return {
        name: _cell(fact(subject))
        for name, fact in _FACTS.items()
        if fact.of in kinds and (fact.record or not only_records)
    }


def _cell(value: FactValue) -> Cell:
    if isinstance(value, Mapping):
        return json.dumps(dict(value), sort_keys=True) if value else None
    if isinstance(value, tuple):
        return ", ".join(value)
    return None if value is Absent.ABSENT else value
