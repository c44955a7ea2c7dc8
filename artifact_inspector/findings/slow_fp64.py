"""The fp64 unit limits a launch: its GPU has few of them, or most instructions compute in fp64.

V100, A100, H100 and B200 multiply and add half as many fp64 numbers per cycle as fp32 numbers. T4 does a thirty-second;
A10, L4, L40 and GeForce products do a sixty-fourth: one fp64 addition takes as long as 64 of fp32.

**When it is reported.** A launch was simulated (`inspect-kernel predict`), its time is predicted, and the fp64 unit is
busy for at least a quarter of it.

**What it is likely to cost.** The share of the time that the message states, as far as nothing else takes as long.

**What to do.** Sum in fp32: keep a vector of partial sums, and reduce it once. A Python float is fp32 in Triton, but
a scalar loaded from an fp64 tensor makes all that it meets fp64: convert it. `advise` names the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, report_nothing
from artifact_inspector.hardware.targets import parse_target

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import Prediction

LEAST_SHARE = 0.25


def _look(prediction: Prediction) -> Iterator[Remark]:
    time, rates = prediction.time, parse_target(prediction.target).gpu.rates
    busy = 0.0 if time is None else time.terms.get("double", 0.0)
    if time is None or busy < LEAST_SHARE * time.us:
        return
    rate = "" if rates is None or not rates.fma64 else f", at 1/{rates.fma32 // rates.fma64} of its fp32 rate"
    share = f"{min(1.0, busy / time.us):.0%} of the predicted time"
    yield Remark(f"fp64 instructions keep their unit of {time.gpu} busy for {share}{rate}", None)


RULE = Rule("AI028", "slow-fp64", Severity.WARNING, Consequence.OTHER, report_nothing, __doc__, _look)
