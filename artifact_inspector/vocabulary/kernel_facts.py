"""Facts of a kernel as a whole: what a block takes of a multiprocessor."""

from __future__ import annotations

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model import Consequence
from artifact_inspector.vocabulary.fact import (
    Absent,
    Category,
    Direction,
    FactColumn,
    Subject,
    Unit,
    Value,
    kernel_fact,
)


def threads_of(kernel: KernelFacts) -> int | None:
    """Threads of a CTA; None for a warp-specialised kernel, whose partitions do different things."""
    warps, target = kernel.resources.warps_per_block.value, kernel.artifact.target
    return None if warps is None or target is None or kernel.partitions else warps * target.warp_size


def no_consequence(_left: Value, _right: Value) -> Consequence:
    """For facts that restate the blocks that fit."""
    return Consequence.OTHER


@kernel_fact(
    "shared.taken", "shared memory", Unit.BYTES_PER_BLOCK, category=Category.SHARED,
    direction=Direction.LESS_IS_BETTER, is_row=False, record="shared_bytes",
)  # fmt: skip
def declared_shared(of: Subject) -> int | None:
    """Shared memory that the binary or the machine code declares."""
    return of.kernel.resources.shared.value


@kernel_fact(
    "shared", "shared memory", Unit.BYTES_PER_BLOCK, category=Category.SHARED,
    direction=Direction.LESS_IS_BETTER, column=FactColumn("shared", "shared", "B per CTA", 0), brief="shared",
)  # fmt: skip
def shared(of: Subject) -> int | None:
    """Shared memory: as declared, else by the metadata."""
    declared = of.kernel.resources.shared.value
    return of.kernel.artifact.shared_bytes if declared is None else declared


@kernel_fact(
    "shared.{}", "  {}", Unit.BYTES_PER_BLOCK, category=Category.SHARED, direction=Direction.LESS_IS_BETTER,
    reading="most at once, by what it is for", step="ttgir",
)  # fmt: skip
def shared_by_purpose(of: Subject) -> dict[str, int | None]:
    """Purpose → most shared memory that its allocations take at once."""
    entries = () if of.kernel.bill is None else of.kernel.bill.entries
    is_known = all(entry.bytes is not None for entry in entries)
    return {
        role: max(
            sum(x.bytes or 0 for x in entries if x.role == role and x.first <= start.first <= x.last)
            for start in entries
            if start.role == role
        )
        if is_known
        else None
        for role in dict.fromkeys(entry.role for entry in entries)
    }


@kernel_fact(
    "registers", "registers", Unit.PER_THREAD, category=Category.REGISTERS,
    direction=Direction.LESS_IS_BETTER, column=FactColumn("registers", "regs", "per thread", 1),
    record="registers", brief="registers",
)  # fmt: skip
def registers(of: Subject) -> int | None:
    """Registers that a thread is given."""
    return of.kernel.resources.registers.value


@kernel_fact(
    "registers.accumulation", "  AccVGPRs of them", Unit.PER_THREAD, category=Category.REGISTERS,
    reading="registers that only matrix instructions and moves reach",
)  # fmt: skip
def accumulation_registers(of: Subject) -> int | Absent:
    """AMD's accumulation registers."""
    return of.kernel.resources.accumulation_registers.value or Absent.ABSENT


@kernel_fact(
    "spills", "spilled", Unit.BYTES_PER_THREAD, category=Category.SPILLS, direction=Direction.LESS_IS_BETTER,
    reading="what did not fit into registers and lives in memory",
    column=FactColumn("spills", "spills", "B per thread", 2), record="spill_bytes", brief="spilled",
)  # fmt: skip
def spills(of: Subject) -> int | None:
    """Bytes that did not fit into registers."""
    return of.kernel.resources.spill_bytes.value


@kernel_fact(
    "occupancy",
    "blocks that fit",
    Unit.PER_MULTIPROCESSOR,
    category=Category.OCCUPANCY,
    direction=Direction.MORE_IS_BETTER,
    column=FactColumn("occupancy", "blocks", "that fit on an SM or CU", 7),
    record="blocks_per_sm",
    brief="blocks",
    costs=lambda left, right: Consequence.FIT if 0 in (left, right) and left != right else Consequence.OCCUPANCY,
)
def blocks(of: Subject) -> int | Absent | None:
    """Blocks that fit on one multiprocessor."""
    occupancy = of.kernel.occupancy
    return Absent.ABSENT if occupancy is None else occupancy.blocks


@kernel_fact(
    "occupancy.warps", "warps that fit", Unit.PER_MULTIPROCESSOR, category=Category.OCCUPANCY,
    direction=Direction.MORE_IS_BETTER, is_row=False, record="warps_per_sm",
)  # fmt: skip
def warps(of: Subject) -> int | None:
    """Warps that fit on one multiprocessor."""
    return None if of.kernel.occupancy is None else of.kernel.occupancy.warps


@kernel_fact(
    "occupancy.threads",
    "threads that fit",
    Unit.PER_MULTIPROCESSOR,
    category=Category.OCCUPANCY,
    direction=Direction.MORE_IS_BETTER,
    costs=no_consequence,
)
def threads(of: Subject) -> int | Absent | None:
    """Threads that fit on one multiprocessor."""
    occupancy, target = of.kernel.occupancy, of.kernel.artifact.target
    if occupancy is None:
        return Absent.ABSENT
    return None if occupancy.warps is None else occupancy.warps * (32 if target is None else target.warp_size)


@kernel_fact(
    "occupancy.share", "occupancy", Unit.PERCENT, category=Category.OCCUPANCY,
    direction=Direction.MORE_IS_BETTER, reading="warps that fit, of the most that the GPU can hold",
)  # fmt: skip
def occupancy_share(of: Subject) -> float | Absent | None:
    """Warps that fit as a share of the most that a multiprocessor can hold; compares GPUs of two vendors."""
    occupancy = of.kernel.occupancy
    if occupancy is None:
        return Absent.ABSENT
    return None if occupancy.ratio is None else round(100 * occupancy.ratio, 1)


@kernel_fact("occupancy.limit", "limited by", category=Category.OCCUPANCY, costs=no_consequence)
def occupancy_limit(of: Subject) -> tuple[str, ...] | Absent | None:
    """Resources that limit the blocks that fit."""
    occupancy = of.kernel.occupancy
    if occupancy is None:
        return Absent.ABSENT
    return None if occupancy.blocks is None else tuple(map(str, occupancy.limited_by))


@kernel_fact("partitions.compute", "compute partitions", category=Category.MMA, costs=lambda *_: Consequence.MATRIX)
def compute_partitions(of: Subject) -> int | Absent:
    """Partitions with matrix instructions."""
    partitions = of.kernel.partitions
    return sum(partition.matrix > 0 for partition in partitions) if partitions else Absent.ABSENT
