"""Selection and order of kernels by their facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kept_diagnosis import diagnosis_of
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.records import artifact_size, artifact_time
from artifact_inspector.findings import RULES, Rule, Severity, find_findings
from artifact_inspector.findings._price import estimate_share
from artifact_inspector.findings.limit import find_first
from artifact_inspector.model import Consequence, OrderVerdict
from artifact_inspector.model.text import parse_integer, split_option_values

Value = TypeVar("Value")
Key = Callable[[KernelFacts], float | str | tuple[int, ...] | None]
_LARGE_SHARE = 0.2
"""Share of the predicted time from which on a cause is as important as a warning."""
_WRONG = ("AI025",)
"""Findings of kernels that may compute wrong results."""


def is_severe(kernel: KernelFacts) -> bool:
    """Whether a kernel does not run or has a warning."""
    does_not_run, _, _, is_note, *_ = cost_of(kernel)
    return not does_not_run or not is_note


def cost_of(kernel: KernelFacts) -> tuple[int, ...]:
    """Sort key of lists: what does not fit or launch, what is wrong, spills, warnings, notes; then the largest share.

    The share is that of the cause that `advise` predicted last, else an estimate for the findings.
    """
    return kernel.derive("cost", partial(_find_cost, kernel))


def _find_cost(kernel: KernelFacts) -> tuple[int, ...]:
    findings, spilled = find_findings(kernel), kernel.resources.spill_bytes.value or 0
    first = find_first(findings)
    codes = {finding.code for finding in findings}
    rank = _NO_FINDING if first is None else _RANKS[first.code]
    does_not_run = rank <= Consequence.LAUNCH.rank or (kernel.occupancy is not None and kernel.occupancy.blocks == 0)
    is_note = first is None or first.severity is not Severity.WARNING
    diagnosis = diagnosis_of(kernel)
    share = max((estimate_share(kernel, code) for code in codes), default=0.0) if diagnosis is None else diagnosis.share
    is_minor = is_note and (diagnosis is None or diagnosis.share < _LARGE_SHARE)
    return not does_not_run, codes.isdisjoint(_WRONG), -spilled, is_minor, -round(100 * share), rank, -len(codes)


_NO_FINDING = len(Consequence)
_RANKS = {rule.code: rule.consequence.rank for rule in RULES}
KEYS: Mapping[str, Key] = {
    "cost": cost_of, "name": lambda kernel: kernel.artifact.display_name,
    "time": lambda kernel: _negate(artifact_time(kernel.artifact)), "verdict": lambda kernel: kernel.verdict,
    "spills": lambda kernel: _negate(kernel.resources.spill_bytes.value),
    "occupancy": lambda kernel: None if kernel.occupancy is None else kernel.occupancy.ratio,
    "size": lambda kernel: _negate(artifact_size(kernel.artifact)),
}  # fmt: skip
"""Value of `--sort` → sort key: worst, newest, most and largest first, lowest occupancy first."""


def parse_choice(
    findings: Sequence[str], verdicts: Sequence[str], severity: str | None
) -> Callable[[KernelFacts], bool]:
    """Whether a kernel has one of the findings, one of the verdicts, and a finding of the severity.

    Args:
        findings: codes or names of rules, as `AI007`, `7` or `register-spill`; none for any.
        severity: `warning` or `note`; None for any.

    Raises:
        UsageError: unknown rule, verdict or severity.
    """
    codes = {_parse_code(value) for value in split_option_values(findings)}
    verdict_names = set(split_option_values(verdicts))
    if verdict_names - set(OrderVerdict):
        known_verdicts = ", ".join(OrderVerdict)
        raise UsageError(
            f"{min(verdict_names - set(OrderVerdict))!r} is not a verdict.", f"Expected one of {known_verdicts}."
        )
    if severity is not None and severity not in {member.value for member in Severity}:
        raise UsageError(f"{severity!r} is not a severity.", "Expected warning or note.")
    return partial(is_selected, codes=codes, verdicts=verdict_names, severity=severity)


def is_selected(kernel: KernelFacts, codes: set[str], verdicts: set[str], severity: str | None) -> bool:
    """Whether a kernel matches the filters; an empty set matches every kernel."""
    if verdicts and kernel.verdict not in verdicts:
        return False
    if not codes and severity is None:
        return True
    all_findings = find_findings(kernel)
    of_codes = [finding for finding in all_findings if not codes or finding.code in codes]
    return any(severity is None or finding.severity.value == severity for finding in of_codes)


def sort_kernels(kernels: Iterable[KernelFacts], sort_key: str) -> list[KernelFacts]:
    """The kernels sorted by one of `KEYS`, the other way round with `-` in front; unknown values last.

    Raises:
        UsageError: unknown sort key.
    """
    key_of = find_key(sort_key)
    return sort_by_keys([(key_of(kernel), kernel) for kernel in kernels], sort_key)


def find_key(sort_key: str) -> Key:
    """The function of `KEYS` for a sort key, with or without `-` in front.

    Raises:
        UsageError: unknown sort key.
    """
    name = sort_key.removeprefix("-")
    if name not in KEYS:
        raise UsageError(f"Unknown column {name!r} for --sort.", f"Expected one of {', '.join(KEYS)}.")
    return KEYS[name]


def sort_by_keys(keyed: Sequence[tuple[Any, Value]], sort_key: str) -> list[Value]:
    """The values sorted by their keys, in reverse if the sort key starts with `-`; those without a key are last."""
    with_key = [pair for pair in keyed if pair[0] is not None]
    with_key.sort(key=itemgetter(0), reverse=sort_key.startswith("-"))
    return [value for _, value in (*with_key, *(pair for pair in keyed if pair[0] is None))]


def _negate(value: float | None) -> float | None:
    return None if value is None else -value


def is_called(rule: Rule, text: str) -> bool:
    """Whether a text names this rule: by `AI003`, `003` as lists have it, `3`, or `not-pipelined`."""
    number = text.upper().removeprefix("AI")
    return text.lower() == rule.name or parse_integer(number) == int(rule.code[2:])


def _parse_code(text: str) -> str:
    for rule in RULES:
        if is_called(rule, text):
            return rule.code
    raise UsageError(f"Unknown finding {text!r}.", f"Expected one of {', '.join(x.code for x in RULES)}.")
