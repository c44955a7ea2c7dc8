"""Edits of sources: what changes, and that results stay equal in Triton's interpreter."""

from __future__ import annotations

import ast
from pathlib import Path

import blind_pairs
import pairs
import pytest

from artifact_inspector.api.equal_results import compare_results
from artifact_inspector.api.remedy_search import find_reduced_cause
from artifact_inspector.diagnosis.cause import Cause, CauseKind, Diagnosis
from artifact_inspector.diagnosis.derived_signature import derive_arguments
from artifact_inspector.diagnosis.source_edits import SourceEdit, propose_edits
from artifact_inspector.execution.launch_requests import parse_document_of

GEMM = Path(__file__).parents[2] / "kernels" / "gemm_int4.py"
CASES = {
    "gemv-w4": (blind_pairs, CauseKind.REDUNDANT_LOAD, "packed = tl.load(qw_ptr + n[:, None] * (K // 8) + k"),
    "rope": (blind_pairs, CauseKind.INVARIANT_LOAD, "    cos = tl.load"),
    "reduction": (pairs, CauseKind.REDUCTION_PER_TRIP, "total += tl.sum"),
    "pack-64": (blind_pairs, CauseKind.INT64, "row = at // D3"),
    "fp32-fma": (pairs, CauseKind.FP32_DOT, "input_precision=PREC"),
    "wide-dot": (pairs, CauseKind.WIDE_DOT, "a = tl.load(a_ptrs).to(tl.float32)"),
}


def _edit(file: Path, kernel: str, kind: CauseKind, text: str) -> SourceEdit:
    """The only edit for a cause on the last line of the kernel that has a text, a dot's line for dots."""
    source = file.read_text(encoding="utf-8")
    (function,) = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == kernel
    )
    lines = source.splitlines()
    numbers = [n for n in range(function.lineno, (function.end_lineno or 0) + 1) if text in lines[n - 1]]
    line = numbers[-1] + (2 if kind is CauseKind.WIDE_DOT else 0)
    (edit,) = propose_edits(source, kernel, [Cause(kind, f"{file.name}:{line}", 0.5, "")])
    return edit


@pytest.mark.parametrize("name", CASES)
def test_an_edit_compiles_and_changes_only_its_kernel(name: str) -> None:
    module, kind, text = CASES[name]
    kernel = module.PAIRS[name][1].kernel
    edit = _edit(module.FILE, kernel, kind, text)
    before = ast.parse(module.FILE.read_text(encoding="utf-8")).body
    after = ast.parse(edit.text).body
    changed = [
        getattr(left, "name", "")
        for left, right in zip(before, after, strict=True)
        if ast.dump(left) != ast.dump(right)
    ]
    assert changed == [kernel]
    patch = edit.as_patch(module.FILE.read_text(encoding="utf-8"), module.FILE.name)
    assert patch.startswith(f"--- a/{module.FILE.name}\n+++ b/{module.FILE.name}\n@@ ")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if turn % 6 else pytest.mark.long)
        for turn, name in enumerate(CASES)
    ],
)
def test_an_edit_gives_equal_results_in_the_interpreter(name: str, tmp_path: Path) -> None:
    module, kind, text = CASES[name]
    variant = module.PAIRS[name][1]
    edited = tmp_path / module.FILE.name
    edit = _edit(module.FILE, variant.kernel, kind, text)
    edited.write_text(edit.text, encoding="utf-8")
    (request,) = parse_document_of({"grid": variant.grid, "args": variant.arguments}, variant.kernel)
    files = (module.FILE, edited)
    directory = module.FILE.parent
    assert compare_results(files, variant.kernel, request, variant.constants, directory, edit.rounding) is True


