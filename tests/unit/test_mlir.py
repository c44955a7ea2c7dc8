"""The TTIR and TTGIR reader: every construct that Triton prints, in lines as it prints them."""

from __future__ import annotations

from textwrap import dedent

import pytest

from artifact_inspector.errors import ParseError
from artifact_inspector.formats.mlir.parser import FORMAT, OPCODES
from artifact_inspector.model import (
    AccessOperands,
    EventKind,
    Frame,
    Function,
    Instruction,
    Module,
    Operands,
    Queue,
    Stage,
    TensorType,
    Transfer,
    WaitOp,
)
from artifact_inspector.model.text import SourceText

NOTHING = Module(Stage.TTGIR, "k.ttgir", (), {})


def read(text: str) -> Module:
    return FORMAT.parse(SourceText("k.ttgir", text), Stage.TTGIR)


def function(body: str, arguments: str = "%p: !tt.ptr<f32>, %n: i32", tail: str = "") -> Function:
    module = read(
        f"module {{\n  tt.func public @k({arguments}) {{\n{dedent(body).strip()}\n  tt.return\n  }}\n}}\n{tail}"
    )
    assert module.problems == ()
    (only,) = module.functions
    return only


def one(line: str, tail: str = "") -> Instruction:
    first, end = function(line, tail=tail).instructions
    assert end.opcode == "tt.return"
    return first


def edges(found: Function) -> dict[str, list[str]]:
    return {f"{b.index}:{b.label}": [found.blocks[s].label for s in b.successors] for b in found.blocks}


def flows(found: Function) -> set[tuple[str, str, bool]]:
    return {(flow.source, flow.target, flow.is_back_edge) for flow in found.flows}


# -- instructions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("%a = tt.load %p evictionPolicy = evict_last : tensor<1x64x!tt.ptr<f16>, #b>", "GLOBAL_LOAD"),
        ("%a = tt.load %p {cache = 1 : i32, evict = 3 : i32, isVolatile = false} : tensor<1x64xf16, #b>", "GLOBAL_LOAD"),
        ("%k_33 = amdg.buffer_load %k_ptr[%k_32] : tensor<16x16xf16, #blocked1>", "GLOBAL_LOAD"),
        ("%5 = amdgpu.buffer_load %p[%off], %mask : tensor<64xf32>", "GLOBAL_LOAD"),
        ("%b = tt.descriptor_load %d[%x, %y] : !tt.tensordesc<tensor<64x32xf16>> -> tensor<64x32xf16>", "GLOBAL_LOAD"),
        ("%9 = triton_gpu.insert_slice_async %p, %buf, %i, %m, %o {axis = 0 : i32} : tensor<8x!tt.ptr<f16>> -> tensor<3x8xf16>", "ASYNC_COPY"),
        ("%a = ttg.async_copy_global_to_local %p, %v mask %m other %c : tensor<8x!tt.ptr<f16>> -> <8xf16, #s>", "ASYNC_COPY"),
        ("%t = amdg.buffer_load_to_local %p[%off] into %buf : <f16>[tensor<8xi32>] -> <8xf16, #s>", "ASYNC_COPY"),
        ("ttng.async_tma_copy_global_to_local %d[%x, %y] %buf, %bar, %true : !tt.tensordesc<f16> -> !ttg.memdesc<f16>", "ASYNC_COPY"),
        ("triton_gpu.async_commit_group", "COMMIT"),
        ("%a_62 = ttg.async_commit_group tokens %a_61", "COMMIT"),
        ("ttng.barrier_expect %bar, 12288, %true : !ttg.memdesc<1xi64>", "COMMIT"),
        ("%w = ttg.async_wait %t {num = 4 : i32}", "WAIT"),
        ("ttng.wait_barrier %bar, %phase deps %x : !ttg.memdesc<1xi64>", "WAIT"),
        ("%d:3 = ttng.warp_group_dot_wait %x, %y, %z {pendings = 1 : i32} : f32, f32, f32", "WAIT"),
        ("%s = triton_gpu.local_load %buf : !tt.memdesc<8xf16> -> tensor<8xf16>", "SHARED_LOAD"),
        ("ttg.local_store %v, %buf : tensor<8xf16> -> !ttg.memdesc<8xf16>", "SHARED_STORE"),
        ("%d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>", "MATRIX"),
        ("%d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e4m3 : f8", "MATRIX"),
        ("%d = triton_nvidia_gpu.warp_group_dot %a, %b, %c {inputPrecision = 0 : i32} : f16", "MATRIX"),
        ("ttng.tc_gen5_mma %a, %b, %d, %use, %pred, %bar[%true] {is_async} : !ttg.memdesc<f16>", "MATRIX"),
        ("%x = arith.addf %a, %b : tensor<64xf32>", "FLOAT"),
        ("%x = arith.cmpf ogt, %a, %b : f32", "FLOAT"),
        ("%x = math.exp2 %a : tensor<64xf32>", "FLOAT"),
        ("%x = math.absi %a : i32", "INTEGER"),
        ("%x = arith.addi %a, %b : i32", "INTEGER"),
        ("%x = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>", "INTEGER"),
        ("%x = arith.extf %a : tensor<64xf16> to tensor<64xf32>", "MOVE"),
        ("%x = arith.select %c, %a, %b : f32", "MOVE"),
        ("gpu.barrier", "BARRIER"),
        ("%x = ttg.convert_layout %a : tensor<8xf16, #a> -> tensor<8xf16, #b>", "LAYOUT_CONVERSION"),
        ("rocdl.sched.barrier 0", "SCHEDULE_HINT"),
        ("rocdl.s.setprio 1", "SCHEDULE_HINT"),
        ("tt.store %p, %v, %m : tensor<64x!tt.ptr<f32>>", "GLOBAL_STORE"),
        ("%o = tt.atomic_rmw fadd, relaxed, gpu, %p, %v, %m : (tensor<8x!tt.ptr<f32>>, f32, i1) -> f32", "ATOMIC"),
        ("%o = amdgpu.buffer_atomic_rmw fadd, relaxed, gpu, %v, %p[%off] : f32", "ATOMIC"),
        ("%0 = dialect.of_tomorrow %a : f32", "UNKNOWN"),
    ],
)  # fmt: skip
def test_an_operation_of_any_vintage_has_its_kind(line: str, kind: str) -> None:
    assert one(line).kind.name == kind


