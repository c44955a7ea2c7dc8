"""What comes packed, changes while it is read, or is compiled again: each of malice, as those of `tests.fuzz.surfaces`."""

from __future__ import annotations

import gzip
import io
import json
import multiprocessing
import os
import random
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from artifact_inspector import api
from artifact_inspector.api.notebook import FindingTable, inspect_cache
from artifact_inspector.api.watching import Watched
from artifact_inspector.errors import CacheError, CompileError, InspectorError
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.files.disassembly import disassemble, find_disassembler
from artifact_inspector.findings import find_findings
from artifact_inspector.passes import subject
from artifact_inspector.passes.dumped_compile import DumpedCompile
from tests.fuzz.campaign import kernel_mutant
from tests.fuzz.checks import EscapeError
from tests.fuzz.corpus import kernels
from tests.fuzz.documents import damaged_document
from tests.fuzz.mutants import damage, damage_bytes
from tests.fuzz.poison import WORDS, poison
from tests.fuzz.promises import check_command, check_document, check_plain, check_written
from tests.fuzz.served import _TIMES, _cache, _dumped

__all__ = ["archives", "bisections", "bombs", "notebooks", "traces", "watches"]

_READ = (
    ("inspect", "FILE"), ("inspect", "FILE", "--json"), ("findings", "FILE"), ("matrix", "FILE"), ("diff", "FILE", "FILE"),
    ("report", "FILE", "-o", "AWAY/page.html", "--no-index"), ("export", "FILE", "--ndjson", "AWAY/facts.ndjson"),
    ("baseline", "FILE", "-o", "AWAY/facts.json"), ("predict", "FILE", "--steps", "3000"), ("inspect", "FILE", "--ir"),
)  # fmt: skip


def _look(file: Path, place: Path, chance: random.Random) -> str:
    """Give a file to a command; nothing is written but where it was told to."""
    away = place / "away"
    away.mkdir()
    names = {"FILE": str(file)}
    words = [names.get(word, word).replace("AWAY", str(away)) for word in chance.choice(_READ)]
    said = check_command(words, away)
    check_written(away)
    return f"exit {said.code}"


def _member_name(chance: random.Random, name: str) -> str:
    ways = (
        f"../{name}",
        f"/tmp/{name}",
        f"a/../../{name}",
        f"C:\\{name}",
        f"{name}\0x",
        "x/" * 80 + name,
        name.upper(),
    )
    return chance.choice((name, name, name, *ways, chance.choice(WORDS)[:200] or "x"))


def _write_tar(root: Path, chance: random.Random) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(
        fileobj=buffer, mode="w", format=chance.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))
    ) as archive:
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            info = tarfile.TarInfo(_member_name(chance, str(path.relative_to(root))).replace("\0", ""))
            content = path.read_bytes()
            info.size = len(content)
            if chance.random() < 0.1:
                info.type = chance.choice(
                    (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE)
                )
                info.linkname, info.size = chance.choice(("/etc/passwd", "../..", ".", path.name)), 0
            with suppress(ValueError, UnicodeEncodeError):
                archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _write_zip(root: Path, chance: random.Random) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            with suppress(ValueError, UnicodeEncodeError):
                info = zipfile.ZipInfo(_member_name(chance, str(path.relative_to(root))) or "x")
                info.external_attr = chance.choice((0, 0, 0, 0o120777 << 16, 0o100644 << 16, 0o020666 << 16))
                archive.writestr(info, path.read_bytes() * chance.choice((1, 1, 1, 0)))
    return buffer.getvalue()


def archives(chance: random.Random, place: Path) -> str:
    """An archive of a damaged cache, with members of malice, itself damaged or in another archive."""
    root = _cache(chance, place)
    write, suffix = chance.choice(((_write_tar, "tar"), (_write_zip, "zip")))
    content = write(root, chance)
    for _ in range(chance.choice((0, 0, 1, 2, 5))):
        content, suffix = gzip.compress(content, 1), f"{suffix}.gz"
    if chance.random() < 0.5:
        content = damage_bytes(content, chance)
    file = place / f"{chance.choice(('a', 'triton cache', 'x.ptx'))}.{suffix}"
    file.write_bytes(content)
    shutil.rmtree(root)
    return _look(file, place, chance)


