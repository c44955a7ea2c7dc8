"""What is advised holds in an independent check: the change is compiled and predicted again, outside of the search."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from types import SimpleNamespace

import pairs
import pytest
from saved import saved

from artifact_inspector.api import option_compiles, remedy_search
from artifact_inspector.api.advice import assume_launches, diagnose_launches
from artifact_inspector.api.mask_remedy import MISSING_MASK
from artifact_inspector.api.remedy_search import search_remedies
from artifact_inspector.api.remedy_trial import LEAST_GAIN
from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.comparison.headline import Headline
from artifact_inspector.compiling.ask.compile import compile_kernels
from artifact_inspector.compiling.ask.request import ConstantText, KernelRequest
from artifact_inspector.compiling.reference import REFERENCE_KERNELS
from artifact_inspector.diagnosis.cause import Cause, CauseKind, Diagnosis
from artifact_inspector.diagnosis.changes import OPTIONS, changed_grid
from artifact_inspector.diagnosis.diagnose import predict_microseconds
from artifact_inspector.diagnosis.tile_axes import find_tile_axes
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.variations import recorded_compile
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.vocabulary.fact import Sign

SETTINGS = re.compile(r"(\w+=\S+ ?)+")


def _value(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def _check_remedies(entry: Artifact, request: LaunchRequest, kernel: str | None, directory: Path) -> int:
    """The number of remedies, each of which was compiled and predicted again."""
    disassemble = make_disassembler([entry], None, sass=True)
    (diagnosis,) = diagnose_launches([(entry, request)], disassemble)
    search = search_remedies(
        (entry, request), diagnosis, lambda entries: make_disassembler(entries, None, sass=True), directory / "tried",
        budget=30.0, kernel=kernel,
    )  # fmt: skip
    assert "No change was tried" not in search.reason
    record = recorded_compile(entry)
    for number, remedy in enumerate(search.remedies):
        assert remedy.verified
        if remedy.cause == MISSING_MASK:
            continue  # test_mask_remedy.py
        assert remedy.gain >= LEAST_GAIN
        assert remedy.cause in {cause.kind.value for cause in diagnosis.causes}
        settings = remedy.change.rpartition(", ")[2]
        words = settings.split() if SETTINGS.fullmatch(settings) else []
        change = {name: _value(text) for name, _, text in (word.partition("=") for word in words)}
        path = record.resolve_kernel_path(entry.display_name, kernel)
        if remedy.patch is not None:
            edited = directory / f"edited{number}.py"
            edited.write_text(search.edited_files[remedy.patch])
            path = f"{edited}:{path.rpartition(':')[2]}"
        constants = {name: ConstantText(repr(value)) for name, value in change.items() if name not in OPTIONS}
        options = {name: value for name, value in change.items() if name in OPTIONS}
        again = KernelRequest(
            path, record.types, {**record.constants, **constants}, {**record.options, **options}, is_untrusted=True
        )
        compile_kernels([again], [record.target], directory / f"again{number}")
        (changed,) = open_cache(directory / f"again{number}").entries
        source, _, name = path.rpartition(":")
        axes = find_tile_axes(Path(source).read_text(encoding="utf-8"), name) if source.endswith(".py") else {}
        grid = changed_grid(request, entry.constants, change, axes)
        assert grid is not None
        candidate = RankingCandidate(changed, LaunchRequest(grid, request.arguments), changed.constants)
        after = predict_microseconds(candidate, make_disassembler([changed], None, sass=True))
        assert after is not None
        assert diagnosis.microseconds / after == pytest.approx(remedy.gain, rel=0.02)
    return len(search.remedies)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.exhaustive) for name in pairs.PAIRS])
def test_no_remedy_of_a_planted_problem_is_refuted(name: str, tmp_path: Path) -> None:
    variant = pairs.PAIRS[name][1]
    (plant,) = pairs.compile_variants([variant], "sm_90", tmp_path / "compiled")
    count = _check_remedies(plant.artifact, plant.request, f"{pairs.FILE}:{variant.kernel}", tmp_path)
    assert count or name != "threads"


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", REFERENCE_KERNELS)
def test_no_remedy_of_a_reference_kernel_is_refuted(name: str, tmp_path: Path) -> None:
    compile_kernels([KernelRequest(name)], ["sm_90"], tmp_path / "compiled")
    (pair,) = assume_launches(open_cache(tmp_path / "compiled"), None, [])
    _check_remedies(*pair, None, tmp_path)


def test_tiles_of_saved_kernels_are_not_tried_and_the_reason_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The caches of the fixtures have no record of their compile; options are compiled from TTIR."""
    changes: list[dict[str, int]] = []
    monkeypatch.setattr(
        remedy_search, "recompile_options", lambda entry, some, directory: [changes.append(one) for one in some]
    )
    fixtures = open_cache(Path(__file__).parents[2] / "fixtures" / "3.9.0")
    (pair,) = assume_launches(fixtures, "gemv_splitk", [parse_target("gfx942")])
    (diagnosis,) = diagnose_launches([pair], None)
    search = search_remedies(pair, diagnosis, lambda entries: None, tmp_path / "tried")
    assert search.edited_files == {}
    assert changes
    assert OPTIONS.issuperset(name for change in changes for name in change)
    assert "Only options can be tried. It is not recorded how gemv_splitk was compiled" in search.reason


