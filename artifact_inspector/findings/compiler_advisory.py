"""The compiler reports a performance problem.

ptxas reports a performance loss that it cannot avoid, or an option that it ignored; MLIR warns. The
finding quotes the message.

**When it is reported.** The remarks that `inspect-kernel compile` keeps beside the kernel hold a warning,
or a ptxas advisory with a code such as `(C7510)` for serialised `wgmma`. Spills that ptxas reports are in
AI007.

**What it is likely to cost.** See the message. Serialised `wgmma` run one at a time: the tensor cores
wait for registers or for the instructions between them.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.model import RemarkKind, Stage


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    for said in kernel.remarks or ():
        is_advice = said.kind is RemarkKind.ADVISORY and said.code is not None
        if said.kind is not RemarkKind.WARNING and not is_advice:
            continue
        code = "" if said.code is None else f" ({said.code})"
        times = "" if said.count == 1 else f", {said.count} times"
        sources = (*([said.source] if said.source is not None else []), *said.called_from)
        yield Remark(
            f"{said.tool}{code}: {said.message}{times}",
            None if said.ptx_line is None else Stage.PTX,
            () if said.ptx_line is None else (said.ptx_line,),
            sources,
        )


RULE = Rule("AI015", "compiler-advisory", Severity.WARNING, Consequence.MATRIX, _look, __doc__)
