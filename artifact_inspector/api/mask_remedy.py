"""A patch that adds the masks which out-of-bounds accesses lack, tried before it is shown."""

from __future__ import annotations

from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

from artifact_inspector.api.advice import replace_stale_entry
from artifact_inspector.api.equal_results import compare_results
from artifact_inspector.api.memory_errors import check_launches
from artifact_inspector.api.remedy_search import LARGEST_DIFFERENCE
from artifact_inspector.diagnosis.mask_edit import add_mask
from artifact_inspector.errors import CompileError
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.memory_checks.problems import Check, MemoryReport


def with_mask_patch(
    pair: tuple[Artifact, LaunchRequest], report: MemoryReport, kernel: str, disassemble: Disassemble | None
) -> MemoryReport:
    """The report with a patch of `FILE.py:KERNEL` that adds missing masks, or with a note why there is none.

    The changed kernel compiles, leaves no tensor, and gives equal results in Triton's interpreter (first CTAs).
    """
    path, _, name = kernel.rpartition(":")
    entry, request = pair
    if entry.display_name != name or not any(one.missing_mask for one in report.problems):
        return report
    source = text = Path(path).read_text(encoding="utf-8")
    numbers = {x: one for x, one in {**entry.constants, **request.arguments}.items() if type(one) is int}
    for one in sorted(report.problems, key=lambda one: -one.site.source_line):  # an edit may join lines
        if one.missing_mask is not None:
            text = add_mask(text, name, one.site.source_line, one.missing_mask, numbers) or text
    reason, difference = ("its index, its extent or its value for `other` is unknown", None)
    with scratch_directory() as scratch:
        changed = Path(scratch) / Path(path).name
        changed.write_text(text, encoding="utf-8")
        if text != source:
            try:
                current = replace_stale_entry(pair, f"{changed}:{name}", Path(scratch) / "cache")
            except CompileError as error:
                return replace(report, notes=(*report.notes, f"no patch with masks: {error.message}"))
            again, reason = check_launches([current], disassemble)[0], "the kernel still leaves its tensors"
            if not again.undecided and all(one.check is not Check.OUT_OF_BOUNDS for one in again.problems):
                reason = "equal results could not be shown in Triton's interpreter"
                difference = compare_results((Path(path), changed), name, request, entry.constants, Path(path).parent)
    if difference is None or difference > LARGEST_DIFFERENCE:
        return replace(report, notes=(*report.notes, f"no patch with masks: {reason}"))
    patch = unified_diff(source.splitlines(True), text.splitlines(True), f"a/{changed.name}", f"b/{changed.name}")
    return replace(report, patch="".join(patch))
