"""A kernel whose masks bound every index is proven; one without such a mask is not."""

from __future__ import annotations

import pytest

from artifact_inspector.diagnosis.mask_proof import atom, constant, proves_all_accesses
from artifact_inspector.formats.mlir.parser import parse
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText

KERNEL = """
module {
  tt.func public @kernel(%x_ptr: !tt.ptr<f32>, %n: i32) {
    %tile = arith.constant 128 : i32
    %pid = tt.get_program_id x : i32
    %first = arith.muli %pid, %tile : i32
    %lanes = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %start = tt.splat %first : i32 -> tensor<128xi32>
    %at = arith.addi %start, %lanes : tensor<128xi32>
    %limit = tt.splat %n : i32 -> tensor<128xi32>
    %mask = arith.cmpi slt, %at, %limit : tensor<128xi32>
    %base = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %pointer = tt.addptr %base, %at : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %value = tt.load %pointer, %mask : tensor<128x!tt.ptr<f32>>
    tt.store %pointer, %value, %mask : tensor<128x!tt.ptr<f32>>
    tt.return
  }
}
"""
SIZE = atom("size n")


def _is_proven(text: str, shape: list[object]) -> bool:
    (function,) = parse(SourceText("kernel.ttir", text), Stage.TTIR).functions
    return proves_all_accesses(function, {"n": SIZE}, {"x_ptr": [shape]}, {})  # type: ignore[list-item]


def test_a_mask_by_the_extent_proves_every_access() -> None:
    assert _is_proven(KERNEL, [(SIZE, constant(1))])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cmpi slt", "cmpi sle"),
        ("tt.load %pointer, %mask", "tt.load %pointer"),
        ("tt.store %pointer, %value, %mask", "tt.store %pointer, %value"),
        ("cmpi slt, %at, %limit", "cmpi slt, %lanes, %limit"),
        ("addi %start, %lanes : tensor<128xi32>\n    %limit", "subi %start, %lanes : tensor<128xi32>\n    %limit"),
        ("tt.addptr %base, %at", "tt.addptr %base, %loaded"),
    ],
)
def test_another_compare_mask_or_index_is_not_proven(old: str, new: str) -> None:
    assert old in KERNEL
    assert not _is_proven(KERNEL.replace(old, new), [(SIZE, constant(1))])


def test_an_extent_that_the_mask_does_not_name_is_not_proven() -> None:
    assert not _is_proven(KERNEL, [(atom("size m"), constant(1))])
    assert not _is_proven(KERNEL, [(constant(4096), constant(1))])
    assert not _is_proven(KERNEL, [])


def test_a_short_row_is_proven_by_the_end_of_its_range() -> None:
    one_cta = KERNEL.replace("arith.addi %start, %lanes", "arith.addi %lanes, %lanes").replace(", %mask", "")
    assert _is_proven(one_cta, [(constant(255), constant(1))])
    assert not _is_proven(one_cta, [(constant(254), constant(1))])
