"""Facts are the same whether they are looked up, found here or found on all cores."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from saved import FIXTURES, Saved, saved_kernels
from typer.testing import CliRunner

from artifact_inspector import findings
from artifact_inspector.cli import app
from artifact_inspector.facts import fact_index, inspection, workers
from artifact_inspector.facts.fact_index import ReadOptions, read_kernels
from artifact_inspector.facts.kernel import KernelFacts, View, read_everything
from artifact_inspector.facts.kernel_reading import KernelReading
from artifact_inspector.facts.lazy import FactSource
from artifact_inspector.files import digests
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.files.digests import snapshot_files
from artifact_inspector.files.index import INDEX_VARIABLE, Index
from artifact_inspector.findings import Finding, Rule
from artifact_inspector.model import TritonVersion
from artifact_inspector.model.limits import NESTING
from artifact_inspector.report.cache_report import CacheReport
from artifact_inspector.report.console import to_text
from artifact_inspector.report.json import as_text
from artifact_inspector.report.json.cache import KernelPart, cache_document, kernel_document, kernel_text, write_cache

SOME = ("gemv_one_warp", "layer_norm", "softmax")


def verdict(kernel: KernelFacts) -> object:
    return kernel.verdict


def die_elsewhere(kernel: KernelFacts) -> None:
    if os.getpid() != MAIN and kernel.artifact.display_name.startswith("s"):
        os._exit(9)


MAIN = os.getpid()


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of a few kernels."""
    place = tmp_path_factory.mktemp("some")
    for name in SOME:
        shutil.copytree(FIXTURES / "3.6.0" / "sm_75" / name, place / name)
    return place


