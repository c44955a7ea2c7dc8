"""Two kernels side by side: the first divergence, every fact, every region at every stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from artifact_inspector.analysis.order.region_facts import QUIET
from artifact_inspector.comparison.alignment import SignatureColumn, align
from artifact_inspector.comparison.consequence import differing_facts
from artifact_inspector.comparison.corpus import Change, Degree
from artifact_inspector.comparison.decisive_phrases import value_text
from artifact_inspector.comparison.fact_pair import FactPair, PairSide, State
from artifact_inspector.comparison.headline import headlines_of_pair
from artifact_inspector.comparison.line_changes import find_line_changes
from artifact_inspector.comparison.matching import Facet
from artifact_inspector.comparison.pair import Comparison, KernelRegion, RegionPair, StagePair, VerdictChange
from artifact_inspector.findings import find_findings
from artifact_inspector.model import OrderVerdict
from artifact_inspector.model.region import RegionId
from artifact_inspector.report.cache_report import problems_block
from artifact_inspector.report.fact_groups import STYLES, render_groups
from artifact_inspector.report.layout import (
    Signature,
    WrappedTexts,
    folded_column,
    indented,
    number_column,
    phrase_text,
    plain_table,
    text_column,
)
from artifact_inspector.report.phrases import describe_target, describe_verdict, legend, span
from artifact_inspector.vocabulary.fact import Category, Sign
from artifact_inspector.vocabulary.variant_labels import Compiled, find_varying, label_forms

LAUNCH_FAILURE = "AI013"
"""Code of the finding that a launch fails."""
MAX_ROUNDS = 6
LABEL_WIDTH = 18
MAX_TITLES = 4
MAX_LINES = 6
BRIEF_FACTS = 5
"""Most facts of a group in a brief report."""
_OPTION_LABELS = {"num_warps": "{} warps", "num_stages": "num_stages {}"}
"""Option → label of a side; not `3 stages`, which would mean stages of the compiler."""
PIPELINED = frozenset({OrderVerdict.PIPELINED, OrderVerdict.PARTLY_PIPELINED})


@dataclass(frozen=True, slots=True)
class PairReport:
    """The comparison of two kernels."""

    pair: Comparison
    only_changes: bool = False
    """True to omit facts that are equal on both sides."""
    is_identical: bool = False
    """True if all files of both are identical."""
    change: Change | None = None
    """With the predicted times of both; by default the decisive fact without the first stage that differs."""
    passes: Sequence[str] = ()
    """Lines on the pass behind each fact, which a short report has first."""

    @property
    def lead(self) -> Text:
        """The decisive fact as a sentence; whether anything differs if there is none."""
        if self.change is not None and self.change.sentence:
            return Text(self.change.sentence, STYLES[self.change.direction], overflow="fold")
        headline = next(iter(headlines_of_pair(self.pair)), None)
        if headline is not None:
            return Text(headline.sentence, STYLES[headline.fact.direction], overflow="fold")
        is_compared = any(stage.compared for region in self.pair.regions for stage in region.stages)
        if self.pair.is_same:
            text = "No fact differs." if is_compared else "No stage could be compared."
            if is_compared and self.change is not None and self.change.lacking:
                others = "no fact differs" + (", but the code does" if self.change.degree is Degree.CODE else "")
                text = f"Not compared: {', '.join(self.change.lacking)}. In the files of both, {others}."
            return Text(text, "bold", overflow="fold")
        titles = list(dict.fromkeys(fact.title for fact in differing_facts(self.pair.facts)))
        others = f" and {len(titles) - MAX_TITLES} more" if len(titles) > MAX_TITLES else ""
        return Text(
            f"Neither better nor worse: no fact differs except {', '.join(titles[:MAX_TITLES])}{others}.", "bold"
        )

    @property
    def price(self) -> list[Text]:
        """The predicted times of both, as a sentence; empty if none was predicted."""
        price = self.change and self.change.price
        return [Text(price.sentence, overflow="fold")] if price else []

    def brief(self) -> RenderableType:
        """The differences in a few lines, the worst first."""
        pair = self.pair
        if self.is_identical:
            return Text("Identical: every file is the same, byte for byte.", "bold")
        labels = side_labels(pair)
        groups = render_groups(differing_facts(pair.facts), BRIEF_FACTS)
        names = pair.left.artifact.display_name, pair.right.artifact.display_name
        head = Text(" | ".join(f"{name} {label}" for name, label in zip(names, labels, strict=True)), "bold")
        passes = map(Text, self.passes[:BRIEF_FACTS])
        return Group(head, self.lead, *self.price, *passes, *groups, *_describe_order(pair, labels))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        pair = self.pair
        labels = side_labels(pair)
        if self.is_identical:
            yield from (_header(pair), "", Text("Identical: every file is the same, byte for byte.", "bold"))
            return
        yield from _failed_launches(pair, labels)
        yield self.lead
        yield from self.price
        yield from ("", _header(pair), "")
        yield from render_groups(differing_facts(pair.facts))
        lines = [f"{x.source}: {x.title} {x.left:g} → {x.right:g} per iteration" for x in find_line_changes(pair)]
        if lines:
            yield Group(Text("By line", "bold"), *map(indented, lines[:MAX_LINES]))
        yield from _describe_order(pair, labels)
        yield from ("", _facts(pair, labels, only_changes=self.only_changes))
        regions = [region for region in pair.regions if _is_listed(region)]
        for region in regions:
            yield ""
            yield from _region(region, labels)
        sides = [side.region for region in regions for x in region.stages for side in (x.left, x.right) if side]
        if sides:
            signatures = legend(side.signature for side in sides)
            yield Group("", _legend({side.verdict for side in sides}), Text(" · ".join(signatures), "dim"))
        if pair.notes:
            yield Group("", Text("not compared", "bold"), *map(indented, pair.notes))
        yield from problems_block((pair.left, pair.right), ())


def side_labels(pair: Comparison) -> tuple[str, str]:
    """Short labels that distinguish the two sides; `left` and `right` if there are none."""
    label_pairs: list[tuple[str, str]] = []
    for difference in pair.differences:
        if None in (difference.left, difference.right):
            continue
        left, right = value_text(difference.left), value_text(difference.right)
        if difference.facet in (Facet.NAME, Facet.TARGET, Facet.VERSION):
            label_pairs.append((_shorten(left), _shorten(right)))
        elif difference.facet in _OPTION_LABELS:
            template = _OPTION_LABELS[difference.facet]
            label_pairs.append((template.format(left), template.format(right)))
    label_pairs = label_pairs or _differing_words(pair)
    for pairs in (label_pairs, label_pairs[:1]):
        left, right = (" ".join(words) for words in zip(*pairs, strict=True)) if pairs else ("", "")
        if left != right and max(len(left), len(right)) <= LABEL_WIDTH:
            return left, right
    return "left", "right"


def _differing_words(pair: Comparison) -> list[tuple[str, str]]:
    """The words of the two variant labels that differ."""
    left, right = (label.split() for label in variant_labels(pair))
    word_pairs = [(ours, theirs) for ours, theirs in zip(left, right, strict=False) if ours != theirs]
    return word_pairs if len(left) == len(right) else []


def variant_labels(pair: Comparison) -> list[str]:
    """The labels of both variants."""
    forms = [Compiled(kernel.artifact, kernel.program) for kernel in (pair.left, pair.right)]
    return label_forms(forms, find_varying(form.artifact for form in forms))


def _shorten(label: str) -> str:
    return label if len(label) <= LABEL_WIDTH else f"{label[: LABEL_WIDTH - 1]}…"


def describe_equal_orders(pair: Comparison) -> str:
    """That both kernels order loads and computes alike, without the stages at which that is unknown."""
    stages = [stage for region in pair.regions for stage in region.stages if stage.compared and stage.agree is None]
    unknown = " and ".join(dict.fromkeys(stage.step for stage in stages))
    extent = f"where it is known: at {unknown} the verdicts differ" if unknown else "at every stage"
    return f"Both kernels order loads and computes the same way {extent}."


def describe_divergence(pair: Comparison, region: RegionPair) -> str | None:
    """The first stage at which the orders of a region differ, and its compiler component; None if equal."""
    divergence = region.first_divergence
    if divergence is None:
        return None
    labels = side_labels(pair)
    num_stages = next((fact for fact in pair.options if fact.key == "num_stages" and fact.differs), None)
    stage_pair = next(stage for stage in region.stages if stage.step == divergence.step)
    verdicts = [side.region.verdict for side in (stage_pair.left, stage_pair.right) if side is not None]
    stages = ""
    if num_stages is not None and len(verdicts) == 2 and PIPELINED.issuperset(verdicts):
        stages = f"; num_stages is {value_text(num_stages.left)} and {value_text(num_stages.right)}"
    return (
        f"{region.name}: the order of loads and computes first differs at {divergence.step} "
        f"({' or '.join(divergence.components)}): "
        f"{labels[0]} {divergence.left}, {labels[1]} {divergence.right}{stages}"
    )


def describe_verdict_change(change: VerdictChange, labels: tuple[str, str], region: str) -> str:
    """The stage at which one kernel's verdict changes."""
    label, components = labels[change.side is PairSide.RIGHT], " or ".join(change.components)
    return f"{label}: {change.before} → {change.after} at {change.step} ({components})"


