"""What single operations take of shared memory, held against ten releases of Triton, without any of them.

Each release was asked once for 400 operations with layouts at random (`scratch_of_releases.py`).
"""

from __future__ import annotations

import json

import pytest
import scratch_of_releases
from scratch_of_releases import Operation, spelled, whole

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.shared.scratch_memory import find_scratch_rules, max_scratch_bytes, scratch_bytes
from artifact_inspector.formats.mlir.parser import FORMAT
from artifact_inspector.model import Stage, TritonVersion
from artifact_inspector.model.shared import SharedRole
from artifact_inspector.model.text import SourceText

ROLES = {
    "convert": SharedRole.CONVERSION, "reduce": SharedRole.REDUCTION, "scan": SharedRole.SCAN,
}  # fmt: skip
TABLE = json.loads((scratch_of_releases.HERE / "scratch_of_releases.json").read_text(encoding="utf-8"))
OPERATIONS = [Operation(*map(whole, row)) for row in TABLE["operations"]]


def told(operation: Operation, triton: str) -> tuple[int | None, int | None]:
    """What an operation takes, and the most that it can, by this package."""
    text = spelled(operation.text(), tuple(map(int, triton.split("."))))
    module = FORMAT.parse(SourceText("k.ttgir", text), Stage.TTGIR)
    role = ROLES[operation.kind]
    (found,) = (one for one in module.functions[0].instructions if FORMAT.shared_use(one).role is role)
    code = FunctionCode(module.functions[0], module, FORMAT)
    rules = find_scratch_rules(code, TritonVersion(triton))
    return scratch_bytes(found, code, rules, is_used=False), max_scratch_bytes(found, code, rules)


@pytest.mark.parametrize(
    ("triton", "right", "unknown"),
    [
        ("3.0.0", 202, 63),
        ("3.1.0", 202, 63),
        ("3.2.0", 226, 50),
        ("3.3.1", 318, 62),
        ("3.4.0", 165, 176),  # what a conversion does in 3.4 and 3.5 is not known
        ("3.5.1", 174, 168),
        ("3.6.0", 370, 26),
        ("3.7.1", 321, 75),  # layouts of gfx1100 and gfx1200 are written otherwise
        ("3.8.0", 301, 95),
        ("3.9.0", 296, 100),
    ],
)
def test_an_operation_takes_what_the_release_gave_it(triton: str, right: int, unknown: int) -> None:
    """What is told is what was given, for as many as were told; of the others, not more than was said to be the most."""
    answers = []
    for operation, size in zip(OPERATIONS, TABLE[triton], strict=True):
        if size is None:
            continue
        known, most = told(operation, triton)
        answers.append(known)
        assert known in (None, size), operation
        assert most is None or size <= most, operation
    assert (len(answers) - answers.count(None), answers.count(None)) == (right, unknown)
