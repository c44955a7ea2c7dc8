"""Facts that a row leaves out where a cheaper fact rules its findings out: none of them would have shown anything."""

from __future__ import annotations

import pytest
from saved import Saved, every_third, saved, saved_kernels

from artifact_inspector.analysis.overlap.pipeline import RUNS_AHEAD
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.outline import ROW_LOADS
from artifact_inspector.findings.narrow_loads import find_narrow, has_narrow
from artifact_inspector.model import EventKind, PipelineKind, RegionKind
from artifact_inspector.report.cache_report import CacheReport

KERNELS = [kernel for kernel in saved_kernels() if kernel.version in ("3.2.0", "3.6.0", "3.9.0")]


@pytest.mark.parametrize("kernel", every_third(KERNELS), ids=lambda kernel: kernel.path)
def test_what_a_row_leaves_out_shows_nothing(kernel: Saved) -> None:
    facts = kernel.facts
    last = facts.last
    assert last is not None
    for stage in facts.stages.values():
        for region in stage.regions:
            drains = stage.work[region.id].in_flight.drains
            assert len(drains) <= len(stage.waits_in(region.id))
            assert stage.drains(region.id, len(drains)) == drains
    for name, pipeline in facts.pipelines.items():
        stage, region = [(x, x.region(name)) for x in facts.stages.values() if x.region(name) is not None][-1]
        assert region is not None
        assert region.kind is RegionKind.LOOP
        assert region.is_in_program
        if pipeline.kind not in (None, PipelineKind.REGISTERS):
            assert region.verdict in RUNS_AHEAD
            assert stage.counts[EventKind.ASYNC_COPY.count_name]
    if not has_narrow(facts, lambda accesses: accesses.load_widths):
        assert not list(find_narrow(facts, facts.widths, "load"))
    if not has_narrow(facts, lambda accesses: accesses.stores):
        assert not list(find_narrow(facts, facts.store_widths, "store"))
    words = last.counts[EventKind.SHARED_LOAD.count_name] - last.counts.get(ROW_LOADS, 0)
    assert all(sum(x.word_reads for x in work.operand_reads) <= words for work in last.work.values())


def test_a_row_explains_no_pipeline_and_no_width_that_no_finding_needs() -> None:
    row = inspect_artifact(saved("3.6.0/gfx942/matmul_grouped").artifact, view=CacheReport.view)
    last = row.last
    assert last is not None
    assert any(region.kind is RegionKind.LOOP for region in last.regions)
    assert row.__dict__.keys().isdisjoint(("pipelines", "widths", "store_widths"))
    assert all("in_flight" not in work.__dict__ for work in last.work.values())
