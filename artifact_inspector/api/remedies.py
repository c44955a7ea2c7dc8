"""Compile a kernel with the switches that its findings suggest, and compare the code."""

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
    """Pairs of finding and suggested switch; the first finding of each rule represents it."""
    by_code = {rule.code: rule for rule in RULES}
    found: dict[tuple[str, Switch], Finding] = {}
    for finding in find_findings(kernel):
        switches = by_code[finding.code].switches
        for switch in () if switches is None else switches(kernel):
            found.setdefault((finding.code, switch), finding)
    return [(finding, switch) for (_, switch), finding in found.items()]


def try_switches(kernel: KernelFacts) -> tuple[list[Tried], tuple[str, ...]]:
    """Compile a kernel from its saved TTIR with each suggested switch; also returns notes about the compile.

    The baseline is the kernel compiled again without a switch: a later release, or a start from TTIR, may
    produce other code than the cache has. No user code runs.

    Raises:
        UsageError: the kernel has no TTIR, or its target is unknown.
        CompileError: Triton is not usable in this environment.
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
    notes = [f"compiled again by Triton {here} from the cached TTIR"]
    if subject.dropped_options:
        notes.append(describe_dropped(subject.dropped_options))
    own = kernel.artifact.triton_version
    if own is not None and not own.fits(here):
        notes.append(f"the cached kernel is from Triton {own}: its numbers may differ")
    with scratch_directory() as scratch:
        possible = [text for text in texts if text is not None]
        base, *made = compile_again(
            [(saved, options), *possible], subject.name, subject.target, Path(scratch)
        )
        if base.artifact is None:
            why = f"Triton {here} cannot compile the TTIR of Triton {own or 'unknown'}: {base.message}"
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
            yield Tried(finding, switch, None, None, "the cached TTIR has nothing to apply it to")
        elif again.artifact is None:
            yield Tried(finding, switch, None, None, again.message)
        else:
            reach = find_reach(base.artifact, again.artifact, inspect_artifact)
            left = {one.code for one in find_findings(inspect_artifact(again.artifact))}
            yield Tried(finding, switch, reach, finding.code not in left, None)


def _switched(saved: str, options: dict[str, Any], switch: Switch) -> tuple[str, dict[str, Any]] | None:
    """TTIR and options with a switch applied; None if the TTIR has nothing to apply it to."""
    if switch.kind is SwitchKind.OPTION:
        return saved, {**options, switch.name: switch.value}
    if switch.kind is SwitchKind.PRECISION:
        text = with_input_precision(saved, str(switch.value))
        return None if text is None else (text, options)
    text = saved
    for name in switch.name.split(", "):
        text = text and with_divisor(text, name, int(switch.value))
    return None if text is None else (text, options)
