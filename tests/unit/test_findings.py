"""The rules together: a fault of one is told by its name and costs the others nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from saved import saved

from artifact_inspector import findings
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.lazy import with_fields
from artifact_inspector.findings import RULES, Finding, find_findings, limit
from artifact_inspector.findings._rule import Remark, Severity
from artifact_inspector.findings.not_pipelined import UNPIPELINED
from artifact_inspector.model import OrderVerdict, Stage

A_KERNEL = "3.6.0/sm_75/matmul_grouped"


def test_a_rule_that_fails_is_a_named_problem_and_the_others_still_speak(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(_kernel: KernelFacts) -> Iterator[Remark]:
        raise KeyError("nothing here")
        yield

    whole = {finding.code for finding in find_findings(saved(A_KERNEL).facts)}
    assert {"AI003", "AI004"} <= whole
    broken = tuple(replace(rule, look=look) if rule.code == "AI003" else rule for rule in RULES)
    monkeypatch.setattr(findings, "RULES", broken)
    facts = inspect_artifact(saved(A_KERNEL).artifact)
    for _ in range(2):  # told once, however often it is asked
        assert {finding.code for finding in find_findings(facts)} == whole - {"AI003"}
    (problem,) = facts.problems
    assert problem.path == facts.artifact.directory
    assert problem.problem.startswith("AI003 not-pipelined: internal error (KeyError")


def test_every_order_in_which_a_loop_may_load_for_itself_counts_as_not_pipelined() -> None:
    ahead = {OrderVerdict.PIPELINED, OrderVerdict.WARP_SPECIALISED, OrderVerdict.OVERLAPPED}
    nothing = {
        OrderVerdict.UNROLLED,
        OrderVerdict.GONE,
        OrderVerdict.NO_LOADS,
        OrderVerdict.NO_COMPUTE,
        OrderVerdict.UNKNOWN,
    }
    assert set(OrderVerdict) - UNPIPELINED == ahead | nothing | {OrderVerdict.SINGLE}


def test_a_loop_whose_copies_run_ahead_at_any_stage_is_pipelined() -> None:
    kernel = saved(A_KERNEL).facts
    stage = kernel.stages[Stage.TTGIR]
    ahead = tuple(replace(region, verdict=OrderVerdict.PIPELINED, distance=2) for region in stage.regions)
    stages = {**kernel.stages, Stage.TTGIR: with_fields(stage, regions=ahead)}
    assert "AI003" in {finding.code for finding in find_findings(kernel)}
    assert "AI003" not in {finding.code for finding in find_findings(with_fields(kernel, stages=stages))}


def test_a_loop_that_waits_for_all_of_its_wgmma_is_told_by_machine_code_too() -> None:
    kernel = saved("3.6.0/sm_90/tma_warp_specialized").facts
    ptx = kernel.stages[Stage.PTX]
    waits = tuple(wait._replace(op="WARPGROUP.DEPBAR.LE") for wait in ptx.waits)
    work = {
        name: with_fields(found, matrix=tuple(replace(one, op="HGMMA") for one in found.matrix))
        for name, found in ptx.work.items()
    }
    sass = with_fields(ptx, stage=Stage.SASS, waits=waits, work=work)
    told = find_findings(with_fields(kernel, stages={**kernel.stages, Stage.SASS: sass}))
    (said,) = [finding.remark.message for finding in told if finding.code == "AI010"]
    # its accumulator is unused in the loop, and it has three stages: neither is the reason
    assert said.endswith(
        "DEPBAR.LE 0 leaves no wgmma in flight; the partition waits for it before it hands its buffer back"
    )


def test_a_possible_error_is_no_limit_and_a_note_leads_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = saved("3.6.0/sm_80/masked_add").facts
    note, warning = (Finding(code, "n", level, Remark("text", None)) for code, level in _LEVELS)
    monkeypatch.setattr(limit, "find_findings", lambda _: [note, warning])
    assert limit.find_limit(kernel).sentence == "Possible error: text"


_LEVELS = (("AI001", Severity.NOTE), ("AI025", Severity.WARNING))


def test_large_spills_come_before_a_scalar_dot_and_small_ones_after_it() -> None:
    kernel = saved(A_KERNEL).facts
    for stored, codes in ((64000, ["AI007", "AI004", "AI003"]), (512, ["AI004", "AI007", "AI003"])):
        spilled = kernel.resources.spill_bytes._replace(value=stored)
        resources = replace(kernel.resources, spill_bytes=spilled, reload_bytes=spilled)
        assert [finding.code for finding in find_findings(replace(kernel, resources=resources))] == codes


def test_a_serial_loop_with_one_stage_is_named_where_stages_help() -> None:
    def message(name: str) -> list[str]:
        return [one.remark.message for one in find_findings(saved(name).facts) if one.code == "AI003"]

    assert message("3.6.0/sm_80/causal") == ["loop@53: not pipelined: num_stages 1 requests no pipelining"]
    assert message("3.6.0/gfx942/causal") == []  # AMD's attention has one stage
    assert message("3.6.0/sm_80/two_loops") == []  # no dot
