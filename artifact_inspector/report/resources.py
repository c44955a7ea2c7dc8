"""Registers, spills, shared memory and occupancy of a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model.location import base_name
from artifact_inspector.report.words import join_words, plural

if TYPE_CHECKING:
    from artifact_inspector.passes.elsewhere import Elsewhere


def describe_resources(
    kernel: KernelFacts, others: Sequence[Target], elsewhere: Sequence[Elsewhere] = ()
) -> Iterator[tuple[str, str]]:
    """Registers, spills, scratch and occupancy as (label, sentence).

    Args:
        others: further targets to report the occupancy on.
        elsewhere: the kernel compiled for some of them.
    """
    compiled = {made.target: made for made in elsewhere}
    taken = kernel.resources
    if taken.registers.value is None:
        remedy = "; --assemble runs Triton's ptxas" if "ptx" in kernel.artifact.files else ""
        yield "registers", f"unknown: {taken.registers.source}{remedy}"
    else:
        parts = [f"{taken.registers.value} per thread"]
        apart = (taken.vector_registers.value, taken.accumulation_registers.value)
        if apart[1]:
            parts.append(f"{apart[0]} VGPRs and {apart[1]} AccVGPRs")
        if taken.scalar_registers.value is not None:
            parts.append(f"{taken.scalar_registers.value} scalar per wave")
        here = "; assembled from the PTX on this machine" if kernel.artifact.is_assembled else ""
        yield "registers", f"{', '.join(parts)} ({taken.registers.source}{here})"
    spills = [
        f"{figure.value} B {what} per thread"
        for figure, what in ((taken.spill_bytes, "stored"), (taken.reload_bytes, "read back"))
        if figure.value
    ]
    if taken.scalar_spills.value:
        spills.append(f"{taken.scalar_spills.value} scalar registers spilled to vector registers")
    if spills:
        yield "spills", f"{', '.join(spills)} ({taken.spill_bytes.source})"
    elif taken.registers.value is not None and taken.spill_bytes.value == 0:
        yield "spills", "none"
    if taken.scratch_bytes.value:
        yield "scratch", f"{taken.scratch_bytes.value} B per thread ({taken.scratch_bytes.source})"
    own = kernel.artifact.target
    for target in (*([] if own is None else [own]), *others):
        text = occupancy_text(kernel.occupancy_on(target))
        if target == own:
            yield "occupancy", text
        else:
            made = compiled.get(target)
            yield f"occupancy {target}", _if_it_held(kernel, target, text, made)
            if made is not None and made.occupancy is not None:
                yield f"compiled {target}", _as_compiled(made)
    for found in kernel.contradictions:
        yield "contradiction", f"{found.sentence} ({found.places[0]}; {found.places[1]})"


def _if_it_held(kernel: KernelFacts, target: Target, text: str, made: Elsewhere | None) -> str:
    """The occupancy of this binary on another target, and how to compile the kernel for it."""
    held = "" if text.startswith("unknown") else "with this binary's registers and shared memory: "
    if made is not None and made.occupancy is not None:
        return held + text
    place = None if kernel.program is None else kernel.program.place
    file = "FILE.py" if place is None else base_name(place.file)
    command = f"inspect-kernel compile {file}:{kernel.artifact.display_name} --target {target}"
    why = "" if made is None else f"; compiling its TTIR for {target} failed: {made.message}"
    return f"{held}{text}{why}; for its own numbers: `{command}`"


def _as_compiled(made: Elsewhere) -> str:
    """The occupancy and resources of the kernel compiled for another target."""
    assert made.occupancy is not None
    assert made.resources is not None
    taken, spilled = made.resources, made.resources.spill_bytes.value
    figures = [
        f"{figure.value} {unit}"
        for figure, unit in ((taken.registers, "registers"), (taken.shared, "B shared"))
        if figure.value is not None
    ]
    figures += [f"{spilled} B spilled per thread"] if spilled else []
    return f"{occupancy_text(made.occupancy)}; {', '.join(figures)} (by Triton {made.triton})"


def occupancy_text(held: Occupancy) -> str:
    """`5 blocks, 20 of 64 warps per SM, limited by registers (other limits: warps 16)`."""
    if held.blocks is None:
        return f"unknown (needs {', '.join(held.missing)})"
    if held.blocks == 0:
        return f"no block fits, limited by {join_words(held.limited_by)}"
    rest = ", ".join(f"{name} {most}" for name, most in held.allowed.items() if name not in held.limited_by)
    others = f" (other limits: {rest})" if rest else ""
    return (
        f"{held.blocks} {plural('block', held.blocks)}, {held.warps} of {held.warps_at_most} warps per "
        f"{held.unit}, limited by {join_words(held.limited_by)}{others}"
    )


def registers_text(kernel: KernelFacts) -> str:
    """For a table: `95`, `64+380 B` with spills; empty if unknown."""
    taken = kernel.resources
    if taken.registers.value is None:
        return ""
    spilled = taken.spill_bytes.value
    return f"{taken.registers.value}+{spilled} B" if spilled else str(taken.registers.value)
