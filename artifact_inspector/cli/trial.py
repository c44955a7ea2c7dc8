"""`inspect-kernel try`: whether a change of a kernel changed its compiled code, and how."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import DIFFERENT, exit_codes
from artifact_inspector.cli._launches import LaunchFile, read_launch_file
from artifact_inspector.cli._options import CompileTargets, Const, Json, Keep, Signature, Stages, TritonOptions, Warps
from artifact_inspector.cli._output import notice, print_json, print_report
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
    changes: Annotated[
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
    option: TritonOptions = None,
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
    launch: LaunchFile = None,
    keep: Keep = None,
    json: Json = False,
) -> None:
    """Check whether a source change or an option changes the compiled code, and print what changed.

    Exit codes: 0 code unchanged, 1 code changed, 2 usage, 3 no code to compare.
    """
    with exit_codes(json=json), _compile_errors_as_missing_code():
        from artifact_inspector.api.trial import try_change
        from artifact_inspector.facts.selection import parse_targets
        from artifact_inspector.report.json.comparison import reach_document

        target_names = [str(parsed_target) for parsed_target in parse_targets(target or [])]
        (request,) = read_requests([kernel], signature, const, num_warps, num_stages, option, configs)
        trial_answers = try_change(
            request,
            target_names,
            against,
            changed=_parse_changes(changes or []),
            out=keep,
            launch=None if launch is None else read_launch_file(launch)[0],
            tritons=[] if triton is None else [triton],
            notice=notice,
        )
        if json:
            print_json(reach_document(trial_answers))
        else:
            for trial_answer in trial_answers:
                print_report(trial_answer)
        if any(trial_answer.reach.reached for trial_answer in trial_answers):
            raise typer.Exit(DIFFERENT)
        if all(trial_answer.reach.reached is None for trial_answer in trial_answers):
            raise CacheError("Neither state has code to compare.", "Compile for a GPU that both states support.")


@contextmanager
def _compile_errors_as_missing_code() -> Iterator[None]:
    """Exit with 3 if a kernel does not compile: exit code 1 means that the code changed."""
    try:
        yield
    except CompileError as error:
        raise CacheError(error.message, error.remedy) from None


def _parse_changes(texts: list[str]) -> dict[str, str]:
    from artifact_inspector.compiling.signature import parse_signature

    changes = {}
    for text in texts:
        for name, value in parse_signature(text):
            if name is None:
                raise UsageError(f"--with {text!r} is not NAME=VALUE.", "Write for example --with num_stages=4.")
            changes[name] = value
    return changes
