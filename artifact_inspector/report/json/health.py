"""What a cache directory holds, what is damaged and what was removed, as JSON: `cache --json`."""

from __future__ import annotations

from dataclasses import dataclass, field

from artifact_inspector.files.doctor import CacheHealth, Pruned
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import INLINED, define_shape, hidden, named

define_shape(
    CacheHealth, lambda x: (
        named("cache", x.root), x.entries, x.damage, x.other_files, x.other_bytes, x.unsearched, *hidden(x.leftovers),
    ),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class HealthDocument(Document):
    """A cache directory: `inspect-kernel cache verify|du|prune --json`."""

    health: CacheHealth = field(metadata=INLINED)
    pruned: tuple[Pruned, ...]
    """Removals of `prune`, planned or done."""
