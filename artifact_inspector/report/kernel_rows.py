"""The rows and columns of kernel lists, fitted to the width of a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.facts.kept_diagnosis import diagnosis_of
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import Completeness
from artifact_inspector.findings import find_findings, not_pipelined
from artifact_inspector.findings.limit import POSSIBLE_ERRORS
from artifact_inspector.model import OrderVerdict
from artifact_inspector.report.layout import phrase_text
from artifact_inspector.report.phrases import mma_count
from artifact_inspector.report.region_work import load_depths
from artifact_inspector.report.resources import registers_text
from artifact_inspector.vocabulary.selection import is_severe

LIMIT_GAP = ", "
"""Separates what limits a kernel."""
MAX_NAME_WIDTH = 40
"""Columns of a name on a terminal; a longer name is cut in the middle."""

MAX_HASH_WIDTH = 16
"""Columns of a hash on a terminal; copies of one entry, which only their directories distinguish, have its prefix."""
Cells = Mapping[str, str | Text]
"""Heading → cell of one kernel; an empty text means nothing to report."""


def kernel_cells(kernel: KernelFacts) -> Cells:
    """The cells of one kernel, without hash and variant, which depend on the other kernels."""

    def find_cells() -> Cells:
        cells = {heading: "" if cell is None else cell(kernel) for heading, _, _, cell in _COLUMNS}
        return {
            heading: "–" if cell is None else str(cell) if isinstance(cell, int) else cell
            for heading, cell in cells.items()
        }

    return kernel.derive("row", find_cells)


def _state(kernel: KernelFacts) -> Text:
    state, last = kernel.artifact.state, kernel.last
    if state is Completeness.BINARY_ONLY:
        return Text("binary only", "magenta")
    if last is None:
        return Text("no readable stage", "magenta")
    gaps = kernel.artifact.gaps
    lacks = f"lacks {', '.join(gaps)}" if gaps else ""
    ends = f"ends at {last.stage.value}" if state is Completeness.PARTIAL else ""
    return Text(kernel.truncated or lacks or ends, "magenta")


def _limits(kernel: KernelFacts) -> Text:
    """What limits a kernel, worst first: the names of its findings as words.

    `not pipelined` says if it is of a part of the main loop, whose verdict is in the same row, or of another loop.
    """
    spilled, main = kernel.resources.spill_bytes.value, kernel.principal_region
    loop = "" if main is None or main.verdict in not_pipelined.UNPIPELINED else " (other loop)"
    loop = " (in part)" if main is not None and main.verdict is OrderVerdict.PARTLY_PIPELINED else loop
    names = [
        ("possible error: " if x.code in POSSIBLE_ERRORS else "")
        + x.name.replace("-", " ")
        + (loop if x.code == not_pipelined.RULE.code else "")
        for x in find_findings(kernel)
    ]
    names += ["does not fit"] if kernel.occupancy is not None and kernel.occupancy.blocks == 0 else []
    if (diagnosis := diagnosis_of(kernel)) is not None:
        names.insert(0, diagnosis.text)
    first = sorted(dict.fromkeys(names), key=lambda name: name != "does not fit")
    texts = [f"{name} {spilled} B" if name == "register spill" and spilled else name for name in first]
    return Text(LIMIT_GAP.join(texts), "yellow" if is_severe(kernel) else "")


def blocks_text(occupancy: Occupancy | None) -> str:
    """Blocks that fit on an SM or CU; empty if unknown."""
    return "" if occupancy is None or occupancy.blocks is None else str(occupancy.blocks)


def _verdict(kernel: KernelFacts) -> Text:
    region, last = kernel.principal_region, kernel.last
    if region is None or last is None:
        return Text("–", "dim")
    phrase = phrase_text(region)
    if last.region(region.id) is None:
        stages = [stage.value for stage, facts in kernel.stages.items() if facts.region(region.id) is not None]
        phrase.append(f" in {stages[-1]}, no such loop in {last.stage.value}", "dim")
    return phrase


_COLUMNS: tuple[tuple[str, str, bool, Callable[[KernelFacts], str | Text | int | None] | None], ...] = (
    ("kernel", "kernel", False, attrgetter("artifact.display_name")), ("variant", "variant", False, None),
    ("hash", "hash", False, None), ("equal", "equal", True, None),
    ("target", "target", False, lambda x: None if x.artifact.target is None else x.artifact.target.arch),
    ("Triton", "Triton", False, attrgetter("artifact.triton_version")),
    ("what limits it", "what limits it", False, _limits), ("warps", "warps", True, attrgetter("artifact.num_warps")),
    ("stages", "stages", True, attrgetter("num_stages")), ("smem", "smem", True, attrgetter("artifact.shared_bytes")),
    ("regs", "regs", True, registers_text), ("blocks", "blk", True, lambda x: blocks_text(x.occupancy)),
    ("MMA", "MMA", True, mma_count), ("wait", "wait", True, load_depths), ("verdict", "verdict", False, _verdict),
    ("changed at", "changed", False, lambda x: Text("" if x.changed_at is None else x.changed_at.value, "yellow")),
    ("state", "state", False, _state),
)  # fmt: skip
"""Heading, heading of a narrow table, whether it is right-aligned, and cell; None if other kernels decide the cell."""
_OPTIONAL = ("variant", "hash", "equal", "regs", "blocks", "changed at", "what limits it", "state")
_CONSTANT = ("target", "Triton")
_IN_VARIANT = ("warps", "stages")
_HIDDEN_FIRST = (
    "smem", "MMA", "wait", "blk", "stages", "warps", "changed", "variant", "Triton", "regs", "verdict",
    "target", "what limits it",
)  # fmt: skip
"""Columns of a narrow table that are hidden if it does not fit, the least important first."""
NARROWER = ((24, 22, 20, 40), (18, 18, 16, 29), (18, 18, 16, 22))
"""Characters of names, variants, verdicts and limits in tables that would not fit otherwise."""
NARROWEST = (10, 14, 14, 18)
"""The same where even hidden columns do not make the table fit."""


class RenderedColumn(NamedTuple):
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


def fit_table(rows: Sequence[Cells], further: Sequence[tuple[str, list[str]]], width: int) -> FittedTable:
    """The most complete table of `width` columns: first shorter headings and names, then fewer columns.

    Args:
        further: additional columns by heading.
    """
    full: list[Cells] = [{**row, "kernel": shorten(str(row["kernel"]))} for row in rows]
    full = [{**row, "hash": row["prefix"]} if len(str(row["hash"])) > MAX_HASH_WIDTH else row for row in full]
    wide, _ = make_columns(full, further, compact=False)
    if _width(wide, 2) <= width:
        return FittedTable(make_table(wide, compact=False), _headings(wide), "", ())
    full = [{**row, "what limits it": _shorten_limits(row["what limits it"])} for row in full]
    layouts = [make_columns(full, further, compact=True)]
    for limits in (*NARROWER, NARROWEST):
        layouts.append(make_columns([cut_row(row, *limits) for row in full], further, compact=True))
    for count in range(len(_HIDDEN_FIRST) + 1):
        # the shortest names only if no column is left to hide, and short limits before verdicts are hidden
        usable = 3 if count <= _HIDDEN_FIRST.index("regs") else 4 if count < len(_HIDDEN_FIRST) else 5
        for columns, constants in layouts[:usable]:
            hidden = [column for column in columns if column.heading in _HIDDEN_FIRST[:count]]
            room = width - _width([column for column in columns if column not in hidden], 1)
            if room >= 0 or count == len(_HIDDEN_FIRST):
                for column in sorted(hidden, key=lambda entry: -_HIDDEN_FIRST.index(entry.heading)):
                    if column.width < room:  # a hidden column that fits after all
                        hidden.remove(column)
                        room -= column.width + 1
                visible = [column for column in columns if column not in hidden]
                names = tuple(column.heading for column in hidden)
                return FittedTable(make_table(visible, compact=True), _headings(visible), constants, names)
    raise AssertionError


def _width(columns: Sequence[RenderedColumn], gap: int) -> int:
    return sum(column.width for column in columns) + gap * (len(columns) - 1)


def _headings(columns: Sequence[RenderedColumn]) -> frozenset[str]:
    return frozenset(column.heading for column in columns)


def make_columns(
    rows: Sequence[Cells], further: Sequence[tuple[str, list[str]]], *, compact: bool
) -> tuple[list[RenderedColumn], str]:
    """The columns, and the target and version that the title names instead of a constant column.

    Args:
        further: additional columns by heading: blocks on other targets, times.
    """
    columns = []
    constants = []
    for heading, short, right, _ in _COLUMNS:
        cells = [row[heading] for row in rows]
        texts = set(map(str, cells))
        if heading in _OPTIONAL and texts == {""}:
            continue
        if heading in _IN_VARIANT and all(row["variant"] for row in rows):
            continue
        if compact and heading in _CONSTANT and len(texts) == 1:
            constants.append(texts.pop() if heading == "target" else f"{heading} {texts.pop()}")
            continue
        columns.append(RenderedColumn(short if compact else heading, right, cells))
    columns += [RenderedColumn(heading, True, cells) for heading, cells in further]
    return columns, " · ".join(constants)


def make_table(columns: Sequence[RenderedColumn], *, compact: bool) -> Table:
    """The columns as a table."""
    table = Table(box=None, pad_edge=False, padding=(0, 1 if compact else 2, 0, 0), header_style="dim")
    for heading, right, _ in columns:
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*cells)
    return table


def make_lines(columns: Sequence[RenderedColumn]) -> list[str] | None:
    """The same as lines of plain text, 1000 times faster; None if a cell has control characters."""
    aligned_columns = []
    for heading, right, cells in columns:
        texts = [heading, *map(str, cells)]
        if not all(map(str.isprintable, texts)):
            return None
        texts = [text.rstrip() for text in texts] if right else texts
        width = max(map(cell_len, texts))
        blanks = [" " * (width - cell_len(text)) for text in texts]
        pairs = zip(texts, blanks, strict=True)
        aligned_columns.append([blank + text if right else text + blank for text, blank in pairs])
    return ["  ".join(cells).rstrip() for cells in zip(*aligned_columns, strict=True)]


def _shorten_limits(cell: str | Text) -> Text:
    """The first of several limits, and the number of the others."""
    first, *others = str(cell).split(LIMIT_GAP)
    return Text(f"{first} +{len(others)}" if others else first, cell.style if isinstance(cell, Text) else "")


def fold_rows(rows: Sequence[Cells]) -> list[Cells]:
    """The rows, those that differ by their hash only once, with their number."""
    equal_rows: dict[tuple[str, ...], list[Cells]] = {}
    for row in rows:
        key = tuple(str(cell) for heading, cell in row.items() if heading not in ("hash", "prefix"))
        equal_rows.setdefault(key, []).append(row)
    return [{**same[0], "equal": f"×{len(same)}" if same[1:] else ""} for same in equal_rows.values()]


def make_rows(kernels: Sequence[KernelFacts], labels: Sequence[str]) -> list[Cells]:
    """A row for each kernel. `labels`: of their variants; shown if they distinguish kernels of one name."""
    has_variants = _labels_distinguish(kernels, labels)
    return [
        {
            **kernel_cells(kernel),
            "hash": Text(digest, "dim"),
            "prefix": Text(kernel.artifact.hash[:6], "dim"),
            "variant": label if has_variants else "",
        }
        for kernel, digest, label in zip(kernels, short_hashes(kernels), labels, strict=True)
    ]


def shorten(name: str, max_length: int = MAX_NAME_WIDTH) -> str:
    """A name cut in the middle to at most `max_length` + 2 characters.

    Args:
        max_length: characters; up to two more are kept.

    Example:
        >>> shorten("triton_poi_fused_add_native_layer_norm_backward_mul_relu_23")
        'triton_poi_fused_add…_backward_mul_relu_23'
    """
    half = max_length // 2
    return name if len(name) <= max_length + 2 else f"{name[:half]}…{name[-half - 1 :]}"


def cut_row(row: Cells, name: int, variant: int, verdict: int, limits: int) -> Cells:
    """A row with name, variant, verdict and limits cut to so many characters; the hash still identifies it."""
    phrase, limited = Text.assemble(row["verdict"]), Text.assemble(row["what limits it"])
    if len(phrase) > verdict:  # `grouped` rather than `grouped {1 2}{…`
        brackets = [at for at, letter in enumerate(phrase.plain) if letter in "({"]
        phrase.right_crop(len(phrase) - len(phrase.plain[: brackets[0]].rstrip()) if brackets else 0)
    phrase.truncate(verdict, overflow="ellipsis")
    if len(limited) > limits:
        limited.plain = shorten(limited.plain, limits - 2)
    names = {"kernel": shorten(str(row["kernel"]), name - 2), "variant": shorten(str(row["variant"]), variant - 2)}
    return {**row, **names, "verdict": phrase, "what limits it": limited}


def _labels_distinguish(kernels: Sequence[KernelFacts], labels: Sequence[str]) -> bool:
    labels_by_kernel: dict[tuple[object, ...], set[str]] = {}
    for kernel, label in zip(kernels, labels, strict=True):
        artifact = kernel.artifact
        key = artifact.display_name, artifact.target, artifact.triton_version
        labels_by_kernel.setdefault(key, set()).add(label)
    return any(len(kernel_labels) > 1 for kernel_labels in labels_by_kernel.values())


def short_hashes(kernels: Sequence[KernelFacts]) -> list[str]:
    """The shortest prefixes of the hashes that distinguish kernels of one name; empty for a unique name.

    Copies of one entry have the same hash; they are distinguished by directory.
    """
    by_name: dict[str, Counter[str]] = {}
    for kernel in kernels:
        by_name.setdefault(kernel.artifact.display_name, Counter())[kernel.artifact.hash] += 1
    lengths = {
        name: next(n for n in range(6, 65) if n == 64 or len({digest[:n] for digest in counts}) == len(counts))
        for name, counts in by_name.items()
    }
    digests = []
    for kernel in kernels:
        name, full_hash = kernel.artifact.display_name, kernel.artifact.hash
        counts = by_name[name]
        hash_prefix = full_hash[: lengths[name]] if counts.total() > 1 else ""
        digests.append(kernel.artifact.directory if counts[full_hash] > 1 else hash_prefix)
    return digests
