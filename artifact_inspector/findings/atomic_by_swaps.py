"""An atomic became a compare-and-swap loop.

The GPU, or this release of the compiler, has no native instruction for the type, operation or scope of the atomic.
The machine code loads the word, computes, swaps, and repeats until no other thread changed the word in between.

**When it is reported.** The last stage below TTGIR has a compare-and-swap loop that is no loop of the program, and
TTIR has an atomic there that is no `tl.atomic_cas`. It is a note if the line has a native atomic, too: the loops are
for some addresses only then, such as fp16 elements without a neighbour on gfx942. PTX does not show the loops that
ptxas makes, of float16 for example: pass `--sass`.

**What it is likely to cost.** A native atomic is sent and forgotten. Each try of a loop waits for L2 twice. Threads
that update the same word, such as the programs of a split-K product, repeat it in turn.

**What to do.** On NVIDIA GPUs and gfx942, accumulate in fp32 in place of fp16 or bf16, and convert once at the end:
an fp32 sum in global memory is native there. On gfx90a it stays a loop, also with `sem="relaxed"`: LLVM takes the
native one only for memory marked `amdgpu.no.fine.grained.memory`, which Triton does not mark.
Another GPU of the family, or another release of Triton, may have the native atomic: compare them with `inspect-kernel
compile --target` and `--triton`. In place of split-K atomics, write partial sums to a workspace, and add them in a
second kernel.

**Source**: LLVM, "User Guide for AMDGPU Backend", memory model; PTX ISA, `atom` and `red`.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.outline import CAS_LOOPS, SWAPS
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.model import EventKind, RegionKind, Stage


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    last, first = kernel.last, kernel.stages.get(Stage.TTIR)
    count = 0 if last is None else last.counts.get(CAS_LOOPS, 0)
    if last is None or first is None or not count:
        return
    loops = [
        region
        for region in last.regions
        if region.kind is RegionKind.LOOP and region.count(EventKind.ATOMIC) and first.region(region.id) is None
    ]
    lines = [line for loop in loops for line in last.work[loop.id].code_lines if line.kind == _KIND]
    sources = tuple(dict.fromkeys(line.source for line in lines if line.source is not None))
    outside = [line for region in last.regions if region not in loops for line in last.work[region.id].code_lines]
    native = {line.source for line in outside if line.kind == _KIND and last.counts[_KIND] > last.counts.get(SWAPS, 0)}
    loop = "a compare-and-swap loop" if count == 1 else f"{count} compare-and-swap loops"
    target = "" if kernel.artifact.target is None else f" on {kernel.artifact.target}"
    is_beside_native = bool(sources) and native.issuperset(sources)
    if is_beside_native:
        verb = "is" if count == 1 else "are"
        message = f"beside a native atomic{target} there {verb} {loop}: addresses decide which runs"
    else:
        atomics = "an atomic" if len(sources) < 2 else f"{len(sources)} atomics"
        message = (
            f"{atomics} became {loop}{target}. Each try waits for a load and a swap, and repeats when other threads "
            "change the word"
        )
    yield Remark(message, last.stage, tuple(loop.lines[0] for loop in loops), sources, is_beside_native)


_KIND = EventKind.ATOMIC.count_name
RULE = Rule("AI027", "atomic-by-swaps", Severity.WARNING, Consequence.ATOMICS, _look, __doc__)
