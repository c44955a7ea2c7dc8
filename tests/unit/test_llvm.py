"""The LLVM reader: lines as Triton's compilers wrote them, and what they must count as."""

from __future__ import annotations

import re

import pytest

from artifact_inspector.errors import ParseError
from artifact_inspector.formats.llvm.parser import FORMAT, OPCODES
from artifact_inspector.model import (
    EventKind,
    Frame,
    Function,
    Instruction,
    Module,
    Operands,
    Queue,
    Stage,
    Transfer,
    WaitOp,
)
from artifact_inspector.model.text import SourceText


def vmcnt(depth: int | None) -> WaitOp:
    return WaitOp("s_waitcnt vmcnt", depth, Queue.LOADS, template="{op}({depth})")


NOTHING = Module(Stage.LLIR, "k.llir", (), {})

# Metadata of a kernel whose `tl.sum` is inlined: standard.py:267 within standard.py:293 within k.py:20.
METADATA = """
!llvm.dbg.cu = !{!0}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: "triton", emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "k.py", directory: "/home/user/src")
!4 = distinct !DISubprogram(name: "k", linkageName: "k", scope: !1, file: !1, line: 8, type: !5, unit: !0)
!18 = !DILocation(line: 12, column: 22, scope: !4)
!19 = !DILocation(line: 0, scope: !4)
!20 = !DILocation(line: 267, column: 15, scope: !21, inlinedAt: !23)
!21 = distinct !DILexicalBlockFile(scope: !4, file: !22, discriminator: 0)
!22 = !DIFile(filename: "standard.py", directory: "/venv/triton/language")
!23 = !DILocation(line: 293, column: 36, scope: !21, inlinedAt: !24)
!24 = !DILocation(line: 20, column: 17, scope: !4)
!25 = !DILocation(line: 3, column: 1, scope: !26)
!26 = distinct !DILexicalBlock(scope: !4, file: !27, line: 3, column: 1)
!27 = !DIFile(filename: "/abs/helper.py", directory: "/home/user/src")
"""


def read(text: str) -> Module:
    return FORMAT.parse(SourceText("k.llir", text), Stage.LLIR)


def function(body: str, header: str = "define ptx_kernel void @k(ptr addrspace(1) %0, i32 %1) !dbg !4 {") -> Function:
    module = read(f"{header}\n{body}\n}}\n{METADATA}")
    assert module.problems == ()
    return module.functions[0]


def instructions(line: str) -> list[Instruction]:
    return list(function(f"{line}\n  ret void").instructions[:-1])


def one(line: str) -> Instruction:
    (only,) = instructions(line)
    return only


def kind(line: str) -> str:
    return one(line).kind.name


def test_four_moves_and_a_guarded_load_in_one_asm_are_one_global_load():
    load = one(
        r'  %177 = tail call { i32, i32, i32, i32 } asm sideeffect "mov.u32 $0, 0x0;\0A\09mov.u32 $1, 0x0;\0A\09mov.u32 $2, 0x0;\0A\09mov.u32 $3, 0x0;\0A\09@$5 ld.global.L1::evict_first.v4.b32 { $0, $1, $2, $3 }, [ $4 + 0 ];", "=r,=r,=r,=r,l,b"(ptr addrspace(1) %127, i1 %20) #2, !dbg !18'
    )
    assert (load.opcode, load.kind, load.guard, load.line) == (
        "ld.global.L1::evict_first.v4.b32",
        EventKind.GLOBAL_LOAD,
        "$5",
        2,
    )
    assert load.operands == Operands(("%177",), ("%127", "%20"))
    assert load.location == (Frame("/home/user/src/k.py", 12, 22),)


def test_moves_guarded_after_the_load_add_nothing():
    line = r'  %5 = tail call i16 asm sideeffect "mov.u16 $0, 0x0;\0A\09@$2 ld.global.b16 { $0 }, [ $1 + 0 ];\0A\09@!$4 mov.u16 $0, $3;", "=c,l,b,c,b"(ptr addrspace(1) %0, i1 %3, i16 0, i1 %3) #3'
    assert [(i.opcode, i.guard) for i in instructions(line)] == [("ld.global.b16", "$2")]


def test_two_mma_in_one_asm_are_two_matrix_ops_of_the_same_call():
    found = instructions(
        r'  %263 = tail call { float, float, float, float } asm sideeffect "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 { $0, $1, $2, $3 }, { $8, $9 }, { $10 }, { $4, $5, $6, $7 };\0A\09mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 { $0, $1, $2, $3 }, { $11, $12 }, { $13 }, { $4, $5, $6, $7 };", "=f,=f,=f,=f,0,1,2,3,r,r,r,r,r,r"(float %116, float %117, float %118, float %119, i32 %224, i32 %225, i32 %244, i32 %226, i32 %227, i32 %245) #3, !dbg !18'
    )
    assert [i.kind for i in found] == [EventKind.MATRIX, EventKind.MATRIX]
    assert found[0].operands == found[1].operands
    assert len(found[0].operands.reads) == 10


def test_a_barrier_wait_loop_is_one_wait_whatever_stands_around_it():
    wait = one(
        r'  tail call void asm sideeffect "\0A{\0A\09@!$2 bra.uni skipWait;\0A\09.reg .pred complete;\0A\09waitLoop:\0A\09mbarrier.try_wait.parity.shared::cta.b64 complete, [$0], $1;\0A\09@!complete bra.uni waitLoop;\0A\09skipWait:\0A}\0A", "r,r,b"(ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @global_smem, i32 98304), i32 %9, i1 %67) #7'
    )
    assert FORMAT.wait(wait, NOTHING) == WaitOp(
        "mbarrier.try_wait", None, Queue.PHASE, "getelementptr (i8, ptr addrspace(3) @global_smem, i32 98304)"
    )
    assert wait.operands == Operands((), ("%9", "%67"))


