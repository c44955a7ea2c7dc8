"""Archives, compressed files, standard input and addresses read like the directory that they hold."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import fsspec
import pytest
import zstandard
from saved import FIXTURES
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.errors import CacheError
from artifact_inspector.files.cache import open_cache, open_location
from artifact_inspector.files.containers import unpack
from artifact_inspector.files.remote_index import open_shared_index
from artifact_inspector.model.limits import ARCHIVE_MEMBERS, ARCHIVE_MIB

CACHE = FIXTURES / "3.6.0" / "sm_80"
PTX = next(CACHE.glob("softmax/*/*.ptx"))


def members(directory: Path) -> dict[str, bytes]:
    return {str(f.relative_to(directory)): f.read_bytes() for f in sorted(directory.rglob("*")) if f.is_file()}


def write_tar(path: Path, files: dict[str, bytes], prefix: str = "") -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(prefix + name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def write_zip(path: Path, files: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def run(*arguments: str, input: bytes | None = None) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*arguments, "--no-index"], input=input)
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def softmax() -> tuple[dict[str, bytes], str]:
    directory = CACHE / "softmax"
    return members(directory), run(str(directory), "--json")[1]


@pytest.mark.parametrize("kind", ["zip", "tar", "tgz", "tar.gz", "tar.zst", "nested tar", "zip of tgz"])
def test_an_archive_reads_as_the_directory_in_it(
    tmp_path: Path, softmax: tuple[dict[str, bytes], str], kind: str
) -> None:
    files, expected = softmax
    if kind == "zip":
        path = write_zip(tmp_path / "x.zip", files)
    elif kind == "tar.zst":
        path = tmp_path / "x.tar.zst"
        path.write_bytes(zstandard.compress(write_tar(tmp_path / "x.tar", files).read_bytes()))
    elif kind == "nested tar":
        path = write_tar(tmp_path / "x.tar", files, "./home/triton-cache/")
    elif kind == "zip of tgz":
        path = write_zip(tmp_path / "x.zip", {"run.tgz": write_tar(tmp_path / "run.tgz", files).read_bytes()})
    else:
        path = write_tar(tmp_path / f"x.{kind}", files)
    assert run(str(path), "--json") == (0, expected)


def test_one_compressed_stage_reads_as_the_file(tmp_path: Path) -> None:
    (tmp_path / "softmax_kernel.ptx.gz").write_bytes(gzip.compress(PTX.read_bytes()))
    (entry,) = open_cache(tmp_path / "softmax_kernel.ptx.gz").entries
    assert (entry.stem, entry.files.keys(), str(entry.target)) == ("softmax_kernel", {"ptx"}, "sm_80")


def test_standard_input_reads_as_the_file(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "x.zip", members(CACHE / "softmax"))
    command = [sys.executable, "-m", "artifact_inspector", "-", "--json"]
    done = subprocess.run(command, input=archive.read_bytes(), capture_output=True, check=True)
    assert [kernel["name"] for kernel in json.loads(done.stdout)["kernels"]] == ["softmax_kernel"]


def test_an_address_reads_as_what_it_leads_to(tmp_path: Path, softmax: tuple[dict[str, bytes], str]) -> None:
    files, expected = softmax
    memory = fsspec.filesystem("memory")
    for name, content in files.items():
        memory.pipe(f"/bucket/cache/{name}", content)
    memory.pipe("/bucket/x.zip", write_zip(tmp_path / "x.zip", files).read_bytes())
    assert run("memory://bucket/cache", "--json") == (0, expected)
    assert run("memory://bucket/x.zip", "--json") == (0, expected)
    assert open_location(Path("memory://bucket/x.zip")).title == "memory://bucket/x.zip"
    assert run("memory://bucket/nothing")[0] == 3
    assert run("nosuchscheme://bucket/nothing")[0] == 3


def test_two_archives_compare(tmp_path: Path, softmax: tuple[dict[str, bytes], str]) -> None:
    path = write_zip(tmp_path / "x.zip", softmax[0])
    done = CliRunner().invoke(app, ["diff", str(path), str(CACHE / "softmax")])
    assert done.exit_code == 0, done.output


# -- hostile archives ------------------------------------------------------------------


def outside(tmp_path: Path) -> set[Path]:
    """All files below a directory, so that none appears by surprise."""
    return {path for path in tmp_path.rglob("*") if path.is_file()}


NAMES = ["../../escaped.ptx", "/tmp/escaped-{}.ptx", "a/../../escaped.ptx", "..\\escaped.ptx", "C:\\escaped.ptx"]


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_a_name_that_leads_out_is_reported_and_written_nowhere(tmp_path: Path, write) -> None:
    names = [name.format(os.getpid()) for name in NAMES]
    path = write(
        tmp_path / ("x.zip" if write is write_zip else "x.tar"),
        {**dict.fromkeys(names, b"x"), "k.ptx": PTX.read_bytes()},
    )
    before = outside(tmp_path)
    cache = open_cache(path)
    assert [entry.stem for entry in cache.entries] == ["k"]
    assert len([p for p in cache.missing if p.problem.endswith("leads out of the archive")]) == len(names)
    assert not Path(f"/tmp/escaped-{os.getpid()}.ptx").exists()
    assert outside(tmp_path) == before
    assert {file.name for file in cache.root.parent.rglob("*") if file.is_file()} == {"k.ptx"}


def test_links_and_devices_are_reported_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind in [
            ("l.ptx", tarfile.SYMTYPE),
            ("h.ptx", tarfile.LNKTYPE),
            ("f.ptx", tarfile.FIFOTYPE),
            ("c.ptx", tarfile.CHRTYPE),
        ]:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    linked = zipfile.ZipInfo("l.ptx")
    linked.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(linked, "/etc/passwd")
        archive.writestr("k.ptx", PTX.read_bytes())
    with pytest.raises(CacheError, match="a link, a device"):
        open_cache(path)
    cache = open_cache(tmp_path / "x.zip")
    assert [(p.path, "a link" in p.problem) for p in cache.missing] == [("l.ptx", True)]
    assert not any(file.is_symlink() for file in cache.root.rglob("*"))


def test_a_truncated_archive_says_so_first_and_keeps_what_it_has(tmp_path: Path) -> None:
    whole = write_tar(tmp_path / "x.tgz", members(CACHE)).read_bytes()
    (tmp_path / "x.tgz").write_bytes(whole[: len(whole) // 2])
    done = CliRunner().invoke(app, [str(tmp_path / "x.tgz")])
    assert done.exit_code == 0
    assert done.stderr.startswith(f"{tmp_path / 'x.tgz'} is incomplete: x.tgz: the gzip is damaged")
    assert 0 < len(open_cache(tmp_path / "x.tgz").entries) < len(open_cache(CACHE).entries)


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04" + b"\xff" * 500,
        b"\x1f\x8b" + b"\0" * 50,
        b"\x28\xb5\x2f\xfd" + b"\xff" * 90,
        b"\0" * 257 + b"ustar" + b"\xff" * 900,
    ],
)
def test_garbage_is_an_error_that_names_the_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(content)
    with pytest.raises(CacheError, match=r"x\.bin"):
        open_cache(path)


def test_an_encrypted_or_damaged_member_costs_only_itself(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", {"a.ptx": PTX.read_bytes(), "k.ptx": PTX.read_bytes()}, zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    content[100] ^= 0xFF
    path.write_bytes(content)
    cache = open_cache(path)
    assert [entry.stem for entry in cache.entries] == ["k"]
    assert [(p.path, "CRC" in p.problem) for p in cache.missing] == [("a.ptx", True)]


def test_the_numbers_of_bytes_members_and_layers_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = write_zip(tmp_path / "many.zip", {f"k{index}.ptx": b"x" for index in range(20)})
    monkeypatch.setenv(ARCHIVE_MEMBERS.variable, "5")
    cache = open_cache(many)
    assert len(cache.entries) == 5
    assert ARCHIVE_MEMBERS.variable in cache.missing[0].problem
    monkeypatch.delenv(ARCHIVE_MEMBERS.variable)
    monkeypatch.setenv(ARCHIVE_MIB.variable, "1")
    bomb = write_zip(tmp_path / "bomb.zip", {"k.ptx": PTX.read_bytes(), "z.ptx": bytes(64 << 20)})
    cache = open_cache(bomb)
    assert [entry.stem for entry in cache.entries] == ["k"]
    assert ARCHIVE_MIB.variable in cache.missing[0].problem
    assert sum(file.stat().st_size for file in cache.root.parent.rglob("*") if file.is_file()) <= 1 << 20
    monkeypatch.delenv(ARCHIVE_MIB.variable)
    layers = PTX.read_bytes()
    for _ in range(6):
        layers = gzip.compress(layers)
    (tmp_path / "layers.gz").write_bytes(layers)
    with pytest.raises(CacheError, match="more than 4 containers in each other"):
        open_cache(tmp_path / "layers.gz")


def test_an_archive_that_changed_is_unpacked_again(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", {"a.ptx": PTX.read_bytes()})
    first = unpack(path)
    assert unpack(path) is first
    write_zip(path, {"b.ptx": PTX.read_bytes(), "c.ptx": b""})
    assert {entry.stem for entry in open_cache(path).entries} == {"b", "c"}


BOMBS = r"""
import gzip, io, json, sys, tarfile, zipfile, zstandard
from pathlib import Path
root = Path(sys.argv[1])
zeros = bytes(1 << 24)
with gzip.open(root / "zeros.tar.gz", "wb", 1) as bomb:
    for _ in range(96):
        bomb.write(zeros)
