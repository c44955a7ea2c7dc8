import re

import pytest

from artifact_inspector.errors import UsageError
from artifact_inspector.hardware.targets import (
    KNOWN_TARGETS,
    Target,
    parse_metadata_target,
    parse_stage_target,
    parse_target,
)

T4 = Target("cuda", "sm_75", 32)
MI250X = Target("hip", "gfx90a", 64)


@pytest.mark.parametrize(
    "text", ["sm_75", "sm75", "75", "cuda:75", "cuda:sm_75", " SM_75 ", "t4", "Tesla T4", "rtx 2080ti"]
)
def test_every_way_of_writing_a_t4_is_sm_75(text):
    assert parse_target(text) == T4


@pytest.mark.parametrize(
    "text", ["gfx90a", "hip:gfx90a", "GFX90A", "gfx90a:sramecc+:xnack-", "mi250x", "MI-210", "AMD Instinct MI250X"]
)
def test_every_way_of_writing_an_mi250x_is_gfx90a(text):
    assert parse_target(text) == MI250X


@pytest.mark.parametrize(
    ("text", "arch"),
    [
        ("sm_90a", "sm_90"),
        ("sm_100f", "sm_100"),
        ("h100", "sm_90"),
        ("H200", "sm_90"),
        ("A100", "sm_80"),
        ("a10", "sm_86"),
        ("A10G", "sm_86"),
        ("GeForce RTX 3090 Ti", "sm_86"),
        ("rtx4090", "sm_89"),
        ("L40S", "sm_89"),
        ("RTX 4090 D", "sm_89"),
        ("NVIDIA A100-SXM4-80GB", "sm_80"),
        ("NVIDIA H100 80GB HBM3", "sm_90"),
        ("Tesla V100-SXM2-16GB", "sm_70"),
        ("b200", "sm_100"),
        ("B300", "sm_103"),
        ("RTX 5090", "sm_120"),
        ("mi300x", "gfx942"),
        ("MI355X", "gfx950"),
        ("Radeon RX 7900 XTX", "gfx1100"),
        ("radeon vii", "gfx906"),
        ("RX 9070 XT", "gfx1201"),
    ],
)
def test_a_product_or_a_suffixed_architecture_is_its_plain_architecture(text, arch):
    assert parse_target(text).arch == arch


@pytest.mark.parametrize(
    ("text", "backend", "warp_size"), [("sm_130", "cuda", 32), ("gfx1350", "hip", 32), ("gfx940", "hip", 64)]
)
def test_an_unknown_but_well_formed_architecture_is_a_target_without_limits(text, backend, warp_size):
    target = parse_target(text)
    assert (target.backend, target.arch, target.warp_size) == (backend, text, warp_size)
    assert target.product_names == ()
    assert target.limits.shared_per_block is None
    assert target.limits.matrix_unit is None
    assert target.limits.multiprocessor is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sm_",
        "sm_7",
        "7500",
        "gfx",
        "gfx9",
        "hip:75",
        "cuda:gfx90a",
        "xpu:pvc",
        "rtx",
        "T4000x9",
        "a1000",
        "MI300XX",
        "MI300XXX",
        "T4T",
        "H100gb",
    ],
)
def test_nonsense_is_refused(text):
    with pytest.raises(UsageError, match="is not a known GPU target"):
        parse_target(text)


@pytest.mark.parametrize(("text", "near"), [("h1000", "H100"), ("gfx90q", "gfx90a"), ("mi250xx7", "MI250X")])
def test_a_near_miss_is_told_what_was_meant(text, near):
    with pytest.raises(UsageError) as caught:
        parse_target(text)
    assert near in caught.value.remedy


# Figures of the CUDA C Programming Guide's table and of LLVM's AMDGPU.td, copied by hand.
@pytest.mark.parametrize(
    ("arch", "per_block", "per_sm", "warps", "unit"),
    [
        ("sm_75", 65536, 65536, 32, "mma"),
        ("sm_80", 166912, 167936, 64, "mma"),
        ("sm_86", 101376, 102400, 48, "mma"),
        ("sm_90", 232448, 233472, 64, "wgmma"),
        ("sm_120", 101376, 102400, 48, "mma"),
        ("gfx90a", 65536, 65536, 32, "mfma"),
        ("gfx950", 163840, 163840, 32, "mfma"),
        ("gfx1100", 65536, 65536, 32, "wmma"),
    ],
)
def test_limits_are_those_of_the_manuals(arch, per_block, per_sm, warps, unit):
    limits = parse_target(arch).limits
    assert (limits.shared_per_block, limits.multiprocessor.shared) == (per_block, per_sm)
    assert (limits.multiprocessor.warps, limits.matrix_unit) == (warps, unit)


