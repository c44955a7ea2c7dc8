"""The option `--budget`: processor time of the simulations of a command."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext

from artifact_inspector.errors import UsageError
from artifact_inspector.model.limits import SIMULATION_SECONDS


def budget_seconds(option: str | None) -> float:
    """The seconds of `--budget`, or the default.

    Raises:
        UsageError: they are not a time, or not positive.
    """
    if option is None:
        return SIMULATION_SECONDS.value
    seconds = parse_duration(option)
    if not seconds:
        raise UsageError(f"--budget is {option}.", "Expected a time above 0: --budget 60s.")
    return seconds


def parse_duration(text: str) -> float:
    """Seconds of `60s`, `2m` or `45`.

    Raises:
        UsageError: it has another form.
    """
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*(s|m|)", text.strip())
    if match is None:
        raise UsageError(f"Invalid budget {text[:40]!r}.", "Write seconds or minutes: --budget 60s, --budget 2m.")
    return float(match[1]) * (60 if match[2] == "m" else 1)


def limit_times(budget: str | None, *, is_needed: bool) -> AbstractContextManager[object]:
    """Limits the processor time of simulations; imports none if it is not needed."""
    if not is_needed:
        return nullcontext()
    from artifact_inspector.execution.interpreter.budget import limit_simulation

    return limit_simulation(budget_seconds(budget))
