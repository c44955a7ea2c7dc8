"""Which kernels a view shows, and in which order, by what was found of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.records import artifact_size, artifact_time
from artifact_inspector.findings import RULES, Rule, Severity, find_findings
from artifact_inspector.model import OrderVerdict
from artifact_inspector.model.text import parse_integer, split_option_values

Key = Callable[[KernelFacts], float | str | None]
KEYS: Mapping[str, Key] = {
    "name": lambda kernel: kernel.artifact.display_name,
    "time": lambda kernel: _less(artifact_time(kernel.artifact)),
    "verdict": lambda kernel: kernel.verdict,
    "spills": lambda kernel: _less(kernel.resources.spill_bytes.value),
    "occupancy": lambda kernel: None if kernel.occupancy is None else kernel.occupancy.ratio,
    "size": lambda kernel: _less(artifact_size(kernel.artifact)),
}
"""What `--sort` calls it → what is sorted by: newest, most and largest first, the least occupancy first."""


def parse_choice(
    findings: Sequence[str], verdicts: Sequence[str], severity: str | None
) -> Callable[[KernelFacts], bool]:
    """Whether a kernel has one of the findings, one of the verdicts, and a finding of the severity.

    Args:
        findings: codes or names of rules, as `AI007`, `7` or `register-spill`; none for any.
        severity: `warning` or `note`; None for any.

    Raises:
        UsageError: there is no such rule, verdict or severity.
    """
    codes = {_code(word) for word in split_option_values(findings)}
    words = set(split_option_values(verdicts))
    if words - set(OrderVerdict):
        known = ", ".join(OrderVerdict)
        raise UsageError(f"{min(words - set(OrderVerdict))!r} is no verdict.", f"There are {known}.")
    if severity is not None and severity not in {one.value for one in Severity}:
        raise UsageError(f"{severity!r} is no severity.", "There are warning and note.")
    return lambda kernel: keep(kernel, codes, words, severity)


def keep(kernel: KernelFacts, codes: set[str], verdicts: set[str], severity: str | None) -> bool:
    """Whether a kernel is among those that were asked for; an empty set asks for nothing."""
    if verdicts and kernel.verdict not in verdicts:
        return False
    if not codes and severity is None:
        return True
    found = find_findings(kernel)
    of_codes = [finding for finding in found if not codes or finding.code in codes]
    return any(severity is None or finding.severity.value == severity for finding in of_codes)


def order(kernels: Iterable[KernelFacts], word: str) -> list[KernelFacts]:
    """The kernels sorted by one of `KEYS`, the other way round with `-` in front; unknown values last.

    Raises:
        UsageError: there is nothing of that name to sort by.
    """
    name = word.removeprefix("-")
    if name not in KEYS:
        raise UsageError(f"There is no column {name!r} to sort by.", f"There are {', '.join(KEYS)}.")
    found = [(KEYS[name](kernel), kernel) for kernel in kernels]
    known = [pair for pair in found if pair[0] is not None]
    known.sort(key=lambda pair: pair[0], reverse=word.startswith("-"))  # type: ignore[arg-type, return-value]
    return [kernel for _, kernel in (*known, *(pair for pair in found if pair[0] is None))]


def _less(value: float | None) -> float | None:
    return None if value is None else -value


def is_called(rule: Rule, word: str) -> bool:
    """Whether a person means this rule: by `AI003`, `003` as lists have it, `3`, or `not-pipelined`."""
    number = word.upper().removeprefix("AI")
    return word.lower() == rule.name or parse_integer(number) == int(rule.code[2:])


def _code(word: str) -> str:
    for rule in RULES:
        if is_called(rule, word):
            return rule.code
    raise UsageError(f"There is no finding {word!r}.", f"There are {', '.join(x.code for x in RULES)}.")
