"""`inspect-kernel timeline`: when the loads of a kernel are issued and complete, in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import CacheDirectory, Json, KernelName, Nvdisasm, Sass, Targets
from artifact_inspector.cli._reading import disassembler, open_or_advise
from artifact_inspector.cli._telling import print_json, print_report
from artifact_inspector.errors import UsageError


@app.command()
def timeline(
    cache: CacheDirectory = None,
    name: KernelName = None,
    stage: Annotated[
        list[str] | None,
        typer.Option("--stage", "-s", metavar="STAGE", help="Only these: ttir, ttgir, llir, ptx, sass …"),
    ] = None,
    region: Annotated[
        str | None, typer.Option("--region", "-r", metavar="ID", help="Only this region, e.g. loop@98.")
    ] = None,
    target: Targets = None,
    json: Json = False,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Show when loads are issued and complete: events in a row, loads in flight below them.

    As a picture: inspect-kernel CACHE NAME --svg timeline -o timeline.svg
    """
    with exit_codes(json=json):
        from artifact_inspector.facts.inspection import inspect_artifact
        from artifact_inspector.facts.scene import find_scene
        from artifact_inspector.facts.selection import choose, parse_stages, parse_which
        from artifact_inspector.report.json.timeline import TimelineDocument
        from artifact_inspector.report.timeline import TimelineReport

        stages = parse_stages(stage or [])
        chosen = choose(open_or_advise(cache), name, parse_which(target or []))
        if len(chosen) != 1:
            raise UsageError(
                f"{len(chosen)} kernels fit, and a timeline is of one.",
                "Give its NAME or hash, and --target. There are "
                + ", ".join(f"{entry.display_name} {entry.hash[:8]} {entry.target}" for entry in chosen[:6])
                + (" …" if len(chosen) > 6 else "."),
            )
        disassemble = disassembler(chosen, nvdisasm, sass=sass)
        kernel = inspect_artifact(chosen[0], disassemble, lambda found: found.stages)
        scene = find_scene(kernel, region, stages or None)
        if json:
            print_json(TimelineDocument(scene=scene))
        else:
            print_report(TimelineReport(scene))
