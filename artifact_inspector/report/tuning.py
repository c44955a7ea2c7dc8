"""The times that Triton's autotuner measured, with the variants they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from artifact_inspector.files.tuning import Timed, Tuning
from artifact_inspector.report.words import plural

if TYPE_CHECKING:  # a list is shown without what compares
    from artifact_inspector.comparison.matrix import Form

MOST_ROWS = 12
MOST_KEYS = 6


def tunings_block(tunings: Sequence[Tuning], forms: Sequence[Form]) -> RenderableType:
    """A table for each autotuning key: the time of each configuration and the matching variants."""
    parts: list[RenderableType] = []
    for tuning in tunings:
        key = ", ".join(tuning.key)
        parts.append(Text(f"Triton's autotuner timings for {key}", "bold", overflow="fold"))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("ms", justify="right", no_wrap=True)
        table.add_column("× best", justify="right", no_wrap=True)
        table.add_column("configuration", overflow="fold")
        table.add_column("variants", overflow="fold")
        best = tuning.timings[0].milliseconds if tuning.timings else None
        for timing in tuning.timings[:MOST_ROWS]:
            said = [f"{name}={value}" for name, value in timing.constants.items()]
            said += [f"w{timing.num_warps} s{timing.num_stages}"]
            own = [form for form in forms if timing.is_of(form.kernel.artifact, form.summary.tiles or ())]
            took = timing.milliseconds
            table.add_row(
                "failed" if took is None else f"{took:.4g}",
                "–" if took is None or not best else f"{took / best:.2f}",
                " ".join(said),
                ", ".join(f"{form.label} {form.kernel.artifact.hash[:8]}" for form in own) or "not found",
            )
        parts.append(table)
        more = len(tuning.timings) - MOST_ROWS
        parts.append(Text(f"{more} more {plural('configuration', more)}" if more > 0 else "", "dim"))
    return Group(*parts)


def timing_cell(found: Sequence[Timed]) -> str:
    """Milliseconds of an entry, over all keys."""
    times = [one for each in found for one in each.milliseconds if one is not None]
    if not times:
        return "failed" if found else ""
    return f"{min(times):.4g}" if min(times) == max(times) else f"{min(times):.4g}–{max(times):.4g}"


def describe_timings(found: Sequence[Timed]) -> Iterator[tuple[str, str]]:
    """The autotuner's times of one entry, one line per key."""
    for each in found[:MOST_KEYS]:
        times = [f"{one:.4g}" for one in each.milliseconds if one is not None]
        said = f"{' or '.join(times)} ms" if times else "launch failed"
        if each.is_fastest:
            said += ", the fastest"
        elif each.fastest is not None:
            said += f" (fastest: {each.fastest:.4g} ms)"
        among = f"{each.configurations} {plural('configuration', each.configurations)}"
        yield "timed", f"{said}, {among} for {', '.join(each.key)} (Triton's autotuner)"
    if len(found) > MOST_KEYS:
        yield "", f"and {len(found) - MOST_KEYS} more keys"
