"""What single operations take of shared memory, held against ten releases of Triton, without any of them.

Each release was asked once for 400 operations with layouts at random (`scratch_of_releases.py`).
"""

from __future__ import annotations

import json

import pytest
import scratch_of_releases
from scratch_of_releases import Operation, spelled, whole

from artifact_inspector.analysis.shared.scratch import find_rules, most_bytes, scratch_bytes
from artifact_inspector.formats.mlir.reading import FORMAT
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
    (found,) = (one for one in module.functions[0].instructions if FORMAT.shared(one).role is role)
    rules = find_rules(module, FORMAT, TritonVersion(triton))
    return scratch_bytes(found, module, FORMAT, rules, is_used=False), most_bytes(
        found, module, FORMAT, rules
    )


@pytest.mark.parametrize(
    ("triton", "counts"),
    [
        ("3.0.0", (222, 11, 32)),
        ("3.1.0", (222, 11, 32)),
        ("3.2.0", (257, 11, 8)),
        ("3.3.1", (335, 31, 14)),
        ("3.4.0", (172, 162, 7)),  # what a conversion does in 3.4 and 3.5 is not known
        ("3.5.1", (177, 163, 2)),
        ("3.6.0", (373, 21, 2)),
        ("3.7.1", (325, 70, 1)),  # layouts of gfx1100 and gfx1200 are written otherwise
        ("3.8.0", (322, 70, 4)),
        ("3.9.0", (321, 70, 5)),
    ],
)
def test_an_operation_takes_what_the_release_gave_it(triton: str, counts: tuple[int, int, int]) -> None:
    """How many are right, not known, and not what was given: before 3.3 operands of dots most of all."""
    right, unknown, other = 0, 0, []
    for operation, size in zip(OPERATIONS, TABLE[triton], strict=True):
        if size is None:
            continue
        known, most = told(operation, triton)
        if known is None:
            unknown += 1
            assert most is None or size <= most, operation
        elif known == size:
            right += 1
        else:
            other.append((size, known, operation))
    assert (right, unknown, len(other)) == counts, other
