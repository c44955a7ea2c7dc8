"""`inspect-kernel advise`: what takes the time of a launch, by simulation."""

from __future__ import annotations

import re
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._groups import CompileOptions, LaunchOptions, Selection
from artifact_inspector.cli._output import notice, output_to, print_json, print_report, write_line
from artifact_inspector.errors import CompileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from artifact_inspector.api.advice_cluster import AdviceSettings
    from artifact_inspector.cli._launches import LaunchPair
    from artifact_inspector.diagnosis.cause import Diagnosis
    from artifact_inspector.diagnosis.remedy import RemedySearch
    from artifact_inspector.execution.launch_requests import LaunchRequest
    from artifact_inspector.facts.selection import KernelFilter
    from artifact_inspector.files.cache import Artifact, Cache


DEFAULT_TARGETS = ["H100"]
"""The GPU to compile for if none is given."""
_KERNEL_FILE = re.compile(r".+\.py:\w+")
_LEAST_SECONDS = 10.0
"""Seconds of a search, even if the diagnosis took the budget: an answer without a change helps no user."""
_WHOLE_SECONDS = 20.0
"""Processor time for the simulation of all CTAs, as of a comparison; beyond it, the time is that of a sample."""
_LEAST_BUDGET = 0.1
"""Seconds of a search for which nothing is left: it says so."""


