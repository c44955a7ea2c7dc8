"""The mask that an out-of-bounds access lacks, added to its source."""

from __future__ import annotations

import pytest

from artifact_inspector.diagnosis.mask_edit import add_mask
from artifact_inspector.memory_checks.problems import IndexBound

SOURCE = """import triton.language as tl
def k(x, y, n, M, N, sm, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + offs)
    w = tl.load(x + tl.program_id(0) * B + tl.arange(0, B), mask=offs < 7, other=1.0)
    row = x + tl.program_id(0) * sm
    u = tl.load(
        row + offs,
    )
    a = tl.load(y + offs[:, None] * sm + tl.arange(0, B)[None, :])
    tl.store(y + offs, v + w)
    y += sm
    tl.store(y + offs, v)
"""


@pytest.mark.parametrize(
    ("line", "mask", "expected"),
    [
        (4, IndexBound("x", 1, 1, "< n"), "v = tl.load(x + offs, mask=offs < n, other=0)"),
        (5, IndexBound("x", 1, 1, "< n"), "mask=(offs < 7) & (tl.program_id(0) * B + tl.arange(0, B) < n), other=1.0)"),
        (8, IndexBound("x", 2, 1, "< N"), "u = tl.load(row + offs, mask=offs < N, other=0)"),
        (4, IndexBound("x", 1, 1, ">= 0"), "mask=offs >= 0, other=0)"),
        (4, IndexBound("x", 1, 1, "< 4096"), None),
        (13, IndexBound("y", 1, 1, "< n"), None),
        (4, IndexBound("y", 1, 1, "< n"), None),
    ],
)
def test_a_mask_is_added_to_the_access_of_a_tensor(line: int, mask: IndexBound, expected: str | None) -> None:
    text = add_mask(SOURCE, "k", line, mask, {"sm": 64})
    assert (text is None) if expected is None else (text is not None and expected in text)


def test_the_index_of_a_dimension_is_that_with_its_stride() -> None:
    source = SOURCE.replace("    y += sm\n", "")
    rows, columns = (add_mask(source, "k", 10, IndexBound("y", 2, s, "< M"), {"sm": 64}) or "" for s in (64, 1))
    assert "mask=offs[:, None] < M" in rows
    assert "mask=tl.arange(0, B)[None, :] < M" in columns


def test_a_reduction_needs_a_value_that_is_not_known() -> None:
    source = SOURCE.replace("v + w)", "v / tl.sum(tl.exp(v), 0))")
    assert add_mask(source, "k", 4, IndexBound("x", 1, 1, "< n"), {}) is None
    assert "mask=offs < n)" in (
        add_mask(source.replace("    y += sm\n", ""), "k", 11, IndexBound("y", 1, 1, "< n"), {}) or ""
    )