def _header(pair: Comparison) -> Table:
    columns = (text_column(style="dim"), folded_column(), folded_column())
    grid = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for label, ours, theirs in sorted(_identity(pair), key=lambda row: row[1] == row[2]):
        same = ours == theirs
        grid.add_row(label, Text(ours), Text("=", "dim") if same else Text(theirs, "bold"))
    return grid


def _identity(pair: Comparison) -> Iterator[tuple[str, str, str]]:
    left, right = pair.left, pair.right
    left_artifact, right_artifact = left.artifact, right.artifact
    yield "kernel", left_artifact.display_name, right_artifact.display_name
    yield "target", describe_target(left), describe_target(right)
    yield "Triton", left_artifact.triton_version or "unknown", right_artifact.triton_version or "unknown"
    forms = variant_labels(pair)
    if forms[0] != forms[1]:
        yield "variant", forms[0] or "unknown", forms[1] or "unknown"
    left_program, right_program = left.program, right.program
    if left_program is not None and right_program is not None:
        yield "signature", ", ".join(left_program.signature), ", ".join(right_program.signature)
        yield "tiles", ", ".join(left_program.tiles), ", ".join(right_program.tiles)
    yield "hash", left_artifact.hash[:16], right_artifact.hash[:16]
    loops = [x for x in pair.regions if x.name not in (x.left, x.right)]
    loops = [x for x in loops if not RegionId.parse(x.left or x.right or "").suffix]
    if loops:  # the names stay when lines move; tables of one kernel have those with lines
        left_loops = ", ".join(f"{x.name}: {x.left or 'none'}" for x in loops)
        yield "loops", left_loops, ", ".join(f"{x.name}: {x.right or 'none'}" for x in loops)