def test_a_comment_inside_asm_is_no_statement():
    wait = one(
        r'  %3 = tail call { float, i32 } asm sideeffect "// wait for regs: $0,$1\0A\09wgmma.wait_group.sync.aligned 1;", "=f,=r,0,1"(float %1, i32 %2) #2'
    )
    assert FORMAT.wait(wait, NOTHING) == WaitOp("wgmma.wait_group", 1, Queue.MATRIX)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (r"mov.u64 $0, 0x0;\0A\09createpolicy.fractional.L2::evict_last.b64 $0, 1.0;", "OTHER"),
        (r"mov.u32 $0, %ctaid.y;", "MOVE"),
        (r"{ \0A.reg .b32 a; \0A.reg .f16 a<2>; \0Acvt.rn.f16x2.e4m3x2 a, $1; \0Amov.b32 {a0, a1}, a;\0A}", "MOVE"),
        (r"{\0A.reg .u64 a<5>; \0Amov.u64 a0, 64;\0Ashl.b64 a1, a0, 3;\0Aor.b64 $0, a1, a3; \0A}", "INTEGER"),
        (r"fence.proxy.async.shared::cta;", "OTHER"),
        ("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], 8, [$2];", "OTHER"),
        ("tcgen05.ld.sync.aligned.32x32b.x32.b32 {$0}, [$1];", "OTHER"),
        ("", "OTHER"),
    ],
)
def test_asm_without_an_event_is_one_quiet_instruction(template, expected):
    found = one(f'  %5 = tail call i64 asm "{template}", "=l"() #5')
    assert (found.opcode, found.kind.name) == ("asm", expected)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("ld.volatile.global.b32 $0, [$1];", "GLOBAL_LOAD"),
        ("ld.b32 $0, [$1];", "GLOBAL_LOAD"),
        ("ld.shared::cta.v2.b32 {$0, $1}, [$2];", "SHARED_LOAD"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0}, [$1];", "SHARED_LOAD"),
        ("@$2 st.shared::cta.b32 [ $0 + 0 ], $1;", "SHARED_STORE"),
        ("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2];", "SHARED_STORE"),
        ("@$2 st.global.v4.b32 [ $4 + 0 ], { $0 };", "GLOBAL_STORE"),
        ("@$3 cp.async.cg.shared.global [ $0 + 0 ], [ $1 + 0 ], 0x10, $2;", "ASYNC_COPY"),
        (
            "@$0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [$1], [$2, {$3, $4}], [$5];",
            "ASYNC_COPY",
        ),
        ("@$0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [$1, {$2, $3}], [$4];", "GLOBAL_STORE"),
        ("cp.async.commit_group ;", "COMMIT"),
        ("@$0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$1], 32768;", "COMMIT"),
        ("@$0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [$1];", "COMMIT"),
        ("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {$0,$1}, $32, $33, 1, 1, 1, 0, 1;", "MATRIX"),
        ("@$5 tcgen05.mma.cta_group::1.kind::f16 [ $0 + 0 ], $1, $2, $3, $4;", "MATRIX"),
        ("@$3 atom.global.gpu.relaxed.add.v2.f32 { $0 }, [ $1 ], { $2 };", "ATOMIC"),
        ("@$3 red.global.gpu.relaxed.add.f32 [ $0 ], $1;", "ATOMIC"),
        ("add.f32x2 $0, $1, $2;", "FLOAT"),
        ("fma.rn.bf16x2 $0, $1, $2, $3;", "FLOAT"),
        ("ex2.approx.f32 $0, $1;", "FLOAT"),
        ("setp.lt.f32 p, $0, $1;", "FLOAT"),
        ("bar.sync 0;", "BARRIER"),
        ("frobnicate.b32 $0, $1;", "UNKNOWN"),
    ],
)
def test_ptx_inside_asm_is_an_event_of_its_own_kind(statement, expected):
    found = one(f'  %5 = call i32 asm sideeffect "{statement}", "=r,r"(i32 %1)')
    assert (found.opcode, found.kind.name) == (re.sub(r"^@\S+ ", "", statement).split()[0].rstrip(";"), expected)


@pytest.mark.parametrize(
    "statement", ["add.s32 $0, $1, $2;", "min.u32 $0, $1, $2;", "mul.lo.u64 $0, $1, 64;", "setp.lt.s32 p, $0, $1;"]
)
def test_integers_inside_asm_are_no_compute(statement):
    assert kind(f'  %5 = call i32 asm "{statement}", "=r,r"(i32 %1)') == "INTEGER"


def test_amd_asm_ends_statements_with_the_line_and_comments_with_a_semicolon():
    found = instructions(
        r'  call void asm sideeffect "global_load_dwordx4 $0, $1, off ; a; b\0As_waitcnt vmcnt(3)\0As_waitcnt lgkmcnt(0)\0Av_pk_mul_f32 $2, $3, $4\0Av_cvt_f32_f16 $2, $3", "v"(i32 %1)'
    )
    assert [i.opcode for i in found] == ["global_load_dwordx4", "s_waitcnt", "v_pk_mul_f32"]
    assert FORMAT.wait(found[1], NOTHING) == vmcnt(3)


