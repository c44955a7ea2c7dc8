"""The compiler reports a performance problem.

ptxas reports a performance loss that it cannot avoid, or an option that it ignored; MLIR warns. The finding quotes the
message.

**When it is reported.** The remarks that `inspect-kernel compile` keeps beside the kernel hold a warning, or a ptxas
advisory with a code such as `(C7510)` for serialised `wgmma`. Spills that ptxas reports are in AI007.

**What it is likely to cost.** See the message. Serialised `wgmma` run one at a time: the tensor cores wait for
registers or for the instructions between them.

**What to do.** Follow the message. For serialised `wgmma`, use fewer registers (a smaller tile, more warps), and do
not touch the accumulator between two products.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.model import RemarkKind, Stage


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    for remark in kernel.remarks or ():
        is_advice = remark.kind is RemarkKind.ADVISORY and remark.code is not None
        if remark.kind is not RemarkKind.WARNING and not is_advice:
            continue
        code = "" if remark.code is None else f" ({remark.code})"
        times = "" if remark.count == 1 else f", {remark.count} times"
        sources = (*([remark.source] if remark.source is not None else []), *remark.called_from)
        yield Remark(
            f"{remark.tool}{code}: {remark.message}{times}",
            None if remark.ptx_line is None else Stage.PTX,
            () if remark.ptx_line is None else (remark.ptx_line,),
            sources,
        )


RULE = Rule("AI015", "compiler-advisory", Severity.WARNING, Consequence.MATRIX, _look, __doc__)
