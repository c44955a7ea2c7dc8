"""`inspect-kernel CACHE [NAME]`: what each kernel of a cache does, and the story of one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from artifact_inspector.cli._app import DEFAULT_COMMAND, app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import (
    Assemble,
    CacheDirectory,
    Context,
    Json,
    KernelName,
    Limit,
    Newest,
    NoIndex,
    Nvdisasm,
    OfSeverity,
    OfVerdict,
    Sass,
    Sort,
    SvgOut,
    Targets,
    WithFinding,
)
from artifact_inspector.cli._pictures import OF_KERNEL
from artifact_inspector.cli._reading import disassembler, inspect_kernels, open_or_advise
from artifact_inspector.cli._showing import Rows, report
from artifact_inspector.errors import UsageError


@app.command(DEFAULT_COMMAND, hidden=True)
def inspect(
    cache: CacheDirectory = None,
    name: KernelName = None,
    json: Json = False,
    target: Targets = None,
    stage: Annotated[
        list[str] | None,
        typer.Option(
            "--stage", "-s", metavar="STAGE", help="Only these: ttir, ttgir, llir, ptx, sass, amdgcn."
        ),
    ] = None,
    ir: Annotated[
        bool, typer.Option("--ir", metavar="", help="Print the lines of a region, events in the margin.")
    ] = False,
    context: Context = None,
    region: Annotated[
        str | None, typer.Option("--region", "-r", metavar="ID", help="Only this region, e.g. loop@98.")
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--on",
            metavar="GPU",
            help="Give the occupancy on these GPUs too: if the same binary held, and of one kernel compiled.",
        ),
    ] = None,
    sort: Sort = None,
    newest: Newest = False,
    finding: WithFinding = None,
    verdict: OfVerdict = None,
    severity: OfSeverity = None,
    limit: Limit = None,
    assemble: Assemble = False,
    svg: Annotated[
        str | None,
        typer.Option(
            "--svg", metavar="WHAT", help=f"Draw one kernel as SVG instead: {', '.join(OF_KERNEL)}."
        ),
    ] = None,
    output: SvgOut = None,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
    no_index: NoIndex = False,
) -> None:
    """Say in which order each kernel of a cache loads and computes."""
    with exit_codes(json=json):
        if svg is not None:
            _draw(
                cache,
                name,
                target or [],
                (svg, output),
                stage or [],
                region,
                nvdisasm,
                sass=sass,
                index=not no_index,
            )
            return
        rows = Rows("time" if newest else sort, tuple(finding or ()), tuple(verdict or ()), severity, limit)
        report(
            cache,
            name,
            target or [],
            stage or [],
            region,
            on or [],
            nvdisasm,
            rows=rows,
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
    from artifact_inspector.facts.selection import choose, parse_stages, parse_which

    what, output = svg
    require_picture(what, OF_KERNEL)
    only = parse_stages(stages)
    chosen = choose(open_or_advise(path), name, parse_which(targets))
    if len(chosen) != 1:
        raise UsageError(f"A picture is of one kernel, {len(chosen)} fit.", "Give a NAME that fits one.")
    drawn: list[str] = []
    disassemble = disassembler(chosen, nvdisasm, sass=sass)
    found = inspect_kernels(
        chosen, disassemble, lambda kernel: drawn.append(draw_kernel(kernel, what, region, only)), index=index
    )
    list(found)
    write_svg(output, drawn[0])
