import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from saved import FIXTURES
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.files import cache as cache_module
from artifact_inspector.files.cache import (
    cache_in_memory,
    default_directory,
    open_cache,
    open_file,
    read_binary,
    read_stage,
)

HASH = "ebcf17115880ff712b93233e36f0c227c065b6e680ce7e27c3a184ee9d53a73a"
BASE64 = "-8XFxFYgP_cSuTIz428MInwGW25oDOfifDoYTunVOnO"
BASE32 = "5PHROEKYQD7XCK4TEM7DN4GCE7AGLNXGQDHH4J6DUGCO5HKTU45A"
V2_HASH = "0a5db79bc1b136172478597e28476610"
STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin")

# Lines as each release wrote them, shortened by keys that are not read.
METADATA = {
    "2.0": '{"num_warps": 4, "num_stages": 3, "ctime": {"ttir": 1795199249.7820735}, "shared": 33280, "name": "gemv_0d1d2d34d5d6d7c8d9c10d11c"}',
    "2.1": '{"num_warps": 4, "num_stages": 3, "constants": {"12": 1}, "debug": false, "arch": 80, "device_type": "cuda", "shared": 2112, "name": "gemv_0d1d2d34d5d6d7c8d9c10d11c"}',
    "2.2": '{"num_warps": 4, "num_ctas": 1, "num_stages": 3, "target": {"capability": 80, "num_warps": 4, "enable_fp_fusion": true}, "ENABLE_TMA": false, "device_type": "cuda", "shared": 4096, "name": "gemv_0d1d2d34d5d6d7c8d9c10d11c", "clusterDims": [1, 1, 1]}',
    "2.3": '{"target": ["cuda", 80], "num_warps": 4, "num_stages": 3, "cluster_dims": [1, 1, 1], "extern_libs": null, "shared": 4096, "name": "gemv_0d1d2d34de5de6de7c8de9c10de11c"}',
    "3.0/3.1": f'{{"hash": "{HASH}", "target": {{"backend": "cuda", "arch": 80, "warp_size": 32}}, "num_warps": 4, "num_stages": 3, "shared": 4096, "name": "gemv"}}',
    "3.2": f'{{"hash": "{HASH}", "target": {{"backend": "hip", "arch": "gfx942", "warp_size": 64}}, "num_warps": 4, "num_stages": 2, "sanitize_overflow": true, "arch": "gfx942", "shared": 4096, "name": "gemv"}}',
    "3.4.0": f'{{"hash": "{HASH}", "target": {{"backend": "cuda", "arch": 80, "warp_size": 32}}, "num_warps": 4, "num_stages": 3, "sanitize_overflow": true, "arch": "sm80", "triton_version": "3.4.0", "shared": 4096, "tmem_size": 0, "name": "gemv"}}',
    "3.9.0": f'{{"hash": "{HASH}", "target": {{"backend": "hip", "arch": "gfx942", "warp_size": 64}}, "num_warps": 4, "num_stages": 2, "triton_version": "3.9.0", "shared": 2048, "base_arch": "gfx942", "name": "gemv"}}',
}
DIRECTORIES = {"3.0/3.1": HASH, "3.2": BASE64}


def entry(directory: Path, stem: str = "gemv", metadata: str | None = METADATA["3.4.0"], stages=STAGES) -> Path:
    """One entry with every stage holding its own name, as text."""
    directory.mkdir(parents=True, exist_ok=True)
    for suffix in stages:
        (directory / f"{stem}.{suffix}").write_text(suffix)
    if metadata is not None:
        (directory / f"{stem}.json").write_text(metadata)
    return directory


def only(root: Path):
    cache = open_cache(root)
    assert len(cache.entries) == 1
    return cache.entries[0]


