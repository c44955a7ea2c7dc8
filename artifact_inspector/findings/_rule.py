"""What a rule is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from inspect import cleandoc

from artifact_inspector.facts import KernelFacts
from artifact_inspector.model import Stage

__all__ = ["Finding", "Remark", "Rule", "Severity"]


class Severity(Enum):
    """How much a finding is likely to cost; never whether it is wrong."""

    WARNING = "warning"
    """As a rule it costs time, and another way of writing or compiling the kernel avoids it."""
    NOTE = "note"
    """A fact that explains a measurement; it may be what the kernel needs."""


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rule says of one place."""

    message: str
    """One sentence: the fact with its figures, then what it is likely to cost."""
    stage: Stage | None
    """The stage whose lines are the evidence; None where the evidence is no text (a binary)."""
    lines: tuple[int, ...] = ()
    """Lines of that stage's file."""
    sources: tuple[str, ...] = ()
    """Lines of the user's code, `file.py:line`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A remark with the rule that made it."""

    code: str
    name: str
    severity: Severity
    remark: Remark


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing to look for: a code that never changes its meaning, and a page that explains it."""

    code: str
    name: str
    severity: Severity
    look: Callable[[KernelFacts], Iterable[Remark]]
    page: str | None
    """The docstring of the rule's module: title, what it means, when it is said, what to look at."""

    def find(self, kernel: KernelFacts) -> Iterator[Finding]:
        """What the rule says of a kernel."""
        for remark in self.look(kernel):
            yield Finding(self.code, self.name, self.severity, remark)

    @property
    def explanation(self) -> str:
        """The rule's page, as Markdown."""
        return cleandoc(self.page or "")
