"""Simulated launches: the compiled kernel of each, and the prediction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from artifact_inspector.api.workloads import is_reference, run_workload
from artifact_inspector.compiling.ask.manifest import read_launches
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.execution.loading import load_kernel
from artifact_inspector.execution.naming import fit_launch
from artifact_inspector.execution.prediction import Prediction, predict
from artifact_inspector.execution.requests import OPTIONS, Request, parse_document, parse_grid
from artifact_inspector.execution.running import run_launch
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.selection import Which, choose
from artifact_inspector.files.cache import Artifact, Cache
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.hardware.targets import Target, parse_target
from artifact_inspector.model import Backend


def asked_launches(
    cache: Cache,
    name: str | None,
    targets: Sequence[Which | Target],
    grid: str | None,
    arguments: Mapping[str, Any],
    *,
    every: bool = False,
    written: Sequence[Request] | None = None,
) -> tuple[Request, ...]:
    """The requested launches; none if there is no grid.

    A grid with arguments makes one launch. A grid or arguments only change the launches of `written`, or the
    recorded ones.

    Args:
        cache: opened cache.
        name: part of a kernel's name or hash.
        targets: selectors of kernels; empty for any.
        grid: as typed.
        arguments: by name.
        every: a grid only applies to all variants of the recorded kernels.
        written: launches that replace the recorded ones.

    Raises:
        UsageError: only other variants of the kernel were launched and no grid is given, or the recorded
            launches have no such argument.
    """
    extents = None if grid is None else parse_grid(grid)
    found = written
    if found is None and (extents is None or not arguments):
        found = recorded_launches(cache, name, targets, grid=extents is not None, every=every)
    if not found and written is None and extents is not None:
        return (Request(extents, arguments),)
    if written is None:
        _check_names(arguments, found or ())
    return tuple(
        Request(extents or one.grid, {**one.arguments, **arguments}, one.hash, one.notes)
        for one in found or ()
    )


def _check_names(arguments: Mapping[str, Any], found: Sequence[Request]) -> None:
    """Raise a UsageError for an argument that no launch has; launches name all arguments of their kernels."""
    known = [*dict.fromkeys(name for one in found for name in one.arguments), *OPTIONS]
    for name in arguments if found else ():
        if name.partition(".")[0] not in known:
            near = get_close_matches(name, known, 1)
            raise UsageError(
                f"The recorded launches have no argument {name}.",
                f"Did you mean {near[0]}?" if near else f"They have {', '.join(known[: -len(OPTIONS)])}.",
            )


def has_tuned(cache: Cache) -> bool:
    """Whether the cache records launches that an autotuner made only to measure a configuration."""
    return any(row.get("tuning") for row in read_launches(cache.root))


def recorded_launches(
    cache: Cache,
    name: str | None,
    targets: Sequence[Which | Target] = (),
    *,
    grid: bool = False,
    every: bool = False,
) -> tuple[Request, ...]:
    """The recorded launches of the requested kernels, made by a captured or measured program.

    Args:
        cache: opened cache.
        name: part of a kernel's name or hash.
        targets: selectors of kernels; empty for any.
        grid: whether a grid is given, so that the arguments of a launch apply to variants not launched.
        every: apply such arguments to every variant.

    Raises:
        UsageError: only other variants of the kernel were launched, and no grid is given.
    """
    rows = list(read_launches(cache.root))
    if name is not None:
        called = {entry.display_name for entry in choose(cache, name, ())}
        rows = [
            row for row in rows if row.get("kernel") in called or str(row.get("hash", "")).startswith(name)
        ]
    chosen = choose(cache, name, targets)
    if not rows:
        return _workload(chosen)
    rows = _rows_of(rows, {entry.hash for entry in chosen}, grid=grid, every=every)
    return parse_document(json.dumps({"launches": rows}), "the record")


def _workload(chosen: Sequence[Artifact]) -> tuple[Request, ...]:
    """The launch of a reference kernel's workload, if the chosen entries are of one such kernel."""
    own = {entry.place: entry for entry in chosen if is_reference(entry)}
    if len(own) != 1:
        return ()
    (entry,) = own.values()
    with scratch_directory() as made:
        requests, _ = run_workload(entry, Path(made))
    # apply the launch to the entry of the cache, whose hash may differ
    return tuple(replace(one, hash=None) for one in requests[:1])


def _rows_of(
    rows: list[dict[str, Any]], chosen: set[str], *, grid: bool, every: bool
) -> list[dict[str, Any]]:
    """The recorded launches of the chosen kernels by hash, or those of other variants without a hash.

    Launches that an autotuner measured and did not choose count only if `every`, or if there are no others.
    """
    own = [row for row in rows if row.get("hash") is None or row["hash"] in chosen]
    if not every:
        own = [row for row in own if not row.get("tuning")] or own
    if grid and (not own or (every and not chosen <= {row.get("hash") for row in own})):
        alike = {json.dumps(row.get("args"), sort_keys=True): {**row, "hash": None} for row in own or rows}
        return list(alike.values())
    if not own:
        raise UsageError(
            "The recorded launches are of other variants of this kernel: "
            + ", ".join(
                f"{row.get('kernel')} {row.get('hash', '')[:6]} for {row.get('target')}, "
                f"grid {_extents(row.get('grid'))}"
                for row in rows[:4]
            )
            + ".",
            "Their arguments apply here too. Give the grid: --grid 'cdiv(M,BLOCK_M),cdiv(N,BLOCK_N)'.",
        )
    return own


