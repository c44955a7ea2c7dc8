"""The timeline of every saved kernel is what it was, event by event: one file per kernel.

An event is `position-position KIND ×repetitions, lines, region, round`; loads in flight have where they are issued and
what completes them. The text of an instruction is not repeated: it is compared with its line of the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goldens import differences, hold, plain
from saved import Saved, every_third, saved, saved_kernels

from artifact_inspector.facts.lane import InstructionLabel, Lane
from artifact_inspector.facts.scene import find_scene

FOLDER = Path(__file__).parent / "scenes"
KERNELS = saved_kernels()


def lane_lines(lane: Lane) -> dict[str, Any]:
    """One lane, a line for each event, load and region."""
    return {
        "function": f"{lane.function}, {lane.instructions} instructions, of {Path(lane.file).suffix}",
        "events": [
            f"{step.start}-{step.stop} {step.kind.name} ×{step.repetitions}, lines {step.lines[0]}-{step.lines[1]}, "
            f"{step.region}{'' if step.round is None else f', round {step.round}'}"
            for step in (event.step for event in lane.events)
        ],
        "loads": [
            " ".join(f"{name}={value}" for name, value in plain(span.flight).items() if value is not False)
            for span in lane.load_spans
        ],
        "in flight": " ".join(f"{level.start}:{level.loads}({plain(level.bytes)} B)" for level in lane.levels),
        "regions": [" ".join(str(plain(part)) for part in span) for span in lane.spans],
    }


def label_problem(kernel: Saved, lane: Lane, label: InstructionLabel) -> str | None:
    """Where the text of an instruction is not that of its line in the file."""
    line = kernel.text(lane.stage).splitlines()[label.line - 1]
    words = label.text.split()
    return None if words[0] in line and label.opcode.split(".")[0] in line else f"{label.line}: {label.text!r}"


@pytest.mark.parametrize("path", every_third([kernel.path for kernel in KERNELS]))
def test_a_timeline_is_what_it_was(path: str, request: pytest.FixtureRequest) -> None:
    kernel = saved(path)
    scene = find_scene(kernel.facts)
    lanes: dict[str, list[dict[str, Any]]] = {}
    for lane in scene.lanes:
        lanes.setdefault(lane.stage.value, []).append(lane_lines(lane))
    head = {"kernel": scene.kernel, "target": scene.target, "main loop": scene.principal, "missing": scene.missing}
    file = FOLDER / f"{path.replace('/', '.')}.json"
    hold(file, {**head, "verdicts": scene.verdicts, "lanes": lanes}, request)
    labels = [
        (lane, label)
        for lane in scene.lanes
        for label in [
            *(event.first for event in lane.events),
            *(span.issue for span in lane.load_spans),
            *(span.completion for span in lane.load_spans if span.completion is not None),
        ]
    ]
    assert [problem for lane, label in labels if (problem := label_problem(kernel, lane, label))] == []


def test_every_kernel_has_a_file() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == {kernel.path.replace("/", ".") for kernel in KERNELS}


def test_a_change_is_reported_where_it_is() -> None:
    old = {"events": ["0-1 GLOBAL_LOAD ×1", "2-3 MATRIX ×1"]}
    new = {"events": ["0-1 GLOBAL_LOAD ×1", "2-3 MATRIX ×2"]}
    assert list(differences(old, new)) == ['events[1]: "2-3 MATRIX ×1" -> "2-3 MATRIX ×2"']
