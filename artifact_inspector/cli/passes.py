"""`inspect-kernel passes` and `bisect`: the compiler pass, or the Triton release, that changed a kernel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import Const, Json, Option, Signature, Stages, Warps
from artifact_inspector.cli._telling import notice, print_json
from artifact_inspector.cli.compile import read_requests
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.compiling import KernelRequest
    from artifact_inspector.passes.observation import What
    from artifact_inspector.passes.subject import Subject
    from artifact_inspector.passes.trace import Level, Step

Kernel = Annotated[
    str,
    typer.Argument(metavar="KERNEL", help="FILE.py:KERNEL, or a cache directory followed by NAME."),
]
Name = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Part of a kernel's name or hash in the cache.")
]
Target = Annotated[
    str | None, typer.Option("--target", "-t", metavar="GPU", help="Compile for this GPU: sm_80, gfx942 ...")
]
Wanted = Annotated[
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
    what: Wanted = None,
    diff: Annotated[
        str | None,
        typer.Option(
            "--diff",
            metavar="PASS",
            help="Print the lines of IR that this pass changed; give its name or number.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", "-a", metavar="", help="List every pass that changed the IR.")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="Keep the IR after each pass in this directory."),
    ] = None,
    signature: Signature = None,
    const: Const = None,
    num_warps: Warps = None,
    num_stages: Stages = None,
    option: Option = None,
    json: Json = False,
) -> None:
    """Compile a kernel and list what each compiler pass changed."""
    with exit_codes(json=json):
        from artifact_inspector.passes.subject import trace_passes
        from artifact_inspector.passes.trace import PassTrace
        from artifact_inspector.report.console import write_lines
        from artifact_inspector.report.json.passes import PassesDocument
        from artifact_inspector.report.passes import describe_passes, text_difference

        (request,) = read_requests([kernel], signature, const, num_warps, num_stages, option)
        subject = _subject(request, name, target, triton)
        wanted = _wanted(what)
        shown: list[str] = []

        def compare(step: Step, level: Level, before: str, after: str) -> None:
            if diff is not None and diff.lower() in (
                step.name.lower(),
                (step.argument or "").lower(),
                str(step.index),
            ):
                shown.extend(text_difference(step, before, after))

        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
        found: PassTrace = trace_passes(
            subject,
            wanted,
            keep=compare,
            keep_texts=keep,
            notice=notice,
        )
        if json:
            print_json(PassesDocument(passes=found))
        elif diff is None:
            write_lines("\n".join(describe_passes(found, every=every)) + "\n", sys.stdout)
        else:
            _refuse_unknown_pass(diff, found, shown)
            write_lines("\n".join(shown) + "\n", sys.stdout)


@app.command()
def bisect(
    kernel: Kernel,
    name: Name = None,
    target: Target = None,
    between: Annotated[
        str,
        typer.Option(
            "--between", metavar="A,B", help="Search between two releases, or among a list of them."
        ),
    ] = "3.2.0,3.9.0",
    what: Wanted = None,
    signature: Signature = None,
    const: Const = None,
    num_warps: Warps = None,
    num_stages: Stages = None,
    option: Option = None,
    json: Json = False,
) -> None:
    """Find the Triton release in which a kernel changed, and the pass that changed it."""
    with exit_codes(json=json):
        from artifact_inspector.passes.bisection import bisect as search
        from artifact_inspector.report.console import write, write_lines
        from artifact_inspector.report.json.passes import BisectionDocument
        from artifact_inspector.report.passes import describe_bisection

        (request,) = read_requests([kernel], signature, const, num_warps, num_stages, option)
        subject = _subject(request, name, target, "3.9.0")
        releases = [word.strip() for word in between.split(",") if word.strip()]
        found = search(
            subject,
            _wanted(what or ["order"]),
            releases,
            notice=notice,
            progress=lambda release: write(f"Compiling with Triton {release} …\n", sys.stderr),
        )
        if json:
            print_json(BisectionDocument(bisection=found))
        else:
            write_lines("\n".join(describe_bisection(found)) + "\n", sys.stdout)


def _subject(request: KernelRequest, name: str | None, target: str | None, triton: str | None) -> Subject:
    """What to compile: an entry of the cache that the request names, else the request itself."""
    from artifact_inspector.facts.selection import choose, parse_targets, parse_which
    from artifact_inspector.files.cache import open_cache
    from artifact_inspector.passes.subject import of_entry, of_request

    kernel, words = request.place, [] if target is None else [target]
    if Path(kernel).is_dir():
        chosen = choose(open_cache(Path(kernel)), name, parse_which(words))
        if len(chosen) != 1:
            raise UsageError(
                f"This command compiles one kernel; {len(chosen)} match.",
                "Narrow by name or hash, or --target.",
            )
        return of_entry(chosen[0], triton)
    if name is not None:
        raise UsageError(
            f"There is no cache directory {kernel}.", f"To compile a kernel of a file, write {kernel}:{name}."
        )
    targets = parse_targets(words)
    if len(targets) != 1:
        raise UsageError(
            f"This command compiles for one GPU; {len(targets)} are given.",
            "Give one: --target sm_80, --target gfx942 ...",
        )
    return of_request(request, targets[0], triton)


def _wanted(words: list[str] | None) -> tuple[What, ...]:
    from artifact_inspector.model.text import split_words
    from artifact_inspector.passes.observation import What

    known = {one.value: one for one in What}
    found = []
    for word in split_words(words or []):
        if word not in known:
            raise UsageError(f"Unknown fact {word!r} for --what.", f"Expected one of {', '.join(known)}.")
        found.append(known[word])
    return tuple(found) or tuple(What)


def _refuse_unknown_pass(asked: str, found: object, shown: list[str]) -> None:
    from difflib import get_close_matches

    from artifact_inspector.passes.trace import PassTrace

    assert isinstance(found, PassTrace)
    if shown:
        return
    names = {step.name: step for step in found.steps}
    if asked in names or any(asked in (step.argument, str(step.index)) for step in found.steps):
        raise UsageError(f"Pass {asked} changed no readable IR.", "List the passes that did with --all.")
    near = get_close_matches(asked, names, 1)
    raise UsageError(
        f"No pass {asked!r} ran.", f"Did you mean {near[0]}?" if near else "List all passes with --all."
    )
