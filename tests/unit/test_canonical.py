"""Canonical forms of real texts: equal for another spelling of one program, different for another program."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from functools import partial

import pytest
from saved import saved, saved_kernels

from artifact_inspector.formats.canonical import canonical_text
from artifact_inspector.model import Stage

TEXTS = [
    ("3.2.0/gfx942/gemv_splitk", Stage.TTIR),
    ("3.6.0/sm_80/flash_attention", Stage.TTGIR),
    ("3.9.0/sm_100/matmul_grouped", Stage.TTGIR),
    ("2.1.0/sm_80/matmul_grouped", Stage.TTGIR),
    ("3.6.0/sm_80/matmul_grouped", Stage.LLIR),
    ("3.2.0/gfx90a/gemv_splitk", Stage.LLIR),
    ("3.6.0/sm_90/tma_warp_specialized", Stage.PTX),
    ("2.1.0/sm_80/matmul_grouped", Stage.PTX),
    ("3.6.0/gfx942/matmul_grouped", Stage.AMDGCN),
    ("3.6.0/gfx1100/matmul_grouped", Stage.AMDGCN),
    ("3.6.0/sm_75/softmax", Stage.SASS),
]
SAVED = {found.path: found for found in saved_kernels()}
TEXTS = [(path, stage) for path, stage in TEXTS if path in SAVED and stage in SAVED[path].stages]


def alike(one: str, other: str, stage: Stage) -> bool:
    return canonical_text(one, stage) == canonical_text(other, stage)


def renamed(text: str, name: str, to: Callable[[int], str]) -> str:
    """Every name that a pattern finds by another one, one to one."""
    known: dict[str, str] = {}
    return re.sub(name, lambda found: known.setdefault(found[0], to(len(known))), text)


# -- what does not matter --------------------------------------------------------------


def values(text: str) -> str:
    # the number of results behind a name (`%0:2`) and that of one of them (`%0#1`) are no names
    return renamed(text, r"%[A-Za-z_][\w$.-]*|%\d+", lambda n: f"%v{n * 7 % 9973}_{n}")


def blocks(text: str) -> str:
    return renamed(text, r"\^bb\d+", lambda n: f"^bb{n + 40}")


def aliases(text: str) -> str:
    names = re.findall(r"^(#\w+) = #", text, re.M)
    known = {name: f"#another{n}" for n, name in enumerate(reversed(names))}
    return re.sub(r"#\w+(?![\w.])", lambda found: known.get(found[0], found[0]), text)


def locals_of_llvm(text: str) -> str:
    known: dict[str, str] = {}

    def new(name: str) -> str:
        return known.setdefault(name, f"x{len(known) * 3 + 1}")

    text = re.sub(r"^([\w$.-]+):", lambda found: f"{new(found[1])}:", text, flags=re.M)
    return re.sub(r"%([\w$.-]+)", lambda found: f"%{new(found[1])}", text)


def metadata_numbers(text: str) -> str:
    return re.sub(r"!(\d+)\b", lambda found: f"!{int(found[1]) + 100}", text)


def virtual_registers(text: str) -> str:
    numbers = {n: n * 31 % 99991 for n in range(99991)}
    return re.sub(r"%(r[ds]?|f[d]?|p)(\d+)\b", lambda found: f"%{found[1]}{numbers[int(found[2])]}", text)


def labels_of_ptx(text: str) -> str:
    return renamed(text, r"\$L__BB\w+", lambda n: f"$L__BB9_{n}")


def physical_registers(text: str) -> str:
    """All registers behind some that a kernel may start with moved up by 8, ranges as a whole."""
    ranges = [(kind, int(low), int(high)) for kind, low, high in re.findall(r"\b([vsa])\[(\d+):(\d+)\]", text)]
    base = {
        kind: next(n for n in range(first, 999) if not any(k == kind and low < n <= high for k, low, high in ranges))
        for kind, first in (("s", 40), ("v", 8), ("a", 0))
    }

    def moved(kind: str, number: str) -> int:
        return int(number) + 8 * (int(number) >= base[kind])

    text = re.sub(r"\b([vsa])(\d+)\b", lambda x: f"{x[1]}{moved(x[1], x[2])}", text)
    return re.sub(r"\b([vsa])\[(\d+):(\d+)\]", lambda x: f"{x[1]}[{moved(x[1], x[2])}:{moved(x[1], x[3])}]", text)


def labels_of_amdgcn(text: str) -> str:
    return renamed(text, r"\.LBB\w+", lambda n: f".LBB7_{n}")


def labels_of_sass(text: str) -> str:
    return renamed(text, r"\.L_x_\d+", lambda n: f".L_x_{n + 90}")


def lines_shifted(text: str) -> str:
    text = re.sub(r'(loc\("[^"]*":)(\d+):', lambda x: f"{x[1]}{int(x[2]) + 3}:", text)
    text = re.sub(r"(\bline: )(\d+)", lambda x: f"{x[1]}{int(x[2]) + 3}", text)
    text = re.sub(r"^(\s+\.loc\s+\d+ )(\d+)", lambda x: f"{x[1]}{int(x[2]) + 3}", text, flags=re.M)
    return re.sub(r'(", line )(\d+)', lambda x: f"{x[1]}{int(x[2]) + 3}", text)


def constants_reversed(text: str) -> str:
    """Each run of constants upside down."""
    lines: list[str] = []
    run: list[str] = []
    for line in [*text.splitlines(), ""]:
        if " = arith.constant " in line or re.match(r"\s*%\w+ = constant ", line):
            run.append(line)
            continue
        lines += [*reversed(run), line]
        run = []
    return "\n".join(lines)


def comments_added(text: str) -> str:
    return text.replace("\n", "  // said\n")


RESPELLED: dict[Stage, list[Callable[[str], str]]] = {
    Stage.TTIR: [values, blocks, lines_shifted, constants_reversed],
    Stage.TTGIR: [values, blocks, aliases, lines_shifted, constants_reversed],
    Stage.LLIR: [locals_of_llvm, metadata_numbers, lines_shifted],
    Stage.PTX: [virtual_registers, labels_of_ptx, lines_shifted, comments_added],
    Stage.AMDGCN: [physical_registers, labels_of_amdgcn, lines_shifted],
    Stage.SASS: [labels_of_sass, lines_shifted],
}


@pytest.mark.parametrize(("path", "stage"), TEXTS)
def test_another_spelling_of_a_text_has_the_same_form(path: str, stage: Stage) -> None:
    text = saved(path).text(stage)
    for respell in RESPELLED[stage]:
        other = respell(text)
        assert alike(text, other, stage), respell.__name__
        # a file that has nothing to respell is no proof; what Triton 2 wrote has no places
        assert other != text or respell is blocks or path.startswith("2")


@pytest.mark.parametrize("stage", Stage)
def test_there_is_a_text_of_every_stage(stage: Stage) -> None:
    assert stage in {found for _, found in TEXTS}


# -- what does -------------------------------------------------------------------------

_TOKEN = re.compile(r"[%#!@$.]?[\w.$]+|[^\w\s]")
# what a tool that knows nothing of canonical forms would call a name, a place or a comment
_NO_PROGRAM: dict[Stage, re.Pattern[str]] = {
    Stage.TTIR: re.compile(r"^#loc|loc\(|^//"),
    Stage.TTGIR: re.compile(r"^#loc|loc\(|^//"),
    Stage.LLIR: re.compile(r"^;|; preds|!dbg|!DI|^source_filename|^attributes|^!\d+ =|^!llvm.dbg|#dbg_"),
    Stage.PTX: re.compile(r"//|^\.(?:loc|file|reg)\b|^\$L__tmp|^\$L__func"),
    Stage.AMDGCN: re.compile(r";|^\.(?:loc|file|cfi_\w+)\b|^\.L(?:tmp|func)"),
    Stage.SASS: re.compile(r"^//"),
}


def code_lines(text: str, stage: Stage) -> list[int]:
    """Lines of the program proper: in front of debug sections, with nothing of a place in them."""
    lines = text.splitlines()
    end = next((n for n, line in enumerate(lines) if re.match(r"\s*\.section\s+\"?\.debug", line)), len(lines))
    return [n for n, line in enumerate(lines[:end]) if line.strip() and not _NO_PROGRAM[stage].search(line.strip())]


def mutated(token: str, rng: random.Random) -> str:
    if any(character.isdigit() for character in token):
        return re.sub(r"\d+", lambda found: str(int(found[0]) + rng.choice((1, 2, 7, 100))), token, count=1)
    return f"{token}x" if token[-1].isalpha() else rng.choice([c for c in "+-*<>,&" if c != token])


def stripped_of_locations(text: str, stage: Stage) -> str:
    if stage in (Stage.TTIR, Stage.TTGIR):
        text = re.sub(r"^#loc.*\n", "", text, flags=re.M)
        return re.sub(r" loc\((?:[^()\"]|\"[^\"]*\"|\((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*\))*\)", "", text)
    return re.sub(r", !dbg !\d+", "", text) if stage is Stage.LLIR else text


def once(name: str, text: str) -> bool:
    """True for a name that stands nowhere else: giving it another one is a renaming."""
    return len(re.findall(rf"{re.escape(name)}(?![\w$.-])", text)) < 2


@pytest.mark.parametrize(("path", "stage"), TEXTS)
def test_a_text_with_one_token_changed_has_another_form(path: str, stage: Stage) -> None:
    rng = random.Random(f"{path} {stage}")
    text = stripped_of_locations(saved(path).text(stage), stage)
    form, lines = canonical_text(text, stage), text.splitlines()
    spots = code_lines(text, stage)
    for number in rng.sample(spots, min(30, len(spots))):
        token = rng.choice(list(_TOKEN.finditer(lines[number])))
        line = lines[number]
        if stage is Stage.SASS and line.strip().startswith("/*") and token.start() < line.index("*/"):
            continue  # an address
        if once(token[0].lstrip("%#!@$."), text) or _is_dead(line, text):
            continue  # a renaming, or the death of a value that is not used again
        changed = [*lines]
        changed[number] = line[: token.start()] + mutated(token[0], rng) + line[token.end() :]
        assert canonical_text("\n".join(changed), stage) != form, f"{number + 1}: {line} → {changed[number]}"


def _is_dead(line: str, text: str) -> bool:
    """Whether a line gives a constant that nothing uses."""
    constant = re.match(r"\s*(%[\w$.-]+) = (?:arith\.)?constant ", line)
    return constant is not None and once(constant[1], text)


@pytest.mark.parametrize(("path", "stage"), TEXTS)
def test_a_text_without_one_instruction_has_another_form(path: str, stage: Stage) -> None:
    rng = random.Random(f"{path} {stage}")
    text = saved(path).text(stage)
    form, lines = canonical_text(text, stage), text.splitlines()
    spots = [n for n in code_lines(text, stage) if not re.search(r"arith\.constant|^\s*constant", lines[n])]
    for number in rng.sample(spots, min(15, len(spots))):
        rest = "\n".join([*lines[:number], *lines[number + 1 :]])
        assert canonical_text(rest, stage) != form, f"{number + 1}: {lines[number]}"


@pytest.mark.parametrize(("path", "stage"), TEXTS)
def test_two_instructions_the_other_way_round_make_another_form(path: str, stage: Stage) -> None:
    rng = random.Random(f"{path} {stage}")
    text = saved(path).text(stage)
    form, lines = canonical_text(text, stage), text.splitlines()
    spots = set(code_lines(text, stage))
    pairs = [n for n in spots if n + 1 in spots and not {"constant", "declare"} & set(_words(lines, n))]
    for number in rng.sample(sorted(pairs), min(15, len(pairs))):
        one, other = lines[number : number + 2]
        if canonical_text(one, stage) == canonical_text(other, stage):
            continue  # two of the same
        swapped = [*lines[:number], other, one, *lines[number + 2 :]]
        assert canonical_text("\n".join(swapped), stage) != form, f"{number + 1}: {one} | {other}"


def _words(lines: list[str], number: int) -> Iterable[str]:
    return re.findall(r"constant|declare", " ".join(lines[number : number + 2]))


# -- what a name hides -----------------------------------------------------------------


def test_registers_that_a_kernel_starts_with_keep_their_numbers() -> None:
    kernel = "k:\n\ts_mul_i32 s50, {}, 64\n\ts_endpgm\n\t.amdhsa_kernel k\n\t\t.amdhsa_user_sgpr_count 2\n"
    other = partial(alike, stage=Stage.AMDGCN)
    assert not other(kernel.format("s2"), kernel.format("s3"))
    assert other(kernel.format("s2"), kernel.format("s2").replace("s50", "s60"))


def test_registers_of_a_text_that_calls_keep_their_numbers() -> None:
    kernel = (
        "k:\n\tv_mov_b32 v{}, 1\n\ts_swappc_b64 s[30:31], s[4:5]\n\t.amdhsa_kernel k\n\t.amdhsa_user_sgpr_count 2\n"
    )
    assert not alike(kernel.format(40), kernel.format(41), Stage.AMDGCN)


def test_halves_of_registers_are_of_their_registers() -> None:
    kernel = "k:\n\tv_mov_b32 v40, 1\n\tv_mov_b32 v41, 2\n\tv_add_f16 v42.l, v{}.l, v{}.h\n\t.amdhsa_kernel k\n\t.amdhsa_user_sgpr_count 2\n"
    assert not alike(kernel.format(40, 41), kernel.format(41, 40), Stage.AMDGCN)


def test_registers_of_machine_code_keep_their_numbers_for_wide_operands_span_some_unnamed() -> None:
    code = "LDG.E.128 R4, [R2.64] ;\nFADD R0, {}, {} ;\n"
    assert not alike(code.format("R5", "R6"), code.format("R6", "R5"), Stage.SASS)


def test_registers_of_the_machine_in_quoted_assembly_are_no_names() -> None:
    call = 'define void @k() {{\n  %1 = call i32 asm "mov.u32 $0, %{};", "=r"()\n}}\n'
    assert not alike(call.format("tid.x"), call.format("tid.y"), Stage.LLIR)


def test_metadata_counts_where_it_is_not_of_debugging() -> None:
    text = (
        "define void @k() {{\n  %1 = load i32, ptr %0, !range !{}\n}}\n!3 = !{{i32 0, i32 8}}\n!4 = !{{i32 0, i32 9}}\n"
    )
    assert not alike(text.format(3), text.format(4), Stage.LLIR)


def test_scopes_that_look_alike_are_told_apart() -> None:
    text = (
        "define void @k(ptr %0) {{\n  store i32 1, ptr %0, !alias.scope !1\n"
        "  store i32 2, ptr %0, !alias.scope !{}\n}}\n!1 = distinct !{{!1, !3}}\n!2 = distinct !{{!2, !3}}\n!3 = !{{}}\n"
    )
    assert not alike(text.format(1), text.format(2), Stage.LLIR)
    assert not alike(
        "!nvvm.annotations = !{!0}\n!0 = !{i32 128}", "!nvvm.annotations = !{!0}\n!0 = !{i32 64}", Stage.LLIR
    )


def test_a_stack_and_a_pragma_are_no_places() -> None:
    for one, other in ((".local .align 8 .b8 d[16];", ".local .align 8 .b8 d[32];"), ('.pragma "nounroll";', "")):
        assert not alike(f"add.s32 %r1, %r2, 1;\n{one}", f"add.s32 %r1, %r2, 1;\n{other}", Stage.PTX)


def test_code_behind_a_debug_section_counts() -> None:
    text = ".section .debug_macinfo {{ }}\n.section .debug_abbrev\n{{\n.b8 {}\n}}\nadd.s32 %r1, %r2, {};\n"
    assert alike(text.format(1, 5), text.format(2, 5), Stage.PTX)
    assert not alike(text.format(1, 5), text.format(1, 6), Stage.PTX)


def test_a_kernel_whose_name_begins_with_debug_is_code() -> None:
    text = '.section .debug_frame,"",@progbits\n.byte 0x1\n.section .text.debug_sum,"ax",@progbits\nFADD R0, R1, {} ;'
    assert canonical_text(text.format("R2"), Stage.SASS) != canonical_text(text.format("R3"), Stage.SASS)
    assert ".byte" not in canonical_text(text, Stage.SASS)


def test_what_a_kernel_asks_the_hardware_for_counts() -> None:
    text = "k:\n\ts_endpgm\n\t.section .rodata\n\t.long {}\n\t.amdhsa_kernel k\n\t.amdhsa_next_free_vgpr {}\n"
    assert not alike(text.format(1, 40), text.format(1, 41), Stage.AMDGCN)
    assert not alike(text.format(1, 40), text.format(2, 40), Stage.AMDGCN)


def test_any_alias_is_told_by_what_it_stands_for() -> None:
    text = "#map = affine_map<(d0) -> (d0 * {})>\nmodule {{\n  tt.func @f() {{\n    %0 = a.b() {{map = #map}} : i32\n  }}\n}}\n"
    assert not alike(text.format(2), text.format(4), Stage.TTGIR)
    assert alike(text.format(2), text.format(2).replace("#map", "#other"), Stage.TTGIR)


def test_printed_text_is_not_searched_for_places() -> None:
    text = 'tt.func @f() {{\n  tt.print " loc({}) %x "\n}}\n'
    assert not alike(text.format("a"), text.format("b"), Stage.TTIR)


def test_two_values_that_change_places_are_seen() -> None:
    text = "tt.func @f(%a: i32, %b: i32) {{\n  %c = arith.subi {} : i32\n}}\n"
    assert not alike(text.format("%a, %b"), text.format("%b, %a"), Stage.TTIR)


def test_what_a_loop_starts_from_is_read_and_not_given() -> None:
    text = (
        "tt.func @f(%a: i32, %b: i32) {{\n  %0:2 = scf.for %i = %a to %b iter_args(%x = {}, %y = %b) {{\n  }}\n"
        "  %l, %r = tt.split %0#0 : i32\n  tt.store {}, %0#1\n}}\n"
    )
    assert not alike(text.format("%a", "%l"), text.format("%b", "%l"), Stage.TTIR)
    assert not alike(text.format("%a", "%l"), text.format("%a", "%r"), Stage.TTIR)


def test_hostile_texts_cost_no_memory() -> None:
    doubling = "\n".join(f"#a{n + 1} = <#a{n}, #a{n}>" for n in range(200))
    assert len(canonical_text(f"#a0 = <x>\n{doubling}\nmodule {{ #a200 }}", Stage.TTGIR)) < 20_000
    wide = "k:\n\tv_mov_b32 v[0:99999999999], 1\n\t.amdhsa_kernel k\n\t.amdhsa_user_sgpr_count 2\n"
    assert len(canonical_text(wide, Stage.AMDGCN)) < 1000


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(target, marks=[] if target in ("sm_80", "gfx942") else pytest.mark.long)
        for target in sorted({kernel.target for kernel in saved_kernels(version="3.6.0")})
    ],
)
def test_no_two_stages_of_different_kernels_have_one_form(target: str) -> None:
    forms: dict[tuple[Stage, str], str] = {}
    for kernel in saved_kernels(version="3.6.0", target=target):
        for stage in kernel.stages:
            form = stage, canonical_text(kernel.text(stage), stage)
            assert forms.setdefault(form, kernel.kernel) == kernel.kernel
