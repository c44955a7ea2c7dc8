"""The regions of a stage, and which of the program's each is; stages are made of letters with lines of k.py."""

from __future__ import annotations

from handwritten import code_of, made, tensor_code

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.reference_regions import ReferenceRegion, find_reference
from artifact_inspector.analysis.order.regions import Region, count_with_trait, find_in_region, find_regions
from artifact_inspector.model import EventKind, RegionKind, Stage, Trait

T, P = "tensor<8xf32>", "tensor<8x!tt.ptr<f32>>"
HEAD = f"%q: {P}, %n: i32, %z: {T}, %o: {P}"
LOADS = frozenset({EventKind.GLOBAL_LOAD})


def summed(line: int) -> str:
    """A loop at a line that loads on the next, multiplies on that behind it and adds up on the last."""
    return f"""
    %r{line} = scf.for %i = %n to %n step %n iter_args(%acc = %z) -> ({T})  : i32 {{
      %a = tt.load %q : {P} @{line + 1}
      %c = arith.mulf %a, %a : {T} @{line + 2}
      %d = arith.addf %acc, %c : {T} @{line + 3}
      scf.yield %d : {T}
    }} @{line}
    tt.store %o, %r{line} : {P} @{line + 5}
"""


def program(body: str) -> tuple[ReferenceRegion, ...]:
    return find_reference(tensor_code(body, head=HEAD))


def by_id(code: FunctionCode, reference: tuple[ReferenceRegion, ...]) -> dict[str, Region]:
    return {region.id: region for region in find_regions(code, reference, exact=False)}


def test_a_loop_is_found_again_by_the_places_of_what_it_holds() -> None:
    reference = program(summed(10))
    found = by_id(made(".", "L11 F12 F13 b10", "S15", to={1: (1, 2)}), reference)
    assert list(found) == ["straight", "loop@10"]
    loop = found["loop@10"]
    assert (loop.kind, loop.loop, loop.parent, loop.depth) == (RegionKind.LOOP, 0, "straight", 1)
    assert loop.reference is reference[1]
    assert found["straight"].reference is reference[0]
    assert (found["straight"].depth, found["straight"].parent, found["straight"].loop) == (0, None, None)
    assert (loop.blocks, loop.scope, loop.enclosed_blocks) == ({1}, {1}, {1})
    assert (found["straight"].blocks, found["straight"].scope) == ({0, 2}, {0, 2})
    assert found["straight"].enclosed_blocks == {0, 1, 2}


def test_a_loop_that_is_none_here_leaves_its_instructions() -> None:
    found = by_id(made("L11 F12 L11 F12 S15"), program(summed(10)))
    remains = found["loop@10"]
    assert (remains.kind, remains.loop, remains.residue) == (RegionKind.STRAIGHT, None, (0, 1, 2, 3))
    assert remains.blocks == frozenset()


def test_a_loop_that_only_the_compiler_made_has_a_name_of_its_own_and_lends_its_blocks() -> None:
    found = by_id(made(".", "L11 b10", "W90 b90", "F12 F13 b10", ".", to={2: (2, 3), 3: (1, 4)}), program(summed(10)))
    assert set(found) == {"straight", "loop@10", "loop@90"}
    spin, loop = found["loop@90"], found["loop@10"]
    assert (spin.reference, spin.parent, spin.depth) == (None, "loop@10", 2)
    assert (loop.blocks, loop.scope) == ({1, 3}, {1, 2, 3})


def test_a_compilers_loop_on_the_line_of_one_of_the_program_is_marked() -> None:
    reference = program(summed(10))
    found = by_id(made(".", "L11 F12 F13 b10", ".", "I90 b10", ".", to={1: (1, 2), 3: (3, 4)}), reference)
    names = [name for name in found if name.startswith("loop")]
    assert names[0] == "loop@10"
    assert len(names) == 2
    assert names[1] in ("loop@10'", "loop@10/2")


def test_a_loop_of_loads_and_one_of_computes_are_two_parts_of_one() -> None:
    code = made(".", "A11 b10", ".", "F12 F13 b10", ".", to={1: (1, 2), 3: (3, 4)})
    found = by_id(code, program(summed(10)))
    assert {"loop@10", "loop@10/loads"} <= set(found)
    assert found["loop@10/loads"].blocks == {1}
    assert found["loop@10"].blocks == {3}
    assert all(found[name].is_specialised for name in ("loop@10", "loop@10/loads"))


