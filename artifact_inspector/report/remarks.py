"""Remarks on source lines, shared by SARIF, CI annotations and other output formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from artifact_inspector.analysis.flow.kernel_program import KernelProgram
from artifact_inspector.comparison.corpus import TIME, Change, Corpus
from artifact_inspector.comparison.decisive_phrases import describe_values
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import RULES, Severity, find_findings
from artifact_inspector.model import SourceLine
from artifact_inspector.model.location import base_name
from artifact_inspector.report.phrases import plural
from artifact_inspector.vocabulary.variant_labels import Compiled, label_form

FindSource = Callable[[str], str | None]
"""File name → its path relative to the root of the working tree; None if it is outside."""
MAX_FACTS = 6


class RemarkRule(NamedTuple):
    """A rule that remarks refer to."""

    code: str
    name: str
    summary: str
    explanation: str
    """Markdown."""


class RemarkLocation(NamedTuple):
    """A line of source code."""

    path: str
    """Relative to the root of the working tree; the bare name of a file outside it."""
    line: int
    is_found: bool
    """True for a file in the working tree."""


@dataclass(frozen=True, slots=True)
class SourceRemark:
    """One remark on a kernel, with its source line."""

    code: str
    level: str
    """`error`, `warning` or `note`."""
    heading: str
    """A word or two after the name of the kernel."""
    text: str
    kernel: str
    location: RemarkLocation | None
    identity: str
    """Identifies the remark across runs, also if line numbers shift."""
    variant: str = ""
    """The variant of the kernel: `sm_80 128×32×32 f16 w4 s4`."""
    kernel_label: str = ""
    """The kernel's name in the message; its plain name if empty."""
    is_full_sentence: bool = True
    """False if the message starts with the kernel's name."""

    @property
    def title(self) -> str:
        """Kernel and heading."""
        return f"{self.kernel_label or self.kernel}: {self.heading}"

    @property
    def message(self) -> str:
        """The full sentence."""
        return self.text if self.is_full_sentence else f"{self.kernel_label}: {self.text}"


_CHANGED = "A fact of the kernel differs from the baseline."
_FACTS = {
    "verdict": "The order of loads and computes", "spills": "Registers spilled to memory", "waits": "Wait depths",
    "mma": "Matrix instructions", "atomics": "Atomics", "shared": "Shared memory", "registers": "Registers",
    "occupancy": "Occupancy", "loads": "Loads and copies", "stores": "Stores", "in-flight": "Loads in flight",
    "bounds": "Bounds checks", "conversions": "Layout conversions", "barriers": "Barriers",
    "float": "Float operations", "findings": "Findings", "instructions": "Instruction counts",
}  # fmt: skip
GATE_RULES: tuple[RemarkRule, ...] = tuple(
    RemarkRule(code, code, summary, f"{summary} {remainder}".strip())
    for code, summary, remainder in (
        (TIME, "The predicted time got longer.", "It is that of a launch on record, without a GPU."),
        *((fact, f"{subject} changed.", _CHANGED) for fact, subject in _FACTS.items()),
        ("code", "The code changed.", "It differs in more than names and locations, but no fact does."),
        ("gone", "A kernel of the baseline is missing in the cache, or matches several kernels.", ""),
        ("new", "A kernel of the cache is not in the baseline.", ""),
    )
)


def finding_kinds() -> tuple[RemarkRule, ...]:
    """The rules of findings."""
    return tuple(
        RemarkRule(rule.code, rule.name, rule.explanation.partition("\n\n")[0].replace("\n", " "), rule.explanation)
        for rule in RULES
    )


def change_remarks(
    corpus: Corpus, gates: Sequence[str], find: FindSource, *, is_strict: bool = False
) -> Iterator[SourceRemark]:
    """One remark for each kernel that changed, with the decisive fact; an error if a gate fails.

    Args:
        find: finds source files in the working tree.
        is_strict: fail on every difference, not only on facts that got worse.
    """
    for change in corpus.changes:
        failed_gates = change.failures(gates, is_strict=is_strict)
        if failed_gates or change.facts:
            yield _change_remark(change, failed_gates, find, is_strict=is_strict)
    for code, side in (("gone", corpus.matching.left), ("new", corpus.matching.right)):
        level = "error" if code in gates or "any" in gates else "note"
        for candidate in side:
            side_name = corpus.sides[code == "new"]
            text, location = f"{candidate} is only {side_name}", _locate(candidate, None, find)
            yield replace(_make_remark(code, level, text, candidate, location), is_full_sentence=True)

    level = "error" if "gone" in gates or "any" in gates else "note"
    for left, right in corpus.matching.ambiguous:
        ambiguity = corpus.sides.describe_ambiguity(left, right)
        yield _make_remark("gone", level, ambiguity, left[0], _locate(right[0], None, find))


