"""Further views of the default command: timeline, graph, live registers, the result cache, JSON Schemas."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli._loading import make_disassembler, open_cache_or_fail
from artifact_inspector.cli._options import require_format
from artifact_inspector.cli._output import print_json, print_report, write_line
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.files.cache import Artifact

MAX_NAMES = 6
"""Kernels that an error lists."""


def require_one(artifacts: Sequence[Artifact], subject: str) -> Artifact:
    """The only kernel.

    Args:
        subject: subject and verb of the error: `--svg draws`.

    Raises:
        UsageError: there are several; the remedy lists them.
    """
    if len(artifacts) != 1:
        names = ", ".join(f"{entry.display_name} {entry.hash[:8]} {entry.target}" for entry in artifacts[:MAX_NAMES])
        omitted = f" and {len(artifacts) - MAX_NAMES} more" if len(artifacts) > MAX_NAMES else ""
        raise UsageError(
            f"{subject} one kernel; {len(artifacts)} match.",
            f"Narrow by name or hash, --target or --where. Matches: {names}{omitted}.",
        )
    return artifacts[0]


def print_timeline(
    path: Path | None,
    name: str | None,
    selectors: Sequence[str],
    stages: Sequence[str],
    region: str | None,
    nvdisasm: Path | None,
    *,
    json: bool,
    sass: bool,
) -> None:
    """Print events of one kernel in issue order, with the loads in flight below them."""
    from artifact_inspector.facts.inspection import inspect_artifact
    from artifact_inspector.facts.scene import find_scene
    from artifact_inspector.facts.selection import parse_filters, parse_stages, select_kernels
    from artifact_inspector.report.json.views import TimelineDocument
    from artifact_inspector.report.timeline import TimelineReport

    stage_filter = parse_stages(stages)
    artifacts = select_kernels(open_cache_or_fail(path), name, parse_filters(selectors))
    entry = require_one(artifacts, "--timeline draws")
    disassemble = make_disassembler(artifacts, nvdisasm, sass=sass)
    kernel = inspect_artifact(entry, disassemble, lambda facts: facts.stages)
    scene = find_scene(kernel, region, stage_filter or None)
    if json:
        print_json(TimelineDocument(scene=scene))
    else:
        print_report(TimelineReport(scene))


def print_graph(
    path: Path | None,
    name: str | None,
    selectors: Sequence[str],
    stages: Sequence[str],
    region: str | None,
    nvdisasm: Path | None,
    format: str,
    *,
    sass: bool,
) -> None:
    """Print the basic blocks and the data flow of one stage of a kernel, the last stage by default."""
    from artifact_inspector.facts.graph import graph_of
    from artifact_inspector.facts.selection import parse_filters, parse_stages, select_kernels
    from artifact_inspector.report.console import write
    from artifact_inspector.report.exchange.graph import FORMATS

    require_format(format, FORMATS)
    stage_filter = parse_stages(stages)
    if len(stage_filter) > 1:
        raise UsageError(
            f"--graph prints one stage; {len(stage_filter)} are given.", f"Give one: --stage {stage_filter[-1].value}."
        )
    artifacts = select_kernels(open_cache_or_fail(path), name, parse_filters(selectors))
    entry = require_one(artifacts, "--graph prints")
    disassemble = make_disassembler(artifacts, nvdisasm, sass=sass)
    graph = graph_of(entry, stage_filter[0] if stage_filter else None, region, disassemble)
    write(FORMATS[format](graph) + "\n", sys.stdout)


def print_registers(
    path: Path | None, name: str | None, selectors: Sequence[str], nvdisasm: Path | None, *, json: bool
) -> None:
    """Print live registers by line, which are live at the peak, and how many to free for one more block."""
    from artifact_inspector.facts.pressure import pressure_of
    from artifact_inspector.facts.selection import parse_filters, select_kernels
    from artifact_inspector.report.json.views import PressureDocument
    from artifact_inspector.report.register_pressure import PressureReport

    artifacts = select_kernels(open_cache_or_fail(path), name, parse_filters(selectors))
    disassemble = make_disassembler(artifacts, nvdisasm, sass=True)
    kernels = [pressure_of(entry, disassemble) for entry in artifacts]
    if json:
        print_json(PressureDocument(kernels=tuple(kernels)))
    else:
        print_report(PressureReport(kernels))


def print_index(*, clear: bool, json: bool) -> None:
    """Print what the result cache holds, or delete it."""
    from artifact_inspector.files.index import Index, default_path
    from artifact_inspector.report.json._document import IndexDocument

    with Index(default_path(), lambda sentence: write_line(sentence, sys.stderr)) as index:
        if clear:
            index.clear()
        stats = index.stats()
    if stats is None:
        return
    if json:
        print_json(IndexDocument(file=stats.path, kernels=stats.entries, bytes=stats.bytes))
    else:
        write_line(f"{stats.entries} kernels, {stats.bytes / 1e6:.1f} MB, in {stats.path}", sys.stdout)


def print_schema(document: str) -> None:
    """Print the JSON Schema of a document; `list` lists the documents."""
    from artifact_inspector.report.json.schema import DOCUMENTS, DocumentList, schema_of

    if document == "list":
        print_report(DocumentList())
    elif document not in DOCUMENTS:
        raise UsageError(f"Unknown document {document!r}.", f"Expected one of {', '.join(DOCUMENTS)}.")
    else:
        print_json(schema_of(document))
