"""PTX: statements, locations and blocks of text as Triton's versions printed it."""

from __future__ import annotations

import time

import pytest

from artifact_inspector.errors import ParseError
from artifact_inspector.formats.ptx.parser import FORMAT, OPCODES, parse
from artifact_inspector.model import EventKind, Function, Instruction, MatrixOp, Module, Queue, Stage, Transfer, WaitOp
from artifact_inspector.model.text import SourceText

NOTHING = Module(Stage.PTX, "k.ptx", (), {})

FILES = '\t.file\t1 "/home/user/src/kernels.py"\n\t.file\t2 "/venv/triton/language/standard.py"\n'


def module(body: str, head: str = ".version 8.8\n.target sm_80\n", tail: str = "}\n" + FILES) -> Module:
    text = f"{head}.visible .entry k(\n\t.param .u64 k_param_0\n)\n.reqntid 128\n{{\n{body}\n{tail}"
    return parse(SourceText("k.ptx", text), Stage.PTX)


def function(body: str) -> Function:
    (only,) = module(body).functions
    return only


def one(statement: str) -> Instruction:
    (only,) = function(f"\t{statement};").instructions
    return only


def lines(instruction: Instruction) -> list[tuple[str, int]]:
    assert instruction.location is not None
    return [(frame.file.rpartition("/")[2], frame.line) for frame in instruction.location]


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [
        ("ld.global.L1::evict_first.L2::cache_hint.v4.b32", EventKind.GLOBAL_LOAD),
        ("ld.relaxed.gpu.global.b32", EventKind.GLOBAL_LOAD),
        ("ld.volatile.global.u32", EventKind.GLOBAL_LOAD),
        ("ld.v4.b32", EventKind.GLOBAL_LOAD),
        ("ld.param.b64", EventKind.OTHER),
        ("ld.const.b32", EventKind.OTHER),
        ("ld.local.v4.b32", EventKind.LOCAL_LOAD),
        ("ld.volatile.shared::cta.b32", EventKind.SHARED_LOAD),
        ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", EventKind.SHARED_LOAD),
        ("st.shared::cta.v4.b32", EventKind.SHARED_STORE),
        ("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32", EventKind.ATOMIC),
        ("st.relaxed.sys.global.b32", EventKind.GLOBAL_STORE),
        ("st.local.b32", EventKind.LOCAL_STORE),
        ("atom.acq_rel.gpu.global.cas.b32", EventKind.ATOMIC),
        ("atom.shared.add.f32", EventKind.ATOMIC),
        ("red.async.relaxed.cluster.shared::cluster.add.u32", EventKind.ATOMIC),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32", EventKind.ATOMIC),
        ("redux.sync.add.s32", EventKind.SHUFFLE),
        ("cp.async.ca.shared.global", EventKind.ASYNC_COPY),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes", EventKind.ASYNC_COPY),
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes", EventKind.ASYNC_COPY),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", EventKind.GLOBAL_STORE),
        ("cp.async.bulk.prefetch.tensor.2d.L2.global", EventKind.OTHER),
        ("cp.async.bulk.commit_group", EventKind.COMMIT),
        ("mbarrier.arrive.expect_tx.shared::cta.b64", EventKind.COMMIT),
        ("mbarrier.arrive.shared::cta.b64", EventKind.OTHER),
        ("mbarrier.test_wait.shared.b64", EventKind.WAIT),
        ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64", EventKind.COMMIT),
        ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X", EventKind.MATRIX),
        ("tcgen05.ld.sync.aligned.32x32b.x32.b32", EventKind.OTHER),
        ("wgmma.fence.sync.aligned", EventKind.OTHER),
        ("fma.rn.f32.f16", EventKind.FLOAT),
        ("add.rn.ftz.f32x2", EventKind.FLOAT),
        ("max.u16x2", EventKind.INTEGER),
        ("max.NaN.bf16x2", EventKind.FLOAT),
        ("setp.lt.f32", EventKind.FLOAT),
        ("setp.lt.and.s32", EventKind.INTEGER),
        ("div.full.f32", EventKind.FLOAT),
        ("div.s32", EventKind.INTEGER),
        ("cvt.rn.f16x2.e4m3x2", EventKind.MOVE),
        ("selp.f32", EventKind.MOVE),
        ("barrier.cluster.arrive.aligned", EventKind.OTHER),
        ("barrier.cluster.wait.aligned", EventKind.BARRIER),
        ("frobnicate.f32", EventKind.UNKNOWN),
    ],
)
def test_the_kind_follows_from_modifiers_in_any_order(opcode: str, kind: EventKind) -> None:
    assert one(f"{opcode} \t%r1, %r2").kind is kind