def test_a_buffer_load_to_lds_inside_asm_is_an_async_copy():
    assert kind(r'  call void asm sideeffect "buffer_load_dword $0, $1, 0 offen lds", "v,s"(i32 %1)') == "ASYNC_COPY"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "  %5 = load <8 x half>, ptr addrspace(1) %66, align 16, !dbg !18, !alias.scope !19, !noalias !20",
            "GLOBAL_LOAD",
        ),
        ("  %5 = load half, ptr %83, align 2", "GLOBAL_LOAD"),
        (
            "  %5 = load ptr addrspace(1), ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @global_smem, i32 8), align 8",
            "SHARED_LOAD",
        ),
        ("  %5 = load i32, ptr addrspace(3) @global_smem, align 16", "SHARED_LOAD"),
        ("  %5 = load volatile i32, ptr addrspace(5) %7, align 4", "LOCAL_LOAD"),
        ("  %5 = load i64, ptr addrspace(4) %7, align 8", "OTHER"),
        ("  %5 = load i32, ptr addrspace(7) %7, align 8", "GLOBAL_LOAD"),
        ("  %5 = load { ptr addrspace(3), i32 }, ptr addrspace(1) %7, align 8", "GLOBAL_LOAD"),
        ("  %5 = load half, half addrspace(1)* %7, align 2", "GLOBAL_LOAD"),
        ("  %5 = load half addrspace(1)*, half addrspace(1)* addrspace(3)* %7, align 2", "SHARED_LOAD"),
        (
            "  %5 = load <4 x i32>, <4 x i32> addrspace(3)* bitcast ([0 x i8] addrspace(3)* @global_smem to <4 x i32> addrspace(3)*), align 16",
            "SHARED_LOAD",
        ),
        ("  store <2 x half> %1, ptr addrspace(3) %7, align 4", "SHARED_STORE"),
        (
            "  store ptr %1, ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @global_smem, i32 72), align 8",
            "SHARED_STORE",
        ),
        (
            "  store ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @global_smem, i32 8), ptr addrspace(1) %7, align 8",
            "GLOBAL_STORE",
        ),
        ("  store <2 x half> <half 0xH0000, half 0xH3C00>, ptr addrspace(3) %7, align 4", "SHARED_STORE"),
        ("  store <8 x half> zeroinitializer, ptr addrspace(3) %7, align 16, !dbg !18", "SHARED_STORE"),
        ("  store float %1, ptr %7, align 4", "GLOBAL_STORE"),
        ("  store i32 %1, ptr addrspace(5) %7, align 4", "LOCAL_STORE"),
        ("  store half %1, half addrspace(1)* %7, align 2", "GLOBAL_STORE"),
        (
            "  %5 = tail call <8 x half> @llvm.masked.load.v8f16.p1(ptr addrspace(1) %42, i32 16, <8 x i1> %50, <8 x half> zeroinitializer)",
            "GLOBAL_LOAD",
        ),
        (
            "  %5 = tail call <4 x half> @llvm.masked.load.v4f16.p3(ptr addrspace(3) %42, i32 8, <4 x i1> %50, <4 x half> poison)",
            "SHARED_LOAD",
        ),
        (
            "  tail call void @llvm.masked.store.v1f16.p1(<1 x half> %1, ptr addrspace(1) %7, i32 2, <1 x i1> %9)",
            "GLOBAL_STORE",
        ),
    ],
)
def test_memory_operations_go_by_the_space_of_their_pointer(line, expected):
    assert kind(line) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llvm.amdgcn.raw.ptr.buffer.load.v4i32", "GLOBAL_LOAD"),
        ("llvm.amdgcn.raw.ptr.buffer.load.lds", "ASYNC_COPY"),
        ("llvm.amdgcn.raw.ptr.buffer.load.async.lds", "ASYNC_COPY"),
        ("llvm.amdgcn.raw.ptr.buffer.store.f32", "GLOBAL_STORE"),
        ("llvm.amdgcn.raw.ptr.buffer.atomic.fadd.f32", "ATOMIC"),
        ("llvm.amdgcn.global.load.lds", "ASYNC_COPY"),
        ("llvm.amdgcn.global.load.async.to.lds.b128", "ASYNC_COPY"),
        ("llvm.amdgcn.tensor.load.to.lds", "ASYNC_COPY"),
        ("llvm.amdgcn.tensor.store.from.lds", "GLOBAL_STORE"),
        ("llvm.amdgcn.asyncmark", "COMMIT"),
        ("llvm.amdgcn.ds.read.tr16.b64.v4f16", "SHARED_LOAD"),
        ("llvm.amdgcn.s.barrier", "BARRIER"),
        ("llvm.amdgcn.s.barrier.signal", "OTHER"),
        ("llvm.amdgcn.s.barrier.wait", "BARRIER"),
        ("llvm.amdgcn.s.wait.dscnt", "OTHER"),
        ("llvm.amdgcn.s.setprio", "SCHEDULE_HINT"),
        ("llvm.amdgcn.sched.group.barrier", "SCHEDULE_HINT"),
        ("llvm.amdgcn.mfma.f32.32x32x8f16", "MATRIX"),
        ("llvm.amdgcn.mfma.scale.f32.32x32x64.f8f6f4.v8i32.v8i32", "MATRIX"),
        ("llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16", "MATRIX"),
        ("llvm.amdgcn.fdot2", "FLOAT"),
        ("llvm.amdgcn.exp2.f32", "FLOAT"),
        ("llvm.amdgcn.update.dpp.i32", "SHUFFLE"),
        ("llvm.amdgcn.permlane32.swap", "SHUFFLE"),
        ("llvm.amdgcn.workgroup.id.x", "OTHER"),
        ("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3", "SHARED_LOAD"),
        ("llvm.nvvm.cp.async.cg.shared.global.16", "ASYNC_COPY"),
        ("llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d", "ASYNC_COPY"),
        ("llvm.nvvm.cp.async.bulk.tensor.s2g.tile.2d", "GLOBAL_STORE"),
        ("llvm.nvvm.cp.async.commit.group", "COMMIT"),
        ("llvm.nvvm.wgmma.commit_group.sync.aligned", "COMMIT"),
        ("llvm.nvvm.wgmma.fence.sync.aligned", "OTHER"),
        ("llvm.nvvm.barrier0", "BARRIER"),
        ("llvm.nvvm.barrier.cta.sync.aligned.all", "BARRIER"),
        ("llvm.nvvm.barrier.cluster.arrive", "OTHER"),
        ("llvm.nvvm.shfl.sync.bfly.i32", "SHUFFLE"),
        ("llvm.nvvm.ex2.approx.f", "FLOAT"),
        ("llvm.fmuladd.v2f32", "FLOAT"),
        ("llvm.vector.reduce.fadd.v4f32", "FLOAT"),
        ("llvm.vector.reduce.or.v4i32", "INTEGER"),
        ("llvm.expect.i1", "OTHER"),
        ("llvm.experimental.noalias.scope.decl", "OTHER"),
        ("llvm.smin.i32", "INTEGER"),
        ("llvm.nvvm.brand.new", "UNKNOWN"),
    ],
)
def test_intrinsics_are_known_by_family(name, expected):
    found = one(f"  call void @{name}(i32 1), !dbg !18")
    assert (found.opcode, found.kind.name) == (name, expected)


