"""Two kernels side by side: the first divergence, every fact, every region at every stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.analysis.order.facts import QUIET
from artifact_inspector.comparison.alignment import Column, align
from artifact_inspector.comparison.consequence import consequence_of, rank_of
from artifact_inspector.comparison.matching import Facet
from artifact_inspector.comparison.pair import (
    FactPair,
    Pair,
    PairSide,
    RegionPair,
    Side,
    StagePair,
    State,
    Turn,
)
from artifact_inspector.findings import find_findings
from artifact_inspector.model import Consequence, Verdict
from artifact_inspector.report.aligned import Aligned
from artifact_inspector.report.layout import Signature, phrase_text
from artifact_inspector.report.text import faults
from artifact_inspector.report.words import describe_target, describe_verdict, legend, span
from artifact_inspector.vocabulary.fact import Category, Unit, Value
from artifact_inspector.vocabulary.forms import Compiled, label_forms, vary_in

NO_LAUNCH = "AI013"
"""Code of the finding that a launch fails."""
MOST_ROUNDS = 6
LABEL_WIDTH = 18
_COUNTED = {"num_warps": "{} warps", "num_stages": "num_stages {}"}
"""Option → label of a side; not `3 stages`, which would mean stages of the compiler."""
PIPELINED = frozenset({Verdict.PIPELINED, Verdict.PARTLY_PIPELINED})


@dataclass(frozen=True, slots=True)
class PairReport:
    """The comparison of two kernels."""

    pair: Pair
    only_changes: bool = False
    """True to omit facts that are equal on both sides."""
    identical: bool = False
    """True if all files of both are identical."""

    def brief(self) -> RenderableType:
        """The differences in a few lines, the worst first."""
        pair = self.pair
        if self.identical:
            return Text("Identical: every file is the same, byte for byte.", "bold")
        labels = side_labels(pair)
        apart = sorted((fact for fact in pair.facts if fact.differs), key=rank_of)
        others = [fact for fact in apart if fact.category != Category.VERDICT]
        told = [Text(describe_fact(fact), overflow="fold") for fact in others]
        names = pair.left.artifact.display_name, pair.right.artifact.display_name
        head = Text(" | ".join(f"{one} {label}" for one, label in zip(names, labels, strict=True)), "bold")
        return Group(head, *_attribution(pair, labels), *told)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        pair = self.pair
        labels = side_labels(pair)
        yield _header(pair)
        yield ""
        if self.identical:
            yield Text("Identical: every file is the same, byte for byte.", "bold")
            return
        yield from _news(pair, labels)
        yield from _attribution(pair, labels)
        yield ""
        yield _facts(pair, labels, only_changes=self.only_changes)
        signatures: list[str] = []
        verdicts: set[str] = set()
        for region in pair.regions:
            if not _is_telling(region):
                continue
            sides = [
                side for stage in region.stages for side in (stage.left, stage.right) if side is not None
            ]
            signatures += [side.region.signature for side in sides]
            verdicts |= {side.region.verdict for side in sides}
            yield ""
            yield from _region(region, labels)
        if verdicts:
            yield ""
            yield _key(verdicts)
            yield Text(" · ".join(legend(signatures)), "dim", overflow="fold")
        if pair.notes:
            yield ""
            yield Text("not compared", "bold")
            yield from (Padding(Text(note, overflow="fold"), (0, 0, 0, 2)) for note in pair.notes)
        yield from faults((pair.left, pair.right), ())


def side_labels(pair: Pair) -> tuple[str, str]:
    """Short labels that distinguish the two sides; `left` and `right` if there are none."""
    told: list[tuple[str, str]] = []
    for found in pair.differences:
        if found.what in (Facet.NAME, Facet.TARGET, Facet.VERSION):
            told.append((_short(value_text(found.left)), _short(value_text(found.right))))
        elif found.what in _COUNTED:
            words = _COUNTED[found.what]
            told.append((words.format(value_text(found.left)), words.format(value_text(found.right))))
    if not told:
        told = _forms_apart(pair)
    for parts in (told, told[:1]):
        left, right = (" ".join(words) for words in zip(*parts, strict=True)) if parts else ("", "")
        if left != right and max(len(left), len(right)) <= LABEL_WIDTH:
            return left, right
    return "left", "right"


def _forms_apart(pair: Pair) -> list[tuple[str, str]]:
    """The words of the two variant labels that differ."""
    left, right = (label.split() for label in labels_of(pair))
    apart = [(ours, theirs) for ours, theirs in zip(left, right, strict=False) if ours != theirs]
    return apart if len(left) == len(right) else []


def labels_of(pair: Pair) -> list[str]:
    """The labels of both variants."""
    forms = [Compiled(kernel.artifact, kernel.program) for kernel in (pair.left, pair.right)]
    return label_forms(forms, vary_in(form.artifact for form in forms))


def _short(word: str) -> str:
    return word if len(word) <= LABEL_WIDTH else f"{word[: LABEL_WIDTH - 1]}…"


def value_text(value: Value) -> str:
    """A value as text; a dash for None."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def describe_parting(pair: Pair, region: RegionPair) -> str | None:
    """The first stage at which the orders of a region differ, and its compiler component; None if equal."""
    parting = region.parting
    if parting is None:
        return None
    labels = side_labels(pair)
    asked = next((fact for fact in pair.options if fact.key == "num_stages" and fact.differs), None)
    there = next(stage for stage in region.stages if stage.step == parting.step)
    verdicts = [side.region.verdict for side in (there.left, there.right) if side is not None]
    stages = ""
    if asked is not None and len(verdicts) == 2 and PIPELINED.issuperset(verdicts):
        stages = f"; num_stages is {value_text(asked.left)} and {value_text(asked.right)}"
    return (
        f"{region.name}: the order of loads and computes first differs at {parting.step} "
        f"({_who(parting.components)}): {labels[0]} {parting.left}, {labels[1]} {parting.right}{stages}"
    )


