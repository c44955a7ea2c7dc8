"""Every fact of every saved kernel is what it was: one file per fact, with its values.

`facts/<fact>.json` holds the fact of each kernel, stage or region, one entry a line; what is None, empty or
false is left out. A failure shows the old and the new value. `--update-golden` writes the files anew, and the
diff of a commit then shows what changed. Timelines are in `scenes/`, canonical texts in `canonical/`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from goldens import differences, plain
from saved import saved, saved_kernels

from artifact_inspector.comparison.pair import compare_kernels
from artifact_inspector.errors import InspectorError
from artifact_inspector.facts.kernel import KernelFacts, RegionWork, StageFacts
from artifact_inspector.facts.timetable import find_timetable
from artifact_inspector.vocabulary.rows import FACTS, summarise

FOLDER = Path(__file__).parent / "facts"
PATHS = [kernel.path for kernel in saved_kernels()]


def entries_of(path: str) -> Iterator[tuple[str, str, object]]:
    """Fact, place (kernel, stage, region) and value."""
    kernel = saved(path).facts
    for field in fields(KernelFacts):
        if field.name not in ("artifact", "stages"):
            yield field.name, path, getattr(kernel, field.name)
    for stage, facts in kernel.stages.items():
        for field in fields(StageFacts):
            if field.name not in ("stage", "work", "file", "regions"):
                yield f"stage.{field.name}", f"{path} {stage.value}", getattr(facts, field.name)
        for region in facts.regions:
            yield "region.order", f"{path} {stage.value} {region.id}", region
        for name, work in facts.work.items():
            for field in fields(RegionWork):
                yield f"region.{field.name}", f"{path} {stage.value} {name}", getattr(work, field.name)
    try:
        yield "timetable", path, find_timetable(kernel)
    except InspectorError as refusal:
        yield "timetable", path, str(refusal)
    for row in summarise(kernel).rows:
        yield f"row.{_name_of(row.key, row.region)}", f"{path} {row.key}", row.value
    kin = [other for other in saved_kernels(kernel=saved(path).kernel) if other.path > path]
    if kin:
        pair = compare_kernels(kernel, kin[0].facts)
        yield (
            "pair",
            f"{path} {kin[0].path}",
            {fact.key: [fact.left, fact.right, fact.state.value, fact.reason] for fact in pair.facts if fact.differs}
            | {"notes": pair.notes, "parting": pair.first_divergence},
        )


def _name_of(key: str, region: str) -> str:
    """The file of a row: the key of its fact, of a family or of all stages together."""
    bare = key.removeprefix(f"{region}.") if region else key
    keys = [fact.key for fact in FACTS if fact.is_row]
    return bare if bare in keys else bare.partition(".")[0]


@cache
def current() -> dict[str, dict[str, Any]]:
    """Fact → place → value; a value that is None or empty is left out."""
    values: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for path in PATHS:
        for name, place, value in entries_of(path):
            found = plain(value)
            if found not in (None, [], {}, ""):
                values[name][place] = found
    return dict(values)


def written(values: dict[str, Any]) -> str:
    return (
        "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in values.items()) + "\n}\n"
    )


@pytest.mark.parametrize("name", sorted(file.stem for file in FOLDER.glob("*.json")))
def test_a_fact_is_what_it_was(name: str, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden", default=False):
        pytest.skip("Written below.")
    expected = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    # through JSON, in which a tuple is a list
    assert list(differences(expected, json.loads(written(current().get(name, {}))))) == []


def test_every_fact_has_a_file(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden", default=False):
        FOLDER.mkdir(exist_ok=True)
        for file in FOLDER.glob("*.json"):
            file.unlink()
        for name, values in current().items():
            (FOLDER / f"{name}.json").write_text(written(values), encoding="utf-8")
    assert {file.stem for file in FOLDER.glob("*.json")} == set(current())