@pytest.mark.parametrize(
    ("line", "opcode", "expected"),
    [
        ("  %5 = fadd contract <8 x float> %3, splat (float f0x3FB8AA3B)", "fadd", "FLOAT"),
        ("  %5 = fpext half %3 to float", "fpext", "MOVE"),
        ("  %5 = phi float [ 0.0, %2 ]", "phi", "MOVE"),
        ("  %5 = getelementptr inbounds nuw i8, ptr addrspace(3) @global_smem, i32 %3", "getelementptr", "INTEGER"),
        ('  fence syncscope("workgroup") release, !dbg !18, !mmra !19', "fence", "OTHER"),
        (
            '  %5 = atomicrmw fadd ptr addrspace(1) %0, float %3 syncscope("agent") monotonic, align 4',
            "atomicrmw",
            "ATOMIC",
        ),
        ("  %5 = call float @__nv_expf(float %3)", "@__nv_expf", "FLOAT"),
        ("  %5 = call i32 @__nv_umulhi(i32 %3, i32 %3)", "@__nv_umulhi", "INTEGER"),
        ("  call void @__assertfail(ptr @m, ptr @f, i32 3, ptr @g, i64 1)", "@__assertfail", "BRANCH"),
        ("  call fastcc void @add(i32 %3)", "@add", "BRANCH"),
        ("  call void %3(i32 0)", "call", "BRANCH"),
        ('  call void %3(i32 0) [ "clang.arc"(ptr @f) ]', "call", "BRANCH"),
        ("  %5 = newop i32 %3", "newop", "UNKNOWN"),
    ],
)
def test_plain_opcodes_have_one_kind(line, opcode, expected):
    found = one(line)
    assert (found.opcode, found.kind.name) == (opcode, expected)


@pytest.mark.parametrize(
    ("line", "target", "expected"),
    [
        ("  call void @llvm.nvvm.cp.async.wait.group(i32 2)", "", WaitOp("cp.async.wait_group", 2, Queue.GROUP)),
        (
            "  call void @llvm.nvvm.cp.async.wait.all()",
            "",
            WaitOp("cp.async.wait_all", 0, Queue.GROUP, includes_uncommitted=True),
        ),
        (
            "  call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 0)",
            "",
            WaitOp("cp.async.bulk.wait_group.read", 0, Queue.STORES),
        ),
        (
            '  call void asm sideeffect "cp.async.wait_group 0x4;", ""() #3',
            "",
            WaitOp("cp.async.wait_group", 4, Queue.GROUP),
        ),
        (
            "  call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 1)",
            "",
            WaitOp("wgmma.wait_group", 1, Queue.MATRIX),
        ),
        ("  call void @llvm.nvvm.tcgen05.wait.ld() #2", "", WaitOp("tcgen05.wait", None, Queue.TENSOR_MEMORY)),
        (
            '  call void asm sideeffect "tcgen05.wait::st.sync.aligned;", ""() #4',
            "",
            WaitOp("tcgen05.wait", None, Queue.TENSOR_MEMORY),
        ),
        ("  call void @llvm.amdgcn.wait.asyncmark(i16 1)", "gfx950", WaitOp("wait.asyncmark", 1, Queue.GROUP)),
        ("  call void @llvm.amdgcn.s.wait.asynccnt(i16 3)", "gfx1250", WaitOp("s_wait_asynccnt", 3, Queue.COPIES)),
        ("  call void @llvm.amdgcn.s.waitcnt(i32 -49168)", "", vmcnt(None)),
        ("  call void @llvm.amdgcn.s.waitcnt(i32 -49168)", "gfx942", vmcnt(0)),
        ("  call void @llvm.amdgcn.s.waitcnt(i32 3952)", "", vmcnt(None)),  # 0 on gfx9, 3 on gfx11
        ("  call void @llvm.amdgcn.s.waitcnt(i32 20348)", "", vmcnt(28)),  # no other generation uses these bits
        ("  call void @llvm.amdgcn.s.waitcnt(i32 20336)", "gfx942", vmcnt(16)),
        ("  call void @llvm.amdgcn.s.waitcnt(i32 2039)", "gfx1100", vmcnt(1)),
    ],
)
def test_waits_say_how_many_may_still_fly(line, target, expected):
    attributes = f'attributes #0 = {{ "target-cpu"="{target}" }}' if target else ""
    module = read(f"define void @k() {{\n{line}\n  ret void\n}}\n{attributes}")
    assert FORMAT.wait(module.functions[0].instructions[0], module) == expected


@pytest.mark.parametrize(("immediate", "target"), [(49279, "gfx942"), (49279, ""), (64519, "gfx1100")])
def test_a_waitcnt_with_vmcnt_at_its_maximum_is_no_wait(immediate, target):
    module = read(
        f'define void @k() {{\n  call void @llvm.amdgcn.s.waitcnt(i32 {immediate})\n  ret void\n}}\nattributes #0 = {{ "target-cpu"="{target}" }}'
    )
    found = module.functions[0].instructions[0]
    assert found.kind is EventKind.OTHER
    assert FORMAT.wait(found, module) is None


