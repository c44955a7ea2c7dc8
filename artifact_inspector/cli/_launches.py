"""The options that name launches, and the launches that they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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

    A grid alone is another one for the launches on record; with `every`, of all forms of their kernels.

    Raises:
        UsageError: there is none, or one that cannot be read.
    """
    from artifact_inspector.api.predicting import recorded_launches
    from artifact_inspector.execution.requests import Request, parse_argument, parse_document, parse_grid
    from artifact_inspector.files.reading import read_named

    given: dict[str, Any] = dict(parse_argument(text) for text in arg)
    extents = None if grid is None else parse_grid(grid)
    if launch is None and extents is not None and given:
        return (Request(extents, given),)
    if launch is None:
        given_grid = extents is not None
        found = recorded_launches(cache, name, targets, grid=given_grid, every=every)
        if not found and extents is not None:
            found = (Request(extents, {}),)
    else:
        try:
            text = read_named(launch)
        except OSError as error:
            raise UsageError(f"{launch} cannot be read: {error.strerror or error}.") from None
        found = parse_document(text, launch.name)
    if not found:
        raise UsageError(
            "A launch needs a grid.",
            "Give --grid and --arg NAME=VALUE for each argument, or --launch FILE; a cache that "
            "`inspect-kernel capture` or `bench` filled has its launches on record.",
        )
    return tuple(
        Request(extents or one.grid, {**one.arguments, **given}, one.hash, one.notes) for one in found
    )
