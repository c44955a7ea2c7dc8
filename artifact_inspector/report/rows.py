"""The rows and columns of kernel lists, fitted to the width of a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import Completeness
from artifact_inspector.findings import find_findings
from artifact_inspector.report.layout import phrase_text
from artifact_inspector.report.resources import registers_text
from artifact_inspector.report.waits import load_depths
from artifact_inspector.report.words import mma_count

MOST_NAME = 40
"""Columns of a name on a terminal; a longer name is cut in the middle."""


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one kernel; an empty text means nothing to report."""

    name: str
    form: str
    """The label of its variant; empty if the name identifies it."""
    hash: str
    target: str
    triton: str
    warps: str
    stages: str
    shared: str
    registers: str
    occupancy: str
    mma: str
    wait: str
    verdict: Text
    changed: str
    findings: str
    state: str

    @classmethod
    def of(cls, kernel: KernelFacts) -> Row:
        """The row of one kernel, without hash and variant, which depend on the other kernels."""
        return kernel.derive("row", lambda: cls._of(kernel))

    @staticmethod
    def _of(kernel: KernelFacts) -> Row:
        artifact, last = kernel.artifact, kernel.last
        changed = kernel.changed_at
        if kernel.occupancy is not None and kernel.occupancy.blocks == 0:
            state = "does not fit"
        elif artifact.state is Completeness.BINARY_ONLY:
            state = "binary only"
        elif last is None:
            state = "no readable stage"
        else:
            state = f"partial, ends at {last.stage.value}" if artifact.state is Completeness.PARTIAL else ""
        return Row(
            name=artifact.display_name,
            form="",
            hash="",
            target=_or_dash(None if artifact.target is None else artifact.target.arch),
            triton=_or_dash(artifact.triton_version),
            warps=_or_dash(artifact.num_warps),
            stages=_or_dash(artifact.num_stages),
            shared=_or_dash(artifact.shared_bytes),
            registers=registers_text(kernel),
            occupancy=_occupancy(kernel),
            mma=mma_count(kernel),
            wait=load_depths(kernel),
            verdict=_verdict(kernel),
            changed="" if changed is None else changed.value,
            findings=" ".join(dict.fromkeys(x.code.removeprefix("AI") for x in find_findings(kernel))),
            state=state,
        )


# heading, heading of a narrow table, right-aligned, cell
_COLUMNS: tuple[tuple[str, str, bool, Callable[[Row], str | Text]], ...] = (
    ("kernel", "kernel", False, lambda row: row.name),
    ("variant", "variant", False, lambda row: row.form),
    ("hash", "hash", False, lambda row: Text(row.hash, "dim")),
    ("target", "target", False, lambda row: row.target),
    ("Triton", "Triton", False, lambda row: row.triton),
    ("warps", "warps", True, lambda row: row.warps),
    ("stages", "stages", True, lambda row: row.stages),
    ("smem", "smem", True, lambda row: row.shared),
    ("regs", "regs", True, lambda row: row.registers),
    ("blocks/SM", "blk", True, lambda row: row.occupancy),
    ("MMA", "MMA", True, lambda row: row.mma),
    ("wait", "wait", True, lambda row: row.wait),
    ("verdict", "verdict", False, lambda row: row.verdict),
    ("changed at", "changed", False, lambda row: Text(row.changed, "yellow")),
    ("findings", "findings", False, lambda row: Text(row.findings, "dim")),
    ("state", "state", False, lambda row: Text(row.state, "magenta")),
)
_OPTIONAL = ("variant", "hash", "regs", "blocks/SM", "changed at", "findings", "state")
_CONSTANT = ("target", "Triton")
_IN_FORM = ("warps", "stages")
_HIDDEN_FIRST = (
    "smem", "MMA", "wait", "blk", "stages", "warps", "changed", "variant", "Triton", "regs", "target",
    "findings",
)  # fmt: skip
"""Columns of a narrow table that are hidden if it does not fit, the least important first."""
NARROWER = ((24, 22, 20), (18, 18, 16))
"""Characters of names, variants and verdicts in tables that would not fit otherwise."""
NARROWEST = (10, 14, 14)
"""The same where even hidden columns do not make the table fit."""


