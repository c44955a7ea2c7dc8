"""A tail wave of a persistent kernel is repaired by the number of CTAs, of another kernel by its tiles."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from artifact_inspector.diagnosis import launch_causes
from artifact_inspector.diagnosis.source_operations import SourceOperations, _is_persistent
from artifact_inspector.execution.launch import KernelLaunch
from artifact_inspector.formats import format_of
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText


@dataclass(frozen=True)
class _Sample:
    launch: KernelLaunch


@pytest.mark.parametrize(
    ("is_persistent", "remedy"),
    [(True, "launch 216, as many as are resident at once"), (False, "choose tiles that fill whole waves")],
)
def test_a_persistent_kernel_gets_another_number_of_ctas(
    is_persistent: bool, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """132 CTAs on 108 multiprocessors with room for two each."""
    monkeypatch.setattr(launch_causes, "roofline_cycles", lambda model, time: 0.0)
    model: Any = SimpleNamespace(
        sample=_Sample(KernelLaunch((132, 1, 1), {})),
        multiprocessors=108,
        occupancy=SimpleNamespace(unit="SM"),
        operations=SourceOperations(is_persistent=is_persistent),
    )
    time: Any = SimpleNamespace(resident_ctas=2, score=lambda sample: 100.0)
    (cause,) = launch_causes._tail_wave(model, time, 100.0)
    assert cause.reason == f"132 CTAs on 108 SMs: the fullest SM runs 2, the average 1.2; {remedy}"


@pytest.mark.parametrize(
    ("start", "step", "is_persistent"),
    [
        ("%pid", "%c132", True),
        ("%pid", "%count", True),  # tl.num_programs(0)
        ("%pid", "%n", True),  # an argument
        ("%pid", "%c1", False),  # the rest of a triangle
        ("%first", "%c132", False),  # pieces of one row
        ("%c0", "%c132", False),
    ],
)
def test_a_persistent_kernel_walks_from_its_program_id_on(start: str, step: str, is_persistent: bool) -> None:
    text = f"""module {{
  tt.func public @k(%x: !tt.ptr<f32>, %n: i32) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c132 = arith.constant 132 : i32
    %pid = tt.get_program_id x : i32
    %count = tt.get_num_programs x : i32
    %first = arith.muli %pid, %c132 : i32
    scf.for %tile = {start} to %n step {step} : i32 {{
      %0 = tt.addptr %x, %tile : !tt.ptr<f32>, i32
      %1 = tt.load %0 : !tt.ptr<f32>
      tt.store %0, %1 : !tt.ptr<f32>
    }}
    tt.return
  }}
}}
"""
    (function,) = format_of(Stage.TTIR).parse(SourceText("k.ttir", text), Stage.TTIR).functions
    assert _is_persistent(function) is is_persistent


WHILE = """
    %last = scf.while (%before = START) : (i32) -> i32 {
      %goes = arith.cmpi slt, %before, %n : i32
      scf.condition(%goes) %before : i32
    } do {
    ^bb0(%tile: i32):
      %0 = tt.addptr %x, %tile : !tt.ptr<f32>, i32
      %1 = tt.load %0 : !tt.ptr<f32>
      tt.store %0, %1 : !tt.ptr<f32>
      %next = arith.addi %tile, STEP : i32
      scf.yield %next : i32
    }
"""
FLATTENED = """
    %last = scf.for %k = %c0 to %n step %c1 iter_args(%before = START) -> (i32) : i32 {
      %is_new = arith.cmpi eq, %k, %c0 : i32
      %tile = scf.if %is_new -> (i32) {
        %next = arith.addi %before, STEP : i32
        scf.yield %next : i32
      } else {
        scf.yield %before : i32
      }
      %0 = tt.addptr %x, %tile : !tt.ptr<f32>, i32
      %1 = tt.load %0 : !tt.ptr<f32>
      tt.store %0, %1 : !tt.ptr<f32>
      scf.yield %tile : i32
    }
"""


@pytest.mark.parametrize(
    ("loop", "start", "step", "is_persistent"),
    [
        (WHILE, "%pid", "%c132", True),  # while tile < tiles: tile += NUM_SMS
        (WHILE, "%pid", "%n", True),
        (WHILE, "%pid", "%c1", False),
        (WHILE, "%c0", "%c132", False),
        (FLATTENED, "%ahead", "%c132", True),  # tile = pid - NUM_SMS before the loop over all tiles
        (FLATTENED, "%ahead", "%c1", False),
        (FLATTENED, "%c0", "%c132", False),
    ],
)
def test_a_while_loop_and_a_carried_tile_make_a_kernel_persistent(
    loop: str, start: str, step: str, is_persistent: bool
) -> None:
    text = f"""module {{
  tt.func public @k(%x: !tt.ptr<f32>, %n: i32) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c132 = arith.constant 132 : i32
    %pid = tt.get_program_id x : i32
    %ahead = arith.subi %pid, %c132 : i32
    {loop.replace("START", start).replace("STEP", step)}
    tt.return
  }}
}}
"""
    (function,) = format_of(Stage.TTIR).parse(SourceText("k.ttir", text), Stage.TTIR).functions
    assert _is_persistent(function) is is_persistent


@pytest.mark.parametrize(
    ("ctas", "is_persistent", "has_cause"), [(132, True, True), (132, False, False), (264, True, False)]
)
def test_a_persistent_kernel_launches_as_many_ctas_as_are_resident(
    ctas: int, is_persistent: bool, has_cause: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two fit on each of 132 multiprocessors; twice as many CTAs take 130 of the 100 cycles, for half of the tiles each."""
    monkeypatch.setattr(launch_causes, "roofline_cycles", lambda model, time: 0.0)
    model: Any = SimpleNamespace(
        sample=_Sample(KernelLaunch((ctas, 1, 1), {})),
        multiprocessors=132,
        operations=SourceOperations(is_persistent=is_persistent),
    )
    time: Any = SimpleNamespace(resident_ctas=2, score=lambda sample: 130.0)
    causes = list(launch_causes._unfilled(model, time, 100.0))
    assert [(cause.share, cause.reason) for cause in causes] == [
        (pytest.approx(0.35), "132 CTAs loop over all tiles, and 264 are resident at once; launch as many")
    ] * has_cause
