"""What operations request for loops and warps, in tensor-level IR, LLVM IR and assembly.

Source: the assembly formats of `scf.for` and `ttg.warp_specialize`; PTX ISA, `setmaxnreg`; AMD's ISA manuals,
`s_setprio`.
"""

from __future__ import annotations

import re

from artifact_inspector.model import Instruction
from artifact_inspector.model.language import LoopHeader, WarpRequest

_NUM_STAGES = re.compile(r"\btt\.num_stages = (-?\d{1,9})\b")
_BOUNDS = re.compile(r"= (%[\w$.#-]+) to (%[\w$.#-]+) step (%[\w$.#-]+)")
_REQUESTED_REGISTERS = re.compile(r"requestedRegisters = array<i32: (\d{1,4}(?:, \d{1,4})*)>")
_WARPS = re.compile(r"\bpartition(\d+) num_warps\((\d{1,4})\)")
_PRIORITY = re.compile(r"setprio\W+(?:i16 )?(\d)")
_PIPELINE_STAGE = re.compile(r'triton\.warp_pipeline\.(?:border|stage) = "([^"]{1,60})"')
_STAGE_PRIORITY = re.compile(r"triton\.warp_pipeline\.priority = (\d)")
_REGISTER_LIMIT = re.compile(r"(\d{1,4})\s*;?$")


def loop_header(instruction: Instruction) -> LoopHeader:
    """Attributes of the operation that opens a loop."""
    num_stages, bounds = _NUM_STAGES.search(instruction.text), _BOUNDS.search(instruction.text)
    return LoopHeader(
        None if num_stages is None else int(num_stages[1]),
        None if bounds is None else (bounds[1], bounds[2], bounds[3]),
        "tt.flatten" in instruction.text,
    )


def warp_request(instruction: Instruction) -> WarpRequest:
    """What an operation requests for the warps that run it, or that it starts."""
    opcode, text = instruction.opcode, instruction.text
    if opcode.startswith("setmaxnreg"):
        limit = _REGISTER_LIMIT.search(text)
        return WarpRequest(() if limit is None else (int(limit[1]),))
    if "setprio" in opcode:
        priority = _PRIORITY.search(text)
        return WarpRequest(priority=None if priority is None else int(priority[1]))
    stage = _PIPELINE_STAGE.search(text)
    if stage is not None:
        priority = _STAGE_PRIORITY.search(text)
        return WarpRequest(priority=None if priority is None else int(priority[1]), pipeline_stage=stage[1])
    requested_registers = _REQUESTED_REGISTERS.search(text)
    return WarpRequest(
        () if requested_registers is None else tuple(int(number) for number in requested_registers[1].split(",")),
        {number: int(count) for number, count in _WARPS.findall(text)},
    )