@pytest.mark.long
def test_a_wrong_edit_is_refuted(tmp_path: Path) -> None:
    source = pairs.FILE.read_text(encoding="utf-8")
    wrong = tmp_path / pairs.FILE.name
    wrong.write_text(source.replace("tl.load(x_ptr + offs) + 1.0", "tl.load(x_ptr + offs) + 2.0"), encoding="utf-8")
    arguments = {"x_ptr": pairs.tensor("fp32", 4096), "y_ptr": pairs.tensor("fp32", 4096), "n": 4096}
    (request,) = parse_document_of({"grid": [4], "args": arguments}, "add_few")
    files = pairs.FILE, wrong
    assert compare_results(files, "add_few", request, {"BLOCK": 1024}, pairs.FILE.parent, 2.0**-8) is False


@pytest.mark.long
def test_a_comparison_runs_a_few_tiles_of_a_long_loop_and_its_tail(tmp_path: Path) -> None:
    text = """
import triton
import triton.language as tl


@triton.jit
def sums(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    tl.store(y_ptr + tl.arange(0, BLOCK), total)
"""
    files = tmp_path / "k.py", tmp_path / "edited.py"
    files[0].write_text(text, encoding="utf-8")
    files[1].write_text(text.replace("range(0, N, BLOCK)", "range(0, N // BLOCK * BLOCK, BLOCK)"), encoding="utf-8")
    arguments = {"x_ptr": pairs.tensor("fp32", 1 << 22), "y_ptr": pairs.tensor("fp32", 64), "N": (1 << 22) - 3}
    (request,) = parse_document_of({"grid": [1], "args": arguments}, "sums")
    # the whole loop would take minutes in the interpreter
    assert compare_results((files[0], files[0]), "sums", request, {"BLOCK": 64}, tmp_path, seconds=10) is True
    assert compare_results(files, "sums", request, {"BLOCK": 64}, tmp_path, seconds=10) is False


SOFTMAX = """
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * N + cols, mask=cols < N, other=-float("inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(y_ptr + tl.program_id(0) * N + cols, e / tl.sum(e), mask=cols < N)
"""


@pytest.mark.exhaustive
def test_masked_lanes_that_add_a_little_to_a_sum_are_a_difference(tmp_path: Path) -> None:
    files = tmp_path / "k.py", tmp_path / "edited.py"
    files[0].write_text(SOFTMAX, encoding="utf-8")
    # one lane of 1024 is masked: with other=0 the sum of 1023 is too large by a thousandth, or less
    files[1].write_text(SOFTMAX.replace('-float("inf")', "0.0"), encoding="utf-8")
    arguments = {"x_ptr": pairs.tensor("fp32", 4, 1023), "y_ptr": pairs.tensor("fp32", 4, 1023), "N": 1023}
    (request,) = parse_document_of({"grid": [4], "args": arguments}, "softmax")
    # the wider bound: what differs beyond it differs beyond a narrower one
    assert compare_results(files, "softmax", request, {"BLOCK": 1024}, tmp_path, 2.0**-16) is False
    assert compare_results((files[0], files[0]), "softmax", request, {"BLOCK": 1024}, tmp_path) is True
    # a second is too short to import torch
    assert compare_results((files[0], files[0]), "softmax", request, {"BLOCK": 1024}, tmp_path, seconds=1.0) is None


