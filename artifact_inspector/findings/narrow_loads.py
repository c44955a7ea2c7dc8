"""A load moves few bytes at a time, because the IR proves too little for more.

A thread can load 16 bytes at once. An address that nothing says is aligned, a stride that is not known to
be 1, a mask that may part neighbours, addresses taken modulo a number: each of them forbids it.

**When it is said.** A load statement is narrower than 16 bytes at the last stage, and something other than
the size of its tile or its layout limits it to that width. Bytes, width and the argument in question are
named; where no promise about an argument would do (a division, a stride), that alone is. Loads that the same
thing keeps as narrow are told together. Nothing is said of a load that is one instruction, nor where a mask
compares indices with each other (a triangle) or with a number.

**What it is likely to cost.** More instructions for the same bytes; below 4 bytes also no asynchronous
copy, hence no pipelining on NVIDIA.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from artifact_inspector.analysis.access.load_widths import Cause, Reason
from artifact_inspector.analysis.access.load_widths import LoadWidth as AccessWidth
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings._switch import divisible

WIDEST = 16
OF_THE_TILE = frozenset({Reason.TILE, Reason.LAYOUT, Reason.SCALAR})


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    yield from find_narrow(kernel, kernel.widths, "load")


def find_narrow(kernel: KernelFacts, widths: Iterable[AccessWidth], what: str) -> Iterator[Remark]:
    """One remark for all accesses that the same thing keeps as narrow.

    Args:
        what: `load` or `store`.
    """
    groups: dict[tuple[int, int, tuple[str, ...]], list[AccessWidth]] = {}
    for access in widths:
        causes = tuple(dict.fromkeys(map(_words, causes_of(access))))
        instructions = sum(access.widths.values())
        if access.width is None or access.width >= WIDEST or not causes or instructions == 1:
            continue
        if not _is_by_nature(access):
            groups.setdefault((access.width, instructions, causes), []).append(access)
    for (width, count, reasons), group in groups.items():
        names = list(dict.fromkeys(access.name for access in group if access.name))
        if len(group) > len(names):
            names = [f"{len(group)} {what}s"] if len(group) > 1 else [f"a {what}"]
        verb = "move" if len(group) > 1 else "moves"
        each = " each" if len(group) > 1 else ""
        times = f" ({count} instructions{each})" if count > 1 else ""
        own = [access.line for access in group]
        evidence = [cause.line for access in group for cause in causes_of(access)]
        yield Remark(
            f"{', '.join(names)} {verb} {width} B per thread at a time{times}: {'; '.join(reasons)}",
            next(iter(kernel.stages), None),
            tuple(dict.fromkeys([*own, *evidence])),
            tuple(dict.fromkeys(access.source for access in group if access.source is not None)),
        )


def causes_of(access: AccessWidth) -> list[Cause]:
    """What keeps an access narrow: what no promise of the caller undoes, where there is such a thing."""
    found = [cause for cause in access.causes if cause.reason not in OF_THE_TILE]
    return [cause for cause in found if not cause.is_promise] or found


def _words(cause: Cause) -> str:
    if cause.name.isdigit() and cause.reason is Reason.STRIDE:
        return f"neighbours are {cause.name} elements apart"
    if cause.name.isdigit() and cause.reason is Reason.MODULO:
        return f"addresses are taken modulo {cause.name}"
    return cause.reason.value + (f" ({cause.name})" if cause.name else "")


def _is_by_nature(access: AccessWidth) -> bool:
    """True where a mask parts neighbours by their own indices alone, as a triangle does: no promise helps."""
    return any(cause.reason is Reason.MASK and not cause.name for cause in access.causes)


RULE = Rule(
    "AI006",
    "narrow-loads",
    Severity.WARNING,
    Consequence.REST,
    _look,
    __doc__,
    switches=lambda kernel: divisible(kernel.widths),
)