@pytest.mark.parametrize("version", METADATA)
def test_an_entry_of_every_release_says_what_its_metadata_says(tmp_path, version):
    directory = V2_HASH if version.startswith("2") else DIRECTORIES.get(version, BASE32)
    entry(tmp_path / directory, metadata=METADATA[version])
    found = only(tmp_path)
    written = json.loads(METADATA[version])
    assert found.triton_version == version
    assert found.directory == directory
    assert found.hash == (directory if version.startswith("2") else HASH)
    assert (found.name, found.display_name, found.stem) == (written["name"], "gemv", "gemv")
    assert (found.num_warps, found.num_stages) == (4, written["num_stages"])
    assert found.shared_bytes == written["shared"]
    assert found.state == "complete"
    assert found.metadata == written
    assert set(found.files) == {*STAGES, "json"}
    assert found.display_path("ptx") == f"{directory}/gemv.ptx"
    assert open_cache(tmp_path).problems == ()


@pytest.mark.parametrize(
    ("version", "arch"), [("2.1", "sm_80"), ("2.2", "sm_80"), ("2.3", "sm_80"), ("3.2", "gfx942"), ("3.9.0", "gfx942")]
)
def test_an_architecture_reads_the_same_whatever_the_release_wrote(tmp_path, version, arch):
    entry(tmp_path / "x", metadata=METADATA[version])
    assert only(tmp_path).target.arch == arch


def test_2_0_names_no_target_so_the_cubin_tells_where_its_ptx_is_clamped(tmp_path):
    directory = entry(tmp_path / V2_HASH, metadata=METADATA["2.0"])
    (directory / "gemv.ptx").write_text("//\n.version 7.5\n.target sm_86\n")
    assert only(tmp_path).target.arch == "sm_86"
    elf = bytearray(64)
    elf[:9] = b"\x7fELF\x02\x01\x01\x33\x07"
    elf[18:20], elf[48:52] = (190).to_bytes(2, "little"), (0x56055A).to_bytes(4, "little")
    (directory / "gemv.cubin").write_bytes(elf)
    assert only(tmp_path).target.arch == "sm_90"


def test_several_kernels_in_one_directory_are_told_apart_by_stem(tmp_path):
    entry(tmp_path / "x", "softmax", '{"num_warps": 2, "shared": 0, "name": "softmax"}')
    entry(tmp_path / "x", "matmul", '{"num_warps": 8, "shared": 0, "name": "matmul"}')
    assert [(a.name, a.num_warps) for a in open_cache(tmp_path).entries] == [("matmul", 8), ("softmax", 2)]


def test_files_go_by_stem_and_the_kernel_by_its_metadata(tmp_path):
    entry(
        tmp_path / "x",
        "_matmul_ogs",
        '{"num_warps": 4, "shared": 0, "triton_version": "3.6.0", "name": "_matmul_ogs_NNN_0d"}',
    )
    found = only(tmp_path)
    assert (found.stem, found.name, found.display_name) == ("_matmul_ogs", "_matmul_ogs_NNN_0d", "_matmul_ogs_NNN_0d")
    assert found.files["ptx"].name == "_matmul_ogs.ptx"


@pytest.mark.parametrize(
    ("stem", "name"), [("a.b.c", "a.b.c"), ("@kernel", "kernel"), ("größe", "größe"), ("ttir", "ttir")]
)
def test_any_stem_that_python_allows_is_a_kernel(tmp_path, stem, name):
    entry(tmp_path / "x", stem, None)
    assert (only(tmp_path).stem, only(tmp_path).name) == (stem, name)


@pytest.mark.parametrize("directory", [BASE64, "_" + BASE64[1:], ".hidden"])
def test_a_directory_is_an_entry_however_its_name_begins(tmp_path, directory):
    entry(tmp_path / directory)
    assert only(tmp_path).directory == directory


def test_one_entry_given_directly_is_a_cache_of_one(tmp_path, monkeypatch):
    directory = entry(tmp_path / V2_HASH, metadata=METADATA["2.1"])
    found = only(directory)
    assert (found.directory, found.display_path("ttir"), found.hash) == (".", "gemv.ttir", V2_HASH)
    monkeypatch.chdir(directory)
    assert only(Path()).hash == V2_HASH