@pytest.mark.parametrize(
    ("statement", "results", "reads"),
    [
        ("@%p1 ld.global.v2.b32 { %r1, %r2 }, [ %rd3 + 16 ]", "%r1 %r2", "%p1 %rd3"),
        ("@!%p1 st.global.b32 [ %rd5 + 0 ], { %r18 }", "", "%p1 %rd5 %r18"),
        ("red.global.gpu.relaxed.add.f32 [ %rd65 + 0 ], %r129", "", "%rd65 %r129"),
        ("setp.lt.f32 \t%p1|%p2, %f1, 0f3F800000", "%p1 %p2", "%f1"),
        ("elect.sync \t%r38|%p18, -1", "%r38 %p18", ""),
        ("mbarrier.arrive.expect_tx.shared.b64 _, [%r16], 32768", "", "%r16"),
        ("mbarrier.try_wait.parity.shared.b64 complete, [%r102], %r103", "complete", "%r102 %r103"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2}, {%r1}, {%r2}, {%f3,%f4}",
         "%f1 %f2", "%r1 %r2 %f3 %f4"),
        ("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%r1,%r2}, %rd3, %rd4, %p8, 1, 1, 0, 0",
         "%r1 %r2", "%rd3 %rd4 %p8 %r1 %r2"),
        ("cp.async.cg.shared.global [ %r1 + 0 ], [ %rd2 + 0 ], 0x10, %r3", "", "%r1 %rd2 %r3"),
        ("call.uni (retval0), vprintf, (param0, param1)", "retval0", "param0 param1"),
        ("bar.sync \t%r1, 128", "", "%r1"),
        ("bar.red.popc.u32 \t%r1, 0, %p1", "%r1", "%p1"),
        ("mov.b32 \t{tmp, %rs5}, %r3", "tmp %rs5", "%r3"),
    ],
)  # fmt: skip
def test_operands_name_what_is_written_and_what_is_read(statement: str, results: str, reads: str) -> None:
    operands = one(statement).operands
    assert (" ".join(operands.results), " ".join(operands.reads)) == (results, reads)


@pytest.mark.parametrize(
    ("statement", "wait"),
    [
        ("cp.async.wait_group 4", WaitOp("cp.async.wait_group", 4, Queue.GROUP)),
        ("cp.async.wait_group 04", WaitOp("cp.async.wait_group", 4, Queue.GROUP)),
        ("cp.async.wait_group \t0x2", WaitOp("cp.async.wait_group", 2, Queue.GROUP)),
        ("cp.async.wait_all", WaitOp("cp.async.wait_all", 0, Queue.GROUP, includes_uncommitted=True)),
        ("@%p3 cp.async.bulk.wait_group 1", WaitOp("cp.async.bulk.wait_group", 1, Queue.STORES)),
        ("cp.async.bulk.wait_group.read 0", WaitOp("cp.async.bulk.wait_group.read", 0, Queue.STORES)),
        ("wgmma.wait_group.sync.aligned 3", WaitOp("wgmma.wait_group", 3, Queue.MATRIX)),
        (
            "mbarrier.try_wait.parity.shared.b64 complete, [%r1], 1",
            WaitOp("mbarrier.try_wait", None, Queue.PHASE, "%r1"),
        ),
        ("tcgen05.wait::ld.sync.aligned", WaitOp("tcgen05.wait", None, Queue.TENSOR_MEMORY)),
        ("cp.async.commit_group", None),
    ],
)
def test_a_wait_tells_how_much_may_stay_in_flight(statement: str, wait: WaitOp | None) -> None:
    assert FORMAT.wait(one(statement), NOTHING) == wait


