"""Launches run on paper: which compiled kernel each is of, and what it will do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from artifact_inspector.compiling.ask.manifest import read_launches, read_manifest
from artifact_inspector.compiling.ask.running import capture_program
from artifact_inspector.compiling.reference import REFERENCE_KERNELS
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.execution.loading import load_kernel
from artifact_inspector.execution.naming import fit_launch
from artifact_inspector.execution.prediction import Prediction, predict
from artifact_inspector.execution.requests import Request, parse_document, parse_grid
from artifact_inspector.execution.running import run_launch
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.selection import Which, choose
from artifact_inspector.files.cache import Artifact, Cache, open_cache
from artifact_inspector.hardware.targets import Target, parse_target


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
        UsageError: only other forms of the kernel were launched, and no grid is given.
    """
    extents = None if grid is None else parse_grid(grid)
    found = written
    if found is None and (extents is None or not arguments):
        found = recorded_launches(cache, name, targets, grid=extents is not None, every=every)
    if not found and written is None and extents is not None:
        return (Request(extents, arguments),)
    return tuple(
        Request(extents or one.grid, {**one.arguments, **arguments}, one.hash, one.notes)
        for one in found or ()
    )


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
    rows = [
        row
        for row in read_launches(cache.root)
        if name is None or name in str(row.get("kernel")) or str(row.get("hash", "")).startswith(name)
    ]
    if rows:
        rows = _rows_of(rows, {entry.hash for entry in choose(cache, name, targets)}, grid=grid, every=every)
    else:
        rows = _workload(cache, name, targets)
    return parse_document(json.dumps({"launches": rows}), "the record") if rows else ()


def _rows_of(
    rows: list[dict[str, Any]], chosen: set[str], *, grid: bool, every: bool
) -> list[dict[str, Any]]:
    """The launches of the chosen kernels, by hash, or those of their siblings, whose grid is another."""
    own = [row for row in rows if row.get("hash") is None or row["hash"] in chosen]
    if grid and (not own or (every and not chosen <= {row.get("hash") for row in own})):
        alike = {json.dumps(row.get("args"), sort_keys=True): {**row, "hash": None} for row in own or rows}
        return list(alike.values())
    if not own:
        raise UsageError(
            "The launches on record are of other forms of this kernel: "
            + ", ".join(
                f"{row['kernel']} {row['hash'][:6]} for {row.get('target')}, grid {_extents(row.get('grid'))}"
                for row in rows[:4]
            )
            + ".",
            "Their arguments serve this one too; give its grid: --grid 'cdiv(M,BLOCK_M),cdiv(N,BLOCK_N)'.",
        )
    return own


def _extents(grid: object) -> str:
    return ",".join(map(str, grid)) if isinstance(grid, list) else "unknown"


def _workload(cache: Cache, name: str | None, targets: Sequence[Which | Target] = ()) -> list[dict[str, Any]]:
    """The launch of a reference kernel's own workload, where the name is of one that was compiled there."""
    rows = list(read_manifest(cache.root))
    if targets:
        wanted = {entry.directory for entry in choose(cache, None, targets)}
        rows = [row for row in rows if row.get("directory") in wanted]
    own = {str(row.get("place")): str(row.get("target")) for row in rows}
    places = [place for place in own if place in REFERENCE_KERNELS and (name is None or name in place)]
    if name in places:  # it begins the name of another, too
        places = [name]
    if len(places) != 1:
        return []
    (place,) = places
    with TemporaryDirectory(prefix="inspect-kernel-") as made:
        # the entry in the cache is the one that is meant, whatever this one's hash
        return [{**row, "hash": None} for row in _run_workload(place, own[place], ({},), Path(made))[:1]]


def _run_workload(
    place: str, target: str, configs: Sequence[Mapping[str, Any]], made: Path
) -> list[dict[str, Any]]:
    """The launches of a reference kernel's workload in some configurations, compiled into a directory."""
    # what a release of Triton warns of is nothing that the reader of a prediction asked for
    program = f"""
import warnings; warnings.simplefilter("ignore")
from {REFERENCE_KERNELS[place]} import workload
own = workload()
for config in {[dict(config) for config in configs]!r}:
    try:
        own.launch(**config)
    except Exception as error:
        print(config, error)
"""
    capture_program(["python", "-c", program], [target], made)
    return list(read_launches(made))


def try_workload(
    entry: Artifact, tries: Mapping[str, Sequence[str]], out: Path
) -> list[tuple[Artifact, Request]]:
    """A reference kernel compiled in other configurations, each with the launch of its workload.

    The grid of each is what the workload launches. What does not compile, or cannot be launched, is left out.

    Args:
        entry: in a directory that `compile` filled.
        tries: constant or option → values.
        out: the cache directory to compile into.

    Raises:
        UsageError: none is left.
    """
    place = workload_of(entry)
    assert place is not None
    assert entry.target is not None
    read = {name: [int(text) if text.isdigit() else text for text in texts] for name, texts in tries.items()}
    configs = [dict(zip(read, values, strict=True)) for values in product(*read.values())]
    rows = _run_workload(place, str(entry.target), configs, out)
    if not rows:
        raise UsageError(f"None of them compiles as the workload of {place} launches it.")
    requests = parse_document(json.dumps({"launches": rows}), "the record")
    return pair_launches(open_cache(out), None, (), requests)


def workload_of(entry: Artifact) -> str | None:
    """The name of the reference kernel that an entry was compiled of; None where it is of another."""
    place = _record_of(entry).get("place")
    return place if place in REFERENCE_KERNELS else None


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
    found = []
    for entry, request in pairs:
        progress(entry)
        loaded = load_kernel(entry, disassemble)
        loaded, launch = fit_launch(loaded, request, constants_of(entry))
        wave = _wave(entry, disassemble, gpu, ctas_per_wave)
        run = run_launch(loaded, launch, limit=steps, footprints=wave is not None)
        found.append(predict(run, _cache_bytes(entry, gpu), wave))
    return found


def constants_of(entry: Artifact) -> dict[str, Any]:
    """What the kernel was compiled with, where the directory that it lies in has a record of it."""
    constants = _record_of(entry).get("constants")
    return dict(constants) if isinstance(constants, dict) else {}


def _record_of(entry: Artifact) -> Mapping[str, Any]:
    """The row of the record beside an entry, where there is one."""
    path = next(iter(entry.files.values()))
    if isinstance(path, Path):
        for row in read_manifest(path.parent.parent):
            if row.get("directory") == path.parent.name:
                return row
    return {}


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
    if product is None or occupancy is None or not occupancy.blocks:
        return None
    blocks, count = occupancy.blocks, product.multiprocessors
    return blocks * count, f"{blocks} on each of {count} SMs of {product.name}"


def _cache_bytes(entry: Artifact, gpu: str | None) -> int | None:
    """Bytes of the second-level cache of the product named, else of the one that stands for the target."""
    target = entry.target if gpu is None else parse_target(gpu)
    product = None if target is None else target.gpu.product
    return None if product is None else product.l2_mib << 20
