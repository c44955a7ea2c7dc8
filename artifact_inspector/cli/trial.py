"""`inspect-kernel try`: whether a change of a kernel changed its compiled code, and how."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import FOUND, exit_codes
from artifact_inspector.cli._options import (
    CompileTargets,
    Const,
    Json,
    Keep,
    Option,
    Signature,
    Stages,
    Warps,
)
from artifact_inspector.cli._telling import notice, print_json, print_report
from artifact_inspector.cli.compile import read_requests
from artifact_inspector.errors import CacheError, CompileError, UsageError


@app.command("try")
def attempt(
    kernel: Annotated[str, typer.Argument(metavar="KERNEL", help="FILE.py:KERNEL in the working tree.")],
    target: CompileTargets = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="STATE",
            help="Compare with this: a git revision, FILE.py, CACHE or CACHE:HASH. Default: HEAD.",
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="NAME=VALUE",
            help="Change an option, constant or type in the new state only: num_stages=4, n=i32:16.",
        ),
    ] = None,
    signature: Signature = None,
    const: Const = None,
    num_warps: Warps = None,
    num_stages: Stages = None,
    option: Option = None,
    configs: Annotated[
        str | None,
        typer.Option(
            "--configs",
            metavar="all|N",
            help="Compile all configurations of an autotuned kernel, or N of them. Default: the first.",
        ),
    ] = None,
    triton: Annotated[
        str | None, typer.Option("--triton", metavar="VERSION", help="Compile with this Triton: 3.2.0 ...")
    ] = None,
    out: Keep = None,
    json: Json = False,
) -> None:
    """Check whether a source change or an option changes the compiled code, and print what changed.

    Exit codes: 0 code unchanged, 1 code changed, 2 usage, 3 no code to compare.
    """
    with exit_codes(json=json), _refused_code_is_none():
        from artifact_inspector.api.trial import try_change
        from artifact_inspector.facts.selection import parse_targets
        from artifact_inspector.report.json.reach import reach_document

        wanted = [str(one) for one in parse_targets(target or [])]
        if not wanted:
            raise UsageError("No GPU to compile for.", "Give one: --target sm_80, --target gfx942 ...")
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
            raise CacheError(
                "Neither state has code to compare.", "Compile for a GPU that both states support."
            )


@contextmanager
def _refused_code_is_none() -> Iterator[None]:
    """Exit with 3 if a kernel does not compile: exit code 1 means that the code changed."""
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
                raise UsageError(
                    f"--with {text!r} is not NAME=VALUE.", "Write for example --with num_stages=4."
                )
            found[name] = value
    return found
