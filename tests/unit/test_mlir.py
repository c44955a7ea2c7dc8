"""TTIR and TTGIR: operations, control flow, values handed over, locations."""

from textwrap import dedent

import pytest

from artifact_inspector.errors import ParseError
from artifact_inspector.formats.mlir import FORMAT, access, decode
from artifact_inspector.model import EventKind, Frame, Function, Instruction, Module, Stage
from artifact_inspector.source import SourceText


def parse(text: str) -> Module:
    return FORMAT.parse(SourceText("k.ttgir", dedent(text)), Stage.TTGIR)


def function(body: str) -> Function:
    return parse(
        f"module {{\n tt.func public @k(%n: i32) {{\n{dedent(body)}\n tt.return\n }}\n}}\n"
    ).functions[0]


def edges(found: Function) -> dict[str, list[str]]:
    return {block.label: [found.blocks[s].label for s in block.successors] for block in found.blocks}


def one(line: str) -> Instruction:
    return function(line).instructions[0]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("%a = tt.load %p : tensor<64x!tt.ptr<f16>>", EventKind.GLOBAL_LOAD),
        ("%a = amdgpu.buffer_load %p[%o], %m : tensor<64xf16>", EventKind.GLOBAL_LOAD),
        ("%a = amdg.buffer_load_to_local %p[%o] into %b : <f16>", EventKind.ASYNC_COPY),
        ("%a = triton_gpu.insert_slice_async %p, %b, %i, %m, %o {axis = 0 : i32}", EventKind.ASYNC_COPY),
        (
            "%a = ttg.async_copy_global_to_local %p, %b : tensor<64x!tt.ptr<f16>> -> <64xf16>",
            EventKind.ASYNC_COPY,
        ),
        ("ttng.async_tma_copy_local_to_global %d[%i] %b : !tt.tensordesc<64xf16>", EventKind.GLOBAL_STORE),
        ("%t = triton_gpu.async_commit_group %a", EventKind.COMMIT),
        ("ttng.barrier_expect %b, 8192, %true : !ttg.memdesc<1xi64>", EventKind.COMMIT),
        ("triton_gpu.async_wait {num = 2 : i32}", EventKind.WAIT),
        ("%w:3 = ttng.warp_group_dot_wait %a, %b, %c {pendings = 1 : i32}", EventKind.WAIT),
        ("%a = triton_nvidia_gpu.dot_async %x, %y, %z : tensor<64xf16>", EventKind.MATRIX),
        ("%a = tt.dot_scaled %x scale %s, %y scale %t, %z lhs = e4m3", EventKind.MATRIX),
        ("%a = math.exp2 %x : tensor<64xf32>", EventKind.FLOAT),
        ("%a = math.absi %x : tensor<64xi32>", EventKind.INTEGER),
        ("%a = arith.cmpf ogt, %x, %y : tensor<64xf32>", EventKind.FLOAT),
        ("%a = arith.extf %x : tensor<64xf16> to tensor<64xf32>", EventKind.MOVE),
        ('%a = "triton_gpu.cmpi"(%x, %y) <{predicate = 2 : i64}> : (i32, i32) -> i1', EventKind.INTEGER),
        ("%a = triton_gpu.convert_layout %x : tensor<64xf16>", EventKind.LAYOUT_CONVERSION),
        ("rocdl.sched.barrier 0", EventKind.SCHEDULE_HINT),
        ("gpu.barrier", EventKind.BARRIER),
        ("%a = brand.new_thing %x : i32", EventKind.UNKNOWN),
    ],
)
def test_the_kind_follows_the_operation_in_every_dialect_vintage(line: str, kind: EventKind) -> None:
    assert one(line).kind is kind


def test_types_and_attributes_hold_no_reads() -> None:
    text = "%a_43 = tt.load %p, %m, %o {OpIdx = #amdgpu.OpIdx<0>} : tensor<64x!tt.ptr<f16>, #blocked>"
    assert decode(text) == (("%a_43",), ("%p", "%m", "%o"))


def test_several_results_are_named_one_by_one() -> None:
    assert decode("%w:3 = ttng.warp_group_dot_wait %a, %x#1 {pendings = 0 : i32}").results == (
        "%w#0",
        "%w#1",
        "%w#2",
    )
    assert decode("%w:3 = ttng.warp_group_dot_wait %a, %x#1 {pendings = 0 : i32}").reads == ("%a", "%x#1")