def test_operands_are_values_and_neither_types_nor_attributes() -> None:
    load = one("%a_50 = tt.load %ptrs, %mask, %cst_0 {cache = 1 : i32} : tensor<128x32x!tt.ptr<f16>>")
    assert load.operands == Operands(("%a_50",), ("%ptrs", "%mask", "%cst_0"))
    assert load.operands.reads == load.operands.reads


def test_several_results_are_named_one_by_one() -> None:
    wait = one("%d:3 = ttng.warp_group_dot_wait %x#1, %y {pendings = 1 : i32} : f32, f32, f32")
    assert wait.operands == Operands(("%d#0", "%d#1", "%d#2"), ("%x#1", "%y"))


@pytest.mark.parametrize(
    ("line", "access"),
    [
        ("%a = tt.load %p, %m, %o : f16", AccessOperands(("%p",), ("%m",), ("%o",))),
        ("%a = tt.load %p : f16", AccessOperands(("%p",), (), ())),
        ("tt.store %p, %v, %m : f16", AccessOperands(("%p",), ("%m",), ("%v",))),
        ("tt.store %p, %v : f16", AccessOperands(("%p",), (), ("%v",))),
        ("%o = tt.atomic_rmw fadd, relaxed, gpu, %p, %v, %m : f32", AccessOperands(("%p",), ("%m",), ("%v",))),
        ("%a = amdg.buffer_load %p[%off], %m, %o : f16", AccessOperands(("%p", "%off"), ("%m",), ("%o",))),
        ("amdg.buffer_store %v, %p[%off], %m : f16", AccessOperands(("%p", "%off"), ("%m",), ("%v",))),
        (
            "%a = ttg.async_copy_global_to_local %p, %buf mask %m other %o : f16",
            AccessOperands(("%p",), ("%m",), ("%o",)),
        ),
        ("%a = ttg.async_copy_global_to_local %p, %buf : f16", AccessOperands(("%p",), (), ())),
        (
            "%9 = triton_gpu.insert_slice_async %p, %buf, %i, %m, %o : f16",
            AccessOperands(("%p",), ("%m",), ("%buf", "%o")),
        ),
    ],
)
def test_reads_of_a_memory_operation_are_told_by_role(line: str, access: AccessOperands) -> None:
    assert FORMAT.access_operands is not None
    assert FORMAT.access_operands(one(line)) == access


@pytest.mark.parametrize(
    ("line", "depth", "queue", "barrier"),
    [
        ("triton_gpu.async_wait {num = 2 : i32}", 2, Queue.GROUP, None),
        ("%w = ttg.async_wait %a, %b {num = 0 : i32}", 0, Queue.GROUP, None),
        ("%d:3 = ttng.warp_group_dot_wait %x, %y, %z {pendings = 1 : i32} : f32", 1, Queue.MATRIX, None),
        ("triton_nvidia_gpu.dot_wait %x {pendings = 1 : i32} : tensor<64x64xf32>", 1, Queue.MATRIX, None),
        ("ttng.wait_barrier %bar, %phase : !ttg.memdesc<1xi64>", None, Queue.PHASE, "%bar"),
        ("ttng.async_tma_store_wait {pendings = 3 : i32}", 3, Queue.STORES, None),
        ("triton_gpu.async_bulk_wait {num = 1 : i32}", 1, Queue.STORES, None),
        ("%x = amdg.async_tdm_wait %y {num = 2 : i32}", 2, Queue.TENSORS, None),
        ("%x = amdg.async_wait %y {num_inst = 4 : i32}", 4, Queue.COPIES, None),
    ],
)
def test_a_wait_names_what_it_leaves_pending(line: str, depth: int | None, queue: Queue, barrier: str | None) -> None:
    found = one(line)
    assert FORMAT.wait(found, NOTHING) == WaitOp(found.opcode, depth, queue, barrier)


