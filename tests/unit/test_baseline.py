"""A baseline: what is kept of a kernel, how it is written, and what a later cache is held against it."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from saved import FIXTURES, saved

from artifact_inspector.api.baseline_records import record_kernels
from artifact_inspector.comparison.baseline import Baseline, compare_with_baseline, lines_of, record
from artifact_inspector.comparison.corpus import Corpus, Degree
from artifact_inspector.comparison.matching import Axis
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.facts.inspection import inspect_artifact, inspect_cache
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.files.index import Index
from artifact_inspector.report.corpus import describe_unmatched
from artifact_inspector.report.json.baseline import baseline_text, recorded_text
from artifact_inspector.report.json.baseline_reading import _share_equal, parse_baseline
from artifact_inspector.vocabulary.fact import Sign
from artifact_inspector.vocabulary.rows import summarise

MATMUL = FIXTURES / "3.6.0" / "sm_80" / "matmul_grouped"


def recorded(path: Path) -> Baseline:
    """A baseline of a cache that has been written and read again."""
    records = [record(kernel, lambda _: None) for kernel in inspect_cache(open_cache(path))]
    return parse_baseline("".join(baseline_text(map(recorded_text, records))), "b.json")


def held(baseline: Baseline, path: Path, **arguments: Any) -> Corpus:
    return compare_with_baseline(baseline.kernels, open_cache(path).entries, inspect_artifact, **arguments)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    shutil.copytree(MATMUL, tmp_path / "cache")
    return tmp_path / "cache"


def edit(cache: Path, suffix: str, old: str, new: str) -> None:
    (file,) = cache.rglob(f"*.{suffix}")
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def edit_all(cache: Path) -> None:
    for file in cache.rglob("*.ptx"):
        file.write_text(file.read_text().replace("cp.async.wait_group \t4", "cp.async.wait_group \t0"))


def test_texts_of_many_kernels_are_kept_once() -> None:
    """10,000 kernels repeat a few words in 300,000 rows: 201 MiB for 354, and 158 with one record for equal rows."""
    kernel = saved("3.6.0/sm_80/matmul_grouped").facts
    document = json.loads("".join(baseline_text([recorded_text(record(kernel, lambda _: None))])))
    document["kernels"] *= 2
    first, second = parse_baseline(json.dumps(document), "b.json").kernels
    assert [row.key for row in first.summary.rows] == [row.key for row in second.summary.rows]
    assert all(a.label is b.label for a, b in zip(first.summary.rows, second.summary.rows, strict=True))


def test_equal_rows_of_many_kernels_are_one_record_while_they_are_read() -> None:
    rows = [{"key": "a.b", "value": value, "step": ""} for value in (1, True, 1.0, "1", None)]
    seen: dict[object, object] = {}
    first, second = ([_share_equal(seen, dict(row)) for row in rows] for _ in range(2))
    assert [*map(repr, first)] == [*map(repr, rows)]  # 1, True and 1.0 are equal, but not the same value
    assert all(a is b for a, b in zip(first, second, strict=True))
    for row in ({"key": [], "value": 1}, {"key": "a", "value": [1]}, {"key": "a"}):  # as it is, for the reader to judge
        assert _share_equal(seen, dict(row)) == row


def test_what_is_written_reads_as_what_was_recorded() -> None:
    kernel = saved("3.6.0/sm_80/matmul_grouped").facts
    (found,) = recorded(MATMUL).kernels
    assert found.summary == summarise(kernel)
    assert found.target == "sm_80"
    assert found.source == "matmul_grouped.py"
    assert (found.program, found.options) == (
        kernel.program._replace(location=None, arguments=()) if kernel.program else None,
        summarise(kernel).options,
    )


def test_records_are_kept_without_the_path_of_their_source(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(MATMUL, cache / "copy")  # equal but for the directory, which is part of no record
    artifacts, read = open_cache(cache).entries, list[str]()

    def inspect(some: Sequence[Artifact]) -> Iterator[KernelFacts]:
        for artifact in some:
            read.append(artifact.directory)
            yield inspect_artifact(artifact)

    def text(find: Callable[[str], str | None]) -> str:
        records = record_kernels(artifacts, inspect, find, lambda: Index(tmp_path / "index", print), lambda _: True)
        return "".join(baseline_text(part.text for part in records))

    first = text(lambda _: None)
    assert first == "".join(
        baseline_text(recorded_text(record(inspect_artifact(x), lambda _: None)) for x in artifacts)
    )
    assert (len(read), text(lambda _: None)) == (2, first)
    assert text(lambda _: 'a "path".py') == first.replace('"matmul_grouped.py"', json.dumps('a "path".py'))
    assert len(read) == 2


def test_every_fact_stands_on_a_line_of_its_own() -> None:
    kernel = saved("3.6.0/sm_80/matmul_grouped").facts
    lines = "".join(baseline_text(map(recorded_text, [record(kernel, lambda _: None)]))).splitlines()
    rows = [line.strip().rstrip(",") for line in lines if '{"key"' in line]
    assert [json.loads(row)["key"] for row in rows] == [row.key for row in summarise(kernel).rows]


def test_the_source_is_named_from_the_working_tree_where_it_is_there() -> None:
    kernel = saved("3.6.0/sm_80/matmul_grouped").facts
    asked: list[str] = []

    def find(file: str) -> str:
        asked.append(file)
        return "kernels/here.py"

    assert record(kernel, find).source == "kernels/here.py"
    assert asked[0].endswith("/matmul_grouped.py")


def test_a_cache_held_against_its_own_baseline_is_as_recorded_and_is_not_inspected_again() -> None:
    corpus = compare_with_baseline(
        recorded(MATMUL).kernels, open_cache(MATMUL).entries, lambda _: pytest.fail("inspected")
    )
    assert [change.degree for change in corpus.changes] == [Degree.BENIGN]
    assert corpus.failures(["any"]) == ()


def test_kernels_that_cannot_be_told_apart_are_as_recorded_while_they_are(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        shutil.copytree(MATMUL, tmp_path / name)
    corpus = held(recorded(tmp_path), tmp_path)
    assert [change.degree for change in corpus.changes] == [Degree.BENIGN] * 3
    assert corpus.failures(["any"]) == ()


def test_a_kernel_that_cannot_be_told_from_others_shuts_the_gate_of_those_gone(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(MATMUL, tmp_path / name)
    baseline = recorded(tmp_path)
    edit_all(tmp_path)
    corpus = held(baseline, tmp_path)
    assert corpus.matching.ambiguous
    assert corpus.failures(["verdict", "gone"]) == ("gone",)
    assert next(describe_unmatched(corpus)).startswith("not compared: 2 in the baseline match 2 in the cache\n")


def test_kernels_without_metadata_that_cannot_be_paired_are_named_with_that_reason(tmp_path: Path) -> None:
    for name in ("old/one", "old/two"):
        shutil.copytree(MATMUL, tmp_path / name)
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    for metadata in (tmp_path / "old").rglob("*.json"):
        metadata.unlink()
    edit_all(tmp_path / "new")
    text = next(describe_unmatched(held(recorded(tmp_path / "old"), tmp_path / "new")))
    reason = "(those in the baseline have no metadata, so their options are unknown)"
    assert text.startswith(f"not compared: 2 in the baseline match 2 in the cache {reason}\n")


def test_shifted_lines_and_renamed_values_are_as_recorded(cache: Path) -> None:
    edit(cache, "ttgir", "%accumulator", "%acc")
    edit(cache, "ttir", "module", "\n\nmodule")
    corpus = held(recorded(MATMUL), cache)
    assert [change.degree for change in corpus.changes] == [Degree.BENIGN]


def test_the_path_that_a_binary_names_is_as_recorded_and_its_code_is_not(cache: Path) -> None:
    (cubin,) = cache.rglob("*.cubin")
    content = cubin.read_bytes()
    assert b"matmul_grouped.py" in content
    cubin.write_bytes(content.replace(b"matmul_grouped.py", b"matmul_elsewhe.py"))
    assert [change.degree for change in held(recorded(MATMUL), cache).changes] == [Degree.BENIGN]
    code = ELFFile(io.BytesIO(content)).get_section_by_name(".text.matmul_kernel")["sh_offset"]
    cubin.write_bytes(content[:code] + bytes([content[code] ^ 1]) + content[code + 1 :])
    assert [change.degree for change in held(recorded(MATMUL), cache).changes] != [Degree.BENIGN]


def test_a_wait_that_leaves_less_in_flight_is_found_and_placed(cache: Path) -> None:
    edit(cache, "ptx", "cp.async.wait_group \t4", "cp.async.wait_group \t0")
    (change,) = held(recorded(MATMUL), cache).changes
    assert change.degree is Degree.CHANGED
    depth = next(fact for fact in change.facts if fact.key == "loop1.pipeline.depth")
    assert (depth.category, depth.left, depth.right) == ("waits", 4, 0)
    assert change.failures(["waits"]) == ("waits",)
    assert change.failures(["mma", "shared"]) == ()
    assert change.lines["loop1"] == 81


def test_a_copy_of_a_body_that_went_shuts_no_gate(cache: Path) -> None:
    """A pipelined inner loop leaves matrix instructions in the outer one; without the pipeline, they are gone."""
    records = [record(kernel, lambda _: None) for kernel in inspect_cache(open_cache(cache))]
    document = json.loads("".join(baseline_text(map(recorded_text, records))))
    rows = document["kernels"][0]["facts"]
    of_loop = [row for row in rows if row["key"].startswith("loop1.mma")]
    copies = [dict(row, key=row["key"].replace("loop1", "loop2"), region="loop2") for row in of_loop]
    assert copies
    rows += copies
    edit_all(cache)
    (change,) = held(parse_baseline(json.dumps(document), "b.json"), cache).changes
    assert {row["key"] for row in copies}.isdisjoint(fact.key for fact in change.facts)
    assert change.failures(["waits", "mma"], is_strict=False) == ("waits",)


def test_a_fact_that_is_not_known_any_more_shuts_its_gate(cache: Path) -> None:
    (ptx,) = cache.rglob("*.ptx")
    ptx.unlink()
    (cubin,) = cache.rglob("*.cubin")
    cubin.unlink()
    (change,) = held(recorded(MATMUL), cache).changes
    spills = next(fact for fact in change.facts if fact.key == "spills")
    assert (spills.left, spills.right, spills.reason) == (0, None, "unknown now")
    assert {"spills", "waits", "mma"} <= set(change.failures(["spills", "waits", "mma"]))
    decisive = change.failing_headline(["spills"])
    assert decisive is not None
    assert decisive.source is None
    assert not decisive.sentence.startswith("Worse")


def test_better_facts_do_not_outweigh_a_fact_that_became_unknown(tmp_path: Path) -> None:
    gemv = "sm_80/gemv_splitk"
    copy = tmp_path / "gemv"
    shutil.copytree(FIXTURES / "3.9.0" / gemv, copy)  # its loads are wider; a repository keeps no cubin of it
    for cubin in copy.rglob("*.cubin"):
        cubin.unlink()
    (change,) = held(recorded(FIXTURES / "3.6.0" / gemv), copy).changes
    assert change.direction is Sign.BETTER
    gates = ("spills", "registers", "occupancy")
    assert set(change.failures(gates, is_strict=False)) == set(gates)


def test_what_was_not_known_when_it_was_recorded_shuts_no_gate(cache: Path, tmp_path: Path) -> None:
    shutil.copytree(cache, tmp_path / "bare")
    (cubin,) = (tmp_path / "bare").rglob("*.cubin")
    cubin.unlink()
    (change,) = held(recorded(tmp_path / "bare"), cache).changes
    assert "spills" not in change.categories
    assert "registers" not in change.categories


def test_kernels_gone_and_new_are_named() -> None:
    corpus = held(recorded(FIXTURES / "3.6.0" / "sm_80" / "softmax"), MATMUL)
    assert [x.artifact.display_name for x in corpus.matching.left] == ["softmax_kernel"]
    assert [x.artifact.display_name for x in corpus.matching.right] == ["matmul_kernel"]
    assert corpus.failures(["gone", "new"]) == ("gone", "new")
    assert corpus.sides.left == "in the baseline"


def test_another_version_of_triton_may_differ_unasked() -> None:
    corpus = held(recorded(MATMUL), FIXTURES / "3.9.0" / "sm_80")
    assert corpus.matching.across == {Axis.VERSION}
    assert [change.right.artifact.triton_version for change in corpus.changes] == ["3.9.0"]


def test_another_target_may_not_unless_asked() -> None:
    with pytest.raises(UsageError, match=r"for sm_80, but the cache is for gfx942") as refusal:
        held(recorded(MATMUL), FIXTURES / "3.6.0" / "gfx942" / "matmul_grouped")
    assert "--across target" in str(refusal.value.remedy)
    corpus = held(recorded(MATMUL), FIXTURES / "3.6.0" / "gfx942" / "matmul_grouped", across=[Axis.TARGET])
    assert [change.right.target for change in corpus.changes] == ["gfx942"]


def test_an_empty_cache_has_lost_every_kernel(tmp_path: Path) -> None:
    corpus = held(recorded(MATMUL), tmp_path)
    assert corpus.failures(["gone"]) == ("gone",)


def test_regions_have_the_lines_that_their_code_stands_on() -> None:
    assert lines_of(saved("3.6.0/sm_80/matmul_grouped").facts)["loop1"] == 81
    assert lines_of(saved("3.2.0/sm_75/gemv_splitk").facts)["straight"] == 29


def test_no_version_is_named_where_a_baseline_names_none() -> None:
    with pytest.raises(CacheError) as refusal:
        parse_baseline('{"document": "baseline", "schema_version": 2}', "b.json")
    assert "None" not in str(refusal.value.remedy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "b.json is not JSON"),
        ("[" * 100_000, "b.json is nested too deeply"),
        ("[]", "b.json is not a baseline"),
        ('{"document": "cache", "schema_version": 1}', "b.json is not a baseline"),
        (
            '{"document": "baseline", "schema_version": 3, "generator": "9.9"}',
            r"has schema version 3, but inspect-kernel .* reads versions 1 to 2",
        ),
        ('{"document": "baseline", "schema_version": 1, "generator": ""}', "damaged: 'kernels' is missing"),
        ('{"document": "baseline", "schema_version": 1, "kernels": [3], "generator": ""}', "damaged"),
        ('{"document": "baseline", "schema_version": 1, "kernels": null, "generator": ""}', "damaged"),
    ],
)
def test_what_is_no_baseline_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(CacheError, match=message) as refusal:
        parse_baseline(text, "b.json")
    assert "inspect-kernel baseline CACHE -o baseline.json" in str(refusal.value.remedy)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", 3),
        ("target", "sm_80"),
        ("target", {"backend": "cuda", "arch": "80", "warp_size": float("inf")}),
        ("signature", [1]),
        ("options", []),
        ("digests", {"ptx": None}),
        ("facts", [{"key": "x"}]),
        ("facts", [{"key": "x", "category": "no such", "label": "", "unit": "", "step": "", "region": "", "value": 1}]),
        ("facts", [{"key": "x", "category": "mma", "label": "", "unit": "", "step": "", "region": "", "value": {}}]),
        ("triton_version", 3.6),
        ("num_warps", "four"),
        ("source", 1),
    ],
)
def test_a_damaged_record_is_refused(field: str, value: object) -> None:
    document: Any = json.loads(
        "".join(baseline_text(map(recorded_text, [record(saved("3.6.0/sm_80/softmax").facts, lambda _: None)])))
    )
    document["kernels"][0][field] = value
    with pytest.raises(CacheError, match="damaged"):
        parse_baseline(json.dumps(document), "b.json")


def test_what_was_recorded_at_an_early_stage_is_compared_at_that_stage(cache: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(cache, bare)
    for file in [file for suffix in ("llir", "ptx", "cubin") for file in bare.rglob(f"*.{suffix}")]:
        file.unlink()
    (change,) = held(recorded(bare), cache).changes
    assert (change.degree, change.facts) == (Degree.BENIGN, ())
    assert change.notes == ("the recorded kernel has no llir, assembly, binary",)
    (change,) = held(recorded(cache), bare).changes
    assert set(change.failures(["barriers", "waits", "loads"], is_strict=False)) == {"barriers", "waits", "loads"}


def test_findings_of_a_record_without_metadata_are_not_compared(cache: Path) -> None:
    records = [record(kernel, lambda _: None) for kernel in inspect_cache(open_cache(cache))]
    document = json.loads("".join(baseline_text(map(recorded_text, records))))
    (entry,) = document["kernels"]
    entry["options"] = {}
    for row in entry["facts"]:
        row["value"] = ["AI099"] if row["category"] == "findings" else row["value"]
    edit_all(cache)
    (change,) = held(parse_baseline(json.dumps(document), "b.json"), cache).changes
    assert change.failures(["findings"], is_strict=False) == ()
    assert "the left kernel has no metadata" in change.notes
