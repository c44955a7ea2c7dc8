"""What the saved kernels show, as a reader of their IR says it.

Every expectation was read off the files by hand: where the loads stand, what they feed and what
crosses a loop's back edge.
"""

from __future__ import annotations

import re

import pytest
from saved import ROOT, Saved, saved, saved_kernels

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.model import Stage


def phrases(kernel: Saved, region: str) -> list[str]:
    """A region's verdicts, in compilation order."""
    found = [stage.region(region) for stage in kernel.facts.stages.values()]
    return [item.phrase for item in found if item is not None]


def principal(kernel: Saved, stage: Stage) -> RegionFacts:
    found = kernel.facts.stages[stage].region(kernel.facts.principal or "")
    assert found is not None
    return found


def letters(signature: str, letter: str) -> int:
    return sum(int(count) for count in re.findall(rf"\b{letter}(\d+)", signature))


# -- the block matmuls ---------------------------------------------------------------------------


def test_fused_linear_on_sm_80_is_two_iterations_ahead_of_its_sixteen_mma() -> None:
    kernel = saved("3.6.0/sm_80/fused_linear")
    loop = principal(kernel, Stage.PTX)
    assert (loop.kind, loop.phrase, loop.matrix) == ("loop", "pipelined(2)", 16)
    assert kernel.facts.wait_depths == (2,)
    assert kernel.artifact.shared_bytes == 16384
    # x and w are loaded in the loop, the bias behind it
    assert len(kernel.facts.stages[Stage.PTX].region("straight").rounds) == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("target", ["sm_80", "sm_86", "sm_89"])
def test_matmul_grouped_keeps_two_iterations_in_flight_at_its_wait(target: str) -> None:
    kernel = saved(f"3.6.0/{target}/matmul_grouped")
    loop = principal(kernel, Stage.PTX)
    assert (loop.phrase, loop.matrix, letters(loop.signature, "A"), letters(loop.signature, "K")) == (
        "pipelined(3)",
        16,
        5,
        2,
    )
    assert kernel.facts.wait_depths == (4,)
    assert kernel.facts.wait_depths[0] // letters(loop.signature, "K") == 2
    assert kernel.artifact.shared_bytes == 30720


@pytest.mark.parametrize(
    "kernel", [k for k in saved_kernels() if k.kernel.startswith("matmul")], ids=lambda kernel: kernel.path
)
def test_a_matmul_loop_is_serial_as_written_and_pipelined_by_the_gpu_passes(kernel: Saved) -> None:
    found = phrases(kernel, kernel.facts.principal or "")
    assert found[0] == "serial"
    # sm_75 has no asynchronous copies, and AMD's pipeliner of Triton 3.0 needs `num_stages = 0`.
    distance = kernel.artifact.num_stages - 1  # type: ignore[operator]
    is_pipelined = distance > 0 and kernel.target != "sm_75" and (kernel.version, kernel.target[:3]) != ("3.0.0", "gfx")
    expected = f"pipelined({distance})" if is_pipelined else "serial"
    assert {phrase.partition(" ×")[0] for phrase in found[1:]} == {expected}


def test_sm_75_does_the_dot_of_a_matmul_with_scalar_multiply_adds() -> None:
    kernel = saved("3.6.0/sm_75/matmul_grouped")
    assert principal(kernel, Stage.TTGIR).matrix == 1
    assert kernel.facts.stages[Stage.PTX].counts["matrix"] == 0
    # 128 × 32 × 32 products, shared by 128 threads
    assert len(re.findall(r"fma\.rn\.f32", kernel.text(Stage.PTX))) == 128 * 32 * 32 // 128


