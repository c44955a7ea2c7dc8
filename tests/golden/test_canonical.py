"""The canonical form of a text is what it was: that of small kernels as text, of all others which are equal."""

from __future__ import annotations

from pathlib import Path

import pytest
from goldens import hold
from saved import saved, saved_kernels

from artifact_inspector.formats.canonical import canonical_text
from artifact_inspector.model import Stage

FOLDER = Path(__file__).parent / "canonical"
SMALL = [("3.6.0/gfx942/copy", Stage.TTIR), ("3.6.0/gfx942/copy", Stage.TTGIR), ("3.6.0/gfx942/copy", Stage.LLIR),
         ("3.6.0/gfx942/copy", Stage.AMDGCN), ("3.6.0/gfx942/causal", Stage.TTIR), ("3.6.0/gfx942/causal", Stage.TTGIR),
         ("3.6.0/sm_90/softmax", Stage.LLIR), ("3.6.0/sm_90/softmax", Stage.PTX)]  # fmt: skip


@pytest.mark.parametrize(("path", "stage"), SMALL, ids=lambda value: getattr(value, "value", value))
def test_a_canonical_text_is_what_it_was(path: str, stage: Stage, request: pytest.FixtureRequest) -> None:
    file = FOLDER / f"{path.replace('/', '.')}.{stage.value}.txt"
    text = canonical_text(saved(path).text(stage), stage) + "\n"
    if request.config.getoption("--update-golden", default=False):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text.splitlines() == file.read_text(encoding="utf-8").splitlines()


@pytest.mark.long
def test_the_same_texts_are_equal(request: pytest.FixtureRequest) -> None:
    """Stage → groups of saved kernels with one canonical text; the others have one of their own."""
    found: dict[str, dict[str, list[str]]] = {}
    for kernel in saved_kernels():
        for stage in kernel.stages:
            if stage is not Stage.SASS:
                text = canonical_text(kernel.text(stage), stage)
                found.setdefault(stage.value, {}).setdefault(text, []).append(kernel.path)
    equal = {stage: [paths for paths in groups.values() if len(paths) > 1] for stage, groups in found.items()}
    assert set(equal) == {stage.value for stage in Stage} - {"sass"}
    hold(FOLDER / "equal.json", equal, request)
