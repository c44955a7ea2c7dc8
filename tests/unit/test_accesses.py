"""What loads and stores move, and under what condition, on code written after real files."""

from artifact_inspector.analysis.accesses import MemoryAccess, count_accesses, find_accesses
from artifact_inspector.analysis.cfg import find_control_flow
from artifact_inspector.analysis.regions import Code
from artifact_inspector.formats import format_of
from artifact_inspector.model import Stage
from artifact_inspector.source import SourceText


def accesses(stage: Stage, text: str) -> tuple[MemoryAccess, ...]:
    language = format_of(stage)
    module = language.parse(SourceText(f"k.{stage.value}", text), stage)
    function = module.functions[0]
    return find_accesses(Code(function, find_control_flow(function), language.access), module, language)


def ptx(*lines: str) -> tuple[MemoryAccess, ...]:
    body = "\n".join(f"\t{line}" for line in lines)
    return accesses(Stage.PTX, f".version 8.7\n.target sm_80\n.visible .entry k()\n{{\n{body}\n\tret;\n}}\n")


def test_four_words_of_32_bits_are_16_bytes_per_thread() -> None:
    found = count_accesses(ptx("ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];"))
    assert found.loads == {16: 1}
    assert found.load_widths == {16: 1}


def test_copies_count_among_the_load_widths_and_stores_do_not() -> None:
    found = count_accesses(
        ptx(
            "cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10;",
            "ld.global.b16 { %rs1 }, [ %rd2 + 0 ];",
            "st.global.b32 [ %rd3 + 0 ], { %r2 };",
        )
    )
    assert (found.copies, found.loads, found.stores) == ({16: 1}, {2: 1}, {4: 1})
    assert found.load_widths == {16: 1, 2: 1}


def test_a_guard_makes_an_access_predicated() -> None:
    (found,) = ptx("@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];")
    assert found.predicated


def test_a_guard_that_is_always_true_makes_none() -> None:
    # Triton up to 3.2 guards loads without a mask by a predicate set to true.
    (found,) = ptx("mov.pred %p1, -1;", "@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];")
    assert not found.predicated
