"""Whether a change of a kernel, or an option that a finding suggests, reached the code, and what it changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from artifact_inspector.comparison.decisive_phrases import value_text
from artifact_inspector.comparison.fact_pair import FactPair
from artifact_inspector.comparison.headline import Headline
from artifact_inspector.comparison.likeness import BINARY, Likeness
from artifact_inspector.comparison.matching import Axis, Facet
from artifact_inspector.comparison.pair_price import PairPrice
from artifact_inspector.comparison.reach import ComparedFile, Reach
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import Finding, Switch, SwitchKind
from artifact_inspector.report.fact_groups import STYLES, render_groups
from artifact_inspector.report.layout import indented, next_command
from artifact_inspector.report.phrases import plural
from artifact_inspector.vocabulary.fact import BYTES_PER_BLOCK, Value
from artifact_inspector.vocabulary.names import step_of
from artifact_inspector.vocabulary.rows import brief_of

MAX_EFFECTS = 8
"""Most facts in the sentence; further ones are counted."""
KILOBYTE = 1024


@dataclass(frozen=True, slots=True)
class EffectReport:
    """The effect of one change for one target."""

    baseline: str
    """The name of the old state."""
    label: str
    """Kernel, target and configuration."""
    reach: Reach
    left: str
    """The directory of the old entry."""
    right: str
    price: PairPrice | None = None
    """The predicted times of a launch of both; None without a launch."""

    @property
    def headline(self) -> Headline | None:
        """The decisive fact; None if no fact is better or worse."""
        return None if self.reach.change is None else self.reach.change.headline

    @property
    def sentence(self) -> str:
        """The effect in one or two sentences."""
        return describe_effect(self.reach)

    @property
    def at(self) -> str | None:
        """The first stage that differs."""
        return None if self.reach.first_difference is None else self.reach.first_difference.suffix

    @property
    def same_from(self) -> str | None:
        """The first stage from which all files are identical."""
        return None if self.reach.same_from is None else self.reach.same_from.suffix

    def brief(self) -> RenderableType:
        """The sentence only."""
        lead = "" if self.reach.change is None else self.reach.change.sentence
        price = "" if self.price is None else self.price.sentence
        return Text(f"{self.label}: {' '.join(filter(None, (lead, self.sentence, price)))}", overflow="fold")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        style = {True: "bold yellow", False: "bold", None: "bold red"}[self.reach.reached]
        change = self.reach.change
        if change is not None and change.sentence:
            yield Text(change.sentence, STYLES[change.direction], overflow="fold")
        if self.price is not None:
            yield Text(self.price.sentence, overflow="fold")
        yield Text(f"{self.label}, compared with {self.baseline}", "dim", overflow="fold")
        yield Text(self.sentence, style if self.headline is None else "", overflow="fold")
        yield from render_groups(self.reach.facts)
        if self.reach.reached is not False:
            yield indented(_describe_files(self.reach.files), "dim")
        yield from (indented(note, "dim") for note in self.reach.notes)
        if change is not None:
            yield Group("", next_command("diff", self.left, self.right))


def describe_effect(reach: Reach) -> str:
    """The effect in one or two sentences.

    `No change: TTGIR and all later stages are identical.`
    `The code changed (from TTGIR on): num_stages 3→4, in flight 20→30 KB, registers 96→128, blocks 5→4.`
    """
    if reach.reached is None:
        return "Unknown: the two have no readable file in common."
    if not reach.reached:
        first = reach.same_from
        assert first is not None
        if first.kind == BINARY:
            return f"No change: the {first.suffix} is identical; only earlier stages differ."
        ending = " is identical." if reach.files[-1] is first else " and all later stages are identical."
        return f"No change: {first.suffix.upper()}{ending}"
    first_difference = reach.first_difference
    place = "" if first_difference is None else f" (from {first_difference.suffix.upper()} on)"
    lead = f"The code changed{place}" if place else "The launch changed"
    change = reach.change
    if change is not None and not change.sentence and any(x.facet == Facet.TILES for x in change.differences):
        lead = f"Changed, better or worse unknown, since the tiles differ: {lead[0].lower()}{lead[1:]}"
    effects = list_effects(reach)
    omitted = [f"and {len(effects) - MAX_EFFECTS} more"] if len(effects) > MAX_EFFECTS else []
    return f"{lead}: {', '.join([*effects[:MAX_EFFECTS], *omitted]) or 'no reported fact differs'}."


def list_effects(reach: Reach) -> list[str]:
    """The effects of a change: first the changed options, then the facts that differ, the worst first."""
    change = reach.change
    if change is None:
        return []
    option_changes = [
        f"{x.facet} {_format_change(*_differing_values(x.left, x.right))}"
        for x in change.differences
        if x.axis in (Axis.CONFIG, Axis.SOURCE, Axis.VERSION)
    ]
    steps = [] if change.pair is None else [step_of(stage) for stage in change.pair.left.stages]
    principal = "" if change.pair is None else next((r.name for r in change.pair.regions if r.is_principal), "")
    # facts of the whole kernel or its main region first, then other regions
    facts = sorted(change.facts, key=lambda fact: fact.region not in ("", principal))
    named = [(fact, brief_of(fact.key, fact.region, steps)) for fact in facts]
    described = [_describe_fact(fact, name, principal) for fact, name in named if name]
    return list(dict.fromkeys([*option_changes, *described]))


def _describe_fact(fact: FactPair, name: str, principal: str) -> str:
    prefix = f"{fact.region}: " if fact.region not in ("", principal) else ""
    return f"{prefix}{name} {_format_change(fact.left, fact.right, is_bytes=fact.unit in BYTES_PER_BLOCK)}"


def _differing_values(old: Value, new: Value) -> tuple[Value, Value]:
    """The elements of two lists of equal length that differ."""
    if not isinstance(old, tuple) or not isinstance(new, tuple) or len(old) != len(new):
        return old, new
    pairs = [pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]]
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)


def _format_change(old: Value, new: Value, *, is_bytes: bool = False) -> str:
    both = [value for value in (old, new) if isinstance(value, int) and not isinstance(value, bool)]
    if is_bytes and len(both) == 2:
        if all(value % KILOBYTE == 0 for value in both):
            return f"{both[0] // KILOBYTE}→{both[1] // KILOBYTE} KB"
        return f"{both[0]}→{both[1]} B"
    texts = value_text(old), value_text(new)
    gap = " " if any(" " in text for text in texts) else ""
    return f"{texts[0]}{gap}→{gap}{texts[1]}"


def _describe_files(files: Sequence[ComparedFile]) -> str:
    descriptions = {
        Likeness.IDENTICAL: "identical",
        Likeness.ALIKE: "identical except names and locations",
        Likeness.DIFFERENT: "differs",
        Likeness.UNREADABLE: "not readable",
    }
    return ", ".join(f"{compared_file.suffix} {descriptions[compared_file.likeness]}" for compared_file in files)


@dataclass(frozen=True, slots=True)
class RemedyTrial:
    """One suggested option, and its effect on the kernel."""

    finding: Finding
    switch: Switch
    reach: Reach | None
    """The stages that changed; None if the kernel did not compile with it."""
    is_resolved: bool | None
    """Whether the finding disappeared; None if unknown."""
    message: str | None
    """Why the kernel did not compile."""

    @property
    def effect(self) -> str:
        """The effect, in one or two sentences."""
        if self.switch.kind is SwitchKind.PADDING:
            return "Not tried: it is a change of the program."
        if self.reach is None:
            first = (self.message or "").strip().splitlines()
            return f"Compilation failed: {first[0] if first else 'no reason given'}"
        effect = describe_effect(self.reach)
        if not self.reach.reached:
            return effect
        return f"{effect} The finding {'disappeared' if self.is_resolved else 'remains'}."

    @property
    def categories(self) -> tuple[str, ...]:
        """Categories of the differing facts, the most important first."""
        return () if self.reach is None else self.reach.categories

    @property
    def facts(self) -> tuple[FactPair, ...]:
        """The facts that differ."""
        return () if self.reach is None else self.reach.facts


@dataclass(frozen=True, slots=True)
class RemediesReport:
    """Each kernel with its findings that suggest an option, and the effect of each option."""

    kernels: Sequence[tuple[KernelFacts, Sequence[RemedyTrial], Sequence[str]]]
    """Kernel, tried options, and notes on the compilation."""
    untried_count: int = 0
    """Number of findings that no option remedies."""

    def brief(self) -> RenderableType:
        """One line for each tried option."""
        lines = [
            f"{kernel.artifact.display_name} {trial.finding.code} {trial.switch.description}: {trial.effect}"
            for kernel, trials, _ in self.kernels
            for trial in trials
        ]
        return Group(*(Text(line, no_wrap=True, overflow="ellipsis") for line in lines or [self._describe_untried()]))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for kernel, trials, notes in self.kernels:
            artifact = kernel.artifact
            yield Text(artifact.display_name, "bold").append(f"  {artifact.target}  {artifact.hash[:8]}", "dim")
            for code in dict.fromkeys(trial.finding.code for trial in trials):
                rule_trials = [trial for trial in trials if trial.finding.code == code]
                yield Padding(Text(f"{code}  {rule_trials[0].finding.remark.message}", overflow="fold"), (0, 0, 0, 2))
                for trial in rule_trials:
                    text = Text(f"{trial.switch.description}: ", "bold", overflow="fold")
                    text.append(trial.effect, "")
                    yield Padding(text, (0, 0, 0, 9))
            yield from (Padding(Text(note, "dim", overflow="fold"), (0, 0, 0, 2)) for note in notes)
            yield ""
        if self.untried_count or not self.kernels:
            yield Text(self._describe_untried(), "dim")

    def _describe_untried(self) -> str:
        count = self.untried_count
        return f"{count} {plural('finding', count)} without an option to try" if count else "No findings"
