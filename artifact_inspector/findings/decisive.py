"""Which finding of a kernel matters most: the one that its story begins with."""

from __future__ import annotations

from collections.abc import Iterable

from artifact_inspector.findings._rule import Finding

__all__ = ["find_limit"]

_FIRST = ("AI013", "AI007", "AI004", "AI005", "AI008", "AI002", "AI003", "AI006", "AI010", "AI009", "AI001")
"""What costs most first: no launch, spills, no matrix unit or an older one, occupancy, nothing in flight."""
_NO_LIMIT = frozenset({"AI012"})
"""A contradiction of two files is no property of the kernel."""


def find_limit(findings: Iterable[Finding]) -> Finding | None:
    """The finding that says what limits a kernel; None where no finding does."""
    told = [finding for finding in findings if finding.code not in _NO_LIMIT]
    places = {code: place for place, code in enumerate(_FIRST)}
    return min(told, key=lambda finding: places.get(finding.code, len(_FIRST)), default=None)
