"""What operations take while they run, on small TTGIR modules; sizes are those of Triton's own pass.

Where a comment says "Triton", the module was given to the allocation pass of that version and the
number is its `ttg.shared`, `allocation.offset` or `allocation.size`.
"""

from __future__ import annotations

import pytest
from bills import LAYOUTS, bill, bill_of
from handwritten import code_of

from artifact_inspector.analysis.shared.scratch_memory import (
    ScratchRules,
    element_bits,
    find_scratch_rules,
    max_scratch_bytes,
    scratch_bytes,
)
from artifact_inspector.model import Stage, TensorType, TritonVersion


def reduction(shape: str, layout: str, result: str, axis: int = 0, element: str = "f32") -> str:
    return f"""    %x = arith.constant dense<0.0> : tensor<{shape}x{element}, {layout}>
    %y = "tt.reduce"(%x) <{{axis = {axis} : i32}}> ({{
    ^bb0(%l: {element}, %r: {element}):
      %s = arith.addf %l, %r : {element}
      tt.reduce.return %s : {element}
    }}) : (tensor<{shape}x{element}, {layout}>) -> {result}"""


def test_a_reduction_across_warps_keeps_one_value_for_each_warp() -> None:
    (entry,) = bill(reduction("1024", "#row", "f32")).entries
    assert (entry.bytes, entry.purpose, entry.is_scratch) == (4 * 4, "reduction across warps", True)


def test_a_reduction_inside_a_warp_takes_nothing() -> None:
    result = "tensor<128xf32, #ttg.slice<{dim = 1, parent = #blocked}>>"
    assert bill(reduction("128x32", "#blocked", result, axis=1)).entries == ()


OF_2_1 = """
#row = #triton_gpu.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#wide = #triton_gpu.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [1, 0]}>
#tall = #triton_gpu.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #triton_gpu.mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1]}>
"""


@pytest.mark.parametrize(
    ("shape", "layout", "axis", "expected"),
    # `shared` of Triton 2.1 for these modules, on sm_80
    [
        ("1024", "#row", 0, 128 * 4),  # a place for each of 128 threads
        ("256x128", "#wide", 1, 256 * 4 * 4),  # 256 rows by 4 warps are more
        ("8x32", "#wide", 1, 128 * 4),  # one warp's lanes reach the end; four warps are named
        ("64x128", "#tall", 1, 0),  # one warp along the fastest axis
        ("64x128", "#wide", 0, 8 * 128 * 4),  # 8 lanes along the slow axis, of one warp
        ("64x128", "#tall", 0, 8 * 4 * 128 * 4),  # by 4 warps
        ("4x128", "#tall", 0, 4 * 128 * 4),  # no more than there is
        ("64x64", "#mma", 0, 8 * 4 * 64 * 4),  # 8 lanes by 4 warps
        ("64x64", "#mma", 1, 0),
        ("64", "#triton_gpu.slice<{dim = 1, parent = #tall}>", 0, 8 * 4 * 4),
        ("128", "#triton_gpu.slice<{dim = 0, parent = #tall}>", 0, 128 * 4),  # warps along the other axis
    ],
)
def test_a_reduction_of_triton_2_1_has_a_place_for_each_thread(
    shape: str, layout: str, axis: int, expected: int
) -> None:
    kept = shape.split("x")[1 - axis :][:1] if "x" in shape else []
    result = f"tensor<{kept[0]}xf32, #triton_gpu.slice<{{dim = {axis}, parent = {layout}}}>>" if kept else "f32"
    assert bill_of(_of_2(reduction(shape, layout, result, axis)), None, None).peak == expected


def test_what_a_slice_of_several_axes_takes_in_triton_2_1_is_not_known() -> None:
    cube = "#triton_gpu.blocked<{sizePerThread = [1, 1, 8], threadsPerWarp = [2, 4, 4], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>"
    layout = f"#triton_gpu.slice<{{dim = 2, parent = {cube}}}>"
    result = f"tensor<64xf32, #triton_gpu.slice<{{dim = 0, parent = {layout}}}>>"
    (entry,) = bill_of(_of_2(reduction("64x64", layout, result)), None, None).entries
    assert entry.bytes is None


def test_a_reduction_of_triton_2_2_keeps_one_value_for_each_warp() -> None:
    # What tells 2.2 and 2.3 from 2.1 is the number of CTAs in a cluster.
    text = _of_2(reduction("1024", "#row", "f32"), ', "triton_gpu.num-ctas" = 1 : i32')
    assert bill_of(text, None, None).peak == 4 * 4


def _of_2(body: str, more: str = "") -> str:
    header = f'"triton_gpu.num-warps" = 4 : i32, "triton_gpu.threads-per-warp" = 32 : i32{more}'
    return f"{OF_2_1}module attributes {{{header}}} {{\n  tt.func public @k() {{\n{body}\n    tt.return\n  }}\n}}\n"