@command()
def advise(
    selection: Selection,
    launches: LaunchOptions,
    program: list[str] | None = options.argument(
        "[ARGUMENT]...", "Arguments of a program that launches kernels: -- python train.py --steps 2", None
    ),
    gpu: options.Gpu = None,
    signature: options.Signature = None,
    const: options.Const = None,
    kernel: str | None = options.option(
        "--kernel FILE.py:KERNEL", "Import and edit this file to try changes. A record never imports code.", None
    ),
    budget: str | None = options.option(
        "--budget TIME", "Simulate, and try changes, for this long: 60s, 2m; 0 tries none. Default: 60s.", None
    ),
    scheduler: str | None = options.option(
        "--scheduler ADDRESS", "Simulate on the workers of this Dask scheduler; --budget is then of each launch.", None
    ),
    apply: bool = options.option("--apply", "Write the first patch to the file that the command line names.", False),
    output: options.Output = None,
    json: options.Json = False,
) -> None:
    """Name what takes the time of a launch, by source line, and what helps. No GPU needed."""
    with output_to(output):
        from artifact_inspector.api.advice import diagnose_launches, replace_stale_entry, with_launch_times
        from artifact_inspector.api.advice_cluster import AdviceSettings
        from artifact_inspector.api.remedy_search import PROCESSOR_SHARE, processor_seconds
        from artifact_inspector.cli._budget import parse_duration
        from artifact_inspector.cli._launches import launch_disassembler
        from artifact_inspector.cli._loading import open_cache_or_fail, read_filters
        from artifact_inspector.compiling.ask.process import keep_workers
        from artifact_inspector.diagnosis.remedy import order_by_gain
        from artifact_inspector.execution.interpreter.budget import limit_simulation
        from artifact_inspector.files.scratch import scratch_directory
        from artifact_inspector.hardware.products import modelled_product
        from artifact_inspector.model.limits import SIMULATION_SECONDS
        from artifact_inspector.report.progress import progress_bar

        with scratch_directory() as scratch, keep_workers():
            cache, name, target = selection.cache, selection.name, selection.target
            source, is_fresh = "" if cache is None else str(cache), False
            if _KERNEL_FILE.fullmatch(source):
                compiling = CompileOptions(signature=signature, const=const)
                cache, kernel = _compile_source(source, target, compiling, launches, Path(scratch)), source
                is_fresh = True
            elif cache is not None and not cache.is_dir() and shutil.which(source) is not None:
                words = [source, *filter(None, [name]), *(program or [])]
                cache, name = _capture_program(words, target, Path(scratch)), None
            selectors = read_filters(target, selection.properties)
            gpu = modelled_product(gpu, target)
            opened = open_cache_or_fail(cache)
            steps, nvdisasm = launches.steps, launches.nvdisasm
            seconds = parse_duration(budget or "60s")
            limit_seconds = seconds if budget and seconds else SIMULATION_SECONDS.value
            if scheduler is not None:
                settings = AdviceSettings(gpu, steps, nvdisasm, limit_seconds, seconds, kernel)
                _advise_on_cluster(opened, name, selectors, launches, settings, scheduler, json=json)
                return
            opening = time.monotonic()
            recorded, start = _pair_launches(opened, name, selectors, launches), processor_seconds()
            pairs = recorded
            if kernel is not None and not is_fresh:
                pairs = [replace_stale_entry(pair, kernel, Path(scratch) / "baseline") for pair in pairs]
            disassemble = launch_disassembler(pairs, nvdisasm)
            begin = processor_seconds()
            with progress_bar(len(pairs), "simulating") as advance, limit_simulation(limit_seconds):
                diagnoses = diagnose_launches(
                    pairs, disassemble, gpu=gpu, steps=steps, progress=lambda entry: advance(entry.display_name)
                )
            spent, begin = processor_seconds() - begin, processor_seconds()  # a trial takes about as long
            # a whole launch takes at least as long as its sample
            whole_seconds = min(limit_seconds, _WHOLE_SECONDS) if spent < _WHOLE_SECONDS * len(pairs) else 0.0
            with limit_simulation(whole_seconds, wall=_WHOLE_SECONDS):
                diagnoses = with_launch_times(pairs, diagnoses, disassemble, gpu=gpu, steps=steps)
            # without captures and compiles, which a trial does not repeat
            others = start if cache == selection.cache else 0.0
            with limit_simulation(limit_seconds, wall=max(_LEAST_SECONDS, seconds - (time.monotonic() - opening))):
                searches = _search(
                    pairs[: len(diagnoses)], diagnoses, gpu, steps, nvdisasm, kernel,
                    seconds=seconds - min(seconds / 2, others / PROCESSOR_SHARE),
                    spent=spent, launch_seconds=processor_seconds() - begin, scratch=Path(scratch),
                )  # fmt: skip
            searched = zip(diagnoses, searches, strict=True)
            diagnoses = [order_by_gain(one, search.remedies) if search else one for one, search in searched]
            # a replaced entry without a note has the recorded code
            kept = [old if old[1].notes == new[1].notes else new for old, new in zip(recorded, pairs, strict=True)]
            _keep(kept, diagnoses)
        _print_advice(diagnoses, searches, json=json)
        if apply:
            apply_first_patch(searches, kernel)


def _keep(pairs: Sequence[tuple[Artifact, LaunchRequest]], diagnoses: Sequence[Diagnosis]) -> None:
    """Keep the first cause of each launch for lists; of several launches of a kernel, that of the longest."""
    from artifact_inspector.cli._loading import cached_lookup
    from artifact_inspector.facts.kept_diagnosis import KeptDiagnosis, keep_diagnoses

    longest_last = sorted(zip(pairs, diagnoses, strict=False), key=lambda pair: pair[1].microseconds or 0)
    first_causes = [
        (entry, KeptDiagnosis(first.kind.value, first.share, diagnosis.summary))
        for (entry, _), diagnosis in longest_last
        for first in diagnosis.causes[:1]
        if first.share is not None
    ]
    keep_diagnoses(first_causes, cached_lookup(None).index)


def _print_advice(diagnoses: Sequence[Diagnosis], searches: Sequence[RemedySearch | None], *, json: bool) -> None:
    from artifact_inspector.report.advise import AdviceReport
    from artifact_inspector.report.json.advise import advice_document

    if json:
        print_json(advice_document(diagnoses, searches))
    else:
        print_report(AdviceReport(diagnoses, searches))


