"""Remarks on source lines, shared by SARIF, CI annotations and other output formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from artifact_inspector.analysis.flow.program import Program
from artifact_inspector.comparison.corpus import Change, Corpus
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import RULES, Severity, find_findings
from artifact_inspector.model import SourceLine
from artifact_inspector.model.location import base_name
from artifact_inspector.report.diff import describe_fact
from artifact_inspector.report.words import plural
from artifact_inspector.vocabulary.forms import Compiled, label_form

Find = Callable[[str], str | None]
"""File name → its path relative to the root of the working tree; None if it is outside."""
MOST_FACTS = 6


class Kind(NamedTuple):
    """A rule that remarks refer to."""

    code: str
    name: str
    summary: str
    explanation: str
    """Markdown."""


class Place(NamedTuple):
    """A line of source code."""

    path: str
    """Relative to the root of the working tree; the bare name of a file outside it."""
    line: int
    is_found: bool
    """True for a file in the working tree."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One remark on a kernel, with its source line."""

    code: str
    level: str
    """`error`, `warning` or `note`."""
    heading: str
    """A word or two after the name of the kernel."""
    said: str
    kernel: str
    place: Place | None
    identity: str
    """Identifies the remark across runs, also if line numbers shift."""
    form: str = ""
    """The variant of the kernel: `sm_80 128×32×32 f16 w4 s4`."""
    named: str = ""
    """The kernel's name in the message; its plain name if empty."""
    is_whole: bool = True
    """False if the message starts with the kernel's name."""

    @property
    def title(self) -> str:
        """Kernel and heading."""
        return f"{self.named or self.kernel}: {self.heading}"

    @property
    def message(self) -> str:
        """The full sentence."""
        return self.said if self.is_whole else f"{self.named}: {self.said}"


_CHANGED = "A fact of the kernel differs from the baseline."
GATE_RULES: tuple[Kind, ...] = tuple(
    Kind(code, code, summary, f"{summary} {more}".strip())
    for code, summary, more in (
        ("verdict", "The order of loads and computes changed.", _CHANGED),
        ("spills", "Registers spilled to memory changed.", _CHANGED),
        ("waits", "Wait depths changed.", _CHANGED),
        ("mma", "Matrix instructions changed.", _CHANGED),
        ("shared", "Shared memory changed.", _CHANGED),
        ("registers", "Registers changed.", _CHANGED),
        ("occupancy", "Occupancy changed.", _CHANGED),
        ("loads", "Loads and copies changed.", _CHANGED),
        ("stores", "Stores changed.", _CHANGED),
        ("in-flight", "Loads in flight changed.", _CHANGED),
        ("bounds", "Bounds checks changed.", _CHANGED),
        ("conversions", "Layout conversions changed.", _CHANGED),
        ("barriers", "Barriers changed.", _CHANGED),
        ("float", "Float operations changed.", _CHANGED),
        ("findings", "Findings changed.", _CHANGED),
        ("instructions", "Instruction counts changed.", _CHANGED),
        ("code", "The code changed.", "It differs in more than names and locations, but no fact does."),
        ("gone", "A kernel of the baseline is missing in the cache, or matches several kernels.", ""),
        ("new", "A kernel of the cache is not in the baseline.", ""),
    )
)


def finding_kinds() -> tuple[Kind, ...]:
    """The rules of findings."""
    return tuple(
        Kind(rule.code, rule.name, rule.explanation.partition("\n\n")[0].replace("\n", " "), rule.explanation)
        for rule in RULES
    )


def change_remarks(corpus: Corpus, gates: Sequence[str], find: Find) -> Iterator[Remark]:
    """One remark for each kernel and category that changed; an error if its gate fails."""
    for change in corpus.changes:
        shut = change.failures((*gates, "any") if "any" in gates else gates)
        for category in change.categories or (("code",) if "code" in shut else ()):
            level = "error" if category in shut or "any" in shut else "note"
            yield _changed(change, category, level, find)
    lonely = (("gone", corpus.matching.left), ("new", corpus.matching.right))
    for code, side in lonely:
        level = "error" if code in gates or "any" in gates else "note"
        for candidate in side:
            where = corpus.sides[code == "new"]
            said, place = f"{candidate} is only {where}", _place(candidate, None, find)
            yield replace(_remark(code, level, said, candidate, place), is_whole=True)

    level = "error" if "gone" in gates or "any" in gates else "note"
    for left, right in corpus.matching.ambiguous:
        fit = f"not compared: {len(left)} {corpus.sides.left} match {len(right)} {corpus.sides.right}"
        yield _remark("gone", level, fit, left[0], _place(right[0], None, find))