@pytest.mark.parametrize(("triton", "expected"), [("3.7.1", 4096), ("3.9.0", 2048)])
def test_a_reduction_is_a_conversion_from_triton_3_8_on(triton: str, expected: int) -> None:
    # 4096 = 4 warps · 256 columns · 4 bytes; 2048 is the allocation.size of Triton 3.9.
    result = "tensor<256xf32, #ttg.slice<{dim = 0, parent = #wide}>>"
    assert bill(reduction("64x256", "#wide", result), triton=triton).peak == expected


CONVERSION = """    %x = arith.constant dense<0.0> : tensor<128x64xf16, #mma>
    %y = ttg.convert_layout %x : tensor<128x64xf16, #mma> -> tensor<128x64xf16, #blocked>"""


@pytest.mark.parametrize(
    ("triton", "target", "expected"),
    # 3.3: a tile of 64 × 32, padded by 8 elements a row; 3.6 and 3.9: as Triton's pass has it.
    [("3.3.1", "cuda:80", 64 * (32 + 8) * 2), ("3.6.0", "cuda:80", 4096), ("3.9.0", "cuda:80", 4096)],
)
def test_a_conversion_across_warps_pads_until_3_3_and_swizzles_since(triton: str, target: str, expected: int) -> None:
    assert bill(CONVERSION, triton=triton, target=target).peak == expected


@pytest.mark.parametrize(("used", "expected"), [(True, [4]), (False, [])])
def test_the_result_of_a_scalar_atomic_is_shared_only_when_read(used: bool, expected: list[int]) -> None:
    body = "    %t = arith.constant true\n    %v = arith.constant 1 : i32\n    %y = tt.atomic_rmw add, acq_rel, gpu, %p, %v, %t : (!tt.ptr<i32>, i32, i1) -> i32"
    if used:
        body += "\n    tt.store %p, %y : !tt.ptr<i32>"
    assert [entry.bytes for entry in bill(body).entries] == expected


def test_a_histogram_has_a_bin_for_each_thread_of_a_warp_at_least() -> None:
    body = """    %x = arith.constant dense<0> : tensor<512xi32, #one>
    %y = tt.histogram %x : tensor<512xi32, #one> -> tensor<16xi32, #one>"""
    assert bill(body).peak == 32 * 4
    assert bill(body.replace("16xi32", "64xi32")).peak == 64 * 4


def taken(
    body: str,
    opcode: str,
    *,
    triton: str | None = "3.6.0",
    is_used: bool = True,
    ctas: int = 1,
    target: str = "cuda:80",
    most: bool = False,
) -> int | None:
    """Bytes that the operation of an opcode takes, or the most that it can take."""
    header = f'"ttg.num-ctas" = {ctas} : i32, "ttg.num-warps" = 4 : i32, ttg.target = "{target}", "ttg.threads-per-warp" = 32 : i32'
    text = f"{LAYOUTS}module attributes {{{header}}} {{\n  tt.func public @k(%p: !tt.ptr<i32>) {{\n{body}\n    tt.return\n  }}\n}}\n"
    code = code_of(Stage.TTGIR, text)
    (found,) = (one for one in code.instructions if one.opcode == opcode)
    rules = find_scratch_rules(code, triton and TritonVersion(triton))  # type: ignore[arg-type]
    if most:
        return max_scratch_bytes(found, code, rules)
    return scratch_bytes(found, code, rules, is_used=is_used)


def conversion(source: str, target: str, shape: str = "128x64", element: str = "f16") -> str:
    return f"""    %x = arith.constant dense<0.0> : tensor<{shape}x{element}, {source}>
    %y = ttg.convert_layout %x : tensor<{shape}x{element}, {source}> -> tensor<{shape}x{element}, {target}>"""


def test_a_conversion_to_the_same_layout_takes_nothing() -> None:
    assert taken(conversion("#mma", "#mma"), "ttg.convert_layout") == 0


def test_a_conversion_from_a_layout_that_is_not_modelled_is_not_known() -> None:
    body = conversion("#ttg.new_layout<{}>", "#blocked")
    assert taken(body, "ttg.convert_layout") is None
    assert taken(conversion("#mma", "#blocked"), "ttg.convert_layout", ctas=2) is None


@pytest.mark.parametrize(
    ("source", "most"),
    # 128 × 64 of 16 bits with 8 more elements to each of 128 rows, or to each of 64 columns: the larger
    [("#ttg.new_layout<{}>", 128 * 72 * 2), ("#mma", 64 * 40 * 2)],
)
def test_a_conversion_takes_no_more_than_a_padded_tile(source: str, most: int) -> None:
    body = conversion(source, "#blocked")
    assert taken(body, "ttg.convert_layout", triton="3.3.1", most=True) == most


def test_only_a_conversion_has_a_bound() -> None:
    assert taken(reduction("1024", "#row", "f32"), "tt.reduce", most=True) is None


