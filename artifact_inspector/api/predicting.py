"""Launches run on paper: which compiled kernel each is of, and what it will do."""

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
    """The launches that somebody asks for; none where nothing says what its grid is.

    A grid with arguments is one. Either alone changes those that are written down, or on record.

    Args:
        cache: opened.
        name: part of a kernel's name or hash.
        targets: that are wanted; any where there are none.
        grid: as it is written.
        arguments: by name.
        every: a grid alone is for all forms of the kernels on record.
        written: launches to be taken in place of those on record.

    Raises:
        UsageError: only other forms of the kernel were launched, and no grid is given; or the launches on
            record have no such argument.
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
    """Refuse an argument that none of the launches has, which name all that their kernels take."""
    known = [*dict.fromkeys(name for one in found for name in one.arguments), *OPTIONS]
    for name in arguments if found else ():
        if name.partition(".")[0] not in known:
            near = get_close_matches(name, known, 1)
            raise UsageError(
                f"The launches on record have no argument {name}.",
                f"Did you mean {near[0]}?" if near else f"They have {', '.join(known[: -len(OPTIONS)])}.",
            )


def has_tuned(cache: Cache) -> bool:
    """Whether launches are on record that an autotuner made only to measure a configuration."""
    return any(row.get("tuning") for row in read_launches(cache.root))


def recorded_launches(
    cache: Cache,
    name: str | None,
    targets: Sequence[Which | Target] = (),
    *,
    grid: bool = False,
    every: bool = False,
) -> tuple[Request, ...]:
    """The launches that a captured or measured program made, of the kernels that are asked for.

    Args:
        cache: opened.
        name: part of a kernel's name or hash.
        targets: that are wanted; any where there are none.
        grid: another one is given, so that a launch's arguments serve forms that were not launched.
        every: where they serve, they serve every form.

    Raises:
        UsageError: only other forms of the kernel were launched, and no grid is given.
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
    """The launch of a reference kernel's own workload, where the chosen entries are of one."""
    own = {entry.place: entry for entry in chosen if is_reference(entry)}
    if len(own) != 1:
        return ()
    (entry,) = own.values()
    with scratch_directory() as made:
        requests, _ = run_workload(entry, Path(made))
    # the entry in the cache is the one that is meant, whatever this one's hash
    return tuple(replace(one, hash=None) for one in requests[:1])


def _rows_of(
    rows: list[dict[str, Any]], chosen: set[str], *, grid: bool, every: bool
) -> list[dict[str, Any]]:
    """The launches of the chosen kernels, by hash, or those of their siblings, whose grid is another.

    What an autotuner measured and did not choose is meant where every form is, or no other.
    """
    own = [row for row in rows if row.get("hash") is None or row["hash"] in chosen]
    if not every:
        own = [row for row in own if not row.get("tuning")] or own
    if grid and (not own or (every and not chosen <= {row.get("hash") for row in own})):
        alike = {json.dumps(row.get("args"), sort_keys=True): {**row, "hash": None} for row in own or rows}
        return list(alike.values())
    if not own:
        raise UsageError(
            "The launches on record are of other forms of this kernel: "
            + ", ".join(
                f"{row.get('kernel')} {row.get('hash', '')[:6]} for {row.get('target')}, "
                f"grid {_extents(row.get('grid'))}"
                for row in rows[:4]
            )
            + ".",
            "Their arguments serve this one too; give its grid: --grid 'cdiv(M,BLOCK_M),cdiv(N,BLOCK_N)'.",
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
    """Each launch with the compiled kernel that it is of.

    Args:
        cache: opened.
        name: part of a kernel's name or hash.
        targets: that are wanted; any where there are none.
        requests: the launches.
        every: a launch that names no hash is one of each kernel that it fits.

    Raises:
        CacheError: no kernel here has machine code.
        UsageError: no kernel fits a launch, or several do and nothing says which.
    """
    chosen = choose(cache, name, targets)
    runnable = [entry for entry in chosen if {"cubin", "sass", "ptx", "amdgcn"} & set(entry.files)]
    if not runnable:
        raise CacheError("No kernel here has machine code.", "It takes a cubin, SASS, PTX or AMDGCN.")
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
                f"{len(own)} kernels here fit a launch{f' of {request.hash}' if request.hash else ''}.",
                "Name one by its name or a part of its hash, or give each launch its `hash`: "
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
    """Each launch run on paper.

    Args:
        disassemble: makes machine code readable.
        gpu: the product whose second-level cache and multiprocessors count; by default one of the target.
        steps: after which a kernel counts as endless.
        ctas_per_wave: that run side by side; by default the occupancy on all multiprocessors.
        progress: is told of each kernel beforehand.

    Raises:
        UsageError: arguments that do not fit the kernel.
    """
    places: dict[int, list[int]] = {}
    for place, (entry, _) in enumerate(pairs):
        places.setdefault(id(entry), []).append(place)
    found: dict[int, Prediction] = {}
    for own in places.values():  # each kernel is read once, however often it is launched
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
    """CTAs that run side by side, and whence that is known."""
    if ctas_per_wave is not None:
        if ctas_per_wave < 1:
            raise UsageError("--ctas-per-wave must be 1 or more.")
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
    """Bytes of the second-level cache of the product named, else of the one that stands for the target."""
    target = entry.target if gpu is None else parse_target(gpu)
    product = None if target is None else target.gpu.product
    return None if product is None else product.l2_mib << 20
