"""Facts about findings: which rules report something of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from artifact_inspector.facts.kept_diagnosis import diagnosis_of
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import Artifact
from artifact_inspector.findings import find_findings
from artifact_inspector.findings.limit import find_first
from artifact_inspector.vocabulary.fact import Category, Direction, Subject, kernel_fact

FROM_REGISTERS = frozenset({"AI007", "AI008"})
"""Findings that need the registers: spills, and occupancy that they limit."""


def describe_limit(kernels: Sequence[KernelFacts]) -> str | None:
    """The first kernel with what limits it, as a sentence; None if neither a finding nor `advise` says what."""
    if not kernels:
        return None
    artifact, first, diagnosis = kernels[0].artifact, find_first(find_findings(kernels[0])), diagnosis_of(kernels[0])
    texts = ([] if diagnosis is None else [f"{diagnosis.text}, by `advise`"]) + (
        [] if first is None else [first.remark.message]
    )
    if first is not None and first.code == "AI002" and (deeper := _deeper_variant(artifact, kernels)) is not None:
        texts.append(f"{deeper.hash[:8]} is the same kernel with num_stages {deeper.num_stages}")
    return f"{artifact.display_name} {artifact.hash[:8]}: {'; '.join(texts)}" if texts else None


def _deeper_variant(artifact: Artifact, kernels: Sequence[KernelFacts]) -> Artifact | None:
    """The same configuration with more stages."""

    def configuration(one: Artifact) -> tuple[object, ...]:
        return one.display_name, one.target, one.num_warps, dict(one.constants)

    same = [one.artifact for one in kernels if configuration(one.artifact) == configuration(artifact)]
    return next((one for one in same if (one.num_stages or 0) > (artifact.num_stages or 0)), None)


@kernel_fact("findings", "findings", category=Category.FINDINGS, direction=Direction.LESS_IS_BETTER, brief="findings")
def findings(of: Subject) -> tuple[str, ...]:
    """Codes of the findings, without those on registers."""
    return tuple(sorted({finding.code for finding in find_findings(of.kernel)} - FROM_REGISTERS))


@kernel_fact(
    "findings.resources", "findings on registers", category=Category.FINDINGS,
    direction=Direction.LESS_IS_BETTER, brief="findings on registers",
)  # fmt: skip
def findings_on_registers(of: Subject) -> tuple[str, ...] | None:
    """Codes of the findings on registers; None where the registers are unknown."""
    if of.kernel.resources.registers.value is None:
        return None
    return tuple(sorted({finding.code for finding in find_findings(of.kernel)} & FROM_REGISTERS))