@pytest.mark.parametrize("level", ["", "torchinductor_me", "torchinductor_me/triton", "torchinductor_me/triton/0"])
def test_inductors_copy_is_found_from_any_level(tmp_path, level):
    entry(tmp_path / "torchinductor_me/triton/0" / BASE32)
    entry(tmp_path / "torchinductor_me/triton/1" / BASE32) if not level.endswith("0") else None
    code = tmp_path / "torchinductor_me" / "ab"
    code.mkdir()
    (code / "cab.py").write_text("raise SystemExit")
    (code / "cab.best_config").write_text("{}")
    assert [a.hash for a in open_cache(tmp_path / level).entries] == [HASH] * (1 if level.endswith("0") else 2)


def test_what_python_leaves_beside_a_program_is_no_stranger(tmp_path):
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "k.cpython-311.pyc").touch()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").touch()
    assert [other.path for other in open_cache(tmp_path).others] == ["notes"]


def test_directories_more_than_sixty_four_levels_down_are_counted_first_and_not_read(tmp_path):
    deep = "/".join(map(str, range(64)))
    entry(tmp_path / deep)
    entry(tmp_path / deep / "64")
    cache = open_cache(tmp_path)
    assert [a.directory for a in cache.entries] == [deep]
    result = CliRunner().invoke(app, [str(tmp_path)])
    assert result.stderr.startswith(f"{tmp_path} is incomplete: 1 directories are nested more than 64 levels deep.")
    assert cache.problems == cache.missing == ((".", "1 directories are nested more than 64 levels deep"),)


def test_entries_are_sorted_by_name_target_and_hash_whatever_the_disk_says(tmp_path, monkeypatch):
    for directory, stem, version in (("c", "b", "2.1"), ("a", "b", "3.2"), ("d", "a", "2.1"), ("b", "b", "2.1")):
        entry(tmp_path / directory, stem, METADATA[version].replace("gemv", stem))
    order = [(a.display_name, a.target.arch, a.directory) for a in open_cache(tmp_path).entries]
    assert order == [("a", "sm_80", "d"), ("b", "gfx942", "a"), ("b", "sm_80", "b"), ("b", "sm_80", "c")]


def test_a_failed_compile_is_partial_and_no_problem(tmp_path):
    directory = entry(tmp_path / BASE32, metadata=None, stages=("source", "ttir", "ttgir"))
    (directory / "gemv.ttgir").write_text('#loc = loc("k.py":1:0)\nmodule attributes {ttg.target = "hip:gfx906"} {')
    found = only(tmp_path)
    assert (found.state, found.target.arch, found.hash) == ("partial", "gfx906", BASE32)
    assert (found.triton_version, found.num_warps, found.shared_bytes, found.metadata) == (None, None, None, {})
    assert open_cache(tmp_path).problems == ()


@pytest.mark.parametrize(
    ("stages", "state"),
    [
        (("cubin",), "binary-only"),
        (("cubin", "source"), "binary-only"),
        (("glir", "cubin"), "complete"),
        (("hsaco", "amdgcn"), "complete"),
    ],
)
def test_an_entry_without_text_stages_is_binary_only(tmp_path, stages, state):
    entry(tmp_path / "x", stages=stages)
    assert only(tmp_path).state == state


def test_two_vendors_dumped_on_top_of_each_other_are_two_kernels_and_one_problem(tmp_path):
    directory = entry(tmp_path / "dump", metadata=None, stages=("ttir", "llir", "cubin", "hsaco"))
    (directory / "gemv.ttgir").write_text('module attributes {"triton_gpu.target" = "hip:gfx942"} {')
    (directory / "gemv.ptx").write_text(".target sm_80")
    (directory / "gemv.amdgcn").write_text('.amdgcn_target "amdgcn-amd-amdhsa--gfx942"')
    cache = open_cache(tmp_path)
    assert {a.target.arch: set(a.files) for a in cache.entries} == {
        "gfx942": {"ttir", "ttgir", "llir", "amdgcn", "hsaco"},
        "sm_80": {"ptx", "cubin"},
    }
    assert {a.state for a in cache.entries} == {"partial"}
    assert [p.path for p in cache.problems] == ["dump"]
    assert "two vendors" in cache.problems[0].problem