@pytest.mark.parametrize(("element", "size"), [("f32", 4), ("f16", 2), ("i1", 1), ("f64", 8)])
def test_a_reduction_keeps_whole_bytes_of_each_element(element: str, size: int) -> None:
    body = reduction("1024", "#row", element, element=element)
    assert taken(body, "tt.reduce", triton="3.6.0") == 4 * size


def test_a_reduction_along_an_axis_that_is_not_there_is_not_known() -> None:
    assert taken(reduction("1024", "#row", "f32", axis=1), "tt.reduce") is None
    assert taken(reduction("1024", "#row", "f32"), "tt.reduce", ctas=2) is None


@pytest.mark.parametrize(
    ("shape", "layout", "axis", "expected"),
    [
        ("1024", "#row", 0, 4 * 4),  # each of 4 warps holds runs of 8 · 32
        ("2048", "#row", 0, 8 * 4),
        ("128x32", "#blocked", 1, 0),  # one warp along the rows
        ("64x32", "#blocked", 0, 8 * 32 * 4),  # runs of 8 rows, 32 columns
    ],
)
def test_a_scan_keeps_the_last_of_each_run_of_a_warp(shape: str, layout: str, axis: int, expected: int) -> None:
    body = f"""    %x = arith.constant dense<0.0> : tensor<{shape}xf32, {layout}>
    %y = "tt.scan"(%x) <{{axis = {axis} : i32, reverse = false}}> ({{
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      tt.scan.return %s : f32
    }}) : (tensor<{shape}xf32, {layout}>) -> tensor<{shape}xf32, {layout}>"""
    assert taken(body, "tt.scan") == expected
    assert taken(body, "tt.scan", triton="3.5.0") == (0 if expected == 0 else None)


ATOMIC = """    %t = arith.constant true
    %v = arith.constant 1 : i32
    %y = tt.atomic_rmw add, acq_rel, gpu, %p, %v, %t : (!tt.ptr<i32>, i32, i1) -> i32"""


@pytest.mark.parametrize(
    ("triton", "used", "expected"),
    [("3.6.0", True, 4), ("3.6.0", False, 0), ("3.2.0", False, 0), ("3.1.0", False, 4), (None, False, 0)],
)
def test_a_scalar_atomic_that_nothing_reads_takes_its_bytes_until_3_1_only(
    triton: str | None, used: bool, expected: int
) -> None:
    assert taken(ATOMIC, "tt.atomic_rmw", triton=triton, is_used=used) == expected


@pytest.mark.parametrize(
    ("shape", "triton", "used", "expected"),
    [
        ("128", "3.6.0", True, 0),  # one element for each thread
        ("64", "3.6.0", True, 64 * 4),  # two threads have each
        ("64", "3.6.0", False, 0),
        ("64", "3.5.0", True, None),
        ("64", "3.3.1", True, 0),
        ("64", None, True, None),
    ],
)
def test_the_result_of_an_atomic_is_told_to_the_threads_that_share_an_element(
    shape: str, triton: str | None, used: bool, expected: int | None
) -> None:
    body = f"""    %q = tt.splat %p : !tt.ptr<i32> -> tensor<{shape}x!tt.ptr<i32>, #one>
    %v = arith.constant dense<1> : tensor<{shape}xi32, #one>
    %t = arith.constant dense<true> : tensor<{shape}xi1, #one>
    %y = tt.atomic_rmw add, acq_rel, gpu, %q, %v, %t : (tensor<{shape}x!tt.ptr<i32>, #one>, tensor<{shape}xi32, #one>, tensor<{shape}xi1, #one>) -> tensor<{shape}xi32, #one>"""
    assert taken(body, "tt.atomic_rmw", triton=triton, is_used=used) == expected


def test_an_address_has_64_bits_in_a_register() -> None:
    assert element_bits(TensorType((8,), "!tt.ptr<f16>", 16, "", False)) == 64
    assert element_bits(TensorType((8,), "f16", 16, "", False)) == 16


@pytest.mark.parametrize(
    ("capability", "bits", "counts"),
    [
        (None, 16, (0, 0)),
        (70, 16, (1, 1)),
        (75, 16, (1, 3)),
        (89, 32, (1, 2)),
        (90, 16, (3, 3)),
        (90, 64, (1, 1)),
        (90, 8, (2, 2)),
    ],
)
def test_wide_accesses_are_those_that_the_gpu_has_for_the_element(
    capability: int | None, bits: int, counts: tuple[int, int]
) -> None:
    stores, loads = ScratchRules((3, 6), 32, False, capability).accesses(bits)
    assert (len(stores), len(loads)) == counts


def test_a_version_that_is_not_known_is_neither_before_nor_after() -> None:
    rules = ScratchRules((3, 4), 32, False, 80)
    assert (rules.since((3, 4)), rules.since((3, 5)), rules.since((3, 3))) == (True, False, True)
    assert ScratchRules(None, 32, False, 80).since((3, 4)) is None
