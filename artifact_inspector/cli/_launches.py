"""Options that describe launches, and reading the launches from them."""

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
    typer.Option("--arg", metavar="NAME=VALUE", help="Set an argument: a_ptr=fp16[2048,2048], M=2048."),
]
Grid = Annotated[
    str | None,
    typer.Option(
        "--grid", metavar="X,Y,Z", help="Launch X*Y*Z CTAs: 1024, or 'cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)'."
    ),
]
LaunchFile = Annotated[
    Path | None, typer.Option("--launch", metavar="FILE", help="Read grid and arguments from a JSON file.")
]
Gpu = Annotated[
    str | None,
    typer.Option(
        "--gpu", metavar="GPU", help="Model the SM count, L2 and peaks of this product: H200, 4090 ..."
    ),
]
Steps = Annotated[
    int, typer.Option("--steps", metavar="N", help="Stop a kernel that runs more than N steps.")
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
    """The requested launches: from a file, else from the command line, else recorded in the cache.

    Raises:
        UsageError: there is no launch, or one cannot be read.
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
            "No launch to simulate: this cache has none recorded, and no grid was given.",
            "Give --grid and --arg NAME=VALUE for each argument, or --launch FILE. "
            "Caches made by `inspect-kernel capture` or `bench` have their launches recorded."
            f"{_example(cache, name, targets)}",
        )
    return found


def _example(cache: Cache, name: str | None, targets: Sequence[Which]) -> str:
    """A complete `predict` command for the first matching kernel; empty if its arguments are unknown."""
    from artifact_inspector.execution.loading import example_arguments
    from artifact_inspector.facts.selection import choose

    for entry in choose(cache, name, targets)[:1]:
        given = example_arguments(entry)
        if given:
            words = ["inspect-kernel", "predict", str(cache.root), entry.hash[:12], "--grid", "1"]
            return f" For example: {shlex.join([*words, *(f'--arg={one}' for one in given)])}"
    return ""