def test_the_location_of_inline_asm_is_the_one_in_front_of_it() -> None:
    # Triton 3.9, sm_75: the `.loc` inside count on from the line of the call.
    asm = """\
\t.loc\t1 20 13                         // kernels.py:20:13
\t// begin inline asm
\t.loc\t1 20 13                         // kernels.py:20:13
\tmov.u16 %rs1, 0x0;
\t.loc\t1 21 13                         // kernels.py:21:13
\tld.global.L1::evict_last.b16 { %rs1 }, [ %rd1 + 0 ];

\t// end inline asm
\t// begin inline asm
\t.loc\t1 20 13                         // kernels.py:20:13
\tmov.u16 %rs2, 0x0;
\t.loc\t1 21 13                         // kernels.py:21:13
\tld.global.L1::evict_last.b16 { %rs2 }, [ %rd2 + 0 ];

\t// end inline asm
\tcvt.f32.f16 \t%r1, %rs1;
\t.loc\t1 21 13                         // kernels.py:21:13
\tcvt.f32.f16 \t%r2, %rs2;"""
    found = function(asm).instructions
    assert [lines(each) for each in found] == [[("kernels.py", 20)]] * 5 + [[("kernels.py", 21)]]


def test_a_comment_names_the_whole_inline_chain() -> None:
    # Triton 3.4 to 3.7
    body = """\
\t.loc\t2 260 15                        // standard.py:260:15 @[ standard.py:290:36 @[ kernels.py:22:17 ] ]
\tadd.f32 \t%r1, %r2, %r3;
\t.loc\t1 23 5                          // kernels.py:23:5 @[ elsewhere.py:7 ]
\tadd.f32 \t%r1, %r2, %r3;"""
    first, second = function(body).instructions
    assert first.location is not None
    assert [tuple(frame) for frame in first.location] == [
        ("/venv/triton/language/standard.py", 260, 15),
        ("/venv/triton/language/standard.py", 290, 36),
        ("/home/user/src/kernels.py", 22, 17),
    ]
    assert lines(second) == [("kernels.py", 23), ("elsewhere.py", 7)]


def test_inlined_at_is_followed_through_the_locations_above_it() -> None:
    # Triton 3.9: one level only stands in each `.loc`.
    body = """\
\t.loc\t1 22 15                         // kernels.py:22:15
\t.loc\t2 314 12, function_name $L__info_string0, inlined_at 1 22 15 // standard.py:314:12
\t.loc\t2 287 12, function_name $L__info_string0, inlined_at 2 314 12 // standard.py:287:12
\tfma.rn.f32 \t%r280, %r247, %r263, %r279;
\t.loc\t2 314 12, function_name $L__info_string0, inlined_at 1 27 16 // standard.py:314:12
\t.loc\t2 287 12, function_name $L__info_string0, inlined_at 2 314 12 // standard.py:287:12
\tfma.rn.f32 \t%r281, %r247, %r263, %r279;"""
    first, second = function(body).instructions
    assert lines(first) == [("standard.py", 287), ("standard.py", 314), ("kernels.py", 22)]
    assert lines(second) == [("standard.py", 287), ("standard.py", 314), ("kernels.py", 27)]


def test_line_zero_is_no_location() -> None:
    body = """\
\t.loc\t1 16 36                         // kernels.py:16:36
\tmov.u32 \t%r1, %tid.x;
\t.loc\t1 0 0                           // kernels.py:0:0
\tshl.b32 \t%r148, %r132, 7;"""
    found = function(body)
    assert [each.location is None for each in found.instructions] == [False, True]
    assert found.location == found.instructions[0].location