def test_options_are_named_by_facts_where_no_time_is_predicted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of a kernel whose spills disappear with more warps; the compiler is replaced by saved kernels."""
    spilling = better = saved("3.9.0/gfx942/matmul_grouped").artifact
    options: list[dict[str, int]] = []

    def compiled(entry: Artifact, changes: list[dict[str, int]], directory: Path) -> list[Artifact | None]:
        options.extend(changes)
        return [spilling, None, *[better] * (len(changes) - 2)]

    fact = SimpleNamespace(direction=Sign.BETTER)
    facts = SimpleNamespace(headline=Headline(fact, "spills 118 → 0", None, "", ""))  # type: ignore[arg-type]
    monkeypatch.setattr(option_compiles, "recompile_options", compiled)
    monkeypatch.setattr(option_compiles, "compare_candidates", lambda *_: facts)
    sentences = [*option_compiles.find_better_options(spilling, [CauseKind.SPILLS], tmp_path)]
    assert options[0] == {}
    assert len(sentences) == 3
    assert all(sentence.endswith("(compiled, no time predicted): spills 118 → 0.") for sentence in sentences)
    assert not any(f"{name}={value} " in sentence for sentence in sentences for name, value in options[1].items())
    monkeypatch.setattr(remedy_search, "find_better_options", lambda *_: iter(["Try num_warps=8."]))
    monkeypatch.setattr(remedy_search, "can_recompile", lambda entry: True)
    cause = Cause(CauseKind.SPILLS, "k.py:3", None, "")
    diagnosis = Diagnosis("k", "ab", "gfx90c", None, (1, 1, 1), None, None, (cause,), "")
    search = search_remedies((spilling, LaunchRequest((1, 1, 1), {})), diagnosis, lambda entries: None, tmp_path)
    assert search.reason == (
        "Try num_warps=8. Times are not predicted for this kernel, so changes are not ranked by time."
    )


LAB = Path(__file__).parents[2] / "docs" / "lab"


def _count_gains(name: str) -> list[int]:
    """Number, right signs and sizes within 1.5 times: of remedies, then of planted and repaired kernels."""
    gains: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    with (LAB / name).open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            predicted, measured = (
                float(row[f"before_{kind}"]) / float(row[f"after_{kind}"]) for kind in ("predicted", "measured")
            )
            gains[row["set"] == "remedy"].append((predicted, measured))
    counts = []
    for measurements in gains.values():
        signs = sum((p > 1) == (m > 1) or max(abs(p - 1), abs(m - 1)) < 0.02 for p, m in measurements)
        counts += [len(measurements), signs, sum(max(p / m, m / p) <= 1.5 for p, m in measurements)]
    return counts


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("fifth", "The fifth set"),
        ("ninth", "The ninth set"),
        ("tenth", "The tenth set"),
        ("eleventh", "The eleventh set"),
    ],
)
def test_the_page_counts_the_gains_of_a_set(name: str, heading: str) -> None:
    counts = _count_gains(f"advise-h200-{name}.csv")
    page = (LAB / "diagnosis.md").read_text(encoding="utf-8").partition(f"### {heading}\n")[2].partition("\n### ")[0]
    rows = {
        "remedies": counts[:3],
        "pairs": counts[3:],
        "together": [a + b for a, b in zip(counts[:3], counts[3:], strict=True)],
    }
    for row, (number, signs, sizes) in rows.items():
        assert f"| {row} | {number} | {signs} | {sizes} |" in page


def test_the_page_counts_the_gains_that_were_measured() -> None:
    """Of remedies, and of planted and repaired kernels: on an H200, after their predictions were committed."""
    page, counts = (
        (LAB / "diagnosis.md").read_text(encoding="utf-8").replace("\n", " "),
        _count_gains("advise-h200.csv"),
    )
    for number, signs, sizes in (counts[:3], counts[3:]):
        assert signs >= 0.9 * number
        assert sizes >= 0.7 * number
    assert counts[0] == counts[1] == counts[2]
    assert f"All {counts[1]} printed remedies are faster, and all {counts[2]} gains are within 1.5 times" in page
    assert f"{counts[3]} pairs of the three sets. The sign of the ratio is right for {counts[4]} " in page
    assert f"its size within 1.5 times for {counts[5]}." in page
