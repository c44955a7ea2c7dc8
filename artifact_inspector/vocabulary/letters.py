"""What the letters of a signature stand for."""

from __future__ import annotations

from artifact_inspector.model import EventKind

LETTERS = {
    EventKind.GLOBAL_LOAD: "global load", EventKind.ASYNC_COPY: "async copy", EventKind.COMMIT: "commit",
    EventKind.WAIT: "wait", EventKind.SHARED_LOAD: "shared load", EventKind.SHARED_STORE: "shared store",
    EventKind.MATRIX: "matrix op", EventKind.FLOAT: "float op", EventKind.BARRIER: "barrier",
    EventKind.LAYOUT_CONVERSION: "layout conversion", EventKind.SCHEDULE_HINT: "schedule hint",
    EventKind.GLOBAL_STORE: "global store", EventKind.ATOMIC: "atomic", EventKind.UNKNOWN: "unclassified",
}  # fmt: skip