with open(root / "zeros.zst", "wb") as file, zstandard.ZstdCompressor(1).stream_writer(file) as bomb:
    for _ in range(96):
        bomb.write(zeros)
with tarfile.open(root / "pax.tar.gz", "w:gz", compresslevel=1) as bomb:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 600 << 20
    bomb.addfile(info, type("Zeros", (), {"read": staticmethod(lambda n: bytes(n))}))
with gzip.open(root / "line.ndjson.gz", "wb", 1) as bomb:
    bomb.write(b'{"event_type": "compilation", "payload": [')
    for _ in range(40):
        bomb.write(b"[]," * (1 << 21))
with gzip.open(root / "deep.ndjson.gz", "wb", 1) as bomb:
    bomb.write(b'{"a":' + b"[" * (30 << 20) + b"\n" + b'{"a":[' + b"[]," * (10 << 20) + b"[]]}")
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(resource, "RLIMIT_AS"), reason="limits of Linux")
def test_bombs_are_named_within_a_gibibyte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", BOMBS, str(tmp_path)], check=True)
    for bomb in sorted(tmp_path.iterdir()):
        done = subprocess.run(
            [sys.executable, "-m", "artifact_inspector", str(bomb)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
        )
        assert done.returncode == 3, (bomb, done.stdout, done.stderr[-500:])
        assert bomb.name in done.stderr, (bomb, done.stderr[-500:])
        assert "Traceback" not in done.stderr


def test_a_directory_of_archives_reads_as_their_directories(
    tmp_path: Path, softmax: tuple[dict[str, bytes], str]
) -> None:
    directory = tmp_path / "runs"
    (directory / "night").mkdir(parents=True)
    write_zip(directory / "a.zip", softmax[0])
    write_tar(directory / "night" / "b.tgz", softmax[0])
    (directory / "lit.mlir").write_text("tt.func @lit() {\n  tt.return\n}\n")
    (directory / "notes.txt").write_text("?")
    cache = open_cache(directory)
    names = {(entry.display_name, entry.directory.split("/")[0]) for entry in cache.entries}
    assert names == {("softmax_kernel", "a.zip"), ("softmax_kernel", "night"), ("lit", "lit.mlir")}
    assert not cache.problems
    assert run(str(directory))[0] == 0
    # beside kernels they are named, not read
    (directory / "kernel.ttir").write_text("tt.func @k() {\n  tt.return\n}\n")
    cache = open_cache(directory)
    assert [entry.stem for entry in cache.entries] == ["kernel"]
    assert {problem.path for problem in cache.missing} == {"a.zip", "night/b.tgz"}


def test_archives_of_a_directory_share_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        write_zip(tmp_path / f"{name}.zip", {f"{name}/k.ptx": b"// " + bytes(600_000) + PTX.read_bytes()})
    monkeypatch.setenv(ARCHIVE_MIB.variable, "1")
    cache = open_cache(tmp_path)
    assert [entry.directory for entry in cache.entries] == ["a.zip/a"]
    assert "unpacking stopped: more than 1 MiB" in cache.problems[0].problem


def test_half_a_cache_says_first_what_is_missing(tmp_path: Path, softmax: tuple[dict[str, bytes], str]) -> None:
    for name, content in softmax[0].items():
        if not name.endswith((".ptx", ".sass", ".cubin", ".llir")):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(content)
    (tmp_path / ("EMPTY" * 11)[:52]).mkdir()
    done = CliRunner().invoke(app, [str(tmp_path), "--no-index"])
    assert done.exit_code == 0
    assert done.stderr.startswith(
        f"{tmp_path} is incomplete: 1 of 1 kernels have no machine code; they end: 1 at ttgir (1 more)."
    )
    assert open_cache(tmp_path).missing[1].problem == "1 directories are empty, as failed compiles leave them"
    assert not open_cache(CACHE).missing
    (tmp_path / "none").mkdir()
    done = CliRunner().invoke(app, [str(tmp_path / "none")])
    assert (done.exit_code, done.stderr.splitlines()[0].endswith("none. It is empty.")) == (3, True)


def write_database(path: Path, statement: str, insert: str, rows: list[tuple]) -> Path:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.executemany(insert, rows)
    connection.commit()
    connection.close()
    return path


ENTRIES = (
    "CREATE TABLE entries (cache_key TEXT NOT NULL, filename TEXT NOT NULL, data BLOB NOT NULL, "
    "PRIMARY KEY (cache_key, filename)) WITHOUT ROWID"
)


def test_an_sqlite_cache_of_triton_reads_as_its_directory(
    tmp_path: Path, softmax: tuple[dict[str, bytes], str]
) -> None:
    rows = [(*name.split("/"), data) for name, data in softmax[0].items()]
    (tmp_path / "cache").mkdir()
    path = write_database(
        tmp_path / "cache" / "triton-cache-v1.sqlite3", ENTRIES, "INSERT INTO entries VALUES (?, ?, ?)", rows
    )
    before = path.read_bytes()
    assert run(str(path), "--json") == (0, softmax[1])
    assert json.loads(run(str(tmp_path / "cache"), "--json")[1])["kernels"][0]["facts"]
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_an_sqlite_cache_of_cutile_has_its_cubins(tmp_path: Path) -> None:
    cubin = next(FIXTURES.rglob("*.cubin")).read_bytes()
    statement = "CREATE TABLE cache (key TEXT PRIMARY KEY, blob BLOB NOT NULL, blob_size INTEGER, atime REAL)"
    path = write_database(
        tmp_path / "cache.db", statement, "INSERT INTO cache VALUES (?, ?, ?, 0)", [("ab" * 32, cubin, len(cubin))]
    )
    (entry,) = open_cache(path).entries
    assert (entry.hash, entry.state, entry.target.arch[:3]) == ("ab" * 32, "partial", "sm_")
    assert entry.files["cubin"].read_bytes() == cubin


def test_a_package_of_aotinductor_has_its_binaries(tmp_path: Path) -> None:
    cubin = next(FIXTURES.rglob("*.cubin")).read_bytes()
    files = {"model/version": b"1", "model/data/aotinductor/model/triton_red_0.cubin": cubin}
    (entry,) = open_cache(write_zip(tmp_path / "model.pt2", files)).entries
    assert (entry.stem, entry.files["cubin"].read_bytes()) == ("triton_red_0", cubin)


def c_source(binary: bytes, vendor: str) -> str:
    """What `triton.tools.compile` writes, from the installed Triton's own template."""
    import triton

    template = Path(triton.__file__).parent / "tools" / "extra" / vendor / "compile.c"
    values = {
        "bin_size": len(binary), "bin_data": ", ".join(f"0x{byte:02x}" for byte in binary), "num_warps": 8, "shared": 64,
        "kernel_name": "add_0123abcd_0d1d", "triton_kernel_name": "add_kernel", "signature": "", "full_signature": "",
    }  # fmt: skip
    names = re.findall(r"(?<!\{)\{(\w+)\}", template.read_text())
    return template.read_text().format(**dict.fromkeys(names, "1") | values)


@pytest.mark.skipif(find_spec("triton") is None, reason="Needs Triton (Linux).")
@pytest.mark.parametrize(("vendor", "suffix"), [("cuda", "cubin"), ("hip", "hsaco")])
def test_a_c_file_of_triton_has_its_binary(tmp_path: Path, vendor: str, suffix: str) -> None:
    binary = next(FIXTURES.rglob("*.cubin")).read_bytes()
    path = tmp_path / "out" / "add.0123abcd_0d1d.c"
    path.parent.mkdir()
    path.write_text(c_source(binary, vendor))
    for cache in (open_cache(path), open_cache(path.parent)):
        (entry,) = cache.entries
        assert (entry.name, entry.num_warps, entry.shared_bytes) == ("add_kernel", 8, 64)
        assert entry.files[suffix].read_bytes() == binary
    path.write_text("/* clang-format off */\n#include <cuda.h>\nint x;\n")
    with pytest.raises(CacheError, match=r"triton\.tools\.compile did not write it"):
        open_cache(path)


def test_hostile_databases_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("k", "k.ptx", PTX.read_bytes()), ("..", "x.ptx", b"1"), ("k", "../x.ptx", b"1"), ("k", "n.ptx", 7)]
    path = write_database(tmp_path / "x.sqlite3", ENTRIES, "INSERT INTO entries VALUES (?, ?, ?)", rows)
    cache = open_cache(path)
    assert [entry.stem for entry in cache.entries] == ["k"]
    assert sorted(problem.problem.split(": ")[1] for problem in cache.problems) == [
        "its name leads out of the cache", "its name leads out of the cache", "not a file",
    ]  # fmt: skip
    (tmp_path / "half.sqlite3").write_bytes(path.read_bytes()[:5000])
    with pytest.raises(CacheError, match=r"damaged|no kernel cache"):
        open_cache(tmp_path / "half.sqlite3")
    write_database(tmp_path / "view.sqlite3", "CREATE TABLE t (x)", "INSERT INTO t VALUES (?)", [(1,)])
    connection = sqlite3.connect(tmp_path / "view.sqlite3")
    connection.execute(
        "CREATE VIEW entries AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
        "SELECT 'k' AS cache_key, 'k.ptx' AS filename, x AS data FROM c"
    )
    connection.commit()
    connection.close()
    with pytest.raises(CacheError, match="no kernel cache"):
        open_cache(tmp_path / "view.sqlite3")
    monkeypatch.setenv(ARCHIVE_MIB.variable, "1")
    big = [("a", f"{n}.ptx", bytes(300_000)) for n in range(4)]
    path = write_database(tmp_path / "big.sqlite3", ENTRIES, "INSERT INTO entries VALUES (?, ?, ?)", big)
    with pytest.raises(CacheError, match="more than 1 MiB"):
        open_cache(path)


class _NoCredentialsError(Exception):
    """As those of botocore, which are no OSError."""


def test_what_a_file_system_raises_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    system = fsspec.filesystem("memory")

    def refuse(*_: object, **__: object) -> None:
        raise _NoCredentialsError("Unable to locate credentials")

    for method in ("isfile", "find", "exists"):
        monkeypatch.setattr(type(system), method, refuse)
    for opens in (open_location, open_shared_index):
        with pytest.raises(CacheError, match=r"memory://x/y cannot be read: Unable to locate credentials\."):
            opens(Path("memory://x/y"))
