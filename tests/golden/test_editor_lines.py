"""What an editor shows of saved kernels is what it was: lens, diagnostics, hints, actions, and the hover of each line.

`editor/<kernel>.json` has each, for all targets of a release together; `--update-golden` writes them anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from goldens import hold
from saved import FIXTURES

pytest.importorskip("pygls")

from lsprotocol import types

from artifact_inspector.serving.kernel_variants import KernelVariants
from artifact_inspector.serving.lsp import _make_actions, _make_diagnostics, _make_hints, _make_hover, _OpenFile

FOLDER = Path(__file__).parent / "editor"
KERNELS = ("masked_add", "bias_after_loop", "nested_loops", "unaligned_columns", "manual_prefetch")
TARGETS = ("sm_80", "sm_90", "gfx942")


@pytest.mark.parametrize("name", KERNELS)
def test_an_editor_shows_what_it_did(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    source = FIXTURES / "sources" / f"{name}.py"
    text = source.read_text(encoding="utf-8")
    document = _OpenFile(source)
    document.set_text(text)
    caches = [cache for target in TARGETS if (cache := FIXTURES / "3.6.0" / target / name).is_dir()]
    variants = KernelVariants(caches, out_directory=tmp_path)
    for kernel in document.kernels:
        document.variants[kernel.name] = variants.newest_variants(source, kernel, is_saved=False)
        document.digests[kernel.name] = kernel.digest
    lines = range(1, len(text.splitlines()) + 1)
    whole = types.Range(types.Position(0, 0), types.Position(lines.stop, 0))
    hovers = {str(line): _make_hover(document, line) for line in lines}
    told = {
        "lenses": [variant.lens for _, variant in document.current_variants()],
        "diagnostics": [
            f"{one.range.start.line + 1} {one.severity.name if one.severity else ''} {one.code} {one.message}"
            for one in _make_diagnostics(document, tmp_path)
        ],
        "hints": [f"{one.position.line + 1} {one.label}" for one in _make_hints(document, whole)],
        "hints of line 1": [
            one.position.line for one in _make_hints(document, types.Range(types.Position(0, 0), types.Position(1, 0)))
        ],
        "hovers": {line: hover.contents.value.splitlines() for line, hover in hovers.items() if hover is not None},  # type: ignore[union-attr]
    }
    assert document.kernels
    hold(FOLDER / f"{name}.json", told, request)


def test_actions_are_offered_inside_of_a_kernel_alone(tmp_path: Path) -> None:
    source = FIXTURES / "sources" / "masked_add.py"
    document = _OpenFile(source)
    document.set_text(source.read_text(encoding="utf-8"))
    (kernel,) = document.kernels
    variants = KernelVariants([FIXTURES / "3.6.0" / "sm_80" / "masked_add"], out_directory=tmp_path)
    document.variants[kernel.name] = variants.newest_variants(source, kernel, is_saved=False)

    def titles(line: int, *, compiles: bool) -> list[str]:
        at = types.Position(line - 1, 0)
        document_id = types.TextDocumentIdentifier(source.as_uri())
        params = types.CodeActionParams(document_id, types.Range(at, at), types.CodeActionContext([]))
        return [command.title for command in _make_actions(document, params, compiles=compiles)]

    assert titles(kernel.first_line - 1, compiles=True) == titles(kernel.last_line + 1, compiles=True) == []
    assert titles(kernel.first_line, compiles=True) == titles(kernel.last_line, compiles=True)
    assert titles(kernel.first_line, compiles=False) == ["Name what takes the time of masked_add on sm_80"]


def test_every_kernel_has_its_file() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == set(KERNELS)