def _failed_launches(pair: Comparison, labels: tuple[str, str]) -> Iterator[RenderableType]:
    for label, kernel in zip(labels, (pair.left, pair.right), strict=True):
        for finding in find_findings(kernel):
            if finding.code == LAUNCH_FAILURE:
                yield Text(f"{label} cannot be launched: {finding.remark.message}", "bold red", overflow="fold")


def _describe_order(pair: Comparison, labels: tuple[str, str]) -> Iterator[RenderableType]:
    """The compiler stage that made the two differ, with the lines as evidence."""
    is_compared = any(stage.compared for region in pair.regions for stage in region.stages)
    if pair.first_divergence is None and not pair.is_same and is_compared:
        yield Text(describe_equal_orders(pair), "dim", overflow="fold")
    for region in pair.regions:
        divergence = region.first_divergence
        if divergence is not None:
            yield Text(describe_divergence(pair, region) or "", "yellow", overflow="fold")
            for label, lines in zip(labels, (divergence.left_lines, divergence.right_lines), strict=True):
                if lines:
                    yield indented(f"{label} {divergence.step}: {_evidence(lines)}")
        if divergence is not None or region.is_principal:
            for sentence in _describe_constant_verdicts(region, labels):
                yield indented(sentence, "dim")
            for change in region.verdict_changes:
                text = describe_verdict_change(change, labels, region.name)
                yield indented(f"{text}  {_evidence(change.lines)}".rstrip())


