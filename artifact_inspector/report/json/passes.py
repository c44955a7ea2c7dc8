"""What each pass changed, as JSON: `passes --json`, `bisect --json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from artifact_inspector.passes.bisection import Bisection
from artifact_inspector.passes.dump_facts import DumpFact
from artifact_inspector.passes.trace import PassTrace
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape

define_shape(DumpFact, without="by_names")


@dataclass(frozen=True, slots=True, kw_only=True)
class PassesDocument(Document):
    """What each pass of a compile changed: `inspect-kernel passes --json`."""

    document: Literal["passes"] = "passes"
    passes: PassTrace


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionDocument(Document):
    """The release where a kernel's facts changed: `inspect-kernel bisect --json`."""

    document: Literal["bisection"] = "bisection"
    bisection: Bisection
