"""Tensor maps that a kernel makes itself, as ptxas 13.0 lays them out for sm_90."""

from __future__ import annotations

import struct

import pytest
from saved import FIXTURES

from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.interpreter.tensor_maps import decode_map
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.prediction import predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.objdump import binary_disassembler


def a_map(rank: int, element: int, strides: list[int], extents: list[int], box: list[int]) -> bytes:
    """As each `tensormap.replace` of a kernel changes its bytes, extents and box the innermost first."""
    held = bytearray(128)
    struct.pack_into("<Q", held, 0, 0x7FDF_5540_0000)
    struct.pack_into("<I", held, 8, (rank - 1) << 4 | element << 7 | 3 << 13)
    for axis, stride in enumerate(strides):
        struct.pack_into("<I", held, 12 + 4 * axis, stride >> 4 & 0xFFFF_FFFF)
        held[28 + axis // 2] |= (stride >> 36) << 4 * (axis % 2)
    for axis, extent in enumerate(extents):
        struct.pack_into("<I", held, 32 + 4 * axis, extent - 1)
        held[55 + axis] = box[axis] - 1
    return bytes(held)


def test_a_map_of_floats_is_read() -> None:
    found = decode_map(a_map(2, 7, [4000], [1000, 300], [32, 32]))
    assert found is not None
    tensor = found.tensor
    assert (tensor.shape, tensor.dtype, tensor.strides) == ((300, 1000), "f32", (1000, 1))
    assert tensor.pointer == 0x7FDF_5540_0000
    assert found.box == (32, 32)


def test_a_map_has_up_to_five_extents_and_strides_of_40_bits() -> None:
    strides = [256, 1 << 20, 1 << 37, 3 << 37]
    found = decode_map(a_map(5, 6, strides, [64, 8, 4, 2, 3], [64, 8, 1, 1, 256]))
    assert found is not None
    assert found.tensor.strides == (*(stride // 2 for stride in reversed(strides)), 1)
    assert found.tensor.shape == (3, 2, 4, 8, 64)
    assert found.box == (256, 1, 1, 8, 64)


def test_elements_of_fewer_than_eight_bits_are_not_read() -> None:
    assert decode_map(a_map(2, 13, [64], [64, 64], [64, 64])) is None


@pytest.mark.parametrize(("m", "n", "k"), [(160, 144, 80), (256, 320, 32)])
def test_copies_are_those_of_the_tiles(m: int, n: int, k: int) -> None:
    """One warp issues each copy; the others, and the prefetches past the end, execute it with a false guard."""
    shapes = {"a_ptr": (m, k), "b_ptr": (n, k), "c_ptr": (m, n)}
    arguments = {name: Tensor(shape, "fp16") for name, shape in shapes.items()}
    tiles, steps = -(-m // 64) * -(-n // 64), -(-k // 32)
    request = LaunchRequest((-(-m // 64), -(-n // 64), 1), {**arguments, "M": m, "N": n, "K": k})
    kernel = load_kernel(open_cache(FIXTURES / "3.6.0/sm_90/matmul_descriptor").entries[0], binary_disassembler())
    counters = predict_counters(simulate_launch(*match_launch(kernel, request))).counters
    assert counters.tensor_copy_instructions == tiles * (2 * steps + 1)
