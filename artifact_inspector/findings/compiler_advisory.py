"""The compiler itself says that something costs time.

ptxas tells of a performance loss that it cannot avoid, or of an option that it ignored; MLIR warns.
Its own words are the finding.

**When it is said.** The file of remarks that `inspect-kernel compile` keeps beside the kernel holds a
warning, or an advisory of ptxas with a code: `(C7510)` and its neighbours when `wgmma` are serialised.
What ptxas says of spills is AI007's.

**What it is likely to cost.** What the message says. Serialised `wgmma` run one at a time: the tensor cores
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