LOOP = """\
  %3 = icmp sgt i32 %1, 0, !dbg !18
  br i1 %3, label %.lr.ph, label %"the end", !dbg !18, !llvm.loop !30

.lr.ph:                                           ; preds = %2, %140
  %4 = phi i32 [ 0, %2 ], [ %5, %140 ]
  %5 = add i32 %4, 1
  br label %140

140:                                              ; preds = %.lr.ph
  br i1 %3, label %.lr.ph, label %"the end"

"the end":                                        ; preds = %140, %2
  ret void
"""


def test_blocks_are_cut_at_labels_and_branches_find_them():
    found = function(LOOP)
    assert [(b.label, b.start, b.stop, b.successors) for b in found.blocks] == [
        ("2", 0, 2, (1, 3)),
        (".lr.ph", 2, 5, (2,)),
        ("140", 5, 6, (1, 3)),
        ("the end", 6, 7, ()),
    ]


def test_a_switch_over_several_lines_is_one_instruction_with_all_its_targets():
    found = function(
        "  switch i8 %18, label %19 [\n    i8 0, label %21\n    i8 1, label %19\n  ], !dbg !18\n\n19:\n  ret void\n\n21:\n  ret void"
    )
    assert found.blocks[0].successors == (1, 2)
    assert found.blocks[0].stop == 1
    assert found.instructions[0].location == (Frame("/home/user/src/k.py", 12, 22),)
    assert found.instructions[0].operands == Operands((), ("%18",))


def test_an_invoke_branches_to_both_of_its_targets():
    found = function(
        "  invoke void @f()\n          to label %a unwind label %b\na:\n  ret void\nb:\n  %5 = landingpad { ptr, i32 }\n          cleanup\n  resume { ptr, i32 } %5"
    )
    assert found.blocks[0].successors == (1, 2)
    assert len(found.instructions) == 4


def test_a_named_entry_block_is_the_first_block():
    found = function("entry:\n  br label %x\nx:\n  ret void", "define void @k(i32 %n) {")
    assert [b.label for b in found.blocks] == ["entry", "x"]
    assert found.arguments == ("%n",)


@pytest.mark.parametrize(
    ("line", "results", "reads"),
    [
        ("  %4 = phi float [ 0.0, %2 ], [ %5, %140 ], [ %x, %.lr.ph ]", ("%4",), ("%5", "%x")),
        ('  store half %1, ptr addrspace(1) %"a b", align 2', (), ("%1", '%"a b"')),
        ('  %"a b" = fadd float %.frozen, %7', ('%"a b"',), ("%.frozen", "%7")),
        (r'  %11 = tail call i32 asm "mov.u32 $0, %ctaid.y;", "=r"() #3', ("%11",), ()),
        ("  %5 = select i1 %3, ptr addrspace(3) %4, ptr addrspace(3) @global_smem", ("%5",), ("%3", "%4")),
        (
            "  call void @llvm.nvvm.stmatrix.sync.aligned.m8n8.x1.b16.p3(ptr addrspace(3) nonnull %7, i32 %8)",
            (),
            ("%7", "%8"),
        ),
    ],
)
def test_operands_are_values_and_no_labels_globals_or_strings(line, results, reads):
    assert one(line).operands == Operands(results, reads)


def test_a_branch_reads_its_condition_only():
    assert function(LOOP).instructions[1].operands == Operands((), ("%3",))


@pytest.mark.parametrize(
    ("suffix", "expected"),
    [
        ("", None),
        (", !dbg !19", None),
        (", !dbg !18, !tbaa !31", (Frame("/home/user/src/k.py", 12, 22),)),
        (
            ", !dbg !20",
            (
                Frame("/venv/triton/language/standard.py", 267, 15),
                Frame("/venv/triton/language/standard.py", 293, 36),
                Frame("/home/user/src/k.py", 20, 17),
            ),
        ),
        (", !dbg !25", (Frame("/abs/helper.py", 3, 1),)),
    ],
)
def test_locations_follow_the_inline_chain_outwards(suffix, expected):
    found = one(f"  %5 = fadd float %3, %4{suffix}")
    assert found.location == expected
    assert found.text == "%5 = fadd float %3, %4"


def test_locations_are_shared_between_instructions():
    first, second = instructions("  %5 = fadd float %3, %4, !dbg !20\n  %6 = fmul float %5, %4, !dbg !20")
    assert first.location is second.location


def test_debug_records_are_passed_over_in_silence():
    found = function(
        "    #dbg_value(i32 %1, !12, !DIExpression(), !18)\n  %5 = add i32 %1, 1, !dbg !18\n    #dbg_value(i32 %5, !12, !DIExpression(), !18)\n  ret void"
    )
    assert [i.opcode for i in found.instructions] == ["add", "ret"]


def test_every_define_is_a_function_and_no_declare_is():
    module = read(
        f"""\
define internal fastcc void @"a b"(ptr addrspace(1) nocapture readonly byval(%struct.S) %0, <2 x i32> %n) unnamed_addr #1 {{
  ret void
}}

declare void @llvm.nvvm.barrier0() #4

define amdgpu_kernel void @k(half addrspace(1)* inreg %0, i32 %1) local_unnamed_addr #0 !dbg !4 {{
  tail call fastcc void @"a b"(i32 %1)
  ret void
}}
{METADATA}"""
    )
    assert [(f.name, f.line, f.arguments) for f in module.functions] == [
        ("a b", 1, ("%0", "%n")),
        ("k", 7, ("%0", "%1")),
    ]
    assert module.functions[0].location is None
    assert module.functions[1].location == (Frame("/home/user/src/k.py", 8, 0),)
    assert module.functions[1].instructions[0].opcode == "@a b"


