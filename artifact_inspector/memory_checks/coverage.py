"""How much of each output is written, and whether no element is written twice."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.global_memory import TensorMemory
from artifact_inspector.execution.launch import KernelLaunch
from artifact_inspector.execution.simulation import SimulatedLaunch
from artifact_inspector.memory_checks.access_log import AccessLog, is_atomic
from artifact_inspector.memory_checks.problems import (
    Check,
    InstructionSite,
    MemoryProblem,
    ProductWork,
    TensorCoverage,
    site_of,
)


def written_bytes(region: TensorMemory) -> int:
    """Distinct bytes of a tensor that are written."""
    return region.count_touched(region.written_marks)[0]


def find_coverage(run: SimulatedLaunch, log: AccessLog, *, is_decided: bool) -> list[TensorCoverage]:
    """The coverage of each tensor that is written.

    Args:
        is_decided: whether all addresses are known.
    """
    rows = []
    for region in run.memory.tensors:
        if region.name not in log.stored_bytes and region.name not in log.updated_tensors:
            continue
        count = written_bytes(region)
        elements = math.prod(region.tensor.shape)
        written = min(count * 8 // region.tensor.bits, elements)
        is_updated = region.name in log.updated_tensors
        is_once: bool | None = log.stored_bytes.get(region.name, 0) == count
        if is_updated or (not is_once and run.counters.out_of_bounds_lanes):
            is_once = None
        tile, remainder = divmod(written, run.launch.ctas)
        # each CTA writes one tile, and tiles divide the tensor
        has_tiles = is_once and is_decided and tile and not remainder and not elements % tile
        tiles, written_tiles = (elements // tile, run.launch.ctas) if has_tiles else (None, None)
        is_once = is_once if is_decided else None
        share = written if is_decided else None
        rows.append(TensorCoverage(region.name, elements, share, is_once, tiles, written_tiles, is_updated))
    return rows


def find_product_work(run: SimulatedLaunch, coverage: list[TensorCoverage]) -> ProductWork | None:
    """Executed and expected work, if matrix instructions ran and the shapes are those of one product.

    The output is the only tensor that is written; K is the extent that two read tensors share.
    """
    flop = sum(
        per_lane * run.counters.threads_executed[step.index]
        for step in run.loaded.program.steps
        if step.kind == "tensor"
        for _, per_lane in step.lane_flop
    )
    regions = {region.name: region for region in run.memory.tensors}
    if len(coverage) != 1 or not flop:
        return None
    *batch, rows, columns = (1, *regions[coverage[0].tensor].tensor.shape)
    inputs = [region.tensor.shape for name, region in regions.items() if name != coverage[0].tensor]
    inputs = [shape for shape in inputs if len(shape) >= 2 and math.prod(shape[:-2]) in (1, math.prod(batch))]
    depths = {
        left[1 - left_axis]
        for (at, first), (other, second) in product(enumerate(inputs), repeat=2)
        for left, right in [(first[-2:], second[-2:])]
        for left_axis, right_axis in product((0, 1), repeat=2)
        if (at != other or len(inputs) == 1)
        and left[left_axis] == rows
        and right[right_axis] == columns
        and left[1 - left_axis] == right[1 - right_axis]
    }
    if len(depths) != 1:
        return None
    return ProductWork(int(flop), 2 * math.prod(batch) * rows * columns * depths.pop())


def describe_work(work: ProductWork) -> str:
    """The work in words."""
    share = work.executed_flop / work.expected_flop
    return f"work: {100 * share:.4g} % of 2·M·N·K ({work.executed_flop:,} of {work.expected_flop:,} FLOP)"


def find_partial_outputs(run: SimulatedLaunch, coverage: list[TensorCoverage]) -> list[MemoryProblem]:
    """Outputs of which a part is not written that no selection explains, as by a wrong grid, stride or mask.

    It is no error if the tensor has values already, or if the kernel reads it: then it updates the tensor in place.
    """
    problems = []
    regions = {region.name: region for region in run.memory.tensors}
    for row in coverage:
        region = regions[row.tensor]
        is_partial = row.written_elements is not None and row.written_elements < row.elements
        if not is_partial or row.is_updated or region.tensor.is_initialized or region.read_marks.any():
            continue
        if row.tensor not in run.launch.tensors:  # several tensors in one storage
            continue
        part = _missing_part(region, run.launch)
        if part is None:
            continue
        remedy = "Check the grid, the strides and the store mask, or pass the part that is written."
        message = describe_coverage(row) + part
        problems.append(MemoryProblem(Check.COVERAGE, message, _store_site(run), row.tensor, suggestion=remedy))
    return problems


def find_uninitialized_reads(run: SimulatedLaunch, log: AccessLog) -> tuple[list[MemoryProblem], list[str]]:
    """Outputs that a kernel reads or updates although nothing has written them; notes on other such tensors.

    It is no error to read an input without values: programs that measure time create them so.
    """
    problems, notes = [], []
    for name, (step, cta, address) in log.first_reads.items():
        region = next(region for region in run.memory.tensors if region.name == name)
        if name not in log.stored_bytes and name not in log.updated_tensors:
            notes.append(f"{name} is read, but was created without values and never written")
            continue
        action = "an atomic updates" if is_atomic(step) else "the kernel reads"
        element = (address - region.start) * 8 // region.tensor.bits
        message = f"{action} element {element:,} of {name}, which was created without values and never written"
        remedy = "Create it with torch.zeros, or write it first."
        site = site_of(step)
        problems.append(
            MemoryProblem(Check.UNINITIALIZED_TENSOR, message, site, name, cta, address=address, suggestion=remedy)
        )
    return problems, notes


def _missing_part(region: TensorMemory, launch: KernelLaunch) -> str | None:
    """Which part of an output is not written, empty for its end; None if the kernel selects what it writes.

    A kernel that selects writes a triangle, a band or blocks on a diagonal. A wrong grid, stride or mask leaves out
    whole indices of a dimension, or leaves gaps in each dimension.
    """
    tensor = region.tensor
    region.split_granules(region.element_bytes)
    if 8 * region.granule_bytes != tensor.bits:
        return ""
    first = (region.start - region.base) // region.granule_bytes
    strides = tuple(map(abs, tensor.strides))  # as in the size of the tensor, so that no mark is outside
    written = as_strided(region.written_marks[first:].view(np.bool_), tensor.shape, strides, writeable=False)
    lines = [np.moveaxis(written, axis, 0) for axis in range(written.ndim)]
    if not any((rows[1:] > rows[:-1]).any() for rows in lines):
        return ""
    indices = [np.asarray(rows.reshape(len(rows), -1).any(axis=1)) for rows in lines]
    if written.ndim == 1 and _is_row_padding(written, launch):
        return None
    if np.count_nonzero(written) == math.prod(int(np.count_nonzero(used)) for used in indices):
        axis = next(axis for axis, used in enumerate(indices) if (used[1:] > used[:-1]).any())
        at = int(np.flatnonzero(~indices[axis])[0])
        return f"; index {at:,} of dimension {axis} is missing"
    runs = [(rows[1:] > rows[:-1]).sum(axis=0) + rows[0] for rows in lines]
    partial = [axis for axis, rows in enumerate(lines) if (rows.any(axis=0) & ~rows.all(axis=0)).any()]
    if all((runs[axis] > 1).any() for axis in partial):
        return "; parts between written ones are missing"
    return None


def _is_row_padding(written: NDArray[np.bool_], launch: KernelLaunch) -> bool:
    """Whether an integer argument is the distance of the rows that are written in a flat tensor."""
    starts = np.flatnonzero(written[1:] & ~written[:-1])
    return len(starts) > 1 and int(starts[1] - starts[0]) in launch.arguments.values()


def describe_coverage(row: TensorCoverage) -> str:
    """The coverage in words: `c: 12.5 % written, 4 of 32 tiles`."""
    if row.written_elements is None:
        return f"{row.tensor}: share written unknown"
    share = row.written_elements / row.elements
    percent = f"{100 * share:.4g}" if share < 0.9999 or share == 1 else "almost 100"
    text = f"{row.tensor}: {percent} % written"
    is_partial = row.written_elements < row.elements
    if is_partial and row.tiles is not None:
        text += f", {row.written_tiles:,} of {row.tiles:,} tiles"
    elif is_partial:
        text += f", {row.elements - row.written_elements:,} of {row.elements:,} elements missing"
    if row.is_updated:
        return f"{text}, by atomics"
    return text + {None: "", True: ", each element once", False: ", some elements more than once"}[row.is_written_once]


def _store_site(run: SimulatedLaunch) -> InstructionSite:
    stores = [step for step in run.loaded.program.steps if step.kind == "global_store"]
    stores = [step for step in stores if run.counters.warps_executed[step.index]] or stores
    return site_of(stores[-1] if stores else run.loaded.program.steps[-1])