def test_what_is_no_kernel_is_named_and_not_looked_into(tmp_path):
    entry(tmp_path / "k")
    for place in (
        "driver/cuda_utils.so",
        "driver3/hip_utils.cpython-311-x86_64-linux-gnu.so",
        "launcher/__triton_launcher.cpython-311-x86_64-linux-gnu.so",
        "launcher2/gemv.so",
        "tune/gemv.autotune.json",
        "k/lock",
        "k/gemv.ptx.tmp.pid_12_9f0c",
        "k/gemv.llir.tmp",
        "k/tmp.pid_77_ab/gemv.ttir",
        "old/gemv.hsaco_path",
        "notes/README.md",
        "list/manifest.json",
    ):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text("{}")
    (tmp_path / "empty").mkdir()
    cache = open_cache(tmp_path)
    assert [a.directory for a in cache.entries] == ["k"]
    assert cache.problems == ()
    assert {o.path: o.kind.split()[0] for o in cache.others} == {
        "driver/cuda_utils.so": "driver",
        "driver3/hip_utils.cpython-311-x86_64-linux-gnu.so": "driver",
        "launcher/__triton_launcher.cpython-311-x86_64-linux-gnu.so": "launcher",
        "launcher2/gemv.so": "launcher",
        "tune/gemv.autotune.json": "autotune",
        "k/lock": "lock",
        "k/gemv.ptx.tmp.pid_12_9f0c": "temporary",
        "k/gemv.llir.tmp": "temporary",
        "k/tmp.pid_77_ab": "temporary",
        "old/gemv.hsaco_path": "path",
        "notes": "directory",
        "list/manifest.json": "other",
        "empty": "empty",
    }


def test_paths_in_a_group_file_are_never_opened(tmp_path, monkeypatch):
    secret = tmp_path / "outside" / "secret.ptx"
    secret.parent.mkdir()
    secret.write_text("secret")
    directory = entry(tmp_path / "cache" / BASE32)
    group = directory / "__grp__gemv.json"
    group.write_text(json.dumps({"child_paths": {"gemv.ptx": str(secret), "x.ttir": "../../outside/secret.ptx"}}))
    opened = []
    opener = os.open
    monkeypatch.setattr(os, "open", lambda path, *a, **k: opened.append(path) or opener(path, *a, **k))
    found = only(tmp_path / "cache")
    assert read_stage(found, "ptx").source.text == "ptx"
    assert opened
    assert {path.parent for path in opened} == {directory}
    assert group not in opened


def test_nothing_in_a_cache_is_executed(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "boom"),))

    directory = entry(tmp_path / "cache" / "x")
    (directory / "gemv.pkl").write_bytes(pickle.dumps(Bomb()))
    (directory / "__init__.py").write_text(f"import os; os.mkdir({str(tmp_path / 'boom')!r})")
    only(tmp_path / "cache")
    assert not (tmp_path / "boom").exists()


def link(source: Path, to: Path, directory: bool = False) -> None:
    try:
        source.symlink_to(to, target_is_directory=directory)
    except (OSError, NotImplementedError):
        pytest.skip("no symbolic links here")


def test_links_to_directories_stay_closed_so_no_loop_and_no_way_out(tmp_path):
    entry(tmp_path / "outside" / "x", "leaked")
    entry(tmp_path / "cache" / "y")
    link(tmp_path / "cache" / "loop", tmp_path / "cache", directory=True)
    link(tmp_path / "cache" / "out", tmp_path / "outside", directory=True)
    link(tmp_path / "cache" / "dead", tmp_path / "nowhere")
    cache = open_cache(tmp_path / "cache")
    assert [a.directory for a in cache.entries] == ["y"]
    assert {o.path: o.kind for o in cache.others} == dict.fromkeys(("loop", "out"), "link to a directory, not followed")
    assert cache.problems == (("dead", "a broken link"),)


def test_a_link_to_a_cache_is_the_cache(tmp_path):
    entry(tmp_path / "cache" / "y")
    link(tmp_path / "link", tmp_path / "cache", directory=True)
    assert only(tmp_path / "link").directory == "y"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_not_opened(tmp_path):
    entry(tmp_path / "x")
    os.mkfifo(tmp_path / "x" / "other.json")
    assert only(tmp_path).stem == "gemv"
    assert open_cache(tmp_path).others == (("x/other.json", "not a regular file"),)


