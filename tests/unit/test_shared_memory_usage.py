"""The bill of shared memory, on small TTGIR modules; sizes and offsets are those of Triton's own pass.

Where a comment says "Triton", the module was given to the allocation pass of that version and the
number is its `ttg.shared`, `allocation.offset` or `allocation.size`.
"""

from __future__ import annotations

import pytest
from bills import LAYOUTS, bill, bill_of

from artifact_inspector.analysis.shared.scratch_memory import ScratchRules
from artifact_inspector.analysis.shared.shared_memory_usage import _alignment, _allocated
from artifact_inspector.formats.mlir.types import parse_types
from artifact_inspector.model.limits import BUFFERS
from artifact_inspector.model.shared import SharedRole, SharedUse


def alloc(name: str, shape: str, layout: str = "#shared", element: str = "f16") -> str:
    return f"    %{name} = ttg.local_alloc : () -> !ttg.memdesc<{shape}x{element}, {layout}, #smem, mutable>"


def dealloc(name: str, shape: str, layout: str = "#shared", element: str = "f16") -> str:
    return f"    ttg.local_dealloc %{name} : !ttg.memdesc<{shape}x{element}, {layout}, #smem, mutable>"


def test_an_allocation_costs_all_its_buffers() -> None:
    found = bill(
        "\n".join(
            [
                alloc("a", "3x128x32"),
                "    %i = arith.constant 0 : i32",
                "    %v = ttg.memdesc_index %a[%i] : !ttg.memdesc<3x128x32xf16, #shared, #smem, mutable>"
                " -> !ttg.memdesc<128x32xf16, #shared, #smem, mutable>",
                dealloc("a", "3x128x32"),
            ]
        )
    )
    (entry,) = found.entries
    assert (entry.bytes, entry.buffers, entry.name) == (3 * 128 * 32 * 2, 3, "a")
    assert found.peak == 24576


def test_an_allocation_that_nothing_indexes_is_one_buffer() -> None:
    found = bill("\n".join([alloc("a", "128x32"), dealloc("a", "128x32")]))
    assert found.entries[0].buffers == 1


def test_padding_stands_behind_each_full_interval_but_the_last() -> None:
    # 4096 elements, 8 more behind every 512 of them but the last: 4096 + 7 · 8.
    found = bill(alloc("a", "128x32", "#padded"), target="hip:gfx942")
    assert found.entries[0].bytes == (4096 + 7 * 8) * 2


def test_a_four_bit_element_takes_half_a_byte() -> None:
    assert bill(alloc("a", "128x32", element="i4")).entries[0].bytes == 128 * 32 // 2


def test_fp4_that_is_padded_for_tma_takes_twice_its_bytes() -> None:
    # getAllocationShapePerCTA doubles the packed axis; two such tiles are the 32768 bytes by which the
    # metadata of a matmul e4m3 × e2m1 (Triton 3.6, sm_100) exceeds its other buffers.
    (entry,) = bill(alloc("b", "2x64x128", "#fp4", "i8")).entries
    assert entry.bytes == 2 * (2 * 64 * 128)


def test_buffers_that_are_never_live_together_share() -> None:
    body = [alloc("a", "128x32"), dealloc("a", "128x32"), alloc("b", "64x32"), dealloc("b", "64x32")]
    found = bill("\n".join(body))
    assert [entry.offset for entry in found.entries] == [0, 0]
    assert found.peak == 8192


def test_buffers_that_are_live_together_do_not() -> None:
    body = [alloc("a", "128x32"), alloc("b", "64x32"), dealloc("a", "128x32"), dealloc("b", "64x32")]
    assert bill("\n".join(body)).peak == 8192 + 4096


def test_a_buffer_read_in_a_loop_lives_until_the_loop_ends() -> None:
    read = "ttg.local_load %a : !ttg.memdesc<128x32xf16, #shared, #smem, mutable> -> tensor<128x32xf16, #blocked>"
    body = [
        "    %c = arith.constant 0 : i32",
        alloc("a", "128x32"),
        "    scf.for %i = %c to %c step %c  : i32 {",
        f"      %x = {read}",
        "  " + alloc("b", "128x32"),
        "  " + dealloc("b", "128x32"),
        "      %j = arith.addi %i, %c : i32",
        "    }",
    ]
    found = bill("\n".join(body))
    # In straight-line code b could take a's place; the next iteration reads a again.
    assert found.peak == 2 * 8192
    assert found.entries[0].last > found.entries[1].last


