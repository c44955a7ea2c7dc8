"""Simulated launches: the compiled kernel of each, and the prediction."""

from __future__ import annotations

import json
import posixpath
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from artifact_inspector.analysis.overlap.partitions import PartitionFacts
from artifact_inspector.api.workloads import is_reference, kept_workload
from artifact_inspector.comparison.matching import Candidate, have_equal_work
from artifact_inspector.compiling.ask.manifest import read_launches_below
from artifact_inspector.diagnosis.diagnose import bound_of, microseconds_of
from artifact_inspector.diagnosis.launch_model import LaunchModel, model_launch
from artifact_inspector.diagnosis.memory_causes import find_repeated_work, launch_cycles, serial_cycles
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.interpreter.budget import current_budget
from artifact_inspector.execution.kernel_loader import load_kernel, parameter_names
from artifact_inspector.execution.launch_requests import COMPILER_OPTIONS, LaunchRequest, parse_grid, parse_recorded
from artifact_inspector.execution.prediction import Prediction, predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.dram_traffic import fetched_bytes
from artifact_inspector.execution.timing.launch_time import TIME_RANGE, LaunchTime, find_bounds
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.selection import KernelFilter, select_kernels
from artifact_inspector.files.cache import Artifact, Cache
from artifact_inspector.files.reader import read_binary
from artifact_inspector.hardware.gpu import Product
from artifact_inspector.hardware.products import product_of
from artifact_inspector.hardware.targets import Target, parse_target
from artifact_inspector.hardware.timing import BOUNDS
from artifact_inspector.model import Backend


def find_launches(
    cache: Cache,
    name: str | None,
    targets: Sequence[KernelFilter | Target],
    grid: str | None,
    arguments: Mapping[str, Any],
    *,
    all_variants: bool = False,
    given_launches: Sequence[LaunchRequest] | None = None,
) -> tuple[LaunchRequest, ...]:
    """The requested launches; none if there is no grid.

    A grid with arguments makes one launch. A grid or arguments only change the launches of `given_launches`, or the
    recorded ones.

    Args:
        all_variants: a grid only applies to all variants of the recorded kernels.
        given_launches: launches that replace the recorded ones.

    Raises:
        UsageError: only other variants of the kernel were launched and no grid is given, or the recorded
            launches have no such argument.
    """
    extents = None if grid is None else parse_grid(grid)
    launches = given_launches
    if launches is None and (extents is None or not arguments):
        launches = recorded_launches(cache, name, targets, has_grid=extents is not None, all_variants=all_variants)
    if not launches and given_launches is None and extents is not None:
        return (LaunchRequest(extents, arguments),)
    if given_launches is None:
        _check_names(arguments, launches or ())
    return tuple(
        replace(
            launch,
            grid=extents or launch.grid,
            arguments={**launch.arguments, **arguments},
            inherited_names=launch.inherited_names - arguments.keys(),
        )
        for launch in launches or ()
    )


def _check_names(arguments: Mapping[str, Any], launches: Sequence[LaunchRequest]) -> None:
    """Raise a UsageError for an argument that no launch has; launches name all arguments of their kernels."""
    names = [*dict.fromkeys(name for launch in launches for name in launch.arguments), *COMPILER_OPTIONS]
    for name in arguments if launches else ():
        if name.partition(".")[0] not in names:
            near_names = get_close_matches(name, names, 1)
            raise UsageError(
                f"The recorded launches have no argument {name}.",
                f"Did you mean {near_names[0]}?"
                if near_names
                else f"They have {', '.join(names[: -len(COMPILER_OPTIONS)])}.",
            )


def has_tuning_launches(cache: Cache, name: str | None, targets: Sequence[KernelFilter | Target]) -> bool:
    """Whether the cache records launches of these kernels that an autotuner made only to measure a configuration."""
    names = {entry.display_name for entry in select_kernels(cache, name, targets)}
    return any(row.get("tuning") and row.get("kernel") in names for row, _ in _all_launches(cache))


def recorded_launches(
    cache: Cache,
    name: str | None,
    targets: Sequence[KernelFilter | Target] = (),
    *,
    has_grid: bool = False,
    all_variants: bool = False,
) -> tuple[LaunchRequest, ...]:
    """The recorded launches of the requested kernels, made by a captured or measured program.

    Args:
        has_grid: whether a grid is given, so that the arguments of a launch apply to variants not launched.
        all_variants: apply such arguments to every variant.

    Raises:
        UsageError: only other variants of the kernel were launched, and no grid is given.
    """
    rows = [{**row, "root": root} for row, root in _all_launches(cache)]
    if name is not None:
        kernel_names = {entry.display_name for entry in select_kernels(cache, name, ())}
        rows = [row for row in rows if row.get("kernel") in kernel_names or str(row.get("hash", "")).startswith(name)]
    artifacts = select_kernels(cache, name, targets)
    if not rows:
        return _workload_launch(artifacts)
    names = _launch_names(cache)
    hashes = {names[entry.directory] for entry in artifacts}
    if all_variants and not has_grid:
        rows += _launch_others(rows, artifacts, names)
    rows, is_inherited = _select_rows(rows, hashes, has_grid=has_grid, all_variants=all_variants)
    requests = tuple(
        request
        for root in dict.fromkeys(row["root"] for row in rows)
        for request in parse_recorded([row for row in rows if row["root"] == root], root)
    )
    if not is_inherited:
        return requests
    return tuple(replace(request, inherited_names=frozenset(request.arguments)) for request in requests)