WAIT_LOOP = """\
\t// begin inline asm

{
\t@!%p15 bra.uni skipWait;
\t.reg .pred complete;
\twaitLoop:
\tmbarrier.try_wait.parity.shared::cta.b64 complete, [%r30], %r28;
\t@!complete bra.uni waitLoop;
\tskipWait:
}


\t// end inline asm"""


def test_labels_and_branches_of_inline_asm_cut_no_block() -> None:
    found = function(f"{WAIT_LOOP}\n\tbar.sync \t0;\n{WAIT_LOOP}\n\tret;")
    assert [block.successors for block in found.blocks] == [()]
    opcodes = [each.opcode for each in found.instructions]
    assert opcodes.count("bra.uni") == 4
    assert opcodes.count("mbarrier.try_wait.parity.shared::cta.b64") == 2
    assert [each.guard for each in found.instructions[:3]] == ["!%p15", None, "!complete"]


def test_blocks_begin_at_labels_and_after_branches_and_line_marks_are_none() -> None:
    body = """\
// %bb.0:
\tsetp.lt.s32 \t%p1, %r1, 4;
$L__tmp0:
\t@%p1 bra \t$L__BB0_2;
// %bb.1:                               // %.lr.ph
\tmov.b32 \t%r2, 0;
\tbra.uni \t$L__BB0_3;
$L__BB0_2:                              // %exit
\t@%p2 ret;
$L__tmp1:
$L__BB0_3:
$L__pack0:
\tret;
$L__func_end0:"""
    assert [(b.label, b.start, b.stop, b.successors) for b in function(body).blocks] == [
        ("%bb.0", 0, 2, (2, 1)),
        ("%bb.1", 2, 4, (3,)),
        ("$L__BB0_2", 4, 5, (3,)),
        ("$L__BB0_3", 5, 6, ()),
    ]


@pytest.mark.parametrize(
    "table",
    [
        "JTI0_0:\n\t.branchtargets\n\t\t$L__BB0_7,\n\t\t$L__BB0_5;\n",  # Triton 3.9
        "\t$L_brx_0: .branchtargets\n\t\t$L__BB0_7,\n\t\t$L__BB0_5;\n",  # Triton 3.6
    ],
)
def test_an_indexed_branch_goes_to_the_labels_of_its_list(table: str) -> None:
    name = "JTI0_0" if "JTI" in table else "$L_brx_0"
    found = function(
        f"{table}\tld.shared.b8 \t%r12, [%r13+98516];\n\tbrx.idx \t%r12, {name};\n"
        "$L__BB0_5:\n\tbar.sync \t0;\n$L__BB0_6:\n\tbar.sync \t1;\n$L__BB0_7:\n\tret;"
    )
    assert found.blocks[0].successors == (3, 1)
    assert len(found.blocks) == 4


def test_several_statements_may_stand_on_a_line_and_one_on_several() -> None:
    body = """\
\t{ .reg .b16 tmp; mov.b32 {tmp, %rs5}, %r3; }
\t{ // callseq 0, 0
\t.param .b64 param0;
\tst.param.b64 \t[param0], %rd1;
\t.param .b32 retval0;
\tcall.uni (retval0),
\tvprintf,
\t(
\tparam0
\t);
\tld.param.b32 \t%r2, [retval0];
\t} // callseq 0"""
    found = function(body)
    assert [each.opcode for each in found.instructions] == [
        "mov.b32", "st.param.b64", "call.uni", "ld.param.b32",
    ]  # fmt: skip
    call = found.instructions[2]
    assert (call.kind, call.line, call.text) == (
        EventKind.BRANCH, 13, "call.uni (retval0), vprintf, ( param0 )",
    )  # fmt: skip
    assert len(found.blocks) == 1