def test_buffers_of_sibling_loops_share_although_the_loops_name_their_arguments_alike() -> None:
    tile = "!ttg.memdesc<128x32xf16, #shared, #smem, mutable>"
    body = ["    %c = arith.constant 0 : i32"]
    for name in "ab":
        body += [
            alloc(name, "128x32"),
            f"    %r{name} = scf.for %i = %c to %c step %c iter_args(%arg1 = %{name}) -> ({tile})  : i32 {{",
            f"      %x = ttg.local_load %arg1 : {tile} -> tensor<128x32xf16, #blocked>",
            f"      scf.yield %arg1 : {tile}",
            "    }",
            dealloc(name, "128x32"),
        ]
    found = bill("\n".join(body))
    assert [entry.offset for entry in found.entries] == [0, 0]
    assert found.peak == 8192


def test_what_the_default_region_reads_lives_until_all_partitions_end() -> None:
    body = [
        alloc("a", "128x32"),
        "    ttg.warp_specialize()",
        "    default {",
        "      %x = ttg.local_load %a : !ttg.memdesc<128x32xf16, #shared, #smem, mutable> -> tensor<128x32xf16, #blocked>",
        "  " + alloc("b", "128x32"),
        "  " + dealloc("b", "128x32"),
        "      ttg.warp_yield",
        "    }",
        "    partition0() num_warps(4) {",
        "      ttg.warp_return",
        "    } : () -> ()",
    ]
    found = bill("\n".join(body))
    # The region is part of one operation, and that operation uses a: b finds no place in it. The states of
    # the partitions' four warps take 4 bytes more.
    assert found.peak == 2 * 8192 + 4
    (states,) = (entry for entry in found.entries if entry.is_scratch)
    assert (states.bytes, states.buffers, states.role) == (4, 1, "states of the partitions' warps")


def test_what_is_handed_to_partitions_lies_at_a_multiple_of_eight() -> None:
    body = [
        alloc("a", "128x32"),
        "    ttg.warp_specialize(%p)",
        "    default {",
        "      %x = ttg.local_load %a : !ttg.memdesc<128x32xf16, #shared, #smem, mutable> -> tensor<128x32xf16, #blocked>",
        "      ttg.warp_yield",
        "    }",
        "    partition0(%q: !tt.ptr<i32>) num_warps(4) {",
        "      ttg.warp_return",
        "    } : (!tt.ptr<i32>) -> ()",
    ]
    found = bill("\n".join(body))
    assert {entry.bytes: entry.offset for entry in found.entries} == {8192: 0, 8: 8192, 4: 8200}


@pytest.mark.parametrize(("warps", "taken"), [((1,), 4), ((4,), 4), ((5,), 8), ((2, 4), 8), ((8, 4), 12)])
def test_the_states_of_partitions_are_those_of_whole_groups_of_four_warps(warps: tuple[int, ...], taken: int) -> None:
    partitions = [
        f"    partition{number}() num_warps({count}) {{\n      ttg.warp_return\n    }}"
        for number, count in enumerate(warps)
    ]
    body = ["    ttg.warp_specialize()", "    default {", "      ttg.warp_yield", "    }", *partitions]
    assert bill("\n".join(body) + " : () -> ()").peak == taken


def test_a_barrier_is_called_one() -> None:
    body = [alloc("b", "1", "#bar", "i64"), "    ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>"]
    (entry,) = bill("\n".join(body)).entries
    assert (entry.bytes, entry.purpose) == (8, "mbarrier")


def test_an_operand_is_named_with_its_dot() -> None:
    body = [
        "    %x = arith.constant dense<0.0> : tensor<128x32xf16, #blocked>",
        "    %b = arith.constant dense<0.0> : tensor<32x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>",
        "    %c = arith.constant dense<0.0> : tensor<128x32xf32, #mma>",
        "    %s = ttg.local_alloc %x : (tensor<128x32xf16, #blocked>) -> !ttg.memdesc<128x32xf16, #shared, #smem>",
        "    %a = ttg.local_load %s : !ttg.memdesc<128x32xf16, #shared, #smem>"
        " -> tensor<128x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>",
        "    %d = tt.dot %a, %b, %c : tensor<128x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>"
        " * tensor<32x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<128x32xf32, #mma>"
        ' loc("m.py":40:3)',
    ]
    assert bill("\n".join(body)).entries[0].purpose == "operand a of the dot at m.py:40"