@pytest.mark.parametrize(
    ("line", "attributes"),
    [
        ('target triple = "amdgpu9.42-amd-amdhsa"', {"triple": "amdgpu9.42-amd-amdhsa", "target": "gfx942"}),
        ('target triple = "amdgpu11.00-amd-amdhsa"', {"triple": "amdgpu11.00-amd-amdhsa", "target": "gfx1100"}),
        ('target triple = "amdgcn-amd-amdhsa"', {"triple": "amdgcn-amd-amdhsa"}),
        ('attributes #0 = { nounwind "target-cpu"="gfx90a" }', {"target": "gfx90a"}),
        ("", {}),
    ],
)
def test_the_module_says_its_target_where_the_file_does(line, attributes):
    assert read(f"{line}\ndefine void @k() {{\n  ret void\n}}").attributes == attributes


@pytest.mark.parametrize(
    "text", ["", "\0", "; ModuleID = 'LLVMDialectModule'\n", "declare void @f()\n", "define\n", "é}\n"]
)
def test_a_text_without_a_function_is_an_error_at_its_start(text):
    with pytest.raises(ParseError) as caught:
        read(text)
    assert caught.value.span.label == "k.llir:1:1"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("define void @k() {\n  ret void\n", "line 1: the function k is not closed"),
        ("define void @k() {\n  %1 = \n  ret void\n}", "line 2: not an instruction: %1 ="),
        ("define void @k() {\n  br label %9\n}", "line 2: branch to %9, which is not a block"),
        ("define void @k() {\n  %1 = add i32 1, 2\n}", "line 2: block 0 has no terminator"),
        ("define void @k() {\n  ret void\n}\ndefine void @matm", "line 4: the function has no readable header"),
    ],
)
def test_what_is_passed_over_is_named_with_its_line(text, problem):
    module = read(text)
    assert module.problems == (problem,)
    assert module.functions[0].name == "k"


def test_an_unclosed_function_does_not_swallow_the_next():
    module = read("define void @a() {\n  ret void\ndefine void @b() {\n  ret void\n}\n")
    assert [(f.name, len(f.instructions)) for f in module.functions] == [("a", 1), ("b", 1)]


def test_windows_line_ends_change_nothing():
    text = f"define void @k(i32 %0, i32 %1) !dbg !4 {{\n{LOOP}}}\n{METADATA}"
    assert read(text) == read(text.replace("\n", "\r\n"))


def test_scopes_that_enclose_themselves_end():
    found = read(
        "define void @k() {\n  ret void, !dbg !1\n}\n!1 = !DILocation(line: 3, scope: !2, inlinedAt: !1)\n!2 = distinct !DILexicalBlock(scope: !2)\n"
    )
    assert found.functions[0].instructions[0].location == (Frame("", 3, 0),)


def test_names_in_other_alphabets_are_read_from_their_escapes():
    found = read('define void @"k\\C3\\A9"() {\n  ret void\n}\n')
    assert found.functions[0].name == "ké"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("; ModuleID = 'LLVMDialectModule'\n", True),
        ("\ndefine void @k() {\n", True),
        ("//\n.version 8.4\n.target sm_80\n", False),
        ("module { tt.func public @k() { tt.return } }\n", False),
        ('\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n', False),
    ],
)
def test_sniffing_tells_llvm_from_its_neighbours(text, expected):
    assert FORMAT.sniff(text) is expected


def test_every_row_of_the_table_starts_as_llvm_writes_its_names():
    assert all(re.fullmatch(r"llvm\.\S+|[a-z_]+\$|@\S*", row) for row in OPCODES.rows)


