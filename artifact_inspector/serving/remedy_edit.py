"""The first source edit that makes a kernel faster; it imports the file, and runs changed copies of the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

from lsprotocol import types

from artifact_inspector.api.advice_cluster import AdviceSettings, advise_launch
from artifact_inspector.diagnosis.remedy import describe_launch_change
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.files.cache import Artifact
from artifact_inspector.model.limits import SIMULATION_SECONDS

SEARCH_SECONDS = 60.0
MAX_STEPS = 50_000_000


def find_remedy(
    entry: Artifact, request: LaunchRequest | None, file: Path, source: str
) -> tuple[list[types.TextEdit], str]:
    """The first edit of a kernel's file, whose text is `source`, that helps its launch; empty without one. A sentence.

    The file is imported, and not written. Without a request, a launch is assumed.
    """
    name = entry.display_name
    settings = AdviceSettings(None, MAX_STEPS, None, SIMULATION_SECONDS.value, SEARCH_SECONDS, f"{file}:{name}")
    advice = advise_launch(entry, request, settings)
    if advice.search is None:
        return [], advice.problem
    for remedy in advice.search.remedies:
        if remedy.patch is not None:
            costs = f"; it costs {', '.join(remedy.costs)}" if remedy.costs else ""
            message = f"{remedy.change}: {remedy.prediction}{costs}."
            return list(make_text_edits(source, advice.search.edited_files[remedy.patch])), message
    changes = [remedy.change for remedy in advice.search.remedies]
    reason = f"{changes[0]} {describe_launch_change(source, name, str(file))}" if changes else advice.search.reason
    return [], f"No edit of {name} helps: {reason or 'nothing stands out.'}"


def make_text_edits(before: str, after: str) -> Iterator[types.TextEdit]:
    """The edits of whole lines that make one text of another."""
    lines, changed_lines = before.splitlines(True), after.splitlines(True)
    for tag, start, end, first, last in SequenceMatcher(None, lines, changed_lines, autojunk=False).get_opcodes():
        if tag != "equal":
            span = types.Range(types.Position(start, 0), types.Position(end, 0))
            yield types.TextEdit(span, "".join(changed_lines[first:last]))
