"""What a cache directory holds, what is damaged and what was removed, as JSON: `cache --json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from artifact_inspector.files.doctor import CacheEntry, CacheHealth, Damage, Pruned
from artifact_inspector.report.json._document import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthDocument(Document):
    """A cache directory: `inspect-kernel cache verify|du|prune --json`."""

    document: Literal["health"] = "health"
    cache: Path
    entries: tuple[CacheEntry, ...]
    damage: tuple[Damage, ...]
    """Of all entries."""
    other_files: int
    """Launchers, autotuning results and files that are not of Triton."""
    other_bytes: int
    unsearched: tuple[str, ...]
    """What was not searched, with the reason."""
    pruned: tuple[Pruned, ...]
    """Removals of `prune`, planned or done."""


def health_document(health: CacheHealth, pruned: tuple[Pruned, ...] = ()) -> HealthDocument:
    """A cache directory, with the removals of `prune`."""
    return HealthDocument(
        cache=health.root,
        entries=health.entries,
        damage=health.damage,
        other_files=health.other_files,
        other_bytes=health.other_bytes,
        unsearched=health.unsearched,
        pruned=pruned,
    )
