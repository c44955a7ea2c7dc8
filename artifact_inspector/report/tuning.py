"""The times that Triton's autotuner measured, with the variants they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from artifact_inspector.files.autotuning import AutotuneResult, EntryTiming
from artifact_inspector.report.phrases import plural

if TYPE_CHECKING:  # a list is shown without what compares
    from artifact_inspector.comparison.matrix import Variant

MAX_ROWS = 12
MAX_KEYS = 6


def tunings_block(tunings: Sequence[AutotuneResult], variants: Sequence[Variant]) -> RenderableType:
    """A table for each autotuning key: the time of each configuration and the matching variants."""
    renderables: list[RenderableType] = []
    for tuning in tunings:
        key = ", ".join(tuning.key)
        renderables.append(Text(f"Triton's autotuner timings for {key}", "bold", overflow="fold"))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("ms", justify="right", no_wrap=True)
        table.add_column("× best", justify="right", no_wrap=True)
        table.add_column("configuration", overflow="fold")
        table.add_column("variants", overflow="fold")
        best = tuning.timings[0].milliseconds if tuning.timings else None
        for timing in tuning.timings[:MAX_ROWS]:
            descriptions = [f"{name}={value}" for name, value in timing.constants.items()]
            descriptions += [f"w{timing.num_warps} s{timing.num_stages}"]
            matching_variants = [
                form for form in variants if timing.is_of(form.kernel.artifact, form.summary.tiles or ())
            ]
            milliseconds = timing.milliseconds
            table.add_row(
                "failed" if milliseconds is None else f"{milliseconds:.4g}",
                "–" if milliseconds is None or not best else f"{milliseconds / best:.2f}",
                " ".join(descriptions),
                ", ".join(f"{form.label} {form.kernel.artifact.hash[:8]}" for form in matching_variants) or "not found",
            )
        renderables.append(table)
        omitted = len(tuning.timings) - MAX_ROWS
        renderables.append(Text(f"{omitted} more {plural('configuration', omitted)}" if omitted > 0 else "", "dim"))
    return Group(*renderables)


def timing_cell(timings: Sequence[EntryTiming]) -> str:
    """Milliseconds of an entry, over all keys."""
    times = [milliseconds for timing in timings for milliseconds in timing.milliseconds if milliseconds is not None]
    if not times:
        return "failed" if timings else ""
    return f"{min(times):.4g}" if min(times) == max(times) else f"{min(times):.4g}–{max(times):.4g}"


def describe_timings(timings: Sequence[EntryTiming]) -> Iterator[tuple[str, str]]:
    """The autotuner's times of one entry, one line per key."""
    for timing in timings[:MAX_KEYS]:
        times = [f"{milliseconds:.4g}" for milliseconds in timing.milliseconds if milliseconds is not None]
        text = f"{' or '.join(times)} ms" if times else "launch failed"
        if timing.is_fastest:
            text += ", the fastest"
        elif timing.fastest is not None:
            text += f" (fastest: {timing.fastest:.4g} ms)"
        configuration_count = f"{timing.configurations} {plural('configuration', timing.configurations)}"
        yield "timed", f"{text}, {configuration_count} for {', '.join(timing.key)} (Triton's autotuner)"
    if len(timings) > MAX_KEYS:
        yield "", f"and {len(timings) - MAX_KEYS} more keys"
