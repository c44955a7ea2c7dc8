"""`inspect-kernel graph`: blocks, loads, computes and stores of a kernel, for tools that draw graphs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import (
    CacheDirectory,
    KernelName,
    Nvdisasm,
    Sass,
    Targets,
    require_format,
)
from artifact_inspector.cli._reading import disassembler, open_or_advise
from artifact_inspector.errors import UsageError


@app.command()
def graph(
    cache: CacheDirectory = None,
    name: KernelName = None,
    stage: Annotated[
        str | None,
        typer.Option("--stage", "-s", metavar="STAGE", help="This stage; without it, the last one."),
    ] = None,
    region: Annotated[
        str | None, typer.Option("--region", metavar="REGION", help="Only this region: loop@81 …")
    ] = None,
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help="graphml, json or dot.")
    ] = "graphml",
    target: Targets = None,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Print the graph of a kernel: blocks, and what goes from loads through computes into stores."""
    with exit_codes(json=False):
        from artifact_inspector.facts.graph import graph_of
        from artifact_inspector.facts.selection import choose, parse_which
        from artifact_inspector.model import Stage
        from artifact_inspector.report.console import write
        from artifact_inspector.report.exchange.graph import FORMATS

        require_format(format, FORMATS)
        known = {one.value: one for one in Stage}
        if stage is not None and stage not in known:
            raise UsageError(f"There is no stage {stage!r}.", f"There are {', '.join(known)}.")
        chosen = choose(open_or_advise(cache), name, parse_which(target or []))
        if len(chosen) != 1:
            raise UsageError(
                f"{len(chosen)} kernels fit, and a graph is of one.", "Give its NAME or hash, and --target."
            )
        wanted = None if stage is None else known[stage]
        found = graph_of(chosen[0], wanted, region, disassembler(chosen, nvdisasm, sass=sass))
        write(FORMATS[format](found) + "\n", sys.stdout)
