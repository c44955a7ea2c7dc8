"""The modelled warps of a launch in the Trace Event format of Chrome, which ui.perfetto.dev opens.

A process is a CTA, a thread a warp, and a microsecond one modelled cycle.

Source: "Trace Event Format", docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from artifact_inspector.execution.timing.residency import Residency


def chrome_trace(model: Residency) -> dict[str, Any]:
    """The document: one complete event for each span of a warp, and a counter for each busy unit."""
    return {
        "traceEvents": list(_events(model)),
        "displayTimeUnit": "ns",
        "otherData": {
            "kernel": model.kernel,
            "gpu": model.gpu,
            "unit": "1 us is one modelled cycle; nothing is measured",
            "notes": list(model.notes),
        },
    }


def _events(model: Residency) -> Iterator[dict[str, Any]]:
    for lane in model.timelines:
        names = (("process_name", f"CTA {lane.cta}"), ("thread_name", f"warp {lane.warp}"))
        for kind, name in names if lane.warp == 0 else names[1:]:
            yield {"ph": "M", "name": kind, "pid": lane.cta, "tid": lane.warp, "args": {"name": name}}
        for span in lane.spans:
            yield {
                "ph": "X", "name": span.activity.value, "cat": span.activity.name, "pid": lane.cta, "tid": lane.warp,
                "ts": span.start, "dur": span.end - span.start,
            }  # fmt: skip
    yield {"ph": "M", "name": "process_name", "pid": model.resident_ctas, "tid": 0, "args": {"name": "units of the SM"}}
    for unit, shares in model.unit_utilization.items():
        for slot, share in enumerate(shares if any(shares) else ()):
            yield {
                "ph": "C", "name": f"{unit} busy, %", "pid": model.resident_ctas, "tid": 0,
                "ts": slot * model.cycles / len(shares), "args": {"busy": round(100 * share, 2)},
            }  # fmt: skip
