"""Findings whose remedy is a switch: the kernel compiled with it, and what that changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from artifact_inspector.comparison.reach import find_reach
from artifact_inspector.compiling.ask.again import Again, compile_again
from artifact_inspector.compiling.untrusted import describe_dropped
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.findings import RULES, Finding, Switch, SwitchKind, find_findings
from artifact_inspector.formats.mlir.retold import with_divisor, with_input_precision
from artifact_inspector.passes.subject import of_entry
from artifact_inspector.report.remedies import Tried


def switches_of(kernel: KernelFacts) -> list[tuple[Finding, Switch]]:
    """Each finding of a kernel with each switch that may be its remedy; one of a rule is enough."""
    by_code = {rule.code: rule for rule in RULES}
    found: dict[tuple[str, Switch], Finding] = {}
    for finding in find_findings(kernel):
        switches = by_code[finding.code].switches
        for switch in () if switches is None else switches(kernel):
            found.setdefault((finding.code, switch), finding)
    return [(finding, switch) for (_, switch), finding in found.items()]


def try_switches(kernel: KernelFacts) -> tuple[list[Tried], tuple[str, ...]]:
    """What each switch makes of a kernel of a cache, from its saved TTIR on, and notes on how it was done.

    The kernel is compiled again without any switch too, and that is what the others are held against: a later
    release, or a start from TTIR, may make other code of it. No code of the user's runs.

    Raises:
        UsageError: it has no TTIR, or its target is not known.
        CompileError: Triton cannot be used here.
    """
    asked = switches_of(kernel)
    if not asked:
        return [], ()
    try:
        here = installed("triton")
    except PackageNotFoundError:
        here = ""
    subject = of_entry(kernel.artifact, here)
    options = dict(subject.ask["options"])
    saved = subject.saved or ""
    distinct = list(dict.fromkeys(switch for _, switch in asked))
    texts = [_switched(saved, options, switch) for switch in distinct]
    notes = [f"compiled again by Triton {here} from the TTIR of the cache"]
    if subject.dropped_options:
        notes.append(describe_dropped(subject.dropped_options))
    own = kernel.artifact.triton_version
    if own is not None and not own.fits(here):
        notes.append(f"the entry is of Triton {own}: figures may differ from its own")
    with scratch_directory() as scratch:
        possible = [text for text in texts if text is not None]
        base, *made = compile_again(
            [(saved, options), *possible], subject.name, subject.target, Path(scratch)
        )
        if base.artifact is None:
            why = f"Triton {here} refuses the TTIR of Triton {own or 'unknown'}: {base.message}"
            return [Tried(finding, switch, None, None, why) for finding, switch in asked], ()
        answers = iter(made)
        found = {
            switch: None if text is None else next(answers)
            for switch, text in zip(distinct, texts, strict=True)
        }
        return list(_tried(asked, found, base)), tuple(notes)


def _tried(
    asked: Sequence[tuple[Finding, Switch]], found: dict[Switch, Again | None], base: Again
) -> Iterator[Tried]:
    assert base.artifact is not None
    for finding, switch in asked:
        again = found[switch]
        if again is None:
            yield Tried(finding, switch, None, None, "the TTIR of the cache has no place for it")
        elif again.artifact is None:
            yield Tried(finding, switch, None, None, again.message)
        else:
            reach = find_reach(base.artifact, again.artifact, inspect_artifact)
            left = {one.code for one in find_findings(inspect_artifact(again.artifact))}
            yield Tried(finding, switch, reach, finding.code not in left, None)


def _switched(saved: str, options: dict[str, Any], switch: Switch) -> tuple[str, dict[str, Any]] | None:
    """The text and options with a switch; None where the text has no place for it."""
    if switch.kind is SwitchKind.OPTION:
        return saved, {**options, switch.name: switch.value}
    if switch.kind is SwitchKind.PRECISION:
        text = with_input_precision(saved, str(switch.value))
        return None if text is None else (text, options)
    text = saved
    for name in switch.name.split(", "):
        text = text and with_divisor(text, name, int(switch.value))
    return None if text is None else (text, options)