def reduction(shape: str, layout: str, result: str, axis: int = 0, element: str = "f32") -> str:
    return f"""    %x = arith.constant dense<0.0> : tensor<{shape}x{element}, {layout}>
    %y = "tt.reduce"(%x) <{{axis = {axis} : i32}}> ({{
    ^bb0(%l: {element}, %r: {element}):
      %s = arith.addf %l, %r : {element}
      tt.reduce.return %s : {element}
    }}) : (tensor<{shape}x{element}, {layout}>) -> {result}"""


CONVERSION = """    %x = arith.constant dense<0.0> : tensor<128x64xf16, #mma>
    %y = ttg.convert_layout %x : tensor<128x64xf16, #mma> -> tensor<128x64xf16, #blocked>"""


def test_a_conversion_of_unknown_version_is_left_open_and_not_guessed() -> None:
    found = bill(CONVERSION, triton=None, declared=4096)
    assert found.entries[0].bytes is None
    assert (found.peak, found.is_accounted, found.unexplained_bytes) == (None, False, None)
    assert found.note == "cannot be computed: layout conversion (line 16)"


def test_an_unknown_conversion_that_cannot_be_the_largest_leaves_the_sum_known() -> None:
    unknown = CONVERSION.replace("128x64", "16x16").replace("#mma", "#ttg.new_layout<{}>")
    found = bill("\n".join([alloc("a", "128x32"), dealloc("a", "128x32"), unknown]), declared=8192)
    assert [entry.bytes for entry in found.entries] == [8192, None]
    assert found.is_accounted


def test_a_bill_says_how_much_it_does_not_explain() -> None:
    found = bill(alloc("a", "128x32"), declared=8200)
    assert (found.is_accounted, found.unexplained_bytes) == (False, 8)
    assert found.note == "the TTGIR does not explain 8 of the 8200 bytes in the metadata"
    assert found.entries[0].offset is None


def test_without_metadata_nothing_is_said_to_be_accounted_for() -> None:
    assert bill(alloc("a", "128x32")).is_accounted is None


def test_swizzled_tma_buffers_are_aligned() -> None:
    # Triton 3.6: 0 and 1536 + padding to a multiple of 128 · 64 / 16 = 512, which 1536 is.
    body = [alloc("a", "3x16x16"), alloc("b", "1x8x32", "#nvmma"), alloc("c", "1x1x4"), alloc("d", "1x1x2")]
    body += [dealloc(name, shape) for name, shape in (("a", "3x16x16"), ("c", "1x1x4"), ("d", "1x1x2"))]
    body.append(dealloc("b", "1x8x32", "#nvmma"))
    found = bill("\n".join(body))
    assert [entry.offset for entry in found.entries] == [0, 1536, 2048, 2064]
    # Triton 3.3 asks for 1024 whatever the swizzle.
    before = bill("\n".join(body), triton="3.3.1")
    assert [entry.offset for entry in before.entries][:2] == [0, 2048]


def test_a_called_function_costs_its_caller_what_it_needs() -> None:
    callee = reduction("1024", "#row", "f32")
    text = f"""{LAYOUTS}module attributes {{"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80"}} {{
  tt.func public @k() {{
    tt.call @helper() : () -> ()
    tt.return
  }}
  tt.func private @helper() {{
{callee}
    tt.return
  }}
}}
"""
    found = bill_of(text, "3.6.0", 16)
    assert found.is_accounted
    assert [entry.purpose for entry in found.entries] == ["frame of helper", "reduction across warps"]


def test_tensors_in_shared_memory_are_allocations_of_triton_2() -> None:
    text = """#blocked = #triton_gpu.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #triton_gpu.shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
module attributes {"triton_gpu.num-warps" = 4 : i32, "triton_gpu.threads-per-warp" = 32 : i32} {
  tt.func public @k() {
    %x = arith.constant dense<0.0> : tensor<128x32xf16, #blocked>
    %a = triton_gpu.alloc_tensor : tensor<2x128x32xf16, #shared>
    %s = triton_gpu.convert_layout %x : (tensor<128x32xf16, #blocked>) -> tensor<128x32xf16, #shared>
    %c = arith.constant 0 : i32
    %v = triton_gpu.extract_slice %a[%c, 0, 0] [1, 128, 32] [1, 1, 1] : tensor<2x128x32xf16, #shared> to tensor<128x32xf16, #shared>
    tt.return
  }
}
"""
    found = bill_of(text, None, None)
    assert [(entry.bytes, entry.buffers) for entry in found.entries] == [(16384, 2), (8192, 1)]


