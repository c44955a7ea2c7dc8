"""What is said of several saved kernels together, of their registers and of their graphs, is what it was.

`views/<view>.json` has the expected value of each: matrices, causes, two directories held against each other, a record
of one held against another, how far a change reached. `--update-golden` writes them anew where the change is meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from goldens import hold, plain
from saved import facts, saved, saved_kernels

from artifact_inspector.analysis.resources.pressure import find_pressure, registers_to_free
from artifact_inspector.comparison.alignment import align
from artifact_inspector.comparison.baseline import compare_with_baseline, lines_of, record
from artifact_inspector.comparison.corpus import GATES, Corpus, compare_corpora
from artifact_inspector.comparison.matching import Axis, Candidate
from artifact_inspector.comparison.matrix import find_matrix
from artifact_inspector.comparison.reach import find_reach
from artifact_inspector.comparison.variant_causes import find_causes, find_reasons
from artifact_inspector.facts.graph import graph_of
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import Artifact
from artifact_inspector.formats import format_of
from artifact_inspector.model import Stage
from artifact_inspector.report.json import encode
from artifact_inspector.report.json.comparison import corpus_document, matrix_document
from artifact_inspector.vocabulary.variant_labels import Compiled

FOLDER = Path(__file__).parent / "views"
OF = {kernel.artifact.directory: kernel.path for kernel in saved_kernels()}


def inspect(artifact: Artifact) -> KernelFacts:
    """The facts of a saved kernel, found once for all tests; anew where some of its files are left out."""
    path = OF[artifact.directory]
    if artifact.files == saved(path).artifact.files:
        return facts(path)
    return inspect_artifact(artifact)


def of(directory: str) -> list[Artifact]:
    return [kernel.artifact for kernel in saved_kernels() if kernel.path.startswith(f"{directory}/")]


def told(corpus: Corpus) -> list[object]:
    """All of a comparison, also what no document holds."""
    document = encode(corpus_document(corpus, GATES))
    rest = [(change.severity, dict(change.lines), change.failures(GATES)) for change in corpus.changes]
    return [document, rest, corpus.failures(GATES), corpus.is_same]


def compared(left: str, right: str, *across: Axis) -> object:
    return told(compare_corpora(of(left), of(right), inspect, across=across))


def held(left: str, right: str, *across: Axis) -> object:
    recorded = [record(inspect(artifact), lambda file: file if "gemv" in file else None) for artifact in of(left)]
    return told(compare_with_baseline(recorded, of(right), inspect, across=across))


def lacking(left: str, right: str, ours: str, theirs: str) -> object:
    """Two kernels of which each side has some kinds of files alone, chosen by hand to be compared."""
    sides = [
        replace(artifact, files={suffix: artifact.files[suffix] for suffix in suffixes.split()})
        for artifact, suffixes in ((saved(left).artifact, ours), (saved(right).artifact, theirs))
    ]
    found = compare_corpora(sides[:1], sides[1:], inspect, is_one_pair=True, always=True)
    program = saved(left).facts.program
    return [
        told(found),
        [change.lacking for change in found.changes],
        find_reasons(*(Compiled(side, program) for side in sides)),
        find_reasons(*(Compiled(replace(sides[0], files=side.files), program) for side in sides)),
    ]


def matrix(kernel: str, *sort: str) -> object:
    found = find_matrix([one.facts for one in saved_kernels(kernel=kernel)], sort)
    return [encode(matrix_document(found)), found.options, [form.configuration for form in found.variants]]


def reasons(kernel: str) -> object:
    forms = [Compiled(one.artifact, one.facts.program) for one in saved_kernels(kernel=kernel)]
    pairs = [find_reasons(one, other) for one, other in pairwise(forms)]
    return [encode(find_causes(forms)), [encode(find_causes(forms[at : at + 4])) for at in range(len(forms))], pairs]


def reached(left: str, right: str) -> object:
    found = find_reach(saved(left).artifact, saved(right).artifact, inspect)
    return [found.files, found.launch, found.notes, found.reached, found.first_difference, found.same_from]


def facts_by_name(kernel: KernelFacts) -> dict[str, object]:
    """Each fact of a kernel and of its stages that is not empty."""
    found = {
        field.name: plain(getattr(kernel, field.name))
        for field in fields(kernel)
        if field.name not in ("artifact", "stages")
    }
    for stage, told in kernel.stages.items():
        found |= {f"{stage.value}.{field.name}": plain(getattr(told, field.name)) for field in fields(told)}
    return {name: value for name, value in found.items() if value not in (None, [], {}, "")}


def without_lines(path: str) -> object:
    """The facts of a kernel in whose stages nothing tells a line."""
    artifact = saved(path).artifact
    with TemporaryDirectory() as place:
        files = dict(artifact.files)
        for stage in saved(path).stages:
            file = Path(place, f"k.{stage.value}")
            file.write_text(LINES.sub("", saved(path).text(stage)), encoding="utf-8")
            files[stage.value] = file
        return facts_by_name(inspect_artifact(replace(artifact, files=files)))


LINES = re.compile(r" loc\((?:[^()]|\([^()]*\))*\)|^#loc.*$|, !dbg ![0-9]+|^\t\.loc\t.*$", re.M)
"""What tells a line in any of the languages."""


def only(path: str, *suffixes: str) -> object:
    """The facts of a kernel of which only some files are left."""
    artifact = saved(path).artifact
    files = {suffix: file for suffix, file in artifact.files.items() if suffix in suffixes}
    return facts_by_name(inspect_artifact(replace(artifact, files=files)))


def alive(path: str) -> object:
    kernel = saved(path)
    (function, *_) = kernel.module(Stage.AMDGCN).functions
    found = find_pressure(function, format_of(Stage.AMDGCN).bank_of)
    shed = [
        registers_to_free(lambda registers, most=most: most // max(registers, 1), 200) for most in range(256, 2048, 64)
    ]
    return [found, shed]


def aligned(left: str, right: str) -> object:
    """Every signature of a kernel over that of the same region of another."""
    found = []
    for stage, one in saved(left).facts.stages.items():
        other = saved(right).facts.stages.get(stage)
        for region in one.regions if other is not None else ():
            there = other.region(region.id)
            if there is not None:
                found.append([stage.value, region.id, align(region.signature, there.signature)])
    return found


def named(path: str) -> object:
    return [str(Candidate(saved(path).artifact)), lines_of(saved(path).facts), graph_of(saved(path).artifact)]


VIEWS: dict[str, Callable[[], object]] = {
    **{
        f"{view.__name__} {left} {right}": partial(view, left, right, *across)
        for view in (compared, held)
        for left, right, *across in (
            ("3.3.1/gfx942", "3.6.0/gfx942"),
            ("3.9.0/gfx942", "3.6.0/gfx942"),
            ("3.9.0/sm_80", "3.6.0/sm_80"),
            ("3.6.0/sm_90", "3.6.0/sm_90"),
            ("3.6.0/sm_75", "3.6.0/sm_80", Axis.TARGET),
            ("3.6.0/sm_90", "3.6.0/sm_100", Axis.TARGET, Axis.CONFIG),
            ("3.6.0/sm_89", "3.6.0/sm_89", Axis.SOURCE),
        )
    },
    **{
        " ".join(("matrix", kernel, *sort)): partial(matrix, kernel, *sort)
        for kernel, *sort in (
            ("gemv_splitk",), ("matmul_grouped", "-registers", "verdict"), ("softmax", "target", "-warps"),
        )
    },
    **{
        " ".join(("lacking", *rest)): partial(lacking, *rest)
        for rest in (
            ("3.6.0/sm_80/copy", "3.6.0/sm_80/masked_add", "json ttir", "json ptx"),
            ("3.6.0/sm_80/copy", "3.6.0/sm_80/masked_add", "json ttir ttgir", "json ttir ptx"),
            ("3.6.0/sm_80/copy", "3.6.0/sm_80/copy", "json ttir ptx", "ttir ptx"),
            ("3.6.0/sm_89/matmul_square", "3.6.0/sm_89/matmul_grouped", "json cubin", "json cubin"),
            ("3.6.0/gfx942/softmax", "3.6.0/sm_80/softmax", "json ttir amdgcn", "json ttir ptx"),
        )
    },
    **{f"reasons {kernel}": partial(reasons, kernel) for kernel in ("gemv_splitk", "matmul_grouped")},
    **{
        f"{view.__name__} {left} {right}": partial(view, left, right)
        for view in (reached, aligned)
        for left, right in (
            ("3.3.1/gfx942/gemv_splitk", "3.6.0/gfx942/gemv_splitk"),
            ("3.2.0/sm_75/gemv_splitk", "3.3.1/sm_75/gemv_splitk"),
            ("3.6.0/sm_89/fused_linear", "3.6.0/sm_89/fused_linear"),
            ("3.6.0/sm_90/matmul_grouped", "3.6.0/sm_100/matmul_grouped"),
        )
    },
    **{
        f"without lines {path}": partial(without_lines, path)
        for path in (
            "3.6.0/sm_80/matmul_grouped", "3.6.0/sm_90/flash_attention", "3.6.0/gfx942/unrolled_rounds",
            "3.6.0/sm_80/residual_after_loop", "3.6.0/gfx942/matmul_grouped", "3.6.0/sm_100/fused_linear",
            "3.2.0/gfx942/gemv_splitk", "3.6.0/sm_80/two_loops", "3.6.0/sm_90/tma_warp_specialized",
            "3.6.0/sm_80/shared_operands", "3.6.0/gfx942/manual_prefetch", "3.9.0/sm_80/bias_after_loop",
        )
    },
    **{
        " ".join(("only", *suffixes, path)): partial(only, path, "json", *suffixes)
        for path, *suffixes in (
            ("3.6.0/sm_80/matmul_grouped", "ptx"), ("3.6.0/sm_90/flash_attention", "ptx"),
            ("3.6.0/gfx942/unrolled_rounds", "amdgcn"), ("3.6.0/sm_80/manual_prefetch", "llir", "ptx"),
            ("3.6.0/gfx942/matmul_grouped", "llir"), ("3.6.0/sm_100/matmul_grouped", "ttgir", "ptx"),
            ("3.6.0/gfx942/residual_after_loop", "ttir", "amdgcn"), ("3.6.0/sm_80/early_return", "ttir", "llir"),
        )
    },
    **{
        f"alive {path}": partial(alive, path)
        for path in ("3.6.0/gfx942/flash_attention", "3.6.0/gfx1100/softmax", "3.6.0/gfx90a/matmul_grouped")
    },
    **{
        f"named {path}": partial(named, path)
        for path in (
            "3.6.0/sm_80/nested_loops", "3.6.0/sm_80/helper_twice", "3.6.0/gfx942/if_inside_loop",
            "3.6.0/sm_90/tma_warp_specialized", "3.6.0/gfx942/early_return",
        )
    },
}  # fmt: skip


def file_of(view: str) -> Path:
    return FOLDER / f"{view.replace('/', '-').replace(' ', '_')}.json"


@pytest.mark.parametrize(
    "view", [pytest.param(view, marks=pytest.mark.long if view.startswith("held ") else []) for view in VIEWS]
)
def test_a_view_of_saved_kernels_is_what_it_was(view: str, request: pytest.FixtureRequest) -> None:
    hold(file_of(view), VIEWS[view](), request)


def test_every_view_has_its_file() -> None:
    assert set(FOLDER.iterdir()) == set(map(file_of, VIEWS))
