"""`inspect-kernel try`: whether a change of a kernel changed its compiled code, and how."""

from __future__ import annotations

from typing import Annotated

import typer

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._exit import DIFFERENT
from artifact_inspector.cli._groups import CompileOptions
from artifact_inspector.cli._output import notice, print_json, print_report
from artifact_inspector.errors import CacheError, CompileError


@command("try")
def attempt(
    compiling: CompileOptions,
    kernel: Annotated[str, options.argument("KERNEL", "FILE.py:KERNEL in the working tree.")],
    target: options.CompileTargets = None,
    against: str | None = options.option(
        "--against STATE", "Compare with this: a git revision, FILE.py, CACHE or CACHE:HASH. Default: HEAD.", None
    ),
    changes: list[str] | None = options.option(
        "--with NAME=VALUE", "Change an option, constant or type in the new state only: num_stages=4, n=i32:16.", None
    ),
    configs: options.Configs = None,
    triton: options.TritonRelease = None,
    launch: options.LaunchFile = None,
    keep: options.Keep = None,
    json: options.Json = False,
) -> None:
    """Check whether a source change or an option changes the compiled code, and print what changed.

    Exit codes: 0 code unchanged, 1 code changed, 2 usage, 3 no code to compare.
    """
    from artifact_inspector.api.trial import try_change
    from artifact_inspector.cli._launches import read_launch_file
    from artifact_inspector.cli._requests import parse_pairs, read_requests, target_names
    from artifact_inspector.execution.interpreter.budget import limit_simulation
    from artifact_inspector.report.json.comparison import reach_document

    names = target_names(target)
    try:
        (request,) = read_requests([kernel], compiling, configs)
        with limit_simulation():
            trial_answers = try_change(
                request,
                names,
                against,
                changed=dict(parse_pairs("--with", changes or [], "num_stages=4")),
                out=keep,
                launch=None if launch is None else read_launch_file(launch)[0],
                tritons=[] if triton is None else [triton],
                notice=notice,
            )
    except CompileError as error:  # its exit code would mean that the code changed
        raise CacheError(error.message, error.remedy) from None
    if json:
        print_json(reach_document(trial_answers))
    else:
        for trial_answer in trial_answers:
            print_report(trial_answer)
    if any(trial_answer.reach.reached for trial_answer in trial_answers):
        raise typer.Exit(DIFFERENT)
    if all(trial_answer.reach.reached is None for trial_answer in trial_answers):
        raise CacheError("Neither state has code to compare.", "Compile for a GPU that both states support.")