def test_no_other_operation_is_a_wait() -> None:
    assert FORMAT.wait(one("%x = arith.addf %a, %b {num = 2 : i32} : f32"), NOTHING) is None


# -- reductions ----------------------------------------------------------------------------------

REDUCE = """
    %s = "tt.reduce"(%x) <{{axis = {axis} : i32}}> ({{
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tt.reduce.return %w : f32
    }}) : (tensor<{shape}xf32>) -> tensor<64xf32>
"""


def test_a_reduction_is_one_float_operation_and_its_body_none() -> None:
    found = function(REDUCE.format(axis=1, shape="64x16"))
    assert [(x.opcode, x.kind.name) for x in found.instructions[:-1]] == [
        ("tt.reduce", "FLOAT"),
        ("arith.addf", "OTHER"),
        ("tt.reduce.return", "OTHER"),
    ]
    assert len(found.blocks) == 1


@pytest.mark.parametrize(("axis", "shape", "kind"), [(0, "1x64", "MOVE"), (1, "1x64", "FLOAT"), (1, "64x1", "MOVE")])
def test_a_reduction_along_an_axis_of_extent_one_moves(axis: int, shape: str, kind: str) -> None:
    assert function(REDUCE.format(axis=axis, shape=shape)).instructions[0].kind.name == kind


@pytest.mark.parametrize("location", ["", " loc(#loc1)"])
def test_a_reduction_bears_the_types_behind_its_body(location: str) -> None:
    body = REDUCE.format(axis=1, shape="64x16").rstrip() + location
    found = function(body, tail='#loc1 = loc("k.py":3:5)')
    reduction = found.instructions[0]
    assert reduction.text == ('%s = "tt.reduce"(%x) <{axis = 1 : i32}> : (tensor<64x16xf32>) -> tensor<64xf32>')
    assert FORMAT.tensor_types(reduction, NOTHING) == (
        TensorType((64, 16), "f32", 32, "", False),
        TensorType((64,), "f32", 32, "", False),
    )


# -- control flow --------------------------------------------------------------------------------


def test_a_for_is_a_loop_whose_arguments_arrive_by_flows() -> None:
    found = function("""
        %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init, %q = %p) -> (f32, !tt.ptr<f32>)  : i32 {
          %v = tt.load %q : !tt.ptr<f32>
          %next = arith.addf %acc, %v : f32
          scf.yield %next, %q : f32, !tt.ptr<f32>
        }
        tt.store %p, %r#0 : !tt.ptr<f32>
    """)
    assert edges(found) == {"0:entry": ["for"], "1:for": ["for", "after"], "2:after": []}
    assert flows(found) == {
        ("%init", "%acc", False),
        ("%p", "%q", False),
        ("%next", "%acc", True),
        ("%q", "%q", True),
        ("%next", "%r#0", False),
        ("%q", "%r#1", False),
    }


def test_a_while_decides_in_front_of_its_body() -> None:
    found = function("""
        %r:2 = scf.while (%acc = %init, %k = %c0) : (f32, i32) -> (f32, i32) {
          %go = arith.cmpi slt, %k, %n : i32
          scf.condition(%go) %acc, %k : f32, i32
        } do {
        ^bb0(%acc_1: f32, %k_1: i32):
          %next = arith.addf %acc_1, %v : f32
          scf.yield %next, %k_1 : f32, i32
        }
    """)
    assert edges(found) == {"0:entry": ["while"], "1:while": ["do", "after"], "2:do": ["while"], "3:after": []}
    assert flows(found) >= {
        ("%acc", "%r#0", False),
        ("%acc", "%acc_1", False),
        ("%k", "%k_1", False),
        ("%next", "%acc", True),
        ("%k_1", "%k", True),
    }


def test_both_arms_of_an_if_hand_over_its_result() -> None:
    found = function("""
        %r = scf.if %c -> (f32) {
          scf.yield %a : f32
        } else {
          scf.yield %b : f32
        }
        tt.store %p, %r : !tt.ptr<f32>
    """)
    assert edges(found) == {"0:entry": ["then", "else"], "1:then": ["join"], "2:else": ["join"], "3:join": []}
    assert flows(found) == {("%a", "%r", False), ("%b", "%r", False)}


def test_an_if_without_else_can_be_passed_by() -> None:
    found = function("""
        scf.if %c {
          tt.store %p, %a : !tt.ptr<f32>
        }
    """)
    assert edges(found) == {"0:entry": ["then", "join"], "1:then": ["join"], "2:join": []}


