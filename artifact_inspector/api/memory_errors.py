"""Memory errors of launches of compiled kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from artifact_inspector.api.launches import pair_launches, recorded_launches
from artifact_inspector.api.size_proof import prove_sizes
from artifact_inspector.errors import InspectorError, UsageError
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.interpreter.budget import current_budget
from artifact_inspector.execution.kernel_loader import LoadedKernel, load_kernel
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_document_of
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.files.objdump import binary_disassembler
from artifact_inspector.memory_checks.launch_check import check_launch
from artifact_inspector.memory_checks.problems import Check, MemoryProblem, MemoryReport, SizeSearch
from artifact_inspector.memory_checks.size_search import search_sizes


def check_launches(
    pairs: Sequence[tuple[Artifact, LaunchRequest]],
    disassemble: Disassemble | None,
    *,
    steps: int = 50_000_000,
    compares_values: bool = False,
    searches_sizes: bool = False,
    progress: Callable[[Artifact], None] = lambda entry: None,
) -> list[MemoryReport]:
    """The memory errors of each launch; a launch that cannot be simulated is undecided.

    Launches beyond a budget of `limit_simulation` are not simulated.

    Args:
        steps: instructions after which a kernel counts as endless.
        searches_sizes: whether to search other sizes of each launch for one that fails.
        compares_values: whether stores are compared with those of Triton's interpreter, where these were recorded.
    """
    loaded_kernels: dict[int, LoadedKernel] = {}
    reports: list[MemoryReport] = []
    budget = current_budget()
    for entry, request in pairs:
        progress(entry)
        try:
            if reports and budget is not None and budget.is_spent():
                raise UsageError(f"not simulated: {budget.reason}.")
            loaded = loaded_kernels.get(id(entry))
            if loaded is None:
                loaded = loaded_kernels[id(entry)] = load_kernel(entry, disassemble)
            matched, launch = match_launch(loaded, request, entry.constants)
            report = check_launch(matched, launch, steps=steps, compares_values=compares_values)
            if searches_sizes:
                search, problem = search_sizes(matched, launch, entry.constants, steps)
                report = _with_sizes(report, replace(search, proof=prove_sizes(entry, launch)), problem)
            reports.append(report)
        except InspectorError as error:
            target = "unknown" if entry.target is None else entry.target.arch
            reports.append(undecided_report(entry.display_name, target, str(error), entry.hash))
    return [_without_shared_parts(report, pair, reports, pairs) for report, pair in zip(reports, pairs, strict=True)]


def _without_shared_parts(
    report: MemoryReport,
    pair: tuple[Artifact, LaunchRequest],
    reports: Sequence[MemoryReport],
    pairs: Sequence[tuple[Artifact, LaunchRequest]],
) -> MemoryReport:
    """The report without errors of coverage of tensors that the program or other launches of it write, too."""
    partial = {x.tensor for x in report.problems if x.check is Check.COVERAGE}
    created = {name: number for name, number in _created_storages(pair).items() if name in partial}
    if not created:
        return report
    written = {
        number
        for other, of in zip(reports, pairs, strict=True)
        if other.target == report.target and _without_tensors(of) != _without_tensors(pair)
        for name, number in _created_storages(of).items()
        if name in {row.tensor for row in other.coverage}
    }
    arguments = pair[1].arguments
    filled = {name for name in created if isinstance(one := arguments[name], Tensor) and one.is_filled}
    shared = {name for name, number in created.items() if number in written} - filled
    problems = [x for x in report.problems if x.check is not Check.COVERAGE or x.tensor not in shared | filled]
    notes = [f"coverage of {name}: another launch writes to it, too" for name in sorted(shared)]
    notes += [f"coverage of {name}: the program fills a part of it itself" for name in sorted(filled)]
    return replace(report, problems=tuple(problems), notes=(*report.notes, *notes))


def _created_storages(pair: tuple[Artifact, LaunchRequest]) -> dict[str, int]:
    """Tensors of a launch that the program created without values → number of their storage."""
    tensors = {name: value for name, value in pair[1].arguments.items() if isinstance(value, Tensor)}
    return {name: tensor.created for name, tensor in tensors.items() if tensor.created is not None}


def _without_tensors(pair: tuple[Artifact, LaunchRequest]) -> tuple[str, dict[str, object]]:
    """The kernel of a launch, and its numbers that are no constants: the same for each configuration."""
    entry, request = pair
    numbers = {name: value for name, value in request.arguments.items() if name not in entry.constants}
    return entry.display_name, {name: value for name, value in numbers.items() if not isinstance(value, Tensor)}


def check_memory(
    cache: Path | str,
    name: str | None = None,
    launch: Mapping[str, Any] | None = None,
    *,
    values: bool = False,
    sizes: bool = False,
) -> list[MemoryReport]:
    """The memory errors of the recorded launches of a cache, or of the given one.

    Args:
        launch: `{"grid": [x, y, z], "args": {NAME: number or {"shape", "dtype"}}}`.
        values: whether stores are compared with those of Triton's interpreter, where these were recorded.
        sizes: whether to search other sizes of each launch for one that fails.
    """
    opened = open_cache(Path(cache))
    requests = recorded_launches(opened, name) if launch is None else parse_document_of(dict(launch), "the launch")
    pairs = pair_launches(opened, name, (), requests)
    return check_launches(pairs, binary_disassembler(), compares_values=values, searches_sizes=sizes)


def _with_sizes(report: MemoryReport, search: SizeSearch, problem: MemoryProblem | None) -> MemoryReport:
    """The report with the result of a search for sizes, and the error of the smallest launch that fails."""
    known = {(one.check, one.site) for one in report.problems}
    if problem is None or (problem.check, problem.site) in known:
        return replace(report, sizes=search)
    problem = replace(problem, message=f"with {search.smallest_failing}: {problem.message}")
    return replace(report, sizes=search, problems=(*report.problems, problem))


def undecided_report(kernel: str, target: str, reason: str, kernel_hash: str = "") -> MemoryReport:
    """The report on a kernel that could not be simulated at all."""
    return MemoryReport(kernel, kernel_hash, target, (0, 0, 0), (), (reason,), ())


def overall_status(reports: Sequence[MemoryReport]) -> str:
    """`error` if any launch has one, else `undecided` if any could not be decided, else `clean`."""
    statuses = {report.status for report in reports}
    is_undecided = any(report.undecided for report in reports)
    return "error" if "error" in statuses else "undecided" if is_undecided or not reports else "clean"
