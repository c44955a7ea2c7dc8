"""Options that describe launches, and reading the launches from them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.errors import UsageError
from artifact_inspector.model.limits import SIMULATION_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from artifact_inspector.execution.launch_requests import LaunchRequest
    from artifact_inspector.facts.selection import KernelFilter
    from artifact_inspector.files.cache import Cache

MAX_STEPS = 50_000_000

Arguments = Annotated[
    list[str] | None,
    typer.Option("--arg", metavar="NAME=VALUE", help="Set an argument: a_ptr=fp16[2048,2048], M=2048."),
]
Grid = Annotated[
    str | None,
    typer.Option("--grid", metavar="X,Y,Z", help="Launch X*Y*Z CTAs: 1024, or 'cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)'."),
]
LaunchFile = Annotated[
    Path | None, typer.Option("--launch", metavar="FILE", help="Read grid and arguments from a JSON file.")
]
Gpu = Annotated[
    str | None,
    typer.Option("--gpu", metavar="GPU", help="Model the SM count, L2 and peaks of this product: H200, 4090 ..."),
]
Steps = Annotated[int, typer.Option("--steps", metavar="N", help="Stop a kernel that runs more than N steps.")]

Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="TIME",
        help=f"Stop all simulations after this processor time: 60s, 2m. Default: {SIMULATION_SECONDS.default}s.",
    ),
]


def budget_seconds(option: str | None) -> float:
    """The seconds of `--budget`, or the default.

    Raises:
        UsageError: they are not a time, or not positive.
    """
    if option is None:
        return SIMULATION_SECONDS.value
    seconds = parse_duration(option)
    if not seconds:
        raise UsageError(f"--budget is {option}.", "Expected a time above 0: --budget 60s.")
    return seconds


def parse_duration(text: str) -> float:
    """Seconds of `60s`, `2m` or `45`.

    Raises:
        UsageError: it has another form.
    """
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*(s|m|)", text.strip())
    if match is None:
        raise UsageError(f"Invalid budget {text[:40]!r}.", "Write seconds or minutes: --budget 60s, --budget 2m.")
    return float(match[1]) * (60 if match[2] == "m" else 1)


def read_requests(
    argument_texts: list[str],
    grid: str | None,
    launch: Path | None,
    cache: Cache,
    name: str | None,
    targets: Sequence[KernelFilter] = (),
    *,
    all_variants: bool = False,
) -> tuple[LaunchRequest, ...]:
    """The requested launches: from a file, else from the command line, else recorded in the cache.

    Raises:
        UsageError: there is no launch, or one cannot be read.
    """
    from artifact_inspector.api.launches import find_launches
    from artifact_inspector.execution.launch_requests import parse_argument

    arguments = dict(parse_argument(text) for text in argument_texts)
    file_requests = None if launch is None else read_launch_file(launch)
    requests = find_launches(
        cache, name, targets, grid, arguments, all_variants=all_variants, given_launches=file_requests
    )
    if not requests:
        raise UsageError(
            "No launch to simulate: this cache has none recorded, and no grid was given.",
            "Give --grid and --arg NAME=VALUE for each argument, or --launch FILE. "
            "Caches made by `inspect-kernel capture` or `bench` have their launches recorded."
            f"{_example_command(cache, name, targets)}",
        )
    return requests


def read_launch_file(launch: Path) -> tuple[LaunchRequest, ...]:
    """The launches of a file.

    Raises:
        UsageError: it cannot be read, or has no launch.
    """
    from artifact_inspector.execution.launch_requests import parse_document
    from artifact_inspector.files.reader import read_user_text

    try:
        return parse_document(read_user_text(launch), launch.name)
    except OSError as error:
        raise UsageError(f"{launch} cannot be read: {error.strerror or error}.") from None


def _example_command(cache: Cache, name: str | None, targets: Sequence[KernelFilter]) -> str:
    """A complete `predict` command for the first matching kernel; empty if its arguments are unknown."""
    from artifact_inspector.execution.kernel_loader import example_arguments
    from artifact_inspector.facts.selection import select_kernels

    for entry in select_kernels(cache, name, targets)[:1]:
        example_texts = example_arguments(entry)
        if example_texts:
            command = ["inspect-kernel", "predict", cache.title, entry.hash[:12], "--grid", "1"]
            return f" For example: {shlex.join([*command, *(f'--arg={text}' for text in example_texts)])}"
    return ""
