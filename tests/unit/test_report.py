"""Words, cuts and streams of the reports, on facts made by hand."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from artifact_inspector.analysis.access.accesses import count_accesses
from artifact_inspector.analysis.order.region_facts import RegionFacts, RegionNote, RoundFacts, RoundPair
from artifact_inspector.analysis.overlap.loads_in_flight import LoadsInFlight
from artifact_inspector.analysis.overlap.pipeline import Pipeline
from artifact_inspector.analysis.overlap.waits import WaitEffect
from artifact_inspector.analysis.resources.usage import find_resources
from artifact_inspector.compiling import CompileResult
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import COUNTED, KernelFacts, RegionWork, StageFacts, WaitFacts
from artifact_inspector.facts.selection import narrow, parse_stages
from artifact_inspector.files.artifact import Completeness
from artifact_inspector.files.cache import Artifact, Cache, OtherFile, Problem
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import EventKind, OrderVerdict, Queue, RegionKind, Stage
from artifact_inspector.report.cache_report import CacheReport
from artifact_inspector.report.compilation import compiled_table
from artifact_inspector.report.console import show, write
from artifact_inspector.report.json import as_text, encode
from artifact_inspector.report.json.cache import cache_document
from artifact_inspector.report.kernel_report import KernelReport
from artifact_inspector.report.layout import WrappedTexts
from artifact_inspector.report.lexers.scanner import lexer_for
from artifact_inspector.report.phrases import (
    cut_signature,
    describe_changes,
    describe_notes,
    describe_unknown,
    describe_verdict,
    legend,
    mma_count,
)
from artifact_inspector.report.region_work import describe_copies, describe_waits, load_depths


def _count_letters(signature: str) -> dict[str, int]:
    names = {kind.letter: kind.count_name for kind in EventKind}
    counts: Counter[str] = Counter()
    for run in signature.split():
        counts[names[run[0]]] += int(run[1:])
    return counts


def a_region(signature: str, verdict: str = "pipelined", **fields: object) -> RegionFacts:
    known: dict[str, object] = {
        "id": "loop@9", "kind": RegionKind.LOOP, "depth": 1, "parent": "straight", "lines": (10, 20),
        "signature": signature, "named_signature": "", "verdict": OrderVerdict(verdict), "distance": None, "basis": "source",
        "pairs": (), "exclusive": (), "order_changed": False, "rounds": (), "unassigned": (), "matrix": signature.count("M"), "fused_multiply_adds": 0,
        "unroll_factor": 1, "groups": "",
        "copy_position": None, "region_notes": (), "is_in_program": True, "counts": _count_letters(signature),
    }  # fmt: skip
    return RegionFacts(**{**known, **fields})  # type: ignore[arg-type]


def a_stage(stage: Stage, *regions: RegionFacts, waits: tuple[WaitFacts, ...] = (), **fields: object) -> StageFacts:
    known: dict[str, object] = {
        "stage": stage, "file": f"d/k.{stage.value}", "instructions": 100, "unknown": {},
        "counts": {kind.count_name: 0 for kind in COUNTED}, "waits": waits, "regions": regions, "attributes": {},
        "work": {}, "accesses": count_accesses(()),
    }  # fmt: skip
    return StageFacts(**{**known, **fields})  # type: ignore[arg-type]


def a_kernel(*stages: StageFacts, principal: str | None = "loop@9", **fields: object) -> KernelFacts:
    artifact: dict[str, object] = {
        "directory": "d", "stem": "k", "name": "k", "display_name": "k", "hash": "ab" * 32,
        "target": parse_target("sm_80"), "triton_version": "3.6.0", "num_warps": 4, "num_stages": 4,
        "shared_bytes": 30720, "state": Completeness.COMPLETE, "files": {}, "metadata": {"shared": 30720},
    }  # fmt: skip
    facts: dict[str, object] = {
        "changed": {}, "pipelines": {}, "identities": {}, "generations": {}, "widths": (), "policies": (),
        "bill": None, "remarks": None, "store_widths": (), "unmasked": (), "partitions": (), "contradictions": (), "problems": (),
    }  # fmt: skip
    facts |= {name: fields.pop(name) for name in facts.keys() & fields.keys()}
    made = Artifact(**{**artifact, **fields})  # type: ignore[arg-type]
    return KernelFacts(
        artifact=made,
        stages={s.stage: s for s in stages},
        program=None,
        principal=principal,
        resources=find_resources(made.target, made.metadata),
        **facts,  # type: ignore[arg-type]
    )


def a_pipeline(**fields: object) -> Pipeline:
    known: dict[str, object] = dict.fromkeys(field.name for field in dataclasses.fields(Pipeline))
    known |= {"overlaps_matrix": False, "evidence": (), "notes": ()}
    return Pipeline(**{**known, **fields})  # type: ignore[arg-type]


def a_wait(line: int, op: str, depth: int | None, region: str) -> WaitFacts:
    spelt = "{op}({depth})" if op == "s_waitcnt vmcnt" else "{op} {depth}"
    return WaitFacts(line, op, depth, QUEUES[op], region, spelt)


QUEUES = {
    "cp.async.wait_group": Queue.GROUP,
    "cp.async.bulk.wait_group": Queue.STORES,
    "wgmma.wait_group": Queue.MATRIX,
    "tcgen05.wait": Queue.TENSOR_MEMORY,
    "mbarrier.try_wait": Queue.PHASE,
    "s_waitcnt vmcnt": Queue.LOADS,
    "s_wait_loadcnt": Queue.LOADS,
}


def a_cache(*kernels: KernelFacts, others: tuple[OtherFile, ...] = (), problems: tuple[Problem, ...] = ()) -> Cache:
    return Cache(Path("cache"), tuple(kernel.artifact for kernel in kernels), others, problems)


def printed(report: object, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    show(report, stream)  # type: ignore[arg-type]
    return stream.getvalue()


def waits_of(op: str, *depths: int | None, commits: int | None = None) -> list[str]:
    region = a_region("W1 M16 A4 K1 A1 K1")
    waits = tuple(a_wait(40 + i, op, depth, "loop@9") for i, depth in enumerate(depths))
    last = a_stage(Stage.PTX, region, waits=waits)
    pipelines = {"loop@9": a_pipeline(commits_per_iteration=commits)}
    return list(describe_waits(a_kernel(last, pipelines=pipelines), last, region))


def test_a_group_wait_leaves_its_depth_in_flight_and_tells_the_iterations() -> None:
    (said,) = waits_of("cp.async.wait_group", 4, commits=2)
    assert said == (
        "cp.async.wait_group 4 (line 40): leaves 4 copy groups in flight; "
        "with 2 per iteration, that is 4 ÷ 2 = 2 iterations"
    )


def test_no_iterations_are_told_where_the_groups_of_one_are_unknown() -> None:
    (said,) = waits_of("cp.async.wait_group", 4, commits=None)
    assert said.endswith("leaves 4 copy groups in flight")


def test_a_wait_of_zero_drains_a_pipeline_and_only_a_pipeline() -> None:
    def said(**fields: object) -> str:
        region = a_region("W1 M16 A4 K1", **fields)  # type: ignore[arg-type]
        wait = a_wait(40, "cp.async.wait_group", 0, "loop@9")
        found = LoadsInFlight(4, 16, 1, None, (WaitEffect(wait, 4, 0, 0, 0, drains=True),), (), ())
        work = RegionWork(found, (), (), count_accesses(()), {}, (), None, (), None)
        stage = a_stage(Stage.PTX, region, waits=(wait,), work={"loop@9": work})
        return next(describe_waits(a_kernel(stage), stage, region))

    assert "the pipeline drains in every iteration" in said(distance=1)
    assert "÷" not in said(distance=1)
    assert said(verdict="serial").endswith("waits for all earlier copy groups")


@pytest.mark.parametrize("op", ["s_waitcnt vmcnt", "s_wait_loadcnt"])
def test_a_count_of_loads_on_amd_lets_so_many_younger_ones_fly(op: str) -> None:
    assert waits_of(op, 3)[0].endswith("leaves 3 vector-memory loads in flight")
    assert waits_of(op, 1)[0].endswith("leaves 1 vector-memory load in flight")


def test_many_depths_are_one_sentence() -> None:
    (said,) = waits_of("s_waitcnt vmcnt", 14, 13, 2, 0)
    assert said.startswith("s_waitcnt vmcnt(14…0) (×4, lines 40–43): the number is how many")
    assert said.endswith("0 waits for all of them")
    assert "0 waits" not in waits_of("s_waitcnt vmcnt", 14, 13, 2)[0]


def test_waits_for_matrix_operations_and_barriers_say_so() -> None:
    assert "matrix operations" in waits_of("wgmma.wait_group", 1)[0]
    assert "waits on an mbarrier" in waits_of("mbarrier.try_wait", None)[0]
    assert "stores" in waits_of("cp.async.bulk.wait_group", 0)[0]


def test_a_tcgen05_wait_is_for_tensor_memory_not_for_products() -> None:
    # PTX ISA, tcgen05.wait: for tcgen05.ld or tcgen05.st; a product's end is told by an mbarrier.
    assert waits_of("tcgen05.wait", None)[0].endswith("waits for accesses to tensor memory, not for loads")


def test_the_wait_column_counts_waits_for_loads_alone() -> None:
    waits = (a_wait(1, "wgmma.wait_group", 1, "loop@9"), a_wait(2, "cp.async.wait_group", 4, "loop@9"))
    assert load_depths(a_kernel(a_stage(Stage.PTX, a_region("W1"), waits=waits))) == "4"
    assert load_depths(a_kernel(a_stage(Stage.PTX, a_region("W1"), waits=waits[:1]))) == "–"


def test_copies_of_an_unrolled_loop_are_told_per_source_iteration() -> None:
    region = a_region("A4 K1 A1 K1 M16 A4 K1 A1 K1 M16", unroll_factor=2, copy_position="before")
    pipelines = {"loop@9": a_pipeline(commits_per_iteration=2)}
    kernel = a_kernel(a_stage(Stage.PTX, region), pipelines=pipelines)
    assert describe_copies(kernel, region) == ("5 copies per iteration, in 2 commit groups, issued before the computes")


def test_mma_tells_the_region_from_the_file_and_scalars_from_matrix_operations() -> None:
    counts = {"matrix": 16, "float": 0}
    assert mma_count(a_kernel(a_stage(Stage.PTX, a_region("M4", matrix=4), counts=counts))) == "4 of 16"
    assert mma_count(a_kernel(a_stage(Stage.PTX, a_region("M16", matrix=16), counts=counts))) == "16"
    above = a_stage(Stage.TTGIR, a_region("M1"), counts={"matrix": 1, "float": 0})
    below = a_stage(
        Stage.PTX, a_region("F900 L2 F24", matrix=0, fused_multiply_adds=512), counts={"matrix": 0, "float": 924}
    )
    assert mma_count(a_kernel(above, below)) == "0, FMA 512"


def test_a_change_of_order_is_told_from_a_change_of_kind() -> None:
    kernel = a_kernel(
        a_stage(Stage.TTIR, a_region("L1", "interleaved")),
        a_stage(Stage.TTGIR, a_region("L1", "clustered", order_changed=True)),
        a_stage(Stage.LLIR, a_region("L1", "clustered")),
        changed={"loop@9": Stage.TTGIR},
    )
    assert list(describe_changes(kernel, "loop@9")) == [
        ("changed", "interleaved → clustered at ttgir (Triton's GPU passes)")
    ]
    piped = a_kernel(a_stage(Stage.TTIR, a_region("L1", "serial")), a_stage(Stage.TTGIR, a_region("L1", distance=2)))
    assert list(describe_changes(piped, "loop@9")) == [("pipelined", "at ttgir (Triton's GPU passes), serial before")]


def test_a_change_over_stages_that_were_not_read_is_laid_to_none_of_them() -> None:
    kernel = a_kernel(
        a_stage(Stage.TTIR, a_region("L1", "interleaved")),
        a_stage(Stage.PTX, a_region("L1", "clustered", order_changed=True)),
    )
    assert list(describe_changes(kernel, "loop@9")) == [("changed", "interleaved → clustered between ttir and ptx")]


def test_an_order_that_may_be_another_is_no_change() -> None:
    kernel = a_kernel(
        a_stage(Stage.TTIR, a_region("L1", "interleaved")),
        a_stage(Stage.TTGIR, a_region("L1", "clustered", order_changed=None)),
    )
    assert list(describe_changes(kernel, "loop@9")) == [
        ("order change unknown", "at ttgir (Triton's GPU passes): interleaved before, clustered now")
    ]


def test_an_order_that_came_back_behind_another_verdict_has_not_changed() -> None:
    kernel = a_kernel(
        a_stage(Stage.TTIR, a_region("L1", "interleaved")),
        a_stage(Stage.TTGIR, a_region("L1", "unknown")),
        a_stage(Stage.LLIR, a_region("L1", "interleaved")),
    )
    assert [what for what, _ in describe_changes(kernel, "loop@9")] == ["unknown"]


def test_every_verdict_says_what_it_means_and_gone_is_not_the_loop() -> None:
    for verdict in {word for word in OrderVerdict if word.is_order_verdict} | {
        "single",
        "serial",
        "pipelined",
        "partly pipelined",
        "unrolled",
        "unknown",
    }:
        assert describe_verdict(verdict) is not None
    assert "their compute was folded away" in str(describe_verdict("gone"))


def test_a_remark_on_several_rounds_is_made_once() -> None:
    assert describe_notes([RegionNote("x", 1), RegionNote("y"), RegionNote("x", 12), RegionNote("z", 2)]) == [
        "rounds 1, 12: x",
        "y",
        "round 2: z",
    ]


def test_the_legend_explains_a_run_and_no_letter_that_is_not_there() -> None:
    assert legend(["L2 M16", "F1"]) == ["L global load", "M matrix op", "F float op", "M16 = 16 M in a row"]
    assert legend(["L1"]) == ["L global load"]


def test_unclassified_opcodes_are_named_with_their_number() -> None:
    known = a_stage(Stage.LLIR, instructions=1000)
    unclassified = a_stage(Stage.PTX, instructions=907, unknown={"createpolicy": 8, "discard": 4})
    kernels = [KernelFacts(stages={stage.stage: stage}) for stage in (known, unclassified)]
    assert describe_unknown(kernels) == "12 of 1907 instructions unclassified: createpolicy ×8, discard ×4"
    assert describe_unknown(kernels[:1]) is None


runs = st.lists(st.tuples(st.sampled_from("LAKWstMFBX"), st.integers(1, 999)), min_size=1, max_size=60)


@given(runs, st.integers(24, 120))
def test_a_cut_signature_fits_and_accounts_for_every_run(pairs: list[tuple[str, int]], width: int) -> None:
    signature = " ".join(f"{letter}{count}" for letter, count in pairs)
    cut = cut_signature(signature, width)
    assert len(cut) <= max(width, 0) or cut == signature
    if cut != signature:
        left_out = re.search(r"… (\d+) runs …", cut)
        assert left_out is not None
        before, after = cut[: left_out.start()].split(), cut[left_out.end() :].split()
        assert before + after == [
            *signature.split()[: len(before)],
            *signature.split()[len(signature.split()) - len(after) :],
        ]
        assert int(left_out[1]) == len(pairs) - len(before) - len(after)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_line_of_a_report_is_wider_than_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    long = " ".join(["L144", "F256"] * 40)
    rounds = (
        RoundFacts(
            2, 11, 12, 13, 14, ("kernels_for_versions.py:99", "kernels_for_versions.py:100"), ("a", "b"), (), (2, 2)
        ),
    )
    region = a_region(long, rounds=rounds, region_notes=(RegionNote("a remark that goes on and on " * 6),))
    kernel = a_kernel(a_stage(Stage.TTGIR, region), a_stage(Stage.PTX, region), display_name="k" * 30)
    cache = a_cache(kernel, others=(OtherFile("x", "launcher"),), problems=(Problem("a/" * 30, "it is broken"),))
    for report in (CacheReport(cache, [kernel], is_narrowed=False), KernelReport(cache, kernel)):
        lines = printed(report, width, monkeypatch).splitlines()
        assert [line for line in lines if len(line) > width and not line.startswith("hash ")] == []
        assert not any(line.endswith(" ") for line in lines)
    if width >= 80:
        assert "… " in printed(KernelReport(cache, kernel), width, monkeypatch)


def test_a_pipe_gets_long_rows_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    kernel = a_kernel(a_stage(Stage.PTX, a_region("L1")), display_name="k" * 100)
    stream = io.StringIO()
    show(CacheReport(a_cache(kernel), [kernel], is_narrowed=False), stream)
    row = next(line for line in stream.getvalue().splitlines() if line.startswith("k" * 100))
    assert row.split()[-1] == "pipelined"


@pytest.mark.parametrize(
    ("state", "said"), [(Completeness.BINARY_ONLY, "binary only"), (Completeness.PARTIAL, "ends at ttgir")]
)
def test_entries_that_are_not_whole_are_rows_that_say_so(
    state: Completeness, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = () if state is Completeness.BINARY_ONLY else (a_stage(Stage.TTGIR, a_region("L1")),)
    kernel = a_kernel(*stages, state=state)
    text = printed(CacheReport(a_cache(kernel), [kernel], is_narrowed=False), 120, monkeypatch)
    assert said in text
    assert said not in printed(CacheReport(a_cache(a_kernel()), [a_kernel()], is_narrowed=False), 120, monkeypatch)


def test_the_table_says_why_a_verdict_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    region = a_region("L1", "unknown", region_notes=(RegionNote("its loads are not there", 2),))
    lost = a_kernel(a_stage(Stage.PTX, region))
    fine = a_kernel(a_stage(Stage.PTX, a_region("L1", region_notes=(RegionNote("of no consequence"),))))
    text = printed(CacheReport(a_cache(lost), [lost], is_narrowed=False), 120, monkeypatch)
    assert "k loop@9: verdict unknown: round 2: its loads are not there" in text
    text = printed(CacheReport(a_cache(fine), [fine], is_narrowed=False), 120, monkeypatch)
    assert "verdict unknown" not in text
    assert "of no consequence" not in text


def test_the_table_explains_the_signs_that_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    for times, said in ((1, False), (2, True)):
        kernel = a_kernel(a_stage(Stage.PTX, a_region("L1 F1", "serial", unroll_factor=times)))
        report = CacheReport(a_cache(kernel), [kernel], is_narrowed=False, has_legend=True)
        text = printed(report, 120, monkeypatch)
        assert ("\n×u " in text) is said
        assert "\n  serial  " in text
        assert "clustered" not in text


def test_copies_of_one_entry_are_told_apart_by_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = [a_kernel(a_stage(Stage.PTX, a_region("L1")), directory=where) for where in ("here", "there")]
    report = CacheReport(a_cache(*kernels), kernels, is_narrowed=False, limit=0)
    rows = printed(report, 120, monkeypatch).splitlines()
    assert [row.split()[1] for row in rows if row.startswith("k  ")] == ["here", "there"]


def test_loops_of_the_compiler_share_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [a_region("W1 F1 R1", "no-loads", id=f"loop@5{end}", is_in_program=False) for end in ("", "#2")]
    kernel = a_kernel(a_stage(Stage.AMDGCN, a_region("L1 F1", "serial"), *made))
    text = printed(KernelReport(a_cache(kernel), kernel), 120, monkeypatch)
    assert "\ncompare-and-swap loops: loop@5, loop@5#2 (amdgcn)\n" in text
    assert text.count("loop@5") == 2
    spin = a_region("W1", "no-loads", id="loop@5", is_in_program=False)
    kernel = a_kernel(a_stage(Stage.PTX, a_region("L1 F1", "serial"), spin))
    text = printed(KernelReport(a_cache(kernel), kernel), 120, monkeypatch)
    assert "\nloop added by the compiler: loop@5 (ptx)\n" in text


def test_the_parts_of_a_specialised_loop_are_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = RoundFacts(3, 50, 60, None, None, ("k.py:9",), ("a",), (), ())
    computes = RoundFacts(0, None, None, 20, 30, ("k.py:9",), ("a",), (), ())
    parts = [
        a_region("W1 A3", "warp-specialised", id="loop@9/loads", rounds=(loads,)),
        a_region("W1 M4", "warp-specialised", rounds=(computes,)),
    ]
    waits = (a_wait(7, "mbarrier.try_wait", None, "loop@9/loads"), a_wait(8, "mbarrier.try_wait", None, "loop@9"))
    kernel = a_kernel(a_stage(Stage.TTIR, a_region("L1 M1", "serial")), a_stage(Stage.PTX, *parts, waits=waits))
    lines = printed(KernelReport(a_cache(kernel), kernel), 120, monkeypatch).splitlines()
    assert [line.split()[0] for line in lines if line.startswith("loop@")] == ["loop@9"]
    rows = [line.split()[:3] for line in lines if " loop@9" in line]
    assert rows == [
        ["ttir", "loop@9", "serial"],
        ["ptx", "loop@9", "warp-specialised"],
        ["loop@9/loads", "warp-specialised", "0"],
    ]
    assert ["1", "a", "k.py:9", "3", "50–60", "20–30"] in [line.split() for line in lines]
    assert sum("mbarrier.try_wait (lines 7, 8)" in line for line in lines) == 1


def test_what_is_no_kernel_is_counted_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = a_kernel(a_stage(Stage.PTX, a_region("L1")))
    others = (OtherFile("a", "launcher"), OtherFile("b", "launcher"), OtherFile("c", "lock"))
    text = printed(CacheReport(a_cache(kernel, others=others), [kernel], is_narrowed=False), 100, monkeypatch)
    assert "Other files in the cache: launcher ×2, lock ×1" in text


def test_json_says_distances_as_numbers_ranges_or_nothing() -> None:
    regions = [
        a_region("L1", distance=2),
        a_region("L1", distance=(1, 3)),
        a_region("L1", pairs=(RoundPair(1 / 3, 0.0),)),
    ]
    kernel = a_kernel(a_stage(Stage.PTX, *regions))
    document = json.loads(as_text(cache_document(a_cache(kernel), [kernel]), "utf-8"))
    written = document["kernels"][0]["stages"]["ptx"]["regions"]
    assert [region["distance"] for region in written] == [2, [1, 3], None]
    assert written[2]["pairs"] == [{"issued_before": 0.3333, "issued_after": 0.0}]
    assert written[0]["lines"] == [10, 20]


def test_json_lists_every_problem_once_and_in_order() -> None:
    own = Problem("d/k.ptx", "the file is empty")
    kernel = a_kernel(problems=(own,))
    cache = a_cache(kernel, problems=(Problem("x", "vanished"), own))
    assert encode(cache_document(cache, [kernel]))["problems"] == [
        {"path": "x", "problem": "vanished"},
        {"path": "d/k.ptx", "problem": "the file is empty"},
    ]


@given(st.text(), st.sampled_from(["utf-8", "UTF8", "ascii", "cp1252", None]))
def test_json_can_be_encoded_and_read_back(name: str, encoding: str | None) -> None:
    text = as_text({"name": name}, encoding)
    assert json.loads(text.encode(encoding or "ascii")) == {"name": name}


def test_a_stream_without_unicode_gets_the_nearest_ascii() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="")
    write("pipelined(1–3) ×2 · 4 ÷ 2 … ü\n", stream)
    assert stream.buffer.getvalue() == b"pipelined(1-3) x2 | 4 / 2 ... ?\n"  # type: ignore[attr-defined]


def test_text_from_files_moves_no_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(Text("a\x1b[2Jb\x07\u202ec"), 80, monkeypatch) == "a\\x1b[2Jb\\u202ec\n"


def test_pieces_break_between_facts_only() -> None:
    console = Console(width=20, file=io.StringIO())
    console.print(WrappedTexts(["4 warps", "30720 B", "3 stages"]))
    assert console.file.getvalue().split("\n") == ["4 warps · 30720 B", "3 stages", ""]  # type: ignore[attr-defined]


@pytest.mark.parametrize("stage", list(Stage))
@given(text=st.text(alphabet=st.sampled_from(' \n\t%@#!"\\loc(tensor<64xf32>).v4{}=:^bb0// 0x1f-3.5e4'), max_size=80))
def test_the_lexer_changes_no_character(stage: Stage, text: str) -> None:
    assert "".join(value for _, value in lexer_for(stage).get_tokens(text)) == text


def test_narrowing_keeps_one_region_and_the_named_stages() -> None:
    regions = (a_region("L1"), a_region("L1", id="straight"))
    waits = (a_wait(1, "cp.async.wait_group", 0, "straight"), a_wait(2, "cp.async.wait_group", 2, "loop@9"))
    kernel = a_kernel(a_stage(Stage.TTIR, *regions), a_stage(Stage.PTX, *regions, waits=waits))
    left = narrow(kernel, [Stage.PTX], "straight")
    assert list(left.stages) == [Stage.PTX]
    assert [region.id for region in left.stages[Stage.PTX].regions] == ["straight"]
    assert left.wait_depths == (0,)
    with pytest.raises(UsageError, match=r"no region 'loop@8'\. It has loop@9, straight\."):
        narrow(kernel, [], "loop@8")


def test_stages_are_read_in_lists_and_any_case() -> None:
    assert parse_stages(["PTX,ttir", "llir"]) == (Stage.PTX, Stage.TTIR, Stage.LLIR)


def test_a_narrow_table_of_compiles_cuts_the_directory_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    row = CompileResult("matmul", parse_target("gfx1100"), 1.0, Path("A" * 52), None)
    rows = [dataclasses.replace(row, config="BM=64 num_warps=4", triton=triton) for triton in ("3.9.0", "3.6.0")]
    text = printed(compiled_table(rows, Path("cache")), 80, monkeypatch)
    first = text.splitlines()[3].split()
    assert first[:6] == ["matmul", "gfx1100", "3.9.0", "BM=64", "num_warps=4", "1.0"]
    assert (first[6][:8], first[6][-1]) == ("A" * 8, "…")


def test_all_that_a_compiler_printed_is_not_told_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    row = CompileResult("bad", parse_target("sm_80"), 0.1, None, "bad.py:9: M >= 16", details="bad.py:9: M >= 16\n")
    told = [
        printed(compiled_table([one], Path("c"), verbose=True), 80, monkeypatch).count("M >= 16")
        for one in (row, dataclasses.replace(row, details="#loc\nbad.py:9: M >= 16\nmodule {"))
    ]
    assert told == [1, 2]
