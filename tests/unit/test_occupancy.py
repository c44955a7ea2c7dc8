"""How many blocks fit: against a real GPU, and by the rules of LLVM worked out by hand."""

import pytest
from waves import find_warps_per_partition

from artifact_inspector.analysis.resources.occupancy import find_occupancy
from artifact_inspector.hardware.targets import parse_target

# Measured on an H200 (driver 580, CUDA 13.0) with cuOccupancyMaxActiveBlocksPerMultiprocessor: registers,
# barriers, bytes of shared memory (static and dynamic), warps per block, and the blocks it answered.
MEASURED = [
    (8, 0, 49152, 5, 4),
    (8, 0, 1000, 6, 10),
    (8, 0, 1024, 7, 9),
    (22, 1, 9216, 2, 22),
    (22, 1, 100000, 12, 2),
    (22, 1, 240000, 9, 0),
    (22, 2, 24000, 16, 4),
    (22, 2, 1024, 2, 32),
    (22, 2, 1024, 4, 16),
    (22, 3, 1, 5, 12),
    (22, 3, 1000, 17, 3),
    (22, 3, 49152, 1, 4),
    (22, 4, 8192, 5, 12),
    (22, 4, 100000, 2, 2),
    (22, 4, 75000, 12, 3),
    (22, 5, 232448, 24, 1),
    (22, 5, 24000, 12, 5),
    (22, 5, 1024, 8, 8),
    (22, 8, 8192, 9, 7),
    (22, 8, 8192, 16, 4),
    (22, 8, 33000, 3, 6),
    (22, 15, 60000, 5, 3),
    (22, 15, 200000, 16, 1),
    (22, 15, 1024, 4, 4),
    (22, 16, 75000, 12, 3),
    (22, 16, 24000, 7, 4),
    (22, 16, 60000, 24, 2),
    (32, 0, 8192, 1, 25),
    (32, 0, 24000, 9, 7),
    (32, 0, 8192, 6, 10),
    (40, 0, 24000, 6, 8),
    (40, 0, 0, 3, 16),
    (40, 0, 49152, 1, 4),
    (48, 0, 1000, 3, 13),
    (48, 0, 8192, 2, 20),
    (48, 0, 0, 12, 3),
    (56, 0, 8192, 2, 18),
    (56, 0, 115712, 9, 2),
    (56, 0, 1000, 8, 4),
    (64, 0, 100000, 16, 2),
    (64, 0, 1024, 1, 32),
    (64, 0, 24000, 1, 9),
    (72, 0, 1, 5, 5),
    (72, 0, 232448, 1, 1),
    (72, 0, 33000, 3, 6),
    (80, 0, 0, 3, 8),
    (80, 0, 8192, 1, 24),
    (80, 0, 232448, 2, 1),
    (96, 0, 24000, 3, 6),
    (96, 0, 1024, 4, 5),
    (96, 0, 49152, 2, 4),
    (128, 0, 1024, 4, 4),
    (128, 0, 60000, 17, 0),
    (128, 0, 115712, 12, 1),
    (168, 0, 24000, 1, 9),
    (168, 0, 115712, 4, 2),
    (168, 0, 0, 3, 4),
    (254, 0, 24000, 1, 8),
    (254, 0, 1024, 3, 2),
    (254, 0, 33000, 1, 6),
]


@pytest.mark.parametrize(("registers", "barriers", "shared", "warps", "blocks"), MEASURED)
def test_blocks_are_those_that_an_h200_answers(registers, barriers, shared, warps, blocks):
    found = find_occupancy(
        parse_target("H200"), registers=registers, shared_bytes=shared, warps_per_block=warps, barriers=barriers
    )
    assert (found.unit, found.blocks, found.warps) == ("SM", blocks, blocks * warps)
    assert found.missing == ()


# cuda_occupancy.h on an A100: 65536 registers in 4 partitions; 168 registers are 5376 a warp, so 3 warps
# a partition and 12 an SM. 40960 + 1024 bytes go into 167936 exactly 4 times.
@pytest.mark.parametrize(
    ("registers", "shared", "warps", "blocks", "limited_by"),
    [
        (168, 0, 4, 3, ("registers",)),
        (168, 0, 12, 1, ("registers",)),
        (168, 0, 13, 0, ("registers",)),
        (32, 40960, 4, 4, ("shared memory",)),
        (32, 40961, 4, 3, ("shared memory",)),
        (32, 166912, 4, 1, ("shared memory",)),
        (32, 166913, 4, 0, ("shared memory",)),
        (32, 0, 4, 16, ("warps", "registers")),
        (16, 0, 4, 16, ("warps",)),
        (16, 0, 1, 32, ("blocks",)),
        (16, 0, 33, 0, ("warps",)),
        (256, 0, 1, 0, ("registers",)),
    ],
)
def test_the_resource_that_limits_is_named(registers, shared, warps, blocks, limited_by):
    found = find_occupancy(parse_target("A100"), registers=registers, shared_bytes=shared, warps_per_block=warps)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)