def test_an_unknown_stage_is_named_once_and_costs_nothing(tmp_path):
    entry(tmp_path / "x")
    entry(tmp_path / "x", "other")
    for name in ("gemv.vmfb", "other.vmfb", "notes.txt"):
        (tmp_path / "x" / name).write_text("?")
    cache = open_cache(tmp_path)
    assert [a.state for a in cache.entries] == ["complete", "complete"]
    assert cache.problems == (("x", "unknown stage .vmfb is ignored"),)
    assert {o.path for o in cache.others} == {"x/gemv.vmfb", "x/other.vmfb", "x/notes.txt"}


def test_launch_metadata_is_a_known_file_and_no_problem(tmp_path):
    entry(tmp_path / "x")
    (tmp_path / "x" / "gemv.launch_metadata").write_text("?")
    cache = open_cache(tmp_path)
    assert cache.problems == ()
    assert cache.others == (("x/gemv.launch_metadata", "launch metadata"),)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "unreadable JSON"),
        (METADATA["3.4.0"][:60].encode(), "unreadable JSON"),
        (b'\xff\xfe{"name": 1}\x80', "unreadable JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"[" * 1_000_000, "nested too deeply"),
        (b'{"shared": ' + b"9" * 10_000 + b"}", None),
    ],
)
def test_broken_metadata_costs_the_metadata_alone(tmp_path, content, said):
    entry(tmp_path / "good", "good")
    directory = entry(tmp_path / "bad", "bad")
    (directory / "bad.json").write_bytes(content)
    (directory / "bad.ptx").write_text(".target sm_75")
    cache = open_cache(tmp_path)
    assert [a.stem for a in cache.entries] == ["bad", "good"]
    bad = cache.entries[0]
    assert bad.target.arch == "sm_75"
    if said is not None:  # Python 3.10 before its limit on digits reads the last one as a number
        assert (bad.state, bad.name, bad.hash) == ("partial", "bad", "bad")
        assert [p.path for p in cache.problems] == ["bad/bad.json"]
        assert said in cache.problems[0].problem


@pytest.mark.parametrize("key", ["num_warps", "num_stages", "shared"])
@pytest.mark.parametrize("value", ['"4"', "4.5", "-1", "true", "[4]", "{}", "1e999"])
def test_a_number_of_the_wrong_type_is_absent_and_told(tmp_path, key, value):
    entry(tmp_path / "x", metadata=re.sub(rf'"{key}": \d+', f'"{key}": {value}', METADATA["3.4.0"]))
    found = only(tmp_path)
    values = {"num_warps": found.num_warps, "num_stages": found.num_stages, "shared": found.shared_bytes}
    assert values == {"num_warps": 4, "num_stages": 3, "shared": 4096} | {key: None}
    assert [p.path for p in open_cache(tmp_path).problems] == ["x/gemv.json"]
    assert key in open_cache(tmp_path).problems[0].problem


def test_nan_is_absent_and_told(tmp_path):
    entry(tmp_path / "x", metadata=METADATA["3.4.0"].replace('"shared": 4096', '"shared": NaN'))
    assert only(tmp_path).shared_bytes is None
    assert only(tmp_path).num_warps == 4
    assert "NaN" in open_cache(tmp_path).problems[0].problem


@pytest.mark.parametrize(
    "metadata", ['{"name": 7, "hash": [], "num_warps": null, "shared": null}', '{"name": "", "hash": ""}', "{}"]
)
def test_absent_and_odd_names_fall_back_to_stem_and_directory(tmp_path, metadata):
    entry(tmp_path / BASE32, metadata=metadata)
    found = only(tmp_path)
    assert (found.name, found.hash, found.num_warps) == ("gemv", BASE32, None)


def test_an_unknown_backend_is_told_and_the_stages_are_asked(tmp_path):
    entry(tmp_path / "x", metadata='{"target": {"backend": "xpu", "arch": "pvc"}, "num_warps": 4, "shared": 0}')
    assert only(tmp_path).target is None
    assert "xpu:pvc" in open_cache(tmp_path).problems[0].problem


