"""A patch that adds the masks which out-of-bounds accesses lack, tried before it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path

from artifact_inspector.api.advice import replace_stale_entry
from artifact_inspector.api.equal_results import compare_results
from artifact_inspector.api.memory_errors import check_launches
from artifact_inspector.api.pair_prices import MAX_STEPS
from artifact_inspector.api.remedy_trial import has_launch_times, predict_time
from artifact_inspector.diagnosis.diagnose import predict_microseconds
from artifact_inspector.diagnosis.mask_edit import add_mask
from artifact_inspector.diagnosis.remedy import Remedy, RemedySearch
from artifact_inspector.errors import InspectorError
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.memory_checks.problems import Check, MemoryProblem, MemoryReport

MISSING_MASK = "missing-mask"
"""What such a remedy acts on: an error, which no predicted time shows."""


@dataclass(frozen=True, slots=True)
class MaskedKernel:
    """A kernel with the masks that it lacked, or why there is none."""

    text: str = ""
    """The whole changed file; empty without a patch."""
    patch: str = ""
    reason: str = ""
    gain: tuple[float | None, bool] = (None, False)
    """Predicted time before ÷ after, None if times are not predicted; whether it is that of a sample of CTAs."""


def with_mask_patch(
    pair: tuple[Artifact, LaunchRequest], report: MemoryReport, kernel: str, disassemble: Disassemble | None
) -> MemoryReport:
    """The report with a patch of `FILE.py:KERNEL` that adds missing masks, or with a note why there is none.

    The changed kernel compiles, leaves no tensor, and gives equal results in Triton's interpreter (first CTAs).
    """
    if not _lacks_masks(pair[0], report, kernel):
        return report
    masked = _add_masks(pair, report.problems, kernel, disassemble)
    if masked.patch:
        return replace(report, patch=masked.patch)
    return replace(report, notes=(*report.notes, f"no patch with masks: {masked.reason}"))


def with_mask_remedy(
    pair: tuple[Artifact, LaunchRequest],
    search: RemedySearch,
    kernel: str,
    disassemble: Disassemble | None,
    gpu: str | None = None,
) -> RemedySearch:
    """The search with the patch that adds missing masks as its first remedy, or with the reason why there is none."""
    (report,) = check_launches([pair], disassemble)
    if not _lacks_masks(pair[0], report, kernel):
        return search
    lines = sorted({problem.site.source_line for problem in report.problems if problem.missing_mask})
    masked = _add_masks(pair, report.problems, kernel, disassemble, gpu)
    where = f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"
    if not masked.patch:
        sentence = f"Accesses leave their tensors at {where}, and no patch with masks was found: {masked.reason}."
        return replace(search, reason=f"{search.reason} {sentence}".strip())
    gain, is_sampled = masked.gain
    remedy = Remedy(f"{where}: add missing masks", masked.patch, gain or 1.0, (), MISSING_MASK, True, is_sampled)
    edited = {masked.patch: masked.text, **search.edited_files}
    return replace(search, remedies=(remedy, *search.remedies), edited_files=edited)


def _lacks_masks(entry: Artifact, report: MemoryReport, kernel: str) -> bool:
    is_named = entry.display_name == kernel.rpartition(":")[2]
    return is_named and any(problem.missing_mask for problem in report.problems)


def _add_masks(
    pair: tuple[Artifact, LaunchRequest],
    problems: Sequence[MemoryProblem],
    kernel: str,
    disassemble: Disassemble | None,
    gpu: str | None = None,
) -> MaskedKernel:
    """The file with masks, which passed every check."""
    path, _, name = kernel.rpartition(":")
    entry, request = pair
    source = text = Path(path).read_text(encoding="utf-8")
    numbers = {x: one for x, one in {**entry.constants, **request.arguments}.items() if type(one) is int}
    for one in sorted(problems, key=lambda one: -one.site.source_line):  # an edit may join lines
        if one.missing_mask is not None:
            text = add_mask(text, name, one.site.source_line, one.missing_mask, numbers) or text
    if text == source:
        return MaskedKernel(reason="its index, its extent or its value for `other` is unknown")
    with scratch_directory() as scratch:
        changed = Path(scratch) / Path(path).name
        changed.write_text(text, encoding="utf-8")
        try:
            current = replace_stale_entry(pair, f"{changed}:{name}", Path(scratch) / "cache")
        except InspectorError as error:
            return MaskedKernel(reason=error.message)
        again = check_launches([current], disassemble)[0]
        if again.undecided or any(problem.check is Check.OUT_OF_BOUNDS for problem in again.problems):
            return MaskedKernel(reason="the kernel still leaves its tensors")
        files = Path(path), changed
        if not compare_results(files, name, request, entry.constants, files[0].parent, is_mask=True):
            return MaskedKernel(reason="equal results could not be shown in Triton's interpreter")
        patch = unified_diff(source.splitlines(True), text.splitlines(True), f"a/{changed.name}", f"b/{changed.name}")
        return MaskedKernel(text, "".join(patch), gain=_predict_gain((pair, current), disassemble, gpu))


def _predict_gain(
    pairs: Sequence[tuple[Artifact, LaunchRequest]], disassemble: Disassemble | None, gpu: str | None
) -> tuple[float | None, bool]:
    """The gain by the times of all CTAs, else by those of samples, and whether it is that."""
    candidates = [RankingCandidate(entry, request, entry.constants) for entry, request in pairs]
    try:
        launches = [predict_time(candidate, disassemble, gpu, MAX_STEPS) for candidate in candidates]
        known = [time.us for time in launches if time is not None]
        times = known if len(known) == 2 else [predict_microseconds(one, disassemble, gpu=gpu) for one in candidates]
    except InspectorError:
        return None, False
    is_sampled = times is not known and has_launch_times(candidates[0].artifact)
    return (round(times[0] / times[1], 2), is_sampled) if times[0] and times[1] else (None, False)
