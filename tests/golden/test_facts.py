"""Every fact of every saved kernel is what it was, down to the last one: a digest for each part.

A digest says which part of which kernel is another now, and not how. That is what this shows, here and in a
checkout of what was before:

    inspect-kernel fixtures/3.6.0/sm_80/matmul_grouped --json

Where the change is meant, `--update-golden` writes the digests anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from digests import digest_of, parts_of
from saved import saved, saved_kernels

from artifact_inspector.comparison.matching import digest_of as text_digest_of
from artifact_inspector.comparison.pair import compare_kernels
from artifact_inspector.errors import InspectorError
from artifact_inspector.facts.scene import find_scene
from artifact_inspector.facts.timetable import find_timetable
from artifact_inspector.model import Stage
from artifact_inspector.report.json import encode as document
from artifact_inspector.report.json.comparison import pair_document

DIGESTS = Path(__file__).parent / "facts.json"
PATHS = [kernel.path for kernel in saved_kernels()]


def parts(path: str) -> Iterator[tuple[str, object]]:
    """The facts of a kernel, the paths of its loads and computes, and what differs to its next of kin."""
    kernel = saved(path)
    facts = kernel.facts
    yield from parts_of(facts)
    for stage in facts.stages:
        yield f"{stage.value}.text", text_digest_of(kernel.artifact, stage)
    for name, find in {"scene": find_scene, "timetable": find_timetable}.items():
        try:
            yield name, repr(find(facts))
        except InspectorError as refusal:
            yield name, str(refusal)
    kin = [other for other in saved_kernels(kernel=kernel.kernel) if other.path > path]
    if kin:
        yield "pair", document(pair_document(compare_kernels(facts, kin[0].facts)))


def digests(path: str) -> dict[str, str]:
    return {name: digest_of(part) for name, part in parts(path)}


@pytest.mark.parametrize("path", PATHS)
def test_every_part_of_a_kernel_is_what_it_was(path: str, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden", default=False):
        pytest.skip("Written below.")
    assert digests(path) == json.loads(DIGESTS.read_text(encoding="utf-8"))[path]


def test_every_saved_kernel_has_its_digests(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden", default=False):
        lines = ",\n".join(f'"{path}": {json.dumps(digests(path))}' for path in PATHS)
        DIGESTS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    assert list(json.loads(DIGESTS.read_text(encoding="utf-8"))) == PATHS
    assert {stage for path in PATHS for stage in saved(path).facts.stages} >= set(Stage) - {Stage.SASS}