def _advise_on_cluster(
    opened: Cache,
    name: str | None,
    selectors: Sequence[KernelFilter],
    launches: LaunchOptions,
    settings: AdviceSettings,
    scheduler: str,
    *,
    json: bool,
) -> None:
    """Print what is known about each launch; first, which launches failed."""
    from artifact_inspector.api.advice_cluster import advise_on_cluster
    from artifact_inspector.cli._exit import UNREADABLE
    from artifact_inspector.cli._launches import requested_pairs
    from artifact_inspector.cli._loading import cached_lookup
    from artifact_inspector.facts.selection import select_kernels
    from artifact_inspector.report.progress import progress_bar

    pairs: list[tuple[Artifact, LaunchRequest | None]]
    if _has_launches(opened, name, selectors, launches):
        pairs = [*requested_pairs(launches, opened, name, selectors)]
    else:
        pairs = [(entry, None) for entry in select_kernels(opened, name, selectors)]
    with progress_bar(len(pairs), "simulating") as advance:
        advice = advise_on_cluster(
            pairs, settings, scheduler, cached_lookup(None).index, lambda entry: advance(entry.display_name)
        )
    problems = [
        f"{entry.display_name} {entry.hash[:12]}: {one.problem}"
        for (entry, _), one in zip(pairs, advice, strict=True)
        if one.diagnosis is None
    ]
    if problems:
        more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
        write_line(f"{len(problems)} of {len(pairs)} launches were not diagnosed: {problems[0]}{more}", sys.stderr)
    diagnosed = [(one.diagnosis, one.search) for one in advice if one.diagnosis is not None]
    _print_advice([diagnosis for diagnosis, _ in diagnosed], [search for _, search in diagnosed], json=json)
    if problems:
        raise SystemExit(UNREADABLE)


def _compile_source(
    source: str, targets: list[str] | None, compiling: CompileOptions, launches: LaunchOptions, out: Path
) -> Path:
    """The cache of a kernel compiled from its file; types that are not given follow from the source and the launch."""
    from artifact_inspector.cli._loading import open_cache_or_fail
    from artifact_inspector.diagnosis.derived_signature import derive_arguments, specialise

    file, _, name = source.rpartition(":")
    if not Path(file).is_file():
        raise UsageError(f"{file} does not exist.", "Give the file of a kernel: kernels.py:matmul.")
    derived = derive_arguments(Path(file).read_text(encoding="utf-8"), name)
    if derived is None or compiling.signature is not None:
        return _compile(source, targets, compiling, out / "compiled")
    const = compiling.const or []
    named = {text.partition("=")[0].strip() for one in const for text in one.split(",")}
    const = [*const, *(f"{one}={value}" for one, value in derived.constants.items() if one not in named)]
    cache = _compile(source, targets, CompileOptions(signature=derived.signature, const=const), out / "compiled")
    ((_, request), *_) = _pair_launches(open_cache_or_fail(cache), None, [], launches)
    signature = specialise(derived.signature, request.arguments)
    assumed = " ".join(f"{one}={value}" for one, value in derived.constants.items())
    notice(f"Assumed {signature}{f' and {assumed}' if assumed else ''}: --signature and --const set them.")
    if signature == derived.signature:
        return cache
    return _compile(source, targets, CompileOptions(signature=signature, const=const), out / "specialised")


def _compile(source: str, targets: list[str] | None, compiling: CompileOptions, cache: Path) -> Path:
    from artifact_inspector.cli._requests import read_requests
    from artifact_inspector.compiling import compile_kernels

    for row in compile_kernels(read_requests([source], compiling), (targets or DEFAULT_TARGETS)[:1], cache):
        if row.directory is None:
            raise (UsageError if row.is_usage_error else CompileError)(
                row.message or f"{source} does not compile.", row.remedy
            )
    return cache