@cache
def _events(path: Path) -> str:
    """The events of tritonparse for a kernel and a launch of it."""
    files = [
        file
        for file in sorted(path.iterdir())
        if file.suffix in (".ttir", ".ttgir", ".llir", ".ptx", ".amdgcn", ".json")
    ]
    metadata: dict[str, Any] = {}
    for file in path.glob("*.json"):
        with suppress(ValueError):
            document = json.loads(file.read_text(encoding="utf-8"))
            metadata = document if isinstance(document, dict) and "hash" in document else metadata
    content = {file.name: file.read_text(encoding="utf-8") for file in files}
    source = {"file_path": "/a.py", "start_line": 3, "end_line": 5, "code": "@triton.jit\ndef k(x):\n    pass\n"}
    compilation = {
        "event_type": "compilation", "pid": 1, "stack": [{"line": 3, "name": "main", "filename": ["/a.py", 1], "loc": "f()"}],
        "payload": {
            "metadata": {"cache_hit": True, **metadata, "src_constants": {"(1,)": 64}}, "file_content": content,
            "file_path": {name: f"/home/u/.triton/cache/{path.name}/{name}" for name in content}, "python_source": source,
        },
    }  # fmt: skip
    tensor = {
        "type": "tensor",
        "shape": [64, 32],
        "dtype": "torch.float16",
        "stride": [32, 1],
        "data_ptr": "0x7e744ac00200",
    }
    launch = {
        "event_type": "launch", "name": "k", "grid": [4], "compilation_metadata": {"hash": metadata.get("hash", "x")},
        "extracted_args": {"x": tensor, "n": {"type": "int", "value": 7}, "f": {"type": "float", "value": 0.5}},
    }  # fmt: skip
    return json.dumps([compilation, launch])


def traces(chance: random.Random, place: Path) -> str:
    """A trace with values of malice, damaged lines, and events that repeat each other."""
    lines = []
    for path in chance.choices(tuple(kernels()), tuple(kernels().values()), k=chance.choice((1, 1, 2))):
        for event in json.loads(_events(path)):
            text = damaged_document(event, chance) if chance.random() < 0.7 else json.dumps(event)
            lines += [text.replace("\n", " ")] * chance.choice((1, 1, 1, 2))
    chance.shuffle(lines)
    text = "\n".join(lines) + chance.choice(("\n", "", "\n{", "\n\0"))
    if chance.random() < 0.3:
        text = damage(text, (text[:3000],), chance)
    content = text.encode("utf-8", "surrogatepass")
    file = place / f"t.{chance.choice(('ndjson', 'jsonl', 'bin.ndjson', 'ndjson.gz'))}"
    file.write_bytes(gzip.compress(content, 1) if file.suffix == ".gz" else content)
    return _look(file, place, chance)


def watches(chance: random.Random, place: Path) -> str:
    """A cache that somebody damages, links and deletes from while it is watched."""
    root, spare = _cache(chance, place), place / "spare"
    spare.mkdir()
    for number in range(2):
        kernel_mutant(chance.randrange(1 << 40), spare / str(number))
    context = multiprocessing.get_context("fork")  # what this process writes is watched
    over = context.Event()

    def change() -> None:
        while not over.wait(0.005):
            path = chance.choice(sorted(root.rglob("*")) or [root])
            with suppress(OSError, shutil.Error):
                what = chance.randrange(5)
                if what == 0:
                    source = chance.choice(sorted(spare.glob("*/*")))
                    shutil.copytree(source, root / f"{source.name}{chance.randrange(4)}", dirs_exist_ok=True)
                elif what == 1 and path.is_file():
                    path.unlink()
                elif what == 2 and path.is_file():
                    path.write_bytes(damage_bytes(path.read_bytes(), chance))
                elif what == 3:
                    (root / f"link{chance.randrange(9)}").symlink_to(
                        chance.choice(("/etc", ".", "..", "/proc/self/environ"))
                    )
                elif path.is_file():
                    os.mkfifo(path.with_name(f"pipe{chance.randrange(9)}.ttir"))

    changer = context.Process(target=change)
    changer.start()
    try:
        words = [
            "watch",
            str(root),
            "--all",
            "--idle",
            "0.02",
            "--every",
            "0.01",
            *chance.choice(((), ("--json", "--no-index"))),
        ]
        timer = threading.Timer(0.3, over.set)  # else there may always be a change
        timer.start()
        said = check_command(words, place / "away")
        timer.cancel()
    finally:
        over.set()
        changer.join()
    return f"exit {said.code}"


def notebooks(chance: random.Random, place: Path) -> str:
    """Everything that a notebook displays of a cache of malice."""
    root = _cache(chance, place)
    shown: list[object] = [inspect_cache(root)]
    watched = Watched()
    for entry in open_cache(root).entries:
        files = {
            f"{entry.stem}.{suffix}": path.read_bytes()
            for suffix, path in entry.files.items()
            if isinstance(path, Path)
        }
        with suppress(InspectorError):
            watched.add(entry.stem, files)
    shown += [watched, *watched]
    try:
        kernel = api.inspect(root)
        shown += [kernel, *kernel.regions, FindingTable(find_findings(kernel.details))]
        check_plain(str(kernel.to_records()), orders=True)
    except InspectorError as error:
        check_plain(str(error), orders=True)
    for value in shown:
        check_document(value._repr_html_(), "html")  # type: ignore[attr-defined]
        if not isinstance(value, FindingTable):
            check_plain(repr(value), orders=True)
    return f"{min(len(shown), 9)} shown"


