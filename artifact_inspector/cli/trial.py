"""`inspect-kernel try`: whether a change of a kernel reached the code, and what it changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import FOUND, exit_codes
from artifact_inspector.cli._options import Const, Json, Option, Signature, Stages, Warps
from artifact_inspector.cli._telling import notice, print_json, print_report
from artifact_inspector.cli.compile import read_requests
from artifact_inspector.errors import CacheError, CompileError, UsageError


@app.command("try")
def attempt(
    kernel: Annotated[
        str, typer.Argument(metavar="KERNEL", help="FILE.py:KERNEL, as it is in the working tree.")
    ],
    target: Annotated[
        list[str] | None, typer.Option("--target", "-t", metavar="GPU", help="GPUs: sm_90, MI300X …")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            "-a",
            metavar="STATE",
            help="HEAD~1 or any revision, FILE.py, CACHE or CACHE:HASH; HEAD by default.",
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="NAME=VALUE",
            help="Of the new state alone: an option, a constant or a type: num_stages=4, n=i32:16.",
        ),
    ] = None,
    signature: Signature = None,
    const: Const = None,
    num_warps: Warps = None,
    num_stages: Stages = None,
    option: Option = None,
    configs: Annotated[
        str | None, typer.Option("--configs", metavar="all|N", help="Configurations, as of `compile`.")
    ] = None,
    triton: Annotated[
        str | None, typer.Option("--triton", metavar="VERSION", help="Compile with this Triton: 3.2.0 …")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="The cache to fill; one of our own by default."),
    ] = None,
    json: Json = False,
) -> None:
    """Say whether a change of a kernel reached the code, and what it changed.

    Exit codes: 0 it did not, 1 it did, 2 usage, 3 there is no code to compare.
    """
    with exit_codes(json=json), _refused_code_is_none():
        from artifact_inspector.api.trial import try_change
        from artifact_inspector.facts.selection import parse_targets
        from artifact_inspector.report.json.reach import reach_document

        wanted = [str(one) for one in parse_targets(target or [])]
        if not wanted:
            raise UsageError("A kernel is compiled for some GPU.", "Name it: -t sm_80, -t gfx942 …")
        (request,) = read_requests([kernel], signature, const, num_warps, num_stages, option, configs)
        answers = try_change(
            request,
            wanted,
            against,
            changed=_changes(change or []),
            out=out,
            tritons=[] if triton is None else [triton],
            notice=notice,
        )
        if json:
            print_json(reach_document(answers))
        else:
            for answer in answers:
                print_report(answer)
        if any(answer.reach.reached for answer in answers):
            raise typer.Exit(FOUND)
        if all(answer.reach.reached is None for answer in answers):
            raise CacheError("Nothing of the two could be compared.")


@contextmanager
def _refused_code_is_none() -> Iterator[None]:
    """A kernel that does not compile has no code to compare: no answer, and so not that of exit code 1."""
    try:
        yield
    except CompileError as error:
        raise CacheError(error.message, error.remedy) from None


def _changes(texts: list[str]) -> dict[str, str]:
    from artifact_inspector.compiling.signature import parse_signature

    found = {}
    for text in texts:
        for name, value in parse_signature(text):
            if name is None:
                raise UsageError(f"--with {text!r} is no NAME=VALUE.", "Write e.g. --with num_stages=4.")
            found[name] = value
    return found
