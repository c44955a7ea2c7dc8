"""Options and arguments that several commands share, and what completes them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from artifact_inspector.cli._app import DEFAULT_COMMAND, app
from artifact_inspector.errors import InspectorError, UsageError

DEMO_TARGETS = ["sm_75", "gfx90a"]
OUT = Path("triton-cache")


def _complete_cache(incomplete: str) -> list[str]:
    # no answer leaves it to the shell, which completes directories
    return [name for name in _commands() if incomplete and name.startswith(incomplete)]


def _commands() -> list[str]:
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
        help="A cache directory, or one file of a kernel; without it, the cache that Triton uses.",
        autocompletion=_complete_cache,
    ),
]
KernelName = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Part of a kernel's name or hash.", autocompletion=_complete_name),
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON instead of text.")]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write a page to look at, in one file, too.")
]
Sass = Annotated[
    bool,
    typer.Option(
        "--sass",
        metavar="",
        help="Disassemble binaries too: SASS with nvdisasm, an hsaco without its text with llvm-objdump.",
    ),
]
Assemble = Annotated[
    bool,
    typer.Option(
        "--assemble",
        metavar="",
        help="Where a cubin is missing, let Triton's own ptxas make one of the PTX, kept in a cache of ours.",
    ),
]
Context = Annotated[
    int | None,
    typer.Option(
        "--context",
        metavar="N",
        min=0,
        help="Lines that a listing keeps around each event; what is between is told in words.",
    ),
]
Sort = Annotated[
    str | None,
    typer.Option(
        "--sort",
        metavar="KEY",
        help="Sort by name, time, verdict, spills, occupancy or size; -name: the other way.",
    ),
]
Newest = Annotated[
    bool, typer.Option("--newest", metavar="", help="What was compiled last first: --sort time.")
]
WithFinding = Annotated[
    list[str] | None,
    typer.Option("--finding", metavar="CODE", help="Only kernels with this finding: AI007 …"),
]
OfVerdict = Annotated[
    list[str] | None,
    typer.Option("--verdict", metavar="WORD", help="Only kernels of this verdict: serial, pipelined …"),
]
OfSeverity = Annotated[
    str | None,
    typer.Option("--severity", metavar="WORD", help="Only kernels with such a finding: warning, note."),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=0, help="Rows at most; 0: all."),
]
NoIndex = Annotated[
    bool,
    typer.Option("--no-index", metavar="", help="Neither look up nor keep what was found before."),
]
SvgOut = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where the picture goes; else to stdout."),
]
Nvdisasm = Annotated[
    Path | None,
    typer.Option("--nvdisasm", metavar="PATH", help="This nvdisasm, rather than Triton's or that on PATH."),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The cache directory to fill.")]
Gpus = Annotated[
    list[str] | None,
    typer.Option("--target", "-t", metavar="GPU", help="Only kernels for these GPUs: sm_80, gfx942, T4 …"),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        metavar="WHICH",
        help="Only these: a GPU (sm_80, T4), a Triton (3.6), w4, s3, a tile (128x64x32), GROUP_M=8.",
    ),
]

Signature = Annotated[
    str | None, typer.Option("--signature", "-S", metavar="TYPES", help="Argument types, as of `compile`.")
]
Const = Annotated[
    list[str] | None, typer.Option("--const", "-c", metavar="NAME=VALUE", help="Constants: BLOCK_M=64 …")
]
Warps = Annotated[int | None, typer.Option(metavar="N", help="Warps per block.")]
Stages = Annotated[int | None, typer.Option(metavar="N", help="Depth of software pipelines.")]
Option = Annotated[
    list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="Any other option of Triton's.")
]


def require_format(format: str, known: Collection[str]) -> None:
    """Raise a UsageError that lists the formats of a command where this is none of them."""
    if format not in known:
        raise UsageError(f"{format!r} is no format.", f"There are {', '.join(known)}.")