def describe_turn(turn: Turn, labels: tuple[str, str], region: str) -> str:
    """The stage at which one kernel's verdict changes."""
    label = labels[turn.side is PairSide.RIGHT]
    return f"{label}: {turn.before} → {turn.after} at {turn.step} ({_who(turn.components)})"


def describe_fact(fact: FactPair) -> str:
    """One difference: `loop1: wait depth 4 → 0 left in flight`."""
    where = f"{fact.region}: " if fact.region else ""
    unit = f" {fact.unit}" if fact.unit and fact.unit != Unit.IN_CODE else ""
    why = f" ({fact.why})" if fact.why else ""
    return f"{where}{fact.label.strip()} {value_text(fact.left)} → {value_text(fact.right)}{unit}{why}"


def _who(components: Sequence[str]) -> str:
    return " or ".join(components)


def _header(pair: Pair) -> Table:
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold")
    for label, ours, theirs in _identity(pair):
        same = ours == theirs
        grid.add_row(label, Text(ours), Text("=", "dim") if same else Text(theirs, "bold"))
    return grid


def _identity(pair: Pair) -> Iterator[tuple[str, str, str]]:
    left, right = pair.left, pair.right
    ours, theirs = left.artifact, right.artifact
    yield "kernel", ours.display_name, theirs.display_name
    yield "target", describe_target(left), describe_target(right)
    yield "Triton", ours.triton_version or "unknown", theirs.triton_version or "unknown"
    forms = labels_of(pair)
    if forms[0] != forms[1]:
        yield "variant", forms[0] or "unknown", forms[1] or "unknown"
    one, other = left.program, right.program
    if one is not None and other is not None:
        yield "signature", ", ".join(one.signature), ", ".join(other.signature)
        yield "tiles", ", ".join(one.tiles), ", ".join(other.tiles)
    yield "hash", ours.hash[:16], theirs.hash[:16]


_COSTLY = (Consequence.SPILLS, Consequence.MATRIX, Consequence.OCCUPANCY)


