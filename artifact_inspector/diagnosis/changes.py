"""Configurations to try against the causes of a launch: one option or constant at a time, the most promising first."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product, zip_longest
from typing import Any

from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.tile_axes import scale_grid
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.launch import evaluate_extent
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.timing.variations import VARIABLE_OPTIONS
from artifact_inspector.facts.modules import read_module
from artifact_inspector.files.cache import Artifact
from artifact_inspector.hardware.gpu import MAX_THREADS_PER_BLOCK
from artifact_inspector.model import Backend, EventKind, Stage

TILE_NAMES = re.compile(r"(BLOCK|TILE)\w*|B[MNK]|BLK\w*", re.IGNORECASE)
"""Names of constants that size tiles. Others may change what the kernel computes."""
_GROUP = re.compile(r"GROUP\w*", re.IGNORECASE)
_QUOTIENT = re.compile(r"cdiv\((\w+),(\w+)\)")
AMD_WARP = 64
OPTIONS = VARIABLE_OPTIONS | {"waves_per_eu", "matrix_instr_nonkdim"}
"""Names that are compiler options; every other name is a constant of the kernel."""
_LEAST_TILE, _MOST_TILE = 16, 8192
_MOST_STAGES = 7
_REGISTER_LIMITS = (128, 64)
"""Registers per thread with which a quarter and half of the threads of a multiprocessor fit (65,536 for 2048)."""
_DEEPER = (CauseKind.DRAINED_PIPELINE, CauseKind.SERIAL_LOOP, CauseKind.DEPENDENT_LOADS)
_SMALLER = (
    CauseKind.IDLE_MULTIPROCESSORS, CauseKind.SPILLS, CauseKind.BANK_CONFLICTS, CauseKind.OCCUPANCY,
    CauseKind.TAIL_WAVE,
)  # fmt: skip
_LARGER = (CauseKind.CTA_LAUNCHES, CauseKind.EXCESS_THREADS, CauseKind.SMALL_TILE, CauseKind.FEW_BYTES, CauseKind.BOUND)

Change = Mapping[str, Any]
"""Option or constant → its new value."""


def constants_of(change: Change) -> dict[str, Any]:
    """The constants of the kernel that change."""
    return {name: value for name, value in change.items() if name not in OPTIONS}


def options_of(change: Change) -> dict[str, Any]:
    """The options of the compiler that change."""
    return {name: value for name, value in change.items() if name in OPTIONS}


def describe_change(change: Change) -> str:
    """`num_stages=4 BLOCK_K=32`."""
    return " ".join(f"{name}={value}" for name, value in change.items())


def propose_changes(
    kinds: Sequence[CauseKind],
    options: Mapping[str, Any],
    constants: Mapping[str, Any],
    warp_size: int,
    tiles: Collection[str] = (),
) -> list[Change]:
    """Changes of a configuration, those that act on its causes first.

    Args:
        kinds: the causes, the first one first.
        options: `num_warps`, `num_stages` of the compiled kernel.
        tiles: constants that size tiles by the kernel's source, whatever their name.

    Example:
        >>> propose_changes([CauseKind.DRAINED_PIPELINE], {"num_stages": 2}, {}, 32)[:2]
        [{'num_stages': 3}, {'num_stages': 4}]
    """
    sized = {name: value for name, value in constants.items() if name in tiles or TILE_NAMES.fullmatch(name)}
    of_amd = {"waves_per_eu": (2, 4), "matrix_instr_nonkdim": (16, 32)} if warp_size == AMD_WARP else {}
    by_kind = [_changes_for(kind, options, sized, warp_size) for kind in kinds]
    constants = {name: value for name, value in constants.items() if type(value) in (int, str)}
    proposals = [
        *({name: "tf32"} for name, value in constants.items() if value == "ieee"),
        # the first of each cause, then the second of each
        *(change for row in zip_longest(*by_kind) for change in row if change is not None),
        *({name: count} for name, counts in of_amd.items() for count in counts if count != options.get(name)),
        *_stages(options, 1),
        *_warps(options, warp_size, (2, 0.5)),
        *_tiles(sized, (2, 0.5)),
        *({name: count} for name in constants if _GROUP.fullmatch(name) for count in (4, 8, 16)),
    ]
    return [
        change
        for number, change in enumerate(proposals)
        if change not in proposals[:number] and not change.items() <= constants.items()
    ]


def can_cluster(artifact: Artifact) -> bool:
    """Whether CTAs in clusters of two can be tried: from sm_90 on, without atomics, which meet in other ways there.

    Nor with barriers of the program: they stay those of one CTA, so that the other one may store before this one reads.
    """
    module, target = read_module(artifact, Stage.TTIR, []), artifact.target
    if module is None or target is None or target.backend is not Backend.CUDA or not 90 <= target.arch.number < 120:
        return False
    instructions = [one for function in module.functions for one in function.instructions]
    return not any(one.kind is EventKind.BARRIER or one.opcode.startswith("tt.atomic") for one in instructions)


def fit_registers(
    change: Change, settings: Mapping[str, Any], tiles: Collection[str], needed: float, most: int, warp_size: int
) -> Change | None:
    """A change with more warps if the tile would not fit into the registers of a thread; None for far too few warps.

    Args:
        needed: registers per thread with the settings; the tile takes them. `most`: registers that a thread may have.

    Example:
        >>> settings = {"BLOCK": 64, "num_warps": 4}
        >>> fit_registers({"BLOCK": 128}, settings, ["BLOCK"], 134, 255, 32)
        {'BLOCK': 128, 'num_warps': 8}
        >>> fit_registers({"num_warps": 1}, settings, ["BLOCK"], 134, 255, 32)
    """
    growth = math.prod(value / settings[name] for name, value in change.items() if name in tiles)
    warps = settings.get("num_warps") or 1
    needed *= growth * warps / change.get("num_warps", warps)
    if needed <= most or (growth <= 1 and needed <= 2 * most):
        return change
    more = int(warps * growth)
    fits = growth > 1 and "num_warps" not in change and more * warp_size <= MAX_THREADS_PER_BLOCK
    return {**change, "num_warps": more} if fits else None


def _changes_for(
    kind: CauseKind, options: Mapping[str, Any], tiles: Mapping[str, Any], warp_size: int
) -> Iterator[Change]:
    if kind in _DEEPER:
        yield from _stages(options, 4)
    if kind is CauseKind.OCCUPANCY:
        yield from _stages(options, 0)
    if kind is CauseKind.SPILLS:  # the same tile with fewer registers per thread
        yield from _warps(options, warp_size, (2,))
    if kind in _SMALLER:
        # idle multiprocessors need several times the CTAs
        for factor in (0.25, 0.5) if kind is CauseKind.IDLE_MULTIPROCESSORS else (0.5, 0.25):
            yield from sorted(_tiles(tiles, (factor,)), key=lambda change: -max(change.values()))
            yield from _warps(options, warp_size, (1 / factor,))
    if kind is CauseKind.OCCUPANCY and warp_size != AMD_WARP:
        yield from ({"maxnreg": count} for count in _REGISTER_LIMITS)
    if kind in _LARGER:
        yield from _tiles(tiles, (2, 4))
        yield from _warps(options, warp_size, (0.5, 0.25))


def _stages(options: Mapping[str, Any], more: int) -> Iterator[Change]:
    stages = options.get("num_stages")
    if isinstance(stages, int):
        fewer = dict.fromkeys((stages - 1, 1)) if stages > 1 else ()
        for count in (*range(stages + 1, min(stages + more, _MOST_STAGES) + 1), *fewer):
            yield {"num_stages": count}


def _warps(options: Mapping[str, Any], warp_size: int, factors: Sequence[float]) -> Iterator[Change]:
    warps = options.get("num_warps")
    if isinstance(warps, int):
        for factor in factors:
            count = int(warps * factor)
            if count >= 1 and count * warp_size <= MAX_THREADS_PER_BLOCK:
                yield {"num_warps": count}


def _tiles(tiles: Mapping[str, Any], factors: Sequence[float]) -> Iterator[Change]:
    for name, value in tiles.items():
        if type(value) is int and value > 0 and value & (value - 1) == 0:
            for factor in factors:
                # a tile of a few rows may have many columns
                scaled = value * (factor**3 if value < _LEAST_TILE and factor > 1 else factor)
                if min(_LEAST_TILE, value) <= scaled <= _MOST_TILE:
                    yield {name: int(scaled)}


def changed_grid(
    request: LaunchRequest, constants: Mapping[str, Any], change: Change, axes: Mapping[str, Sequence[int]] = {}
) -> tuple[int | str, ...] | None:
    """A likely grid of a launch with changed constants; None if nothing explains the recorded one.

    A recorded grid has numbers. Each is compared with quotients of integer arguments and tile constants; those count
    first that divide an argument by a tile of its name (`M` by `BLOCK_M`), each for one dimension. Without a quotient,
    the axes of a tile by the source (`find_tile_axes`) are scaled. The caller has to verify that the launch still
    touches the same bytes.
    """
    changed = {name: value for name, value in change.items() if name in constants}
    if not any(isinstance(value, int) for value in changed.values()):
        return request.grid
    if any(isinstance(extent, str) for extent in request.grid):
        return tuple(request.grid)
    extents: list[int | str] = []
    names = {**_integers(request.arguments), **_integers(constants), **changed}
    used: list[str] = []
    for extent in request.grid:
        explanations = list(_explanations(int(extent), request, constants))
        # a quotient that divides an argument by a tile with its name
        named = [
            text for text in explanations if all(b.lower().endswith(a.lower()) for a, b in _QUOTIENT.findall(text))
        ]
        explanations = named or explanations
        unused = [text for text in explanations if text not in used]
        if unused:
            used.append(unused[0])
            extents.append(evaluate_extent(unused[0], names))
        elif int(extent) == 1:
            extents.append(1)
        elif changed.keys() <= axes.keys():
            return scale_grid([int(one) for one in request.grid], axes, _integers(constants), changed)
        else:
            return None
    return tuple(extents)


def _integers(values: Mapping[str, Any]) -> dict[str, int]:
    return {name: value for name, value in values.items() if type(value) is int}


def _explanations(extent: int, request: LaunchRequest, constants: Mapping[str, Any]) -> Iterator[str]:
    """Expressions over arguments and tile constants whose value is an extent."""
    names = {**_integers(request.arguments), **_integers(constants)}
    tiles = [name for name in _integers(constants) if TILE_NAMES.fullmatch(name)]
    quotients = [f"cdiv({name},{tile})" for name in _integers(request.arguments) for tile in tiles if names[tile] > 0]
    products = [f"{one}*{other}" for one, other in product(quotients, quotients) if one < other]
    for text in (*quotients, *products):
        try:
            if extent > 1 and evaluate_extent(text, names) == extent:
                yield text
        except UsageError:
            continue
