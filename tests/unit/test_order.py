"""Every row of the verdicts' table, on kernels small enough to judge by eye.

A step is `L<name>` (load), `C<names>` (multiply what was loaded and reduce it: one round) or other
text, taken as it is. Its line in the kernel is its place among the steps of the first stage.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from artifact_inspector.analysis.order.region_facts import RegionFacts, signature_of
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import open_cache
from artifact_inspector.formats.mlir.parser import FORMAT
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText

T, P = "tensor<64xf32>", "tensor<64x!tt.ptr<f32>>"
HEAD = f"  tt.func public @k(%p: {P}, %q: {P}, %r: !tt.ptr<f32>, %n: i32) {{\n"
STORE = f"    tt.store %p, %out : {P}\n"


def step(word: str, line: int) -> str:
    place = f' loc("k.py":{line}:1)'
    if word[0] == "L" and word[1:].isalnum():
        return f"    %{word[1:]} = tt.load %p : {P}{place}\n"
    if word[0] == "C" and word[1:].isalnum():
        names = word[1:]
        first, *rest = names
        text, value = "", f"%{first}"
        for name in rest or [first]:
            text += f"    %m{names}{name} = arith.mulf {value}, %{name} : {T}{place}\n"
            value = f"%m{names}{name}"
        return text + (
            f'    %s{names} = "tt.reduce"({value}) <{{axis = 0 : i32}}> ({{\n    ^bb0(%x: f32, %y: f32):\n'
            f"      %e = arith.addf %x, %y : f32\n      tt.reduce.return %e : f32\n"
            f"    }}) : ({T}) -> f32{place}\n    tt.store %r, %s{names} : !tt.ptr<f32>\n"
        )
    return f"    {word}{place}\n" if not word.endswith("{") else f"    {word}\n"


def module(*steps: str, lines: dict[str, int] | None = None) -> str:
    body = "".join(step(word, (lines or {}).get(word, number)) for number, word in enumerate(steps, 10))
    return f'module {{\n{HEAD}{body}    tt.return loc("k.py":99:1)\n  }} loc("k.py":1:0)\n}}\n'


def inspect(directory: Path, *stages: str) -> KernelFacts:
    for stage, text in zip(("ttir", "ttgir"), stages, strict=False):
        (directory / f"k.{stage}").write_text(text)
    (kernel,) = inspect_cache(open_cache(directory))
    assert kernel.problems == ()
    return kernel


def straight(directory: Path, *steps: str) -> RegionFacts:
    found = inspect(directory, module(*steps)).stages[Stage.TTIR].region("straight")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("steps", "phrase"),
    [
        ("La Lb Cab Lc Ld Ccd", "interleaved"),
        ("La Lb Lc Ld Cab Ccd", "clustered"),
        ("La Lb Lc Cab Ld Ccd", "mixed (f=0.5 g=0.5)"),
        ("La Lb Lc Ld Cab Ccd Le Lf Cef", "grouped {1 2}{3}"),
        ("La Ca Lb Lc Cb Cc", "grouped {1}{2 3}"),
        ("La Ca Lb Cb Lc Cc", "interleaved"),
        ("La Lb Lc Ca Cb Cc", "clustered"),
        ("La Lb Ca Lc Cb Cc", "staggered(1)"),
        ("La Lb Lc Ca Ld Cb Cc Cd", "staggered(2)"),
        ("La Lb Cab", "single"),
        ("La", "no-compute"),
    ],
)
def test_rounds_in_straight_line_code(steps: str, phrase: str, tmp_path: Path) -> None:
    assert straight(tmp_path, *steps.split()).phrase == phrase


@pytest.mark.parametrize(
    ("steps", "pairs"),
    [
        ("La Lb Cab Lc Ld Ccd", [(0.0, 1.0)]),
        ("La Lb Lc Ld Cab Ccd", [(1.0, 0.0)]),
        ("La Lb Lc Cab Ld Ccd", [(0.5, 0.5)]),
        ("La Ca Lb Lc Cb Cc", [(0.0, 1.0), (1.0, 0.0)]),
    ],
)
def test_f_and_g_are_the_shares_in_front_and_behind(
    steps: str, pairs: list[tuple[float, float]], tmp_path: Path
) -> None:
    assert [(pair.issued_before, pair.issued_after) for pair in straight(tmp_path, *steps.split()).pairs] == pairs


def test_nothing_loaded_is_no_loads(tmp_path: Path) -> None:
    assert straight(tmp_path, "tt.store %r, %n : !tt.ptr<f32>").verdict == "no-loads"


def test_a_statement_of_later_rounds_too_is_shared_and_stays_in_the_first(tmp_path: Path) -> None:
    found = straight(tmp_path, *["Lz", "La", "Cza", "Lb", "Czb"])
    assert [item.names for item in found.rounds] == [("z", "a"), ("b",)]
    assert found.rounds[0].shared == ("z (k.py:10)",)
    assert found.verdict == "interleaved"


def loop(*inside: str) -> list[str]:
    return [
        f"%f = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %p) -> ({P})  : i32 {{",
        *inside,
        f"scf.yield %acc : {P}",
        "}",
    ]


@pytest.mark.parametrize(
    ("inside", "phrase"),
    [
        ("La Lb Cab", "serial"),
        ("La Lb Cab Lc Ld Ccd", "interleaved"),
        ("La Lb Lc Ld Cab Ccd", "clustered"),
        ("La", "no-compute"),
    ],
)
def test_rounds_of_one_iteration_are_judged_like_straight_line_code(inside: str, phrase: str, tmp_path: Path) -> None:
    kernel = inspect(tmp_path, module(*loop(*inside.split())))
    (found,) = [region for region in kernel.stages[Stage.TTIR].regions if region.kind == "loop"]
    assert found.phrase == phrase


def prefetched(*names: str) -> list[str]:
    """A loop over a and b that loads some of them for the next iteration."""
    carried = ", ".join(f"%{name} = %{name}0" for name in names)
    handed = ", ".join(f"%{name}1" for name in names)
    types = ", ".join(T for _ in names)
    return [
        *(f"%{name}0 = tt.load %p : {P}" for name in names),
        f"%f = scf.for %i = %c0 to %n step %c1 iter_args({carried}) -> ({types})  : i32 {{",
        *(f"%{name}1 = tt.load %q : {P}" for name in names),
        *(f"%{name} = tt.load %q : {P}" for name in "ab" if name not in names),
        "Cab",
        f"scf.yield {handed} : {types}",
        "}",
    ]


def test_loads_for_the_next_iteration_are_one_ahead(tmp_path: Path) -> None:
    kernel = inspect(tmp_path, module(*prefetched("a", "b")))
    found = kernel.principal_region
    assert found is not None
    assert (found.phrase, found.copy_position) == ("pipelined(1)", "before")
    assert found.rounds[0].distances == (1, 1)


def test_a_load_that_serves_its_own_iteration_is_named(tmp_path: Path) -> None:
    found = inspect(tmp_path, module(*prefetched("a"))).principal_region
    assert found is not None
    assert found.phrase == "partly pipelined(1)"
    assert found.notes == ("loaded in the iteration that uses it: b (k.py:13)",)


def test_copies_in_front_of_a_loop_that_it_consumes_are_its_distance(tmp_path: Path) -> None:
    body = loop("La", "Ca")
    lines = {word: number for number, word in enumerate(body, 10)}
    ahead = [f"%a{n} = tt.load %p : {P}" for n in (1, 2, 3)]
    kernel = inspect(tmp_path, module(*body), module(*ahead, *body, lines=lines | dict.fromkeys(ahead, lines["La"])))
    found = kernel.stages[Stage.TTGIR].region(kernel.principal or "")
    assert found is not None
    assert found.phrase == "pipelined(3)"


def test_a_load_hoisted_out_of_its_loop_leaves_its_rounds(tmp_path: Path) -> None:
    body = loop("La", "Lb", "Cab")
    lines = {word: number for number, word in enumerate(body, 10)}
    hoisted = [word for word in body if word != "Lb"]
    kernel = inspect(tmp_path, module(*body), module("Lb", *hoisted, lines=lines))
    found = kernel.stages[Stage.TTGIR].region(kernel.principal or "")
    assert found is not None
    assert found.verdict == "serial"
    assert found.notes == ("the load of b (k.py:12) was hoisted out of the loop",)


def test_a_change_of_order_is_told_where_it_happens_and_by_whom(tmp_path: Path) -> None:
    steps = ["La", "Lb", "Cab", "Lc", "Ld", "Ccd"]
    lines = {word: number for number, word in enumerate(steps, 10)}
    kernel = inspect(tmp_path, module(*steps), module(*["La", "Lb", "Lc", "Ld", "Cab", "Ccd"], lines=lines))
    assert [stage.regions[0].verdict for stage in kernel.stages.values()] == ["interleaved", "clustered"]
    assert kernel.changed_at is Stage.TTGIR
    assert kernel.changed == {"straight": Stage.TTGIR}
    assert kernel.verdict == "clustered"


def test_pipelining_is_no_change_of_order(tmp_path: Path) -> None:
    body = loop("La", "Ca", "Lb", "Cb")
    lines = {word: number for number, word in enumerate(body, 10)}
    ahead = [f"%a1 = tt.load %p : {P}", f"%b1 = tt.load %p : {P}"]
    places = lines | {ahead[0]: lines["La"], ahead[1]: lines["Lb"]}
    kernel = inspect(tmp_path, module(*body), module(*ahead, *body, lines=places))
    assert [stage.region(kernel.principal or "").phrase for stage in kernel.stages.values()] == [  # type: ignore[union-attr]
        "interleaved",
        "pipelined(1)",
    ]
    assert kernel.changed_at is None


def test_a_region_without_a_loop_left_is_unrolled(tmp_path: Path) -> None:
    body = loop("La", "Lb", "Cab")
    lines = {word: number for number, word in enumerate(body, 10)}
    kernel = inspect(tmp_path, module(*body), module("La", "Lb", "Cab", lines=lines))
    found = kernel.stages[Stage.TTGIR].region(kernel.principal or "")
    assert found is not None
    assert found.verdict == "unrolled"


def test_a_loop_with_matrix_operations_and_loads_is_what_a_kernel_is_known_by(tmp_path: Path) -> None:
    matmul = [
        f"%f = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %p) -> ({P})  : i32 {{",
        "La",
        f"%d = tt.dot %a, %a, %acc : {T} * {T} -> {T}",
        f"scf.yield %d : {P}",
        "}",
    ]
    steps = [*["Lu", "Cu", "Lv", "Cv", "Lw", "Cw"], *matmul]
    kernel = inspect(tmp_path, module(*steps))
    assert kernel.principal_region is not None
    assert (kernel.principal_region.kind, kernel.principal_region.matrix) == ("loop", 1)


def test_a_signature_is_the_run_length_string_of_the_events() -> None:
    text = module(*["La", "Lb", "Cab", "Lc", "Cc"])
    (function,) = FORMAT.parse(SourceText("k.ttir", text), Stage.TTIR).functions
    assert signature_of(list(function.instructions)) == "L2 F2 S1 L1 F2 S1"
    assert signature_of([]) == ""
