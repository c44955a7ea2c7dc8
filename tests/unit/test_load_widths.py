"""Why loads are narrow, on kernels of one load; expectations follow from what each kernel leaves unsaid."""

import pytest
from handwritten import OFFSETS, address, ptx, ptx_load, stage, tensors

from artifact_inspector.analysis.access.load_widths import LoadWidth, NarrowReason, explain_widths
from artifact_inspector.model import EventKind, Stage

DIVISIBILITY = {"%p": 16, "%n": 16}
"""%q and %odd are what nothing is known of."""
WARPS = 'attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32}'
BLOCKED = "#ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"


def explained(body: str, opcode: str, *, elements: int = 1024, layout: str = BLOCKED) -> LoadWidth:
    """The width of the load `%x` of a body that became one opcode."""
    pointers = f"tensor<{elements}x!tt.ptr<f16>>"
    load = f'%x = tt.load %a{"" if "%m =" not in body else ", %m"} : {pointers} loc("k.py":5:1)'
    first = tensors(Stage.TTIR, body + load)
    with_layout = pointers.replace(">>", f">, {layout}>")
    layouts = tensors(Stage.TTGIR, f'%x = tt.load %a : {with_layout} loc("k.py":5:1)', WARPS)
    (found,) = explain_widths(first, ptx_load(opcode), layouts, DIVISIBILITY)
    return found


def reasons(found: LoadWidth) -> list[tuple[NarrowReason, int, str]]:
    return [(cause.reason, cause.limit, cause.name) for cause in found.causes]


def test_a_load_of_full_width_needs_no_cause() -> None:
    found = explained(OFFSETS + address("%p"), "ld.global.v4.b32")
    assert (found.width, found.causes) == (16, ())


def test_a_pointer_without_divisibility_is_named() -> None:
    # An address of f16 that is known to be a multiple of nothing: one element at a time.
    found = explained(OFFSETS + address("%q"), "ld.global.b16")
    assert reasons(found) == [(NarrowReason.UNALIGNED, 2, "q")]
    assert (found.source, found.name, found.widths) == ("k.py:5", "x", {2: 1})


def test_an_offset_argument_without_divisibility_is_named() -> None:
    shifted = """
    %t = tt.splat %odd : i32 -> tensor<1024xi32>
    %j = arith.addi %i, %t : tensor<1024xi32>
    """
    assert reasons(explained(OFFSETS + shifted + address("%p", "%j"), "ld.global.b16")) == [
        (NarrowReason.UNALIGNED, 2, "odd")
    ]


def test_a_stride_between_neighbours_is_named() -> None:
    strided = """
    %t = tt.splat %n : i32 -> tensor<1024xi32>
    %j = arith.muli %i, %t : tensor<1024xi32>
    """
    found = explained(OFFSETS + strided + address("%p", "%j"), "ld.global.b16")
    assert reasons(found) == [(NarrowReason.STRIDE, 2, "n")]


@pytest.mark.parametrize(
    ("bound", "opcode", "expected"),
    [("%odd", "ld.global.b16", [(NarrowReason.MODULO, 2, "odd")]), ("%n", "ld.global.v4.b32", [])],
)
def test_a_remainder_is_a_cause_where_its_bound_divides_by_too_little(
    bound: str, opcode: str, expected: list[tuple[NarrowReason, int, str]]
) -> None:
    wrapped = f"""
    %t = tt.splat {bound} : i32 -> tensor<1024xi32>
    %j = arith.remsi %i, %t : tensor<1024xi32>
    """
    assert reasons(explained(OFFSETS + wrapped + address("%p", "%j"), opcode)) == expected


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("%c1 = arith.constant dense<1> : tensor<1024xi32>\n%j = arith.addi %i, %c1 : tensor<1024xi32>", (NarrowReason.OFFSET, "")),
        ("%c3 = arith.constant 3 : i32\n%h = arith.muli %pid, %c3 : i32\n%t = tt.splat %h : i32 -> tensor<1024xi32>\n"
         "%j = arith.addi %i, %t : tensor<1024xi32>", (NarrowReason.OFFSET, "")),
        ("%t = tt.splat %n : i32 -> tensor<1024xi32>\n%j = arith.divsi %i, %t : tensor<1024xi32>", (NarrowReason.DIVISION, "n")),
        ("%h = arith.muli %pid, %odd : i32\n%t = tt.splat %h : i32 -> tensor<1024xi32>\n"
         "%j = arith.addi %i, %t : tensor<1024xi32>", (NarrowReason.UNALIGNED, "odd")),
    ],
)  # fmt: skip
def test_what_moves_the_addresses_apart_is_the_cause(operation: str, expected: tuple[NarrowReason, str]) -> None:
    (found,) = reasons(explained(f"{OFFSETS}\n{operation}\n{address('%p', '%j')}", "ld.global.b16"))
    assert (found[0], found[2]) == expected