@pytest.fixture
def cache(some: Path, tmp_path: Path) -> Path:
    """Some kernels that a test may change."""
    return Path(shutil.copytree(some, tmp_path / "cache"))


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "facts.sqlite3"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each kernel is read."""
    counts: Counter[str] = Counter()
    real = KernelReading.__init__

    def counted(self: KernelReading, artifact: Artifact, *options: Any) -> None:
        counts[artifact.directory] += 1
        real(self, artifact, *options)

    monkeypatch.setattr(KernelReading, "__init__", counted)
    return counts


def recall(cache: Path, index: Path | None, view: View | None = verdict, **options: Any) -> list[KernelFacts]:
    opened = None if index is None else lambda: Index(index, print)
    how = ReadOptions(index=opened, **{"cores": 1, **options})
    return list(read_kernels(open_cache(cache).entries, view, how))


def facts_of(artifact: Artifact, source: FactSource) -> KernelFacts:
    return KernelFacts.on_demand(source, artifact=artifact)


def entries(index: Path) -> int:
    with Index(index, print) as kept:
        stats = kept.stats()
    assert stats is not None
    return stats.entries


def test_what_was_found_once_is_not_found_again(cache: Path, index: Path, read: Counter[str]) -> None:
    first = [kernel.verdict for kernel in recall(cache, index)]
    assert set(read.values()) == {1}
    assert [kernel.verdict for kernel in recall(cache, index)] == first
    assert set(read.values()) == {1}
    assert [kernel.verdict for kernel in recall(cache, None)] == first


def test_a_kernel_is_the_same_looked_up_as_found(cache: Path, index: Path, read: Counter[str]) -> None:
    recall(cache, index, None)
    read.clear()
    found = recall(cache, index, None)
    assert read == {}
    assert found == [inspection.inspect_artifact(entry) for entry in open_cache(cache).entries]


@pytest.mark.long
def test_equal_kernels_are_read_once_and_keep_their_own_paths(
    cache: Path, index: Path, read: Counter[str], tmp_path: Path
) -> None:
    for file in cache.rglob("*.ptx"):
        file.write_text("no PTX at all {")
    for number in range(2):
        shutil.copytree(cache / SOME[0], cache / f"again{number}")
    found = recall(cache, index, None)
    assert (read.total(), len(found)) == (len(SOME), len(SOME) + 2)
    for kernels in (found, recall(cache, index, None), recall(cache, index, None, packs=True)):
        assert all(kernels)
        for kernel in kernels:
            directory = kernel.artifact.directory
            assert kernel == inspection.inspect_artifact(kernel.artifact)
            assert {facts.file.rpartition("/")[0] for facts in kernel.stages.values()} == {directory}
            assert {problem.path.rpartition("/")[0] for problem in kernel.problems} == {directory}
    assert entries(index) == len(SOME)


PARTITIONED = [kernel for kernel in saved_kernels() if "warp_speciali" in kernel.path][:2]


@pytest.mark.parametrize("kernel", [*saved_kernels()[::9], *PARTITIONED], ids=lambda kernel: kernel.path)
def test_facts_survive_being_stored(kernel: Saved) -> None:
    source = FactSource(kernel.artifact, b"")
    read_everything(facts_of(kernel.artifact, source))
    again = FactSource(kernel.artifact, source.text())
    assert facts_of(kernel.artifact, again) == kernel.facts
    assert not again.is_changed


@pytest.mark.parametrize("is_stored", [False, True])
def test_facts_that_are_packed_after_a_view_are_equal_when_read_again(
    some: Path, tmp_path: Path, is_stored: bool
) -> None:
    options = ReadOptions(index=(lambda: Index(tmp_path / "facts.sqlite3", print)) if is_stored else None, cores=1)
    artifacts = open_cache(some).entries
    whole = [*read_kernels(artifacts, None, options)]
    packed = [*read_kernels(artifacts, CacheReport.view, replace(options, packs=True))]
    assert all("stages" in kernel.__dict__ for kernel in whole)
    assert not any("stages" in kernel.__dict__ for kernel in packed)
    assert [kernel.problems for kernel in packed] == [kernel.problems for kernel in whole]
    assert packed == whole


def test_a_fact_that_was_not_asked_for_before_is_found_and_kept_with_the_others(
    cache: Path, index: Path, read: Counter[str]
) -> None:
    recall(cache, index)
    read.clear()
    kernels = recall(cache, index, lambda kernel: kernel.pipelines)
    assert set(read.values()) == {1}
    read.clear()
    again = recall(cache, index, lambda kernel: (kernel.pipelines, kernel.verdict))
    assert read == {}
    assert [kernel.pipelines for kernel in again] == [kernel.pipelines for kernel in kernels]


def test_a_stored_fact_that_cannot_be_read_is_found_anew(cache: Path) -> None:
    artifact = open_cache(cache).entries[0]
    source = FactSource(artifact, b"")
    kernel = facts_of(artifact, source)
    first = (kernel.verdict, kernel.pipelines)
    for other in (b"", b"[", b'["x"]', b"12", b'{"a": 1}', b"[[1, 2, 3]]", b"[" * 9999):
        damaged = b"\n".join(line if at == 0 or at % 2 else other for at, line in enumerate(source.text().split(b"\n")))
        again = facts_of(artifact, FactSource(artifact, damaged))
        assert (again.verdict, again.pipelines) == first


def test_facts_that_no_view_can_show_are_found_anew(cache: Path, index: Path, read: Counter[str]) -> None:
    first = recall(cache, index)
    read.clear()
    refused: list[KernelFacts] = []

    def view(kernel: KernelFacts) -> object:
        if not refused:
            refused.append(kernel)
            raise KeyError("matrix")
        return verdict(kernel)

    again = recall(cache, index, view)
    assert [verdict(kernel) for kernel in again] == [verdict(kernel) for kernel in first]
    assert list(read.values()) == [1]
    with pytest.raises(KeyError):  # of its files it is a fault
        recall(cache, None, lambda kernel: {}["matrix"])


def test_facts_of_another_form_are_found_anew(cache: Path) -> None:
    artifact = open_cache(cache).entries[0]
    for text in (b"", b"\xff\xfe", b'artifact-inspector facts 99\nprincipal\n"x"', b"no facts"):
        assert facts_of(artifact, FactSource(artifact, text)).principal != "x"


def test_a_changed_file_is_read_again_and_no_other(cache: Path, index: Path, read: Counter[str]) -> None:
    recall(cache, index)
    read.clear()
    changed = next(entry for entry in open_cache(cache).entries if "ptx" in entry.files)
    path = changed.files["ptx"]
    assert isinstance(path, Path)
    stat = path.stat()
    path.write_bytes(path.read_bytes().replace(b"add", b"mul", 1))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    recall(cache, index)
    assert read == {changed.directory: 1}


def test_a_file_that_goes_is_seen(cache: Path, index: Path, read: Counter[str]) -> None:
    recall(cache, index)
    read.clear()
    gone = next(entry for entry in open_cache(cache).entries if "ttir" in entry.files)
    gone.files["ttir"].unlink()  # type: ignore[union-attr]
    recall(cache, index)
    assert read == {gone.directory: 1}


def test_another_version_of_this_package_finds_for_itself(
    cache: Path, index: Path, read: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recall(cache, index)
    monkeypatch.setattr("artifact_inspector.files.digests.package_digest", lambda **_: b"another")
    recall(cache, index)
    assert set(read.values()) == {2}


def test_what_is_disassembled_is_not_kept(cache: Path, index: Path) -> None:
    recall(cache, index, disassemble=lambda *_: "")
    assert not index.exists()


@pytest.mark.parametrize("step", [digests._MAX_TIMESTAMP_STEP, 0])
def test_what_was_written_while_it_was_read_is_not_kept(
    step: int, cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "_MAX_TIMESTAMP_STEP", step)

    def write(kernel: KernelFacts) -> None:
        path = kernel.artifact.files["ttir"]
        assert isinstance(path, Path)
        assert kernel.stages
        path.write_bytes(path.read_bytes() + b"\n")

    recall(cache, index, write)
    assert entries(index) == 0


def test_what_lies_there_for_long_is_not_read_again_to_be_kept(
    cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: Counter[bytes] = Counter()
    real = digests.snapshot_files

    def state_of_files(artifact: Artifact) -> digests.FilesSnapshot | None:
        counted[artifact.hash.encode()] += 1
        return real(artifact)

    monkeypatch.setattr(digests, "snapshot_files", state_of_files)
    monkeypatch.setattr(fact_index, "snapshot_files", state_of_files)
    recall(cache, index)
    assert set(counted.values()) == {2}
    monkeypatch.setattr(digests, "_MAX_TIMESTAMP_STEP", 0)
    counted.clear()
    with Index(index, print) as kept:
        kept.clear()
    recall(cache, index)
    assert set(counted.values()) == {1}
    assert entries(index) == len(counted)


def test_problems_are_looked_up_with_the_facts(cache: Path, index: Path, read: Counter[str]) -> None:
    broken = next(entry for entry in open_cache(cache).entries if "ptx" in entry.files)
    broken.files["ptx"].write_text("no PTX at all {")  # type: ignore[union-attr]
    first = [kernel.problems for kernel in recall(cache, index)]
    assert any(first)
    read.clear()
    assert [kernel.problems for kernel in recall(cache, index)] == first
    assert read == {}


def test_kernels_on_all_cores_are_those_of_one_in_the_same_order(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORTHWHILE", 0)
    assert recall(cache, None, None, cores=3) == recall(cache, None, None)


def test_a_process_that_is_killed_costs_no_kernel(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORTHWHILE", 0)
    names = [entry.display_name for entry in open_cache(cache).entries]
    assert any(name.startswith("s") for name in names)
    assert [one.artifact.display_name for one in recall(cache, None, die_elsewhere, cores=2)] == names


def test_the_largest_of_a_window_comes_first() -> None:
    sizes = {place: place % 7 for place in range(200)}
    turn = workers._order_by_size(list(range(200)), sizes)
    assert sorted(turn) == list(range(200))
    assert [sizes[place] for place in turn[:12]] == [6] * 9 + [5] * 3
    assert max(turn[:64]) < 64


def test_small_caches_start_no_processes(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORTHWHILE", 10**12)
    processes: set[int] = set()
    recall(cache, None, lambda _: processes.add(os.getpid()), cores=4)
    assert processes == {os.getpid()}


# -- the commands ----------------------------------------------------------------------


def run(*arguments: object, home: Path, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(home), INDEX_VARIABLE: "", "COLUMNS": "140"}
    command = [sys.executable, "-m", "artifact_inspector", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, timeout=60, preexec_fn=before
    )


@pytest.mark.parametrize("options", [(), ("--json",), ("--json", "--on", "sm_90"), ("--on", "sm_90")])
def test_a_second_run_prints_the_same(some: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    words = [str(some), *options]
    plain = CliRunner(env={"COLUMNS": "140"}).invoke(app, words).stdout
    kept = CliRunner(env={"COLUMNS": "140", "XDG_CACHE_HOME": str(tmp_path), INDEX_VARIABLE: ""})
    first, second = (run(*words, home=tmp_path) if not options else kept.invoke(app, words) for _ in range(2))
    assert first.stdout == second.stdout == plain
    assert first.stderr == second.stderr == ""
    assert (tmp_path / "artifact-inspector" / "facts.sqlite3").exists()


def imported(cache: Path, home: Path, switch: str = "", *options: str) -> str:
    """What a list of a cache, or what options ask for, loads of parsers and of what reads binaries."""
    code = (
        "import sys\nfrom artifact_inspector.cli import app\n"
        "try:\n    app(sys.argv[1:], prog_name='inspect-kernel')\nexcept SystemExit:\n    pass\n"
        "names = [n for n in sys.modules if n.startswith(('artifact_inspector.formats', 'artifact_inspector.files.elf', 'networkx'))]\n"
        "print(names, file=sys.stderr)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(home), INDEX_VARIABLE: switch}
    words = [sys.executable, "-c", code, str(cache), *options]
    answer = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    assert "kernel" in answer.stdout
    return answer.stderr


@pytest.mark.long
def test_a_second_run_imports_no_parser(some: Path, tmp_path: Path) -> None:
    run(some, home=tmp_path)
    assert imported(some, tmp_path) == "[]\n"


@pytest.mark.long
def test_a_picture_of_facts_that_are_known_imports_no_parser(tmp_path: Path) -> None:
    cache = FIXTURES / "3.2.0" / "sm_80" / "matmul_grouped"
    first, second = (imported(cache, tmp_path, "", "--svg", "occupancy") for _ in range(2))
    assert "artifact_inspector.formats.ptx" in first
    assert second == "[]\n"


@pytest.mark.long
def test_a_cache_without_binaries_loads_nothing_that_reads_them(tmp_path: Path) -> None:
    assert "files.elf" in imported(FIXTURES / "2.1.0" / "sm_80", tmp_path, "off")
    texts = imported(FIXTURES / "3.2.0" / "sm_80", tmp_path, "off")
    assert "artifact_inspector.formats.ptx" in texts
    assert "files.elf" not in texts


def test_what_is_not_read_is_not_read_for_the_index_either(tmp_path: Path) -> None:
    entry = Path(shutil.copytree(FIXTURES / "3.6.0" / "sm_75" / "softmax", tmp_path / "cache"))
    (text,) = entry.rglob("*.ttir")
    text.unlink()
    text.symlink_to("/proc/kmsg")
    (text,) = entry.rglob("*.llir")
    os.truncate(text, 1 << 40)
    resource = pytest.importorskip("resource")
    most = (1 << 30, 1 << 30)
    answer = run(entry, home=tmp_path, before=lambda: resource.setrlimit(resource.RLIMIT_AS, most))
    assert (answer.returncode, answer.stderr.count("Traceback")) == (0, 0)
    assert "1048576 MiB" in answer.stdout


def test_other_bounds_and_another_record_are_another_key(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (entry,) = open_cache(cache / SOME[0]).entries
    found = [snapshot_files(entry), snapshot_files(replace(entry, triton_version=TritonVersion("2.1")))]
    monkeypatch.setenv(NESTING.variable, "7")
    found.append(snapshot_files(entry))
    assert len({state.digest for state in found if state is not None}) == 3


@pytest.mark.long
def test_without_the_index_nothing_is_left_behind(some: Path, tmp_path: Path) -> None:
    assert run(some, "--no-index", home=tmp_path).returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_home_that_cannot_be_written_costs_one_line(some: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("")
    answer = run(some, home=home)
    assert answer.returncode == 0
    assert answer.stdout == CliRunner(env={"COLUMNS": "140"}).invoke(app, [str(some)]).stdout
    assert answer.stderr.startswith("Ignoring the index of facts: ")
    assert answer.stderr.count("\n") == 1


@pytest.mark.long
def test_the_index_can_be_asked_and_cleared(some: Path, tmp_path: Path) -> None:
    run(some, home=tmp_path)
    kernels = len(open_cache(some).entries)
    assert run("--index-info", home=tmp_path).stdout.startswith(f"{kernels} kernels, ")
    assert run("--clear-index", home=tmp_path).stdout.startswith("0 kernels, ")
    assert run("--index-info", home=tmp_path).stdout.startswith("0 kernels, 0.0 MB, in ")


def test_a_streamed_document_is_the_whole_one(some: Path, tmp_path: Path) -> None:
    for name in (some, FIXTURES / "3.2.0" / "gfx942" / "gemv_splitk", tmp_path):
        found = open_cache(name)
        kernels = [inspection.inspect_artifact(entry) for entry in found.entries]
        pieces: list[str] = []
        texts = (KernelPart(True, x.problems, kernel_text(kernel_document(x), "utf-8")) for x in kernels)
        write_cache(found, texts, "utf-8", pieces.append)
        assert "".join(pieces) == as_text(cache_document(found, kernels), "utf-8")
        json.loads("".join(pieces))


def test_a_kept_document_follows_directories_and_encodings(
    some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(INDEX_VARIABLE, "")
    cache = tmp_path / "cache"
    shutil.copytree(next(some.rglob("*.ttir")).parent, cache / "first")
    for rename, charset in (("first", "utf-8"), ("second", "utf-8"), ("über", "utf-8"), ("über", "ascii")):
        next(cache.iterdir()).rename(cache / rename)
        runner = CliRunner(charset=charset)
        kept = [runner.invoke(app, [str(cache), "--json"]).stdout for _ in range(2)]
        assert kept == [runner.invoke(app, [str(cache), "--json", "--no-index"]).stdout] * 2
        assert json.loads(kept[0])["kernels"][0]["directory"] == rename


@pytest.mark.parametrize(
    "words",
    [
        *("", "diff", "--json"),
        *(pytest.param(one, marks=pytest.mark.long) for one in ("findings", "matrix", "baseline", "check")),
    ],
)
def test_a_second_run_of_a_command_reads_no_kernel(
    words: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Counter[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(INDEX_VARIABLE, "")
    recorded = tmp_path / "recorded.json"
    assert CliRunner().invoke(app, ["baseline", str(cache), "-o", str(recorded)]).exit_code == 0
    ptx = next(cache.rglob("*.ptx"))
    ptx.write_text(ptx.read_text().replace("ld.global", "ld.volatile.global"))
    arguments = {
        "": [str(cache)],
        "--json": [str(cache), "--json"],
        "matrix": ["matrix", str(cache), "softmax"],
        "diff": ["diff", str(cache), str(FIXTURES / "3.6.0" / "sm_80" / "softmax")],
        "check": ["check", str(cache), "-b", str(recorded)],
    }.get(words, [words, str(cache)])
    arguments += ["--across", "target"] if words == "diff" else []
    first = CliRunner().invoke(app, arguments)
    assert read
    read.clear()
    second = CliRunner().invoke(app, arguments)
    assert (second.exit_code, second.stdout) == (first.exit_code, first.stdout)
    assert not read


def test_a_kernel_that_was_read_leaves_no_cycles() -> None:
    kernels = [saved.artifact for saved in saved_kernels()[::20]]
    gc.collect()
    gc.disable()
    try:
        for artifact in kernels:
            inspection.inspect_artifact(artifact)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_the_row_of_a_kernel_is_made_once(cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Counter[str] = Counter()

    real = findings._in_order

    def found(ranked: Iterable[tuple[Rule, Finding]], kernel: KernelFacts | None = None) -> tuple[Finding, ...]:
        if kernel is not None:
            made[kernel.artifact.directory] += 1
        return real(ranked, kernel)

    recall(cache, index, CacheReport.view)
    monkeypatch.setattr(findings, "_in_order", found)
    kernels = recall(cache, index, CacheReport.view)
    assert to_text(CacheReport(open_cache(cache), kernels, is_narrowed=False), 200)
    assert made == Counter(kernel.artifact.directory for kernel in kernels)