def _describe_constant_verdicts(region: RegionPair, labels: tuple[str, str]) -> Iterator[str]:
    changed_sides = {turn.side for turn in region.verdict_changes}
    for side, label in zip(("left", "right"), labels, strict=True):
        stages = [getattr(stage, side) for stage in region.stages]
        phrases = {stage_side.region.phrase for stage_side in stages if stage_side is not None}
        if side not in changed_sides and len(phrases) == 1:
            yield f"{label}: {phrases.pop()} at every stage"


def _evidence(lines: Sequence[tuple[int, int]]) -> str:
    rounds = [f"round {number} at lines {span(*pair)}" for number, pair in enumerate(lines[:4], 1)]
    return ", ".join(rounds) + (" …" if len(lines) > 4 else "")


# -- facts -----------------------------------------------------------------------------


def _facts(pair: Comparison, labels: tuple[str, str], *, only_changes: bool) -> RenderableType:
    table = plain_table(
        text_column(""),
        Column("unit", overflow="fold", style="dim"),
        folded_column(labels[0]),
        folded_column(labels[1]),
        text_column(""),
    )
    shown_regions: set[str] = set()
    equal: list[str] = []
    final = {f"{x.name}.verdict.{x.stages[-1].step}" for x in pair.regions if x.is_principal and x.stages}
    for fact in (*pair.options, *pair.facts):
        # the table has only the last verdict; the others are listed below, stage by stage
        if fact.category == Category.VERDICT and fact.key not in final:
            continue
        if not _is_shown(fact, pair, only_changes=only_changes):
            continue
        if fact.state is State.SAME:
            region = f"{fact.region}: " if fact.region else ""
            equal.append(f"{region}{fact.label.strip()} {value_text(fact.left)}")
            continue
        if fact.region not in shown_regions and fact.region:
            table.add_row(Text(fact.region, "bold"))
        shown_regions.add(fact.region)
        label = f"  {fact.label}" if fact.region else fact.label
        sign = Text("") if fact.direction is Sign.NEUTRAL else Text(fact.direction, STYLES[fact.direction])
        table.add_row(label, fact.unit, *_values(fact), sign)
    differing: RenderableType = table if shown_regions else Text("No fact differs.", "dim")
    return (
        Group(differing, "", Text("equal", "bold"), Padding(WrappedTexts(equal, "dim"), (0, 0, 0, 2)))
        if equal
        else differing
    )


def _is_shown(fact: FactPair, pair: Comparison, *, only_changes: bool) -> bool:
    if fact.differs:
        return True
    if only_changes:
        return False
    is_empty = fact.left in (0, False, "", ()) or fact.left is fact.right is None
    return not is_empty and (not fact.region or any(r.name == fact.region and r.is_principal for r in pair.regions))


def _values(fact: FactPair) -> tuple[Text, Text]:
    left, right = Text(value_text(fact.left)), Text(value_text(fact.right))
    if fact.state is State.NOT_COMPARED:
        unknown = Text("?", "dim")
        return unknown if fact.left is None else left, unknown if fact.right is None else right
    right.stylize("bold")
    return left, Text("=", "dim") if fact.state is State.SAME else right


# -- regions ---------------------------------------------------------------------------


def _is_listed(region: RegionPair) -> bool:
    verdicts = {side.region.verdict for stage in region.stages for side in (stage.left, stage.right) if side}
    return region.is_principal or region.first_divergence is not None or not verdicts <= QUIET


def _region(region: RegionPair, labels: tuple[str, str]) -> Iterator[RenderableType]:
    ids = dict.fromkeys(name for name in (region.left, region.right) if name is not None and name != region.name)
    head = Text(region.name, "bold")
    head.append(f"  {' | '.join(ids)}" if ids else "", "dim")
    head.append("  main region" if region.is_principal else "", "dim")
    yield head
    body: list[RenderableType] = [_stages(region, labels)]
    rounds = _rounds(region, labels)
    if rounds is not None:
        body += ["", rounds]
    yield Padding(Group(*body), (0, 0, 0, 2))