def test_loaded_addresses_are_a_gather() -> None:
    gathered = (
        address("%p").replace("%a", "%ia").replace("%b", "%ib")
        + """
    %j = tt.load %ia : tensor<1024x!tt.ptr<i32>> loc("k.py":4:1)
    """
    )
    first = tensors(
        Stage.TTIR,
        OFFSETS + gathered + address("%p", "%j") + '%x = tt.load %a : tensor<1024x!tt.ptr<f16>> loc("k.py":5:1)',
    )
    _, found = explain_widths(first, ptx_load("ld.global.b16"), None, DIVISIBILITY)
    assert reasons(found) == [(NarrowReason.GATHER, 2, "j")]


def test_a_bound_without_divisibility_masks_neighbours_apart() -> None:
    masked = """
    %t = tt.splat %odd : i32 -> tensor<1024xi32>
    %m = arith.cmpi slt, %i, %t : tensor<1024xi32>
    """
    found = explained(OFFSETS + address("%p") + masked, "ld.global.b16")
    assert found.masked
    assert reasons(found) == [(NarrowReason.MASK, 2, "odd")]


def test_a_tile_smaller_than_the_block_can_load_at_once_is_a_cause() -> None:
    # 256 elements of 2 bytes for 4 · 32 threads: 4 bytes each.
    pairs = BLOCKED.replace("sizePerThread = [8]", "sizePerThread = [2]")
    found = explained(
        OFFSETS.replace("1024", "256") + address("%p", elements=256), "ld.global.b32", elements=256, layout=pairs
    )
    assert reasons(found) == [(NarrowReason.TILE, 4, "")]


@pytest.mark.parametrize(
    ("pointer", "opcode", "expected"),
    [
        ("%q", "ld.global.b16", [(NarrowReason.UNALIGNED, 2, "q")]),
        ("%p", "ld.global.v2.b32", [(NarrowReason.LAYOUT, 8, "blocked")]),
    ],
)
def test_a_row_that_many_threads_hold_alike_is_not_narrow_for_want_of_elements(
    pointer: str, opcode: str, expected: list[tuple[NarrowReason, int, str]]
) -> None:
    # 64 elements of 2 bytes for 128 threads, one byte each; but every thread reads four of a row for all rows.
    rows = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>"
    found = explained(
        OFFSETS.replace("1024", "64") + address(pointer, elements=64),
        opcode,
        elements=64,
        layout=f"#ttg.slice<{{dim = 0, parent = {rows}}}>",
    )
    assert reasons(found) == expected


def test_a_layout_of_fewer_neighbours_is_a_cause_where_nothing_else_is() -> None:
    # 4 neighbours of 2 bytes.
    narrow = BLOCKED.replace("sizePerThread = [8]", "sizePerThread = [4]")
    found = explained(OFFSETS + address("%p"), "ld.global.v2.b32", layout=narrow)
    assert reasons(found) == [(NarrowReason.LAYOUT, 8, "blocked")]


def test_what_the_back_end_overcame_is_no_cause() -> None:
    # AMD's back end joins loads of unaligned neighbours: 8 bytes, though 2 were proven.
    narrow = BLOCKED.replace("sizePerThread = [8]", "sizePerThread = [2]")
    assert explained(OFFSETS + address("%q"), "ld.global.v2.b32", layout=narrow).causes == ()


def test_a_width_that_nothing_explains_has_no_cause() -> None:
    assert explained(OFFSETS + address("%p"), "ld.global.b32").causes == ()


def test_a_load_that_is_not_found_has_no_width() -> None:
    first = tensors(Stage.TTIR, OFFSETS + address("%p") + '%x = tt.load %a : tensor<1024x!tt.ptr<f16>> loc("k.py":9:1)')
    (found,) = explain_widths(first, ptx_load("ld.global.b16"), None, DIVISIBILITY)
    assert (found.width, found.widths, found.causes) == (None, {}, ())


def test_without_places_the_width_is_known_where_all_loads_have_one() -> None:
    # Triton 2.0 to 2.2 write no places into TTIR.
    first = tensors(Stage.TTIR, OFFSETS + address("%p") + "%x = tt.load %a : tensor<1024x!tt.ptr<f16>>")
    (found,) = explain_widths(first, ptx_load("ld.global.v4.b32"), None, DIVISIBILITY)
    assert (found.width, found.widths) == (16, {})


def test_a_number_for_the_whole_block_is_as_wide_as_it_is() -> None:
    first = tensors(Stage.TTIR, '%x = tt.load %p : !tt.ptr<f16> loc("k.py":5:1)')
    (found,) = explain_widths(first, ptx_load("ld.global.b16"), None, DIVISIBILITY)
    assert reasons(found) == [(NarrowReason.SCALAR, 2, "")]


def test_several_causes_with_one_limit_are_all_named() -> None:
    masked = """
    %t = tt.splat %odd : i32 -> tensor<1024xi32>
    %m = arith.cmpi slt, %i, %t : tensor<1024xi32>
    """
    found = explained(OFFSETS + address("%q") + masked, "ld.global.b16")
    assert reasons(found) == [(NarrowReason.UNALIGNED, 2, "q"), (NarrowReason.MASK, 2, "odd")]