def bisections(chance: random.Random, place: Path) -> str:
    """A cache of malice to `bisect`, whose compilers answer with damaged kernels and dumps, or refuse with any words."""
    root = _cache(chance, place)
    out = place / "compiled"
    out.mkdir()

    def compiled() -> Artifact:
        if chance.random() < 0.15:
            raise CompileError(chance.choice(WORDS) or "refused")
        directory = out / str(len(list(out.iterdir())))
        if chance.random() < 0.5:
            directory.mkdir()
            kernel_mutant(chance.randrange(1 << 40), directory)
        else:
            whole = chance.choice(tuple(kernels()))
            poison(Path(shutil.copytree(whole, directory / whole.name)), chance)
        entries = open_cache(directory).entries
        if not entries:
            raise CompileError("no entry")
        return entries[0]

    @contextmanager
    def without_dumps(*_: object) -> Iterator[Artifact]:
        yield compiled()

    @contextmanager
    def with_dumps(*_: object) -> Iterator[DumpedCompile]:
        directory = out / f"dumps{len(list(out.iterdir()))}"
        directory.mkdir()
        files = directory / "mlir.txt", directory / "times.txt"
        for file, text in zip(files, (_dumped(), _TIMES), strict=True):
            file.write_bytes(damage(text, (text, *WORDS), chance).encode("utf-8", "replace"))
        yield DumpedCompile(compiled(), "3.6.0", 0.1, files[:1], files[1])

    words = ["bisect", str(root), "--between", chance.choice(("3.5.1,3.6.0", "3.2.0,3.9.0", "3.4.0,3.5.1,3.6.0"))]
    words += chance.choice(((), ("--json",), ("--what", "order,registers"), ("--what", "widths", "--json")))
    chosen = subject.TraceSubject
    with (
        patch.object(chosen, "compile_without_dumps", without_dumps),
        patch.object(chosen, "compile_with_dumps", with_dumps),
    ):
        said = check_command(words, out)
    return f"exit {said.code}"


@cache
def _cubins() -> tuple[bytes, ...]:
    files = sorted((Path(__file__).parents[2] / "fixtures").rglob("*.cubin"))
    return tuple(file.read_bytes() for file in files if file.stat().st_size < 40_000)


def bombs(chance: random.Random, place: Path) -> str:
    """A cubin whose tables and code ask for much, to nvdisasm: it ends in text or in words."""
    data = bytearray(chance.choice(_cubins()))
    start = int.from_bytes(data[0x28:0x30], "little")
    count = int.from_bytes(data[0x3C:0x3E], "little")
    for _ in range(chance.choice((1, 2, 5))):
        row = start + 64 * chance.randrange(max(1, count))
        what = chance.randrange(4)
        if what == 0 and row + 64 <= len(data):  # a size, an offset, or entries of a section
            at, size = chance.choice(((row + 0x20, 8), (row + 0x18, 8), (row + 0x38, 8), (row + 4, 4), (row + 0x28, 4)))
            value = chance.choice(
                (0, 1, 24, len(data), len(data) // 2, 2**31, 2**40, 2**64 - 1, chance.randrange(len(data)))
            )
            data[at : at + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")
        elif what == 1 and row + 64 <= len(data):  # one section for many
            other = start + 64 * chance.randrange(max(1, count))
            data[other : other + 64] = data[row : row + 64]
        elif what == 2:  # branches to anywhere
            at = chance.randrange(64, len(data) - 16) & ~15
            data[at : at + 16] = data[chance.randrange(64, len(data) - 16) & ~15 :][:16]
        else:
            data[:] = damage_bytes(bytes(data), chance)
            if len(data) < 256:
                break
    tool = find_disassembler()
    if tool is None:
        return "no nvdisasm"
    with patch.dict(os.environ, {"XDG_CACHE_HOME": str(place / "home"), "ARTIFACT_INSPECTOR_MOST_TOOL_SECONDS": "4"}):
        try:
            text = disassemble(bytes(data), tool)
        except CacheError as error:
            check_plain(str(error), orders=True)
            return "stopped" if "took more than" in str(error) else "refused"
    if len(text) > 400 * len(data) + 1_000_000:
        raise EscapeError(f"{len(text)} characters of {len(data)} bytes")
    return "disassembled"
