"""Verdicts and findings that were wrong once, on kernels of public libraries: what each must say, read off the IR."""

from __future__ import annotations

import shutil
import tarfile
from functools import cache
from pathlib import Path

import pytest
from second_reading import departures

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import open_cache
from artifact_inspector.findings import find_findings
from artifact_inspector.model import OrderVerdict, Stage
from artifact_inspector.model.schedule import ScheduleRole
from artifact_inspector.pictures.partitions import STEPS, partitions

ARCHIVES = sorted(path.name.removesuffix(".tar.xz") for path in Path(__file__).parent.glob("*.tar.xz"))


class Cases:
    """The kernels of an archive, by the first letters of their entry."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.kernels = cache(self._kernels)

    def _kernels(self, name: str) -> dict[str, KernelFacts]:
        with tarfile.open(Path(__file__).with_name(f"{name}.tar.xz")) as archive:
            archive.extractall(self._directory, filter="data")
        found = inspect_cache(open_cache(self._directory / name))
        return {
            kernel.artifact.name if kernel.artifact.other_kernels else kernel.artifact.directory[:5]: kernel
            for kernel in found
        }


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    return Cases(tmp_path_factory.mktemp("cases"))


def of_stages(kernel: KernelFacts, region: str) -> dict[Stage, RegionFacts | None]:
    return {stage: facts.region(region) for stage, facts in kernel.stages.items()}


def phrases(kernel: KernelFacts, region: str) -> list[str]:
    return ["-" if found is None else found.phrase for found in of_stages(kernel, region).values()]


def codes(kernel: KernelFacts) -> list[str]:
    return [finding.code for finding in find_findings(kernel)]


def said(kernel: KernelFacts, code: str) -> list[str]:
    return [finding.remark.message for finding in find_findings(kernel) if finding.code == code]


@pytest.mark.long
@pytest.mark.parametrize("archive", ARCHIVES)
def test_no_case_departs_from_a_second_reading_of_its_line(cases: Cases, archive: str) -> None:
    for kernel in cases.kernels(archive).values():
        assert list(departures(kernel)) == []
        assert kernel.problems == ()


def test_rounds_of_exclusive_branches_have_no_order(cases: Cases) -> None:
    kernels = cases.kernels("exclusive_branches")
    for entry in ("QYS2W", "Y6XT5", "RKF5A"):  # rounds 1 and 2 are `then` and `else` of one `scf.if`
        assert set(phrases(kernels[entry], "straight")) == {"single"}
        straight = kernels[entry].stages[Stage.TTIR].region("straight")
        assert straight is not None
        assert straight.exclusive == ((1, 2),)
        assert "AI001" not in codes(kernels[entry])
    assert kernels["6PXTI"].changed == {}


def test_no_change_is_told_where_the_loads_are_found_in_the_order_that_they_had(cases: Cases) -> None:
    kernels = cases.kernels("false_change")
    for entry in ("I6U57", "WRYM4"):  # six copies of a `static_range`, each in front of its own computes
        assert set(phrases(kernels[entry], "straight")) == {"grouped {1 2}{3}{4}{5}{6}"}
        assert kernels[entry].changed == {}
    loop = kernels["IYQF5"].stages[Stage.AMDGCN].region("loop@172")
    assert loop is not None
    # load, `vmcnt(0)`, load, `vmcnt(0)`: the second round's load stands in front of the first compute, others behind
    assert loop.verdict is not OrderVerdict.CLUSTERED
    assert loop.order_changed is None
    assert "AI001" not in codes(kernels["IYQF5"])


def test_clustered_means_all_loads_and_then_all_computes(cases: Cases) -> None:
    for kernel in cases.kernels("clustered_against_its_line").values():
        for facts in kernel.stages.values():
            for region in facts.regions:
                if region.verdict is OrderVerdict.CLUSTERED and region.unroll_factor == 1:
                    words = region.named_signature.split()
                    first = next(place for place, word in enumerate(words) if "(" not in word)
                    assert not any("(" in word for word in words[first:])


def test_a_persistent_matmul_with_an_epilogue_load_keeps_its_pipelined_loop(cases: Cases) -> None:
    kernels = cases.kernels("persistent_epilogue_load")
    tma = kernels["CJFBQ"]
    assert phrases(tma, "loop@168") == ["serial", *["pipelined(3)"] * 3]
    assert tma.pipelines["loop@168"].iterations_in_flight == 2
    assert not {"AI003", "AI005"} & set(codes(tma))
    left = tma.pipelines["loop@130"]  # the tiles of a loop without an inner turn
    assert left.unpipelined_reason is None
    assert any(note.startswith("flattened with the loop inside it") for note in left.notes)
    for entry in ("GOBI2", "RHWB5"):  # without the bias and with it: `y` is a plain load in ttgir 165 and 175
        assert phrases(kernels[entry], "loop@8") == ["serial", *["partly pipelined(2)"] * 3]
        assert "AI003" not in codes(kernels[entry])


def test_machine_code_that_stands_in_one_line_says_no_more_of_a_loop_than_the_stage_before(cases: Cases) -> None:
    # `x`, `y` and the dot are one source line; of `y`, LLVM counts the line on inside its inline asm (9 to 13)
    kernel = cases.kernels("persistent_epilogue_load")["GUG4G"]
    assert phrases(kernel, "loop@8") == ["serial", *["partly pipelined(2)"] * 4]
    assert phrases(kernel, "loop@5") == ["serial"] * 5
    inner = kernel.stages[Stage.SASS].region("loop@8")
    assert inner is not None
    assert inner.named_signature.split() == ["L(y)", "M", "A(x)"]
    assert inner.notes == ("loaded in the iteration that uses it: y (pb.py:9)",)


def test_a_flattened_and_specialised_loop_is_found_though_its_copies_bear_no_column(cases: Cases) -> None:
    # Triton 3.4: both copies stand at line 12, column 0, of the LLIR; the dot at 13:29
    kernel = cases.kernels("flattened_loops")["TGB7P"]
    assert phrases(kernel, "loop@11") == ["serial", *["warp-specialised"] * 3]
    assert phrases(kernel, "loop@11/loads") == ["-", *["warp-specialised"] * 3]


def test_a_loop_that_was_made_one_with_the_loop_inside_it_is_neither_unrolled_nor_gone(cases: Cases) -> None:
    kernels = cases.kernels("flattened_loops")
    for entry in ("QE4NC", "4JMBQ"):  # 16 turns of the inner loop: no tile is left for the outer one
        assert phrases(kernels[entry], "loop@18") == ["no-loads"] * 4
        for stage, found in of_stages(kernels[entry], "loop@18").items():
            assert found is not None
            assert ("flattened into one loop with the loop inside it" in found.notes) is (stage is not Stage.TTIR)
        assert phrases(kernels[entry], "loop@21") == ["serial", *["partly pipelined(2)"] * 3]


def test_an_epilogue_of_specialised_warps_has_its_name_and_the_idle_copies_come_last(cases: Cases) -> None:
    (kernel,) = cases.kernels("specialised_epilogue_load").values()
    for facts in kernel.stages.values():
        assert [region.id for region in facts.regions if region.verdict is OrderVerdict.UNKNOWN] == []
    assert phrases(kernel, "loop@35") == ["serial"] * 4
    assert phrases(kernel, "loop@38") == ["serial", *["warp-specialised"] * 3]
    assert "AI003" not in codes(kernel)


def test_a_distance_is_the_iterations_in_flight_and_one_where_the_first_product_is_peeled(cases: Cases) -> None:
    (kernel,) = cases.kernels("distance_sm100").values()
    assert phrases(kernel, "loop@464")[1:] == ["partly pipelined(2)"] * 3


def test_integers_that_a_loop_counts_are_work(cases: Cases) -> None:
    for kernel in cases.kernels("integer_accumulation").values():
        assert set(phrases(kernel, "loop@126")) == {"serial"}
    # ptxas makes one of the compare and the addition, at the line of the addition
    assert Stage.SASS in cases.kernels("integer_accumulation")["JZAOM"].stages


def test_a_drain_is_told_by_the_finding_and_by_the_pipeline(cases: Cases) -> None:
    (kernel,) = cases.kernels("drains_told_twice").values()
    (drained,) = said(kernel, "AI002")
    assert drained.startswith("loop@80: the pipeline drains in every iteration: cp.async.wait_group 0 ")
    assert kernel.drains("loop@80")


def test_findings_that_were_missing_are_said(cases: Cases) -> None:
    kernels = cases.kernels("no_finding")
    assert said(kernels["FRF3T"], "AI020")[0].startswith("a block requests 2048 threads (32 warps of 64), but")
    assert said(kernels["5Q62I"], "AI021")[0].startswith("271 scalar registers are spilled")
    assert said(kernels["BTFZF"], "AI022")[0].startswith("a store statement: 16 stores of 2 B per thread")
    turns = said(kernels["7YESS"], "AI023")
    # amdgcn 1320, 1341, 1368 and 1388 stand behind branches
    said_of = "loop@610: 3 waits in every iteration, and 4 conditional, each leave"
    assert any(found.startswith(said_of) for found in turns)


def test_the_remainder_of_a_loop_that_was_written_so_is_no_news(cases: Cases) -> None:
    # ttir: `b_g` and `b_do` are loaded, then both are computed on; LLVM unrolls by four and leaves `loop@163/2`
    (kernel,) = cases.kernels("remainder_of_written_so").values()
    assert phrases(kernel, "loop@163/2")[2:] == ["clustered"] * 2
    assert "AI001" not in codes(kernel)


def test_a_row_of_sums_that_is_converted_beside_tiles_is_no_news(cases: Cases) -> None:
    # ttgir: 64 f32 are converted in `loop@96`, which loads 4356 B
    (kernel,) = cases.kernels("small_conversion").values()
    loop = kernel.stages[Stage.TTGIR].work["loop@96"]
    assert [found.bytes for found in loop.conversions] == [256]
    assert "AI009" not in codes(kernel)


def test_a_change_that_the_back_end_made_is_told(cases: Cases) -> None:
    # llir 680, 719 load, 733 multiplies, 831 loads; amdgcn 742, 782, 804 load, 807 is the first `v_mfma`
    changed = cases.kernels("no_finding")["7YESS"].changed
    assert changed["loop@582"] is Stage.AMDGCN


def test_a_schedule_that_the_program_writes_is_read_as_its_author_meant_it(cases: Cases) -> None:
    seen = []
    for kernel in cases.kernels("schedules").values():
        constants, name = kernel.artifact.constants, kernel.artifact.name
        buffers = int(str(constants["BUFFERS"]))
        ahead = int(str(constants["AHEAD"])) if name == "ring_matmul" else buffers - 1
        expected = f"warp-specialised({ahead})" if name == "specialised_matmul" else f"pipelined({ahead})"
        seen.append((name, buffers))
        assert kernel.principal is not None
        texts = {facts.verdict_text for facts in of_stages(kernel, kernel.principal).values() if facts is not None}
        assert texts == {expected if ahead else "overlapped"}
        assert not {"AI003", "AI010"}.intersection(codes(kernel))
        assert all(pipeline.num_stages is None for pipeline in kernel.pipelines.values())
    names = ("lds_matmul", "ring_matmul", "specialised_matmul")
    assert sorted(seen) == list(zip(sorted(2 * names + names[1:2]), (2, 3, 2, 3, 4, 2, 4), strict=True))


@pytest.mark.exhaustive
def test_machine_code_without_its_program_never_contradicts_it(cases: Cases, tmp_path: Path) -> None:
    kernels, expected = cases.kernels("schedules").values(), {}
    for kernel in kernels:
        suffix = "ptx" if "ptx" in kernel.artifact.files else "amdgcn"
        entry = tmp_path / kernel.artifact.hash
        entry.mkdir()
        shutil.copy(kernel.artifact.files[suffix], entry / f"{kernel.artifact.name}.{suffix}")
        assert kernel.principal is not None
        last = next(reversed(kernel.stages.values())).region(kernel.principal)
        assert last is not None
        expected[kernel.artifact.hash] = last
    verdicts = []
    for kernel in inspect_cache(open_cache(tmp_path)):
        region, full = kernel.principal_region, expected[kernel.artifact.directory]
        assert region is not None
        verdicts.append(region.verdict)
        assert region.verdict in (full.verdict, OrderVerdict.UNKNOWN)
        if region.verdict is OrderVerdict.PIPELINED:  # in trips of the loop, which the compiler may have unrolled
            assert isinstance(region.distance, int)
            assert region.distance * full.unroll_factor == full.distance
    assert (
        verdicts.count(OrderVerdict.UNKNOWN) == 2
    )  # `overlapped`, and loads that do not fit trips of an unrolled loop
    assert len(verdicts) == len(kernels)


def test_both_sides_of_a_specialised_kernel_name_each_other(cases: Cases) -> None:
    for kernel in cases.kernels("schedules").values():
        if kernel.artifact.name == "specialised_matmul":
            regions = [r for r in kernel.stages[Stage.TTGIR].regions if r.verdict is OrderVerdict.WARP_SPECIALISED]
            notes = sorted(note for region in regions for note in region.notes if "in flight" not in note)
            buffers = kernel.artifact.constants["BUFFERS"]
            loads, computes = (r for r in sorted(regions, key=lambda r: bool(r.matrix)))
            assert (loads.matrix_in_flight, computes.matrix_in_flight) == (0, int(str(buffers)) - 1)
            assert notes == [
                f"partition0 issues the copies that it computes on, through {buffers} buffers",
                f"partition1 computes on its copies, through {buffers} buffers",
            ]


def test_partitions_are_drawn_as_their_barriers_order_them(cases: Cases) -> None:
    for kernel in cases.kernels("schedules").values():
        if kernel.artifact.name != "specialised_matmul":
            with pytest.raises(UsageError, match="no warp partitions"):
                partitions(kernel)
            continue
        buffers = int(str(kernel.artifact.constants["BUFFERS"]))
        schedule = kernel.partition_schedule
        assert schedule is not None
        assert [(b.name, b.slots, b.completed_by, b.waits) for b in schedule.barriers] == [
            ("ready", buffers, ("partition0 copies",), ("partition1",)),
            ("free", buffers, ("partition1 MMA",), ("partition0",)),
            ("done", 1, ("partition1 MMA",), ("default",)),
        ]
        events = schedule.events
        for event in events:  # a wait ends no earlier than what completes its barrier
            assert event.cause is None or events[event.cause].end <= event.end
        copies = [event for event in events if event.role is ScheduleRole.COPY]
        first_use = next(event for event in events if event.role is ScheduleRole.MATRIX)
        filled = [(schedule.names[copy.slots[0].root], copy.slots[0].path) for copy in copies[:3]]
        assert filled == [("a_tiles", (0,)), ("b_tiles", (0,)), ("a_tiles", (1,))]
        assert sum(copy.end <= first_use.end for copy in copies) >= 2 * min(buffers, 3)  # the producer runs ahead
        text = partitions(kernel)
        between = [e for e in events if e.cause is not None and e.start < e.end <= STEPS]
        assert text.count("→") == sum(events[e.cause].lane != e.lane for e in between if e.cause is not None)


def test_an_inner_loop_that_was_unrolled_into_its_outer_loop_is_unrolled(cases: Cases) -> None:
    assert phrases(cases.kernels("stages_agree")["6K4F5"], "loop@204") == ["serial", "pipelined(3)", *2 * ["unrolled"]]


def test_copies_of_a_body_are_equal_only_with_loads_of_their_own(cases: Cases) -> None:
    for entry in ("BON37", "LSCHY"):  # one operand's loads all come first, the other's are spread over the copies
        expected = ["clustered", "clustered", "clustered ×4", "staggered(1)"]
        assert phrases(cases.kernels("stages_agree")[entry], "loop@40") == expected


def test_a_helper_called_from_two_loops_is_two_statements(cases: Cases) -> None:
    kernel = cases.kernels("stages_agree")["PRNRT"]
    for loop in ("loop@89", "loop@94"):
        assert phrases(kernel, loop)[1:] == 3 * ["partly pipelined(3)"]


def test_a_peeled_iteration_without_computes_adds_nothing_to_the_distance(cases: Cases) -> None:
    assert phrases(cases.kernels("stages_agree")["HZPJF"], "loop@32") == ["serial", *3 * ["pipelined(1)"]]


@pytest.mark.parametrize("entry", ["WXU45", "F5YJC", "OOIAY"])
def test_a_loop_that_waits_for_a_flag_computes_nothing(cases: Cases, entry: str) -> None:
    assert set(phrases(cases.kernels("stages_agree")[entry], "loop@215")) == {"no-compute"}


def test_each_kernel_of_a_binary_has_its_own_facts_and_main_loop(cases: Cases) -> None:
    kernels = cases.kernels("several_kernels")  # a matmul in cuTile for two tiles, in one cubin of sm_90
    main_loops = []
    for kernel in kernels.values():
        assert kernel.resources.registers.value == 255  # cuobjdump --dump-resource-usage
        assert (kernel.contradictions, codes(kernel)) == ((), [])
        assert kernel.principal_region is not None
        main_loops.append((kernel.artifact.name[-4:], kernel.principal_region.matrix))
    assert sorted(main_loops) == [("_I64", 4), ("_I64", 8)]  # of HGMMA: the other loops only poll barriers
    assert sorted(kernels)[0].endswith("I128_I128_I64")
