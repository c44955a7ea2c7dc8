"""Every command that compiles or simulates, with every key of a record or of metadata that could reach a file, a
module or a tool: nothing that the cache names is opened, imported or run, and each command ends within limits."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opens import WarmCommands, listen

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is of Linux")
SECONDS, MIB = 60, 2048
_KERNEL = """
import triton, triton.language as tl

@triton.jit
def moved(x, y, N: tl.constexpr):
    o = tl.arange(0, N)
    v = tl.load(x + o)
    v = tl.inline_asm_elementwise("ASSEMBLY", "CONSTRAINTS", [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y + o, v)
"""
ASSEMBLY = {
    "gfx942": ("v_mov_b32 $0, $1", "=v,v"), "sm_80": ("mov.b32 $0, $1;", "=f,f"), "sm_90": ("mov.b32 $0, $1;", "=f,f"),
}  # fmt: skip
CANARIES = ("evilmod.py", "secret.txt", "options.txt", "other.ttir", "lib.bc", "ptxas", "nvdisasm", "ld.lld")


def is_in(name: str, directory: Path) -> bool:
    """Whether a directory has a canary: in a cache, a file that ends in `.ttir` is a kernel, and is read."""
    return directory.name != "cache" or not name.endswith(".ttir")


class Cache(NamedTuple):
    """A cache that says hostile things, and the files that nobody may open."""

    root: Path
    outside: Path
    """A directory beside it, which links and relative paths lead to."""
    target: str

    @property
    def canaries(self) -> list[Path]:
        return [
            directory / name for directory in (self.root, self.outside) for name in CANARIES if is_in(name, directory)
        ]

    def change_record(self, **values: Any) -> None:
        file = self.root / "inspect-kernel.json"
        document = json.loads(file.read_text())
        document["entries"] = [{**row, **values} for row in document["entries"]]
        file.write_text(json.dumps(document))

    def change_launches(self, **values: Any) -> None:
        file = self.root / "inspect-kernel.json"
        document = json.loads(file.read_text())
        document["launches"] = [{**row, **values} for row in document["launches"]]
        file.write_text(json.dumps(document))

    def change_metadata(self, **values: Any) -> None:
        (file,) = self.root.glob("*/moved.json")
        file.write_text(json.dumps({**json.loads(file.read_text()), **values}))

    def change_assembly(self, text: str) -> None:
        for suffix in ("ttir", "ttgir"):
            (file,) = self.root.glob(f"*/moved.{suffix}")
            slot = f'"{ASSEMBLY[self.target][0]}"'
            assert slot in file.read_text()
            file.write_text(file.read_text().replace(slot, f'"{text}"'))

    def change_machine_text(self, line: str) -> None:
        for suffix in ("ptx", "amdgcn"):
            for file in self.root.glob(f"*/moved.{suffix}"):
                head, newline, rest = file.read_text().partition("\n\n")
                file.write_text(f"{head}{newline}{line}\n{rest}")

    def link(self, suffix: str) -> None:
        (file,) = self.root.glob(f"*/moved.{suffix}")
        file.unlink()
        file.symlink_to(self.outside / "secret.txt")


OPTIONS = {
    "ptx_options": "--options-file {0}/options.txt -o {0}/written", "ir_override": "{0}/other.ttir",
    "extern_libs": [["evil", "{0}/lib.bc"]], "libdevice_path": "{0}/lib.bc", "instrumentation_mode": "{0}/lib.bc",
    "llvm_passes": "{0}/lib.bc", "override": "{0}/other.ttir", "ptxas_path": "{0}/ptxas",
}  # fmt: skip


def option(name: str) -> Callable[[Cache], None]:
    def change(cache: Cache) -> None:
        value = json.loads(json.dumps(OPTIONS[name]).replace("{0}", str(cache.outside)))
        cache.change_record(options={"num_warps": 4, name: value})
        cache.change_metadata(**{name: value})

    return change


def place(text: str) -> Callable[[Cache], None]:
    return lambda cache: cache.change_record(place=text.format(cache.root, cache.outside))


KEYS: dict[str, Callable[[Cache], None]] = {
    "place: a module": place("evilmod:moved"),
    "place: a relative file": place("evilmod.py:moved"),
    "place: a file of the cache": place("{0}/evilmod.py:moved"),
    "place: a file elsewhere": place("{1}/evilmod.py:moved"),
    "place: a link": place("{0}/linked.py:moved"),
    "place: a dotted module": place("os.path:moved"),
    **{f"option: {name}": option(name) for name in OPTIONS},
    "constants: code": lambda cache: cache.change_record(constants={"N": "__import__('evilmod')"}),
    "types: code": lambda cache: cache.change_record(types=["x=__import__('evilmod')", "y=*fp32"]),
    "target: a path": lambda cache: cache.change_record(target="../outside/secret.txt"),
    "directory: elsewhere": lambda cache: cache.change_record(directory="../outside"),
    "triton: a version that is a path": lambda cache: cache.change_record(triton="../outside/ptxas"),
    "metadata: a name that is a path": lambda cache: cache.change_metadata(name="../../outside/secret.txt"),
    "metadata: a hash that is a path": lambda cache: cache.change_metadata(hash="../../outside/secret.txt"),
    "metadata: a backend that is a module": lambda cache: cache.change_metadata(
        target={"backend": "evilmod", "arch": 80, "warp_size": 32}
    ),
    "launch: values of a path": lambda cache: cache.change_launches(
        args={name: {"shape": [64], "dtype": "i64", "values": {"sha256": "../../outside/secret.txt"}} for name in "xy"}
    ),
    "launch: a grid that is code": lambda cache: cache.change_launches(grid=["__import__('evilmod')"]),
    "launch: a kernel elsewhere": lambda cache: cache.change_launches(hash="../outside", kernel="../outside"),
    "TTIR: .include": lambda cache: cache.change_assembly(rf".include \22{cache.outside}/secret.txt\22"),
    "TTIR: .incbin": lambda cache: cache.change_assembly(rf".incbin \22{cache.outside}/secret.txt\22"),
    "TTIR: .rept": lambda cache: cache.change_assembly(r".rept 300000000\0Anop\0A.endr"),
    "machine text: .include": lambda cache: cache.change_machine_text(f'.include "{cache.outside}/secret.txt"'),
    "machine text: .incbin": lambda cache: cache.change_machine_text(f'.incbin "{cache.outside}/secret.txt"'),
    "machine text: .rept": lambda cache: cache.change_machine_text(".rept 300000000\nnop\n.endr"),
    "stage: a link to metadata elsewhere": lambda cache: (cache.root / "inspect-kernel.json").symlink_to(
        (cache.root / "inspect-kernel.json").rename(cache.outside / "record.json")
    ),
}
RECORD = (
    "kernel",
    "place",
    "target",
    "triton",
    "config",
    "types",
    "constants",
    "options",
    "seconds",
    "directory",
    "message",
)
LAUNCH = ("hash", "kernel", "target", "grid", "args", "tuning")
METADATA = (
    "hash", "target", "num_warps", "num_ctas", "num_stages", "warp_size", "maxnreg", "ptx_version", "ptx_options",
    "ir_override", "enable_fp_fusion", "enable_reflect_ftz", "supported_fp8_dtypes", "default_dot_input_precision",
    "extern_libs", "debug", "backend_name", "sanitize_overflow", "arch", "instrumentation_mode", "triton_version",
    "tensordesc_meta", "shared", "tmem_size", "global_scratch_size", "profile_scratch_size", "name", "waves_per_eu",
    "matrix_instr_nonkdim", "schedule_hint", "min_shared_mem", "launch_pdl",
)  # fmt: skip
"""Every key that a release writes and a command reads, and those that reach a compiler."""
VALUES: dict[str, Any] = {
    "a path": "../outside/secret.txt", "a list of paths": ["../outside/secret.txt"],
    "an object of paths": {"x": "../outside/lib.bc", "N": "../outside/secret.txt"},
}  # fmt: skip


CHANGES = {"record": Cache.change_record, "launch": Cache.change_launches, "metadata": Cache.change_metadata}
EVERY_KEY = [
    (source, key)
    for source, keys in (("record", RECORD), ("launch", LAUNCH), ("metadata", METADATA))
    for key in keys
]  # fmt: skip
TRY = ("--vary", "num_warps=2", "--grid", "1", "--arg", "x=fp32[64]", "--arg", "y=fp32[64]")
COMMANDS: dict[str, tuple[str, ...]] = {
    "passes": ("passes", ".", "moved", "--json"),
    "findings --try": ("findings", ".", "--try", "--json"),
    "findings --assemble": ("findings", ".", "--assemble", "--sass", "--json"),
    "rank --vary": ("rank", ".", "moved", *TRY, "--json"),
    "rank": ("rank", ".", "moved", "--json"),
    "predict": ("predict", ".", "moved", "--json"),
    "advise": ("advise", ".", "moved", "--budget", "10s", "--json"),
    "check-memory": ("check-memory", ".", "moved", "--json"),
    "regress": ("regress", ".", ".", "--json"),
    "repro": ("repro", ".", "moved", "-o", "../reproducer.py"),
    "export": ("export", ".", "--sqlite", "../facts.db"),
    "cache verify": ("cache", "verify", "."),
    "regress --prices": ("regress", "../original", ".", "--prices", "--all", "--json"),
    "report": ("report", ".", "-o", "../page.html"),
    "bisect": ("bisect", ".", "moved", "--between", "3.5.1,3.6.0", "--json"),
    "watch": ("watch", ".", "--all", "--idle", "0", "--json"),
    "predict --grid": ("predict", ".", "moved", "--grid", "cdiv(N,64)", "--json"),
}
"""`lsp --compile-on-save` and the tools of `mcp` call the same functions; they have tests of their own."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each target's cache, with one kernel, the record of its compile and a launch."""
    pytest.importorskip("triton")
    from artifact_inspector.compiling.ask.compile import compile_kernel
    from artifact_inspector.compiling.ask.manifest import add_to_manifest

    home = tmp_path_factory.mktemp("home")
    for target, (assembly, constraints) in ASSEMBLY.items():
        source = home / f"{target}.py"
        source.write_text(_KERNEL.replace("ASSEMBLY", assembly).replace("CONSTRAINTS", constraints))
        for suffix, warps in (("", 4), ("-original", 8)):
            directory = home / (target + suffix)
            compile_kernel(
                f"{source}:moved", target, signature="*fp32:16, *fp32:16", constexprs={"N": 64}, out_dir=directory,
                num_warps=warps,
            )  # fmt: skip
            shape = {"shape": [64], "stride": [1], "dtype": "float32", "alignment": 512}
            launch = {
                "hash": json.loads(next(directory.glob("*/moved.json")).read_text())["hash"],
                "kernel": "moved", "target": target, "grid": [1, 1, 1],
                "args": {"x": shape, "y": shape},
            }  # fmt: skip
            add_to_manifest(directory, (), [launch])
    return home


def hostile_cache(compiled: Path, directory: Path, target: str) -> Cache:
    root, outside = directory / "cache", directory / "outside"
    shutil.copytree(compiled / target, root)
    outside.mkdir()
    for place_ in (root, outside):
        for name in filter(lambda name: is_in(name, place_), CANARIES):
            (place_ / name).write_text("#!/bin/sh\nexit 0\n" if "." not in name else "raise SystemExit(77)\n")
            (place_ / name).chmod(0o755)
    shutil.copytree(compiled / f"{target}-original", directory / "original")
    (root / "linked.py").symlink_to(outside / "evilmod.py")
    return Cache(root, outside, target)


def check(cache: Cache, command: str, scratch: Path, commands: WarmCommands | None = None) -> None:
    heard = listen(COMMANDS[command], cache.root, cache.canaries, scratch, SECONDS, commands)
    assert heard.status is not None, f"did not end within {SECONDS} s"
    assert heard.status not in (77, -9), heard.output
    assert "Traceback" not in heard.output, heard.output
    assert heard.opened == ()
    imports = [event for event in heard.events if event.startswith("import ")]
    assert len(imports) > (50 if commands is None else 0)  # the hook hears
    for event in heard.events:
        assert str(cache.root) not in event, event
        assert str(cache.outside) not in event, event
        assert "evilmod" not in event, event
    assert heard.peak_mib < MIB
    assert not (cache.outside / "written").exists()


CLEAN = ("rank --vary", "export", "regress --prices")
SLOW = ("passes", "bisect")


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(name, marks=[pytest.mark.exhaustive] * (name in SLOW) + [pytest.mark.long] * (name not in CLEAN))
        for name in COMMANDS
    ],
)
def test_a_clean_cache_is_accepted(compiled: Path, tmp_path: Path, command: str) -> None:
    """The commands of the table do compile and simulate, unless something hostile is in the way."""
    cache = hostile_cache(compiled, tmp_path, "gfx942")
    heard = listen(COMMANDS[command], cache.root, cache.canaries, tmp_path, SECONDS)
    assert heard.opened == ()
    # the record names a file, and the user does not
    expected = {"rank --vary": 2, "repro": 2}.get(command, 0)
    assert heard.status == expected, heard.output[-2000:]


