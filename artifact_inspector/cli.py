"""The command `inspect-kernel`: options to inspection, inspection to report, report to exit code.

Exit codes: 0 fine, 1 a kernel did not compile, 2 the request makes no sense, 3 nothing could be
read, 130 interrupted.
"""

from __future__ import annotations

import copy
import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from artifact_inspector import __version__
from artifact_inspector.errors import CacheError, CompileError, InspectorError, UsageError

if TYPE_CHECKING:
    from artifact_inspector.cache import Artifact, Cache
    from artifact_inspector.compiling import CompileResult
    from artifact_inspector.facts import KernelFacts
    from artifact_inspector.inspection import Disassemble

__all__ = ["app", "main"]

FOUND, USAGE, UNREADABLE, INTERRUPTED = 1, 2, 3, 130
DEFAULT_COMMAND = "inspect"
DEMO_TARGETS = ["sm_75", "gfx90a"]
OUT = Path("triton-cache")


class _Group(TyperGroup):
    """Commands, and a default one for whatever is none of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._with_command(args))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        shown = copy.copy(self)
        default = self.commands[DEFAULT_COMMAND]
        shown.params = [*default.params, *self.params]
        TyperGroup.format_help(shown, ctx, formatter)

    def _with_command(self, args: list[str]) -> list[str]:
        """The arguments with the command in front of its options, the default one if there is none."""
        own = {name for param in self.params for name in param.opts} | {"--help"}
        if args and args[0] in own:
            return args
        takes_value = {
            name
            for param in self.commands[DEFAULT_COMMAND].params
            if not getattr(param, "is_flag", False)
            for name in param.opts
        }
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] != "--":
            at += 2 if args[at] in takes_value else 1
        if at < len(args) and args[at] in self.commands:
            return [args[at], *args[:at], *args[at + 1 :]]
        return [DEFAULT_COMMAND, *args]


app = typer.Typer(
    cls=_Group,
    subcommand_metavar="| COMMAND …",
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"inspect-kernel {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Say in which order Triton kernels load and compute, from any Triton cache, with no GPU.

    One row per kernel of a cache; with a NAME that fits one kernel, its whole story, stage by stage.
    """


def _complete_cache(incomplete: str) -> list[str]:
    # no answer leaves it to the shell, which completes directories
    return [name for name in ("compile", "demo", "findings") if incomplete and name.startswith(incomplete)]


def _complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    from artifact_inspector.cache import open_cache

    try:
        entries = open_cache(ctx.params.get("cache")).entries
    except InspectorError:
        return []
    return sorted({entry.display_name for entry in entries if entry.display_name.startswith(incomplete)})


CacheDirectory = Annotated[
    Path | None,
    typer.Argument(
        metavar="CACHE",
        help="A cache directory; without it, the one that Triton uses.",
        autocompletion=_complete_cache,
    ),
]
KernelName = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Part of a kernel's name or hash.", autocompletion=_complete_name),
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON instead of text.")]
Sass = Annotated[
    bool,
    typer.Option(
        "--sass",
        metavar="",
        help="Disassemble binaries too: SASS with nvdisasm, an hsaco without its text with llvm-objdump.",
    ),
]
Nvdisasm = Annotated[
    Path | None,
    typer.Option("--nvdisasm", metavar="PATH", help="This nvdisasm, rather than Triton's or that on PATH."),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The cache directory to fill.")]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", "-t", metavar="GPU", help="Only kernels for these GPUs: sm_80, gfx942, T4 …"),
]


