"""The fewest cycles of a launch: device memory moves each used byte once, and products run at their peak.

Source: Williams, Waterman and Patterson, Roofline: An Insightful Visual Performance Model (CACM 52, 2009).
"""

from __future__ import annotations

from collections import defaultdict

from artifact_inspector.diagnosis.launch_model import LaunchModel, TimeModel
from artifact_inspector.execution.interpreter.footprints import SECTOR

_RATE_OF = {
    "fp16": "f16", "bf16": "f16", "tf32": "tf32", "fp32": "tf32", "fp8": "f8", "int8": "i8", "fp64": "f64",
    "fp4": "f4"
}  # fmt: skip
_RATE_OF_LOADED = {"f16": "f16", "bf16": "f16", "i8": "i8"}
"""The same of loaded elements that a wider dot multiplies: it could multiply them as they are."""


def roofline_cycles(model: LaunchModel, time: TimeModel, written_share: float = 1.0) -> float:
    """The larger of memory time and product time, in cycles; memory at its sustained rate."""
    rate = time.gpu.dram_bytes_per_cycle * time.gpu.timing.dram_share
    return max(_used_bytes(model, written_share) / rate, product_cycles(model, time))


def _used_bytes(model: LaunchModel, written_share: float) -> float:
    """Distinct bytes that the launch uses: sectors as far as lanes request their bytes, and a share of the written."""
    sample, traffic = model.sample, model.traffic
    scale = sample.launch.ctas / len(sample.ctas)
    sizes = {region.name: region.stop - region.start for region in traffic.regions}
    requested: defaultdict[tuple[str, bool], float] = defaultdict(float)
    for index, name in traffic.tensor_of_step.items():
        requested[name, "store" not in model.steps[index].kind] += model.counters.bytes_requested[index]
    total = 0.0
    for is_read, share, touched in ((True, 1.0, traffic.sectors_read), (False, written_share, traffic.sectors_written)):
        for name, count in touched.items():
            # several accesses may use a sector together
            used = min(1.0, requested[name, is_read] / (count * SECTOR)) if requested[name, is_read] else 1.0
            total += min(count * SECTOR * scale, sizes.get(name, count * SECTOR * scale)) * used * share
    return total


def product_cycles(model: LaunchModel, time: TimeModel) -> float:
    """Cycles of all dots at the peak of the matrix unit."""
    rates, sample = time.gpu.rates.matrix, model.sample
    cycles = 0.0
    for step in model.steps:
        if step.kind != "tensor" and not model.operations.has(step.source_place, "tt.dot"):
            continue
        narrow = _RATE_OF_LOADED.get(model.operations.wide_dots.get(step.source_place or "", ("", ""))[1])
        for kind, count in step.lane_flop:
            rate = rates.get(narrow or _RATE_OF.get(kind, "f16")) or rates.get("f16") or 1024
            cycles += count * model.counters.threads_executed[step.index] / 2 / rate
    return cycles * sample.launch.ctas / len(sample.ctas) / time.gpu.multiprocessors