def test_a_loop_in_an_if_in_a_loop_nests() -> None:
    found = function("""
        scf.for %i = %c0 to %n step %c1  : i32 {
          scf.if %c {
            scf.for %j = %c0 to %n step %c1  : i32 {
              %x = tt.load %p : f32
            }
          }
        }
    """)
    assert edges(found) == {
        "0:entry": ["for"],
        "1:for": ["then", "join"],
        "2:then": ["for"],
        "3:for": ["for", "after"],
        "4:after": ["join"],
        "5:join": ["for", "after"],
        "6:after": [],
    }


def test_branches_pass_values_to_block_arguments() -> None:
    found = function("""
        cf.cond_br %c, ^bb1(%a : f32), ^bb2
        ^bb1(%x: f32):  // 2 preds: ^bb0, ^bb1
          cf.cond_br %c, ^bb1(%x : f32), ^bb2
        ^bb2:  // pred: ^bb0
          tt.store %p, %a : !tt.ptr<f32>
    """)
    assert edges(found) == {"0:entry": ["bb1", "bb2"], "1:bb1": ["bb1", "bb2"], "2:bb2": []}
    assert flows(found) == {("%a", "%x", False), ("%x", "%x", True)}
    assert {flow.owner for flow in found.flows} == {-2}


def test_the_partitions_of_a_warp_specialised_kernel_are_blocks_side_by_side() -> None:
    found = function("""
        ttg.warp_specialize(%p, %n) attributes {requestedRegisters = array<i32: 24>}
        default {
          %x = tt.load %p : f32
          ttg.warp_yield
        }
        partition0(%q: !tt.ptr<f32>, %m: i32) num_warps(1) {
          %y = tt.load %q : f32
          ttg.warp_return
        } : (!tt.ptr<f32>, i32) -> ()
    """)
    assert [(p.name, p.first, p.stop) for p in found.partitions] == [("default", 1, 2), ("partition0", 2, 3)]
    assert edges(found) == {
        "0:entry": ["default", "partition0"],
        "1:default": ["join"],
        "2:partition0": ["join"],
        "3:join": [],
    }
    assert flows(found) == {("%p", "%q", False), ("%n", "%m", False)}


# -- functions and the module --------------------------------------------------------------------


def test_arguments_and_attributes_of_a_function_are_read_from_its_line() -> None:
    found = function(
        "%x = tt.load %a_ptr : f32",
        arguments='%a_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc("a_ptr"(#loc)), %n: i32 {tt.max = 7 : i32}',
    )
    assert found.arguments == ("%a_ptr", "%n")
    assert (found.name, found.line) == ("k", 2)


def test_a_helper_that_is_not_inlined_is_a_function_of_its_own() -> None:
    module = read("""module {
  tt.func public @k(%p: !tt.ptr<f32>) {
    %0 = tt.call @"k.helper__Pfp32(3,)"(%p) : (!tt.ptr<f32>) -> f32
    tt.return
  }
  tt.func private @"k.helper__Pfp32(3,)"(%p: !tt.ptr<f32>) -> f32 attributes {noinline = true} {
    %0 = tt.load %p : !tt.ptr<f32>
    tt.return %0 : f32
  }
  tt.func private @declared(!tt.ptr<f32>) -> f32
}
""")
    assert [(f.name, len(f.instructions)) for f in module.functions] == [("k", 2), ("k.helper__Pfp32(3,)", 2)]


@pytest.mark.parametrize(
    ("header", "attributes"),
    [
        (
            'module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80"} {',
            {"ttg.num-warps": "4", "ttg.target": "cuda:80"},
        ),
        ('module attributes {"triton_gpu.num-warps" = 8 : i32} {', {"triton_gpu.num-warps": "8"}),
        ("module {", {}),
    ],
)
def test_the_module_says_what_it_was_made_for(header: str, attributes: dict[str, str]) -> None:
    assert read(f"{header}\n  tt.func public @k() {{\n    tt.return\n  }}\n}}\n").attributes == attributes


# -- locations -----------------------------------------------------------------------------------

PLACES = """
#loc = loc("/src/k.py":8:0)
#loc1 = loc("/src/k.py":20:17)
#loc2 = loc("/venv/standard.py":263:15)
#loc3 = loc("/venv/standard.py":293:36)
#loc4 = loc(unknown)
#loc5 = loc("/src/k.py":0:0)
#loc6 = loc(callsite(#loc3 at #loc1))
#loc7 = loc(callsite(#loc2 at #loc6))
#loc8 = loc("acc"(#loc7))
#loc9 = loc(fused[#loc4, #loc1])
#loc10 = loc(fused<"pass">[#loc2, #loc1])
#loc11 = loc(callsite(#loc2 at #loc4))
#loc12 = loc("x"(#loc13))
#loc13 = loc("y"(#loc12))
"""
USER, REDUCE_AT, SUM_AT = (
    Frame("/src/k.py", 20, 17),
    Frame("/venv/standard.py", 263, 15),
    Frame("/venv/standard.py", 293, 36),
)