@pytest.mark.parametrize(
    ("line", "address", "mask", "value"),
    [
        ("%a = tt.load %p, %m, %o : T", ("%p",), ("%m",), ("%o",)),
        ("tt.store %p, %v, %m : T", ("%p",), ("%m",), ("%v",)),
        ("%r = tt.atomic_rmw fadd, relaxed, gpu, %p, %v, %m : T", ("%p",), ("%m",), ("%v",)),
        ("%a = ttg.async_copy_global_to_local %p, %b mask %m other %o : T", ("%p",), ("%m",), ("%o",)),
        ("%a = amdg.buffer_load %p[%i], %m, %o stride = %s : T", ("%p", "%i"), ("%m",), ("%o",)),
        ("amdg.buffer_store %v, %p[%i], %m : T", ("%p", "%i"), ("%m",), ("%v",)),
        ("%a = tt.descriptor_load %d[%i, %j] : T", ("%d", "%i", "%j"), (), ()),
        ("tt.descriptor_store %d[%i], %v : T", ("%d", "%i"), (), ("%v",)),
    ],
)
def test_reads_of_memory_operations_have_a_role(
    line: str, address: tuple[str, ...], mask: tuple[str, ...], value: tuple[str, ...]
) -> None:
    assert access(one(line)) == (address, mask, value)


def test_a_for_loop_becomes_a_block_that_branches_to_itself() -> None:
    found = function(
        """
        %r = scf.for %i = %lo to %hi step %s iter_args(%acc = %zero) -> (f32) : i32 {
          %x = arith.addf %acc, %one : f32
          scf.yield %x : f32
        }
        """
    )
    assert edges(found) == {"entry": ["for"], "for": ["for", "after"], "after": []}
    assert [(f.source, f.target, f.back) for f in found.flows] == [
        ("%zero", "%acc", False),
        ("%x", "%acc", True),
        ("%x", "%r", False),
    ]


def test_a_while_loop_leaves_from_the_block_that_decides() -> None:
    found = function(
        """
        %r = scf.while (%a = %zero) : (i32) -> i32 {
          %c = arith.cmpi slt, %a, %n : i32
          scf.condition(%c) %a : i32
        } do {
        ^bb0(%b: i32):
          %d = arith.addi %b, %one : i32
          scf.yield %d : i32
        }
        """
    )
    assert edges(found) == {"entry": ["while"], "while": ["do", "after"], "do": ["while"], "after": []}
    assert ("%d", "%a", True) in {(f.source, f.target, f.back) for f in found.flows}
    assert ("%a", "%b", False) in {(f.source, f.target, f.back) for f in found.flows}


def test_an_if_with_and_without_else_joins_behind_it() -> None:
    found = function(
        """
        %v = scf.if %c -> (f32) {
          scf.yield %x : f32
        } else {
          scf.yield %y : f32
        }
        scf.if %c {
          gpu.barrier
        }
        """
    )
    blocks = [(block.label, block.successors) for block in found.blocks]
    assert blocks == [
        ("entry", (1, 2)),
        ("then", (3,)),
        ("else", (3,)),
        ("join", (4, 5)),
        ("then", (5,)),
        ("join", ()),
    ]


def test_branches_of_the_cf_dialect_name_blocks_and_hand_over_arguments() -> None:
    found = function(
        """
          cf.cond_br %c, ^bb1(%x : i32), ^bb2
        ^bb1(%y: i32):
          cf.br ^bb2
        ^bb2:
          gpu.barrier
        """
    )
    assert edges(found) == {"entry": ["bb1", "bb2"], "bb1": ["bb2"], "bb2": []}
    assert [(f.source, f.target, f.owner) for f in found.flows] == [("%x", "%y", -2)]


def test_partitions_of_a_specialised_kernel_are_alternatives_of_one_operation() -> None:
    found = function(
        """
        ttg.warp_specialize(%a) attributes {requestedRegisters = array<i32: 24>}
        default {
          gpu.barrier
          ttg.warp_yield
        }
        partition0(%b: i32) num_warps(4) {
          %x = arith.addi %b, %b : i32
          ttg.warp_return
        } : (i32) -> ()
        """
    )
    assert edges(found) == {
        "entry": ["default", "partition0"],
        "default": ["join"],
        "partition0": ["join"],
        "join": [],
    }
    assert [p.name for p in found.partitions] == ["default", "partition0"]
    assert ("%a", "%b") in {(f.source, f.target) for f in found.flows}


def test_the_body_of_a_reduction_is_no_compute() -> None:
    found = function(
        """
        %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
        ^bb0(%p: f32, %q: f32):
          %s = arith.addf %p, %q : f32
          tt.reduce.return %s : f32
        }) : (tensor<64xf32>) -> f32
        """
    )
    assert [x.kind for x in found.instructions] == [
        EventKind.FLOAT,
        EventKind.OTHER,
        EventKind.OTHER,
        EventKind.BRANCH,
    ]
    assert len(found.blocks) == 1