@pytest.mark.parametrize(("triton", "expected"), [("3.2.0", [0, 4096]), ("3.3.1", [8192, 0])])
def test_the_largest_buffer_is_placed_first_from_triton_3_3_on(triton: str, expected: list[int]) -> None:
    # Triton 3.2.0 and 3.3.1: their `allocation.offset` of these two.
    body = [alloc("a", "64x32"), alloc("b", "128x32"), dealloc("a", "64x32"), dealloc("b", "128x32")]
    assert [entry.offset for entry in bill("\n".join(body), triton=triton).entries] == expected


def test_the_share_of_a_cta_in_a_cluster_is_not_known() -> None:
    text = f"""{LAYOUTS}module attributes {{"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"}} {{
  tt.func public @k() {{
{alloc("a", "128x32")}
    tt.return
  }}
}}
"""
    found = bill_of(text, "3.6.0", 4096)
    assert (found.entries[0].bytes, found.peak, found.is_accounted) == (None, None, False)


def test_nothing_takes_no_memory() -> None:
    assert bill("    %c = arith.constant 0 : i32", declared=0).is_accounted


@pytest.mark.parametrize(
    ("layout", "triton", "stated", "alignment"),
    [
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>", (3, 3), None, 1024),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>", (3, 4), None, 1024),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>", (3, 4), None, 512),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>", (3, 4), None, 128),
        (
            "#ttg.shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], hasLeadingOffset = true}>",
            (3, 1),
            None,
            1024,
        ),
        (
            "#ttg.shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], hasLeadingOffset = false}>",
            (3, 2),
            None,
            8,
        ),
        ("#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>", (3, 3), None, 16),
        ("#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>", None, None, 16),
        ("#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>", (3, 6), 256, 256),
    ],
)
def test_an_allocation_is_aligned_to_what_its_layout_or_its_author_asks_for(
    layout: str, triton: tuple[int, int] | None, stated: int | None, alignment: int
) -> None:
    (memory,) = parse_types(f"!ttg.memdesc<64x64xf16, {layout}, #smem>", {})
    use = SharedUse(SharedRole.BUFFER, alignment=stated)
    assert _alignment(use, memory, ScratchRules(triton, 32, False, 80)) == alignment


@pytest.mark.parametrize(
    ("shape", "padding", "taken"),
    # a row of 4 more behind every 64 elements, none behind the last; two paddings add up
    [
        ("64x64", "64:+4", 64 * 64 + 63 * 4),
        ("3x5", "4:+4", 15 + 3 * 4),
        ("64x64", "64:+4, 1024:+16", 4096 + 63 * 4 + 3 * 16),
        ("8x8", "0:+4", 64),
    ],
)
def test_a_padded_allocation_has_nothing_behind_its_last_element(shape: str, padding: str, taken: int) -> None:
    layout = f"#ttg.padded_shared<[{padding}] {{order = [1, 0], shape = [64, 64]}}>"
    (memory,) = parse_types(f"!ttg.memdesc<{shape}xf16, {layout}, #smem>", {})
    assert _allocated(memory) == taken * 2


@pytest.mark.parametrize(
    ("declared", "note"),
    [
        (None, ""),
        (8192, ""),
        (8200, "the TTGIR does not explain 8 of the 8200 bytes in the metadata"),
        (8000, "the allocations in the TTGIR need 192 bytes more than the 8000 in the metadata"),
    ],
)
def test_what_the_metadata_says_and_the_text_does_not_is_told(declared: int | None, note: str) -> None:
    body = "\n".join([alloc("a", "128x32"), dealloc("a", "128x32")])
    found = bill(body, declared=declared)
    assert (found.peak, found.note) == (8192, note)
    assert [entry.live for entry in found.entries] == [(found.entries[0].first, found.entries[0].last)]


def test_more_buffers_than_are_placed_leave_the_sum_open(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "\n".join(alloc(name, "8x8") for name in "abc")
    monkeypatch.setenv(BUFFERS.variable, "3")
    assert bill(body).peak == 128  # none is live with another
    monkeypatch.setenv(BUFFERS.variable, "2")
    found = bill(body)
    assert (found.peak, [entry.bytes for entry in found.entries]) == (None, [128] * 3)
    assert "more than 2 buffers" in found.note
