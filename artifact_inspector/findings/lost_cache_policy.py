"""The machine code does not have a requested cache modifier or eviction policy.

The instructions of the access use the default policy.

**When it is reported.** An access of the tensor-level IR has a `cacheModifier` or `evictionPolicy`, its instructions
at the last stage are known, and none of them has it. Loads with the same result share one finding, and so do stores.
Not reported are loads that a pipelined loop copies to shared memory, because Triton sets no policy for its
asynchronous copies, and `evict_last` on AMD, whose instructions have no bit for it.

**What it is likely to cost.** The cache treats the data like any other: a stream may evict data that is reused. On
AMD, Triton passes on cache modifiers, but not eviction policies.

**What to do.** Remove the request, which has no effect here, or try another release of Triton.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.access.cache_policies import CachePolicy
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.model import Backend

KEEP_POLICIES = frozenset({"evict_last"})
"""Policies that keep data in a cache. A stream can be requested by a modifier (`.cs`) too, these cannot."""


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    first, last = next(iter(kernel.stages), None), kernel.last
    groups: dict[tuple[bool, tuple[str, ...]], list[CachePolicy]] = {}
    target = kernel.artifact.target
    on_amd = target is not None and target.backend is Backend.HIP
    for policy in kernel.policies:
        is_unavoidable = policy.is_copied or (on_amd and set(policy.lost) <= KEEP_POLICIES)
        if policy.lost and not is_unavoidable:
            groups.setdefault((policy.is_store, policy.applied), []).append(policy)
    if last is None:
        return
    reason = ". For AMD, Triton passes on cache modifiers, but not eviction policies" if on_amd else ""
    for (is_store, applied), group in groups.items():
        lost = sorted({", ".join(policy.lost) for policy in group})
        noun = "store" if is_store else "load"
        subject = f"a {noun} requests" if len(group) == 1 else f"{len(group)} {noun}s request"
        has_lines = all(policy.lines for policy in group)
        lines = [line for policy in group for line in (policy.lines if has_lines else (policy.line,))]
        sources = dict.fromkeys(policy.source for policy in group if policy.source is not None)
        yield Remark(
            f"{subject} {' or '.join(lost)}, but {'its' if len(group) == 1 else 'their'} instructions in "
            f"{last.stage.value} have {', '.join(applied) or 'no cache policy'}{reason}",
            last.stage if has_lines else first,
            tuple(lines),
            tuple(sources),
        )


RULE = Rule("AI011", "lost-cache-policy", Severity.NOTE, Consequence.OTHER, _look, __doc__)
