"""The compilers' own clocks, read."""

from __future__ import annotations

from artifact_inspector.passes.dumps import PassTimes

MLIR = """\
===----===
                         ... Execution time report ...
===----===
  Total Execution Time: 0.0036 seconds

  ----Wall Time----  ----Name----
    0.0012 ( 34.2%)  InlinerPass
    0.0000 (  1.0%)    (A) CallGraph
    0.0006 ( 18.0%)  'tt.func' Pipeline
    0.0005 ( 17.6%)    CanonicalizerPass
    0.0002 (  5.1%)  CSEPass
    0.0000 (  1.1%)  Rest
    0.0036 (100.0%)  Total
"""
LLVM = """\
                          Pass execution timing report
  Total Execution Time: 0.0863 seconds (0.1901 wall clock)

   ---User Time---   --System Time--   --User+System--   ---Wall Time---  --- Name ---
   0.0201 ( 34.1%)   0.0031 ( 11.5%)   0.0233 ( 27.0%)   0.0552 ( 29.1%)  Machine Instruction Scheduler
   0.0011 (  1.1%)   0.0001 (  1.5%)   0.0012 (  1.0%)   0.0010 (  0.9%)  Machine Instruction Scheduler
"""


def test_passes_of_mlir_are_timed_in_their_order_and_repeated_texts_once() -> None:
    times = PassTimes(MLIR.splitlines())
    names = ["InlinerPass", "CanonicalizerPass", "CanonicalizerPass", "CSEPass", "SymbolDCEPass"]
    found = times.mlir_seconds(names)
    assert found[0] == 0.0012
    assert sorted(seconds for seconds in found[1:3] if seconds is not None) == [0.0005]
    assert found[3:] == [0.0002, None]


def test_passes_of_the_code_generator_are_timed_by_name() -> None:
    times = PassTimes((MLIR + LLVM).splitlines())
    assert times.total_seconds("Machine Instruction Scheduler") == 0.0562
    assert times.total_seconds("Total") is None