def test_declarations_are_no_functions_and_helpers_are() -> None:
    text = f"""\
.version 8.4
.target sm_90a, debug
.extern .func __assertfail
(
\t.param .b64 __assertfail_param_0
)
.noreturn;
.func  (.param .b32 func_retval0) helper(
\t.param .b32 helper_param_0,
\t.param .align 4 .b8 helper_param_1[16]
)
{{
\tret;
}}
.visible .entry k()
.maxntid 128, 1, 1
{{
\tret;
}}
\t.section\t.debug_info
\t{{
.b8 1                                   // DW_AT_name
.b32 $L__func_begin0
\t}}
{FILES}"""
    found = parse(SourceText("k.ptx", text), Stage.PTX)
    assert [(each.name, each.line, each.arguments) for each in found.functions] == [
        ("helper", 8, ("helper_param_0", "helper_param_1")),
        ("k", 15, ()),
    ]
    assert found.attributes == {
        "version": "8.4", "target": "sm_90a", "maxntid": "128, 1, 1", "local": "0",
    }  # fmt: skip
    assert found.problems == ()


def test_the_header_gives_arguments_and_launch_bounds() -> None:
    found = module("\tret;")
    assert found.functions[0].arguments == ("k_param_0",)
    assert found.attributes["reqntid"] == "128"


def test_windows_line_ends_change_nothing() -> None:
    body = "\tmov.b32 \t%r1, 0;\n\tmov.b32 \t%r2, 0;\n\tret;"
    text = f".target sm_80\n.entry k()\n{{\n{body}\n}}\n"
    plain, dos = (parse(SourceText("k", each), Stage.PTX) for each in (text, text.replace("\n", "\r\n")))
    assert plain == dos
    assert [each.line for each in dos.functions[0].instructions] == [4, 5, 6]


def test_statements_indented_with_spaces_are_told_apart() -> None:
    found = function("  add.s32 %r1, %r2, %r3;\n  mul.f32 %r4, %r5, %r6;\n  add.s32 %r7, %r1, %r1;")
    assert [each.opcode for each in found.instructions] == ["add.s32", "mul.f32", "add.s32"]


def test_a_cut_off_file_keeps_what_stands_in_it() -> None:
    found = module("\tmov.b32 \t%r1, 0;\n\tld.global.b32 { %r2 }, [ %rd", tail="")
    assert [each.opcode for each in found.functions[0].instructions] == ["mov.b32"]
    assert found.problems == ("line 9: statement without an end", "line 3: function k is not closed")


def test_a_cut_off_file_is_not_whole_however_much_else_is_wrong() -> None:
    assert not module("\t+;\n" * 100, tail="").is_complete


def test_a_branch_to_nowhere_is_a_problem_and_no_edge() -> None:
    found = module("\tbra.uni \t$L__BB0_9;")
    assert found.functions[0].blocks[0].successors == ()
    assert found.problems == ("line 3: no label $L__BB0_9 in function k",)


@pytest.mark.parametrize("text", ["", "\x00\x01\ufffd\n", ".version 8.4\n.target sm_80\n", "}\n{\n"])
def test_a_text_without_a_function_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(ParseError, match="no PTX function") as caught:
        parse(SourceText("k.ptx", text), Stage.PTX)
    assert caught.value.remedy is not None
    assert caught.value.span.label == "k.ptx:1:1"


def test_ptx_is_known_by_its_target() -> None:
    assert FORMAT.sniff("//\n// Generated by LLVM NVPTX Back-End\n//\n\n.version 8.4\n.target sm_80\n")
    assert not FORMAT.sniff('\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n')


def test_every_opcode_row_has_one_kind() -> None:
    assert OPCODES.kind("mma.sync.aligned") is EventKind.MATRIX
    assert EventKind.UNKNOWN not in OPCODES.rows.values()


def test_data_sections_cost_next_to_nothing() -> None:
    section = "\t.section\t.debug_info\n\t{\n" + ".b8 1                                   // x\n" * 200_000 + "\t}\n"
    started = time.process_time()
    found = module("\tret;", tail="}\n" + section + FILES)
    assert time.process_time() - started < 0.5
    assert len(found.functions[0].instructions) == 1


