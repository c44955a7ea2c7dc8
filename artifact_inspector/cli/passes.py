"""`inspect-kernel passes` and `bisect`: the compiler pass, or the Triton release, that changed a kernel."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._groups import CompileOptions
from artifact_inspector.cli._output import notice, print_json
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.passes.dump_facts import Topic
    from artifact_inspector.passes.subject import TraceSubject
    from artifact_inspector.passes.trace import PassLevel, PassRun, PassTrace

Kernel = Annotated[str, options.argument("KERNEL", "FILE.py:KERNEL, or a cache or a log of dumps followed by NAME.")]
Name = Annotated[str | None, options.argument("[NAME]", "Part of a kernel's name or hash in the cache.")]
Target = Annotated[str | None, options.option("--target -t GPU", "Compile for this GPU: sm_80, gfx942 ...")]
FactNames = Annotated[
    list[str] | None,
    options.option(
        "--what FACTS", "Show only these facts: order, pipeline, loops, widths, layouts, shared, matrix, registers."
    ),
]


@command()
def passes(
    compiling: CompileOptions,
    kernel: Kernel,
    name: Name = None,
    target: Target = None,
    triton: options.TritonRelease = None,
    fact_names: FactNames = None,
    diff: str | None = options.option(
        "--diff PASS", "Print the lines of IR that this pass changed; give its name or number.", None
    ),
    list_all: bool = options.option("--all -a", "List every pass that changed the IR.", False),
    text_directory: Path | None = options.option("--keep DIR", "Keep the IR after each pass in this directory.", None),
    json: options.Json = False,
) -> None:
    """Compile a kernel, or read a log of MLIR_ENABLE_DUMP, and list what each compiler pass changed."""
    from artifact_inspector.passes.dump_log import is_dump_log, trace_log
    from artifact_inspector.passes.subject import trace_passes
    from artifact_inspector.report.console import write_lines
    from artifact_inspector.report.json.compiling import PassesDocument
    from artifact_inspector.report.passes import describe_passes, text_difference

    is_log = is_dump_log(Path(kernel))
    subject = None if is_log else _find_subject(kernel, compiling, name, target, triton)
    fact_kinds = _parse_fact_kinds(fact_names)
    difference_lines: list[str] = []

    def record_difference(step: PassRun, level: PassLevel, text_before: str, text_after: str) -> None:
        if diff is not None and diff.lower() in (step.name.lower(), (step.argument or "").lower(), str(step.index)):
            difference_lines.extend(text_difference(step, text_before, text_after))

    if is_log and text_directory is not None:
        raise UsageError(f"--keep has nothing to keep: {kernel} is a log.", "Remove --keep.")
    if text_directory is not None:
        text_directory.mkdir(parents=True, exist_ok=True)
    trace = (
        trace_log(Path(kernel), name, fact_kinds, record_difference)
        if subject is None
        else trace_passes(
            subject, fact_kinds, on_change=record_difference, dump_directory=text_directory, notice=notice
        )
    )
    if json:
        print_json(PassesDocument(passes=trace))
    elif diff is None:
        write_lines("\n".join(describe_passes(trace, every=list_all)) + "\n", sys.stdout)
    elif difference_lines:
        write_lines("\n".join(difference_lines) + "\n", sys.stdout)
    else:
        _raise_unchanged(diff, trace)


@command()
def bisect(
    compiling: CompileOptions,
    kernel: Kernel,
    name: Name = None,
    target: Target = None,
    release_range: str = options.option(
        "--between A,B", "Search between two releases, or among a list of them.", "3.2.0,3.9.0"
    ),
    fact_names: FactNames = None,
    json: options.Json = False,
) -> None:
    """Find the Triton release in which a kernel changed, and the pass that changed it."""
    from artifact_inspector.comparison.release_facts import ReleaseFacts
    from artifact_inspector.passes.bisection import bisect as search
    from artifact_inspector.report.console import write, write_lines
    from artifact_inspector.report.json.compiling import BisectionDocument
    from artifact_inspector.report.passes import describe_bisection, describe_release_facts

    subject = _find_subject(kernel, compiling, name, target, "3.9.0")
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


def _find_subject(
    kernel: str, compiling: CompileOptions, name: str | None, target: str | None, triton: str | None
) -> TraceSubject:
    """What to compile: an entry of the cache that the argument names, else the kernel with its options."""
    from artifact_inspector.cli._requests import read_requests
    from artifact_inspector.facts.selection import parse_filters, parse_targets, select_kernels
    from artifact_inspector.files.cache import open_cache
    from artifact_inspector.passes.subject import subject_of_entry, subject_of_request

    (request,) = read_requests([kernel], compiling)
    target_words = [] if target is None else [target]
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


def _raise_unchanged(requested_pass: str, trace: PassTrace) -> NoReturn:
    names = {step.name: step for step in trace.steps}
    if requested_pass in names or any(requested_pass in (step.argument, str(step.index)) for step in trace.steps):
        raise UsageError(f"Pass {requested_pass} changed no readable IR.", "List the passes that did with --all.")
    near_names = get_close_matches(requested_pass, names, 1)
    raise UsageError(
        f"No pass {requested_pass!r} ran.",
        f"Did you mean {near_names[0]}?" if near_names else "List all passes with --all.",
    )