def _news(pair: Pair, labels: tuple[str, str]) -> Iterator[RenderableType]:
    """Changes that cost more than the order of loads: failed launches, spills, lost matrix instructions."""
    for label, kernel in zip(labels, (pair.left, pair.right), strict=True):
        for finding in find_findings(kernel):
            if finding.code == NO_LAUNCH:
                said = f"{label} cannot be launched: {finding.remark.message}"
                yield Text(said, "bold red", overflow="fold")
    ranked = sorted((fact for fact in pair.facts if fact.differs), key=rank_of)
    for fact in ranked:
        if consequence_of(fact) in _COSTLY:
            yield Text(describe_fact(fact), "bold yellow", overflow="fold")


def _attribution(pair: Pair, labels: tuple[str, str]) -> Iterator[RenderableType]:
    """The compiler stage that made the two differ, with the lines as evidence."""
    if pair.parting is None:
        compared = any(stage.compared for region in pair.regions for stage in region.stages)
        if pair.is_same and compared:
            yield Text("No fact differs.", "bold")
        else:
            said = (
                "Both kernels order loads and computes the same way at every stage."
                if compared
                else "No stage could be compared."
            )
            yield Text(said, "bold")
    for region in pair.regions:
        parting = region.parting
        if parting is not None:
            yield Text(describe_parting(pair, region) or "", "bold yellow", overflow="fold")
            for label, lines in zip(labels, (parting.left_lines, parting.right_lines), strict=True):
                if lines:
                    yield _indented(f"{label} {parting.step}: {_evidence(lines)}")
        if parting is not None or region.is_principal:
            for sentence in _unturned(region, labels):
                yield _indented(sentence, "dim")
            for turn in region.turns:
                text = describe_turn(turn, labels, region.name)
                yield _indented(f"{text}  {_evidence(turn.lines)}".rstrip())


def _indented(text: str, style: str = "") -> Padding:
    return Padding(Text(text, style, overflow="fold"), (0, 0, 0, 2))


def _unturned(region: RegionPair, labels: tuple[str, str]) -> Iterator[str]:
    turned = {turn.side for turn in region.turns}
    for side, label in zip(("left", "right"), labels, strict=True):
        found = [getattr(stage, side) for stage in region.stages]
        phrases = {one.region.phrase for one in found if one is not None}
        if side not in turned and len(phrases) == 1:
            yield f"{label}: {phrases.pop()} at every stage"


def _evidence(lines: Sequence[tuple[int, int]]) -> str:
    rounds = [f"round {number} at lines {span(*pair)}" for number, pair in enumerate(lines[:4], 1)]
    return ", ".join(rounds) + (" …" if len(lines) > 4 else "")


# -- facts -----------------------------------------------------------------------------


def _facts(pair: Pair, labels: tuple[str, str], *, only_changes: bool) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    table.add_column("unit", style="dim", overflow="fold")
    table.add_column(labels[0], overflow="fold")
    table.add_column(labels[1], overflow="fold")
    shown: set[str] = set()
    final = {f"{x.name}.verdict.{x.stages[-1].step}" for x in pair.regions if x.is_principal and x.stages}
    for fact in (*pair.options, *pair.facts):
        # the table has only the last verdict; the others are listed below, stage by stage
        if fact.category == Category.VERDICT and fact.key not in final:
            continue
        if not _is_shown(fact, pair, only_changes=only_changes):
            continue
        if fact.region not in shown and fact.region:
            table.add_row(Text(fact.region, "bold"))
        shown.add(fact.region)
        label = f"  {fact.label}" if fact.region else fact.label
        table.add_row(label, fact.unit, *_values(fact))
    return table if shown else Text("No fact differs.", "dim")


def _is_shown(fact: FactPair, pair: Pair, *, only_changes: bool) -> bool:
    if fact.differs:
        return True
    if only_changes:
        return False
    nothing = fact.left in (0, False, "", ()) or fact.left is fact.right is None
    return not nothing and (
        not fact.region or any(r.name == fact.region and r.is_principal for r in pair.regions)
    )


