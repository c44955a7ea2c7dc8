"""`inspect-kernel CACHE [NAME]`: a list of kernels, one kernel in full, or another view of one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from artifact_inspector.cli._app import DEFAULT_COMMAND, app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._listing import RowSelection, print_cache
from artifact_inspector.cli._loading import inspect_kernels, make_disassembler, open_cache_or_fail
from artifact_inspector.cli._options import (
    Assemble,
    CacheDirectory,
    Context,
    FindingFilter,
    Json,
    KernelName,
    Limit,
    Newest,
    NoIndex,
    Nvdisasm,
    Output,
    ReadTargets,
    Sass,
    SeverityFilter,
    Sort,
    VerdictFilter,
    Where,
    read_selectors,
)
from artifact_inspector.cli._output import output_to
from artifact_inspector.cli._pictures import KERNEL_PICTURES
from artifact_inspector.errors import UsageError


def _complete_document(incomplete: str) -> list[str]:
    from artifact_inspector.report.json.schema import DOCUMENTS

    return [name for name in DOCUMENTS if name.startswith(incomplete)]


@app.command(DEFAULT_COMMAND)
def inspect(
    cache: CacheDirectory = None,
    name: KernelName = None,
    json: Json = False,
    target: ReadTargets = None,
    properties: Where = None,
    stage: Annotated[
        list[str] | None,
        typer.Option("--stage", "-s", metavar="STAGE", help="Show only these: ttir, ttgir, llir, ptx, sass, amdgcn."),
    ] = None,
    ir: Annotated[
        bool, typer.Option("--ir", metavar="", help="Print the code of a loop, with its events in the margin.")
    ] = False,
    context: Context = None,
    timeline: Annotated[
        bool, typer.Option("--timeline", metavar="", help="Draw when loads are issued and complete, as text.")
    ] = False,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph", metavar="FORMAT", help="Print blocks and data flow of one stage: graphml, json or dot."
        ),
    ] = None,
    registers: Annotated[
        bool,
        typer.Option(
            "--registers",
            metavar="",
            help="Print live registers by line, and how many to free for one more block per SM.",
        ),
    ] = False,
    region: Annotated[
        str | None, typer.Option("--region", "-r", metavar="ID", help="Show only this loop, e.g. loop@98.")
    ] = None,
    on: Annotated[
        list[str] | None, typer.Option("--on", metavar="GPU", help="Also report occupancy on these GPUs.")
    ] = None,
    sort: Sort = None,
    newest: Newest = False,
    finding: FindingFilter = None,
    verdict: VerdictFilter = None,
    severity: SeverityFilter = None,
    limit: Limit = None,
    assemble: Assemble = False,
    svg: Annotated[
        str | None,
        typer.Option("--svg", metavar="WHAT", help=f"Draw one kernel as SVG instead: {', '.join(KERNEL_PICTURES)}."),
    ] = None,
    output: Output = None,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
    no_index: NoIndex = False,
    index_info: Annotated[
        bool, typer.Option("--index-info", metavar="", help="Print size and location of the result cache, and exit.")
    ] = False,
    clear_index: Annotated[
        bool, typer.Option("--clear-index", metavar="", help="Delete the result cache, and exit.")
    ] = False,
    json_schema: Annotated[
        str | None,
        typer.Option(
            "--json-schema",
            metavar="DOCUMENT",
            help="Print the JSON Schema of a document, and exit; 'list' lists the documents.",
            autocompletion=_complete_document,
        ),
    ] = None,
) -> None:
    """Show the kernels of a cache, or one kernel in full. This is the default command."""
    with exit_codes(json=json):
        from artifact_inspector.cli import _views

        views = {
            "--ir": ir, "--timeline": timeline, "--graph": graph is not None, "--registers": registers,
            "--svg": svg is not None, "--index-info or --clear-index": index_info or clear_index,
            "--json-schema": json_schema is not None,
        }  # fmt: skip
        requested = [option for option, is_given in views.items() if is_given]
        if len(requested) > 1:
            raise UsageError(f"{' and '.join(requested)} do not combine.", "Give one of them.")
        kernel_selectors, stages = read_selectors(target, properties), stage or []
        with output_to(None if svg else output):
            if json_schema is not None:
                _views.print_schema(json_schema)
            elif index_info or clear_index:
                _views.print_index(clear=clear_index, json=json)
            elif timeline:
                _views.print_timeline(cache, name, kernel_selectors, stages, region, nvdisasm, json=json, sass=sass)
            elif graph is not None:
                _views.print_graph(cache, name, kernel_selectors, stages, region, nvdisasm, graph, sass=sass)
            elif registers:
                _views.print_registers(cache, name, kernel_selectors, nvdisasm, json=json)
            elif svg is not None:
                picture = svg, output
                _draw(cache, name, kernel_selectors, picture, stages, region, nvdisasm, sass=sass, index=not no_index)
            else:
                print_cache(
                    cache,
                    name,
                    kernel_selectors,
                    stages,
                    region,
                    on or [],
                    nvdisasm,
                    rows=RowSelection(
                        "time" if newest else sort, tuple(finding or ()), tuple(verdict or ()), severity, limit
                    ),
                    json=json,
                    ir=ir,
                    context=context,
                    sass=sass,
                    assemble=assemble,
                    index=not no_index,
                )


def _draw(
    path: Path | None,
    name: str | None,
    targets: list[str],
    svg: tuple[str, Path | None],
    stages: list[str],
    region: str | None,
    nvdisasm: Path | None,
    *,
    sass: bool,
    index: bool,
) -> None:
    """Write a picture of one kernel."""
    from artifact_inspector.cli._pictures import draw_kernel, require_picture, write_svg
    from artifact_inspector.cli._views import require_one
    from artifact_inspector.facts.selection import parse_filters, parse_stages, select_kernels

    picture, output = svg
    require_picture(picture, KERNEL_PICTURES)
    stage_filter = parse_stages(stages)
    artifacts = select_kernels(open_cache_or_fail(path), name, parse_filters(targets))
    require_one(artifacts, "--svg draws")
    pictures: list[str] = []
    disassemble = make_disassembler(artifacts, nvdisasm, sass=sass)
    inspected = inspect_kernels(
        artifacts,
        disassemble,
        lambda kernel: pictures.append(draw_kernel(kernel, picture, region, stage_filter)),
        index=index,
    )
    list(inspected)
    write_svg(output, pictures[0])