@app.command(DEFAULT_COMMAND, hidden=True)
def inspect(
    cache: CacheDirectory = None,
    name: KernelName = None,
    json: Json = False,
    target: Targets = None,
    stage: Annotated[
        list[str] | None,
        typer.Option(
            "--stage", "-s", metavar="STAGE", help="Only these: ttir, ttgir, llir, ptx, sass, amdgcn."
        ),
    ] = None,
    ir: Annotated[
        bool, typer.Option("--ir", metavar="", help="Print the lines of a region, events in the margin.")
    ] = False,
    region: Annotated[
        str | None, typer.Option("--region", "-r", metavar="ID", help="Only this region, e.g. loop@98.")
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option("--on", metavar="GPU", help="Give the occupancy on these GPUs too: sm_89, MI300X …"),
    ] = None,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Say in which order each kernel of a cache loads and computes."""
    with _exit_codes(json=json):
        _report(
            cache, name, target or [], stage or [], region, on or [], nvdisasm, json=json, ir=ir, sass=sass
        )


@app.command()
def findings(
    cache: CacheDirectory = None,
    name: KernelName = None,
    json: Json = False,
    target: Targets = None,
    explain: Annotated[
        str | None,
        typer.Option("--explain", metavar="CODE", help="Say what a finding means: AI003, narrow-loads, all."),
    ] = None,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """List what stands out in each kernel, or explain one finding."""
    with _exit_codes(json=json):
        if explain is not None:
            _explain(explain)
        else:
            _list_findings(cache, name, target or [], nvdisasm, json=json, sass=sass)


@app.command()
def compile(
    kernels: Annotated[
        list[str] | None, typer.Argument(metavar="[KERNEL…]", help="Reference kernels; all by default.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", "-t", metavar="GPU", help="GPUs to compile for: sm_75,gfx90a,MI300X …"),
    ] = None,
    out: Out = OUT,
    json: Json = False,
) -> None:
    """Compile the reference kernels for some GPUs, with none of them at hand."""
    with _exit_codes(json=json):
        from artifact_inspector.report.compiled import compiled_document, compiled_table
        from artifact_inspector.report.console import show, write
        from artifact_inspector.report.json import as_text

        rows = _compile(kernels or [], target or DEMO_TARGETS, out)
        if json:
            write(as_text(compiled_document(rows), sys.stdout.encoding), sys.stdout)
        else:
            show(compiled_table(rows, out), sys.stdout)
        _found_refusals(rows)


@app.command()
def demo(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Part of a kernel's name or hash.")
    ] = None,
    out: Out = OUT,
    json: Json = False,
    target: Targets = None,
) -> None:
    """Compile the reference kernels for a T4 and an MI250X, with no GPU, and report on them."""
    with _exit_codes(json=json):
        from artifact_inspector.report.compiled import refusals
        from artifact_inspector.report.console import show

        rows = _compile([], target or DEMO_TARGETS, out)
        _report(out, name, target or [], [], None, [], None, json=json, ir=False, sass=False)
        if any(row.directory is None for row in rows):
            show(refusals(rows), sys.stderr)
        _found_refusals(rows)


def main() -> None:
    """Run the command on the process's arguments."""
    try:
        app(prog_name="inspect-kernel")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _report(
    path: Path | None,
    name: str | None,
    targets: list[str],
    stages: list[str],
    region: str | None,
    on: list[str],
    nvdisasm: Path | None,
    *,
    json: bool,
    ir: bool,
    sass: bool,
) -> None:
    from artifact_inspector.report.console import show, write
    from artifact_inspector.report.selection import choose, narrow, parse_stages, parse_targets

    wanted, only, others = parse_targets(targets), parse_stages(stages), parse_targets(on)
    cache = _open(path)
    chosen = choose(cache, name, wanted, only)
    disassemble = _disassembler(chosen, nvdisasm) if sass or nvdisasm is not None else None
    kernels = _inspect(cache, chosen, disassemble)
    if region is not None and len(kernels) != 1:
        raise UsageError(f"--region is for one kernel, {len(kernels)} fit.", "Give a NAME that fits one.")
    kernels = [narrow(kernel, only, region) for kernel in kernels]
    if ir:
        _list_region(kernels, disassemble, json=json)
    elif json:
        from artifact_inspector.report.json import as_text, cache_document

        write(as_text(cache_document(cache, kernels, others=others), sys.stdout.encoding), sys.stdout)
    elif len(kernels) == 1 and (name is not None or region is not None):
        from artifact_inspector.report.story import KernelReport

        show(KernelReport(cache, kernels[0], others, one_region=region is not None), sys.stdout)
    else:
        from artifact_inspector.report.text import CacheReport

        show(CacheReport(cache, kernels, narrowed=name is not None, others=others), sys.stdout)
    if kernels or cache.problems:
        _refuse_unreadable(kernels)


def _open(path: Path | None) -> Cache:
    from artifact_inspector.cache import open_cache

    try:
        return open_cache(path)
    except CacheError as error:
        if path is not None:
            raise
        remedy = "Run a Triton kernel first, name a cache directory, or try `inspect-kernel demo`."
        raise CacheError(error.message, remedy) from None


def _list_findings(
    path: Path | None,
    name: str | None,
    targets: list[str],
    nvdisasm: Path | None,
    *,
    json: bool,
    sass: bool,
) -> None:
    from artifact_inspector.report.console import show, write
    from artifact_inspector.report.findings import FindingsReport, findings_document
    from artifact_inspector.report.json import as_text
    from artifact_inspector.report.selection import choose, parse_targets

    cache = _open(path)
    chosen = choose(cache, name, parse_targets(targets))
    disassemble = _disassembler(chosen, nvdisasm) if sass or nvdisasm is not None else None
    kernels = _inspect(cache, chosen, disassemble)
    if json:
        write(as_text(findings_document(kernels), sys.stdout.encoding), sys.stdout)
    else:
        show(FindingsReport(kernels), sys.stdout)
    if kernels or cache.problems:
        _refuse_unreadable(kernels)


def _explain(word: str) -> None:
    from artifact_inspector.report.console import show
    from artifact_inspector.report.findings import RulePages, pick_rules

    show(RulePages(pick_rules(word)), sys.stdout)


def _disassembler(chosen: Sequence[Artifact], path: Path | None) -> Disassemble:
    """What makes text of a binary; without a tool it says, for each binary, that there is none."""
    from artifact_inspector.disassembly import disassemble, find_disassembler, keep_all
    from artifact_inspector.objdump import disassemble_hsaco, find_objdump
    from artifact_inspector.report.progress import progress_bar

    tool = find_disassembler(path)
    cubins = [artifact.files["cubin"] for artifact in chosen if "cubin" in artifact.files]
    if tool is not None and len(cubins) > 1:
        with progress_bar(len(cubins), "disassembling") as advance:
            keep_all(cubins, tool, progress=lambda cubin: advance(cubin.stem))
    objdump = find_objdump()
    return lambda suffix, binary: (
        disassemble(binary, tool) if suffix == "cubin" else disassemble_hsaco(binary, objdump)
    )


def _inspect(
    cache: Cache, chosen: tuple[Artifact, ...], disassemble: Disassemble | None
) -> list[KernelFacts]:
    from artifact_inspector.inspection import inspect_cache
    from artifact_inspector.report.progress import progress_bar

    with progress_bar(len(chosen), "reading") as advance:
        return list(
            inspect_cache(
                cache,
                chosen,
                progress=lambda artifact: advance(artifact.display_name),
                disassemble=disassemble,
            )
        )


def _list_region(kernels: list[KernelFacts], disassemble: Disassemble | None, *, json: bool) -> None:
    from artifact_inspector.inspection import read_module, read_source
    from artifact_inspector.report.console import show, write
    from artifact_inspector.report.json import as_text, listing_document
    from artifact_inspector.report.listing import Listing, list_lines
    from artifact_inspector.report.selection import pick_stage

    if len(kernels) != 1:
        raise UsageError(f"--ir prints one kernel, {len(kernels)} fit.", "Give a NAME that fits one.")
    kernel = kernels[0]
    facts = pick_stage(kernel)
    source = read_source(kernel.artifact, facts.stage, [], disassemble)
    module = read_module(kernel.artifact, facts.stage, [], disassemble)
    found = facts.region(kernel.principal or "") or next(iter(facts.regions), None)
    if source is None or module is None or found is None:
        raise CacheError(f"{facts.file} holds no region that can be printed.")
    work = facts.work.get(found.id)
    levels = {} if work is None else dict(work.in_flight.levels)
    lines = list_lines(source, module, found, levels)
    if json:
        write(as_text(listing_document(kernel, facts, found.id, lines), sys.stdout.encoding), sys.stdout)
    else:
        show(Listing(facts, found, lines), sys.stdout)


def _refuse_unreadable(kernels: list[KernelFacts]) -> None:
    if not any(k.stages or k.artifact.metadata or k.resources.registers.value for k in kernels):
        raise typer.Exit(UNREADABLE)


def _compile(names: list[str], targets: list[str], out: Path) -> Sequence[CompileResult]:
    from artifact_inspector.compiling import REFERENCE_KERNELS, compile_reference
    from artifact_inspector.report.progress import progress_bar
    from artifact_inspector.report.selection import parse_targets

    wanted = parse_targets(targets)
    with progress_bar(len(names or REFERENCE_KERNELS) * len(wanted), "compiling") as advance:
        return compile_reference(
            names,
            [str(one) for one in wanted],
            out,
            progress=lambda row: advance(f"{row.kernel} {row.target}"),
        )


def _found_refusals(rows: Sequence[CompileResult]) -> None:
    if any(row.directory is None for row in rows):
        raise typer.Exit(FOUND)


@contextmanager
def _exit_codes(*, json: bool) -> Iterator[None]:
    """Errors as sentences on standard error and exit codes, in this one place."""
    try:
        yield
    except InspectorError as error:
        if json and isinstance(error, CacheError):
            from artifact_inspector.cache import Problem
            from artifact_inspector.report.json import as_text, cache_document

            nothing = cache_document(None, (), [Problem(".", error.message)])
            typer.echo(as_text(nothing, "ascii"), nl=False)
        _fail(error)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:
        # the reader of a pipe went away; Windows says EINVAL
        if error.errno not in (errno.EPIPE, errno.EINVAL):
            _fail(CacheError(f"The report could not be written: {error.strerror or error}."))
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def _fail(error: InspectorError) -> NoReturn:
    from artifact_inspector.report.console import write

    code = {UsageError: USAGE, CompileError: FOUND}.get(type(error), UNREADABLE)
    try:
        write(
            f"inspect-kernel: {error.message}\n" + (f"{error.remedy}\n" if error.remedy else ""), sys.stderr
        )
    finally:
        raise typer.Exit(code) from None
