"""A cache modifier or an eviction policy was asked for and is not there at the end.

The instructions that the access became say nothing of it.

**When it is said.** An access of the tensor-level IR has `cacheModifier` or `evictionPolicy` other than the
default, its instructions at the last stage were found, and none bears it.

**What it is likely to cost.** The cache treats the data as any other: a stream that should pass through may
evict what is reused. On AMD, Triton passes cache modifiers on, eviction policies it does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Remark, Rule, Severity


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    first, last = next(iter(kernel.stages), None), kernel.last
    for policy in kernel.policies:
        if last is None or not policy.lost:
            continue
        what = "store" if policy.is_store else "load"
        yield Remark(
            f"a {what} asks for {', '.join(policy.lost)}; what became of it in {last.stage.value} "
            f"says {', '.join(policy.words) or 'nothing'} of caches",
            last.stage if policy.lines else first,
            policy.lines or (policy.line,),
            () if policy.source is None else (policy.source,),
        )


RULE = Rule("AI011", "lost-cache-modifier", Severity.NOTE, _look, __doc__)
