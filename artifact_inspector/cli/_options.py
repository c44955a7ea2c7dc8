"""Options and arguments that several commands share, and their completion."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

import typer

from artifact_inspector.cli._app import DEFAULT_COMMAND, app
from artifact_inspector.cli._output import write_line
from artifact_inspector.errors import InspectorError, UsageError

DEMO_TARGETS = ["sm_75", "gfx90a"]
DEFAULT_OUTPUT = Path("triton-cache")


def _complete_cache(incomplete: str) -> list[str]:
    # an empty answer leaves completion to the shell, which completes directories
    return [name for name in _command_names() if incomplete and name.startswith(incomplete)]


def _command_names() -> list[str]:
    names = [getattr(command.callback, "__name__", "") for command in app.registered_commands]
    return [name for name in names if name != DEFAULT_COMMAND]


def _complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    from artifact_inspector.files.cache import open_cache

    try:
        entries = open_cache(ctx.params.get("cache")).entries
    except InspectorError:
        return []
    return sorted({entry.display_name for entry in entries if entry.display_name.startswith(incomplete)})


CacheDirectory = Annotated[
    Path | None,
    typer.Argument(
        metavar="CACHE",
        help="A Triton cache: a directory, an archive, a trace, one file of a kernel, or - (stdin). Default: Triton's.",
        autocompletion=_complete_cache,
    ),
]
KernelName = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Part of a kernel's name or hash.", autocompletion=_complete_name)
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON instead of text.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write an HTML page to FILE.")]
Sass = Annotated[
    bool,
    typer.Option(
        "--sass",
        metavar="",
        help="Also disassemble binaries: cubin with nvdisasm, hsaco with llvm-objdump if it has no assembly.",
    ),
]
Assemble = Annotated[
    bool, typer.Option("--assemble", metavar="", help="Assemble PTX with Triton's ptxas where a cubin is missing.")
]
Context = Annotated[
    int | None,
    typer.Option(
        "--context",
        metavar="N",
        min=0,
        help="With --ir, print N lines around each event and summarize the lines between.",
    ),
]
Sort = Annotated[
    str | None,
    typer.Option(
        "--sort",
        metavar="KEY",
        help="Sort by name, time, verdict, spills, occupancy or size; -name reverses the order.",
    ),
]
Newest = Annotated[bool, typer.Option("--newest", metavar="", help="List the most recently compiled kernels first.")]
FindingFilter = Annotated[
    list[str] | None, typer.Option("--finding", metavar="CODE", help="Show only kernels with this finding: AI007 ...")
]
VerdictFilter = Annotated[
    list[str] | None,
    typer.Option("--verdict", metavar="WORD", help="Show only kernels with this verdict: serial, pipelined ..."),
]
SeverityFilter = Annotated[
    str | None,
    typer.Option("--severity", metavar="WORD", help="Show only kernels with a finding this severe: warning, note."),
]
Limit = Annotated[int | None, typer.Option("--limit", metavar="N", min=0, help="Print at most N rows; 0 prints all.")]
NoIndex = Annotated[bool, typer.Option("--no-index", metavar="", help="Ignore the result cache.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the output to FILE instead of standard output."),
]
Nvdisasm = Annotated[
    Path | None,
    typer.Option(
        "--nvdisasm", metavar="PATH", help="Disassemble with this nvdisasm. Default: Triton's, or the one on PATH."
    ),
]
OutputDirectory = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Write the compiled kernels to this cache directory.")
]
Keep = Annotated[
    Path | None, typer.Option("--keep", metavar="DIR", help="Keep the compiled kernels in this cache directory.")
]
DemoTargets = Annotated[
    list[str] | None,
    typer.Option("--target", "-t", metavar="GPU", help="Show only kernels for these GPUs: sm_80, gfx942, T4 ..."),
]
ReadTargets = DemoTargets
CompileTargets = Annotated[
    list[str] | None, typer.Option("--target", "-t", metavar="GPU", help="Compile for these GPUs: sm_90,gfx942,T4 ...")
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="PROPERTY",
        help="Show only kernels with this property: a Triton version (3.6), warps (w4), stages (s3), "
        "a tile (128x64x32), a constant (GROUP_M=8).",
    ),
]

Signature = Annotated[
    str | None,
    typer.Option(
        "--signature",
        "-S",
        metavar="TYPES",
        help="Argument types, by position or name: '*fp16:16,i32:16', 'a_ptr=*fp16:16'.",
    ),
]
Const = Annotated[
    list[str] | None,
    typer.Option("--const", "-c", metavar="NAME=VALUE", help="Set constants: BLOCK_M=64,BLOCK_N=32 ..."),
]
Warps = Annotated[int | None, typer.Option(metavar="N", help="Compile for N warps per block.")]
Stages = Annotated[int | None, typer.Option(metavar="N", help="Pipeline loops to a depth of N stages.")]
TritonOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="Set any other Triton option: waves_per_eu=2 ..."),
]


def read_selectors(target: Sequence[str] | None, properties: Sequence[str] | None) -> list[str]:
    """The words of `--target` and `--where` that select kernels.

    `--target` once took properties too; those still work and are reported on standard error.
    """
    from artifact_inspector.facts.selection import parse_filters
    from artifact_inspector.model.text import split_option_values

    targets = split_option_values(target or [])
    for name in targets:
        if not all(selector.is_target for selector in parse_filters([name])):
            write_line(f"inspect-kernel: --target {name} is now --where {name}.", sys.stderr)
    return [*targets, *(properties or [])]


def require_format(format: str, formats: Collection[str]) -> None:
    """Raise a UsageError that lists the formats of a command if this is none of them."""
    if format not in formats:
        raise UsageError(f"Unknown format {format!r}.", f"Expected one of {', '.join(formats)}.")
