"""The decisive fact is told first: in a comparison, in a list of changes, on top of a story."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from saved import FIXTURES, saved

from artifact_inspector.analysis.resources.occupancy import find_occupancy
from artifact_inspector.comparison.consequence import consequence_of, rank_of
from artifact_inspector.comparison.corpus import Change, Degree
from artifact_inspector.comparison.fact_pair import FactPair, State
from artifact_inspector.comparison.pair import compare_kernels
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.lazy import with_fields
from artifact_inspector.files.cache import Cache
from artifact_inspector.findings import find_findings
from artifact_inspector.findings.limit import LimitedBy, find_first, find_limit
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import Consequence, Stage
from artifact_inspector.report.console import to_text
from artifact_inspector.report.corpus import describe_change
from artifact_inspector.report.diff import PairReport, side_labels
from artifact_inspector.report.kernel_report import KernelReport
from artifact_inspector.vocabulary.fact import Sign, Value


def a_fact(key: str, category: str, left: Value, right: Value) -> FactPair:
    region = "loop1" if key.startswith("loop1.") else ""
    return FactPair(key, category, key, "", region, left, right, State.DIFFERENT)


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (a_fact("occupancy", "occupancy", 3, 0), Consequence.FIT),
        (a_fact("occupancy", "occupancy", 3, 2), Consequence.OCCUPANCY),
        (a_fact("occupancy.limit", "occupancy", ("registers",), ("warps",)), Consequence.OTHER),
        (a_fact("occupancy", "occupancy", 3, None), Consequence.OCCUPANCY),
        (a_fact("spills.of_another_version", "spills", 0, 1), Consequence.SPILLS),
        (a_fact("spills", "spills", 0, 16), Consequence.SPILLS),
        (a_fact("loop1.mma.fused", "mma", None, 1024), Consequence.MATRIX),
        (a_fact("count.matrix", "mma", 16, 0), Consequence.MATRIX),
        (a_fact("count.matrix", "mma", 16, 32), Consequence.OTHER),
        (a_fact("loop1.pipeline.depth", "waits", 4, 0), Consequence.DRAIN),
        (a_fact("loop1.pipeline.depth", "waits", 4, 2), Consequence.IN_FLIGHT),
        (a_fact("loop1.in_flight.loads", "in-flight", 8, 0), Consequence.IN_FLIGHT),
        (a_fact("loop1.verdict.ttgir", "verdict", "serial", "pipelined(2)"), Consequence.DRAIN),
        (a_fact("loop1.verdict.ttgir", "verdict", "grouped", "clustered"), Consequence.ORDER),
        (
            a_fact("shared.reduction across warps", "shared", None, 2048)._replace(state=State.ONE_SIDED),
            Consequence.EXCHANGE,
        ),
        (a_fact("shared.reduction across warps", "shared", 1024, 2048), Consequence.EXCHANGE),
        (a_fact("shared.reduction across warps", "shared", 1024, 1536), Consequence.OTHER),
        (a_fact("loop1.mma.elements", "mma", 0, 32), Consequence.OPERANDS),
        (a_fact("loop1.mma.elements", "mma", 0, 12), Consequence.OTHER),
        (a_fact("loop1.pipeline.kind", "waits", "cp.async groups", "register prefetch"), Consequence.ASYNCHRONY),
        (a_fact("loop1.pipeline.kind", "waits", "cp.async groups", "TMA + mbarrier"), Consequence.IN_FLIGHT),
        (a_fact("loads.widths", "loads", ("16 ×4",), ("2 ×32",)), Consequence.ACCESS),
        (a_fact("findings", "findings", (), ("AI013",)), Consequence.FIT),
        (a_fact("instructions.sass", "instructions", 100, 101), Consequence.OTHER),
    ],
)
def test_a_difference_has_a_consequence(fact: FactPair, expected: Consequence) -> None:
    assert consequence_of(fact) is expected


def test_changes_are_told_by_what_they_cost() -> None:
    pair = compare_kernels(saved("3.6.0/sm_80/softmax").facts, saved("3.6.0/sm_80/softmax").facts)
    held = (
        a_fact("instructions.sass", "instructions", 100, 101),
        a_fact("loop1.verdict.ttgir", "verdict", "serial", "pipelined(2)"),
        a_fact("registers", "registers", 64, 65),
        a_fact("occupancy", "occupancy", 3, 2),
        a_fact("spills", "spills", 0, 64),
    )
    change = Change(*pair.sides, Degree.CHANGED, (), held, None)
    assert [fact.key for fact in change.facts][:3] == ["spills", "loop1.verdict.ttgir", "occupancy"]
    assert [line.split()[0] for line in describe_change(change)][:2] == ["spills", "loop1:"]
    milder = Change(*pair.sides, Degree.CHANGED, (), held[:2], None)
    assert change.severity < milder.severity


def too_big(kernel: KernelFacts) -> KernelFacts:
    """The same kernel, asking for more shared memory than a T4 has, its registers unknown."""
    artifact = replace(kernel.artifact, target=parse_target("sm_75"), shared_bytes=98304)
    shared = kernel.resources.shared._replace(value=98304)
    unknown = kernel.resources.registers._replace(value=None)
    return with_fields(kernel, artifact=artifact, resources=replace(kernel.resources, shared=shared, registers=unknown))


def test_what_exceeds_one_limit_does_not_fit_whatever_else_is_unknown() -> None:
    held = find_occupancy(parse_target("sm_75"), registers=None, shared_bytes=98304, warps_per_block=4)
    assert (held.blocks, held.limited_by) == (0, ("shared memory",))
    assert "registers per thread" in held.missing


def test_a_comparison_begins_with_the_side_that_cannot_be_launched() -> None:
    kernel = saved("3.6.0/sm_80/matmul_grouped").facts
    text = to_text(PairReport(compare_kernels(kernel, too_big(kernel))), 160)
    first_lines = text.splitlines()
    assert first_lines[0].startswith(
        "sm_75 cannot be launched: no block fits on sm_75, limited by shared memory (98304 bytes"
    )
    assert "order loads and computes the same way" not in first_lines[0]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("3.6.0/sm_80/register_spill", "What limits it: "),
        ("3.6.0/sm_80/flash_attention", "First to look at: "),
        ("3.6.0/sm_80/layer_norm", "Costliest in the code: "),
        ("3.6.0/sm_80/no_line_info", "No finding says what limits this kernel."),
    ],
)
def test_a_story_begins_with_what_limits_the_kernel(name: str, said: str) -> None:
    kernel = saved(name).facts
    cache = Cache(FIXTURES, (kernel.artifact,), (), ())
    text = to_text(KernelReport(cache, kernel), 120)
    (at,) = [place for place, line in enumerate(text.splitlines()) if line.startswith(said)]
    assert at < 9
    assert "AI007" not in text or "AI007" in "\n".join(text.splitlines()[at : at + 2])


def test_spills_come_before_all_but_a_launch_that_fails() -> None:
    limit = find_limit(saved("3.6.0/sm_80/register_spill").facts)
    assert (limit.by, limit.code, limit.lead) == (LimitedBy.FINDING, "AI007", "What limits it")
    assert limit.sentence == f"What limits it: {limit.description}"


def test_without_a_finding_its_code_says_what_costs_most() -> None:
    """A 64×64×32 dot of f16: 2·64·64·32 FLOP, (64 + 64)·32·2 B; an A100 has 1024 multiply-adds per SM and cycle."""
    limit = find_limit(saved("3.6.0/sm_80/fused_linear").facts)
    assert (limit.by, limit.lead) == (LimitedBy.WORK, "Costliest in the code")
    assert limit.description.startswith("loop@39: the dot at fused_linear.py:44. Cycles per CTA and iteration")
    assert f"{64 * 64 * 32 / 1024:.0f} of the matrix unit" in limit.description
    bytes_per_cycle = 2.039e12 / (108 * 1.41e9)
    assert f"{8192 / bytes_per_cycle:.0f} for 8192 B of device memory" in limit.description
    assert limit.sources == ("fused_linear.py:44",)


@pytest.mark.parametrize(
    ("name", "said", "sources"),
    [
        ("3.6.0/sm_80/copy", "the loads and stores at copy.py:11", ("copy.py:11",)),
        ("3.6.0/sm_80/shared_operands", "shared_operands.py:20 has ", ("shared_operands.py:20",)),
        ("3.6.0/gfx942/layer_norm", "no line stands out", ("layer_norm.py:20",)),
    ],
)
def test_the_line_is_that_of_the_busiest_unit(name: str, said: str, sources: tuple[str, ...]) -> None:
    limit = find_limit(saved(name).facts)
    assert said in limit.description
    assert tuple(map(str, limit.sources)) == sources


@pytest.mark.parametrize("name", ["3.6.0/sm_80/softmax", "3.6.0/sm_90/matmul_grouped", "3.6.0/gfx942/layer_norm"])
def test_the_instructions_of_the_headline_are_those_of_the_file(name: str) -> None:
    """Every line of the region in the text that is an instruction, without those of other kinds."""
    kernel = saved(name).facts
    last, principal = kernel.last, kernel.principal
    assert last is not None
    assert principal is not None
    region = last.region(principal)
    assert region is not None
    by_kind: Counter[str] = Counter()
    for line in last.work[principal].code_lines:
        by_kind[line.kind] += line.instructions
    assert dict(by_kind) == {kind: count for kind, count in region.counts.items() if count}
    total = sum(count for kind, count in by_kind.items() if kind not in ("other", "branch", "schedule_hint"))
    language = "PTX instructions" if last.stage is Stage.PTX else "instructions"
    assert f" to issue {total} {language} of" in find_limit(kernel).description


def test_a_kernel_without_source_lines_is_not_judged() -> None:
    limit = find_limit(saved("3.6.0/sm_80/no_line_info").facts)
    assert (limit.by, limit.code, limit.lines) == (LimitedBy.UNKNOWN, "", ())


def test_what_a_launch_warns_of_comes_before_what_is_noted_and_behind_what_is_warned_of() -> None:
    (spilled, *_) = find_findings(saved("3.6.0/sm_80/register_spill").facts)
    noted = find_findings(saved("3.6.0/sm_80/flash_attention").facts)
    conflicts = replace(spilled, code="AI016")
    assert find_first(noted, [conflicts]) is conflicts
    assert find_first((), [conflicts]) is conflicts
    assert find_first([spilled], [conflicts]) is spilled
    assert find_first(noted, noted) is find_first(noted)


@pytest.mark.parametrize("name", ["3.6.0/sm_80/register_spill", "3.6.0/sm_80/unaligned_columns"])
def test_what_limits_a_kernel_is_what_its_findings_begin_with(name: str) -> None:
    found = find_findings(saved(name).facts)
    assert find_first(found) is found[0]
    assert find_first((replace(found[0], code="AI012"), *found)) is found[0]  # two files disagree: no limit
    scalars = replace(found[0], code="AI021")
    assert find_first((scalars, *found)) is scalars  # of a rule that no second list ranks


def test_sides_that_differ_in_num_stages_are_not_called_by_stages_of_the_compiler() -> None:
    left = saved("3.6.0/sm_80/softmax").facts
    right = with_fields(
        left, artifact=replace(left.artifact, num_stages=7, metadata={**left.artifact.metadata, "num_stages": 7})
    )
    assert side_labels(compare_kernels(left, right)) == (f"num_stages {left.artifact.num_stages}", "num_stages 7")


def test_four_spilled_registers_cost_less_than_what_matters_more() -> None:
    small, large = (a_fact("spills", "spills", 0, size) for size in (16, 20))
    assert rank_of(large) == Consequence.SPILLS.rank < rank_of(a_fact("loads.widths", "loads", (), ("4 ×1",)))
    assert rank_of(small) == Consequence.OCCUPANCY.rank


def test_a_comparison_says_which_loop_of_its_tables_is_which_line() -> None:
    pair = compare_kernels(*(saved(f"3.6.0/{x}/tma_warp_specialized").facts for x in ("sm_90", "sm_100")))
    (row,) = [line for line in to_text(PairReport(pair), 160).splitlines() if line.startswith("loops ")]
    assert row.split() == ["loops", "loop1:", "loop@18", "="]


def test_fewer_spills_come_after_a_lost_pipeline() -> None:
    """One stage less takes fewer registers, and more time."""
    spills = a_fact("spills", "spills", 140, 0)._replace(direction=Sign.BETTER)
    worse = a_fact("spills", "spills", 0, 140)._replace(direction=Sign.WORSE)
    assert rank_of(worse) < Consequence.DRAIN.rank < rank_of(spills)