@pytest.mark.parametrize(
    ("written", "location"),
    [
        ("#loc1", (USER,)),
        ('"/src/k.py":20:17', (USER,)),
        ("#loc7", (REDUCE_AT, SUM_AT, USER)),
        ("#loc8", (REDUCE_AT, SUM_AT, USER)),
        ("callsite(#loc2 at #loc1)", (REDUCE_AT, USER)),
        ("callsite(callsite(#loc2 at #loc3) at #loc1)", (REDUCE_AT, SUM_AT, USER)),
        ("#loc9", (USER,)),
        ("#loc10", (REDUCE_AT,)),
        ("#loc4", None),
        ("#loc5", None),
        ("#loc11", None),
        ("#loc12", None),
    ],
)
def test_a_location_resolves_to_its_whole_chain_innermost_first(written: str, location: object) -> None:
    load = one(f"%a = tt.load %p : f32 loc({written})", tail=PLACES)
    assert load.location == location
    assert load.text == "%a = tt.load %p : f32"


def test_a_place_that_no_line_defines_shows_that_the_file_is_cut_off() -> None:
    found = read(
        "module {\n  tt.func public @k(%p: !tt.ptr<f32>) {\n    %a = tt.load %p : f32 loc(#loc99)\n"
        "    tt.store %p, %a : !tt.ptr<f32> loc(#loc99)\n    tt.return\n  }\n}\n" + PLACES
    )
    assert found.problems == ("line 3: #loc99 is not defined in the file, which must be truncated",)
    two = read(
        "module {\n  tt.func public @k() {\n    %a = tt.a : f32 loc(#loc98)\n    %b = tt.b : f32 loc(#loc99)\n  }\n}\n"
    )
    assert two.problems == ("line 3: 2 names, first #loc98, are not defined in the file, which must be truncated",)
    assert not found.is_complete
    assert found.functions[0].instructions[0].location is None


@pytest.mark.parametrize(
    "cut", ["callsite(#loc2 at #loc1", '"total"(#loc1', '"a(b)', '"total"(callsite(#loc2 at #loc1)']
)
def test_a_place_that_is_cut_off_shows_that_the_file_is(cut: str) -> None:
    tail = f'#loc1 = loc("k.py":20:17)\n#loc2 = loc("(h.py":2:1)\n#loc3 = loc({cut}'
    body = "module {\n  tt.func public @k(%p: !tt.ptr<f32>) {\n    %a = tt.load %p : f32 loc(#loc3)\n    tt.return\n  }\n}\n"
    assert read(body + tail + ")").problems == ("line 3: #loc3 is not defined in the file, which must be truncated",)
    if "at #loc1" in cut:
        assert read(f"{body}{tail}))\n").is_complete


def test_an_operation_with_regions_is_placed_by_its_closing_brace() -> None:
    found = function("scf.for %i = %c0 to %n step %c1  : i32 {\n} loc(#loc1)", tail=PLACES)
    assert found.instructions[0].location == (USER,)


# -- text that is not whole ----------------------------------------------------------------------

WHOLE = "module {\n  tt.func public @k(%p: !tt.ptr<f32>) {\n    %a = tt.load %p : f32\n    tt.return\n  }\n}\n"


def test_a_truncated_function_is_kept_as_far_as_it_goes_and_named() -> None:
    module = read(WHOLE[: WHOLE.index("    tt.return")])
    assert [x.opcode for x in module.functions[0].instructions] == ["tt.load"]
    assert module.problems == ("line 2: function k is not closed: the file is truncated",)


def test_a_module_that_is_not_closed_is_named_and_one_that_is_closed_is_whole() -> None:
    assert read(WHOLE).problems == ()
    assert read(WHOLE[:-2]).problems == ("line 1: the module is not closed: the file is truncated",)
    assert read("module {}\n" + WHOLE).problems == ()


def test_carriage_returns_change_nothing() -> None:
    assert [(x.line, x.opcode, x.kind) for x in read(WHOLE.replace("\n", "\r\n")).functions[0].instructions] == [
        (x.line, x.opcode, x.kind) for x in read(WHOLE).functions[0].instructions
    ]


def test_a_line_that_is_not_understood_is_a_named_problem() -> None:
    module = read(WHOLE.replace("%a = tt.load %p : f32", "?!"))
    assert module.problems == ("line 3: unreadable operation: ?!",)


@pytest.mark.parametrize("text", ["", "module {\n}\n", "define void @k() {\n}\n", "// nothing"])
def test_text_without_a_triton_function_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(ParseError, match="no Triton function") as caught:
        read(text)
    assert caught.value.span.label == "k.ttgir:1:1"
    assert caught.value.remedy is not None


