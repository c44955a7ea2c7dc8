"""All checks of one launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from artifact_inspector.execution.kernel_loader import LoadedKernel
from artifact_inspector.execution.launch import TENSOR_SPACING, KernelLaunch, Tensor, place_tensors
from artifact_inspector.execution.simulation import SimulatedLaunch, simulate_launch
from artifact_inspector.memory_checks.access_log import AccessLog
from artifact_inspector.memory_checks.coverage import (
    find_coverage,
    find_partial_outputs,
    find_product_work,
    find_uninitialized_reads,
)
from artifact_inspector.memory_checks.divergence import find_diverged_warps
from artifact_inspector.memory_checks.out_of_bounds import find_misaligned, find_out_of_bounds
from artifact_inspector.memory_checks.problems import MemoryProblem, MemoryReport, site_of
from artifact_inspector.memory_checks.races import find_races, find_suspects, synchronizing_opcode
from artifact_inspector.memory_checks.shared_hazards import check_shared_memory
from artifact_inspector.memory_checks.values import ValueCheck, check_values, known_values

_SPACING = 1 << 38
"""Bytes between tensors: a 32-bit offset that wraps leaves its tensor and reaches no other tensor."""
_MOST_SPREAD = 60
"""Most tensors for which the address space suffices at that spacing."""
_SHARED_KINDS = ("shared", "matrix")


def check_launch(
    loaded: LoadedKernel, launch: KernelLaunch, *, steps: int = 50_000_000, compares_values: bool = False
) -> MemoryReport:
    """The memory errors of a launch.

    Args:
        steps: instructions after which the kernel counts as endless.
        compares_values: whether stores are compared with those of Triton's interpreter.

    Raises:
        UsageError: arguments are missing or wrong.
    """
    if min(launch.grid) == 0:  # Triton launches nothing
        name, notes = loaded.artifact.display_name, ("The grid is empty: nothing runs.",)
        return MemoryReport(name, loaded.artifact.hash, loaded.program.target, launch.grid, (), (), (), notes=notes)
    launch = place_tensors(launch, _spacing_of(launch))
    launch = replace(launch, arguments={name: known_values(value) for name, value in launch.arguments.items()})
    run, log = _run_logged(loaded, launch, steps)
    undecided = [*_describe_unknown(run)]
    if undecided and compares_values:  # floats may decide a branch, too
        arguments = {name: known_values(value, floats=True) for name, value in launch.arguments.items()}
        run, log = _run_logged(loaded, replace(launch, arguments=arguments), steps)
        undecided = [*_describe_unknown(run)]
    problems = [*find_out_of_bounds(run), *find_misaligned(log, run), *find_diverged_warps(run)]
    suspects = find_suspects(run, log)
    if suspects:
        races, unresolved = _compare_ctas(run, suspects, steps)
        problems += races
        undecided += unresolved
    coverage = find_coverage(run, log, is_decided=not undecided)
    partial = find_partial_outputs(run, coverage)
    problems += partial if partial and _ignores_values(run, steps) else []
    is_ordered = synchronizing_opcode(run) is None or log.updated_tensors >= log.first_reads.keys()
    uninitialized, read_notes = find_uninitialized_reads(run, log) if is_ordered and not undecided else ([], [])
    problems += uninitialized
    shared = check_shared_memory(loaded, run.launch)
    values = check_values(loaded, launch, steps) if compares_values else ValueCheck()
    return MemoryReport(
        kernel=loaded.artifact.display_name,
        hash=loaded.artifact.hash,
        target=loaded.program.target,
        grid=launch.grid,
        problems=tuple(_merge_lines([*problems, *shared.problems, *values.problems])),
        # a run that stops has the same reasons in shared memory
        undecided=tuple(dict.fromkeys((*undecided, *(() if run.unfinished else shared.undecided), *values.undecided))),
        coverage=tuple(coverage),
        work=None if undecided else find_product_work(run, coverage),
        values=values.compared,
        notes=(*run.notes, *read_notes, *shared.notes, *values.notes),
    )


def _run_logged(loaded: LoadedKernel, launch: KernelLaunch, steps: int) -> tuple[SimulatedLaunch, AccessLog]:
    log = AccessLog(launch, checks_alignment=loaded.initial_state is None)
    return simulate_launch(loaded, launch, limit=steps, observer=log, counts_requests=False), log


def _ignores_values(run: SimulatedLaunch, steps: int) -> bool:
    """Whether no mask or address of the first and last CTA depends on the values of a tensor."""
    if all(tensor.values is None for tensor in run.launch.tensors.values()):
        return True
    arguments = {
        name: replace(argument, values=None) if isinstance(argument, Tensor) else argument
        for name, argument in run.launch.arguments.items()
    }
    ctas = np.unique([0, run.launch.ctas - 1])
    blank_launch = replace(run.launch, arguments=arguments)
    blank = simulate_launch(run.loaded, blank_launch, limit=steps, ctas=ctas, counts_requests=False)
    return not blank.unfinished and not blank.counters.missing_inputs


def _merge_lines(problems: list[MemoryProblem]) -> list[MemoryProblem]:
    """The errors with those of several instructions of one source line as one."""
    merged: dict[object, MemoryProblem] = {}
    for problem in problems:
        sites = [one and (one.source or one.line, one.called_from) for one in (problem.site, problem.other_site)]
        key = (problem.check, problem.tensor, *sites)
        first = merged.get(key)
        if first is not None and first.lanes is not None and problem.lanes is not None:
            problem = replace(first, lanes=first.lanes + problem.lanes)
        merged[key] = problem if first is None or first.lanes is not None else first
    return list(merged.values())


def _spacing_of(launch: KernelLaunch) -> int:
    """Bytes between the storages of a launch: as far apart as the address space allows, if it gives no addresses."""
    tensors = launch.tensors.values()
    has_room = len(tensors) <= _MOST_SPREAD and all(tensor.bytes < _SPACING // 2 for tensor in tensors)
    return _SPACING if has_room and all(tensor.pointer is None for tensor in tensors) else TENSOR_SPACING


def _compare_ctas(run: SimulatedLaunch, suspects: list[str], steps: int) -> tuple[list[MemoryProblem], list[str]]:
    """Races in some tensors, from a second run that records intervals; and what remains undecided."""
    log = AccessLog(run.launch, suspects, checks_alignment=False)
    second_run = simulate_launch(run.loaded, run.launch, limit=steps, observer=log, counts_requests=False)
    subject = f"races in {', '.join(suspects)}"
    if not log.is_complete:
        return [], [f"{subject}: too many accesses to compare"]
    known_reasons = {reason for end in run.unfinished for reason in end.reasons}
    unresolved = [
        f"{subject}: {reason}"
        for end in second_run.unfinished  # it may end earlier than the first run, by the budget
        for reason in end.reasons
        if reason not in known_reasons
    ]
    races = find_races(run, log)
    opcode = synchronizing_opcode(run) if races else None
    if opcode is None:
        return races, unresolved
    return [], unresolved + [f"{race.site}: {race.message}; {opcode} may order the CTAs" for race in races]


def _describe_unknown(run: SimulatedLaunch) -> Iterator[str]:
    """Why addresses are unknown, or CTAs did not run to their end."""
    steps, names = run.loaded.program.steps, run.input_names
    tensors: list[str] = []
    for end in run.unfinished:
        tensors += [reason for reason in end.reasons if reason.startswith("values of ")]
        is_limit = run.counters.budget is not None and run.counters.budget.reason in end.reasons
        link = ":" if is_limit else ", which depends on"
        yield f"{site_of(end.step)}: {end.ctas:,} CTAs stop here{link} {', '.join(end.reasons)}"
    for index, bits in run.counters.missing_inputs.items():
        if steps[index].kind.startswith(_SHARED_KINDS) or index in run.counters.unknown_pointers:
            continue
        reasons = names.names_in(bits)
        tensors += [reason for reason in reasons if reason.startswith("values of ")]
        yield f"{site_of(steps[index])}: address or mask depends on {', '.join(reasons)}"
    for index, bits in run.counters.unknown_pointers.items():
        yield f"{site_of(steps[index])}: accesses {', '.join(names.names_in(bits))}, whose extent is unknown"
    missing = sorted({reason.removeprefix("values of ") for reason in tensors})
    if missing:
        yield f'give the integers of {", ".join(missing)} in --launch FILE as "values": […]'