LOOPS = """
import triton
import triton.language as tl


@triton.jit
def sums(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + (row * 2 + part) * N + cols, mask=cols < N, other=0.0)
    tl.store(y_ptr + row * 2 + part, tl.sum(acc))
"""
ACTIONS = {
    CauseKind.SERIAL_LOOP: (12, "in tl.range(0, N, BLOCK, num_stages=3):", 3),
    CauseKind.MASKS: (12, "acc += tl.load(x_ptr + (row * 2 + part) * N + cols)\n", 1),
    CauseKind.REFETCHED: (12, "row, part = (grouped_0, grouped_1)\n", 2),
    CauseKind.NARROW_ACCESS: (12, "tl.multiple_of((row * 2 + part) * N, [16])", 1),
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.long if kind is CauseKind.MASKS else pytest.mark.exhaustive)
        for kind in ACTIONS
    ],
)
def test_edits_of_loops_and_offsets_give_equal_results(kind: CauseKind, tmp_path: Path) -> None:
    line, expected, count = ACTIONS[kind]
    cause = Cause(kind, f"k.py:{line}", 0.5, "")
    edits = list(propose_edits(LOOPS, "sums", [cause], {"N": 80}))
    assert len(edits) == count
    assert expected in edits[0].text
    files = tmp_path / "k.py", tmp_path / "edited.py"
    files[0].write_text(LOOPS, encoding="utf-8")
    files[1].write_text(edits[0].text, encoding="utf-8")
    arguments = {"x_ptr": pairs.tensor("fp32", 4, 80), "y_ptr": pairs.tensor("fp32", 4), "N": 80}
    (request,) = parse_document_of({"grid": [2, 2], "args": arguments}, "sums")
    assert compare_results(files, "sums", request, {"BLOCK": 32}, tmp_path) is True


def test_flags_of_tensor_memory_are_tried_on_blackwell_only() -> None:
    source = pairs.FILE.read_text(encoding="utf-8")
    line = 1 + source[: source.index("acc = tl.dot(a, b, acc)")].count("\n")
    cause = Cause(CauseKind.SERIAL_LOOP, f"{pairs.FILE.name}:{line}", 0.5, "")
    assert not list(propose_edits(source, "matmul", [cause]))
    labels = [edit.label for edit in propose_edits(source, "matmul", [cause], is_blackwell=True)]
    assert [label.rpartition(" ")[2] for label in labels] == ["warp_specialize=True", "disallow_acc_multi_buffer=True"]


def test_words_are_loaded_once_along_their_axis() -> None:
    edit = _edit(GEMM, "gemm_int4_kernel", CauseKind.REDUNDANT_LOAD, "words = tl.load")
    assert "offs_k_words = tl.arange(0, BLOCK_K // 8) * 8" in edit.text
    assert "tl.broadcast_to(words[:, None, :], (BLOCK_K // 8, 8, BLOCK_N)), (BLOCK_K, BLOCK_N))" in edit.text


def test_types_are_derived_from_uses() -> None:
    derived = derive_arguments(GEMM.read_text(encoding="utf-8"), "gemm_int4_kernel")
    assert derived is not None
    assert derived.constants == {}
    assert "a_ptr=*fp16:16,w_ptr=*i32:16,scale_ptr=*fp16:16" in derived.signature
    assert derived.signature.endswith("M=i32:16,N=i32:16,K=i32:16")
    # every signature of the first set: pointers and integers agree
    for _, plant, _ in pairs.PAIRS.values():
        found = derive_arguments(pairs.FILE.read_text(encoding="utf-8"), plant.kernel)
        assert found is not None
        pointers = [one.partition("=")[2].startswith("*") for one in found.signature.split(",")]
        assert pointers == [one.startswith("*") for one in plant.signature.split(",")], plant.kernel


def test_a_change_that_leaves_every_cause_is_not_advised() -> None:
    def diagnosis(microseconds: float, **shares: float) -> Diagnosis:
        causes = tuple(Cause(CauseKind[name.upper()], "k.py:3", share, "") for name, share in shares.items())
        return Diagnosis("k", "ab", "sm_90", "H100", (1, 1, 1), microseconds, 1.0, causes, "")

    before = diagnosis(10.0, spills=0.5, division=0.3)
    for after, expected in (
        (diagnosis(8.0, spills=0.2), "spills"),
        (diagnosis(6.0, spills=0.75), "division"),
        (diagnosis(7.0, spills=5 / 7), "division"),
        (diagnosis(7.0, spills=5 / 7, division=3 / 7), None),
        (diagnosis(7.0, spills=5 / 7, division=2 / 7), None),
    ):
        cause = find_reduced_cause(before, after)
        assert (None if cause is None else cause.kind.value) == expected