def merge_remarks(remarks: Iterable[SourceRemark], corpus: Corpus | None = None) -> Iterator[SourceRemark]:
    """One remark for each kernel and file; the remarks of its variants are merged.

    Args:
        corpus: the comparison that the remarks are from; its reasons come first.
    """
    reasons: dict[str, dict[str, None]] = {}
    for change in () if corpus is None else corpus.changes:
        if change.reason is not None:
            reasons.setdefault(change.right.artifact.display_name, {})[change.reason.description] = None
    groups: dict[tuple[str, str], list[SourceRemark]] = {}
    for remark in remarks:
        # findings are merged per line; the changes of a kernel are one edit
        path = "" if remark.location is None else remark.location.path
        key = path if corpus is not None else f"{remark.code} {remark.location}"
        groups.setdefault((remark.kernel, key), []).append(remark)
    for (kernel, _), group in groups.items():
        yield group[0] if len(group) == 1 else _merge_group(group, list(reasons.get(kernel, ())))


def _merge_group(group: Sequence[SourceRemark], reasons: Sequence[str]) -> SourceRemark:
    worst = min((remark.level for remark in group), key=_LEVELS.index)
    worst_remarks = [remark for remark in group if remark.level == worst]
    codes = list(dict.fromkeys(remark.code for remark in worst_remarks))
    first = {code: next(remark for remark in worst_remarks if remark.code == code) for code in codes}
    variants = dict.fromkeys(remark.variant for remark in worst_remarks)
    lines = [*(f"because {reason}" for reason in reasons[:MAX_FACTS])]
    lines += [f"{code}: {remark.text}" for code, remark in first.items()]
    lines += [f"in {len(variants)} {plural('variant', len(variants))}: {'; '.join(list(variants)[:MAX_VARIANTS])}"]
    lines[-1] += f"; and {len(variants) - MAX_VARIANTS} more" if len(variants) > MAX_VARIANTS else ""
    heading = ", ".join(remark.heading for remark in first.values())
    location = next((remark.location for remark in worst_remarks if remark.location is not None), None)
    first_remark = replace(worst_remarks[0], heading=heading, text="\n".join(lines), location=location)
    return replace(first_remark, kernel_label="", is_full_sentence=True)


_LEVELS = ("error", "warning", "note")
MAX_VARIANTS = 4


def finding_remarks(kernels: Iterable[KernelFacts], find: FindSource) -> Iterator[SourceRemark]:
    """One remark for each finding."""
    for kernel in kernels:
        candidate = Candidate(kernel.artifact)
        for finding in find_findings(kernel):
            location = _locate(candidate, next(iter(finding.remark.sources), None), find)
            level = "warning" if finding.severity is Severity.WARNING else "note"
            yield _make_remark(finding.code, level, finding.remark.message, candidate, location, finding.name)


def _change_remark(change: Change, failed_gates: Sequence[str], find: FindSource, *, is_strict: bool) -> SourceRemark:
    headline = change.failing_headline(failed_gates, is_strict=is_strict) if failed_gates else change.headline
    level = "error" if failed_gates else "note"
    if TIME in failed_gates:
        text = change.describe_failure(failed_gates, is_strict=is_strict)
        source = None if headline is None else headline.source
        return _make_remark(TIME, level, text, change.right, _locate(change.right, source, find))
    if headline is None:
        code = failed_gates[0] if failed_gates else change.facts[0].category
        text = "The code differs in more than names and locations."
        if change.facts and not failed_gates:
            text = f"Neither better nor worse: {describe_values(change.facts[0])}"
        return _make_remark(code, level, text, change.right, _locate(change.right, None, find))
    explanation = change.explanation
    explains = explanation is not None and headline.fact.category in explanation.categories
    source = headline.source or (explanation.reason.source if explanation is not None and explains else None)
    code = headline.fact.category if headline.fact.category in change.categories else failed_gates[0]
    return _make_remark(code, level, headline.sentence, change.right, _locate(change.right, source, find))


def _make_remark(
    code: str, level: str, text: str, candidate: Candidate, location: RemarkLocation | None, heading: str = ""
) -> SourceRemark:
    program, artifact = candidate.program, candidate.artifact
    identity_parts = [artifact.display_name, candidate.target, program and program.signature, candidate.options]
    variant = " ".join(filter(None, (candidate.target, label_form(Compiled(artifact, program), {}))))
    name = artifact.display_name
    label, identity = f"{name} ({candidate.target or 'target unknown'})", f"{code} {identity_parts}"
    remark = SourceRemark(code, level, heading or code, text, name, location, identity, variant)
    return replace(remark, kernel_label=label, is_full_sentence=False)


def _locate(candidate: Candidate, source: str | None, find: FindSource) -> RemarkLocation | None:
    """The source line of a remark, `file.py:40`, or the line at which the kernel begins.

    Findings name files without directories; the path of the kernel's own file is known.
    """
    program: KernelProgram | None = candidate.program
    kernel_location = None if program is None else program.location
    innermost = source.innermost if isinstance(source, SourceLine) else source
    name, _, number = (innermost or "").rpartition(":")
    if name and number.isdecimal():
        of_kernel = kernel_location is not None and base_name(kernel_location.file) == name
        file, line = ((kernel_location.file if of_kernel and kernel_location is not None else name), int(number))
    elif kernel_location is not None:
        file, line = kernel_location.file, kernel_location.line
    else:
        return None
    path = find(file)
    return RemarkLocation(path or base_name(file), max(1, line), path is not None)