def _extents(grid: object) -> str:
    return ",".join(map(str, grid)) if isinstance(grid, list) else "unknown"


def pair_launches(
    cache: Cache,
    name: str | None,
    targets: Sequence[Which | Target],
    requests: Sequence[Request],
    *,
    every: bool = False,
) -> list[tuple[Artifact, Request]]:
    """Each launch with its compiled kernel.

    Args:
        cache: opened cache.
        name: part of a kernel's name or hash.
        targets: selectors of kernels; empty for any.
        requests: the launches.
        every: pair a launch without a hash with every kernel.

    Raises:
        CacheError: no kernel of the cache has machine code.
        UsageError: no kernel matches a launch, or several match and none is selected.
    """
    chosen = choose(cache, name, targets)
    runnable = [entry for entry in chosen if {"cubin", "sass", "ptx", "amdgcn"} & set(entry.files)]
    if not runnable:
        raise CacheError(
            "No kernel of this cache has machine code.", "Expected a cubin, SASS, PTX or AMDGCN file."
        )
    pairs = []
    for request in requests:
        own = [
            entry
            for entry in runnable
            if request.hash is None or request.hash in entry.hash or request.hash in entry.directory
        ]
        if not own and len(runnable) == 1:
            own = runnable
        if len(own) != 1 and not (every and own and request.hash is None):
            raise UsageError(
                f"A launch{f' of {request.hash}' if request.hash else ''} matches {len(own)} kernels, not 1.",
                "Give a NAME or hash, or write the `hash` of each launch in the launch file: "
                + ", ".join(f"{entry.display_name} {entry.hash[:12]}" for entry in (own or runnable)[:8])
                + ".",
            )
        pairs += [(entry, request) for entry in own]
    return pairs


def predict_launches(
    pairs: Sequence[tuple[Artifact, Request]],
    disassemble: Disassemble | None,
    *,
    gpu: str | None = None,
    steps: int = 50_000_000,
    ctas_per_wave: int | None = None,
    progress: Callable[[Artifact], None] = lambda entry: None,
) -> list[Prediction]:
    """Simulate each launch.

    Args:
        disassemble: disassembles machine code.
        gpu: the product whose L2 size and SM count are used; by default one of the target.
        steps: instructions after which a kernel counts as endless.
        ctas_per_wave: CTAs that run at the same time; by default occupancy × SMs.
        progress: called with each kernel before it is simulated.

    Raises:
        UsageError: the arguments do not fit the kernel.
    """
    places: dict[int, list[int]] = {}
    for place, (entry, _) in enumerate(pairs):
        places.setdefault(id(entry), []).append(place)
    found: dict[int, Prediction] = {}
    for own in places.values():  # read each kernel once, even if it is launched several times
        entry = pairs[own[0]][0]
        loaded = load_kernel(entry, disassemble)
        wave, cache_bytes = _wave(entry, disassemble, gpu, ctas_per_wave), _cache_bytes(entry, gpu)
        for place in own:
            progress(entry)
            fitted, launch = fit_launch(loaded, pairs[place][1], entry.constants)
            run = run_launch(fitted, launch, limit=steps, footprints=wave is not None)
            found[place] = predict(run, cache_bytes, wave)
    return [found[place] for place in range(len(pairs))]


def _wave(
    entry: Artifact, disassemble: Disassemble | None, gpu: str | None, ctas_per_wave: int | None
) -> tuple[int, str] | None:
    """CTAs that run at the same time, and the source of that number."""
    if ctas_per_wave is not None:
        if ctas_per_wave < 1:
            raise UsageError(f"--ctas-per-wave is {ctas_per_wave}.", "Expected 1 or more.")
        return ctas_per_wave, "as given"
    target = entry.target if gpu is None else parse_target(gpu)
    product = None if target is None else target.gpu.product
    occupancy = inspect_artifact(entry, disassemble).occupancy
    if target is None or product is None or occupancy is None or not occupancy.blocks:
        return None
    blocks, count = occupancy.blocks, product.multiprocessors
    units = "CUs" if target.backend is Backend.HIP else "SMs"
    return blocks * count, f"{blocks} on each of {count} {units} of {product.name}"


def _cache_bytes(entry: Artifact, gpu: str | None) -> int | None:
    """Bytes of L2 cache of the named product; without a name, of the default product of the target."""
    target = entry.target if gpu is None else parse_target(gpu)
    product = None if target is None else target.gpu.product
    return None if product is None else product.l2_mib << 20
