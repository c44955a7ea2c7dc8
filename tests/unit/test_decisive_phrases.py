"""What changed in one fact of two kernels, in words."""

from __future__ import annotations

import pytest

from artifact_inspector.comparison.consequence import consequence_of
from artifact_inspector.comparison.decisive_phrases import describe_decisive
from artifact_inspector.comparison.fact_pair import FactPair, State
from artifact_inspector.comparison.headline import _is_outweighed_by
from artifact_inspector.model import Consequence
from artifact_inspector.vocabulary.fact import Sign, Value


@pytest.mark.parametrize(
    ("fact", "phrase"),
    [
        (("spills", "spills", 0, 64), "registers spill to memory, 0 → 64 B per thread"),
        (("spills", "spills", 64, 0), "registers no longer spill, 64 → 0 B per thread"),
        (("occupancy", "occupancy", 3, 0), "no block fits on a multiprocessor any more (3 → 0)"),
        (("loop1.pipeline.depth", "waits", 4, 0), "the pipeline of loop1 drains every iteration (depth 4 → 0)"),
        (("count.barrier", "barriers", 5, 9), "more depth (5 → 9)"),
        (("count.cas_loops", "atomics", 0, 3), "native atomics became compare-and-swap loops, 0 → 3 in the code"),
        (("count.cas_loops", "atomics", 1, 0), "compare-and-swap loops became native, 1 → 0 in the code"),
        (("loads.widths", "loads", ("2 ×4",), ("2 ×2",)), "depth 2 ×4 → 2 ×2"),
        (("findings", "findings", (), ("AI002",)), "new finding: AI002 pipeline-drained"),
    ],
)
def test_a_phrase_has_the_terms_of_its_consequence(fact: tuple[str, str, Value, Value], phrase: str) -> None:
    key, category, left, right = fact
    region = "loop1" if key.startswith("loop1") else ""
    pair = FactPair(key, category, "depth", "", region, left, right, State.DIFFERENT, direction=Sign.WORSE)
    assert describe_decisive(pair, [pair], region) == phrase


def test_a_lost_pipeline_is_not_a_drained_one() -> None:
    depth = FactPair("loop1.pipeline.depth", "waits", "wait depth", "", "loop1", 3, None, State.ONE_SIDED)
    kind = FactPair(
        "loop1.pipeline.kind", "waits", "pipelined by", "", "loop1", "cp.async groups", None, State.ONE_SIDED
    )
    phrase = describe_decisive(depth, [depth, kind], "the loop at a.py:3")
    assert phrase == "the loop at a.py:3 is no longer pipelined: cp.async groups (wait depth 3 → 0)"


def test_wider_operands_lead_whatever_the_occupancy_that_follows_costs() -> None:
    f16 = "4 × wgmma.mma_async m64n128k16 (f16×f16→f32) by 2 warpgroups"
    tf32 = "8 × wgmma.mma_async m64n128k8 (tf32×tf32→f32) by 2 warpgroups"
    operands = FactPair("loop1.mma", "mma", "MMA", "", "loop1", (f16,), (tf32,), State.DIFFERENT, direction=Sign.WORSE)
    blocks = FactPair("occupancy", "occupancy", "blocks", "", "", 2, 1, State.DIFFERENT, direction=Sign.WORSE)
    facts = [operands._replace(price=1.08), blocks._replace(price=1.2)]
    others = [facts[0]._replace(key="count.barrier", category="barriers"), facts[1]]
    assert consequence_of(operands) is Consequence.MATRIX
    assert sorted(facts, key=_is_outweighed_by(facts))[0].key == "loop1.mma"
    assert sorted(others, key=_is_outweighed_by(others))[0].key == "occupancy"
