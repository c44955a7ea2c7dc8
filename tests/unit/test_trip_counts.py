"""Scratch accesses and barriers of one loop iteration, compared with the text between a loop's label and its branch."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from saved import FIXTURES, saved

from artifact_inspector.comparison.corpus import compare_candidates
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.model import Stage
from artifact_inspector.vocabulary.rows import summarise

LOOP = re.compile(r"^(\.LBB\d+_\d+):[^\n]*Inner Loop.*?s_cbranch_\w+ \1$", re.M | re.S)
SCRATCH = "\n\tscratch_load_dword v1, off, off offset:4\n\tscratch_load_dword v2, off, off offset:8"


def test_barriers_of_a_trip_are_those_of_the_loop() -> None:
    kernel = saved("3.6.0/gfx942/matmul_grouped")
    (loop,) = LOOP.finditer(kernel.text(Stage.AMDGCN))
    facts = summarise(kernel.facts).facts
    assert facts["loop1.trip.barriers"] == loop[0].count("s_barrier") == 2
    assert "loop1.trip.scratch_loads" not in facts


def test_scratch_loads_in_a_loop_are_worse_and_are_counted_per_trip(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "3.6.0" / "gfx942" / "two_loops", tmp_path / "cache")
    (file,) = (tmp_path / "cache").glob("*/*.amdgcn")
    loops = list(LOOP.finditer(file.read_text(encoding="utf-8")))
    assert len(loops) == 2
    end_of_label = loops[1].end(1) + 1
    text = file.read_text(encoding="utf-8")
    line_end = text.index("\n", end_of_label)
    file.write_text(text[:line_end] + SCRATCH + text[line_end:], encoding="utf-8")
    edited = open_cache(tmp_path / "cache").entries[0]
    change = compare_candidates(
        Candidate(saved("3.6.0/gfx942/two_loops").artifact), Candidate(edited), inspect_artifact, always=True
    )
    assert change.headline is not None
    assert change.headline.sentence.startswith("Worse: more scratch loads (0 → 2 per iteration) in the loop at line 21")
