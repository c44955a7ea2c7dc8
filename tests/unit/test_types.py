"""Tensor types and layouts, as the dialects of Triton 2.0 to 3.9 print them."""

from __future__ import annotations

import pytest

from artifact_inspector.formats.mlir.types import element_bits, parse_layouts, parse_types
from artifact_inspector.model import TensorType


def only(text: str) -> TensorType:
    (found,) = parse_types(text, {})
    return found


def test_a_type_tells_shape_element_and_layout() -> None:
    layouts = {"#b": "#ttg.blocked<{sizePerThread = [1, 8]}>"}
    (found,) = parse_types("%x = arith.addf %a, %b : tensor<128x32xf16, #b>", layouts)
    assert found[:5] == ((128, 32), "f16", 16, "#ttg.blocked<{sizePerThread = [1, 8]}>", False)
    assert found.encoding is not None
    assert found.encoding.size_per_thread == (1, 8)
    assert (found.elements, found.size) == (4096, 8192)


def test_types_stand_in_the_order_of_the_text() -> None:
    found = parse_types(
        "%r = tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %m : "
        "(tensor<256x!tt.ptr<f16>>, tensor<256xf16>, tensor<256xi1>) -> tensor<256xf16>",
        {},
    )
    assert [x.element for x in found] == ["!tt.ptr<f16>", "f16", "i1", "f16"]


def test_a_layout_inside_another_is_resolved() -> None:
    (found,) = parse_types(
        "tensor<64xf32, #ttg.slice<{dim = 0, parent = #b}>>", {"#b": "#ttg.blocked<{order = [1, 0]}>"}
    )
    assert found.layout == "#ttg.slice<{dim = 0, parent = #ttg.blocked<{order = [1, 0]}>}>"


@pytest.mark.parametrize(
    "layout",
    [
        "#triton_gpu.mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1]}>",
        "#triton_gpu.dot_op<{opIdx = 0, parent = #triton_gpu.mma<{versionMajor = 2}>, kWidth = 2}>",
        "#ttg.linear<{register = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0]], warp = [], block = []}>",
        "#ttg.amd_wmma<{version = 3, ctaLayout = {warp = [[1, 0], [2, 0]]}, instrShape = [16, 16, 32]}>",
        "#ttg.padded_shared<[512:+8] {offset = [[0, 1]], block = []}>",
    ],
)
def test_brackets_of_a_layout_do_not_end_the_type(layout: str) -> None:
    found = only(f"%x = op %y : tensor<16x16xf32, {layout}> ")
    assert found.layout == layout


@pytest.mark.parametrize(
    "text",
    [
        "!tt.memdesc<2x128x32xf16, #shared, mutable>",
        "!triton_gpu.memdesc<2x128x32xf16, #shared, #triton_gpu.shared_memory, mutable>",
        "!ttg.memdesc<2x128x32xf16, #shared, #smem, mutable, 3x128x32>",
        # the dialect is left out where the operation takes nothing else
        "ttg.async_copy_global_to_local %p, %b : !tt.ptr<i8> -> <2x128x32xf16, #shared, #smem, mutable>",
        # until 2.3 memory is a tensor
        "triton_gpu.alloc_tensor : tensor<2x128x32xf16, #triton_gpu.shared<{vec = 8}>>",
    ],
)
def test_a_view_of_shared_memory_is_memory(text: str) -> None:
    found = only(text)
    assert (found.shape, found.element, found.is_memory) == ((2, 128, 32), "f16", True)


def test_registers_are_no_memory() -> None:
    assert not only("tensor<16xf32, #triton_gpu.slice<{dim = 1, parent = #triton_gpu.shared}>>").is_memory


@pytest.mark.parametrize(
    "text",
    [
        "%d = tt.make_tensor_descriptor %p, [%m], [%s] : <f16>, <64x32xf16>",
        "%d = tt.make_tensor_descriptor %p, [%m], [%s] : <f16>, <tensor<64x32xf16>>",
        "%d = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<tensor<64x32xf16, #s>>",
        "tt.call @f(%d) : (!tt.tensordesc<64x32xf16, #s>) -> ()",
        "%x = tt.load %p : !tt.ptr<f32>",
        "%c = arith.cmpi slt, %a, %b : i32",
        "%x = vector.load %a : vector<4xf32>",
    ],
)
def test_scalars_and_descriptors_are_no_tensors(text: str) -> None:
    assert parse_types(text, {}) == ()


def test_a_pointer_to_a_tensor_counts_as_the_tensor() -> None:
    found = only("%a = tt.load %p {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<128x64xf16>>")
    assert (found.shape, found.size) == ((128, 64), 16384)


@pytest.mark.parametrize(
    ("element", "bits"),
    [
        ("f16", 16),
        ("bf16", 16),
        ("tf32", 32),
        ("f64", 64),
        ("f8E4M3FN", 8),
        ("f8E5M2", 8),
        ("f4E2M1FN", 4),
        ("i1", 1),
        ("i64", 64),
        ("ui8", 8),
        ("index", 64),
        ("!tt.ptr<f16>", 16),
        ("!tt.ptr<bf16, 1>", 16),
        ("!tt.ptr<!tt.ptr<f16>>", 64),
        ("!ttg.async.token", 0),
    ],
)
def test_bits_are_those_of_the_element_or_of_what_it_points_at(element: str, bits: int) -> None:
    assert element_bits(element) == bits


def test_a_type_without_its_end_is_left_out() -> None:
    assert parse_types("%x = tt.load %p : tensor<128x32xf16, #ttg.blocked<{sizePerThread = [1,", {}) == ()


def test_an_alias_may_use_the_one_above_it() -> None:
    layouts = parse_layouts(
        "#blocked = #ttg.blocked<{order = [1, 0]}>\n"
        "#half = #ttg.slice<{dim = 0, parent = #blocked}>\n"
        "#smem = #ttg.shared_memory\n"
        '#loc = loc("k.py":1:1)\n'
        "module {\n"
    )
    assert layouts == {
        "#blocked": "#ttg.blocked<{order = [1, 0]}>",
        "#half": "#ttg.slice<{dim = 0, parent = #ttg.blocked<{order = [1, 0]}>}>",
        "#smem": "#ttg.shared_memory",
    }
