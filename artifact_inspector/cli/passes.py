"""`inspect-kernel passes` and `bisect`: the compiler pass, or the Triton release, that changed a kernel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import Const, Json, Signature, Stages, TritonOptions, Warps
from artifact_inspector.cli._output import notice, print_json
from artifact_inspector.cli.compile import read_requests
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.compiling import KernelRequest
    from artifact_inspector.passes.dump_facts import Topic
    from artifact_inspector.passes.subject import TraceSubject
    from artifact_inspector.passes.trace import PassLevel, PassRun

Kernel = Annotated[str, typer.Argument(metavar="KERNEL", help="FILE.py:KERNEL, or a cache directory followed by NAME.")]
Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="Part of a kernel's name or hash in the cache.")]
Target = Annotated[
    str | None, typer.Option("--target", "-t", metavar="GPU", help="Compile for this GPU: sm_80, gfx942 ...")
]
FactNames = Annotated[
    list[str] | None,
    typer.Option(
        "--what",
        metavar="FACTS",
        help="Show only these facts: order, pipeline, loops, widths, layouts, shared, matrix, registers.",
    ),
]


@app.command()
def passes(
    kernel: Kernel,
    name: Name = None,
    target: Target = None,
    triton: Annotated[
        str | None, typer.Option("--triton", metavar="VERSION", help="Compile with this Triton: 3.2.0 ...")
    ] = None,
    fact_names: FactNames = None,
    diff: Annotated[
        str | None,
        typer.Option(
            "--diff", metavar="PASS", help="Print the lines of IR that this pass changed; give its name or number."
        ),
    ] = None,
    list_all: Annotated[
        bool, typer.Option("--all", "-a", metavar="", help="List every pass that changed the IR.")
    ] = False,
    text_directory: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Keep the IR after each pass in this directory.")
    ] = None,
    signature: Signature = None,
    const: Const = None,
    num_warps: Warps = None,
    num_stages: Stages = None,
    option: TritonOptions = None,
    json: Json = False,
) -> None:
    """Compile a kernel and list what each compiler pass changed."""
    with exit_codes(json=json):
        from artifact_inspector.passes.subject import trace_passes
        from artifact_inspector.passes.trace import PassTrace
        from artifact_inspector.report.console import write_lines
        from artifact_inspector.report.json.compiling import PassesDocument
        from artifact_inspector.report.passes import describe_passes, text_difference

        (request,) = read_requests([kernel], signature, const, num_warps, num_stages, option)
        subject = _find_subject(request, name, target, triton)
        fact_kinds = _parse_fact_kinds(fact_names)
        difference_lines: list[str] = []

        def record_difference(step: PassRun, level: PassLevel, text_before: str, text_after: str) -> None:
            if diff is not None and diff.lower() in (step.name.lower(), (step.argument or "").lower(), str(step.index)):
                difference_lines.extend(text_difference(step, text_before, text_after))

        if text_directory is not None:
            text_directory.mkdir(parents=True, exist_ok=True)
        trace: PassTrace = trace_passes(
            subject, fact_kinds, on_change=record_difference, dump_directory=text_directory, notice=notice
        )
        if json:
            print_json(PassesDocument(passes=trace))
        elif diff is None:
            write_lines("\n".join(describe_passes(trace, every=list_all)) + "\n", sys.stdout)
        else:
            _require_known_pass(diff, trace, difference_lines)
            write_lines("\n".join(difference_lines) + "\n", sys.stdout)


@app.command()
def bisect(
    kernel: Kernel,
    name: Name = None,
    target: Target = None,
    release_range: Annotated[
        str, typer.Option("--between", metavar="A,B", help="Search between two releases, or among a list of them.")
    ] = "3.2.0,3.9.0",
    fact_names: FactNames = None,
    signature: Signature = None,
    const: Const = None,
    num_warps: Warps = None,
    num_stages: Stages = None,
    option: TritonOptions = None,
    json: Json = False,
) -> None:
    """Find the Triton release in which a kernel changed, and the pass that changed it."""
    with exit_codes(json=json):
        from artifact_inspector.comparison.release_facts import ReleaseFacts
        from artifact_inspector.passes.bisection import bisect as search
        from artifact_inspector.report.console import write, write_lines
        from artifact_inspector.report.json.compiling import BisectionDocument
        from artifact_inspector.report.passes import describe_bisection
        from artifact_inspector.report.release_facts import describe_release_facts

        (request,) = read_requests([kernel], signature, const, num_warps, num_stages, option)
        subject = _find_subject(request, name, target, "3.9.0")
        releases = [release_name.strip() for release_name in release_range.split(",") if release_name.strip()]
        facts = None if fact_names else ReleaseFacts()
        bisection = search(
            subject,
            _parse_fact_kinds(fact_names),
            releases,
            notice=notice,
            progress=lambda release: write(f"Compiling with Triton {release} …\n", sys.stderr),
            comparer=facts,
        )
        if json:
            print_json(BisectionDocument(bisection=bisection))
        else:
            lines = describe_bisection(bisection) if facts is None else describe_release_facts(bisection, facts)
            write_lines("\n".join(lines) + "\n", sys.stdout)


def _find_subject(request: KernelRequest, name: str | None, target: str | None, triton: str | None) -> TraceSubject:
    """What to compile: an entry of the cache that the request names, else the request itself."""
    from artifact_inspector.facts.selection import parse_filters, parse_targets, select_kernels
    from artifact_inspector.files.cache import open_cache
    from artifact_inspector.passes.subject import subject_of_entry, subject_of_request

    kernel, target_words = request.kernel_path, [] if target is None else [target]
    if Path(kernel).is_dir():
        artifacts = select_kernels(open_cache(Path(kernel)), name, parse_filters(target_words))
        if len(artifacts) != 1:
            raise UsageError(
                f"This command compiles one kernel; {len(artifacts)} match.", "Narrow by name or hash, or --target."
            )
        return subject_of_entry(artifacts[0], triton)
    if name is not None:
        raise UsageError(
            f"There is no cache directory {kernel}.", f"To compile a kernel of a file, write {kernel}:{name}."
        )
    targets = parse_targets(target_words)
    if len(targets) != 1:
        raise UsageError(
            f"This command compiles for one GPU; {len(targets)} are given.",
            "Give one: --target sm_80, --target gfx942 ...",
        )
    return subject_of_request(request, targets[0], triton)


def _parse_fact_kinds(fact_names: list[str] | None) -> tuple[Topic, ...]:
    from artifact_inspector.model.text import split_option_values
    from artifact_inspector.passes.dump_facts import Topic

    kinds = {kind.value: kind for kind in Topic}
    selected = []
    for fact_name in split_option_values(fact_names or []):
        if fact_name not in kinds:
            raise UsageError(f"Unknown fact {fact_name!r} for --what.", f"Expected one of {', '.join(kinds)}.")
        selected.append(kinds[fact_name])
    return tuple(selected) or tuple(Topic)


def _require_known_pass(requested_pass: str, trace: object, difference_lines: list[str]) -> None:
    from difflib import get_close_matches

    from artifact_inspector.passes.trace import PassTrace

    assert isinstance(trace, PassTrace)
    if difference_lines:
        return
    names = {step.name: step for step in trace.steps}
    if requested_pass in names or any(requested_pass in (step.argument, str(step.index)) for step in trace.steps):
        raise UsageError(f"Pass {requested_pass} changed no readable IR.", "List the passes that did with --all.")
    near_names = get_close_matches(requested_pass, names, 1)
    raise UsageError(
        f"No pass {requested_pass!r} ran.",
        f"Did you mean {near_names[0]}?" if near_names else "List all passes with --all.",
    )