def _capture_program(command: list[str], targets: list[str] | None, out: Path) -> Path:
    """The cache of the kernels that a program would launch."""
    from artifact_inspector.compiling import capture_program

    cache = out / "captured"
    runs = capture_program(command, (targets or DEFAULT_TARGETS)[:1], cache, notice=notice)
    if not any(run.kernels for run in runs):
        raise CompileError(f"{' '.join(command)} launched no kernel.", "Check that it launches a Triton kernel.")
    return cache


def apply_first_patch(searches: Sequence[RemedySearch | None], kernel: str | None) -> None:
    """Write the first edit to the file that the user named."""
    from artifact_inspector.diagnosis.remedy import describe_launch_change

    edits = [text for search in searches if search is not None for text in search.edited_files.values()]
    if kernel is None:
        write_line("No patch to apply: no file was named. Give --kernel FILE.py:KERNEL.", sys.stderr)
        return
    file, name = Path(kernel.rpartition(":")[0]), kernel.rpartition(":")[2]
    if not edits:
        changes = [remedy.change for search in searches if search is not None for remedy in search.remedies]
        reasons = [search.reason for search in searches if search is not None and search.reason]
        problem = reasons[0] if reasons else "no cause has an edit."
        if changes:
            problem = f"{changes[0]} {describe_launch_change(file.read_text(encoding='utf-8'), name, str(file))}"
        write_line(f"No patch to apply: {problem}", sys.stderr)
        return
    file.write_text(edits[0], encoding="utf-8")
    write_line(f"Wrote {file}.", sys.stderr)


def _search(
    pairs: Sequence[LaunchPair],
    diagnoses: Sequence[Diagnosis],
    gpu: str | None,
    steps: int,
    nvdisasm: Path | None,
    kernel: str | None,
    *,
    seconds: float,
    spent: float,
    launch_seconds: float,
    scratch: Path,
) -> list[RemedySearch | None]:
    """The remedies of each launch, which share the budget; `spent`, `launch_seconds`: processor seconds."""
    from artifact_inspector.api.remedy_search import PROCESSOR_SHARE, processor_seconds, search_remedies
    from artifact_inspector.cli._loading import make_disassembler
    from artifact_inspector.report.progress import progress_bar

    if seconds <= 0:
        return [None] * len(pairs)
    searches: list[RemedySearch | None] = []
    begin = processor_seconds()
    with progress_bar(24 * len(pairs), "trying changes") as advance:
        for number, (pair, diagnosis) in enumerate(zip(pairs, diagnoses, strict=True)):
            # importing a library may take one launch longer than its part
            left = seconds - (processor_seconds() - begin) / PROCESSOR_SHARE
            searches.append(
                search_remedies(
                    pair,
                    diagnosis,
                    lambda entries: make_disassembler(entries, nvdisasm, sass=True),
                    scratch / f"tried{number}",
                    gpu=gpu,
                    steps=steps,
                    kernel=kernel,
                    budget=max(_LEAST_BUDGET, min(seconds / len(pairs), left)),
                    spent=spent / len(pairs),
                    launch_seconds=launch_seconds / len(pairs),
                    progress=advance,
                )
            )
    return searches


def _pair_launches(
    opened: Cache, name: str | None, selectors: Sequence[KernelFilter], launches: LaunchOptions
) -> list[LaunchPair]:
    """Each launch with its kernel: given or recorded launches, else assumed ones."""
    from artifact_inspector.api.advice import assume_launches
    from artifact_inspector.cli._launches import requested_pairs

    if _has_launches(opened, name, selectors, launches):
        return requested_pairs(launches, opened, name, selectors)
    return assume_launches(opened, name, selectors)


def _has_launches(opened: Cache, name: str | None, selectors: Sequence[KernelFilter], launches: LaunchOptions) -> bool:
    """Whether launches are given or recorded."""
    from artifact_inspector.api.launches import find_launches

    return not launches.is_recorded or bool(find_launches(opened, name, selectors, None, {}))
