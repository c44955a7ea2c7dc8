"""The widths of a kernel's memory accesses and the reasons for narrow ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.analysis.access.accesses import AccessCounts
from artifact_inspector.analysis.access.load_widths import LoadWidth
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model import Stage


def access_block(kernel: KernelFacts) -> RenderableType | None:
    """Access widths at the last stage, and each narrow load statement with its causes."""
    last = kernel.last
    if last is None or last.stage.order <= Stage.TTGIR.order or not last.accesses.total:
        return None
    head = Text("memory access", "bold")
    head.append(f"  bytes per thread in {last.stage.value}", "dim")
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for label, text in _histograms(last.accesses):
        grid.add_row(label, text)
    body: list[RenderableType] = [grid]
    if any(load.causes for load in kernel.widths):
        body += ["", _causes(kernel)]
    for policy in kernel.policies:
        if policy.lost:
            location = policy.source or f"line {policy.line}"
            warning = f"{', '.join(policy.lost)} requested at {location}, but missing in {last.stage.value}"
            body.append(Text(warning, "yellow"))
    return Group(head, Padding(Group(*body), (0, 0, 0, 2)))


def _histograms(accesses: AccessCounts) -> Iterator[tuple[str, str]]:
    for label, widths in (("loads", accesses.loads), ("copies", accesses.copies), ("stores", accesses.stores)):
        if widths:
            yield label, _histogram(widths)
    for label, sizes in (("tile loads", accesses.tiles), ("tile stores", accesses.tile_stores)):
        if sizes:
            yield label, f"{_histogram(sizes)} per block"
    if accesses.predicated:
        folded = f", {accesses.folded_masks} with the mask folded into the access" if accesses.folded_masks else ""
        yield "masked", f"{accesses.predicated} of {accesses.total}{folded}"
    if accesses.cache:
        yield "cache", ", ".join(f"{modifier} ×{count}" for modifier, count in sorted(accesses.cache.items()))


def _histogram(widths: Mapping[int | None, int]) -> str:
    sorted_widths = sorted(((w, n) for w, n in widths.items() if w is not None), reverse=True)
    texts = [f"{width} B ×{count}" for width, count in sorted_widths]
    if None in widths:
        texts.append(f"unknown ×{widths[None]}")
    return ", ".join(texts)


def _causes(kernel: KernelFacts) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading, right in (("load", False), ("B", True), ("count", True)):
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    table.add_column("why it is not wider", overflow="fold")
    for load in kernel.widths:
        if load.causes:
            table.add_row(
                " ".join(fragment for fragment in (load.name, load.source) if fragment),
                "–" if load.width is None else str(load.width),
                str(sum(load.widths.values())),
                _describe_causes(load),
            )
    return table


def _describe_causes(load: LoadWidth) -> str:
    reasons = (c.reason.value + (f" ({c.name})" if c.name else "") for c in load.causes)
    return "; ".join(dict.fromkeys(reasons))
