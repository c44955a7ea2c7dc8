"""`inspect-kernel passes` and `bisect`: which pass changed a kernel, and which release."""

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
    typer.Argument(metavar="KERNEL", help="As `compile` takes it, or a cache directory with NAME."),
]
Name = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Of a cache: part of a kernel's name or hash.")
]
Target = Annotated[
    str | None, typer.Option("--target", "-t", metavar="GPU", help="The GPU to compile for: sm_80, gfx942 …")
]
Wanted = Annotated[
    list[str] | None,
    typer.Option(
        "--what",
        metavar="FACTS",
        help="Only these: order, pipeline, loops, widths, layouts, shared, matrix, registers.",
    ),
]


@app.command()
def passes(
    kernel: Kernel,
    name: Name = None,
    target: Target = None,
    triton: Annotated[
        str | None, typer.Option("--triton", metavar="VERSION", help="Compile with this Triton: 3.2.0 …")
    ] = None,
    what: Wanted = None,
    diff: Annotated[
        str | None,
        typer.Option(
            "--diff", metavar="PASS", help="Print what this pass changed in the text: name or number."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", "-a", metavar="", help="List every pass that changed the text.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Keep all texts in this directory.")
    ] = None,
    signature: Signature = None,
    const: Const = None,
    num_warps: Warps = None,
    num_stages: Stages = None,
    option: Option = None,
    json: Json = False,
) -> None:
    """Compile a kernel, and say which pass of the compiler changed what."""
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
        typer.Option("--between", "-b", metavar="A,B", help="Two releases, or all that are to be tried."),
    ] = "3.2.0,3.9.0",
    what: Wanted = None,
    signature: Signature = None,
    const: Const = None,
    num_warps: Warps = None,
    num_stages: Stages = None,
    option: Option = None,
    json: Json = False,
) -> None:
    """Find the release of Triton in which a kernel changed, and the pass on either side."""
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
            progress=lambda release: write(f"compiling with Triton {release} …\n", sys.stderr),
        )
        if json:
            print_json(BisectionDocument(bisection=found))
        else:
            write_lines("\n".join(describe_bisection(found)) + "\n", sys.stdout)


def _subject(request: KernelRequest, name: str | None, target: str | None, triton: str | None) -> Subject:
    """What is compiled: an entry of the cache that the request names for its kernel, else the request."""
    from artifact_inspector.facts.selection import choose, parse_targets, parse_which
    from artifact_inspector.files.cache import open_cache
    from artifact_inspector.passes.subject import of_entry, of_request

    kernel, words = request.place, [] if target is None else [target]
    if Path(kernel).is_dir():
        chosen = choose(open_cache(Path(kernel)), name, parse_which(words))
        if len(chosen) != 1:
            raise UsageError(
                f"{len(chosen)} kernels fit, and passes are of one compile.",
                "Give a NAME or hash that fits one, or -t.",
            )
        return of_entry(chosen[0], triton)
    if name is not None:
        raise UsageError(
            f"There is no cache directory {kernel}.", f"For a kernel of a file write {kernel}:{name}."
        )
    targets = parse_targets(words)
    if len(targets) != 1:
        raise UsageError("Passes are of one compile for one GPU.", "Name it: -t sm_80, -t gfx942 …")
    return of_request(request, targets[0], triton)


def _wanted(words: list[str] | None) -> tuple[What, ...]:
    from artifact_inspector.model.text import split_words
    from artifact_inspector.passes.observation import What

    known = {one.value: one for one in What}
    found = []
    for word in split_words(words or []):
        if word not in known:
            raise UsageError(
                f"{word!r} is nothing that passes are asked for.", f"There are {', '.join(known)}."
            )
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
        raise UsageError(
            f"{asked} ran and changed no text that could be read.", "List those that did with --all."
        )
    near = get_close_matches(asked, names, 1)
    raise UsageError(
        f"No pass {asked!r} ran.", f"Did you mean {near[0]}?" if near else "List them with --all."
    )