# -- the split-K GEMV ----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", saved_kernels(kernel="gemv_splitk"), ids=lambda kernel: kernel.path)
def test_gemv_is_clustered_by_triton_3_2_on_amds_matrix_core_targets_only(kernel: Saved) -> None:
    clusters = kernel.version == "3.2.0" and kernel.target.startswith("gfx9")
    later = "clustered" if clusters else "interleaved"
    assert phrases(kernel, "straight") == ["interleaved", later, later, later]
    assert kernel.facts.changed_at is (Stage.TTGIR if clusters else None)
    for stage in kernel.facts.stages.values():
        (pair,) = stage.region("straight").pairs  # type: ignore[union-attr]
        is_first = stage.stage is Stage.TTIR
        assert (pair.issued_before, pair.issued_after) == ((1.0, 0.0) if clusters and not is_first else (0.0, 1.0))


def test_gemv_fixtures_hold_both_orders() -> None:
    found = {(k.version, k.facts.verdict) for k in saved_kernels(kernel="gemv_splitk")}
    assert found >= {("3.2.0", "clustered"), ("3.2.0", "interleaved"), ("3.3.1", "interleaved")}


# -- attention -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", saved_kernels(kernel="flash_attention"), ids=lambda kernel: kernel.path)
def test_the_rounds_of_attention_are_k_and_v_on_both_vendors(kernel: Saved) -> None:
    for stage in kernel.stages:
        loop = principal(kernel, stage)
        assert loop.kind == "loop"
        assert [item.names for item in loop.rounds] == [("k",), ("v",)]
        # the tl.load of K stands seven lines above that of V
        k, v = (int(item.sources[0].rpartition(":")[2]) for item in loop.rounds)
        assert 0 < v - k < 12


# -- small kernels with one idea each ------------------------------------------------------------