def test_a_cache_of_an_intel_gpu_has_its_ir_and_names_its_binary(tmp_path):
    """As intel-xpu-backend-for-triton writes it: `spir_kernel` functions, `#ttig` layouts, a `.zebin`."""
    source = next((FIXTURES / "3.6.0" / "sm_80" / "matmul_square").iterdir())
    (tmp_path / source.name).mkdir()
    for suffix in ("ttir", "ttgir", "llir"):
        text = next(source.glob(f"*.{suffix}")).read_text()
        text = text.replace("cuda:80", "xpu").replace("ptx_kernel void", "spir_kernel void")
        text = text.replace("#ttg.nvidia_mma<{", "#ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, ")
        (tmp_path / source.name / f"k.{suffix}").write_text(text)
    (tmp_path / source.name / "k.zebin").write_bytes(b"\x7fELF")
    arch = {"architecture": 13136561920, "max_work_group_size": 1024, "gpu_subslice_count": 64}
    metadata = {"name": "k", "num_warps": 4, "shared": 0, "target": {"backend": "xpu", "arch": arch, "warp_size": 16}}
    (tmp_path / source.name / "k.json").write_text(
        json.dumps({**metadata, "hash": "f" * 64, "triton_version": "3.6.0"})
    )
    cache = open_cache(tmp_path)
    assert not cache.missing
    assert [(Path(path).name, kind) for path, kind in cache.others] == [
        ("k.zebin", "device binary of an Intel GPU, not read")
    ]
    (problem,) = cache.problems
    assert problem.problem.endswith("It is an Intel GPU: only TTIR, TTGIR and LLIR are read.")
    (kernel,) = inspect_cache(cache)
    assert [stage.value for stage in kernel.stages] == ["ttir", "ttgir", "llir"]
    assert {region.verdict for region in kernel.last.regions} >= {"serial"}
    assert kernel.resources.registers.value is None


def test_names_that_would_write_to_the_terminal_are_made_printable(tmp_path):
    entry(tmp_path / "x", metadata='{"name": "k\\u001b[31m\\ud800\\n", "num_warps": 4, "shared": 0}')
    assert only(tmp_path).name == "k\ufffd[31m\ufffd\ufffd"


@pytest.mark.skipif(os.name != "posix" or os.uname().sysname != "Linux", reason="file names are Unicode here")
def test_a_file_name_that_is_not_utf_8_can_be_printed(tmp_path):
    directory = tmp_path / os.fsdecode(b"d\xff")
    directory.mkdir()
    (directory / os.fsdecode(b"k\xfe.ttir")).write_text("text")
    found = only(tmp_path)
    assert found.display_path("ttir").encode() == "d\ufffd/k\ufffd.ttir".encode()
    assert read_stage(found, "ttir").source.text == "text"


@pytest.mark.parametrize(
    ("error", "said"),
    [(FileNotFoundError(2, "gone"), "was removed"), (PermissionError(13, "Permission denied"), "Permission denied")],
)
def test_an_entry_that_vanishes_or_is_closed_costs_only_itself(tmp_path, monkeypatch, error, said):
    entry(tmp_path / "good", "good")
    entry(tmp_path / "gone", "gone")
    scandir = os.scandir

    def scan(path):
        if Path(path).name == "gone":
            raise error
        return scandir(path)

    monkeypatch.setattr(cache_module.os, "scandir", scan)
    cache = open_cache(tmp_path)
    assert [a.stem for a in cache.entries] == ["good"]
    assert [p.path for p in cache.problems] == ["gone"]
    assert said in cache.problems[0].problem


@pytest.mark.parametrize("lost", ["gemv.json", "gemv.ttgir"])
def test_a_file_that_vanishes_is_a_problem_and_its_entry_stays(tmp_path, monkeypatch, lost):
    directory = entry(tmp_path / "x", metadata='{"num_warps": 4, "shared": 0}')
    real = os.open

    def vanish(path, *args, **options):
        if Path(path).name == lost:
            raise FileNotFoundError(2, "No such file or directory")
        return real(path, *args, **options)

    monkeypatch.setattr(os, "open", vanish)
    (directory / "gemv.ptx").write_text(".target sm_75")
    found = only(tmp_path)
    assert found.target.arch == "sm_75"
    assert open_cache(tmp_path).problems[0].path == f"x/{lost}"


