"""Compare-and-swap loops: those that compilers make of atomics, not locks, and not loops of the program."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from saved import ROOT, saved

from artifact_inspector.analysis.access.accesses import find_accesses
from artifact_inspector.analysis.access.swap_loops import find_swap_loops
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.comparison.fact_pair import State
from artifact_inspector.comparison.pair import compare_kernels
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.files.cache import open_cache
from artifact_inspector.findings import Severity, find_findings
from artifact_inspector.formats import format_of
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText
from artifact_inspector.report.findings import FindingsReport
from artifact_inspector.vocabulary.rows import summarise

# the loop that LLVM's AtomicExpandPass writes of `atomicrmw fadd ptr addrspace(1) %p, bfloat` before its back ends
LLIR = """define void @k(ptr addrspace(1) %p, float %v) {
entry:
  %first = load i32, ptr addrspace(1) %p, align 4
  br label %start
start:
  %old = phi i32 [ %first, %entry ], [ %returned, %start ]
  %float = bitcast i32 %old to float
  %sum = fadd float %float, %v
  %new = bitcast float %sum to i32
  %pair = cmpxchg ptr addrspace(1) %p, i32 EXPECTED, i32 %new seq_cst monotonic, align 4
  %success = extractvalue { i32, i1 } %pair, 1
  %returned = extractvalue { i32, i1 } %pair, 0
  br i1 %success, label %end, label %start
end:
  ret void
}
"""
PTX = """.visible .entry k(.param .u64 p)
{
ld.param.u64 %rd1, [p];
ld.global.b32 %r5, [%rd1];
$L1:
add.f32 %r6, %r5, %r2;
atom.relaxed.gpu.global.cas.b32 %r3, [%rd1], EXPECTED, %r6;
setp.ne.b32 %p1, %r3, %r5;
mov.b32 %r5, %r3;
@%p1 bra $L1;
ret;
}
"""
AMDGCN = """k:
	global_load_dword v3, v[0:1], off
	v_mov_b32_e32 v9, 0
.LBB0_1:
	s_waitcnt vmcnt(0)
	v_mov_b32_e32 v7, EXPECTED
	v_add_f32_e32 v6, v3, v4
	global_atomic_cmpswap v6, v[0:1], v[6:7], off glc
	s_waitcnt vmcnt(0)
	v_cmp_eq_u32_e32 vcc, v6, v3
	s_or_b64 s[0:1], vcc, s[0:1]
	v_mov_b32_e32 v3, v6
	s_andn2_b64 exec, exec, s[0:1]
	s_cbranch_execnz .LBB0_1
	s_endpgm
"""
SASS = """	.section	.text.k,"ax",@progbits
.text.k:
        /*0000*/                   LDG.E R5, [R2] ;