# -- transfers and matrix operations -------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        # v4 of b32 is 4 × 4 bytes; a packed f16x2 is 4
        (
            "ld.global.L1::evict_last.L2::cache_hint.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ], %rd2",
            Transfer(16, Queue.USE, ("L1::evict_last", "L2::cache_hint")),
        ),
        ("ld.global.nc.L2::128B.v8.f32 {%f1}, [%rd1]", Transfer(32, Queue.USE, ("nc", "L2::128B"))),
        ("@%p1 ld.volatile.global.b16 { %rs1 }, [ %rd1 + 0 ]", Transfer(2, Queue.USE, ("volatile",))),
        ("ld.relaxed.gpu.global.u8 %rs1, [%rd1]", Transfer(1, Queue.USE)),
        ("ld.global.b128 %rq1, [%rd1]", Transfer(16, Queue.USE)),
        ("st.global.cs.v2.b64 [ %rd1 + 0 ], { %rd2, %rd3 }", Transfer(16, None, ("cs",))),
        ("st.wt.global.bf16x2 [%rd1], %r1", Transfer(4, None, ("wt",))),
        ("atom.global.gpu.acq_rel.add.noftz.f16x2 %r1, [ %rd1 + 0 ], %r2", Transfer(4, Queue.USE)),
        ("atom.global.gpu.relaxed.add.v2.f32 {%r1, %r2}, [%rd1], {%r3, %r4}", Transfer(8, Queue.USE)),
        ("red.global.gpu.relaxed.add.f32 [ %rd1 + 0 ], %r1", Transfer(4, None)),
        ("atom.shared.add.f32 %f1, [%r1], %f2", None),
        # PTX ISA, cp.async: the operand behind the addresses is cp-size
        ("cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2", Transfer(16, Queue.GROUP, ("cg",))),
        ("cp.async.ca.shared::cta.global.L2::128B [%r1], [%rd1], 8", Transfer(8, Queue.GROUP, ("ca", "L2::128B"))),
        (
            "@%p4 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r20],"
            " [%rd6, {%r153, %r21}], [%r19]",
            Transfer(None, Queue.PHASE, is_per_block=True, barrier="%r19"),
        ),
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 4096, [%r2]",
            Transfer(4096, Queue.PHASE, is_per_block=True, barrier="%r2"),
        ),
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r7, [%r2]",
            Transfer(None, Queue.PHASE, is_per_block=True, barrier="%r2"),
        ),
        (
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd29, {%r105, %r106}], [%r9]",
            Transfer(None, Queue.STORES, is_per_block=True),
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 512",
            Transfer(512, Queue.STORES, is_per_block=True),
        ),
        (
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r1], {%r2, %r3, %r4, %r5}, [%r6]",
            Transfer(16, Queue.PHASE, barrier="%r6"),
        ),
        ("ld.shared.b32 %r1, [%r2]", None),
        ("ld.local.b32 %r1, [%r2]", None),
    ],
)
def test_a_transfer_tells_bytes_queue_cache_and_barrier(statement: str, expected: Transfer | None) -> None:
    assert FORMAT.transfer(one(statement), NOTHING) == expected


@pytest.mark.parametrize(
    ("opcode", "op", "shape", "types"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.sync", "m16n8k16", "f16×f16→f32"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "mma.sync", "m16n8k16", "bf16×bf16→f32"),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32", "mma.sync", "m16n8k32", "u8×s8→s32"),
        ("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16", "mma.sync", "m16n8k32", "e4m3×e5m2→f16"),
        (
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
            "mma.sync",
            "m16n8k64",
            "e2m1×e2m1→f32",
        ),
        # each quarter of the warp does a product of its own, but only on half precision
        ("mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32", "mma.sync", "m8n8k4×4", "f16×f16→f32"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "mma.sync", "m8n8k4", "f64×f64→f64"),
        ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", "mma.sync", "m16n8k256", "b1×b1→s32"),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "mma.sp", "m16n8k32", "f16×f16→f32"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16", "wmma.mma", "m16n16k16", "f16×f16→f32"),
        ("wmma.mma.sync.aligned.row.col.m8n32k16.s32.s8.s8.s32.satfinite", "wmma.mma", "m8n32k16", "s8×s8→s32"),
    ],
)
def test_a_warp_issues_mma(opcode: str, op: str, shape: str, types: str) -> None:
    found = FORMAT.matrix(one(f"{opcode} {{%r1}}, {{%r2}}, {{%r3}}, {{%r1}}"), NOTHING)
    assert found is not None
    assert (found.op, found.family, found.shape, found.types) == (op, "mma", shape, types)
    assert found.issuer == "warp"