class Shown(NamedTuple):
    """One column of a table."""

    heading: str
    right: bool
    """Whether it is right-aligned, as numbers are."""
    cells: Sequence[str | Text]

    @property
    def width(self) -> int:
        """Columns that it takes, without padding."""
        return max(cell_len(self.heading), *(cell_len(str(cell)) for cell in self.cells))


class FittedTable(NamedTuple):
    """A table that fits the width of a terminal."""

    table: Table
    headings: frozenset[str]
    constants: str
    """Target and Triton version, if they are the same in all rows."""
    hidden: tuple[str, ...]
    """Headings of the columns that did not fit."""


def fit_table(rows: Sequence[Row], further: Sequence[tuple[str, list[str]]], width: int) -> FittedTable:
    """The most complete table of `width` columns: first shorter headings and names, then fewer columns.

    Args:
        further: additional columns by heading.
    """
    full = [replace(row, name=shorten(row.name)) for row in rows]
    wide, _ = columns_of(full, further, compact=False)
    if _width(wide, 2) <= width:
        return FittedTable(table_of(wide, compact=False), _headings(wide), "", ())
    layouts = [columns_of(full, further, compact=True)]
    for most in (*NARROWER, NARROWEST):
        layouts.append(columns_of([cut_words(row, *most) for row in full], further, compact=True))
    for count in range(len(_HIDDEN_FIRST) + 1):
        # the shortest names only if no column is left to hide
        for columns, constants in layouts if count == len(_HIDDEN_FIRST) else layouts[:-1]:
            hidden = [column for column in columns if column.heading in _HIDDEN_FIRST[:count]]
            room = width - _width([column for column in columns if column not in hidden], 1)
            if room >= 0 or count == len(_HIDDEN_FIRST):
                for column in sorted(hidden, key=lambda one: -_HIDDEN_FIRST.index(one.heading)):
                    if column.width < room:  # a hidden column that fits after all
                        hidden.remove(column)
                        room -= column.width + 1
                shown = [column for column in columns if column not in hidden]
                names = tuple(column.heading for column in hidden)
                return FittedTable(table_of(shown, compact=True), _headings(shown), constants, names)
    raise AssertionError


def _width(columns: Sequence[Shown], gap: int) -> int:
    return sum(column.width for column in columns) + gap * (len(columns) - 1)


def _headings(columns: Sequence[Shown]) -> frozenset[str]:
    return frozenset(column.heading for column in columns)


def columns_of(
    rows: Sequence[Row], further: Sequence[tuple[str, list[str]]], *, compact: bool
) -> tuple[list[Shown], str]:
    """The columns, and the target and version that the title names instead of a constant column.

    Args:
        further: additional columns by heading: blocks on other targets, times.
    """
    shown = []
    constants = []
    for heading, short, right, cell in _COLUMNS:
        cells = [cell(row) for row in rows]
        texts = set(map(str, cells))
        if heading in _OPTIONAL and texts == {""}:
            continue
        if heading in _IN_FORM and all(row.form for row in rows):
            continue
        if compact and heading in _CONSTANT and len(texts) == 1:
            constants.append(texts.pop() if heading == "target" else f"{heading} {texts.pop()}")
            continue
        shown.append(Shown(short if compact else heading, right, cells))
    shown += [Shown(heading, True, cells) for heading, cells in further]
    return shown, " · ".join(constants)


def table_of(columns: Sequence[Shown], *, compact: bool) -> Table:
    """The columns as a table."""
    table = Table(box=None, pad_edge=False, padding=(0, 1 if compact else 2, 0, 0), header_style="dim")
    for heading, right, _ in columns:
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*cells)
    return table