def test_metadata_alone_is_a_kernel_without_stages_and_a_problem(tmp_path):
    entry(tmp_path / "x", stages=())
    assert only(tmp_path).state == "partial"
    assert open_cache(tmp_path).problems == (("x/gemv.json", "metadata without any stage"),)


def test_an_empty_cache_is_a_cache_of_nothing(tmp_path):
    cache = open_cache(tmp_path)
    assert (cache.root, cache.entries, cache.others, cache.problems) == (tmp_path, (), (), ())


@pytest.mark.parametrize("path", ["missing", "a/b/c", "nul\0byte"])
def test_a_missing_directory_says_what_to_do(tmp_path, path):
    with pytest.raises(CacheError, match="no directory") as caught:
        open_cache(tmp_path / path)
    assert "TRITON_CACHE_DIR" in caught.value.remedy


def test_a_file_instead_of_a_directory_names_the_directory_around_it(tmp_path):
    directory = entry(tmp_path / "x")
    with pytest.raises(CacheError, match="is a file") as caught:
        open_cache(directory / "gemv.ptx")
    assert str(directory) in caught.value.remedy


def test_a_directory_that_may_not_be_read_is_an_error_with_a_remedy(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache_module.os, "scandir", refuse)
    with pytest.raises(CacheError, match="Permission denied") as caught:
        open_cache(tmp_path)
    assert caught.value.remedy


def test_the_default_directory_is_tritons_own(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "here"))
    monkeypatch.setenv("TRITON_HOME", str(tmp_path / "home"))
    entry(tmp_path / "here" / "x")
    assert default_directory() == tmp_path / "here"
    assert open_cache().root == tmp_path / "here"
    monkeypatch.setenv("TRITON_CACHE_DIR", "")
    assert default_directory() == tmp_path / "home" / ".triton" / "cache"
    monkeypatch.delenv("TRITON_HOME")
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: tmp_path / "me"))
    assert default_directory() == tmp_path / "me" / ".triton" / "cache"


def test_text_that_is_not_utf_8_is_replaced_and_told(tmp_path):
    directory = entry(tmp_path / "x")
    (directory / "gemv.ptx").write_bytes(b"// caf\xe9\r\nret;\r\n")
    text = read_stage(only(tmp_path), "ptx")
    assert text.source.text == "// caf\ufffd\nret;\n"
    assert text.source.name == "x/gemv.ptx"
    assert text.problem is not None
    assert text.problem.path == "x/gemv.ptx"
    assert "byte 6 is not UTF-8" in text.problem.problem
    assert read_stage(only(tmp_path), "ttir").problem is None


def test_an_empty_stage_is_text_of_nothing_and_told(tmp_path):
    directory = entry(tmp_path / "x")
    (directory / "gemv.ptx").write_bytes(b"")
    text = read_stage(only(tmp_path), "ptx")
    assert (text.source.text, text.problem) == ("", ("x/gemv.ptx", "the file is empty"))


@pytest.mark.parametrize("suffix", ["cubin", "json", "amdgcn", "exe"])
def test_only_text_stages_that_are_there_can_be_read(tmp_path, suffix):
    entry(tmp_path / "x")
    with pytest.raises(UsageError, match=f"no .{suffix} text"):
        read_stage(only(tmp_path), suffix)


def test_a_stage_that_vanished_since_is_an_error_with_its_path(tmp_path):
    directory = entry(tmp_path / "x")
    found = only(tmp_path)
    (directory / "gemv.ptx").unlink()
    with pytest.raises(CacheError, match=r"x/gemv\.ptx: it was removed"):
        read_stage(found, "ptx")