def test_a_warpgroup_issues_wgmma() -> None:
    found = FORMAT.matrix(
        one("wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {%r1}, %rd1, %rd2, %p1, 1, 1"), NOTHING
    )
    assert found == MatrixOp("wgmma.mma_async", "wgmma", 64, 128, 32, 1, "e4m3×e4m3→f32", "warpgroup")
    assert found.flop == 2 * 64 * 128 * 32


# PTX ISA, "Instruction descriptor": type of d in bits 5:4, of a in 9:7, of b in 12:10, n/8 in 22:17, m/16 in 28:24.
F32_OF_F16 = 1 << 4
E4M3_BY_E5M2_SCALED = 1 << 10 | 1 << 23
E2M1_SCALED = 1 << 7 | 1 << 10


@pytest.mark.parametrize(
    ("opcode", "descriptor", "expected"),
    [
        (
            "cta_group::1.kind::f16",
            F32_OF_F16 | 32 // 8 << 17 | 128 // 16 << 24,
            MatrixOp("tcgen05.mma", "tcgen05", 128, 32, 16, 1, "f16×f16→f32", "CTA"),
        ),
        (
            "cta_group::2.kind::tf32",
            F32_OF_F16 | 2 << 7 | 2 << 10 | 256 // 8 << 17 | 256 // 16 << 24,
            MatrixOp("tcgen05.mma", "tcgen05", 256, 256, 8, 1, "tf32×tf32→f32", "CTA pair"),
        ),
        (
            "cta_group::1.kind::i8",
            2 << 4 | 1 << 7 | 64 // 8 << 17 | 64 // 16 << 24,
            MatrixOp("tcgen05.mma", "tcgen05", 64, 64, 32, 1, "s8×u8→s32", "CTA"),
        ),
        (
            "cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X",
            E4M3_BY_E5M2_SCALED | 32 // 8 << 17 | 128 // 16 << 24,
            MatrixOp("tcgen05.mma", "tcgen05", 128, 32, 32, 1, "e4m3×e5m2→f32", "CTA"),
        ),
        (
            "cta_group::1.kind::mxf4.block_scale.scale_vec::2X",
            E2M1_SCALED | 256 // 8 << 17 | 128 // 16 << 24,
            MatrixOp("tcgen05.mma", "tcgen05", 128, 256, 64, 1, "e2m1×e2m1→f32", "CTA"),
        ),
        # bit 31 chooses the longer k; LLVM prints such a number with its sign
        (
            "cta_group::1.kind::mxf4nvf4.block_scale.block16",
            (E2M1_SCALED | 256 // 8 << 17 | 128 // 16 << 24) - (1 << 31),
            MatrixOp("tcgen05.mma", "tcgen05", 128, 256, 96, 1, "e2m1×e2m1→f32", "CTA"),
        ),
        ("cta_group::1.kind::f16", 5 << 7 | 32 // 8 << 17 | 128 // 16 << 24, None),
        ("cta_group::1.kind::unheard", F32_OF_F16 | 4 << 17 | 8 << 24, None),
    ],
)
def test_the_shape_of_tcgen05_stands_in_its_descriptor(opcode: str, descriptor: int, expected: MatrixOp | None) -> None:
    found = module(f"\tmov.b32 \t%r9, {descriptor};\n\ttcgen05.mma.{opcode} [ %r2 + 0 ], %rd6, %rd7, %r9, %p14;")
    assert FORMAT.matrix(found.functions[0].instructions[1], found) == expected


def test_a_sparse_tcgen05_names_its_metadata_before_the_descriptor() -> None:
    found = one(
        f"tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r2], {F32_OF_F16 | 4 << 17 | 8 << 24}, %p1"
    )
    assert FORMAT.matrix(found, NOTHING) == MatrixOp("tcgen05.mma.sp", "tcgen05", 128, 32, 32, 1, "f16×f16→f32", "CTA")


def test_a_descriptor_that_differs_from_place_to_place_gives_no_shape() -> None:
    found = module(
        "\tmov.b32 %r9, 134807568;\n\tmov.b32 %r9, 136314896;\n"
        "\ttcgen05.mma.cta_group::1.kind::f16 [%r2], %rd6, %rd7, %r9, %p14;"
    )
    assert FORMAT.matrix(found.functions[0].instructions[2], found) is None


@pytest.mark.parametrize(
    ("statement", "queue"),
    [
        ("cp.async.commit_group", Queue.GROUP),
        ("cp.async.bulk.commit_group", Queue.STORES),
        ("wgmma.commit_group.sync.aligned", Queue.MATRIX),
        ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd1]", Queue.MATRIX),
        ("mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 6144", Queue.PHASE),
        ("cp.async.mbarrier.arrive.noinc.shared.b64 [%r1]", Queue.PHASE),
        ("mbarrier.arrive.shared::cta.b64 _, [%r1]", None),
    ],
)
def test_a_commit_closes_a_group_of_its_queue(statement: str, queue: Queue | None) -> None:
    assert FORMAT.commit(one(statement)) == queue


def local_bytes(kernel: str, body: str = "", helper: str | None = None) -> str | None:
    text = f".version 8.4\n.target sm_80\n.visible .entry k()\n{{\n{kernel}{body}\tret;\n}}\n"
    if helper is not None:
        text += f".visible .func  (.param .b32 func_retval0) sine(\n\t.param .b32 x\n)\n{{\n{helper}\tret;\n}}\n"
    return parse(SourceText("k.ptx", text), Stage.PTX).attributes.get("local")


ARRAY = "\t.local .align 16 .b8 \t__local_depot0[40];\n"
ANOTHER = "\t.local .align 4 .b8 \t__local_depot1[28];\n"
CALL = "\tcall.uni (retval0), sine, (param0);\n"


def test_the_local_array_of_the_kernel_is_told_where_it_has_one_at_most() -> None:
    assert (local_bytes(""), local_bytes(ARRAY), local_bytes(ARRAY + ANOTHER)) == ("0", "40", None)


def test_the_local_array_of_a_function_that_nothing_uses_is_no_part_of_the_frame() -> None:
    # Triton 2.1 leaves libdevice functions in the file that it has inlined everywhere.
    assert local_bytes(ARRAY, helper=ANOTHER) == "40"
    assert local_bytes("", helper=ANOTHER) == "0"


def test_the_local_array_of_a_called_function_may_be_part_of_the_frame() -> None:
    assert local_bytes(ARRAY, CALL, ANOTHER) is None
    assert local_bytes("", CALL, ANOTHER) is None
    assert local_bytes(ARRAY, "\tmov.u64 %rd1, sine;\n", ANOTHER) is None
    assert local_bytes(ARRAY, CALL, "") == "40"


def test_lines_of_one_opcode_are_read_alike() -> None:
    """Later lines with an opcode are read by a shorter way."""
    lines = "\txor.b32  %r1,  %r2, %r3;\n" * 3
    module = parse(
        SourceText("k.ptx", f".version 8.0\n.target sm_80\n.visible .entry k()\n{{\n{lines}\tret;\n}}\n"), Stage.PTX
    )
    assert [one.text for one in module.functions[0].instructions] == ["xor.b32 %r1, %r2, %r3"] * 3 + ["ret"]