LOCATED = """
    #loc = loc("/a/k.py":5:0)
    #loc1 = loc("/t/standard.py":43:17)
    #loc2 = loc("x"(#loc3))
    #loc3 = loc("/a/k.py":9:14)
    #loc4 = loc(callsite(#loc1 at #loc2))
    #loc5 = loc(fused[#loc6, #loc3])
    #loc6 = loc(unknown)
    #loc7 = loc("/a/k.py":0:0)
    #loc8 = loc(callsite(#loc8 at #loc8))
    module {
      tt.func public @k(%x: i32 loc("x"(#loc))) {
        %a = tt.get_program_id x : i32 loc(#loc2)
        %b = tt.get_program_id x : i32 loc(#loc4)
        %c = tt.get_program_id x : i32 loc(#loc5)
        %d = tt.get_program_id x : i32 loc(#loc7)
        %e = tt.get_program_id x : i32 loc("/b/m.py":3:1)
        %f = tt.get_program_id x : i32 loc(#loc8)
        %g = tt.get_program_id x : i32
        tt.return loc(#loc)
      } loc(#loc)
    } loc(#loc)
    """


def test_locations_resolve_through_names_call_sites_and_fusions() -> None:
    (found,) = parse(LOCATED).functions
    user = Frame("/a/k.py", 9, 14)
    assert [x.location for x in found.instructions] == [
        (user,),
        (Frame("/t/standard.py", 43, 17), user),
        (user,),
        None,  # line 0 is no line
        (Frame("/b/m.py", 3, 1),),
        None,  # a location that goes round in a circle
        None,
        (Frame("/a/k.py", 5, 0),),
    ]
    assert found.location == (Frame("/a/k.py", 5, 0),)


def test_a_loop_bears_the_location_behind_its_closing_brace() -> None:
    (found,) = parse(
        """
        #loc = loc("/a/k.py":7:3)
        module {
          tt.func @k(%n: i32) {
            scf.for %i = %n to %n step %n : i32 {
              gpu.barrier
            } loc(#loc)
            tt.return
          }
        }
        """
    ).functions
    assert found.instructions[0].location == (Frame("/a/k.py", 7, 3),)


def test_module_attributes_tell_target_and_warps_in_both_spellings() -> None:
    new = parse(
        'module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80"} {\n tt.func @k() {\n tt.return\n }\n}'
    )
    old = parse('module attributes {"triton_gpu.num-warps" = 8 : i32} {\n tt.func @k() {\n tt.return\n }\n}')
    assert new.attributes == {"ttg.num-warps": "4", "ttg.target": "cuda:80"}
    assert old.attributes == {"triton_gpu.num-warps": "8"}


def test_two_functions_are_told_apart_and_a_declaration_is_none() -> None:
    found = parse(
        """
        module {
          tt.func private @elsewhere(i32) -> i32
          tt.func public @k() {
            tt.return
          }
          tt.func private @"a.helper__(2,)c"(%x: i32) attributes {noinline = true} {
            tt.return
          }
        }
        """
    )
    assert [(f.name, f.arguments) for f in found.functions] == [("k", ()), ("a.helper__(2,)c", ("%x",))]


def test_a_text_that_is_cut_off_keeps_what_is_there_and_says_so() -> None:
    found = parse(
        "module {\n tt.func @k(%n: i32) {\n gpu.barrier\n scf.for %i = %n to %n step %n : i32 {\n gpu.bar"
    )
    assert [x.opcode for x in found.functions[0].instructions][:2] == ["gpu.barrier", "scf.for"]
    assert len(found.problems) == 1
    assert "not closed" in found.problems[0]


@pytest.mark.parametrize("text", ["", "module {\n}\n", "\x00\xff", "define void @k() {\n}\n"])
def test_a_text_without_a_triton_function_is_refused_at_its_place(text: str) -> None:
    with pytest.raises(ParseError, match=r"^k\.ttgir:1:1: no Triton function"):
        parse(text)


@pytest.mark.parametrize(
    ("line", "op", "depth"),
    [
        ("%w = ttg.async_wait %a, %b {num = 4 : i32}", "ttg.async_wait", 4),
        ("triton_gpu.async_wait {num = 0 : i32}", "triton_gpu.async_wait", 0),
        ("%w = ttng.warp_group_dot_wait %a {pendings = 1 : i32}", "ttng.warp_group_dot_wait", 1),
        ("ttng.wait_barrier %b, %p : !ttg.memdesc<1xi64>", "ttng.wait_barrier", None),
    ],
)
def test_a_wait_tells_what_it_leaves_pending(line: str, op: str, depth: int | None) -> None:
    assert FORMAT.wait(one(line), {}) == (op, depth)
