"""Options and arguments that several commands share, and their completion.

The annotations of commands, and of dataclasses of options, are evaluated with the names of this module.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from artifact_inspector.cli._commands import COMMANDS, DEFAULT_COMMAND
from artifact_inspector.errors import InspectorError, UsageError
from artifact_inspector.model.limits import SIMULATION_SECONDS

DEMO_TARGETS = ["sm_75", "gfx90a"]
DEFAULT_OUTPUT = Path("triton-cache")
KERNEL_PICTURES = ("timeline", "timetable", "partitions", "shared", "occupancy")
LAUNCH_PICTURES = ("grid", "roofline", "banks", "residency")
PAIR_PICTURES = ("timeline",)


def option(spelling: str, help: str, default: object = ..., **settings: Any) -> Any:
    """An option from its spelling: names, then the placeholder of its value (`--output -o FILE`); a flag has none.

    Args:
        default: the value without the option; omitted in an annotation.
    """
    names = [word for word in spelling.split() if word.startswith("-")]
    metavar = " ".join(word for word in spelling.split() if not word.startswith("-"))
    return typer.Option(default, *names, metavar=metavar, help=help, **settings)


def argument(metavar: str, help: str, default: object = ..., **settings: Any) -> Any:
    """A positional argument; `default` is as for `option`."""
    return typer.Argument(default, metavar=metavar, help=help, **settings)


def _complete_cache(incomplete: str) -> list[str]:
    # an empty answer leaves completion to the shell, which completes directories
    names = sorted(COMMANDS - {DEFAULT_COMMAND})
    return [name for name in names if incomplete and name.startswith(incomplete)]


def _complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    from artifact_inspector.files.cache import open_cache  # for completion only

    try:
        entries = open_cache(ctx.params.get("cache")).entries
    except InspectorError:
        return []
    return sorted({entry.display_name for entry in entries if entry.display_name.startswith(incomplete)})


# -- which kernels ---------------------------------------------------------------------

CacheDirectory = Annotated[
    Path | None,
    argument(
        "CACHE",
        "A Triton cache: a directory, an archive, a trace, one file of a kernel, or - (stdin). Default: Triton's.",
        autocompletion=_complete_cache,
    ),
]
NAME_HELP = "Part of a kernel's name or hash."
KernelName = Annotated[str | None, argument("NAME", NAME_HELP, autocompletion=_complete_name)]
ReadTargets = Annotated[
    list[str] | None, option("--target -t GPU", "Show only kernels for these GPUs: sm_80, gfx942, T4 ...")
]
Where = Annotated[
    list[str] | None,
    option(
        "--where PROPERTY",
        "Show only kernels with this property: a Triton version (3.6), warps (w4), stages (s3), "
        "a tile (128x64x32), a constant (GROUP_SIZE_M=8).",
    ),
]
Scheduler = Annotated[
    str | None,
    option("--scheduler ADDRESS", "Read the kernels on the workers of this Dask scheduler: tcp://host:8786."),
]
StageNames = Annotated[
    list[str] | None, option("--stage -s STAGE", "Show only these: ttir, ttgir, llir, ptx, sass, amdgcn.")
]
RegionName = Annotated[str | None, option("--region -r ID", "Show only this loop, e.g. loop@98.")]
SourceDirectory = Annotated[Path | None, option("--sources DIR", "Read source files below DIR. Default: here.")]
NoIndex = Annotated[bool, option("--no-index", "Ignore the result cache.")]
Sass = Annotated[
    bool,
    option("--sass", "Also disassemble binaries: cubin with nvdisasm, hsaco with llvm-objdump if it has no assembly."),
]
Assemble = Annotated[bool, option("--assemble", "Assemble PTX with Triton's ptxas where a cubin is missing.")]
Nvdisasm = Annotated[
    Path | None, option("--nvdisasm PATH", "Disassemble with this nvdisasm. Default: Triton's, or the one on PATH.")
]
LeftSide = Annotated[
    list[str] | None,
    option("--left WHICH", "Select kernels of A: a GPU, version, w4, s3, tile, NAME=VALUE, name or hash."),
]
RightSide = Annotated[list[str] | None, option("--right WHICH", "Select kernels of B (of A without B) the same way.")]
Across = Annotated[
    list[str] | None, option("--across AXIS", "Pair kernels that differ in this: target, version, config, source.")
]

# -- which rows of a list --------------------------------------------------------------

OtherGpus = Annotated[list[str] | None, option("--on GPU", "Also report occupancy on these GPUs.")]
ShowIr = Annotated[bool, option("--ir", "Print the code of a loop, with its events in the margin.")]
Context = Annotated[
    int | None,
    option("--context N", "With --ir, print N lines around each event and summarize the lines between.", min=0),
]
Sort = Annotated[
    str | None,
    option("--sort KEY", "Sort by cost, name, time, verdict, spills, occupancy or size; -name reverses the order."),
]
Newest = Annotated[bool, option("--newest", "List the most recently compiled kernels first.")]
FindingFilter = Annotated[list[str] | None, option("--finding CODE", "Show only kernels with this finding: AI007 ...")]
VerdictFilter = Annotated[
    list[str] | None, option("--verdict WORD", "Show only kernels with this verdict: serial, pipelined ...")
]
SeverityFilter = Annotated[
    str | None, option("--severity WORD", "Show only kernels with a finding this severe: warning, note.")
]
Full = Annotated[bool, option("--full", "Print every section of one kernel.")]
Legend = Annotated[bool, option("--legend", "Explain every word and column of the list.")]
Limit = Annotated[int | None, option("--limit N", "Print at most N rows; 0 prints all.", min=0)]

# -- where the output goes -------------------------------------------------------------

Json = Annotated[bool, option("--json", "Print JSON instead of text.")]
Html = Annotated[Path | None, option("--html FILE", "Also write an HTML page to FILE.")]
Output = Annotated[Path | None, option("--output -o FILE", "Write the output to FILE instead of standard output.")]
OutputDirectory = Annotated[Path, option("--output -o DIR", "Write the compiled kernels to this cache directory.")]
Keep = Annotated[Path | None, option("--keep DIR", "Keep the compiled kernels in this cache directory.")]

# -- how to compile --------------------------------------------------------------------

CompileTargets = Annotated[list[str] | None, option("--target -t GPU", "Compile for these GPUs: sm_90,gfx942,T4 ...")]
Signature = Annotated[
    str | None,
    option("--signature -S TYPES", "Argument types, by position or name: '*fp16:16,i32:16', 'a_ptr=*fp16:16'."),
]
Const = Annotated[list[str] | None, option("--const -c NAME=VALUE", "Set constants: BLOCK_M=64,BLOCK_N=32 ...")]
Warps = Annotated[int | None, typer.Option(metavar="N", help="Compile for N warps per block.")]
Stages = Annotated[int | None, typer.Option(metavar="N", help="Pipeline loops to a depth of N stages.")]
TritonOptions = Annotated[
    list[str] | None, option("--option NAME=VALUE", "Set any other Triton option: waves_per_eu=2 ...")
]
Configs = Annotated[
    str | None,
    option("--configs all|N", "Compile all configurations of an autotuned kernel, or N of them. Default: the first."),
]
TritonRelease = Annotated[str | None, option("--triton VERSION", "Compile with this Triton: 3.2.0 ...")]

# -- which launches --------------------------------------------------------------------

Arguments = Annotated[list[str] | None, option("--arg NAME=VALUE", "Set an argument: a_ptr=fp16[2048,2048], M=2048.")]
Grid = Annotated[str | None, option("--grid X,Y,Z", "Launch X*Y*Z CTAs: 1024, or 'cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)'.")]
LaunchFile = Annotated[Path | None, option("--launch FILE", "Read grid and arguments from a JSON file.")]
Gpu = Annotated[str | None, option("--gpu GPU", "Model the SM count, L2 and peaks of this product: H200, 4090 ...")]
Steps = Annotated[int, option("--steps N", "Stop a kernel that runs more than N steps.")]
Budget = Annotated[
    str | None,
    option(
        "--budget TIME",
        f"Stop all simulations after this processor time: 60s, 2m. Default: {SIMULATION_SECONDS.default}s.",
    ),
]


def require_format(format: str, formats: Collection[str]) -> None:
    """Raise a UsageError that lists the formats of a command if this is none of them."""
    if format not in formats:
        raise UsageError(f"Unknown format {format!r}.", f"Expected one of {', '.join(formats)}.")


def require_picture(picture: str, pictures: Collection[str]) -> None:
    """Raise a UsageError that lists the pictures of a command if this is none of them."""
    if picture not in pictures:
        raise UsageError(f"This command cannot draw {picture!r}.", f"Expected --svg {', '.join(pictures)}.")