@pytest.mark.long
def test_the_watch_hears_every_open(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    secret = tmp_path / "secret.py"
    secret.write_text("import colorsys\n")
    heard = listen(("compile", f"{secret}:k", "-t", "sm_80"), tmp_path / "cache", [secret], tmp_path, SECONDS)
    assert heard.opened == (str(secret),)
    assert any("colorsys" in event for event in heard.events)


@pytest.mark.long
@pytest.mark.parametrize("target", [pytest.param("gfx942", marks=pytest.mark.exhaustive), "sm_80"])
@pytest.mark.parametrize("command", [pytest.param("passes", marks=pytest.mark.exhaustive), "rank --vary", "predict"])
def test_all_keys_at_once(compiled: Path, tmp_path: Path, command: str, target: str) -> None:
    cache = hostile_cache(compiled, tmp_path, target)
    for name, change in KEYS.items():
        if name.startswith(("option", "place: a module", "constants", "launch: values")):
            change(cache)
    check(cache, command, tmp_path)


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmCommands]:
    warm = WarmCommands(tmp_path_factory.mktemp("warm"))
    yield warm
    warm.close()


COMPILING = ("passes", "bisect", "findings --try", "findings --assemble", "rank --vary", "advise")
CASES = [
    (key, command, target)
    for row, key in enumerate(KEYS)
    for column, command in enumerate(COMMANDS)
    for turn, target in enumerate(ASSEMBLY)
    if command in COMPILING or (row + column) % 2 == turn
]
"""Commands that compile meet each key on all targets, the others on one."""


@pytest.mark.exhaustive
@pytest.mark.parametrize(("key", "command", "target"), CASES)
def test_nothing_that_a_cache_names_is_opened_imported_or_run(
    compiled: Path, tmp_path: Path, commands: WarmCommands, key: str, command: str, target: str
) -> None:
    cache = hostile_cache(compiled, tmp_path, target)
    KEYS[key](cache)
    check(cache, command, tmp_path, commands)


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("source", "key"), EVERY_KEY)
def test_a_path_in_any_key_is_only_text(
    compiled: Path, tmp_path: Path, commands: WarmCommands, source: str, key: str, command: str
) -> None:
    """Each key meets each command; kinds of values and targets take turns."""
    turn = EVERY_KEY.index((source, key)) + list(COMMANDS).index(command)
    cache = hostile_cache(compiled, tmp_path, list(ASSEMBLY)[turn // len(VALUES) % 2])
    CHANGES[source](cache, **{key: list(VALUES.values())[turn % len(VALUES)]})
    check(cache, command, tmp_path, commands)
