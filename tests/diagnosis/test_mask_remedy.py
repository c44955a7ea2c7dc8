"""A mask that a launch lacks is the first remedy, with a patch that was checked."""

from __future__ import annotations

from pathlib import Path

import pairs
import pytest

from artifact_inspector.api.advice import diagnose_launches
from artifact_inspector.api.equal_results import compare_results
from artifact_inspector.api.mask_remedy import MISSING_MASK, with_mask_remedy
from artifact_inspector.api.remedy_search import search_remedies
from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.diagnosis.remedy import RemedySearch
from artifact_inspector.execution.launch_requests import parse_document_of

KERNEL = """import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x * 2.0, mask=i < n)
"""


@pytest.mark.parametrize(
    ("elements", "is_missing"),
    [
        pytest.param(999_501, True, marks=pytest.mark.long),
        pytest.param(1024 * 977, False, marks=pytest.mark.exhaustive),
    ],
)
def test_a_missing_mask_is_the_first_remedy(elements: int, is_missing: bool, tmp_path: Path) -> None:
    """999,501 is no multiple of the four elements that a thread loads: an access crosses the end of the tensor."""
    file = tmp_path / "k.py"
    file.write_text(KERNEL, encoding="utf-8")
    arguments = {"x_ptr": pairs.tensor("fp32", elements), "y_ptr": pairs.tensor("fp32", elements), "n": elements}
    types = "*fp32:16,*fp32:16,i32"
    variant = pairs.Variant("scale", types, {"BLOCK": 1024}, [977, 1, 1], arguments)
    (candidate,) = pairs.compile_variants([variant], "sm_90", tmp_path / "compiled", file)
    pair = candidate.artifact, candidate.request
    (diagnosis,) = diagnose_launches([pair], make_disassembler([candidate.artifact], None, sass=True))
    search = search_remedies(
        pair, diagnosis, lambda entries: make_disassembler(entries, None, sass=True), tmp_path / "tried",
        kernel=f"{file}:scale", budget=3.0,
    )  # fmt: skip
    masked = [remedy for remedy in search.remedies if remedy.cause == MISSING_MASK]
    assert bool(masked) is is_missing
    if is_missing:
        assert masked[0] is search.remedies[0]
        assert masked[0].change == "line 8: add missing masks"
        assert "+    x = tl.load(x_ptr + i, mask=i < n, other=0)\n" in str(masked[0].patch)
        assert search.edited_files[str(masked[0].patch)] == KERNEL.replace("+ i)\n", "+ i, mask=i < n, other=0)\n")


ROWS = """import triton
import triton.language as tl


@triton.jit
def rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.store(y_ptr + row * n + cols, x * 2.0)
"""


@pytest.mark.long
@pytest.mark.parametrize(("extent", "expected"), [("n", True), ("n // 2", False), ("n - 1", False)])
def test_a_mask_may_leave_elements_to_other_rows_but_no_row_without_them(
    extent: str, expected: bool, tmp_path: Path
) -> None:
    """The wrong store also writes the beginning of the next row, inside of the tensor."""
    files = tmp_path / "k.py", tmp_path / "masked.py"
    files[0].write_text(ROWS, encoding="utf-8")
    mask = f"x * 2.0, mask=cols < {extent})"
    files[1].write_text(ROWS.replace("x * 2.0)", mask), encoding="utf-8")
    arguments = {"x_ptr": pairs.tensor("fp32", 64, 100), "y_ptr": pairs.tensor("fp32", 64, 100), "n": 100}
    (request,) = parse_document_of({"grid": [64], "args": arguments}, "rows")
    results = compare_results(files, "rows", request, {"BLOCK": 128}, tmp_path, is_mask=True)
    assert results is expected
    assert compare_results(files, "rows", request, {"BLOCK": 128}, tmp_path) is False


@pytest.mark.long
def test_a_store_without_mask_inside_of_a_tensor_gets_a_patch(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(ROWS, encoding="utf-8")
    arguments = {"x_ptr": pairs.tensor("fp32", 64, 100), "y_ptr": pairs.tensor("fp32", 64, 100), "n": 100}
    variant = pairs.Variant("rows", "*fp32:16,*fp32:16,i32", {"BLOCK": 128}, [64, 1, 1], arguments)
    (candidate,) = pairs.compile_variants([variant], "sm_90", tmp_path / "compiled", file)
    pair, empty = (candidate.artifact, candidate.request), RemedySearch((), 0, "")
    search = with_mask_remedy(pair, empty, f"{file}:rows", make_disassembler([candidate.artifact], None, sass=True))
    assert [remedy.change for remedy in search.remedies] == ["line 10: add missing masks"], search.reason
