"""Likely performance and correctness problems of a kernel, by a small set of rules in one module each.

A finding states the problem, its location and its cost. The page of its rule explains what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.reading import FAULTS
from artifact_inspector.files.cache import Problem
from artifact_inspector.findings import (
    atomic_by_swaps,
    bank_conflicts,
    clustered_loads,
    compiler_advisory,
    contradiction,
    does_not_fit,
    fma_instead_of_mma,
    lanes_switched_off,
    layout_conversion_in_loop,
    load_past_the_end,
    lost_cache_policy,
    narrow_loads,
    narrow_stores,
    not_pipelined,
    occupancy_limited,
    older_mma_than_target,
    operands_word_by_word,
    pipeline_drained,
    redundant_matrix_work,
    register_spill,
    scalar_spill,
    slow_fp64,
    tail_wave,
    too_many_threads,
    uncoalesced_access,
    waits_in_turn,
    wgmma_serialised,
    widened_dot,
)
from artifact_inspector.findings._price import price
from artifact_inspector.findings._rule import Consequence, Finding, Remark, Rule, Severity, describe_region, find_dots
from artifact_inspector.findings._switch import Switch, SwitchKind

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import Prediction

__all__ = [
    "RULES", "Finding", "Remark", "Rule", "Severity", "Switch", "SwitchKind", "describe_region", "find_dots",
    "find_findings", "find_launch_findings",
]  # fmt: skip

RULES: tuple[Rule, ...] = tuple(
    module.RULE
    for module in (
        clustered_loads, pipeline_drained, not_pipelined, fma_instead_of_mma, older_mma_than_target, narrow_loads,
        register_spill, occupancy_limited, layout_conversion_in_loop, wgmma_serialised, lost_cache_policy,
        contradiction, does_not_fit, redundant_matrix_work, compiler_advisory, bank_conflicts, uncoalesced_access,
        lanes_switched_off, tail_wave, too_many_threads, scalar_spill, waits_in_turn, narrow_stores,
        operands_word_by_word, load_past_the_end, widened_dot, atomic_by_swaps, slow_fp64,
    )
)  # fmt: skip
"""Every rule, by code; a code is never reused."""


def find_findings(kernel: KernelFacts) -> tuple[Finding, ...]:
    """The findings of a kernel, found once: the most important first, warnings before notes."""
    findings_by_rule = ((rule, finding) for rule in RULES for finding in _apply_rule(rule, kernel))
    return kernel.derive("findings", partial(_in_order, findings_by_rule, kernel))


def _apply_rule(rule: Rule, kernel: KernelFacts) -> tuple[Finding, ...]:
    """The findings of one rule. If the rule itself fails, that is a problem of the kernel, and the others still run."""
    try:
        return tuple(rule.find(kernel))
    except FAULTS as fault:
        message = f"{rule.code} {rule.name}: internal error ({type(fault).__name__}: {fault})"
        kernel.report(Problem(kernel.artifact.directory, f"{message}; please report it"))
        return ()


def find_launch_findings(prediction: Prediction) -> tuple[Finding, ...]:
    """The findings of a simulated launch, in the same order."""
    return _in_order((rule, finding) for rule in RULES for finding in rule.find_in_launch(prediction))


def _in_order(findings: Iterable[tuple[Rule, Finding]], kernel: KernelFacts | None = None) -> tuple[Finding, ...]:
    """What fails at launch, then warnings, then notes; the costliest first."""
    ranked = []
    for rule, finding in findings:
        rank, is_note = rule.consequence.rank, finding.severity is not Severity.WARNING
        cost = 0.0 if kernel is None else price(kernel, rule.code)
        ranked.append(((rank > Consequence.LAUNCH.rank, is_note, -cost, rank), finding))
    return tuple(finding for _, finding in sorted(ranked, key=lambda item: item[0]))
