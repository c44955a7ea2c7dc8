"""Candidates of a ranking: recorded launches, and launches of configurations compiled for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from artifact_inspector.api.launches import pair_launches
from artifact_inspector.api.workloads import is_reference, run_workload
from artifact_inspector.compiling.ask.request import CompileResult, parse_configs
from artifact_inspector.compiling.untrusted import describe_dropped
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.timing.candidates import DISTINGUISHING_OPTIONS, RankingCandidate, label_candidates
from artifact_inspector.execution.timing.variations import (
    FailedConfiguration,
    check_variations,
    compile_variations,
    recorded_compile,
    request_for_variations,
)
from artifact_inspector.facts.selection import KernelFilter, select_kernels
from artifact_inspector.files.cache import Artifact, Cache, open_cache


class RankingProblem(NamedTuple):
    """Launches to rank, with the candidates that did not compile."""

    candidates: tuple[RankingCandidate, ...]
    failed: tuple[FailedConfiguration, ...] = ()
    """Configurations that do not compile."""
    problem_labels: tuple[str, ...] = ()
    """The ranking problem of each candidate (kernel, target, arguments); empty if all have the same."""
    notes: tuple[str, ...] = ()
    """What was ignored in the launch record."""


def rank_pairs(
    pairs: Sequence[tuple[Artifact, LaunchRequest]], failed: Sequence[FailedConfiguration] = ()
) -> RankingProblem:
    """A ranking problem of compiled kernels, each with a launch."""
    return RankingProblem(
        tuple(RankingCandidate(artifact, request, artifact.constants) for artifact, request in pairs), tuple(failed)
    )


def rank_recorded(pairs: Sequence[tuple[Artifact, LaunchRequest]]) -> RankingProblem:
    """A ranking of recorded launches; kernels or arguments that differ are ranked separately."""
    problem = rank_pairs(pairs)
    kernels: dict[tuple[str, str], dict[tuple[tuple[str, Any], ...], list[int]]] = {}
    for index, candidate in enumerate(problem.candidates):
        argument_sets = kernels.setdefault((candidate.artifact.display_name, str(candidate.artifact.target)), {})
        argument_sets.setdefault(tuple(candidate.request.kernel_arguments(candidate.constants).items()), []).append(
            index
        )
    if sum(map(len, kernels.values())) == 1:
        return problem
    candidates, problem_labels = list(problem.candidates), [""] * len(problem.candidates)
    for (name, target), indices_by_arguments in kernels.items():
        rows = [dict(items) for items in indices_by_arguments]
        differing_names = _differing_names(rows)
        for arguments, indices in zip(rows, indices_by_arguments.values(), strict=True):
            label_parts = [
                name,
                target,
                *(f"{key}={_format_argument(arguments[key])}" for key in differing_names if key in arguments),
            ]
            labels = label_candidates([candidates[index] for index in indices])
            for index, label in zip(indices, labels, strict=True):
                problem_labels[index] = " ".join(label_parts)
                candidates[index] = replace(candidates[index], label=label or candidates[index].artifact.hash[:12])
    return RankingProblem(tuple(candidates), problem_labels=tuple(problem_labels))


def _differing_names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the numbers that differ between sets of arguments; of the tensors if no number differs."""
    names = [name for name in rows[0] if len({row.get(name) for row in rows}) > 1]
    numbers = [name for name in names if not isinstance(rows[0][name], Tensor)]
    return numbers or names


def _format_argument(value: object) -> str:
    if not isinstance(value, Tensor):
        return str(value)
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"


def reference_pairs(
    cache: Cache, name: str | None, filters: Sequence[KernelFilter]
) -> list[tuple[Artifact, LaunchRequest]]:
    """The selected kernels without launches, if all are reference kernels: `rank_variants` runs their workloads."""
    entries = select_kernels(cache, name, filters)
    return [(entry, LaunchRequest((), {})) for entry in entries] if all(map(is_reference, entries)) else []


def rank_variants(
    pairs: Sequence[tuple[Artifact, LaunchRequest]],
    varied: Mapping[str, tuple[str, ...]],
    configs: str | None,
    directory: Path,
    *,
    is_recorded: bool,
    kernel: str | None = None,
    on_planned: Callable[[int], None] = lambda count: None,
    progress: Callable[[CompileResult], None] = lambda result: None,
) -> RankingProblem:
    """A ranking problem of variants of one kernel that are compiled for it.

    Args:
        pairs: the kernel with its launch; exactly one.
        configs: `all`, or how many of the kernel's autotuning configurations; None for its current one.
        kernel: `FILE.py:KERNEL`, the file to import for a kernel that is not part of this package.
        is_recorded: no launch was given; the workload of a reference kernel supplies one per configuration.
        on_planned: called with the number of compiles once it is known.

    Raises:
        UsageError: there are several kernels, the kernel has no such constant, or nothing compiles.
    """
    if configs is not None:
        parse_configs(configs)
    if len({entry.hash for entry, _ in pairs}) != 1:
        raise UsageError(
            "--vary and --configs compile one kernel; several match.", "Give a NAME or hash that fits one."
        )
    base_artifact, request = pairs[0]
    check_variations(base_artifact, varied)
    notes: tuple[str, ...] = ()
    if is_recorded and is_reference(base_artifact):
        remedy = None
        requests, failed = run_workload(base_artifact, directory, varied, configs)
        pairs_to_rank = pair_launches(open_cache(directory), None, (), requests) if requests else []
        pairs_to_rank.sort(key=_configuration)  # processes compiled them, in no certain order
    else:
        request = request_for_variations(request, varied, configs, base_artifact.constants)
        results = compile_variations(
            base_artifact, varied, directory, configs=configs, kernel=kernel, on_planned=on_planned, on_result=progress
        )
        if configs is None and (dropped := recorded_compile(base_artifact).dropped_options):
            notes = (describe_dropped(dropped),)
        entries = {entry.directory: entry for entry in open_cache(directory).entries}
        remedy = next((compile_result.remedy for compile_result in results if compile_result.remedy), None)
        names = dict.fromkeys(
            compile_result.directory.name for compile_result in results if compile_result.directory is not None
        )
        pairs_to_rank = [(entries[name], request) for name in names if name in entries]
        failed = tuple(
            _failed_variant(compile_result, varied) for compile_result in results if compile_result.directory is None
        )
    if not pairs_to_rank:
        raise UsageError(f"None of the configurations compiles{f': {failed[0].message}' if failed else '.'}", remedy)
    return rank_pairs(pairs_to_rank, failed)._replace(notes=notes)


def _configuration(pair: tuple[Artifact, LaunchRequest]) -> list[tuple[str, str]]:
    """The constants and options of a compiled kernel, in an order of numbers: 8 before 16."""
    entry = pair[0]
    values = {**entry.constants, **{name: entry.metadata.get(name) for name in DISTINGUISHING_OPTIONS}}
    return [(name, f"{value!s:>20}") for name, value in values.items()]


def _failed_variant(result: CompileResult, varied: Mapping[str, tuple[str, ...]]) -> FailedConfiguration:
    arguments = {**result.constants, **result.options}
    varied_values = " ".join(f"{name}={arguments[name]}" for name in varied if name in arguments)
    return FailedConfiguration(" ".join(filter(None, (result.config, varied_values))), result.message or "")