# kernel: {region: verdicts from TTIR to the last stage}
READ = {
    "3.6.0/sm_80/cache_policy": {"straight": ["single"] * 4},
    "3.6.0/gfx942/cache_policy": {"straight": ["single"] * 4},
    "3.6.0/sm_80/register_spill": {"straight": ["single"] * 4},
    "3.6.0/gfx942/register_spill": {"straight": ["single"] * 4},
    "3.6.0/sm_80/unaligned_columns": {"loop@13": ["serial"] * 4},
    "3.6.0/gfx942/unaligned_columns": {"loop@13": ["serial"] * 4},
    "3.6.0/sm_80/atomic_cas": {"straight": ["single"] * 4},
    "3.6.0/gfx942/atomic_cas": {"straight": ["single"] * 4},
    "3.6.0/sm_80/bias_after_loop": {"straight": ["single"] * 4, "loop@20": ["serial", *["pipelined(2)"] * 3]},
    "3.6.0/gfx942/bias_after_loop": {"straight": ["single"] * 4, "loop@20": ["serial", *["pipelined(2)"] * 3]},
    "3.9.0/sm_80/bias_after_loop": {"straight": ["single"] * 4, "loop@20": ["serial", *["pipelined(2)"] * 3]},
    # The second loop runs once per program: LLVM leaves no loop of it.
    "3.6.0/sm_80/causal": {"loop@53": ["interleaved"] * 4, "loop@57": [*["interleaved"] * 2, *["unrolled"] * 2]},
    # K and V stand together at the top of the AMDGCN loop, in front of both MFMAs.
    "3.6.0/gfx942/causal": {
        "loop@53": [*["interleaved"] * 3, "clustered"],
        "loop@57": [*["interleaved"] * 2, *["unrolled"] * 2],
    },
    "3.6.0/sm_80/copy": {"straight": ["no-compute"] * 5},
    "3.6.0/gfx942/copy": {"straight": ["no-compute"] * 4},
    # Scales go straight into tensor memory on sm_100; gfx950 prefetches them with a and b.
    "3.6.0/sm_100/dot_scaled": {"loop@25": ["serial", *["partly pipelined(1)"] * 3]},
    "3.6.0/gfx950/dot_scaled": {"loop@25": ["serial", *["pipelined(1)"] * 3]},
    "3.6.0/sm_80/early_return": {"straight": ["single"] * 4},
    "3.6.0/gfx942/early_return": {"straight": ["single"] * 4},
    # 288 loads, then 272 float operations: no reduction crosses warps, so no barrier keeps LLVM from it.
    "3.6.0/sm_75/gemv_one_warp": {"straight": ["interleaved", "interleaved", "clustered", "clustered"]},
    "3.6.0/sm_80/helper_twice": {"straight": ["interleaved"] * 4},
    "3.6.0/gfx942/helper_twice": {"straight": ["interleaved"] * 4},
    "3.9.0/sm_80/helper_twice": {"straight": ["interleaved"] * 4},
    # a and b are copied one iteration ahead; the scale in the branch is loaded where it is used.
    "3.6.0/sm_80/if_inside_loop": {"loop@28": ["interleaved", *["partly pipelined(1)"] * 3]},
    "3.6.0/gfx942/if_inside_loop": {"loop@28": ["interleaved", *["partly pipelined(1)"] * 3]},
    "3.6.0/sm_80/index_load": {"loop@13": ["serial"] * 4},
    "3.6.0/gfx942/index_load": {"loop@13": ["serial"] * 4},
    # LLVM unrolls the loop by four and keeps a second one for the rest.
    "3.9.0/gfx942/index_load": {"loop@13": [*["serial"] * 2, *["serial ×4"] * 2], "loop@13/2": ["serial"] * 2},
    "3.6.0/sm_80/int_reduce": {"straight": ["interleaved"] * 4},
    "3.6.0/gfx942/int_reduce": {"straight": ["interleaved"] * 4},
    "3.6.0/sm_80/manual_prefetch": {"loop@22": ["pipelined(1)"] * 4},
    "3.6.0/gfx942/manual_prefetch": {"loop@22": ["pipelined(1)"] * 4},
    "3.6.0/sm_80/masked_add": {"straight": ["single"] * 4},
    "3.6.0/gfx942/masked_add": {"straight": ["single"] * 4},
    "3.6.0/sm_80/nested_loops": {"loop@28": ["serial"] * 4, "loop@30": ["serial", *["pipelined(1)"] * 3]},
    "3.6.0/gfx942/nested_loops": {"loop@28": ["serial"] * 4, "loop@30": ["serial", *["pipelined(1)"] * 3]},
    "3.6.0/sm_80/no_line_info": {"straight": ["interleaved"] * 4},
    "3.6.0/gfx942/no_line_info": {"straight": ["interleaved"] * 4},
    "3.6.0/sm_80/persistent_matmul": {"loop@19": ["serial", *["pipelined(2)"] * 3]},
    "3.6.0/gfx942/persistent_matmul": {"loop@19": ["serial", *["pipelined(2)"] * 3]},
    "3.6.0/sm_80/residual_after_loop": {"straight": ["single"] * 4, "loop@27": ["serial", *["pipelined(2)"] * 3]},
    "3.6.0/gfx942/residual_after_loop": {"straight": ["single"] * 4, "loop@27": ["serial", *["pipelined(2)"] * 3]},
    "3.6.0/sm_80/shared_operands": {"straight": ["interleaved"] * 4},
    "3.6.0/gfx942/shared_operands": {"straight": ["interleaved"] * 4},
    "3.6.0/sm_80/two_loops": {"loop@14": ["serial"] * 4, "loop@21": ["serial"] * 4},
    "3.6.0/gfx942/two_loops": {"loop@14": ["serial"] * 4, "loop@21": ["serial"] * 4},
    "3.6.0/sm_80/unrolled_rounds": {"straight": ["interleaved"] * 4},
    "3.6.0/gfx942/unrolled_rounds": {"straight": ["interleaved"] * 4},
    # With one warp no barrier stands between the rounds: LLVM's middle end gathers the loads of the
    # second and third, its back end those of all three.
    "3.6.0/gfx942/unrolled_rounds_one_warp": {
        "straight": ["interleaved", "interleaved", "grouped {1}{2 3}", "clustered"]
    },
    "3.6.0/sm_80/while_loop": {"loop@19": ["serial"] * 4},
    "3.6.0/gfx942/while_loop": {"loop@19": ["serial"] * 4},
}