def lines_of(columns: Sequence[Shown]) -> list[str] | None:
    """The same as lines of plain text, 1000 times faster; None if a cell has control characters."""
    laid = []
    for heading, right, cells in columns:
        texts = [heading, *map(str, cells)]
        if not all(map(str.isprintable, texts)):
            return None
        texts = [text.rstrip() for text in texts] if right else texts
        width = max(map(cell_len, texts))
        blanks = [" " * (width - cell_len(text)) for text in texts]
        pairs = zip(texts, blanks, strict=True)
        laid.append([blank + text if right else text + blank for text, blank in pairs])
    return ["  ".join(cells).rstrip() for cells in zip(*laid, strict=True)]


def rows_of(kernels: Sequence[KernelFacts], labels: Sequence[str]) -> list[Row]:
    """A row for each kernel.

    Args:
        labels: of their variants; shown if they distinguish kernels of one name.
    """
    several = _tell_apart(kernels, labels)
    return [
        replace(Row.of(kernel), hash=digest, form=label if several else "")
        for kernel, digest, label in zip(kernels, digests(kernels), labels, strict=True)
    ]


def shorten(name: str, most: int = MOST_NAME) -> str:
    """A name cut in the middle to at most `most` + 2 characters.

    Args:
        most: characters; up to two more are kept.

    Example:
        >>> shorten("triton_poi_fused_add_native_layer_norm_backward_mul_relu_23")
        'triton_poi_fused_add…_backward_mul_relu_23'
    """
    half = most // 2
    return name if len(name) <= most + 2 else f"{name[:half]}…{name[-half - 1 :]}"


def cut_words(row: Row, name: int, form: int, verdict: int) -> Row:
    """A row with name, variant and verdict cut to so many characters; the hash still identifies it."""
    phrase = row.verdict.copy()
    phrase.truncate(verdict, overflow="ellipsis")
    return replace(row, name=shorten(row.name, name - 2), form=shorten(row.form, form - 2), verdict=phrase)


def _tell_apart(kernels: Sequence[KernelFacts], labels: Sequence[str]) -> bool:
    """Whether labels distinguish some kernels of one name, target and version."""
    told: dict[tuple[object, ...], set[str]] = {}
    for kernel, label in zip(kernels, labels, strict=True):
        artifact = kernel.artifact
        key = artifact.display_name, artifact.target, artifact.triton_version
        told.setdefault(key, set()).add(label)
    return any(len(found) > 1 for found in told.values())


def _occupancy(kernel: KernelFacts) -> str:
    return "" if kernel.occupancy is None else blocks_text(kernel.occupancy)


def blocks_text(held: Occupancy) -> str:
    """Blocks that fit on an SM or CU; empty if unknown."""
    return "" if held.blocks is None else str(held.blocks)


def _verdict(kernel: KernelFacts) -> Text:
    region, last = kernel.principal_region, kernel.last
    if region is None or last is None:
        return Text("–", "dim")
    phrase = phrase_text(region)
    if last.region(region.id) is None:
        where = next(
            s.value for s, facts in reversed(kernel.stages.items()) if facts.region(region.id) is not None
        )
        phrase.append(f" in {where}, no such loop in {last.stage.value}", "dim")
    return phrase


def digests(kernels: Sequence[KernelFacts]) -> list[str]:
    """The shortest prefixes of the hashes that distinguish kernels of one name; empty for a unique name.

    Copies of one entry have the same hash; they are distinguished by directory.
    """
    by_name: dict[str, Counter[str]] = {}
    for kernel in kernels:
        by_name.setdefault(kernel.artifact.display_name, Counter())[kernel.artifact.hash] += 1
    lengths = {name: _length(same) for name, same in by_name.items()}
    digests = []
    for kernel in kernels:
        name, own = kernel.artifact.display_name, kernel.artifact.hash
        same = by_name[name]
        told = own[: lengths[name]] if same.total() > 1 else ""
        digests.append(kernel.artifact.directory if same[own] > 1 else told)
    return digests


def _length(hashes: Collection[str]) -> int:
    """The number of characters, at least six, that distinguish some hashes."""
    length = 6
    while length < 64 and len({one[:length] for one in hashes}) < len(hashes):
        length += 1
    return length


def _or_dash(value: object) -> str:
    return "–" if value is None else str(value)
