"""The options that name launches, and the launches that they name."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from artifact_inspector.execution.requests import Request
    from artifact_inspector.facts.selection import Which
    from artifact_inspector.files.cache import Cache

MOST_STEPS = 50_000_000

Arguments = Annotated[
    list[str] | None,
    typer.Option("--arg", metavar="NAME=VALUE", help="An argument: a_ptr=fp16[2048,2048], M=2048."),
]
Grid = Annotated[
    str | None,
    typer.Option("--grid", metavar="X,Y,Z", help="CTAs: 1024, or 'cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)'."),
]
LaunchFile = Annotated[
    Path | None, typer.Option("--launch", metavar="FILE", help="JSON with the grid and the arguments.")
]
Gpu = Annotated[
    str | None,
    typer.Option("--gpu", metavar="GPU", help="The product whose L2 and SMs count: H200, 4090 …"),
]
Steps = Annotated[
    int, typer.Option("--steps", metavar="N", help="Steps after which a kernel counts as endless.")
]


def read_requests(
    arg: list[str],
    grid: str | None,
    launch: Path | None,
    cache: Cache,
    name: str | None,
    targets: Sequence[Which] = (),
    *,
    every: bool = False,
) -> tuple[Request, ...]:
    """The launches asked for: in a file, else on the command line, else on record in the cache.

    Raises:
        UsageError: there is none, or one that cannot be read.
    """
    from artifact_inspector.api.predicting import asked_launches
    from artifact_inspector.execution.requests import parse_argument, parse_document
    from artifact_inspector.files.reading import read_named

    given = dict(parse_argument(text) for text in arg)
    written = None
    if launch is not None:
        try:
            written = parse_document(read_named(launch), launch.name)
        except OSError as error:
            raise UsageError(f"{launch} cannot be read: {error.strerror or error}.") from None
    found = asked_launches(cache, name, targets, grid, given, every=every, written=written)
    if not found:
        raise UsageError(
            "A launch needs a grid.",
            "Give --grid and --arg NAME=VALUE for each argument, or --launch FILE; a cache that "
            "`inspect-kernel capture` or `bench` filled has its launches on record."
            f"{_example(cache, name, targets)}",
        )
    return found


def _example(cache: Cache, name: str | None, targets: Sequence[Which]) -> str:
    """A command that works as it stands, for the first kernel that is asked for and is that plain."""
    from artifact_inspector.execution.loading import example_arguments
    from artifact_inspector.facts.selection import choose

    for entry in choose(cache, name, targets)[:1]:
        given = example_arguments(entry)
        if given:
            words = ["inspect-kernel", "predict", str(cache.root), entry.hash[:12], "--grid", "1"]
            return f" For example: {shlex.join([*words, *(f'--arg={one}' for one in given)])}"
    return ""
