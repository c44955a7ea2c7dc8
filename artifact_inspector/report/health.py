"""A cache directory as text: damage, sizes by GPU and Triton, removals."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from artifact_inspector.files.doctor import CacheEntry, CacheHealth, Pruned
from artifact_inspector.report.phrases import plural

_DAY = 24 * 3600


@dataclass(frozen=True, slots=True)
class DamageReport:
    """The damaged files, or that there are none."""

    health: CacheHealth

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        damage, entries = self.health.damage, self.health.entries
        damaged = {item.directory for item in damage}
        total = f"{len(entries)} {plural('entry', len(entries))}"
        if not damage:
            yield Text(f"No damage found in {total} of {self.health.root}.", "bold green")
        else:
            yield Text(f"{len(damaged)} of {total} of {self.health.root} are damaged:", "bold red")
            yield _table(("entry", "file", "problem"), ((item.directory, item.file, item.problem) for item in damage))
            yield Text(f"\nTo remove them: inspect-kernel cache prune {self.health.root}", "dim")
        failed = [entry for entry in entries if not (entry.is_complete or entry.damage)]
        if failed:
            yield Text(f"{len(failed)} have no metadata: their compile failed or is running.")
        yield from (Text(f"Not searched: {sentence}.", "yellow") for sentence in self.health.unsearched)


@dataclass(frozen=True, slots=True)
class SizeReport:
    """Sizes, inodes and ages by GPU and Triton, the largest first."""

    health: CacheHealth

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        health, now = self.health, time.time()
        groups: dict[tuple[str, str], list[CacheEntry]] = defaultdict(list)
        for entry in health.entries:
            groups[entry.target or "unknown", entry.triton_version or "unknown"].append(entry)
        total = sum(entry.bytes for entry in health.entries) + health.other_bytes
        files = sum(entry.files for entry in health.entries) + health.other_files
        yield Text(f"{_mib(total)} in {files:,} files of {health.root}", "bold")
        ranked = sorted(groups.items(), key=lambda group: -sum(entry.bytes for entry in group[1]))
        rows = [
            (*key, f"{len(x):,}", f"{sum(y.files for y in x):,}", _mib(sum(y.bytes for y in x)), _age(x, now))
            for key, x in ranked
        ]
        if health.other_files:
            rows.append(("other files", "", "", f"{health.other_files:,}", _mib(health.other_bytes), ""))
        yield _table(("target", "Triton", "entries", "files", "size", "last used"), rows)
        copies = [entry for entry in health.entries if entry.duplicate_of is not None]
        if copies:
            yield Text(f"\n{len(copies)} entries repeat another one: {_mib(sum(entry.bytes for entry in copies))}.")
        if health.leftovers:
            size = _mib(sum(leftover.bytes for leftover in health.leftovers))
            yield Text(f"{len(health.leftovers)} temporary files or directories of killed compiles: {size}.")


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What was removed, or would be."""

    pruned: Sequence[Pruned]
    is_dry_run: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        going = [item for item in self.pruned if not item.kept_because]
        size = _mib(sum(item.bytes for item in going))
        verb = "Would remove" if self.is_dry_run else "Removed"
        yield Text(f"{verb} {len(going)} {plural('directory', len(going))}: {size}.", "bold")
        rows = (
            (item.directory, item.reason, item.kept_because and f"kept: {item.kept_because}") for item in self.pruned
        )
        if self.pruned:
            yield _table(("entry", "reason", ""), rows)
        if self.is_dry_run and going:
            yield Text("\nNothing was removed. Add --yes to remove them.", "dim")


def _age(entries: Sequence[CacheEntry], now: float) -> str:
    newest, oldest = (max(0.0, now - pick(entry.used for entry in entries)) / _DAY for pick in (max, min))
    return f"{newest:.0f}–{oldest:.0f} days ago" if round(newest) != round(oldest) else f"{newest:.0f} days ago"


def _mib(count: int) -> str:
    return f"{count / (1 << 20):,.1f} MiB"


def _table(headings: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(str(cell), overflow="fold") for cell in row))
    return table