def _stages(region: RegionPair, labels: tuple[str, str]) -> Table:
    table = plain_table(text_column("stage"), text_column(""), text_column("verdict"), "signature")
    for stage in region.stages:
        left, right = stage.left, stage.right
        if left is not None and right is not None and _is_same_side(left, right):
            table.add_row(left.stage.value, "both", phrase_text(left.region), Signature(left.region.signature))
            continue
        columns = None
        if left is not None and right is not None:
            columns = align(left.region.signature, right.region.signature)
        for side_index, (label, side) in enumerate(zip(labels, (left, right), strict=True)):
            name = side.stage.value if side is not None else stage.step if side_index == 0 else ""
            if side_index and left is not None and side is not None and side.stage is left.stage:
                name = ""
            table.add_row(name, label, *_side_cells(side, stage, columns, side_index))
    return table


def _side_cells(
    side: KernelRegion | None, stage: StagePair, columns: tuple[SignatureColumn, ...] | None, side_index: int
) -> tuple[RenderableType, RenderableType]:
    if side is None:
        return Text("no such loop" if stage.compared else "no such stage", "dim"), Text()
    phrase = phrase_text(side.region)
    if stage.agree is False:
        phrase.stylize("yellow")
    return phrase, AlignedSignature(columns, side_index) if columns is not None else Signature(side.region.signature)


def _is_same_side(left: KernelRegion, right: KernelRegion) -> bool:
    return (
        left.stage is right.stage
        and left.region.phrase == right.region.phrase
        and left.region.signature == right.region.signature
    )


def _rounds(region: RegionPair, labels: tuple[str, str]) -> Table | None:
    round_count = max(
        (len(side.region.rounds) for stage in region.stages for side in (stage.left, stage.right) if side), default=0
    )
    if not round_count:
        return None
    table = plain_table(text_column("stage"), number_column("round"))
    for label in labels:
        table.add_column(f"{label} loads", justify="right")
        table.add_column("lines", justify="right", no_wrap=True)
        table.add_column("computes", justify="right", no_wrap=True)
    for stage in region.stages:
        for number in range(min(round_count, MAX_ROUNDS)):
            cells = [cell for side in (stage.left, stage.right) for cell in _round_cells(side, number)]
            if any(cells):
                table.add_row(stage.step if number == 0 else "", str(number + 1), *cells)
    if round_count > MAX_ROUNDS:
        table.add_row("", f"{round_count - MAX_ROUNDS} more")
    return table


def _round_cells(side: KernelRegion | None, number: int) -> Iterable[str]:
    if side is None or number >= len(side.region.rounds):
        return ("", "", "")
    round_facts = side.region.rounds[number]
    return (
        str(round_facts.loads),
        span(round_facts.first_load, round_facts.last_load),
        span(round_facts.first_compute, round_facts.last_compute),
    )


def _legend(verdicts: Iterable[str]) -> Table:
    grid = Table.grid(Column(no_wrap=True, style="dim"), Column(overflow="fold", style="dim"), padding=(0, 2, 0, 0))
    for verdict in sorted(verdicts):
        grid.add_row(verdict, describe_verdict(verdict))
    return grid


@dataclass(frozen=True, slots=True)
class AlignedSignature:
    """One of two aligned signatures; runs that do not fit are counted."""

    columns: tuple[SignatureColumn, ...]
    side: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text(no_wrap=True)
        for number, column in enumerate(self.columns):
            width = max(len(column.left), len(column.right))
            remaining = len(self.columns) - number
            ellipsis = f"… {remaining} more"
            if len(text) + width + (0 if remaining == 1 else len(ellipsis) + 1) > options.max_width:
                text.append(ellipsis, "dim")
                break
            run, other_run = column[self.side], column[1 - self.side]
            text.append(f"{run:<{width}} ", "" if run == other_run else "bold")
        yield text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        total_width = sum(max(len(column.left), len(column.right)) + 1 for column in self.columns)
        return Measurement(min(24, total_width), max(1, total_width))
