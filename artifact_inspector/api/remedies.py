"""Compile a kernel with the switches that its findings suggest, and compare the code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from artifact_inspector.comparison.reach import find_reach
from artifact_inspector.compiling.ask.compile import Recompilation, recompile_texts
from artifact_inspector.compiling.ask.environments import find_interpreter, own_triton_version, parse_triton
from artifact_inspector.compiling.ask.process import Interpreter
from artifact_inspector.compiling.untrusted import describe_dropped
from artifact_inspector.errors import InspectorError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.findings import RULES, Finding, Switch, SwitchKind, find_findings
from artifact_inspector.formats.mlir.rewriting import with_divisor, with_input_precision
from artifact_inspector.model.version import TritonVersion
from artifact_inspector.passes.subject import subject_of_entry
from artifact_inspector.report.change_effect import RemedyTrial


def switches_of(kernel: KernelFacts) -> list[tuple[Finding, Switch]]:
    """Pairs of finding and suggested switch; the first finding of each rule represents it."""
    by_code = {rule.code: rule for rule in RULES}
    finding_by_switch: dict[tuple[str, Switch], Finding] = {}
    for finding in find_findings(kernel):
        switches = by_code[finding.code].switches
        for switch in () if switches is None else switches(kernel):
            finding_by_switch.setdefault((finding.code, switch), finding)
    return [(finding, switch) for (_, switch), finding in finding_by_switch.items()]


def try_switches(kernel: KernelFacts) -> tuple[list[RemedyTrial], tuple[str, ...]]:
    """Compile a kernel from its saved TTIR with each suggested switch; also returns notes about the compile.

    The baseline is the kernel compiled again without a switch: a later release, or a start from TTIR, may
    produce other code than the cache has. No user code runs.

    Raises:
        UsageError: the kernel has no TTIR, or its target is unknown.
        CompileError: Triton is not usable in this environment.
    """
    suggestions = switches_of(kernel)
    paddings = [RemedyTrial(*pair, None, None, None) for pair in suggestions if pair[1].kind is SwitchKind.PADDING]
    suggestions = [pair for pair in suggestions if pair[1].kind is not SwitchKind.PADDING]
    if not suggestions:
        return paddings, ()
    triton_version, interpreter = find_release(kernel.artifact.triton_version, own_triton_version() or "")
    subject = subject_of_entry(kernel.artifact, triton_version)
    options = dict(subject.request["options"])
    saved = subject.saved_ttir or ""
    switches = list(dict.fromkeys(switch for _, switch in suggestions))
    texts = [_apply_switch(saved, options, switch) for switch in switches]
    notes = [f"compiled again by Triton {triton_version} from the cached TTIR"]
    if subject.dropped_options:
        notes.append(describe_dropped(subject.dropped_options))
    cached_version = kernel.artifact.triton_version
    if cached_version is not None and not cached_version.may_match(triton_version):
        notes.append(f"the cached kernel is from Triton {cached_version}: its numbers may differ")
    with scratch_directory() as scratch:
        applicable = [text for text in texts if text is not None]
        baseline, *recompiled = recompile_texts(
            [(saved, options), *applicable], subject.name, subject.target, Path(scratch), interpreter=interpreter
        )
        if baseline.artifact is None:
            older = cached_version or "unknown"
            message = f"Triton {triton_version} cannot compile the TTIR of Triton {older}: {baseline.message}"
            return [RemedyTrial(finding, switch, None, None, message) for finding, switch in suggestions], ()
        results = iter(recompiled)
        result_by_switch = {
            switch: None if text is None else next(results) for switch, text in zip(switches, texts, strict=True)
        }
        return [*_compare_switches(suggestions, result_by_switch, baseline), *paddings], tuple(notes)


def find_release(version: TritonVersion | None, own: str) -> tuple[str, Interpreter | None]:
    """The release that compiled a kernel if it is installed, else the own one."""
    release = own if version is None or version.may_match(own) else version.candidates[-1]
    if release == own or "=" in release:  # VERSION=PYTHON runs that Python, which only the user may choose
        return own, None
    try:
        return release, find_interpreter(*parse_triton(release), may_create=False)
    except InspectorError:
        return own, None


def _compare_switches(
    suggestions: Sequence[tuple[Finding, Switch]],
    result_by_switch: dict[Switch, Recompilation | None],
    baseline: Recompilation,
) -> Iterator[RemedyTrial]:
    assert baseline.artifact is not None
    for finding, switch in suggestions:
        recompiled = result_by_switch[switch]
        if recompiled is None:
            yield RemedyTrial(finding, switch, None, None, "the cached TTIR has nothing to apply it to")
        elif recompiled.artifact is None:
            yield RemedyTrial(finding, switch, None, None, recompiled.message)
        else:
            reach = find_reach(baseline.artifact, recompiled.artifact, inspect_artifact)
            codes = {remaining.code for remaining in find_findings(inspect_artifact(recompiled.artifact))}
            yield RemedyTrial(finding, switch, reach, finding.code not in codes, None)


def _apply_switch(saved: str, options: dict[str, Any], switch: Switch) -> tuple[str, dict[str, Any]] | None:
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