# LLVM, AMDGPUBaseInfo.cpp: getVGPRAllocGranule, getTotalNumVGPRs, getEUsPerCU (one compute unit).
@pytest.mark.parametrize(
    ("arch", "registers", "granule", "simds"),
    [
        ("gfx906", 256, 4, 4),
        ("gfx90a", 512, 8, 4),
        ("gfx1030", 1024, 16, 2),
        ("gfx1100", 1536, 24, 2),
        ("gfx1201", 1536, 24, 2),
        ("gfx1250", 1024, 16, 4),
    ],
)
def test_the_register_file_is_that_of_llvm(arch, registers, granule, simds):
    holds = parse_target(arch).limits.multiprocessor
    assert (holds.registers, holds.register_unit, holds.partitions) == (registers, granule, simds)


@pytest.mark.parametrize("target", KNOWN_TARGETS, ids=str)
def test_every_product_of_the_table_leads_back_to_its_target_and_every_limit_has_a_source(target):
    assert {parse_target(re.sub(r"^(RTX \d0)$", r"\g<1>90", name)) for name in target.product_names} == {target}
    assert target.limits.source


@pytest.mark.parametrize(
    ("metadata", "target"),
    [
        ({"arch": 80, "device_type": "cuda"}, Target("cuda", "sm_80", 32)),
        (
            {"target": {"capability": 80, "num_warps": 4, "enable_fp_fusion": True}, "device_type": "cuda"},
            Target("cuda", "sm_80", 32),
        ),
        ({"target": ["cuda", 80]}, Target("cuda", "sm_80", 32)),
        ({"target": {"backend": "cuda", "arch": 80, "warp_size": 32}, "arch": "sm90"}, Target("cuda", "sm_80", 32)),
        ({"target": {"backend": "hip", "arch": "gfx942", "warp_size": 64}}, Target("hip", "gfx942", 64)),
        ({"target": {"backend": "hip", "arch": "gfx1100", "warp_size": 64}}, Target("hip", "gfx1100", 64)),
        ({"num_warps": 4, "ctime": {}}, None),
        ({"target": None}, None),
    ],
)
def test_metadata_of_every_vintage_names_its_target(metadata, target):
    assert parse_metadata_target(metadata) == target


def elf(machine: int, abi: int, flags: int) -> bytes:
    head = bytearray(64)
    head[:5] = b"\x7fELF\x02"
    head[8] = abi
    head[18:20] = machine.to_bytes(2, "little")
    head[48:52] = flags.to_bytes(4, "little")
    return bytes(head)


@pytest.mark.parametrize(
    ("suffix", "head", "arch"),
    [
        ("ttgir", b'module attributes {"triton_gpu.compute-capability" = 80 : i32} {', "sm_80"),
        ("ttgir", b'module attributes {"triton_gpu.target" = "cuda:75"} {', "sm_75"),
        ("ttgir", b'module attributes {ttg.target = "hip:gfx942"} {', "gfx942"),
        ("ptx", b"//\n.version 8.1\n.target sm_90a\n.address_size 64", "sm_90"),
        ("amdgcn", b'\t.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"', "gfx90a"),
        ("amdgcn", b'\t.amdgcn_target "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"', "gfx90a"),
        ("amdgcn", b'\t.amdgcn_target "amdgpu9.42-amd-amdhsa-unknown-gfx942"', "gfx942"),
        ("cubin", elf(190, 7, 0x56055A), "sm_90"),
        ("cubin", elf(190, 8, 0x0A005A04), "sm_90"),
        ("cubin", elf(190, 8, 0x0900640A), "sm_100"),
        ("hsaco", elf(224, 3, 0x54C), "gfx942"),
        ("hsaco", elf(224, 2, 0x041), "gfx1100"),
    ],
)
def test_each_stage_tells_its_target_in_the_words_of_its_version(suffix, head, arch):
    assert parse_stage_target(suffix, head).arch == arch


@pytest.mark.parametrize("suffix", ["ttgir", "ptx", "amdgcn", "cubin", "hsaco"])
@pytest.mark.parametrize("head", [b"", b"\x7fELF", b"\xff" * 64, elf(62, 0, 80), elf(224, 3, 0)])
def test_a_stage_that_names_no_target_gives_none(suffix, head):
    assert parse_stage_target(suffix, head) is None
