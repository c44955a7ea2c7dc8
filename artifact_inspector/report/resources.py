"""Registers, spills, shared memory and occupancy of a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model.location import base_name
from artifact_inspector.report.phrases import join_words, plural

if TYPE_CHECKING:
    from artifact_inspector.passes.retargeting import RetargetedKernel


def describe_resources(
    kernel: KernelFacts, others: Sequence[Target], elsewhere: Sequence[RetargetedKernel] = ()
) -> Iterator[tuple[str, str]]:
    """Registers, spills, scratch and occupancy as (label, sentence).

    Args:
        others: further targets to report the occupancy on.
        elsewhere: the kernel compiled for some of them.
    """
    compiled_by_target = {compiled_kernel.target: compiled_kernel for compiled_kernel in elsewhere}
    resources = kernel.resources
    if resources.registers.value is None:
        remedy = "; --assemble runs Triton's ptxas" if "ptx" in kernel.artifact.files else ""
        yield "registers", f"unknown: {resources.registers.source}{remedy}"
    else:
        texts = [f"{resources.registers.value} per thread"]
        register_counts = (resources.vector_registers.value, resources.accumulation_registers.value)
        if register_counts[1]:
            texts.append(f"{register_counts[0]} VGPRs and {register_counts[1]} AccVGPRs")
        if resources.scalar_registers.value is not None:
            texts.append(f"{resources.scalar_registers.value} scalar per wave")
        origin = "; assembled from the PTX on this machine" if kernel.artifact.is_assembled else ""
        yield "registers", f"{', '.join(texts)} ({resources.registers.source}{origin})"
    spills = [
        f"{figure.value} B {verb} per thread"
        for figure, verb in ((resources.spill_bytes, "stored"), (resources.reload_bytes, "read back"))
        if figure.value
    ]
    if resources.scalar_spills.value:
        spills.append(f"{resources.scalar_spills.value} scalar registers spilled to vector registers")
    if spills:
        yield "spills", f"{', '.join(spills)} ({resources.spill_bytes.source})"
    elif resources.registers.value is not None and resources.spill_bytes.value == 0:
        yield "spills", "none"
    if resources.scratch_bytes.value:
        yield "scratch", f"{resources.scratch_bytes.value} B per thread ({resources.scratch_bytes.source})"
    own_target = kernel.artifact.target
    for target in (*([] if own_target is None else [own_target]), *others):
        text = occupancy_text(kernel.occupancy_on(target))
        if target == own_target:
            yield "occupancy", text
        else:
            compiled_kernel = compiled_by_target.get(target)
            yield f"occupancy {target}", _describe_other_target(kernel, target, text, compiled_kernel)
            if compiled_kernel is not None and compiled_kernel.occupancy is not None:
                yield f"compiled {target}", _describe_compiled(compiled_kernel)
    for contradiction in kernel.contradictions:
        yield ("contradiction", f"{contradiction.message} ({contradiction.locations[0]}; {contradiction.locations[1]})")


def _describe_other_target(
    kernel: KernelFacts, target: Target, text: str, compiled_kernel: RetargetedKernel | None
) -> str:
    """The occupancy of this binary on another target, and how to compile the kernel for it."""
    lead = "" if text.startswith("unknown") else "with this binary's registers and shared memory: "
    if compiled_kernel is not None and compiled_kernel.occupancy is not None:
        return lead + text
    location = None if kernel.program is None else kernel.program.location
    file = "FILE.py" if location is None else base_name(location.file)
    command = f"inspect-kernel compile {file}:{kernel.artifact.display_name} --target {target}"
    failure = "" if compiled_kernel is None else f"; compiling its TTIR for {target} failed: {compiled_kernel.message}"
    return f"{lead}{text}{failure}; for its own numbers: `{command}`"


def _describe_compiled(compiled_kernel: RetargetedKernel) -> str:
    assert compiled_kernel.occupancy is not None
    assert compiled_kernel.resources is not None
    resources = compiled_kernel.resources
    units = ((resources.registers, "registers"), (resources.shared, "B shared"))
    figures = [f"{figure.value} {unit}" for figure, unit in units if figure.value is not None]
    if resources.spill_bytes.value:
        figures.append(f"{resources.spill_bytes.value} B spilled per thread")
    assumed = f", assuming {' and '.join(compiled_kernel.assumptions)}" if compiled_kernel.assumptions else ""
    origin = f"(by Triton {compiled_kernel.triton}{assumed})"
    return f"{occupancy_text(compiled_kernel.occupancy)}; {', '.join(figures)} {origin}"


def occupancy_text(occupancy: Occupancy) -> str:
    """`5 blocks, 20 of 64 warps per SM, limited by registers (other limits, in blocks: warps 16)`."""
    if occupancy.blocks is None:
        return f"unknown (needs {', '.join(occupancy.missing)})"
    if occupancy.blocks == 0:
        return f"no block fits, limited by {join_words(occupancy.limited_by)}"
    other_limits = ", ".join(
        f"{name} {limit}" for name, limit in occupancy.blocks_by_resource.items() if name not in occupancy.limited_by
    )
    others = f" (other limits, in blocks: {other_limits})" if other_limits else ""
    return (
        f"{occupancy.blocks} {plural('block', occupancy.blocks)}, {occupancy.warps} of {occupancy.max_warps} warps per "
        f"{occupancy.unit}, limited by {join_words(occupancy.limited_by)}{others}"
    )


def registers_text(kernel: KernelFacts) -> str:
    """For a table: `95`, `64+380 B` with spills; empty if unknown."""
    resources = kernel.resources
    if resources.registers.value is None:
        return ""
    spilled = resources.spill_bytes.value
    return f"{resources.registers.value}+{spilled} B" if spilled else str(resources.registers.value)