.L_x_1:
        /*0010*/                   FADD R6, R5, R8 ;
        /*0020*/                   ATOMG.E.CAS.STRONG.GPU PT, R7, [R2], EXPECTED, R6 ;
        /*0030*/                   ISETP.NE.U32.AND P0, PT, R7, R5, PT ;
        /*0040*/                   IMAD.MOV.U32 R5, RZ, RZ, R7 ;
        /*0050*/               @P0 BRA `(.L_x_1) ;
        /*0060*/                   EXIT ;
"""
TEXTS = {Stage.LLIR: (LLIR, "%old"), Stage.PTX: (PTX, "%r5"), Stage.AMDGCN: (AMDGCN, "v3"), Stage.SASS: (SASS, "R5")}


def code_of(text: str, stage: Stage) -> FunctionCode:
    language = format_of(stage)
    module = language.parse(SourceText("k", text), stage)
    return FunctionCode(module.functions[0], module, language)


@pytest.mark.parametrize("stage", TEXTS)
def test_a_loop_that_expects_what_it_last_read_is_one_with_its_load(stage: Stage) -> None:
    text, expected = TEXTS[stage]
    code = code_of(text.replace("EXPECTED", expected), stage)
    (loop,) = find_swap_loops(code)
    assert re.search("cas|cmp", code.instructions[loop.swap].opcode.lower())
    assert len(loop.loads) == 1
    assert find_accesses(code) == ()


@pytest.mark.parametrize("stage", TEXTS)
def test_a_lock_that_expects_a_constant_is_none(stage: Stage) -> None:
    """Nothing but the swap itself decides when a lock is free; here its new value is loaded once."""
    swapped = TEXTS[stage][0].replace("EXPECTED", "RZ" if stage is Stage.SASS else "0")
    lines = [line for line in swapped.splitlines() if not re.search(r"fadd|v_add|add.f32|FADD|bitcast|phi", line)]
    lock = "\n".join(lines).replace("%new", "1").replace("%r6", "1").replace(", R6 ;", ", R8 ;")
    lock = lock.replace("v[6:7], off", "v[8:9], off")
    code = code_of(lock, stage)
    assert find_swap_loops(code) == ()
    assert len(find_accesses(code)) == 1


def test_every_compare_and_swap_of_the_fixtures_is_in_a_loop_that_is_counted() -> None:
    """No fixture has a lock, so all that grep finds are loops."""
    by_grep = {
        path: len(re.findall(r"^\s+(?:global|flat|buffer)_atomic_cmpswap", path.read_text(), re.MULTILINE))
        for path in sorted((ROOT / "fixtures").glob("*/*/*/*/*.amdgcn"))
    }
    counted = {path: len(find_swap_loops(code_of(path.read_text(), Stage.AMDGCN))) for path, n in by_grep.items() if n}
    assert counted == {path: n for path, n in by_grep.items() if n}
    assert sum(by_grep.values()) >= 10


def test_a_loop_of_the_program_is_no_loop_that_a_compiler_made(tmp_path: Path) -> None:
    text = AMDGCN.replace("EXPECTED", "v3")
    (tmp_path / "k.ttir").write_text(PROGRAM)
    location = '\t.file\t1 "/" "k.py"\n'
    lines = text.splitlines(keepends=True)
    marked = "".join(
        f"\t.loc\t1 {6 if 'cmpswap' in x or 'v_' in x else 3} 1\n{x}" if x.startswith("\t") else x for x in lines
    )
    (tmp_path / "k.amdgcn").write_text(location + marked)
    (kernel,) = inspect_cache(open_cache(tmp_path))
    assert summarise(kernel).facts["count.cas_loops"] == 0
    assert [finding for finding in find_findings(kernel) if finding.code == "AI027"] == []


def test_loops_beside_a_native_atomic_of_their_line_are_a_note(tmp_path: Path) -> None:
    """gfx942 adds pairs of fp16 natively, and elements without a neighbour by loops."""
    shutil.copytree(ROOT / "fixtures/3.6.0/gfx90a/gemv_splitk", tmp_path / "k")
    (path,) = (tmp_path / "k").rglob("*.amdgcn")
    for native, severity in (("", Severity.WARNING), ("\tglobal_atomic_pk_add_f16 v[2:3], v0, off\n", Severity.NOTE)):
        path.write_text(path.read_text().replace(".LBB0_28:", f"{native}.LBB0_28:"))
        (kernel,) = inspect_cache(open_cache(tmp_path / "k"))
        (found,) = [finding for finding in find_findings(kernel) if finding.code == "AI027"]
        assert found.severity is severity
        assert found.remark.message.startswith("beside a native atomic") == bool(native)


PROGRAM = """module {
  tt.func public @k(%p: !tt.ptr<i32>) {
    %0 = tt.load %p : !tt.ptr<i32> loc("k.py":3:1)
    %r = scf.while (%old = %0) : (i32) -> i32 {
      %1 = tt.atomic_cas acq_rel, gpu, %p, %old, %old : (!tt.ptr<i32>, i32, i32) -> i32 loc("k.py":6:1)
      %c = arith.cmpi ne, %1, %old : i32 loc("k.py":6:1)
      scf.condition(%c) %1 : i32 loc("k.py":6:1)
    } do {
    ^bb0(%a: i32):
      scf.yield %a : i32 loc("k.py":6:1)
    } loc("k.py":5:1)
    tt.return loc("k.py":7:1)
  } loc("k.py":1:1)
}
"""


def test_the_loads_of_an_atomic_are_none_of_the_kernel() -> None:
    """gfx90a has a compare-and-swap loop where gfx942 has `global_atomic_add_f32`: both load the same."""
    left, right = (summarise(saved(f"3.6.0/{gpu}/gemv_splitk").facts).facts for gpu in ("gfx90a", "gfx942"))
    assert (left["count.cas_loops"], right["count.cas_loops"]) == (1, 0)
    assert left["loads.bytes"] == right["loads.bytes"]


def test_half_precision_is_unknown_in_ptx_since_ptxas_may_make_the_loop() -> None:
    facts = summarise(saved("3.6.0/sm_80/atomic_cas").facts).facts
    assert facts["count.cas_loops"] is None
    assert summarise(saved("3.6.0/sm_80/gemv_splitk").facts).facts["count.cas_loops"] == 0
    assert "count.cas_loops" not in summarise(saved("3.6.0/sm_80/softmax").facts).facts


def test_loops_that_ptxas_may_make_are_no_difference_to_those_of_another_gpu() -> None:
    """PTX of float16 atomics does not show them: AI027 is unknown there, not absent."""
    nvidia, amd = saved("3.6.0/sm_80/atomic_cas").facts, saved("3.6.0/gfx90a/gemv_splitk").facts
    for sides in ((nvidia, amd), (amd, nvidia)):
        pair = compare_kernels(*sides)
        (codes,) = (fact for fact in pair.facts if fact.key == "findings")
        assert codes.reason == "AI027 is unknown on sm_80 without --sass"
        assert codes.reason in pair.notes
        assert "AI027" not in (*(codes.left or ()), *(codes.right or ())) or codes.state is State.NOT_COMPARED
    texts = [_printed(FindingsReport([kernel])) for kernel in (nvidia, amd)]
    assert ["AI027 needs --sass for 1 kernel" in text for text in texts] == [True, False]


def _printed(report: FindingsReport) -> str:
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(report)
    return console.export_text()