def _values(fact: FactPair) -> tuple[Text, Text]:
    if fact.state is State.NOT_COMPARED:
        unknown = Text("?", "dim")
        left, right = (
            unknown if value is None else Text(value_text(value)) for value in (fact.left, fact.right)
        )
        return left, right
    if fact.state is State.SAME:
        return Text(value_text(fact.left)), Text("=", "dim")
    return Text(value_text(fact.left)), Text(value_text(fact.right), "bold")


# -- regions ---------------------------------------------------------------------------


def _is_telling(region: RegionPair) -> bool:
    verdicts = {side.region.verdict for stage in region.stages for side in (stage.left, stage.right) if side}
    return region.is_principal or region.parting is not None or not verdicts <= QUIET


def _region(region: RegionPair, labels: tuple[str, str]) -> Iterator[RenderableType]:
    ids = dict.fromkeys(
        name for name in (region.left, region.right) if name is not None and name != region.name
    )
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
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("stage", "", "verdict"):
        table.add_column(heading, no_wrap=True)
    table.add_column("signature")
    for stage in region.stages:
        ours, theirs = stage.left, stage.right
        if ours is not None and theirs is not None and _same(ours, theirs):
            table.add_row(
                _stage_name(stage), "both", phrase_text(ours.region), Signature(ours.region.signature)
            )
            continue
        columns = None
        if ours is not None and theirs is not None:
            columns = align(ours.region.signature, theirs.region.signature)
        for place, (label, side) in enumerate(zip(labels, (ours, theirs), strict=True)):
            name = side.stage.value if side is not None else stage.step if place == 0 else ""
            if place and ours is not None and side is not None and side.stage is ours.stage:
                name = ""
            table.add_row(name, label, *_side(side, stage, columns, place))
    return table


def _side(
    side: Side | None, stage: StagePair, columns: tuple[Column, ...] | None, place: int
) -> tuple[RenderableType, RenderableType]:
    if side is None:
        return Text("no such loop" if stage.compared else "no such stage", "dim"), Text()
    phrase = phrase_text(side.region)
    if stage.agree is False:
        phrase.stylize("yellow")
    return phrase, Aligned(columns, place) if columns is not None else Signature(side.region.signature)


def _same(ours: Side, theirs: Side) -> bool:
    return (
        ours.stage is theirs.stage
        and ours.region.phrase == theirs.region.phrase
        and ours.region.signature == theirs.region.signature
    )


def _stage_name(stage: StagePair) -> str:
    side = stage.left or stage.right
    return stage.step if side is None else side.stage.value


def _rounds(region: RegionPair, labels: tuple[str, str]) -> Table | None:
    """Each round at each stage: the number of loads, and the lines of loads and computes."""
    most = max(
        (len(side.region.rounds) for stage in region.stages for side in (stage.left, stage.right) if side),
        default=0,
    )
    if not most:
        return None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("stage", no_wrap=True)
    table.add_column("round", justify="right", no_wrap=True)
    for label in labels:
        table.add_column(f"{label} loads", justify="right")
        table.add_column("lines", justify="right", no_wrap=True)
        table.add_column("computes", justify="right", no_wrap=True)
    for stage in region.stages:
        for number in range(min(most, MOST_ROUNDS)):
            cells = [cell for side in (stage.left, stage.right) for cell in _round(side, number)]
            if any(cells):
                table.add_row(stage.step if number == 0 else "", str(number + 1), *cells)
    if most > MOST_ROUNDS:
        table.add_row("", f"{most - MOST_ROUNDS} more")
    return table


def _round(side: Side | None, number: int) -> Iterable[str]:
    if side is None or number >= len(side.region.rounds):
        return ("", "", "")
    found = side.region.rounds[number]
    return (
        str(found.loads),
        span(found.first_load, found.last_load),
        span(found.first_compute, found.last_compute),
    )


def _key(verdicts: Iterable[str]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold", style="dim")
    for verdict in sorted(verdicts):
        grid.add_row(verdict, describe_verdict(verdict))
    return grid
