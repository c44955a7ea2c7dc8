"""Which launch is meant where none is given, and what to do where there can be none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from artifact_inspector.api import predicting
from artifact_inspector.cli._reading import open_or_advise
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.execution.order import CtaOrder, Wave
from artifact_inspector.files.cache import open_cache
from artifact_inspector.report.prediction import describe_order


def test_a_whole_name_means_that_kernel_though_another_begins_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = ("matmul_persistent", "matmul_persistent_descriptor")
    rows = [{"place": place, "target": "sm_90"} for place in places]
    (tmp_path / "inspect-kernel.json").write_text(json.dumps({"entries": rows}))
    ran: list[str] = []

    def capture(command: list[str], *_: Any) -> None:
        ran.append(command[-1])

    monkeypatch.setattr(predicting, "capture_program", capture)
    for name in (*places, "matmul"):
        predicting.recorded_launches(open_cache(tmp_path), name)
    assert [any(f".{place} import" in program for program in ran) for place in places] == [True, True]
    assert len(ran) == 2


def test_a_workload_is_launched_in_every_configuration_that_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "entry"
    directory.mkdir()
    (directory / "k.ptx").write_text(".version 8.0\n.target sm_90a\n.visible .entry k()\n{\n ret;\n}\n")
    row = {"place": "softmax", "target": "sm_80", "directory": "entry"}
    (tmp_path / "inspect-kernel.json").write_text(json.dumps({"entries": [row]}))
    (entry,) = open_cache(tmp_path).entries
    assert predicting.workload_of(entry) == "softmax"
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        predicting, "capture_program", lambda command, targets, _: ran.append((command[-1], *targets))
    )
    with pytest.raises(UsageError):
        predicting.try_workload(entry, {"num_warps": ("4", "8"), "MODE": ("fast",)}, tmp_path)
    ((program, target),) = ran
    assert target == str(entry.target)
    assert "[{'num_warps': 4, 'MODE': 'fast'}, {'num_warps': 8, 'MODE': 'fast'}]" in program


def test_a_file_of_python_is_told_to_be_compiled_first(tmp_path: Path) -> None:
    source = tmp_path / "kernel.py"
    source.write_text("import triton\n")
    with pytest.raises(CacheError) as found:
        open_or_advise(source)
    assert f"inspect-kernel compile {source}:KERNEL" in str(found.value.remedy)


@pytest.mark.parametrize(
    ("ctas", "waves", "told"),
    [
        (9, 1, "waves: 1, of 9 CTAs; 1280 fit side by side (as given)"),
        (1280, 2, "waves: 2 of 1280 CTAs side by side (as given)"),
    ],
)
def test_a_wave_has_no_more_ctas_than_the_launch(ctas: int, waves: int, told: str) -> None:
    wave = Wave(ctas, 32, None, 32, None)
    order = CtaOrder(1280, "as given", (wave,) * waves, waves, 32, 32, 32, None, (), (), ())
    assert next(iter(describe_order(order))) == told