# -- transfers and matrix operations -------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  %2 = load <8 x half>, ptr addrspace(1) %0, align 16", Transfer(16, Queue.USE)),
        ("  %2 = load half, ptr %0, align 2", Transfer(2, Queue.USE)),
        ("  %2 = load <1 x bfloat>, ptr addrspace(1) %0, align 2", Transfer(2, Queue.USE)),
        ("  %2 = load volatile i1, ptr addrspace(1) %0, align 1", Transfer(1, Queue.USE, ("volatile",))),
        ("  %2 = load atomic i32, ptr addrspace(1) %0 monotonic, align 4", Transfer(4, Queue.USE)),
        # LLVM 14 has typed pointers
        ("  %2 = load <4 x half>, <4 x half> addrspace(1)* %0, align 8", Transfer(8, Queue.USE)),
        ("  %2 = load half addrspace(1)*, half addrspace(1)* addrspace(1)* %0, align 8", Transfer(8, Queue.USE)),
        (
            "  %2 = load <4 x float>, ptr addrspace(1) %0, align 16, !dbg !18, !nontemporal !3",
            Transfer(16, Queue.USE, ("nontemporal",)),
        ),
        ("  %2 = load { i32, i32 }, ptr addrspace(1) %0, align 4", Transfer(None, Queue.USE)),
        ("  store <2 x i64> %1, ptr addrspace(1) %0, align 16", Transfer(16, None)),
        (
            "  store float 0.000000e+00, float addrspace(1)* %0, align 4, !nontemporal !3",
            Transfer(4, None, ("nontemporal",)),
        ),
        (
            '  %2 = atomicrmw fadd ptr addrspace(1) %0, <2 x half> %1 syncscope("agent") monotonic, align 4',
            Transfer(4, Queue.USE),
        ),
        (
            "  %2 = cmpxchg volatile ptr addrspace(1) %0, i64 %1, i64 %3 acq_rel monotonic, align 8",
            Transfer(8, Queue.USE, ("volatile",)),
        ),
        ("  %2 = atomicrmw add ptr addrspace(3) %0, i32 %1 monotonic, align 4", None),
        (
            "  %2 = tail call <8 x half> @llvm.masked.load.v8f16.p1(ptr addrspace(1) %0, i32 16, <8 x i1> %1, <8 x half> zeroinitializer)",
            Transfer(16, Queue.USE),
        ),
        (
            "  tail call void @llvm.masked.store.v4f32.p1(<4 x float> %1, ptr addrspace(1) %0, i32 16, <4 x i1> %3)",
            Transfer(16, None),
        ),
        (
            "  %2 = tail call <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) %0, i32 %1, i32 0, i32 0)",
            Transfer(16, Queue.USE),
        ),
        (
            "  tail call void @llvm.amdgcn.raw.ptr.buffer.store.i16(i16 %1, ptr addrspace(8) %0, i32 %3, i32 0, i32 0)",
            Transfer(2, None),
        ),
        (
            "  %2 = tail call float @llvm.amdgcn.raw.ptr.buffer.atomic.fadd.f32(float %1, ptr addrspace(8) %0, i32 %3, i32 0, i32 0)",
            Transfer(4, Queue.USE),
        ),
        (
            "  tail call void @llvm.amdgcn.global.load.lds(ptr addrspace(1) %0, ptr addrspace(3) %1, i32 16, i32 0, i32 0)",
            Transfer(16, Queue.LOADS),
        ),
        (
            "  tail call void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8) %0, ptr addrspace(3) %1, i32 4, i32 %3, i32 0, i32 0, i32 0)",
            Transfer(4, Queue.LOADS),
        ),
        (
            "  tail call void @llvm.amdgcn.raw.ptr.buffer.load.async.lds(ptr addrspace(8) %0, ptr addrspace(3) %1, i32 16, i32 %3, i32 0, i32 0, i32 0)",
            Transfer(16, Queue.GROUP),
        ),
        (
            "  tail call void @llvm.amdgcn.global.load.async.to.lds.b128(ptr addrspace(1) %0, ptr addrspace(3) %1, i32 0, i32 0)",
            Transfer(16, Queue.COPIES),
        ),
        (
            "  tail call void @llvm.amdgcn.tensor.load.to.lds(<4 x i32> %0, <8 x i32> %1, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer, <8 x i32> zeroinitializer, i32 0)",
            Transfer(None, Queue.TENSORS, is_per_block=True),
        ),
        (
            r'  %2 = tail call { i32, i32, i32, i32 } asm sideeffect "mov.u32 $0, 0x0;\0A\09@$5 ld.global.L1::evict_first.v4.b32 { $0, $1, $2, $3 }, [ $4 + 0 ];", "=r,=r,=r,=r,l,b"(ptr addrspace(1) %0, i1 %1)',
            Transfer(16, Queue.USE, ("L1::evict_first",)),
        ),
        (
            '  tail call void asm sideeffect "cp.async.ca.shared.global [ $0 + 0 ], [ $1 + 0 ], 0x8, $2;", "r,l,r"(ptr addrspace(3) %1, ptr addrspace(1) %0, i32 %3)',
            Transfer(8, Queue.GROUP, ("ca",)),
        ),
        # $5 is the sixth operand, and none of them is an output
        (
            '  tail call void asm sideeffect "@$0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [$1], [$2, {$3, $4}], [$5];", "b,r,l,r,r,r"(i1 %1, ptr addrspace(3) %2, ptr %3, i32 0, i32 %4, ptr addrspace(3) %5)',
            Transfer(None, Queue.PHASE, is_per_block=True, barrier="%5"),
        ),
        (
            "  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %1, ptr addrspace(1) %0)",
            Transfer(16, Queue.GROUP, ("cg",)),
        ),
        (
            "  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(3) %1, ptr addrspace(3) %2, ptr %3, i32 0, i32 0, i16 0, i64 0, i1 false, i1 false)",
            Transfer(None, Queue.PHASE, is_per_block=True, barrier="%2"),
        ),
        (
            "  call void @llvm.nvvm.cp.async.bulk.global.to.shared.cluster(ptr addrspace(7) %1, ptr addrspace(3) %2, ptr addrspace(1) %0, i32 512, i16 0, i64 0, i1 false, i1 false)",
            Transfer(512, Queue.PHASE, is_per_block=True, barrier="%2"),
        ),
        ("  %2 = load float, ptr addrspace(3) %0, align 4", None),
        ("  %2 = fadd float %0, %1", None),
    ],
)
def test_a_transfer_tells_bytes_queue_cache_and_barrier(line: str, expected: Transfer | None) -> None:
    assert FORMAT.transfer(one(line), NOTHING) == expected


# IntrinsicsAMDGPU.td numbers the bits of the last operand, AMDGPUInstPrinter.cpp spells them.
@pytest.mark.parametrize(
    ("callee", "policy", "target", "cache"),
    [
        ("raw.ptr.buffer.load.f32", 3, "gfx942", ("sc0", "nt")),
        ("raw.ptr.buffer.load.f32", 17, "gfx950", ("sc0", "sc1")),
        ("raw.ptr.buffer.load.f32", 7, "gfx1030", ("glc", "slc", "dlc")),
        ("raw.ptr.buffer.load.f32", 16, "gfx90a", ("scc",)),
        ("raw.ptr.buffer.load.f32", 1 | 3 << 3, "gfx1200", ("th:TH_LOAD_NT", "scope:SCOPE_SYS")),
        ("raw.ptr.buffer.load.f32", 3, "gfx1250", ("th:TH_LOAD_LU",)),
        ("raw.ptr.buffer.store.f32", 3, "gfx1250", ("th:TH_STORE_RT_WB",)),
        ("raw.ptr.buffer.store.f32", 3 | 3 << 3, "gfx1250", ("th:TH_STORE_BYPASS", "scope:SCOPE_SYS")),
        ("raw.ptr.buffer.load.f32", 3, "", ("cachepolicy=3",)),
        ("raw.ptr.buffer.load.f32", 0, "", ()),
    ],
)
def test_the_policy_of_a_buffer_operation_is_spelled_as_its_target_does(
    callee: str, policy: int, target: str, cache: tuple[str, ...]
) -> None:
    module = Module(Stage.LLIR, "k.llir", (), {"target": target} if target else {})
    found = FORMAT.transfer(
        one(f"  call void @llvm.amdgcn.{callee}(ptr addrspace(8) %0, i32 %1, i32 0, i32 {policy})"), module
    )
    assert found is not None
    assert found.cache == cache


