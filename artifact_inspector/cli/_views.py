"""Further views of the default command: timeline, graph, live registers, the result cache, JSON Schemas."""

from __future__ import annotations

import sys
from dataclasses import replace

from artifact_inspector.cli._groups import ListOptions, MachineCode, Selection
from artifact_inspector.cli._loading import open_one, open_selected
from artifact_inspector.cli._options import require_format
from artifact_inspector.cli._output import print_json, print_report, write_line
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.graph import graph_of
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.pressure import pressure_of
from artifact_inspector.facts.scene import find_scene
from artifact_inspector.files.index import Index, default_path
from artifact_inspector.report.console import write
from artifact_inspector.report.exchange.graph import FORMATS
from artifact_inspector.report.json._document import IndexDocument
from artifact_inspector.report.json.schema import DOCUMENTS, DocumentList, schema_of
from artifact_inspector.report.json.views import PressureDocument, TimelineDocument
from artifact_inspector.report.register_pressure import PressureReport
from artifact_inspector.report.timeline import TimelineReport


def print_timeline(selection: Selection, code: MachineCode, view: ListOptions) -> None:
    """Print events of one kernel in issue order, with the loads in flight below them."""
    entry, disassemble, stages = open_one(selection, code, view, "--timeline draws")
    kernel = inspect_artifact(entry, disassemble, lambda facts: facts.stages)
    scene = find_scene(kernel, view.region, stages or None)
    if view.json:
        print_json(TimelineDocument(scene=scene))
    else:
        print_report(TimelineReport(scene))


def print_graph(selection: Selection, code: MachineCode, view: ListOptions, format: str) -> None:
    """Print the basic blocks and the data flow of one stage of a kernel, the last stage by default."""
    require_format(format, FORMATS)
    entry, disassemble, stages = open_one(selection, code, view, "--graph prints")
    if len(stages) > 1:
        raise UsageError(
            f"--graph prints one stage; {len(stages)} are given.", f"Give one: --stage {stages[-1].value}."
        )
    graph = graph_of(entry, stages[0] if stages else None, view.region, disassemble)
    write(FORMATS[format](graph) + "\n", sys.stdout)


def print_registers(selection: Selection, code: MachineCode, *, json: bool) -> None:
    """Print live registers by line, which are live at the peak, and how many to free for one more block."""
    opened = open_selected(selection, replace(code, sass=True), assemble=True)
    kernels = [pressure_of(entry, opened.disassemble) for entry in opened.artifacts]
    if json:
        print_json(PressureDocument(kernels=tuple(kernels)))
    else:
        print_report(PressureReport(kernels))


def print_index(*, clear: bool, json: bool) -> None:
    """Print what the result cache holds, or delete it."""
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
    if document == "list":
        print_report(DocumentList())
    elif document not in DOCUMENTS:
        raise UsageError(f"Unknown document {document!r}.", f"Expected one of {', '.join(DOCUMENTS)}.")
    else:
        print_json(schema_of(document))