def test_files_in_memory_are_read_as_a_cache_of_one_entry() -> None:
    (saved,) = open_cache(FIXTURES / "3.6.0" / "sm_80" / "matmul_grouped").entries
    contents = {suffix: file.read_bytes() for suffix, file in saved.files.items()}
    held = cache_in_memory(saved.stem, {**contents, "ast": b"no file of a kernel"})
    (artifact,) = held.entries
    assert replace(artifact, directory=saved.directory, files=saved.files) == saved
    assert artifact.display_path("ptx") == "matmul_kernel.ptx"
    assert read_stage(artifact, "ptx").source.text == read_stage(saved, "ptx").source.text
    assert read_binary(artifact) == read_binary(saved)
    assert held.problems == ()
    del contents["json"]
    (bare,) = cache_in_memory(saved.stem, contents).entries
    assert (bare.state, str(bare.target)) == ("partial", "sm_80")
    assert len(bare.hash) == 64
    assert cache_in_memory("nothing", {"ast": b""}).entries == ()


def test_broken_metadata_in_memory_is_a_problem() -> None:
    held = cache_in_memory("k", {"ptx": b".target sm_80\n", "json": b"{"})
    assert [problem.path for problem in held.problems] == ["k.json"]
    assert held.entries[0].state == "partial"


def test_a_file_stands_alone_and_its_metadata_for_all() -> None:
    ptx = open_cache(FIXTURES / "3.6.0" / "sm_80" / "matmul_grouped").entries[0].files["ptx"]
    assert isinstance(ptx, Path)
    (alone,) = open_file(ptx).entries
    assert set(alone.files) == {"ptx", "json"}
    (whole,) = open_file(ptx.with_suffix(".json")).entries
    assert {"ttir", "ttgir", "llir", "ptx", "cubin", "json"} <= set(whole.files)


@pytest.mark.parametrize("name", ["gone.ptx", "notes.txt", "__grp__k.json", "gemv.autotune.json"])
def test_a_file_that_is_no_kernels_is_refused(tmp_path: Path, name: str) -> None:
    if name != "gone.ptx":
        (tmp_path / name).write_text("{}")
    with pytest.raises(CacheError) as caught:
        open_file(tmp_path / name)
    assert name in caught.value.message
    assert caught.value.remedy is not None


def test_a_linked_entry_is_named_by_a_list(tmp_path: Path) -> None:
    """It is not followed, so its kernels are missing from the list: the list must say so."""
    (source,) = (Path(__file__).parents[2] / "fixtures" / "3.6.0" / "sm_80" / "copy").iterdir()
    cache, links = tmp_path / "cache", tmp_path / "links"
    shutil.copytree(source, cache / "entry")
    links.mkdir()
    for directory in (cache, links):
        (directory / "linked").symlink_to(source)
    listed = CliRunner().invoke(app, ["inspect", str(cache)])
    assert "(links: linked)" in " ".join(listed.stdout.split())
    refused = CliRunner().invoke(app, ["inspect", str(links)])
    assert refused.exit_code == 3
    assert "Links to directories are not followed: linked." in refused.stderr


@pytest.mark.parametrize(
    "encoding", ["ascii", *(pytest.param(one, marks=pytest.mark.long) for one in ("latin-1", "cp1252"))]
)
@pytest.mark.parametrize(
    "command", ["", *(pytest.param(one, marks=pytest.mark.long) for one in ("predict", "rank", "compile"))]
)
def test_help_prints_in_any_encoding(encoding: str, command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "artifact_inspector", *command.split(), "--help"],
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_deleted_working_directory_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})\nfrom artifact_inspector.cli import main\nimport sys\nsys.argv = ['inspect-kernel', '.']\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "The working directory no longer exists." in done.stderr


@pytest.mark.parametrize(
    ("suffixes", "gaps"),
    [
        ("ttir ttgir llir ptx cubin json", ()),
        ("ttir llir ptx", ("ttgir",)),
        ("ttgir cubin", ("llir", "ptx")),
        ("ttir hsaco", ("ttgir", "llir", "amdgcn")),
        ("cubin json", ()),
        ("source ttgir llir ptx", ()),
        ("json", ()),
    ],
)
def test_stages_that_lack_between_others_are_gaps(tmp_path: Path, suffixes: str, gaps: tuple[str, ...]) -> None:
    for suffix in suffixes.split():
        (tmp_path / f"k.{suffix}").write_text("{}")
    entries = open_cache(tmp_path).entries
    assert [entry.gaps for entry in entries] == ([gaps] if entries else [])
