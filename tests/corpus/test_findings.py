"""Every rule on a saved kernel where it must speak, and on one where it must be silent."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from launched import gemv
from saved import ROOT, Saved, saved, saved_kernels

from artifact_inspector.analysis.access.load_widths import NarrowCause, NarrowReason
from artifact_inspector.analysis.resources.usage import ResourceFigure
from artifact_inspector.analysis.shared.layout_conversions import LayoutConversion
from artifact_inspector.execution.prediction import LinePrediction
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.lazy import with_fields
from artifact_inspector.findings import RULES, Finding, Severity, find_findings, find_launch_findings
from artifact_inspector.findings._switch import divisible
from artifact_inspector.findings.narrow_loads import find_narrow
from artifact_inspector.findings.not_pipelined import UNPIPELINED
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import SourceLine, Stage

# code → (fixture where it speaks, what it says there, fixture where it is silent)
# Each expectation was read off the files: the lines and figures are those of the IR.
CASES = {
    # 3.2's pass for AMD gathers the loads; the T4 of the same version keeps the order of the source
    "AI001": ("3.2.0/gfx942/gemv_splitk", r"clustered.*GPU passes.* at ttgir", "3.2.0/sm_75/gemv_splitk"),
    # num_stages 2: `cp.async.wait_group 0` in the loop; num_stages 4 leaves 4 groups
    "AI002": ("3.6.0/sm_80/flash_attention", r"wait_group 0 .*num_stages 2", "3.6.0/sm_80/matmul_grouped"),
    "AI003": ("3.6.0/sm_75/matmul_grouped", r"sm_75 has no asynchronous copy", "3.6.0/sm_80/matmul_grouped"),
    # Triton 3.2 still uses the T4's tensor cores
    "AI004": ("3.6.0/sm_75/matmul_grouped", r"\(MMA 0, FMA 1024\), but sm_75 has mma", "3.6.0/sm_80/matmul_grouped"),
    # a tile of 32 rows is too small for wgmma
    "AI005": ("3.6.0/sm_90/matmul_square", r"mma\.sync, where sm_90 has wgmma.*32", "3.6.0/sm_90/matmul_grouped"),
    # fp16, nothing known of the pointer or the row length
    "AI006": ("3.6.0/sm_80/unaligned_columns", r"loads of 2 B per thread\. Cause: .*x_ptr.*stride", "3.6.0/sm_80/matmul_grouped"),
    # 95 spilled registers of 4 bytes, by the metadata's own count
    "AI007": ("3.6.0/gfx942/register_spill", r"^380 bytes", "3.6.0/gfx942/softmax"),
    # two partitions that multiply alone; the softmax between two dots needs the first one's result
    "AI010": ("3.6.0/sm_90/tma_warp_specialized", r"^loop@18, loop@18/2: wgmma\.wait_group 0", "3.6.0/sm_90/flash_attention"),
    # AMD's lowering knows cache modifiers only
    "AI011": ("3.6.0/gfx942/cache_policy", r"^a load requests evict_first, but .* have no cache policy\. .* not eviction policies$", "3.6.0/sm_80/cache_policy"),
    # 4 warps of 32×32 on a tile of 32×32
    "AI014": ("3.6.0/gfx942/matmul_square", r"×4 the work", "3.6.0/gfx942/matmul_grouped"),
    # f32 in a tile of 1024 for 128 threads, 32 bytes each; n is known to be a multiple of nothing
    "AI022": ("3.6.0/sm_80/masked_add", r"^a store statement: 4 stores of 4 B per thread\. Cause: .*mask may differ between neighbouring elements \(n\)", "3.6.0/sm_80/matmul_grouped"),
    # the outer loop loads a bias and two tiles of a residual, one after the other
    "AI023": ("3.6.0/gfx942/nested_loops", r"2 waits in every iteration, and 1 conditional, each leave", "3.6.0/gfx942/matmul_grouped"),
    # `b` of a tf32 dot, 16 `ld.shared.b32`; `a` comes by 4 `ldmatrix`; all of an f16 matmul does
    "AI024": ("3.6.0/sm_80/matmul_square", r"16 loads of 4 bytes or less .* They fill as many registers as 4 ldmatrix, but ldmatrix transposes 16-bit elements only\. The region has 4 ldmatrix$", "3.6.0/sm_80/matmul_grouped"),
    # gfx90a adds to fp32 natively only in memory that is not fine-grained; gfx942 anywhere
    "AI027": ("3.6.0/gfx90a/gemv_splitk", r"^an atomic became a compare-and-swap loop on gfx90a\. Each try", "3.6.0/gfx942/gemv_splitk"),
}  # fmt: skip
MADE = {
    "AI008",
    "AI009",
    "AI012",
    "AI013",
    "AI015",
    "AI016",
    "AI017",
    "AI018",
    "AI019",
    "AI020",
    "AI021",
    "AI025",
    "AI028",
    "AI026",
}
"""What no compiler leaves behind: shown below on entries made for it."""


def of_rule(kernel: Saved, code: str) -> list[Finding]:
    return [finding for finding in find_findings(kernel.facts) if finding.code == code]


@pytest.mark.parametrize("code", CASES)
def test_a_rule_speaks_where_it_must_and_is_silent_where_it_must(code: str) -> None:
    speaks, words, silent = CASES[code]
    found = of_rule(saved(speaks), code)
    assert found
    assert any(re.search(words, finding.remark.message) for finding in found), found
    assert of_rule(saved(silent), code) == []


def test_every_rule_is_tried() -> None:
    assert {rule.code for rule in RULES} == CASES.keys() | MADE


def test_metadata_that_contradicts_the_code_is_said_and_both_places_named() -> None:
    artifact = saved("3.6.0/sm_80/matmul_grouped").artifact
    metadata = {**artifact.metadata, "num_warps": 8}
    facts = inspect_artifact(dataclasses.replace(artifact, metadata=metadata, num_warps=8))
    found = [finding.remark.message for finding in find_findings(facts) if finding.code == "AI012"]
    # .reqntid 128 is 4 warps of 32; "ttg.num-warps" is 4 too
    assert found == [
        "warps per block: 4 against 8 (ptx, .reqntid 128: 128 threads; metadata, num_warps)",
        "warps per block: 8 against 4 (metadata, num_warps; ttgir, num-warps)",
    ]


def test_what_ptxas_warns_of_is_said_with_the_line_of_the_program(tmp_path: Path) -> None:
    artifact = saved("3.9.0/sm_80/matmul_grouped").artifact
    remarks = tmp_path / "matmul_kernel.remarks"
    loop = next(
        number
        for number, line in enumerate(artifact.files["ptx"].read_bytes().decode().splitlines(), 1)
        if "mma.sync" in line
    )
    remarks.write_text(
        "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
        f"insufficient register resources for the wgmma pipeline in the function 'matmul_kernel' in line {loop}\n"
        "ptxas info    : Used 255 registers, used 1 barriers\n"
        "/src/kernels/matmul_grouped.py:85:20: remark: not a warning\n"
    )
    facts = inspect_artifact(dataclasses.replace(artifact, files={**artifact.files, "remarks": remarks}))
    (found,) = [finding for finding in find_findings(facts) if finding.code == "AI015"]
    assert found.remark.message == (
        "ptxas (C7511): Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
        "insufficient register resources for the wgmma pipeline"
    )
    # the dot of the source
    assert found.remark.sources == ("matmul_grouped.py:85",)
    assert (found.remark.stage, found.remark.lines) == (Stage.PTX, (loop,))


def test_a_load_without_the_mask_of_the_others_is_read_past_the_end(tmp_path: Path) -> None:
    kernel = saved("3.6.0/sm_80/masked_add")
    assert of_rule(kernel, "AI025") == []
    text = kernel.artifact.files["ttir"].read_text()
    load = next(line for line in text.splitlines() if "tt.load" in line)
    bare = re.sub(r"(tt\.load %\w+)(, %\w+)+", r"\1", load)
    assert bare != load
    ttir = tmp_path / "masked_add.ttir"
    ttir.write_text(text.replace(load, bare))
    facts = inspect_artifact(dataclasses.replace(kernel.artifact, files={**kernel.artifact.files, "ttir": ttir}))
    (found,) = [finding.remark for finding in find_findings(facts) if finding.code == "AI025"]
    assert found.message.startswith(
        "possible out-of-bounds read: x has no mask for n, but another access with the same index"
    )
    for constants, is_silent in (({"EVEN_N": True}, True), ({"EVEN_N": False}, False), ({"EVEN_K": True}, False)):
        artifact = dataclasses.replace(facts.artifact, constants=constants)
        codes = [finding.code for finding in find_findings(inspect_artifact(artifact))]
        assert ("AI025" not in codes) is is_silent
    lines = text.splitlines()
    compare = next(number for number, line in enumerate(lines, 1) if "arith.cmpi" in line)
    assert (found.stage, found.lines) == (Stage.TTIR, (lines.index(load) + 1, compare))


def test_each_load_past_the_end_is_reported_zeros_too(tmp_path: Path) -> None:
    """Scales and zeros of a quantised product are read alike; a tensor that is only called zeros is no mask."""
    text = """