def test_a_helper_that_is_called_may_rely_on_more_than_its_own_text_says() -> None:
    # The divisibility of its arguments stands with its callers.
    load = '%x = tt.load %a : tensor<1024x!tt.ptr<f16>> loc("k.py":5:1)'
    helper = tensors(Stage.TTIR, OFFSETS + address("%q") + load)
    called = stage(
        Stage.TTIR,
        "module {\n  tt.func private @k(%q: !tt.ptr<f16>) {\n"
        + OFFSETS
        + address("%q")
        + load
        + "\n    tt.return\n  }\n  tt.func public @main(%p: !tt.ptr<f16>) {\n"
        + "    tt.call @k(%p) : (!tt.ptr<f16>) -> ()\n    tt.return\n  }\n}\n",
    )
    (alone,) = explain_widths(helper, ptx_load("ld.global.b16"), None, {})
    (relied_on,) = explain_widths(called, ptx_load("ld.global.b16"), None, {})
    assert reasons(alone) == [(NarrowReason.UNALIGNED, 2, "q")]
    assert relied_on.causes == ()


def test_a_scale_that_is_read_once_for_several_columns_is_no_wider_than_its_layout_says() -> None:
    # 64 elements over 128 threads, of which each reads two, or one by one where that is a row's end:
    # the layout is that of a matrix operation, and a larger tile would change nothing.
    sliced = "#ttg.slice<{dim = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, instrShape = [16, 8]}>}>"
    body = OFFSETS.replace("1024", "64") + address("%p", elements=64)
    for opcode, width in (("ld.global.b32", 4), ("ld.global.b16", 2)):
        found = explained(body, opcode, elements=64, layout=sliced)
        assert reasons(found) == [(NarrowReason.LAYOUT, width, "nvidia_mma")]


def test_a_store_is_explained_as_a_load_is_and_neither_counts_for_the_other() -> None:
    body = (
        OFFSETS
        + address("%q")
        + """
    %x = tt.load %a : tensor<1024x!tt.ptr<f16>> loc("k.py":5:1)
    tt.store %a, %x : tensor<1024x!tt.ptr<f16>> loc("k.py":5:1)
    """
    )
    last = ptx(".loc 1 5 1", "ld.global.b32 { %r1 }, [ %rd1 + 0 ];", "st.global.b16 [ %rd1 + 0 ], { %rs1 };")
    stores = frozenset({EventKind.GLOBAL_STORE})
    (found,) = explain_widths(tensors(Stage.TTIR, body), last, None, DIVISIBILITY, stores)
    assert reasons(found) == [(NarrowReason.UNALIGNED, 2, "q")]
    assert (found.source, found.name, found.widths) == ("k.py:5", "", {2: 1})


def test_a_bound_that_is_the_same_for_two_neighbours_leaves_two_together() -> None:
    masked = """
    %two = arith.constant dense<2> : tensor<1024xi32>
    %h = arith.divsi %i, %two : tensor<1024xi32>
    %u = tt.splat %odd : i32 -> tensor<1024xi32>
    %m = arith.cmpi slt, %h, %u : tensor<1024xi32>
    """
    found = explained(OFFSETS + address("%p") + masked, "ld.global.b32")
    assert reasons(found) == [(NarrowReason.MASK, 4, "odd")]


def test_offsets_that_begin_anew_after_two_leave_two_together() -> None:
    turned = """
    %two = arith.constant dense<2> : tensor<1024xi32>
    %j = arith.remsi %i, %two : tensor<1024xi32>
    """
    found = explained(OFFSETS + turned + address("%p", "%j"), "ld.global.b32")
    assert reasons(found) == [(NarrowReason.MODULO, 4, "2")]


def test_the_widths_of_a_load_stand_widest_first() -> None:
    first = tensors(Stage.TTIR, f'{OFFSETS}{address("%p")}%x = tt.load %a : tensor<1024x!tt.ptr<f16>> loc("k.py":5:1)')
    loads = [
        f"ld.global{opcode} {{ %r{n} }}, [ %rd1 + 0 ];" for n, opcode in enumerate((".b16", ".v4.b32", ".b16", ".b32"))
    ]
    (found,) = explain_widths(first, ptx(".loc 1 5 1", *loads), None, DIVISIBILITY)
    assert list(found.widths.items()) == [(16, 1), (4, 1), (2, 2)]


def test_what_a_descriptor_names_has_no_address_to_be_narrow_by() -> None:
    tile = "tensor<16x8xf16>"  # two bytes for each of 128 threads
    load = f'%x = tt.descriptor_load %p[%n, %odd] : !tt.tensordesc<{tile}> -> {tile} loc("k.py":5:1)'
    layouts = tensors(Stage.TTGIR, load, WARPS)
    (found,) = explain_widths(tensors(Stage.TTIR, load), ptx_load("ld.global.b16"), layouts, DIVISIBILITY)
    assert (found.width, found.causes) == (2, ())
