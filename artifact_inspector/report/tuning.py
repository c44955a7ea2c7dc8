"""Triton's own timings beside the forms that they are of."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from artifact_inspector.comparison.matrix import Form
from artifact_inspector.files.tuning import Tuning
from artifact_inspector.report.words import plural

__all__ = ["tunings_block"]

MOST_ROWS = 12


def tunings_block(tunings: Sequence[Tuning], forms: Sequence[Form]) -> RenderableType:
    """A table for each key: what each configuration took, and the forms that may be it."""
    parts: list[RenderableType] = []
    for tuning in tunings:
        key = ", ".join(tuning.key)
        parts.append(Text(f"Triton's own timings for {key}", "bold", overflow="fold"))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("ms", justify="right", no_wrap=True)
        table.add_column("× best", justify="right", no_wrap=True)
        table.add_column("configuration", overflow="fold")
        table.add_column("forms", overflow="fold")
        best = tuning.timings[0].milliseconds if tuning.timings else None
        for timing in tuning.timings[:MOST_ROWS]:
            said = [f"{name}={value}" for name, value in timing.constants.items()]
            said += [f"w{timing.num_warps} s{timing.num_stages}"]
            own = [form for form in forms if timing.is_of(form.kernel.artifact, _extents(form))]
            took = timing.milliseconds
            table.add_row(
                "no launch" if took is None else f"{took:.4g}",
                "–" if took is None or not best else f"{took / best:.2f}",
                " ".join(said),
                ", ".join(f"{form.label} {form.kernel.artifact.hash[:8]}" for form in own) or "none here",
            )
        parts.append(table)
        more = len(tuning.timings) - MOST_ROWS
        parts.append(Text(f"{more} more {plural('configuration', more)}" if more > 0 else "", "dim"))
    return Group(*parts)


def _extents(form: Form) -> frozenset[int]:
    return frozenset(extent for tile in form.summary.tiles or () for extent in tile.extents)
