"""`--why` of `diff` and `matrix`: what made Triton compile a kernel more than once."""

from __future__ import annotations

from collections.abc import Sequence

from artifact_inspector.cli._loading import inspect_kernels
from artifact_inspector.cli._output import print_json, print_report
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.comparison.variant_causes import KeyPartKind, find_causes, find_reasons
from artifact_inspector.errors import UsageError
from artifact_inspector.files.cache import Artifact
from artifact_inspector.report.json.comparison import CausesDocument, ReasonsDocument
from artifact_inspector.report.variant_matrix import CausesReport, ReasonsReport
from artifact_inspector.vocabulary.variant_labels import Compiled

MAX_ENTRIES = 12
"""Entries that an error lists."""


def print_causes(artifacts: Sequence[Artifact], *, json: bool) -> None:
    """Print how many variants of one kernel each argument, option or version causes."""
    names = sorted({artifact.display_name for artifact in artifacts})
    if len(names) != 1:
        raise UsageError(
            f"--why reads the variants of one kernel; {len(names)} match.",
            f"Give the whole name of one: {', '.join(names)}." if names else "Give a cache with kernels.",
        )
    causes = find_causes(_read_variants(artifacts))
    if json:
        print_json(CausesDocument(name=names[0], causes=causes))
    else:
        print_report(CausesReport(names[0], causes))


def print_reasons(left_entries: Sequence[Artifact], right_entries: Sequence[Artifact], *, json: bool) -> bool:
    """Print what separates two entries of a cache; return whether a cause was found."""
    sides = _require_entry(left_entries, "left"), _require_entry(right_entries, "right")
    reasons = find_reasons(*_read_variants(sides))
    if json:
        print_json(ReasonsDocument(left=sides[0].hash, right=sides[1].hash, reasons=reasons))
    else:
        labels = (f"{sides[0].display_name} {sides[0].hash[:8]}", f"{sides[1].display_name} {sides[1].hash[:8]}")
        print_report(ReasonsReport(labels, reasons))
    return any(reason.key_part.cause is not KeyPartKind.UNKNOWN for reason in reasons)


def _read_variants(artifacts: Sequence[Artifact]) -> list[Compiled]:
    kernels = inspect_kernels(artifacts, None, lambda kernel: kernel.program)
    return [Compiled(kernel.artifact, kernel.program) for kernel in kernels]


def _require_entry(entries: Sequence[Artifact], side: str) -> Artifact:
    if len(entries) != 1:
        entry_list = "\n".join(f"  {Candidate(entry)}" for entry in entries[:MAX_ENTRIES])
        raise UsageError(
            f"--why compares two entries; {len(entries)} match on the {side}.", f"Choose one:\n{entry_list}"
        )
    return entries[0]