def test_one_loop_that_holds_both_is_not_split() -> None:
    found = by_id(made(".", "A11 F12 F13 b10", ".", to={1: (1, 2)}), program(summed(10)))
    assert not found["loop@10"].is_specialised


def test_a_loop_that_became_several_keeps_its_name_on_the_first() -> None:
    code = made(".", "L11 F12 F13 b10", ".", "L11 F12 F13 b10", ".", to={1: (1, 2), 3: (3, 4)})
    found = by_id(code, program(summed(10)))
    assert [name for name in found if name.startswith("loop")] == ["loop@10", "loop@10/2"]


def test_the_stage_that_the_program_was_read_from_has_its_loops_as_they_are() -> None:
    code = tensor_code(summed(10) + summed(20), head=HEAD)
    reference = find_reference(code)
    found = find_regions(code, reference, exact=True)
    assert [region.id for region in found] == ["straight", "loop@10", "loop@20"]
    assert [region.reference for region in found] == list(reference)


def test_what_stands_in_front_of_a_loop_runs_when_it_is_entered() -> None:
    code = made("L11", "L11", "L11 F12 F13 b10", "L11", to={2: (2, 3)})
    loop = by_id(code, program(summed(10)))["loop@10"]
    loads = code.find(LOADS)
    assert loop.instructions_before_loop(code, loads) == loads[:2]
    straight = by_id(code, ())["straight"]
    assert straight.instructions_before_loop(code, loads) == []


def test_a_load_in_another_loop_in_front_is_not_in_front() -> None:
    code = made(".", "L31 b30", ".", "L11 F12 F13 b10", ".", to={1: (1, 2), 3: (3, 4)})
    loop = by_id(code, program(summed(10)))["loop@10"]
    assert loop.instructions_before_loop(code, code.find(LOADS)[:1]) == []


def test_instructions_of_a_region_are_those_of_its_blocks_or_those_that_are_left() -> None:
    code = made("L11 F12 L11 F12 S15")
    found = by_id(code, program(summed(10)))
    assert find_in_region(code, found["straight"], LOADS) == [0, 2]
    assert find_in_region(code, found["loop@10"], LOADS) == [0, 2]
    assert find_in_region(code, found["loop@10"], frozenset({EventKind.GLOBAL_STORE})) == []


def test_fused_operations_are_counted_by_what_the_format_says() -> None:
    body = "\tfma.rn.f32 %f1, %f2, %f3, %f4;\n\tadd.f32 %f1, %f2, %f3;\n\tfma.rn.f32 %f1, %f2, %f3, %f4;\n"
    code = code_of(Stage.PTX, f".version 8.7\n.target sm_80\n.visible .entry k()\n{{\n{body}\tret;\n}}\n")
    (straight,) = find_regions(code, (), exact=False)
    assert count_with_trait(code, straight, EventKind.FLOAT, Trait.FUSED) == 2
    assert count_with_trait(code, straight, EventKind.MATRIX, Trait.FUSED) == 0


PARTITIONED = f"""
    ttg.warp_specialize()
    default {{
      %x = tt.load %q : {P} @4
      ttg.warp_yield
    }}
    partition0() num_warps(4) {{
      %y = tt.load %q : {P} @5
      scf.for %i = %n to %n step %n  : i32 {{
        %w = tt.load %q : {P} @7
      }} @6
      ttg.warp_return
    }} : () -> ()
"""


def test_partitions_are_regions_and_the_loops_in_them_are_theirs() -> None:
    code = tensor_code(PARTITIONED, Stage.TTGIR, head=HEAD)
    found = by_id(code, ())
    assert list(found) == ["straight", "default", "partition0", "loop@6"]
    assert found["partition0"].kind is RegionKind.PARTITION
    assert [len(find_in_region(code, found[name], LOADS)) for name in found] == [0, 1, 1, 1]
    assert [found[name].parent for name in found] == [None, "straight", "straight", "partition0"]
    assert [found[name].depth for name in found] == [0, 0, 0, 1]