module {
  tt.func public @dequantize(%scales: !tt.ptr<f16>, %zeros: !tt.ptr<f16>, %y: !tt.ptr<f16>, %n: i32) {
    %c64_i32 = arith.constant 64 : i32
    %pid = tt.get_program_id x : i32
    %base = arith.muli %pid, %c64_i32 : i32
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %start = tt.splat %base : i32 -> tensor<64xi32>
    %offs = arith.addi %start, %range : tensor<64xi32>
    %bound = tt.splat %n : i32 -> tensor<64xi32>
    %mask = arith.cmpi slt, %offs, %bound : tensor<64xi32>
    %s0 = tt.splat %scales : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
    %s1 = tt.addptr %s0, %offs : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    %scales_2 = tt.load %s1 : tensor<64x!tt.ptr<f16>>
    %z0 = tt.splat %zeros : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
    %z1 = tt.addptr %z0, %offs : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    %zeros_3 = tt.load %z1ZEROS : tensor<64x!tt.ptr<f16>>
    %v = arith.subf %scales_2, %zeros_3 : tensor<64xf16>
    %y0 = tt.splat %y : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
    %y1 = tt.addptr %y0, %offs : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    tt.store %y1, %v, %mask : tensor<64x!tt.ptr<f16>>
    tt.return
  }
}
"""
    artifact = saved("3.6.0/sm_80/masked_add").artifact
    for zeros, names in (("", "scales, zeros have"), (", %mask", "scales has")):
        ttir = tmp_path / "dequantize.ttir"
        ttir.write_text(text.replace("ZEROS", zeros))
        facts = inspect_artifact(dataclasses.replace(artifact, files={"ttir": ttir}, constants={}))
        messages = [finding.remark.message for finding in find_findings(facts) if finding.code == "AI025"]
        assert [message.split(" no mask")[0] for message in messages] == [f"possible out-of-bounds read: {names}"]


def test_a_file_of_another_kernel_is_said() -> None:
    own, other = (saved(f"3.6.0/sm_80/{name}").artifact for name in ("matmul_grouped", "fused_linear"))
    facts = inspect_artifact(dataclasses.replace(own, files={**own.files, "ptx": other.files["ptx"]}))
    assert [found.message for found in facts.contradictions] == [
        "kernel: matmul_kernel against _fused_linear_kernel_fwd"
    ]


def test_less_shared_memory_than_the_allocations_need_is_said() -> None:
    artifact = saved("3.6.0/sm_80/matmul_grouped").artifact
    metadata = {**artifact.metadata, "shared": 1024}
    facts = inspect_artifact(dataclasses.replace(artifact, metadata=metadata, shared_bytes=1024))
    assert [found.message for found in facts.contradictions] == [
        "shared memory: 1024 bytes against 30720 that the allocations need"
    ]


@pytest.mark.long
def test_no_saved_kernel_contradicts_itself() -> None:
    assert [kernel.path for kernel in saved_kernels() if kernel.facts.contradictions] == []


def test_more_shared_memory_than_the_target_has_does_not_fit() -> None:
    facts = saved("3.6.0/gfx942/matmul_grouped").facts
    resources = dataclasses.replace(facts.resources, shared=ResourceFigure(65537, "metadata, shared"))
    found = [f for f in find_findings(dataclasses.replace(facts, resources=resources)) if f.code == "AI013"]
    assert [f.remark.message for f in found] == [
        "no block fits on gfx942, limited by shared memory (65537 bytes requested, 65536 available)"
    ]
    assert not of_rule(saved("3.6.0/gfx942/matmul_grouped"), "AI013")


def test_loads_that_stand_together_as_written_are_no_news() -> None:
    facts = saved("3.2.0/gfx942/gemv_splitk").facts
    clustered = facts.stages[Stage.AMDGCN]
    written = dict(facts.stages) | {Stage.TTIR: clustered}
    told = [
        {found.code for found in find_findings(dataclasses.replace(facts, stages=stages))}
        for stages in (facts.stages, written, {Stage.AMDGCN: clustered})
    ]
    assert ["AI001" in codes for codes in told] == [True, False, False]


def test_an_order_that_changed_twice_is_put_down_to_the_stage_that_made_the_last_one() -> None:
    # llir 25–41 load, 49–70 multiply, 140–168 load for two rounds; amdgcn 63–102 loads for all three
    (found,) = of_rule(saved("3.6.0/gfx942/unrolled_rounds_one_warp"), "AI001")
    assert found.remark.message.endswith("back end changed the order at amdgcn; before it was grouped {1}{2 3}")


def test_the_remainder_of_an_unrolled_loop_is_no_second_loop_that_is_not_pipelined() -> None:
    # LLVM unrolls the loop by four, and leaves a loop over what remains
    told = of_rule(saved("3.9.0/gfx942/index_load"), "AI003")
    assert [finding.remark.message.partition(":")[0] for finding in told] == ["loop@13"]


def of_rule_where(code: str, path: str, **figures: ResourceFigure) -> list[Finding]:
    """What a rule says of a saved kernel that takes something else."""
    facts = saved(path).facts
    facts = dataclasses.replace(facts, resources=dataclasses.replace(facts.resources, **figures))
    return [finding for finding in find_findings(facts) if finding.code == code]


@pytest.mark.parametrize(
    ("registers", "said"),
    [
        # 65536 registers are 512 warps of 128 for each of 4 sub-partitions: 8 registers less, 16 warps for 12
        (136, "12 of 64 warps per SM: 136 registers per thread allow 3 blocks; 128 registers would allow 4"),
        (152, None),  # 24 registers less for the same
        (72, None),  # 8 blocks for 7
        (200, "8 of 64 warps per SM: 200 registers per thread allow 2 blocks; 168 registers would allow 3"),
        (224, None),  # a quarter less for a half more
    ],
)
def test_one_block_more_is_told_where_it_is_many_more_warps_for_little(registers: int, said: str | None) -> None:
    figure = ResourceFigure(registers, "cubin, EIATTR_REGCOUNT")
    found = of_rule_where("AI008", "3.6.0/sm_80/gemv_splitk", registers=figure)
    assert [finding.remark.message for finding in found] == ([] if said is None else [said])


def test_two_things_to_shed_for_one_block_are_no_news() -> None:
    # sm_80 has 164 KiB for blocks, each of which takes 1 KiB more than it asks for
    taken = {"registers": ResourceFigure(136, "cubin"), "shared": ResourceFigure(53 * 1024, "metadata, shared")}
    assert of_rule_where("AI008", "3.6.0/sm_80/gemv_splitk", **taken) == []


def test_a_few_bytes_that_are_spilled_are_no_news() -> None:
    path = "3.6.0/sm_80/gemv_splitk"
    few = {name: ResourceFigure(60, "cubin") for name in ("spill_bytes", "reload_bytes")}
    assert of_rule_where("AI007", path, **few) == []
    more = {name: ResourceFigure(64, "cubin") for name in few}
    (note,) = of_rule_where("AI007", path, **more)
    assert note.severity is Severity.NOTE
    assert note.remark.message.endswith("(cubin). All spills are outside loops: each thread pays once")
    (warning,) = of_rule_where("AI007", "3.6.0/sm_80/matmul_grouped", **more)
    assert warning.severity is Severity.WARNING


def converting(path: str, region: str, *conversions: LayoutConversion) -> list[str]:
    """What AI009 says of a saved kernel, one loop of which has these conversions."""
    facts = saved(path).facts
    tensors = facts.stages[Stage.TTGIR]
    work = {**tensors.work, region: with_fields(tensors.work[region], conversions=conversions)}
    regions = tuple(
        dataclasses.replace(facts, counts={**facts.counts, "layout_conversion": 1}) if facts.id == region else facts
        for facts in tensors.regions
    )
    stages = {**facts.stages, Stage.TTGIR: with_fields(tensors, work=work, regions=regions)}
    found = find_findings(with_fields(facts, stages=stages))
    return [finding.remark.message for finding in found if finding.code == "AI009"]


TILE = LayoutConversion(20, None, 4096, "blocked → mma", None, through_shared=True, is_for_dots=True)


def test_a_conversion_is_news_where_the_loop_does_not_change_what_is_converted() -> None:
    same = dataclasses.replace(TILE, bytes=256, is_loop_variant=False, is_for_dots=False)
    (said,) = converting("3.6.0/sm_80/matmul_grouped", "loop@81", same, TILE)
    assert said.startswith("loop@81: 1 layout conversion of 256 B in total in every iteration")
    assert said.endswith("of loop-invariant values, which could be converted before the loop")
    under_a_branch = dataclasses.replace(same, is_unconditional=False)
    assert converting("3.6.0/sm_80/matmul_grouped", "loop@81", under_a_branch) == []


def test_a_conversion_for_a_dot_is_news_in_a_loop_that_has_none() -> None:
    # the loop loads 1024 f32: 4096 B
    (said,) = converting("3.6.0/sm_80/two_loops", "loop@14", TILE)
    assert said.endswith("for the layout of a dot outside the loop; the loop itself has no dot")
    assert converting("3.6.0/sm_80/matmul_grouped", "loop@81", TILE) == []
    for less in ({"is_for_dots": False}, {"through_shared": False}, {"is_unconditional": False}, {"bytes": 512}):
        assert converting("3.6.0/sm_80/two_loops", "loop@14", dataclasses.replace(TILE, **less)) == []
    # the outer loop has no dot, but the one inside has
    assert converting("3.6.0/sm_80/nested_loops", "loop@28", TILE) == []


def test_more_threads_than_a_block_may_have_cannot_launch() -> None:
    artifact = saved("3.6.0/gfx942/matmul_grouped").artifact
    metadata = {**artifact.metadata, "num_warps": 32}
    facts = inspect_artifact(dataclasses.replace(artifact, metadata=metadata, num_warps=32))
    found = {finding.code: finding.remark.message for finding in find_findings(facts)}
    assert found["AI020"] == (
        "a block requests 2048 threads (32 warps of 64), but gfx942 allows 1024: the launch fails (metadata, num_warps)"
    )
    assert "AI013" not in found  # it is said once
    assert facts.occupancy is not None
    assert facts.occupancy.blocks == 0


def test_another_vendors_binary_and_waves_of_another_width_say_nothing_of_a_target() -> None:
    nvidia, amd = saved("3.6.0/sm_80/matmul_grouped").facts, saved("3.6.0/gfx942/matmul_grouped").facts
    elsewhere = nvidia.occupancy_on(parse_target("MI300X"))
    assert (elsewhere.blocks, elsewhere.blocks_by_resource) == (None, {})
    assert elsewhere.missing == ("a binary for gfx942: one for sm_80 is another vendor's",)
    narrower = amd.occupancy_on(parse_target("gfx1100"))
    assert narrower.missing == ("a binary for gfx1100: one for gfx942 has waves of 64, not 32",)
    assert nvidia.occupancy_on(parse_target("sm_86")).blocks is not None
    assert amd.occupancy_on(parse_target("gfx90a")).blocks is not None


def test_as_many_threads_as_a_block_may_have_launch() -> None:
    warps = ResourceFigure(16, "metadata, num_warps")
    assert of_rule_where("AI020", "3.6.0/gfx942/matmul_grouped", warps_per_block=warps) == []
    more = warps._replace(value=17)
    assert len(of_rule_where("AI020", "3.6.0/gfx942/matmul_grouped", warps_per_block=more)) == 1


def test_scalar_registers_in_lanes_of_vector_registers_are_said() -> None:
    spilled = ResourceFigure(271, "amdgcn, .sgpr_spill_count")
    (found,) = of_rule_where("AI021", "3.6.0/gfx942/softmax", scalar_spills=spilled)
    assert re.match(r"271 scalar registers are spilled .*: 5 vector registers or more", found.remark.message)
    assert found.severity is Severity.WARNING
    assert of_rule_where("AI021", "3.6.0/gfx942/softmax", scalar_spills=spilled._replace(value=31)) == []
    assert of_rule(saved("3.6.0/gfx942/softmax"), "AI021") == []


def test_what_decides_most_is_told_first() -> None:
    facts = saved("3.6.0/gfx942/register_spill").facts
    resources = dataclasses.replace(
        facts.resources,
        shared=ResourceFigure(65537, "metadata, shared"),
        scalar_spills=ResourceFigure(40, "amdgcn, .sgpr_spill_count"),
    )
    found = find_findings(dataclasses.replace(facts, resources=resources))
    assert [finding.code for finding in found][:3] == ["AI013", "AI007", "AI021"]
    for kernel in saved_kernels():
        kinds = [finding.severity is not Severity.WARNING for finding in find_findings(kernel.facts)]
        assert kinds == sorted(kinds)


def test_accesses_that_lost_the_same_or_are_as_narrow_for_one_reason_are_one_finding() -> None:
    (lost,) = of_rule(saved("3.6.0/gfx942/gemv_splitk"), "AI011")
    assert lost.remark.message.startswith(
        "2 loads request evict_first, but their instructions in amdgcn have no cache policy"
    )
    assert len(lost.remark.sources) == 2
    (narrow,) = of_rule(saved("3.6.0/sm_80/masked_add"), "AI006")
    assert narrow.remark.message == (
        "x, y: 4 loads of 4 B per thread each. Cause: the mask may differ between neighbouring elements (n)"
    )


@pytest.mark.parametrize("kernel", saved_kernels(), ids=lambda kernel: kernel.path)
def test_the_evidence_of_a_finding_stands_in_the_file(kernel: Saved) -> None:
    for finding in find_findings(kernel.facts):
        remark = finding.remark
        assert remark.message
        if remark.stage is not None:
            last = kernel.text(remark.stage).count("\n") + 1
            assert remark.lines or remark.sources
            assert all(0 < line <= last for line in remark.lines)
        for source in remark.sources:
            line = source if isinstance(source, SourceLine) else SourceLine((source,))
            assert line.number > 0
            text = (ROOT / kernel.source).read_text(encoding="utf-8")
            if line.file == kernel.source.name:
                assert line.number <= text.count("\n") + 1


def test_a_clean_kernel_has_no_warning() -> None:
    # 16-byte copies, three stages in flight, the newest matrix unit, no spill
    assert not [f for f in find_findings(saved("3.6.0/sm_80/fused_linear").facts) if f.severity is Severity.WARNING]


def test_loops_that_one_thing_keeps_from_being_pipelined_are_told_together() -> None:
    artifact = saved("3.6.0/sm_80/two_loops").artifact
    facts = inspect_artifact(dataclasses.replace(artifact, num_stages=4))
    (found,) = [finding.remark for finding in find_findings(facts) if finding.code == "AI003"]
    assert found.message.startswith("loop@14, loop@21: not pipelined (num_stages 4): no dot")
    assert len(found.lines) == 2


@pytest.mark.parametrize("path", ["3.6.0/sm_80/two_loops", "3.6.0/sm_80/unaligned_columns"])
def test_stages_that_nobody_asked_for_are_not_missed_where_there_is_no_dot(path: str) -> None:
    # 3 is what Triton takes by itself
    assert saved(path).artifact.num_stages == 3
    assert of_rule(saved(path), "AI003") == []


@pytest.mark.parametrize("path", ["3.6.0/sm_80/nested_loops", "3.6.0/gfx942/nested_loops"])
def test_a_loop_around_a_pipelined_one_is_no_missing_pipeline(path: str) -> None:
    """Its stages are those of the inner loop, as in a persistent kernel; a dot of its own would count."""
    (outer,) = [region for region in saved(path).facts.last.regions if region.id == "loop@28"]
    assert outer.verdict in UNPIPELINED
    assert of_rule(saved(path), "AI003") == []


def test_a_loop_and_the_code_behind_it_that_do_too_much_alike_are_told_together() -> None:
    # four warps of 32 rows on 64: the first dots, of ttgir 142 in the loop and 200 behind it; the second ones,
    # of 178 and 236, take 16 rows for each warp
    (found,) = of_rule(saved("3.6.0/gfx942/flash_attention"), "AI014")
    assert found.remark.message.startswith("straight, loop@47: 4×1 warps of 32×32")
    assert set(found.remark.lines) == {142, 200}


@pytest.mark.parametrize(("bound", "told"), [("n", 1), ("", 0)])
def test_a_triangle_that_parts_neighbours_is_no_news(bound: str, told: int) -> None:
    kernel = saved("3.6.0/sm_80/masked_add").facts
    cause = NarrowCause(NarrowReason.MASK, 4, bound, 16)
    access = kernel.widths[0]._replace(width=4, causes=(cause,))
    assert len(list(find_narrow(kernel, [access], "load"))) == told


def test_a_drained_pipeline_promises_nothing_of_another_stage_and_is_not_reported_without_room() -> None:
    # ttgir 68, 84 and 85: `k` and `v`, 16×32 f16 each, a stage of either; `q`, 64×16, is used in the loop as well.
    # sm_80 lets a block have 163 KiB
    path = "3.6.0/sm_80/flash_attention"
    taken = saved(path).facts.resources.shared.value
    assert taken is not None
    (found,) = of_rule(saved(path), "AI002")
    assert found.remark.message.endswith(
        " leaves no copy in flight at num_stages 2; `findings --try` tests num_stages 3 to 5"
    )
    assert taken + 4096 <= 163 * 1024
    full = ResourceFigure(163 * 1024 - 4095, "metadata, shared")
    assert of_rule_where("AI002", path, shared=full) == []


def waiting(times: int, *always: bool) -> list[Finding]:
    """What AI023 says of a loop that waits so, and holds so many iterations of the program."""
    facts = saved("3.6.0/gfx942/nested_loops").facts
    last = facts.last
    assert last is not None
    wait = next(one for one in last.work["loop@28"].in_flight.waits if one.drains)
    waits = tuple(dataclasses.replace(wait, is_unconditional=one) for one in always)
    in_flight = dataclasses.replace(last.work["loop@28"].in_flight, waits=waits)
    work = {**last.work, "loop@28": with_fields(last.work["loop@28"], in_flight=in_flight)}
    regions = tuple(dataclasses.replace(one, parent=None, unroll_factor=times) for one in last.regions)
    fields = {"work": work, "regions": regions, "waits": tuple(one.wait for one in waits)}
    stages = {**facts.stages, last.stage: with_fields(last, **fields)}
    return [one for one in find_findings(with_fields(facts, stages=stages)) if one.code == "AI023"]


def test_waits_are_counted_for_each_iteration_of_the_program() -> None:
    assert [one.severity for one in waiting(1, True, True, True)] == [Severity.WARNING]
    assert waiting(4, True, True, True, True) == []
    (unrolled,) = waiting(2, *[True] * 6)
    assert unrolled.remark.message.endswith(
        "each iteration pays the latency of memory up to 6 times (2 iterations of the program)"
    )


def test_waits_under_a_condition_are_told_apart() -> None:
    (found,) = waiting(1, True, True, False)
    assert found.severity is Severity.NOTE
    assert "2 waits in every iteration, and 1 conditional, each leave" in found.remark.message
    assert waiting(1, True, False, False) == []


def test_a_promise_that_would_not_help_alone_is_not_named() -> None:
    kernel = saved("3.6.0/sm_80/masked_add").facts
    of_mask, division = (NarrowCause(NarrowReason.MASK, 4, "n", 16), NarrowCause(NarrowReason.DIVISION, 4, "m", 17))
    access = kernel.widths[0]._replace(width=4, widths={4: 4}, causes=(of_mask, division))
    (said,) = find_narrow(kernel, [access], "load")
    assert said.message == "x: 4 loads of 4 B per thread. Cause: addresses are computed with a division (m)"
    assert list(divisible(kernel, [access])) == []
    assert [switch.name for switch in divisible(kernel, [access._replace(causes=(of_mask,))])] == ["n"]
    strided = access._replace(causes=(NarrowCause(NarrowReason.STRIDE, 4, "16", 17),))
    (said,) = find_narrow(kernel, [strided], "load")
    assert said.message.endswith(". Cause: neighbours are 16 elements apart")
    for less in (access._replace(widths={4: 3}), access._replace(width=8, widths={8: 4})):
        assert list(find_narrow(kernel, [less], "load")) == []
    gathered = access._replace(causes=(NarrowCause(NarrowReason.GATHER, 4, "k", 17), of_mask))
    assert list(find_narrow(kernel, [gathered], "load")) == []


@pytest.mark.parametrize("target", ["sm_80", "gfx942"])
@pytest.mark.parametrize("code", ["AI006", "AI022"])
def test_a_wave_of_64_lanes_is_as_narrow_as_two_warps(target: str, code: str) -> None:
    """Each thread of a wave has half of the elements: 8 bytes instead of 16."""
    (found,) = of_rule(saved(f"3.6.0/{target}/masked_add"), code)
    count = {"sm_80": 4, "gfx942": 2}[target]
    assert f"{count} {'loads' if code == 'AI006' else 'stores'} of 4 B per thread" in found.remark.message


def test_what_promises_would_widen_is_one_finding() -> None:
    kernel = saved("3.6.0/sm_80/masked_add").facts
    mask = NarrowCause(NarrowReason.MASK, 4, "n", 16)
    strides = [NarrowCause(NarrowReason.UNALIGNED, 4, name, 17) for name in ("of_x", "of_y")]
    x, y = (
        access._replace(widths={4: count}, causes=(stride, mask))
        for access, stride, count in zip(kernel.widths, strides, (4, 8), strict=True)
    )
    (said,) = find_narrow(kernel, [x, y], "load")
    assert said.message == (
        "x: 4 loads of 4 B per thread; y: 8 loads of 4 B per thread. Cause: "
        "the argument is not known to be a multiple of 16 (of_x, of_y); the mask may differ between neighbouring elements (n)"
    )
    strided = x._replace(causes=(NarrowCause(NarrowReason.STRIDE, 4, "16", 17),))
    assert len(list(find_narrow(kernel, [strided, y], "load"))) == 2


@pytest.mark.parametrize(("is_copied", "told"), [(False, 1), (True, 0)])
def test_a_policy_that_a_copy_cannot_have_is_not_missed(is_copied: bool, told: int) -> None:
    kernel = saved("3.6.0/gfx942/cache_policy").facts
    policies = tuple(policy._replace(is_copied=is_copied) for policy in kernel.policies)
    found = find_findings(with_fields(kernel, policies=policies))
    assert sum(finding.code == "AI011" for finding in found) == told


@pytest.mark.parametrize(
    ("target", "counters", "told"),
    [
        # 64 lanes of 4 bytes in separate rows; 8 rows of 32 bytes each, a quarter of a line of 128
        ("gfx942", {"cache_lines": 64, "cache_lines_ideal": 2}, True),
        ("gfx942", {"cache_lines": 8, "cache_lines_ideal": 2}, False),
        ("gfx90a", {"cache_lines": 16, "cache_lines_ideal": 4}, True),  # 16 bytes of each line of 64
        ("gfx942", {"cache_lines": 32, "cache_lines_ideal": 4, "opcode": "buffer_load_dwordx2"}, True),
        # 64 lanes store 8 bytes of the result of `v_mfma_f32_32x32x8_bf16`: 16 bytes of each of 32 rows
        ("gfx942", {"cache_lines": 32, "cache_lines_ideal": 4, "opcode": "buffer_store_dwordx2"}, False),
        ("gfx942", {"cache_lines": 64, "cache_lines_ideal": 4, "opcode": "buffer_store_dwordx2"}, True),
        ("sm_90", {"sectors": 32, "sectors_ideal": 4}, True),
        ("sm_90", {"sectors": 4, "sectors_ideal": 4}, False),
    ],
)
def test_lanes_in_separate_rows_are_told_on_both_vendors(target: str, counters: dict[str, Any], told: bool) -> None:
    none = dict.fromkeys(("sectors", "sectors_ideal", "wavefronts", "wavefronts_ideal", "cache_lines"))
    line = LinePrediction(
        **{"stage": "asm", "line": 7, "source": "k.py:3", "opcode": "load", "executed": 1, **none, **counters}
    )  # type: ignore[arg-type]
    found = find_launch_findings(dataclasses.replace(gemv(), target=target, by_line=(line,)))
    assert [finding.remark.sources for finding in found if finding.code == "AI017"] == [("k.py:3",)] * told