def told_once(remarks: Iterable[Remark], corpus: Corpus | None = None) -> Iterator[Remark]:
    """One remark for each kernel and file; the remarks of its variants are merged.

    Args:
        corpus: the comparison that the remarks are from; its reasons come first.
    """
    reasons: dict[str, dict[str, None]] = {}
    for change in () if corpus is None else corpus.changes:
        if change.reason is not None:
            reasons.setdefault(change.right.artifact.display_name, {})[change.reason.words] = None
    groups: dict[tuple[str, str], list[Remark]] = {}
    for remark in remarks:
        # findings are merged per line; the changes of a kernel are one edit
        where = "" if remark.place is None else remark.place.path
        key = where if corpus is not None else f"{remark.code} {remark.place}"
        groups.setdefault((remark.kernel, key), []).append(remark)
    for (kernel, _), same in groups.items():
        yield same[0] if len(same) == 1 else _together(same, list(reasons.get(kernel, ())))


def _together(same: Sequence[Remark], reasons: Sequence[str]) -> Remark:
    worst = min((remark.level for remark in same), key=_LEVELS.index)
    told = [remark for remark in same if remark.level == worst]
    codes = list(dict.fromkeys(remark.code for remark in told))
    first = {code: next(remark for remark in told if remark.code == code) for code in codes}
    forms = dict.fromkeys(remark.form for remark in told)
    lines = [*(f"because {reason}" for reason in reasons[:MOST_FACTS])]
    lines += [f"{code}: {remark.said}" for code, remark in first.items()]
    lines += [f"in {len(forms)} {plural('variant', len(forms))}: {'; '.join(list(forms)[:MOST_FORMS])}"]
    lines[-1] += f"; and {len(forms) - MOST_FORMS} more" if len(forms) > MOST_FORMS else ""
    known = told[0]
    heading = ", ".join(remark.heading for remark in first.values())
    place = next((remark.place for remark in told if remark.place is not None), None)
    said = "\n".join(lines)
    return Remark(known.code, worst, heading, said, known.kernel, place, known.identity, known.form)


_LEVELS = ("error", "warning", "note")
MOST_FORMS = 4


def finding_remarks(kernels: Iterable[KernelFacts], find: Find) -> Iterator[Remark]:
    """One remark for each finding."""
    for kernel in kernels:
        candidate = Candidate(kernel.artifact)
        for finding in find_findings(kernel):
            place = _place(candidate, next(iter(finding.remark.sources), None), find)
            level = "warning" if finding.severity is Severity.WARNING else "note"
            yield _remark(finding.code, level, finding.remark.message, candidate, place, finding.name)


def _changed(change: Change, category: str, level: str, find: Find) -> Remark:
    facts = [fact for fact in change.facts if fact.category == category]
    said = [describe_fact(fact) for fact in facts[:MOST_FACTS]]
    more = len(facts) - len(said)
    said += [f"and {more} more {plural('fact', more)}"] if more else []
    line = next((change.lines[fact.region] for fact in facts if fact.region in change.lines), None)
    source = None if change.reason is None else change.reason.source
    place = _place(change.right, source, find)
    if place is not None and line is not None and source is None:
        place = place._replace(line=line)
    what = "; ".join(said) or "the code differs in more than names, locations and numbering"
    return _remark(category, level, what, change.right, place)


def _remark(
    code: str, level: str, said: str, candidate: Candidate, place: Place | None, heading: str = ""
) -> Remark:
    program, artifact = candidate.program, candidate.artifact
    known_by = [artifact.display_name, candidate.target, program and program.signature, candidate.options]
    form = " ".join(filter(None, (candidate.target, label_form(Compiled(artifact, program), {}))))
    name = artifact.display_name
    return Remark(
        code=code,
        level=level,
        heading=heading or code,
        said=said,
        kernel=name,
        place=place,
        identity=f"{code} {known_by}",
        form=form,
        named=f"{name} ({candidate.target or 'target unknown'})",
        is_whole=False,
    )


def _place(candidate: Candidate, source: str | None, find: Find) -> Place | None:
    """The source line of a remark, `file.py:40`, or the line at which the kernel begins.

    Findings name files without directories; the path of the kernel's own file is known.
    """
    program: Program | None = candidate.program
    own = None if program is None else program.place
    innermost = source.innermost if isinstance(source, SourceLine) else source
    name, _, number = (innermost or "").rpartition(":")
    if name and number.isdecimal():
        of_kernel = own is not None and base_name(own.file) == name
        file, line = (own.file if of_kernel and own is not None else name), int(number)
    elif own is not None:
        file, line = own.file, own.line
    else:
        return None
    path = find(file)
    return Place(path or base_name(file), max(1, line), path is not None)
