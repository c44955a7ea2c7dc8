"""What `advise` predicted orders a list, and nothing else of another kernel or version does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from saved import saved

from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kept_diagnosis import (
    KeptDiagnosis,
    attach,
    diagnosis_of,
    keep_diagnoses,
    read_kept_diagnoses,
)
from artifact_inspector.files.index import Index
from artifact_inspector.report.kernel_rows import kernel_cells
from artifact_inspector.vocabulary.finding_facts import describe_limit
from artifact_inspector.vocabulary.selection import cost_of, sort_kernels

NAMES = ("3.6.0/sm_80/softmax", "3.6.0/sm_80/layer_norm", "3.6.0/sm_80/flash_attention", "3.6.0/sm_80/register_spill")


def test_a_list_is_ordered_by_the_shares_of_diagnoses_behind_spills(tmp_path: Path) -> None:
    artifacts = [saved(name).artifact for name in NAMES]

    def open_index() -> Index:
        return Index(tmp_path / "index", print)

    causes = [KeptDiagnosis("few-bytes", 0.3), KeptDiagnosis("idle-sms", 0.6)]
    keep_diagnoses(zip(artifacts[:2], causes, strict=True), open_index)
    kept = read_kept_diagnoses([*artifacts, replace(artifacts[0], hash="0" * 64)], open_index)
    assert len(kept) == 2
    kernels = [inspect_artifact(artifact) for artifact in artifacts]
    for kernel in kernels:
        attach(kernel, kept)
    softmax, layer_norm, attention, spill = kernels
    assert [diagnosis_of(kernel) for kernel in kernels] == [*causes, None, None]
    assert sort_kernels(kernels, "cost") == [spill, layer_norm, softmax, attention]
    assert str(kernel_cells(layer_norm)["what limits it"]).startswith("idle SMs 60% of the time")
    assert "idle SMs 60% of the time, by `advise`" in (describe_limit([layer_norm]) or "")
    assert read_kept_diagnoses(artifacts, None) == {}


def test_without_a_diagnosis_the_order_is_that_of_the_findings() -> None:
    """A loop that waits for memory costs more than stores of 4 bytes instead of 16."""
    names = ("3.6.0/sm_80/masked_add", "3.6.0/sm_75/matmul_grouped", "3.6.0/sm_80/copy")
    kernels = [inspect_artifact(saved(name).artifact) for name in names]
    masked_add, matmul, copy = kernels
    assert sort_kernels([copy, masked_add, matmul], "cost") == [matmul, masked_add, copy]
    shares = [-cost_of(kernel)[4] for kernel in kernels]
    # 12 loads and 4 stores of 4 bytes in place of a quarter of them; 600 cycles for each trip of a few hundred others
    assert 100 > shares[1] > shares[0] > shares[2] == 0


def test_the_worst_kernel_names_the_listed_variant_with_more_stages() -> None:
    """A drained pipeline is built for two stages; the list has the same configuration with three, and another kernel."""
    drained = saved("3.6.0/sm_80/flash_attention").artifact
    deeper, wider = (replace(drained, hash=at * 64, num_stages=3, num_warps=w) for at, w in (("1", 4), ("2", 8)))
    kernels = [inspect_artifact(artifact) for artifact in (drained, wider, deeper)]
    assert (describe_limit(kernels) or "").endswith("; 11111111 is the same kernel with num_stages 3")
    assert "is it at" not in (describe_limit(kernels[:2]) or "")