def test_the_share_is_of_the_warps_that_an_sm_can_hold():
    found = find_occupancy(parse_target("T4"), registers=128, shared_bytes=0, warps_per_block=4)
    # 128 registers are 4096 a warp: 4 warps a partition, 16 of the 32 that an SM of sm_75 holds.
    assert (found.warps, found.max_warps, found.ratio) == (16, 32, 0.5)


# LLVM, getNumWavesPerEUWithNumVGPRs and getOccupancyWithNumSGPRs: registers rounded up to the granule
# into the file of one SIMD, at most the waves of that SIMD; scalar registers up to 80, 88, 100 on gfx9.
@pytest.mark.parametrize(
    ("arch", "vector", "scalar", "waves"),
    [
        ("gfx906", 24, 16, 10),
        ("gfx906", 25, 16, 9),
        ("gfx906", 24, 81, 9),
        ("gfx906", 24, 89, 8),
        ("gfx906", 24, 101, 7),
        ("gfx908", 128, 16, 2),
        ("gfx908", 129, 16, 1),
        ("gfx90a", 64, 100, 8),
        ("gfx90a", 64, 102, 7),
        ("gfx942", 194, 54, 2),
        ("gfx942", 168, 54, 3),
        ("gfx942", 512, 54, 1),
        ("gfx950", 128, 16, 4),
        ("gfx1030", 64, 106, 16),
        ("gfx1030", 65, 106, 12),
        ("gfx1100", 96, 106, 16),
        ("gfx1100", 97, 106, 12),
        ("gfx1201", 256, 106, 5),
        ("gfx1250", 644, 66, 1),
        ("gfx1250", 64, 66, 16),
    ],
)
def test_waves_per_simd_follow_llvms_rules(arch, vector, scalar, waves):
    assert find_warps_per_partition(parse_target(arch), vector, scalar) == waves


def test_a_workgroup_processor_is_two_compute_units_with_one_lds():
    ask = {"registers": 96, "shared_bytes": 40000, "warps_per_block": 4}
    alone = find_occupancy(parse_target("gfx1100"), **ask, workgroup_processor=False)
    both = find_occupancy(parse_target("gfx1100"), **ask)
    # 40960 bytes after rounding to 1024: once in 64 KiB, three times in 128 KiB.
    assert (alone.unit, alone.blocks, alone.max_warps) == ("CU", 1, 32)
    assert (both.unit, both.blocks, both.max_warps) == ("WGP", 3, 64)


def test_blocks_of_several_waves_share_the_barriers_of_a_compute_unit():
    ask = {"registers": 32, "shared_bytes": 0}
    assert find_occupancy(parse_target("gfx90a"), **ask, warps_per_block=1).blocks == 32
    # LLVM, getMaxWorkGroupsPerCU: min(40 / 2, 16)
    found = find_occupancy(parse_target("gfx906"), registers=24, shared_bytes=0, warps_per_block=2)
    assert (found.blocks, found.limited_by) == (16, ("barriers",))


def test_blocks_without_tensor_memory_are_resident_and_wait():
    ask = {"registers": 64, "shared_bytes": 0, "warps_per_block": 4}
    # 512 columns a multiprocessor (PTX ISA, Tensor Memory)
    found = find_occupancy(parse_target("B200"), **ask, tensor_columns=256)
    assert (found.blocks, found.limited_by, found.blocks_by_resource["tensor memory"]) == (8, ("registers",), 2)
    assert find_occupancy(parse_target("B200"), **ask, tensor_columns=0).blocks == 8


def test_an_unknown_target_names_what_is_missing():
    found = find_occupancy(parse_target("sm_130"), registers=64, shared_bytes=0, warps_per_block=4)
    assert (found.blocks, found.warps, found.ratio, found.limited_by) == (None, None, None, ())
    assert found.missing == ("limits of one SM of sm_130",)


def test_a_figure_that_is_not_known_is_missing_by_name():
    found = find_occupancy(parse_target("A100"), registers=None, shared_bytes=None, warps_per_block=0)
    assert found.missing == ("registers per thread", "bytes of shared memory per block", "warps per block")


def test_what_is_known_still_says_what_it_allows():
    found = find_occupancy(parse_target("A100"), registers=None, shared_bytes=40960, warps_per_block=4)
    assert (found.blocks, found.missing) == (None, ("registers per thread",))
    # 41984 of 167936 bytes, 4 of 64 warps, 32 blocks
    assert found.blocks_by_resource == {"shared memory": 4, "warps": 16, "blocks": 32}
