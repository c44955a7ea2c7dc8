"""What changed in one fact of two kernels, in words."""

from __future__ import annotations

import pytest

from artifact_inspector.comparison.decisive_phrases import describe_decisive
from artifact_inspector.comparison.fact_pair import FactPair, State
from artifact_inspector.vocabulary.fact import Sign, Value


@pytest.mark.parametrize(
    ("fact", "phrase"),
    [
        (("spills", "spills", 0, 64), "registers spill to memory, 0 → 64 B per thread"),
        (("spills", "spills", 64, 0), "registers no longer spill, 64 → 0 B per thread"),
        (("occupancy", "occupancy", 3, 0), "no block fits on a multiprocessor any more (3 → 0)"),
        (("loop1.pipeline.depth", "waits", 4, 0), "the pipeline of loop1 drains every iteration (depth 4 → 0)"),
        (("count.barrier", "barriers", 5, 9), "more depth (5 → 9)"),
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