@pytest.mark.parametrize(
    ("line", "shape", "types", "issuer"),
    [
        (
            '  %9 = tail call { float, float } asm sideeffect "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { $0, $1 }, { $4 }, { $5 }, { $2, $3 };", "=f,=f,0,1,r,r"(float %0, float %1, i32 %2, i32 %3)',
            "m16n8k16",
            "f16×f16→f32",
            "warp",
        ),
        # 134807568 = 1 << 4 | 4 << 17 | 8 << 24: n = 4 × 8, m = 8 × 16
        (
            '  tail call void asm sideeffect "@$5 tcgen05.mma.cta_group::1.kind::f16 [ $0 + 0 ], $1, $2, $3, $4;", "r,l,l,r,b,b"(i32 %1, i64 %3, i64 %5, i32 134807568, i1 true, i1 %7) #8',
            "m128n32k16",
            "f16×f16→f32",
            "CTA",
        ),
        (
            "  %3 = tail call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half> %0, <4 x half> %1, <16 x float> %2, i32 0, i32 0, i32 0)",
            "m32n32k8",
            "f16×f16→f32",
            "wavefront",
        ),
        # 32 floats in each of 64 lanes are two tiles of 32 × 32
        (
            "  %3 = call <32 x float> @llvm.amdgcn.mfma.f32.32x32x4f16(<4 x half> %0, <4 x half> %1, <32 x float> %2, i32 0, i32 0, i32 0)",
            "m32n32k4×2",
            "f16×f16→f32",
            "wavefront",
        ),
        (
            "  %3 = call double @llvm.amdgcn.mfma.f64.4x4x4f64(double %0, double %1, double %2, i32 0, i32 0, i32 0)",
            "m4n4k4×4",
            "f64×f64→f64",
            "wavefront",
        ),
        (
            "  %3 = tail call <16 x float> @llvm.amdgcn.mfma.scale.f32.32x32x64.f8f6f4.v8i32.v4i32(<8 x i32> %0, <4 x i32> %1, <16 x float> zeroinitializer, i32 1, i32 4, i32 0, i32 %2, i32 0, i32 %4)",
            "m32n32k64",
            "bf8×fp4→f32",
            "wavefront",
        ),
        (
            "  %3 = tail call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16(<16 x half> %0, <16 x half> %1, <8 x float> %2)",
            "m16n16k16",
            "f16×f16→f32",
            "wavefront",
        ),
        (
            "  %3 = tail call <8 x float> @llvm.amdgcn.wmma.scale.f32.16x16x128.f8f6f4.v8f32.v16i32.v8i32(i32 0, <16 x i32> %0, i32 4, <8 x i32> %1, i16 0, <8 x float> %2, i32 0, i32 0, i32 %4, i32 0, i32 0, i32 %5, i1 false, i1 false)",
            "m16n16k128",
            "fp8×fp4→f32",
            "wavefront",
        ),
    ],
)
def test_a_matrix_operation_tells_its_shape(line: str, shape: str, types: str, issuer: str) -> None:
    found = FORMAT.matrix(one(line), NOTHING)
    assert found is not None
    assert (found.shape, found.types, found.issuer) == (shape, types, issuer)


def test_a_descriptor_that_is_computed_gives_no_shape() -> None:
    found = one(
        '  tail call void asm sideeffect "tcgen05.mma.cta_group::1.kind::f16 [ $0 + 0 ], $1, $2, $3, $4;", "r,l,l,r,b"(i32 %1, i64 %3, i64 %5, i32 %6, i1 true)'
    )
    assert FORMAT.matrix(found, NOTHING) is None


@pytest.mark.parametrize(
    ("line", "queue"),
    [
        ("  tail call void @llvm.nvvm.cp.async.commit.group()", Queue.GROUP),
        ('  tail call void asm sideeffect "cp.async.commit_group ;", ""() #3', Queue.GROUP),
        ("  tail call void @llvm.nvvm.cp.async.bulk.commit.group()", Queue.STORES),
        ("  tail call void @llvm.nvvm.wgmma.commit_group.sync.aligned()", Queue.MATRIX),
        ("  tail call void @llvm.amdgcn.asyncmark()", Queue.GROUP),
        (
            '  tail call void asm sideeffect "@$0 mbarrier.arrive.expect_tx.shared.b64 _, [$1], 6144;", "b,r"(i1 %1, ptr addrspace(3) %2)',
            Queue.PHASE,
        ),
        ("  tail call void @llvm.nvvm.cp.async.wait.group(i32 2)", None),
    ],
)
def test_a_commit_closes_a_group_of_its_queue(line: str, queue: Queue | None) -> None:
    assert FORMAT.commit(one(line)) == queue


def test_outputs_of_inline_assembly_are_numbered_before_its_inputs() -> None:
    found = one(
        r'  %2 = call i32 asm sideeffect "{\0A\09.reg .pred p;\0A\09mbarrier.try_wait.parity.shared.b64 p, [$1], $2;\0A\09selp.b32 $0, 1, 0, p;\0A}", "=r,r,r"(ptr addrspace(3) %0, i32 %1)'
    )
    # $0 is the result, so $1 is the first value handed over
    assert FORMAT.wait(found, NOTHING) == WaitOp("mbarrier.try_wait", None, Queue.PHASE, "%0")
