"""What issuing a loop takes, on control codes written by hand."""

from __future__ import annotations

from handwritten import prepared

from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.analysis.overlap.issue_cycles import estimate_issue
from artifact_inspector.model import BasicBlock, ControlInfo, EventKind, Function, Instruction, Operands, Stage


def a_function(*controls: ControlInfo) -> Function:
    def decode(_text: str) -> Operands:
        return Operands((), ())

    instructions = tuple(Instruction(10 + n, "FADD", EventKind.FLOAT, None, None, "", decode) for n in range(4))
    return Function("k", 1, None, (), instructions, (BasicBlock(0, "", 0, 4, ()),), control_codes=controls)


def an_issue(*controls: ControlInfo) -> object:
    code = prepared(a_function(*controls), Stage.SASS)
    blocks = frozenset({0})
    return estimate_issue(code, Region("straight", "straight", blocks, blocks, blocks))


def test_cycles_are_the_sum_of_the_stall_counts_and_masks_name_their_scoreboards() -> None:
    plain = ControlInfo(4, True, None, None, 0, 0)
    found = an_issue(plain, ControlInfo(1, False, 2, None, 0, 0), ControlInfo(2, False, None, None, 0b100101, 0), plain)
    # 4 + 1 + 2 + 4; bits 0, 2 and 5 are set on the third instruction, of line 12
    assert found is not None
    assert (found.cycles, found.instructions, found.waits) == (11, 4, ((12, (0, 2, 5)),))  # type: ignore[attr-defined]


def test_code_without_control_codes_has_no_estimate() -> None:
    assert an_issue() is None