@pytest.mark.parametrize("path", READ)
def test_a_small_kernel_reads_as_a_reader_of_its_ir_says(path: str) -> None:
    kernel = saved(path)
    assert {region: phrases(kernel, region) for region in READ[path]} == READ[path]


def test_unrolled_rounds_on_one_line_are_three_rounds_at_every_stage() -> None:
    for stage in saved("3.6.0/sm_80/unrolled_rounds").facts.stages.values():
        (region,) = stage.regions
        assert len(region.rounds) == 3
        assert len({item.sources for item in region.rounds}) == 1
        assert len(region.pairs) == 2


def test_a_helper_called_from_two_lines_makes_two_rounds() -> None:
    for stage in saved("3.6.0/gfx942/helper_twice").facts.stages.values():
        assert [item.sources for item in stage.regions[0].rounds] == [
            ("helper_twice.py:10 via :19", "helper_twice.py:11 via :19"),
            ("helper_twice.py:10 via :20", "helper_twice.py:11 via :20"),
        ]


def test_operands_of_both_rounds_stay_in_the_first_and_are_called_shared() -> None:
    for stage in saved("3.6.0/sm_80/shared_operands").facts.stages.values():
        first, second = stage.regions[0].rounds
        assert [name.partition(" ")[0] for name in first.shared] == ["scale", "zero"]
        assert second.shared == ()
        assert (len(first.sources), len(second.sources)) == (4, 2)


def test_an_index_belongs_to_the_round_of_the_load_that_it_addresses() -> None:
    for stage in saved("3.6.0/sm_80/index_load").facts.stages.values():
        loop = stage.region("loop@13")
        assert loop is not None
        assert [item.sources for item in loop.rounds] == [("index_load.py:14", "index_load.py:15", "index_load.py:16")]


@pytest.mark.parametrize("target", ["sm_80", "gfx942"])
def test_without_lines_a_verdict_rests_on_dataflow_and_says_so(target: str) -> None:
    kernel = saved(f"3.6.0/{target}/no_line_info")
    assert [stage.regions[0].basis for stage in kernel.facts.stages.values()][1:] == ["dataflow"] * 3


@pytest.mark.parametrize("target", ["sm_80", "gfx942"])
def test_a_helper_that_is_not_inlined_is_a_second_function_with_the_loads(target: str) -> None:
    kernel = saved(f"3.6.0/{target}/noinline_helper")
    for stage in kernel.stages:
        assert len(kernel.module(stage).functions) == 2
        verdicts = {region.id.rpartition("/")[0]: region.verdict for region in kernel.facts.stages[stage].regions}
        assert verdicts.pop("noinline_helper") == "no-loads"
        assert list(verdicts.values()) == ["single"]


@pytest.mark.parametrize("kernel", saved_kernels(kernel="tma_warp_specialized"), ids=lambda kernel: kernel.path)
def test_a_warp_specialised_loop_is_split_between_partitions(kernel: Saved) -> None:
    assert kernel.facts.principal == "loop@18"
    assert phrases(kernel, "loop@18") == ["serial", *["warp-specialised"] * 3]
    assert [r.kind for r in kernel.facts.stages[Stage.TTGIR].regions].count("partition") == 3


def test_every_small_kernel_has_its_verdict_here() -> None:
    written = {path.rpartition("/")[2] for path in READ}
    written |= {"noinline_helper", "tma_warp_specialized"}
    small = {k.kernel for k in saved_kernels() if not (ROOT / "kernels" / f"{k.kernel}.py").exists()}
    assert small == written
