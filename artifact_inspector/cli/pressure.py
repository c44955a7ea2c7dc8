"""`inspect-kernel pressure`: registers alive in machine code, and what one block more would take."""

from __future__ import annotations

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import CacheDirectory, Json, KernelName, Nvdisasm, Targets
from artifact_inspector.cli._reading import disassembler, open_or_advise
from artifact_inspector.cli._telling import print_json, print_report


@app.command()
def pressure(
    cache: CacheDirectory = None,
    name: KernelName = None,
    target: Targets = None,
    json: Json = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Print registers alive by line, what is alive at the peak, and how many to shed for one more block."""
    with exit_codes(json=json):
        from artifact_inspector.facts.pressure import pressure_of
        from artifact_inspector.facts.selection import choose, parse_which
        from artifact_inspector.report.json.pressure import PressureDocument
        from artifact_inspector.report.pressure import PressureReport

        chosen = choose(open_or_advise(cache), name, parse_which(target or []))
        disassemble = disassembler(chosen, nvdisasm, sass=True)
        found = [pressure_of(entry, disassemble) for entry in chosen]
        if json:
            print_json(PressureDocument(kernels=tuple(found)))
        else:
            print_report(PressureReport(found))