def test_a_module_is_recognised_by_its_functions() -> None:
    assert FORMAT.sniff(WHOLE)
    assert not FORMAT.sniff("define void @k() {\n}\n")
    assert not FORMAT.sniff(".version 8.4\n.target sm_80\n")


def test_every_row_of_the_table_is_an_operation_of_a_dialect() -> None:
    assert {name.partition(".")[0] for name in OPCODES.rows} >= {
        "tt",
        "ttg",
        "ttng",
        "amdg",
        "arith",
        "math",
        "scf",
        "cf",
    }
    assert OPCODES.kind("tt.load") is EventKind.GLOBAL_LOAD


def test_triton_2_0_leaves_out_the_dialect_of_functions_returns_and_selections() -> None:
    text = """module attributes {"triton_gpu.num-warps" = 4 : i32} {
  func public @matmul_0d1d2c(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: i32) {
    %9 = "triton_gpu.cmpi"(%arg1, %arg1) {predicate = 2 : i64} : (i32, i32) -> i1
    %10 = select %9, %arg1, %arg1 : i32
    %11 = tt.reduce %12 {axis = 0 : i32, redOp = 2 : i32} : tensor<64x256xf32> -> tensor<256xf32>
    return
  }
}
"""
    found = FORMAT.parse(SourceText("k.ttgir", text), Stage.TTGIR)
    (function,) = found.functions
    assert found.problems == ()
    assert FORMAT.sniff(text)
    assert (function.name, function.arguments) == ("matmul_0d1d2c", ("%arg0", "%arg1"))
    assert [(x.opcode, x.kind) for x in function.instructions] == [
        ("triton_gpu.cmpi", EventKind.INTEGER),
        ("select", EventKind.MOVE),
        ("tt.reduce", EventKind.FLOAT),
        ("return", EventKind.BRANCH),
    ]


