"""Loops of PTX whose copies other warps compute on, without any tensor-level IR, in hand-written code."""

from __future__ import annotations

import pytest
from handwritten import code_of

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.handoffs import find_handoffs
from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.order.verdict import judge_region
from artifact_inspector.model import OrderVerdict, Stage

WAIT = "mbarrier.try_wait.parity.shared.b64 %p2, [%r1], %r2"
COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1, {%r4, %r5}], [%r6]"
MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd3, 1, 1, 1, 0, 0"
DRAIN, KEEP = "wgmma.wait_group.sync.aligned 0", "wgmma.wait_group.sync.aligned 1"
ADD = "add.f32 %f5, %f5, %f6"
UNKNOWN, SPECIALISED = OrderVerdict.UNKNOWN, OrderVerdict.WARP_SPECIALISED


def loop(label: str, *body: str) -> list[str]:
    return [f"{label}:", *body, "add.s32 %r9, %r9, 1", "setp.lt.s32 %p3, %r9, %r8", f"@%p3 bra {label}"]


def ptx(*body: str) -> FunctionCode:
    lines = "\n".join(line if line.endswith(":") else f"\t{line};" for line in body)
    return code_of(Stage.PTX, f".version 8.7\n.target sm_90a\n.visible .entry k()\n{{\n{lines}\n\tret;\n}}\n")


def branches(first: list[str], second: list[str]) -> FunctionCode:
    return ptx("@%p1 bra $B", *first, "bra $E", "$B:", *second, "$E:")


def judge(code: FunctionCode) -> RegionFacts:
    region = next(region for region in find_regions(code, (), exact=False) if region.loop == 0)
    return judge_region(code, region, None)[0]


def test_branches_that_wait_for_barriers_are_specialised() -> None:
    code = branches(loop("$P", WAIT, COPY), loop("$C", WAIT, MMA, DRAIN))
    assert find_handoffs(code) == {0: SPECIALISED, 1: SPECIALISED}
    assert judge(code).verdict is SPECIALISED


def test_branches_in_a_loop_that_dispatches_warps_are_specialised() -> None:
    body = ["@%p1 bra $B", *loop("$P", WAIT, COPY), "bra $E", "$B:", *loop("$C", WAIT, MMA, DRAIN), "$E:"]
    assert sorted(find_handoffs(ptx("$D:", *body, "@%p4 bra $D")).values(), key=str) == [SPECIALISED, SPECIALISED]


@pytest.mark.parametrize(
    ("producer", "consumer"), [((COPY,), (WAIT, MMA)), ((WAIT, COPY), (MMA,)), ((WAIT, COPY), (WAIT, ADD))]
)
def test_without_a_sign_of_it_they_are_unknown(producer: tuple[str, ...], consumer: tuple[str, ...]) -> None:
    code = branches(loop("$P", *producer), loop("$C", *consumer))
    assert find_handoffs(code) == {0: UNKNOWN, 1: UNKNOWN}
    assert judge(code).notes == ("other loops copy or compute for it, and only tensor-level IR shows in which order",)


def test_loops_that_one_path_executes_are_not_specialised() -> None:
    assert find_handoffs(ptx(*loop("$P", WAIT, COPY), *loop("$C", WAIT, MMA))) == {0: UNKNOWN, 1: UNKNOWN}
    assert find_handoffs(ptx(*loop("$P", COPY), *loop("$C", ADD))) == {}


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ((COPY, WAIT, MMA, DRAIN), OrderVerdict.SERIAL),
        ((COPY, WAIT, DRAIN, MMA), UNKNOWN),  # it is in flight while the next copy is waited for
        ((COPY, WAIT, MMA, KEEP), UNKNOWN),
    ],
)
def test_matrix_operations_in_flight_contradict_serial(body: tuple[str, ...], verdict: OrderVerdict) -> None:
    assert judge(ptx(*loop("$L", *body))).verdict is verdict


@pytest.mark.parametrize(
    ("peeled", "expected"), [((), "pipelined(2)"), ((MMA,), "pipelined(1)"), ((MMA,) * 2, "serial")]
)
def test_copies_before_a_loop_count_if_nothing_there_computes_on_them(peeled: tuple[str, ...], expected: str) -> None:
    body = [COPY, COPY, *peeled, *loop("$L", COPY, WAIT, MMA, DRAIN)]
    assert judge(ptx(*body)).phrase == expected
    around = ptx("$O:", *body, "@%p4 bra $O")  # the same in each trip of a persistent kernel
    inner = next(region for region in find_regions(around, (), exact=False) if region.depth == 2)
    assert judge_region(around, inner, None)[0].phrase == expected


def test_more_computes_than_copies_before_a_loop_are_unknown() -> None:
    assert judge(ptx(COPY, MMA, MMA, *loop("$L", COPY, WAIT, MMA, DRAIN))).verdict is UNKNOWN


def test_without_lines_two_loads_of_a_body_are_not_two_copies_of_it() -> None:
    facts = judge(ptx(COPY, COPY, *loop("$L", COPY, WAIT, MMA, COPY, WAIT, MMA, DRAIN)))
    assert facts.phrase == "pipelined(1)"