def _launch_names(cache: Cache) -> dict[str, str]:
    """Directory of an entry → its name in a launch: its hash, or the directory if several caches have the hash."""
    places = {(entry.hash, posixpath.dirname(entry.directory)) for entry in cache.entries}
    counts = Counter(digest for digest, _ in places)
    return {entry.directory: entry.hash if counts[entry.hash] == 1 else entry.directory for entry in cache.entries}


def _all_launches(cache: Cache) -> list[tuple[dict[str, Any], Path]]:
    """The launches that the cache and the caches below it recorded, with the names of their entries as hashes."""
    names, by_root = _launch_names(cache), dict[Path, dict[str, str]]()
    for entry in cache.entries:
        for root in (cache.root, (cache.root / entry.directory).parent):
            by_root.setdefault(root, {}).setdefault(entry.hash, names[entry.directory])
    return [
        ({**row, "hash": by_root.get(root, {}).get(str(row.get("hash")), row.get("hash"))}, root)
        for row, root in read_launches_below(cache.root, names)
    ]


def _launch_others(
    rows: Sequence[dict[str, Any]], artifacts: Sequence[Artifact], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Launches of kernels without one: those of a kernel of that name whose CTAs do the same work."""
    recorded = {row.get("hash") for row in rows}
    launched = [entry for entry in artifacts if names[entry.directory] in recorded]
    fitted = []
    for entry in artifacts:
        if names[entry.directory] in recorded:
            continue
        same = (x for x in launched if x.display_name == entry.display_name)
        twin = next((x for x in same if have_equal_work(Candidate(x), Candidate(entry))), None)
        twin_name = None if twin is None else names[twin.directory]
        fitted += [{**row, "hash": names[entry.directory]} for row in rows if twin and row.get("hash") == twin_name]
    return fitted


def _workload_launch(artifacts: Sequence[Artifact]) -> tuple[LaunchRequest, ...]:
    """The launch of a reference kernel's workload, if the chosen entries are of one such kernel."""
    reference_entries = {entry.requested_kernel: entry for entry in artifacts if is_reference(entry)}
    if len(reference_entries) != 1:
        return ()
    (entry,) = reference_entries.values()
    # apply the launch to the entry of the cache, whose hash may differ
    return tuple(replace(request, kernel_hash=None) for request in kept_workload(entry)[:1])


def _select_rows(
    rows: list[dict[str, Any]], hashes: set[str], *, has_grid: bool, all_variants: bool
) -> tuple[list[dict[str, Any]], bool]:
    """The recorded launches of the chosen kernels by hash, or those of other variants without a hash.

    Returns:
        The launches, and whether variants that were not launched inherit them.

    Launches that an autotuner measured and did not choose count only if `all_variants`, or if there are no others.
    """
    matching_rows = [row for row in rows if row.get("hash") is None or row["hash"] in hashes]
    if not all_variants:
        matching_rows = [row for row in matching_rows if not row.get("tuning")] or matching_rows
    if has_grid and (not matching_rows or (all_variants and not hashes <= {row.get("hash") for row in matching_rows})):
        rows_by_arguments = {
            json.dumps(row.get("args"), sort_keys=True): {**row, "hash": None} for row in matching_rows or rows
        }
        return list(rows_by_arguments.values()), True
    if not matching_rows:
        raise UsageError(
            "The recorded launches are of other variants of this kernel: "
            + ", ".join(
                f"{row.get('kernel')} {row.get('hash', '')[:6]} for {row.get('target')}, "
                f"grid {','.join(map(str, grid)) if isinstance(grid := row.get('grid'), list) else 'unknown'}"
                for row in rows[:4]
            )
            + ".",
            "Their arguments apply here too. Give the grid: --grid 'cdiv(M,BLOCK_M),cdiv(N,BLOCK_N)'.",
        )
    return matching_rows, False


def pair_launches(
    cache: Cache,
    name: str | None,
    targets: Sequence[KernelFilter | Target],
    requests: Sequence[LaunchRequest],
    *,
    all_variants: bool = False,
) -> list[tuple[Artifact, LaunchRequest]]:
    """Each launch with its compiled kernel.

    Args:
        all_variants: pair a launch without a hash with every kernel.

    Raises:
        CacheError: no kernel of the cache has machine code.
        UsageError: no kernel matches a launch, or several of one target match and none is selected.
    """
    artifacts = select_kernels(cache, name, targets)
    runnable = [entry for entry in artifacts if {"cubin", "sass", "ptx", "amdgcn"} & set(entry.files)]
    if not runnable:
        raise CacheError("No kernel of this cache has machine code.", "Expected a cubin, SASS, PTX or AMDGCN file.")
    names_by_entry: dict[int, frozenset[str]] = {}
    pairs: dict[Any, tuple[Artifact, LaunchRequest]] = {}
    for request in requests:
        matching_entries = _matching_entries(runnable, request.kernel_hash)
        is_shared = request.kernel_hash is None and (all_variants or _differ_by_target(matching_entries))
        if len(matching_entries) != 1 and not (matching_entries and is_shared):
            raise UsageError(
                f"A launch{f' of {request.kernel_hash}' if request.kernel_hash else ''} "
                f"matches {len(matching_entries)} kernels, not 1.",
                "Give a NAME or hash, or write the `hash` of each launch in the launch file: "
                + ", ".join(f"{entry.display_name} {entry.hash[:12]}" for entry in (matching_entries or runnable)[:8])
                + ".",
            )
        for entry in matching_entries:
            fitted_request, key = request, object()
            if request.inherited_names:
                names = names_by_entry.setdefault(id(entry), parameter_names(entry))
                fitted_request = request.fit_variant(names) if names else request
                # launches that differ only by constants of the variants that were launched
                key = (id(entry), request.grid, tuple(fitted_request.arguments.items()))
            pairs.setdefault(key, (entry, fitted_request))
    return list(pairs.values())


def _differ_by_target(entries: Sequence[Artifact]) -> bool:
    """Whether they are one kernel for several targets, so that a launch without a hash is of each."""
    return len({entry.display_name for entry in entries}) == 1 and len({entry.target for entry in entries}) == len(
        entries
    )


def _matching_entries(entries: Sequence[Artifact], kernel_hash: str | None) -> Sequence[Artifact]:
    """The compiled kernels that a launch may be of; the first if the cache holds one binary several times."""
    if kernel_hash is None:
        return entries
    matches = [entry for entry in entries if entry.hash == kernel_hash] or [
        entry for entry in entries if kernel_hash in entry.hash or kernel_hash in entry.directory
    ]
    if len({entry.hash for entry in matches}) == 1 < len(matches) and _have_equal_files(matches):
        return matches[:1]
    return matches or (entries if len(entries) == 1 else ())


def _have_equal_files(entries: Sequence[Artifact]) -> bool:
    """Whether entries have the same machine code."""
    try:
        return len({read_binary(entry) for entry in entries}) == 1 and read_binary(entries[0]) is not None
    except CacheError:
        return False


def predict_launches(
    pairs: Sequence[tuple[Artifact, LaunchRequest]],
    disassemble: Disassemble | None,
    *,
    gpu: str | None = None,
    steps: int = 50_000_000,
    ctas_per_wave: int | None = None,
    progress: Callable[[Artifact], None] = lambda entry: None,
    simulated: list[int] | None = None,
) -> list[Prediction]:
    """Simulate each launch; only some, if a budget of `limit_simulation` is spent.

    Args:
        gpu: the product whose L2 size and SM count are used; by default one of the target.
        steps: instructions after which a kernel counts as endless.
        ctas_per_wave: CTAs that run at the same time; by default occupancy × SMs.
        simulated: receives the indices of the launches that were simulated, in order.

    Raises:
        UsageError: the arguments do not fit the kernel.
    """
    indices_by_entry: dict[int, list[int]] = {}
    for index, (entry, _) in enumerate(pairs):
        indices_by_entry.setdefault(id(entry), []).append(index)
    predictions: dict[int, Prediction] = {}
    budget = current_budget()
    for indices in indices_by_entry.values():  # read each kernel once, even if it is launched several times
        if predictions and budget is not None and budget.is_spent():
            break
        entry = pairs[indices[0]][0]
        loaded_kernel = load_kernel(entry, disassemble)
        target = entry.target if gpu is None else parse_target(gpu)
        product = None if target is None else product_of(target, gpu)
        wave = _wave_size(entry, disassemble, target, product, ctas_per_wave)
        cache_bytes = None if product is None else product.l2_mib << 20
        multiprocessors, l2_caches = (None, 1) if product is None else (product.multiprocessors, product.l2_caches)
        for index in indices:
            if predictions and budget is not None and budget.is_spent():
                break
            progress(entry)
            fitted_kernel, launch = match_launch(loaded_kernel, pairs[index][1], entry.constants)
            run = simulate_launch(fitted_kernel, launch, limit=steps, footprints=wave is not None, l2_bytes=cache_bytes)
            prediction = predict_counters(
                run, cache_bytes, wave, multiprocessors, l2_caches=l2_caches, timed_gpu=gpu, limit=steps
            )
            has_serial_atomics = prediction.time is not None and prediction.counters.global_atomic_instructions
            partitions: Sequence[PartitionFacts] = ()
            if prediction.has_matrix_products and not prediction.is_amd:
                partitions = inspect_artifact(entry, None, lambda kernel: kernel.partitions).partitions
            may_repeat = sum(bool(partition.matrix) for partition in partitions) > 1
            if prediction.is_amd or has_serial_atomics or may_repeat:
                candidate = RankingCandidate(entry, pairs[index][1], entry.constants)
                needs_time = prediction.is_amd or has_serial_atomics
                traffic: Callable[..., Mapping[str, float]] = fetched_bytes if needs_time else lambda *_, **__: {}
                model = model_launch(candidate, disassemble, gpu=gpu, limit=steps, fetched=traffic)
                time = prediction.time
                if prediction.is_amd and time is None:
                    time = modelled_time(model)
                elif time is not None and has_serial_atomics:
                    time = with_serial_atomics(time, model)
                repeated = tuple(one.reason for one in find_repeated_work(model)) if may_repeat else ()
                notes = (*prediction.notes, *(f"{reason[0].upper()}{reason[1:]}." for reason in repeated))
                prediction = replace(prediction, time=time, repeats_work=bool(repeated), notes=notes)
            predictions[index] = prediction
    if simulated is not None:
        simulated += sorted(predictions)
    return [predictions[index] for index in sorted(predictions)]


def modelled_time(model: LaunchModel) -> LaunchTime | None:
    """The time of an AMD launch by the model of a diagnosis, from documented rates; None if times are not predicted."""
    us, time, sample = microseconds_of(model), model.launch_time, model.sample
    if us is None or time is None or model.cycles is None:
        return None
    (cycles, busy_cycles), net_us = launch_cycles(model, time), us - time.gpu.timing.launch_us
    terms = {name: round(net_us * busy / cycles, 2) for name, busy in busy_cycles.items()}
    waves = -(-sample.launch.ctas // (time.resident_ctas * time.gpu.multiprocessors))
    low, high = (round(us * share, 2) for share in TIME_RANGE)
    amounts: dict[str, Any] = {"us": round(us, 2), "low": low, "high": high, "terms": terms, "waves": waves}
    amounts["bound"] = bound_of(model)
    return LaunchTime(**amounts, gpu=time.gpu.name, imbalance=1.0, overlap=None, is_validated=False)


def with_serial_atomics(time: LaunchTime, model: LaunchModel) -> LaunchTime:
    """The time of a launch whose atomics on one address may take longer than everything else."""
    alone, added = serial_cycles(model)
    if (timed := model.launch_time) is None or not max(alone, added):
        return time
    start, cycles = timed.gpu.timing.launch_us, launch_cycles(model, timed)[0]
    per_cycle = (timed.microseconds(model.sample, cycles) - start) / cycles
    terms = {**time.terms, "atomics": round(max(alone, added) * per_cycle, 2)}
    longer = max(alone * per_cycle + start, time.us + added * per_cycle) / time.us
    is_bound = find_bounds(terms, timed.gpu.timing, longer * time.us)[0] == "atomics"
    low, us, high = (round(longer * value, 2) for value in (time.low, time.us, time.high))
    return replace(time, low=low, us=us, high=high, terms=terms, bound=BOUNDS["atomics"] if is_bound else time.bound)


def _wave_size(
    entry: Artifact,
    disassemble: Disassemble | None,
    target: Target | None,
    product: Product | None,
    ctas_per_wave: int | None,
) -> tuple[int, str] | None:
    """CTAs that run at the same time, and the source of that number."""
    if ctas_per_wave is not None:
        if ctas_per_wave < 1:
            raise UsageError(f"--ctas-per-wave is {ctas_per_wave}.", "Expected 1 or more.")
        return ctas_per_wave, "as given"
    occupancy = inspect_artifact(entry, disassemble, lambda kernel: kernel.occupancy).occupancy
    if target is None or product is None or occupancy is None or not occupancy.blocks:
        return None
    blocks, count = occupancy.blocks, product.multiprocessors
    units = "CUs" if target.backend is Backend.HIP else "SMs"
    return blocks * count, f"{blocks} on each of {count} {units} of {product.name}"