# -- transfers and matrix operations -------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # 128 × 32 halves are 8192 bytes
        (
            "%a = tt.load %p, %m, %o evictionPolicy = evict_last : tensor<128x32x!tt.ptr<f16>, #b>",
            Transfer(8192, Queue.USE, ("evict_last",), is_per_block=True),
        ),
        # TritonAttrDefs.td until 2.3: none, ca, cg … are 1, 2, 3 …; normal, first, last are 1, 2, 3
        (
            "%a = tt.load %p {cache = 3 : i32, evict = 2 : i32, isVolatile = true} : tensor<1x64xf16, #b>",
            Transfer(128, Queue.USE, ("cg", "evict_first", "volatile"), is_per_block=True),
        ),
        (
            "%a = tt.load %p {cache = 1 : i32, evict = 1 : i32, isVolatile = false} : tensor<1x64xf16>",
            Transfer(128, Queue.USE, is_per_block=True),
        ),
        (
            "%a = tt.load %p cacheModifier = ca {isVolatile = true} : tensor<64x!tt.ptr<f32>>",
            Transfer(256, Queue.USE, ("ca", "volatile"), is_per_block=True),
        ),
        (
            "%a = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>}"
            " : tensor<64x!tt.ptr<i8>>",
            Transfer(64, Queue.USE, ("cg", "evict_first"), is_per_block=True),
        ),
        ("%a = tt.load %p : !tt.ptr<i64>", Transfer(8, Queue.USE, is_per_block=True)),
        ("%a = tt.load %p {cache = 1 : i32, evict = 1 : i32} : bf16", Transfer(2, Queue.USE, is_per_block=True)),
        (
            "%a = tt.load %p {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<128x64xf16>>",
            Transfer(16384, Queue.USE, is_per_block=True),
        ),
        (
            "%a = amdg.buffer_load %p[%o], %m cacheModifier = cs stride = %s : !tt.ptr<f16> -> tensor<128x32xf16, #b>",
            Transfer(8192, Queue.USE, ("cs",), is_per_block=True),
        ),
        (
            "%a = tt.descriptor_load %d[%i, %j] : !tt.tensordesc<tensor<64x32xf16, #s>> -> tensor<64x32xf16>",
            Transfer(4096, Queue.USE, is_per_block=True),
        ),
        (
            "tt.descriptor_store %d[%i, %j], %v : !tt.tensordesc<64x32xf16>, tensor<64x32xf16>",
            Transfer(4096, None, is_per_block=True),
        ),
        ("tt.store %p, %v, %m : tensor<256x!tt.ptr<f32>, #b>", Transfer(1024, None, is_per_block=True)),
        (
            "amdg.buffer_store %v, %p[%o], %m : !tt.ptr<f16> -> tensor<128x32xf16, #mma>",
            Transfer(8192, None, is_per_block=True),
        ),
        (
            "%r = tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %m : (tensor<256x!tt.ptr<f16>>, tensor<256xf16>, tensor<256xi1>) -> tensor<256xf16>",
            Transfer(512, Queue.USE, is_per_block=True),
        ),
        (
            "%r = tt.atomic_rmw add, acq_rel, gpu, %p, %v, %m : (!tt.ptr<i32>, i32, i1) -> i32",
            Transfer(4, Queue.USE, is_per_block=True),
        ),
        (
            "%r = amdg.buffer_atomic_rmw fadd, relaxed, gpu, %v, %p[%o] : !tt.ptr<f32> -> tensor<256xf32, #b>",
            Transfer(1024, Queue.USE, is_per_block=True),
        ),
        # the third of three slices: what is copied is the tile of pointers
        (
            "%r = triton_gpu.insert_slice_async %p, %buf, %c2, %m, %o {axis = 0 : i32, cache = 3 : i32} : tensor<128x32x!tt.ptr<f16>, #b> -> tensor<3x128x32xf16, #s>",
            Transfer(8192, Queue.GROUP, ("cg",), is_per_block=True),
        ),
        (
            "%t = ttg.async_copy_global_to_local %p, %buf mask %m other %o : tensor<128x32x!tt.ptr<f16>, #b> -> <128x32xf16, #s, #smem, mutable, 2x128x32>",
            Transfer(8192, Queue.GROUP, is_per_block=True),
        ),
        (
            "%t = amdg.buffer_load_to_local %p[%o] mask = %m stride = %s into %buf {contiguity = 8 : i32} : !tt.ptr<f16>[tensor<128x64xi32, #l>]  -> <128x64xf16, #s, #smem, mutable>",
            Transfer(16384, Queue.GROUP, is_per_block=True),
        ),
        (
            "ttng.async_tma_copy_global_to_local %d[%i, %j] %buf, %bar, %true : !tt.tensordesc<64x32xf16, #s>, !ttg.memdesc<1xi64, #s1, #smem, mutable> -> !ttg.memdesc<64x32xf16, #s, #smem, mutable>",
            Transfer(4096, Queue.PHASE, is_per_block=True, barrier="%bar"),
        ),
        (
            "%r = triton_nvidia_gpu.insert_slice_tma %p, %buf, %c0, %bar {axis = 0 : i32, cache = 1 : i32} : !tt.ptr<tensor<64x32xf16>, 1> -> tensor<3x64x32xf16, #s>",
            Transfer(4096, Queue.PHASE, is_per_block=True, barrier="%bar"),
        ),
        (
            "ttng.async_tma_copy_local_to_global %d[%i, %j] %v : !tt.tensordesc<tensor<64x32xf16, #s>>, !ttg.memdesc<64x32xf16, #s, #smem>",
            Transfer(4096, Queue.STORES, is_per_block=True),
        ),
        (
            "%t = amdg.async_tdm_copy_global_to_local %d into %buf : !tt.tensordesc<128x64xf16, #s> -> !ttg.memdesc<128x64xf16, #s, #smem, mutable>",
            Transfer(16384, Queue.TENSORS, is_per_block=True),
        ),
        (
            "%t = amdg.async_tdm_copy_local_to_global %v from %d : !ttg.memdesc<128x128xf16, #s, #smem, mutable> -> !tt.tensordesc<128x128xf16, #s>",
            Transfer(32768, Queue.TENSORS, is_per_block=True),
        ),
        ("%v = ttg.local_load %buf : !ttg.memdesc<64xf32, #s, #smem> -> tensor<64xf32, #b>", None),
    ],
)
def test_a_transfer_tells_the_bytes_of_the_tile(line: str, expected: Transfer | None) -> None:
    assert FORMAT.transfer(one(line), NOTHING) == expected


