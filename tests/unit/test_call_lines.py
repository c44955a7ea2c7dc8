"""Machine code of Triton 3.6 has lines of Triton's library only: the calls come from PTX or LLVM IR."""

from __future__ import annotations

import re

import pytest
from saved import ROOT

from artifact_inspector.analysis.flow.call_lines import lacks_callers, with_callers
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.facts.modules import read_module
from artifact_inspector.files.cache import Artifact, open_cache, read_stage
from artifact_inspector.files.disassembly import disassemble, find_disassembler
from artifact_inspector.model import Stage

TOOL = find_disassembler(None)
pytestmark = pytest.mark.skipif(TOOL is None, reason="needs nvdisasm")


@pytest.fixture(scope="module")
def softmax() -> Artifact:
    (entry,) = [
        one for one in open_cache(ROOT / "fixtures" / "3.6.0" / "sm_90").entries if one.display_name == "softmax_kernel"
    ]
    return entry


def _steps(artifact: Artifact) -> tuple[ProgramStep, ...]:
    return load_kernel(artifact, lambda _, binary: disassemble(binary, TOOL)).program.steps


def test_no_step_of_a_program_is_at_a_line_of_the_library(softmax: Artifact) -> None:
    files = {step.source_place.partition(":")[0] for step in _steps(softmax) if step.source_place}
    assert files == {"softmax.py"}


def test_shuffles_are_at_the_lines_whose_calls_ptx_has(softmax: Artifact) -> None:
    shuffles = [step.source_place for step in _steps(softmax) if step.opcode.startswith("SHFL")]
    lines = _lines_of_shuffles(read_stage(softmax, "ptx").source.text)
    assert len(set(lines)) == 2  # the maximum and the sum
    assert [place and int(place.partition(":")[2]) for place in shuffles] == lines


def test_a_module_without_calls_stays_as_it_is(softmax: Artifact) -> None:
    module = read_module(softmax, Stage.SASS, [], lambda _, binary: disassemble(binary, TOOL))
    assert module is not None
    assert lacks_callers(module)
    assert with_callers(module, module) is module
    llvm_ir = read_module(softmax, Stage.LLIR, [])
    assert llvm_ir is not None
    assert not lacks_callers(with_callers(module, llvm_ir))


def _lines_of_shuffles(ptx: str) -> list[int]:
    """Read by hand: the outermost line of the comment before each shuffle."""
    lines, current = [], 0
    for text in ptx.splitlines():
        if ".loc" in text and (frames := re.findall(r"([\w.]+):(\d+):\d+", text.partition("//")[2])):
            current = int(frames[-1][1])
        elif "shfl.sync" in text:
            lines.append(current)
    return lines
