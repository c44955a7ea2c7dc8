"""A load moves few bytes per instruction, because the IR cannot prove that more is safe.

A thread can load 16 bytes at once. It cannot if the alignment of the address is unknown, if the stride may differ from
1, if the mask may differ between neighbours, or if addresses are taken modulo a number.

**When it is reported.** A load statement moves at most 4 bytes at a time at the last stage, and at least 16 in total
(8 in waves of 64 lanes, where twice the threads share a tile).
The limit is not the size of its tile or its layout. Loads that divisible arguments would widen share one finding,
which names the arguments. Other loads are grouped by their cause, such as a division or a stride. Not reported are
masks that compare indices with each other or with a number, and loaded addresses.

**What it is likely to cost.** More instructions for the same bytes. Below 4 bytes there are also no asynchronous
copies, and so no pipelining on NVIDIA.

**What to do.** Pass pointers and strides that are multiples of 16, or promise it with `tl.multiple_of` and
`tl.max_contiguous`. Make a stride that is 1 a `tl.constexpr`. Move divisions and remainders out of the address. Mask
with a bound that is a multiple of 16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from artifact_inspector.analysis.access.accesses import AccessCounts
from artifact_inspector.analysis.access.load_widths import LoadWidth as AccessWidth
from artifact_inspector.analysis.access.load_widths import NarrowCause, NarrowReason
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings._switch import divisible

WIDEST, NARROW = 16, 4
"""Bytes of one instruction: the maximum, and the limit of narrow ones (32 lanes fill a line with 4 each)."""
_WARP = 32
"""Lanes among which tiles are compared: a wave of 64 has half as many bytes of a tile in each."""
NUMBERED = {
    NarrowReason.STRIDE: "neighbours are {} elements apart",
    NarrowReason.MODULO: "addresses are taken modulo {}",
}
"""Descriptions with a number instead of an argument."""
TILE_REASONS = frozenset({NarrowReason.TILE, NarrowReason.LAYOUT, NarrowReason.SCALAR})


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    if has_narrow(kernel, lambda accesses: accesses.load_widths):
        yield from find_narrow(kernel, kernel.widths, "load")


def has_narrow(kernel: KernelFacts, widths: Callable[[AccessCounts], Iterable[int | None]]) -> bool:
    """Whether the last stage has an instruction that is narrow; without one, no statement became such."""
    last = kernel.last
    return last is not None and any(width is not None and width <= NARROW for width in widths(last.accesses))


def find_narrow(kernel: KernelFacts, widths: Iterable[AccessWidth], noun: str) -> Iterator[Remark]:
    """One remark for all accesses that divisible arguments would widen, and one for each other cause.

    Args:
        noun: `load` or `store`.
    """
    groups: dict[tuple[str, ...], list[AccessWidth]] = {}
    target = kernel.artifact.target
    threads = _WARP if target is None else target.warp_size
    for access in widths:
        causes = causes_of(access)
        instructions = sum(access.widths.values())
        if access.width is None or access.width > NARROW or not causes or _is_by_nature(access):
            continue
        if instructions and instructions * access.width * threads < WIDEST * _WARP:
            continue  # one instruction could move it all
        of_promises = all(cause.is_promise for cause in causes)
        groups.setdefault(() if of_promises else _reasons(causes), []).append(access)
    for group in groups.values():
        causes = [cause for access in group for cause in causes_of(access)]
        yield Remark(
            f"{_accesses(group, noun)}. Cause: {'; '.join(_reasons(causes))}",
            next(iter(kernel.stages), None),
            tuple(dict.fromkeys([*(access.line for access in group), *(cause.line for cause in causes)])),
            tuple(dict.fromkeys(access.source for access in group if access.source is not None)),
        )


def _accesses(group: list[AccessWidth], noun: str) -> str:
    """`x, y: 8 loads of 4 B per thread each`."""
    by_width: dict[tuple[int | None, int], list[AccessWidth]] = {}
    for access in group:
        by_width.setdefault((access.width, access.widths.get(access.width or 0, 0)), []).append(access)
    clauses = []
    for (width, count), accesses in by_width.items():
        names = list(dict.fromkeys(access.name for access in accesses if access.name))
        if len(accesses) > len(names):
            names = [f"{len(accesses)} {noun} statements" if len(accesses) > 1 else f"a {noun} statement"]
        suffix = " each" if len(accesses) > 1 else ""
        number = f"{count} {noun}{'' if count == 1 else 's'}" if count else f"{noun}s"
        clauses.append(f"{', '.join(names)}: {number} of {width} B per thread{suffix}")
    return "; ".join(clauses)


def _reasons(causes: Iterable[NarrowCause]) -> tuple[str, ...]:
    """The causes, each once, with all the arguments that have it."""
    names: dict[NarrowReason | str, dict[str, None]] = {}
    for cause in causes:
        by_number = cause.name.isdigit() and cause.reason in NUMBERED
        description = NUMBERED[cause.reason].format(cause.name) if by_number else cause.reason
        names.setdefault(description, {}).update({} if by_number or not cause.name else {cause.name: None})
    return tuple(
        f"{description}" + (f" ({', '.join(arguments)})" if arguments else "")
        for description, arguments in names.items()
    )


def causes_of(access: AccessWidth) -> list[NarrowCause]:
    """The causes of a narrow access: those that no divisible argument removes, if there are any."""
    causes = [cause for cause in access.causes if cause.reason not in TILE_REASONS]
    return [cause for cause in causes if not cause.is_promise] or causes


def _is_by_nature(access: AccessWidth) -> bool:
    """True if the mask compares only indices, as in a triangle, or if addresses are loaded."""
    return any(
        cause.reason is NarrowReason.GATHER or (cause.reason is NarrowReason.MASK and not cause.name)
        for cause in access.causes
    )


RULE = Rule(
    "AI006", "narrow-loads", Severity.WARNING, Consequence.OTHER, _look, __doc__,
    switches=lambda kernel: divisible(kernel, kernel.widths),
)  # fmt: skip