@pytest.mark.parametrize(
    ("line", "shape", "types"),
    [
        (
            "%d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<128x32xf16, #x> * tensor<32x64xf16, #y> -> tensor<128x64xf32, #m>",
            "m128n64k32",
            "f16×f16→f32",
        ),
        (
            "%d = tt.dot %a, %b, %c {allowTF32 = true} : tensor<16x32xf8E5M2> * tensor<32x64xf8E4M3FN> -> tensor<16x64xf16>",
            "m16n64k32",
            "f8E5M2×f8E4M3FN→f16",
        ),
        (
            "%d = tt.dot %a, %b, %c : tensor<4x16x32xf16> * tensor<4x32x64xf16> -> tensor<4x16x64xf32>",
            "m16n64k32×4",
            "f16×f16→f32",
        ),
        (
            "%d = triton_nvidia_gpu.dot_async %a, %b, %c {inputPrecision = 0 : i32} : !tt.memdesc<128x32xf16, #s, mutable> * !tt.memdesc<32x64xf16, #s, mutable> -> tensor<128x64xf32, #m>",
            "m128n64k32",
            "f16×f16→f32",
        ),
        (
            "%d = ttng.warp_group_dot %a, %b, %c {isAsync = true} : tensor<64x32xbf16, #x> * !ttg.memdesc<32x128xbf16, #s, #smem> -> tensor<64x128xf32, #m>",
            "m64n128k32",
            "bf16×bf16→f32",
        ),
        (
            "ttng.tc_gen5_mma %a, %b, %d, %use, %true, %bar[%true] {is_async} : !ttg.memdesc<64x32xf16, #s, #smem>, !ttg.memdesc<32x16xf16, #s, #smem>, !ttg.memdesc<64x16xf32, #t, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #s1, #smem, mutable>",
            "m64n16k32",
            "f16×f16→f32",
        ),
        (
            "%d = tt.dot_scaled %a scale %x, %b scale %y, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<128x128xf8E4M3FN>, tensor<128x4xi8> * tensor<128x32xf8E4M3FN>, tensor<32x4xi8> -> tensor<128x32xf32>",
            "m128n32k128",
            "e4m3×e4m3→f32",
        ),
        # two values of four bits in a byte, along k on both sides
        (
            "%d = tt.dot_scaled %a scale %x, %b scale %y, %c lhs = e2m1 rhs = e2m1 {fastMath = false} : tensor<128x64xi8>, tensor<128x4xi8> * tensor<64x32xi8>, tensor<32x4xi8> -> tensor<128x32xf32>",
            "m128n32k128",
            "e2m1×e2m1→f32",
        ),
        # … on one side only, and along m
        (
            "%d = tt.dot_scaled %a, %b scale %y, %c lhs = e2m1 rhs = e5m2 {fastMath = false, lhs_k_pack = false} : tensor<64x128xi8> * tensor<128x32xf8E5M2>, tensor<32x4xi8> -> tensor<128x32xf32>",
            "m128n32k128",
            "e2m1×e5m2→f32",
        ),
        (
            "ttng.tc_gen5_mma_scaled %a, %b, %d, %x, %y, %use, %true lhs = e2m1 rhs = e4m3, %bar[%true] {is_async} : !ttg.memdesc<128x64xi8, #s, #smem>, !ttg.memdesc<128x32xf8E4M3FN, #s, #smem>, !ttg.memdesc<128x32xf32, #t, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #u, #ttng.tensor_memory>, !ttg.memdesc<32x4xi8, #u, #ttng.tensor_memory>, !ttg.memdesc<1xi64, #s1, #smem, mutable>",
            "m128n32k128",
            "e2m1×e4m3→f32",
        ),
    ],
)
def test_a_dot_tells_the_shape_of_its_values(line: str, shape: str, types: str) -> None:
    found = FORMAT.matrix(one(line), NOTHING)
    assert found is not None
    assert (found.shape, found.types, found.family, found.issuer) == (shape, types, "dot", "block")


def test_a_dot_whose_operands_do_not_fit_has_no_shape() -> None:
    line = "%d = tt.dot %a, %b, %c : tensor<16x32xf16> * tensor<16x64xf16> -> tensor<16x64xf32>"
    assert FORMAT.matrix(one(line), NOTHING) is None


@pytest.mark.parametrize(
    ("line", "queue"),
    [
        ("triton_gpu.async_commit_group", Queue.GROUP),
        ("%t = ttg.async_commit_group tokens %a", Queue.GROUP),
        ("ttng.barrier_expect %bar, 6144, %true : !ttg.memdesc<1xi64, #s, #smem, mutable>", Queue.PHASE),
        ("ttng.tc_gen5_commit %bar : !ttg.memdesc<1xi64, #s, #smem, mutable>", Queue.MATRIX),
        ("ttg.async_wait {num = 0 : i32}", None),
    ],
)
def test_a_commit_closes_a_group_of_its_queue(line: str, queue: Queue | None) -> None:
    assert FORMAT.commit(one(line)) == queue


def test_the_attributes_of_a_loop_stand_behind_its_closing_brace() -> None:
    loop = function(
        """
        scf.for %i = %n to %n step %n  : i32 {
          %b = arith.addi %n, %n : i32
        } {tt.num_stages = 3 : i32} loc(#loc1)
        """,
        tail=PLACES,
    ).instructions[0]
    assert loop.text.endswith("{tt.num_stages = 3 : i32}")


def test_the_signature_tells_what_divides_an_argument() -> None:
    arguments = '%x: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc("x"(#loc)), %n: i32 loc("n"(#loc))'
    assert function("%b = arith.addi %n, %n : i32", arguments).divisibility == {"%x": 16}


def test_an_argument_is_called_as_the_source_does_though_a_variable_has_its_place_in_the_text() -> None:
    found = function(
        "",
        '%right: i32 loc("right"(#loc7)), %n: i32 {tt.divisibility = 16 : i32} loc("n"(#loc))',
        '#loc7 = loc("count"(#loc))\n#loc = loc("k.py":3:0)\n',
    )
    assert found.arguments == ("%right", "%n")
    assert found.source_names == {"%right": "count"}
