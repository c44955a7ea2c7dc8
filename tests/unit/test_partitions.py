"""Warp-specialised partitions, and the slots of a loop with schedule hints."""

from __future__ import annotations

from handwritten import code_of
from saved import saved

from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.overlap.partitions import find_partitions, find_slots
from artifact_inspector.formats.ptx import parser as ptx
from artifact_inspector.model import Function, Stage
from artifact_inspector.model.text import SourceText

SPECIALISED = """#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @k(%b: !ttg.memdesc<1xi64, #s, #smem, mutable>, %p: i32, %q: tensor<64x!tt.ptr<f32>>) {
    ttg.warp_specialize(%b, %p) attributes {requestedRegisters = array<i32: 236, 24>}
    default {
      %x = tt.load %q : tensor<64x!tt.ptr<f32>>
      ttng.arrive_barrier %b, 1 : !ttg.memdesc<1xi64, #s, #smem, mutable>
      ttg.warp_yield
    }
    partition0(%arg0: !ttg.memdesc<1xi64, #s, #smem, mutable>, %arg1: i32) num_warps(8) {
      ttng.wait_barrier %arg0, %arg1 : !ttg.memdesc<1xi64, #s, #smem, mutable>
      %d = tt.dot %u, %v, %w : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
      ttg.warp_return
    }
    partition1(%arg0: !ttg.memdesc<1xi64, #s, #smem, mutable>, %arg1: i32) num_warps(1) {
      ttg.warp_return
    } : (!ttg.memdesc<1xi64, #s, #smem, mutable>, i32) -> ()
    tt.return
  }
}
"""

PINGPONG = """module attributes {"ttg.num-warps" = 8 : i32} {
  tt.func public @k(%p: tensor<64x!tt.ptr<f16>>, %c: i32) {
    scf.for %i = %c to %c step %c  : i32 {
      %a = tt.load %p : tensor<64x!tt.ptr<f16>>
      %b = tt.load %p : tensor<64x!tt.ptr<f16>>
      rocdl.sched.barrier 0
      gpu.barrier
      rocdl.s.setprio 1
      %d = tt.dot %u, %v, %w : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
      rocdl.s.setprio 0
      %e = tt.load %p : tensor<64x!tt.ptr<f16>>
      %f = tt.dot %u, %v, %w : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    }
    tt.return
  }
}
"""


def setmaxnreg(*counts: int) -> Function:
    body = "".join(f"\tsetmaxnreg.inc.sync.aligned.u32 \t{count};\n" for count in counts)
    text = f".version 8.0\n.target sm_90a\n.visible .entry k()\n{{\n{body}\tret;\n}}\n"
    return ptx.FORMAT.parse(SourceText("k.ptx", text), Stage.PTX).functions[0]


def test_each_partition_has_its_own_loads_matrix_operations_and_barriers() -> None:
    code = code_of(Stage.TTGIR, SPECIALISED)
    found = find_partitions(code)
    assert [(p.name, p.loads, p.matrix, p.barriers) for p in found] == [
        ("default", 1, 0, 1),
        ("partition0", 0, 1, 1),
        ("partition1", 0, 0, 0),
    ]


def test_registers_are_asked_for_by_partition_and_never_by_the_default_one() -> None:
    code = code_of(Stage.TTGIR, SPECIALISED)
    found = find_partitions(code)
    assert [p.registers_requested for p in found] == [None, 236, 24]
    assert found[0].warps == 4


def test_a_request_is_granted_in_steps_of_eight_registers() -> None:
    code = code_of(Stage.TTGIR, SPECIALISED)
    found = find_partitions(code, setmaxnreg(232, 24, 40))
    assert [p.registers for p in found] == [None, 232, 24]


def test_what_the_ptx_does_not_set_is_not_known() -> None:
    code = code_of(Stage.TTGIR, SPECIALISED)
    found = find_partitions(code, setmaxnreg(168))
    assert [p.registers for p in found] == [None, None, None]


def test_a_kernel_without_partitions_has_none() -> None:
    code = code_of(Stage.TTGIR, PINGPONG)
    assert find_partitions(code) == ()


def test_a_loop_is_cut_at_its_hints_and_barriers() -> None:
    code = code_of(Stage.TTGIR, PINGPONG)
    loop = next(region for region in find_regions(code, (), exact=False) if region.loop is not None)
    assert [(s.kind, s.memory, s.matrix, s.priority) for s in find_slots(code, loop)] == [
        ("memory", 2, 0, None),
        ("matrix", 0, 1, 1),
        ("mixed", 1, 1, 0),
    ]


def test_a_loop_without_hints_has_no_slots() -> None:
    plain = "\n".join(line for line in PINGPONG.split("\n") if "rocdl" not in line)
    code = code_of(Stage.TTGIR, plain)
    assert [find_slots(code, region) for region in find_regions(code, (), exact=False)] == [(), ()]


def test_a_partition_names_its_loops_as_all_other_tables_do() -> None:
    kernel = saved("3.6.0/sm_90/tma_warp_specialized").facts
    assert [partition.loops for partition in kernel.partitions] == [("loop@18/loads",), ("loop@18",), ("loop@18/2",)]
    ids = {region.id for region in kernel.stages[Stage.TTGIR].regions}
    assert all(ids.issuperset(partition.loops) for partition in kernel.partitions)
