"""`python -m tests.fuzz.hostile`: input that somebody thought of and no generator makes, to every command that reads it.

Each is a small cache made of one of two saved kernels, and runs in a process of its own with 1 GB of address
space; each command has 8 s of processor time, and keeps the promises of `tests.fuzz.promises`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.fuzz.checks import SECONDS, EscapeError, within
from tests.fuzz.promises import check_command, check_written

__all__ = ["CASES", "COMMANDS", "ON_PAPER", "make", "run"]

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures" / "3.6.0"
NVIDIA, AMD = (next((FIXTURES / gpu / "copy").glob("*/")) for gpu in ("sm_80", "gfx942"))
BYTES, WAITS = 1 << 30, 1200
"""Of address space, and seconds after which a case is ended."""
Text = Callable[[str], str]


# -- texts -------------------------------------------------------------------------------


def _nested(begin: str, end: str, count: int) -> str:
    return begin * count + end * count


def _before(line: str) -> Text:
    return lambda text: f"{line}\n{text}"


def _behind(line: str) -> Text:
    return lambda text: f"{text}\n{line}\n"


def _instead(pattern: str, by: str) -> Text:
    return lambda text: re.sub(pattern, lambda _: by, text)


def _once(pattern: str, by: str) -> Text:
    return lambda text: re.sub(pattern, lambda _: by, text, count=1)


_LAYOUT = "#ttg.blocked<{{sizePerThread = [{0}], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}}>"
TEXTS: Mapping[str, tuple[str, Text]] = {
    "a list of targets": ("ptx", _once(r"\.target .*", ".target sm_80, texmode_independent, debug, sm_90a, map_f64_to_f32")),
    "a target of 4 digits": ("ptx", _once(r"sm_\d+", "sm_9999")),
    "a target of 5,000 digits": ("ptx", _once(r"sm_\d+", "sm_" + "9" * 5000)),
    "a million threads asked for": ("ptx", _once(r"\.reqntid .*", ".reqntid 1000000, 1000000, 1000000")),
    "a parameter of 2^62 bytes": ("ptx", _once(r"\.param \.u64", ".param .align 8 .b8 p[4611686018427387904],\n.param .u64")),
    "a name of a megabyte in PTX": ("ptx", _instead(r"\bcopy\b", "c" * (1 << 20))),
    "a string that never ends in PTX": ("ptx", _before('.file 1 "' + "a" * 100_000)),
    "10,000 files in PTX": ("ptx", _before("\n".join(f'.file {n} "{n}.py"' for n in range(10_000)))),
    "one label 10,000 times": ("ptx", _once(r"ret;", "$L: bra $L;\n" * 10_000 + "ret;")),
    "a branch table of 50,000": ("ptx", _once(r"ret;", "$T: .branchtargets " + ", ".join(["$T"] * 50_000) + ";\nret;")),
    "registers of 2^60": ("ptx", _once(r"\.reg \.b32.*", ".reg .b32 %r<1152921504606846976>;")),
    "PTX inside PTX": ("ptx", lambda text: text + text),
    "braces of 100,000 levels in PTX": ("ptx", _once(r"ret;", _nested("{\n", "}\n", 100_000) + "ret;")),
    "a layout of 2^63 for each thread": ("ttgir", _once(r"#blocked = .*", "#blocked = " + _LAYOUT.format(1 << 63))),
    "a layout of 2^31 for each thread": ("ttgir", _once(r"#blocked = .*", "#blocked = " + _LAYOUT.format(1 << 31))),
    "a layout of nothing": ("ttgir", _once(r"#blocked = .*", "#blocked = " + _LAYOUT.format(0))),
    "a layout of itself": ("ttgir", _once(r"#blocked = .*", "#blocked = #ttg.slice<{dim = 0, parent = #blocked}>")),
    "a layout of 100 axes": ("ttgir", _once(r"#blocked = .*", "#blocked = " + _LAYOUT.format(", ".join(["2"] * 100)))),
    "a linear layout of 5,000 bases": ("ttgir", _once(r"#blocked = .*", "#blocked = #ttg.linear<{register = ["
        + ", ".join(f"[{1 << n % 40}]" for n in range(5000)) + "], lane = [], warp = [], block = []}>")),
    "tensors of 2^62": ("ttgir", _instead(r"tensor<\d+x", "tensor<4611686018427387904x")),
    "tensors of 40 axes": ("ttgir", _instead(r"tensor<\d+x", "tensor<" + "2x" * 40)),
    "a place inside itself": ("ttir", _behind('#loc = loc(callsite(#loc1 at #loc))\n#loc1 = loc("a"(#loc))')),
    "places in a circle of 10,000": ("ttir", _behind("\n".join(f'#loc{n} = loc("a"(#loc{(n + 1) % 10_000}))' for n in range(10_000)))),
    "places that double": ("ttir", _behind("\n".join(f"#loc{n} = loc(callsite(#loc{n + 1} at #loc{n + 1}))" for n in range(900, 990)))),
    "a fused place of 100,000": ("ttir", _behind("#loc = loc(fused[" + ", ".join(['"a":1:1'] * 100_000) + "])")),
    "a line of 2^63": ("ttir", _instead(r":(\d+):\d+\)", f":{1 << 63}:{1 << 63})")),
    "a loop of 2^63 trips": ("ttir", _once(r"tt\.return", "%i = scf.for %a = %b to %c step %d : i32 {\nscf.yield\n}\ntt.return")),
    "a function that calls itself": ("ttir", _once(r"tt\.return", 'tt.call @copy() : () -> ()\ntt.return')),
    "10,000 arguments": ("ttir", _once(r"%\w+: i32", ", ".join(f"%a{n}: i32" for n in range(10_000)))),
    "attributes of 2,000 levels": ("ttir", _once(r"attributes \{", "attributes {a = " + _nested("[", "]", 2000) + ", ")),
    "types of 5,000 levels": ("ttir", _once(r"!tt\.ptr<\w+>", _nested("!tt.ptr<", ">", 5000))),
    "constants of a megabyte": ("ttir", _once(r"tt\.return", '%x = arith.constant dense<"0x' + "f" * (1 << 20) + '"> : tensor<4xi32>\ntt.return')),
    "metadata of LLVM in a circle": ("llir", lambda text: re.sub(r"inlinedAt: !\d+", "inlinedAt: !3", text) + "\n!3 = !DILocation(line: 1, scope: !3, inlinedAt: !3)\n"),
    "scopes of LLVM in a circle": ("llir", _instead(r"scope: !\d+", "scope: !7")),
    "an array of 2^60 in LLVM": ("llir", _before("@global_smem = external addrspace(3) global [1152921504606846976 x i8], align 16")),
    "a vector of 2^40": ("llir", _once(r"ret void", "%v = load <1099511627776 x i32>, ptr addrspace(1) %0\nret void")),
    "a switch of 50,000": ("llir", _once(r"ret void", "switch i32 %0, label %1 [" + " ".join(f"i32 {n}, label %1" for n in range(50_000)) + "]")),
    "a phi of 50,000": ("llir", _once(r"ret void", "%p = phi i32 " + ", ".join(["[ 0, %0 ]"] * 50_000) + "\nret void")),
    "inline assembly of a megabyte": ("llir", _once(r"ret void", 'call void asm sideeffect "' + "$0;" * 300_000 + '", "r"(i32 0)\nret void')),
    "an address of 64 digits": ("sass", _instead(r"/\*([0-9a-f]{4})\*/", "/*" + "f" * 64 + "*/")),
    "all addresses alike": ("sass", _instead(r"/\*([0-9a-f]{4})\*/", "/*0000*/")),
    "a branch to nowhere": ("sass", _once(r"EXIT *;", "BRA 0xfffffffffffffff0 ;\nEXIT ;")),
    "registers beyond 255": ("sass", _instead(r"\bR(\d+)\b", "R99999999")),
    "a modifier of digits that are none": ("sass", _once(r"EXIT *;", "I2F.S² R1, R2 ;\nEXIT ;")),
    "a target of no digits": ("sass", _instead(r"SM80", "SM²²")),
    "a wait of 2^40": ("amdgcn", _instead(r"vmcnt\(\d+\)", "vmcnt(1099511627776)")),
    "registers from 5 to 4": ("amdgcn", _instead(r"s\[(\d+):(\d+)\]", "s[5:4]")),
    "registers from 0 to 2^40": ("amdgcn", _instead(r"s\[(\d+):(\d+)\]", "s[0:1099511627776]")),
    "a wave of 2^31": ("amdgcn", _instead(r"wavefront_size: *\d+", f"wavefront_size: {1 << 31}")),
    "metadata of AMD in 5,000 levels": ("amdgcn", _instead(r"\.args:", ".args:\n" + "\n".join(" " * n + "- " for n in range(5000)))),
    "a target of AMD that is none": ("amdgcn", _instead(r"gfx942", "gfx²")),
    "scratch of 2^63": ("amdgcn", _instead(r"(private_segment_fixed_size:?) *\d+", f"private_segment_fixed_size: {1 << 63}")),
}  # fmt: skip
"""Name → the stage, and what is done to its text."""

METADATA: Mapping[str, Any] = {
    "a name of ANSI and newlines": {"name": "\x1b[2J\n::error::k\r\u202e"},
    "a name of a megabyte": {"name": "k" * (1 << 20)},
    "a name of half a pair": {"name": "\ud800"},
    "clusters of 2^30": {"num_ctas": 1 << 30},
    "clusters of -5": {"num_ctas": -5},
    "clusters that are true": {"num_ctas": True},
    "scratch of 2^62 for each CTA": {"global_scratch_size": 1 << 62},
    "scratch of 1 MB for each CTA": {"global_scratch_size": 1 << 20},
    "scratch of -1": {"global_scratch_size": -1},
    "10^18 warps": {"num_warps": 10**18},
    "shared memory of 2^63": {"shared": 1 << 63},
    "a target of lists": {"target": {"backend": ["cuda"], "arch": [80], "warp_size": {}}},
    "a warp of none": {"target": {"backend": "cuda", "arch": 80, "warp_size": 0}},
    "an arch of 5,000 digits": {"target": {"backend": "cuda", "arch": int("9" * 4000), "warp_size": 32}},
    "a version of 5,000 digits": {"triton_version": "9" * 5000 + ".0.0"},
    "a version that names a program": {"triton_version": "3.6.0=halt"},
    "a hash that is a path": {"hash": "../../../../etc/passwd"},
    "a hash that is an option": {"hash": "--help"},
    "options for ptxas": {"ptx_options": "-o /tmp/pwn", "ir_override": "/etc/passwd"},
    "tensor maps of 2^60": {"tensordesc_meta": [{"swizzle": 1 << 60, "block_size": [1 << 60]}] * 1000},
    "100,000 keys": {f"k{n}": n for n in range(100_000)},
}  # fmt: skip
"""Name → what the metadata say otherwise."""


# -- binaries ----------------------------------------------------------------------------


def _row(at: int, **changed: int) -> Callable[[bytes], bytes]:
    """An ELF file with other fields in one row of its table of sections; the last one for -1."""
    places = {"name": (0, "I"), "kind": (4, "I"), "offset": (24, "Q"), "size": (32, "Q"), "link": (40, "I"),
              "info": (44, "I"), "entsize": (56, "Q")}  # fmt: skip

    def change(data: bytes) -> bytes:
        broken = bytearray(data)
        (start,) = struct.unpack_from("<Q", data, 0x28)
        (count,) = struct.unpack_from("<H", data, 0x3C)
        for number in range(count) if at < 0 else (at,):
            for key, new in changed.items():
                offset, form = places[key]
                struct.pack_into(f"<{form}", broken, start + 64 * (number % count) + offset, new)
        return bytes(broken)

    return change


def _head(at: int, form: str, new: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        broken = bytearray(data)
        struct.pack_into(f"<{form}", broken, at, new)
        return bytes(broken)

    return change


def _sections(count: int) -> Callable[[bytes], bytes]:
    """With so many sections behind it, all of them of the first byte."""

    def change(data: bytes) -> bytes:
        row = struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 0, 1, 0, 0, 1, 0)
        broken = bytearray(data + row * count)
        struct.pack_into("<Q", broken, 0x28, len(data))
        struct.pack_into("<HH", broken, 0x3C, count, 0)
        return bytes(broken)

    return change


def _maps(levels: int) -> Callable[[bytes], bytes]:
    """Notes of an hsaco that are so many maps in maps."""

    def change(data: bytes) -> bytes:
        at = data.find(b"AMDGPU\0\0") + 8
        (said,) = struct.unpack_from("<I", data, at - 16)
        nest = (b"\x81\xa1a" * levels)[: said - 1] + b"\xc0"
        return data[:at] + nest.ljust(said, b"\xc0") + data[at + said :]

    return change


def _bytes_of(find: bytes, by: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(find, by)


BINARIES: Mapping[str, Callable[[bytes], bytes]] = {
    "sections that lie beyond the file": _row(-1, offset=1 << 60),
    "sections of 2^63 bytes": _row(-1, size=1 << 63),
    "sections that wrap": _row(-1, offset=(1 << 64) - 8, size=16),
    "sections upon each other": _row(-1, offset=0, size=4096),
    "sections of rows of none": _row(-1, entsize=0),
    "sections that link in a circle": _row(-1, link=1, info=1),
    "sections that link nowhere": _row(-1, link=0xFFFFFFFF),
    "names beyond the file": _row(-1, name=0xFFFFFFFF),
    "all sections are symbols": _row(-1, kind=2),
    "all sections are notes": _row(-1, kind=7),
    "no section has content": _row(-1, kind=8),
    "65,535 sections": _sections(65_535),
    "a table of sections at its own end": _head(0x28, "Q", (1 << 64) - 1),
    "rows of 65,535 bytes": _head(0x3A, "H", 65_535),
    "no section at all": _head(0x3C, "H", 0),
    "names in a section that is none": _head(0x3E, "H", 65_535),
    "big-endian": _head(5, "B", 2),
    "another machine": _head(18, "H", 62),
    "half of it": lambda data: data[: len(data) // 2],
    "the head alone": lambda data: data[:64],
    "nothing": lambda data: b"",
    "maps of 10,000 levels": _maps(10_000),
    "a map of 2^32 keys": _bytes_of(b"\xde\0", b"\xdf\xff"),
    "a symbol of ANSI": _bytes_of(b"copy", b"\x1b[2J"),
    "attributes of hostile forms": _bytes_of(b"\x04\x17", b"\xff\xff"),
    "zeros in place of its attributes": lambda data: data[:256] + bytes(len(data) // 4) + data[256 + len(data) // 4 :],
}  # fmt: skip
"""Name → what is done to a cubin and to an hsaco, whose texts are taken away."""


# -- trees -------------------------------------------------------------------------------


def _pipe(kernel: Path) -> None:
    for file in list(kernel.glob("copy.*")):
        file.unlink()
        os.mkfifo(file)


def _sockets(kernel: Path) -> None:
    here = Path.cwd()
    os.chdir(kernel)  # the name of a socket may have 107 bytes
    try:
        for name in ("copy.ptx", "x.ttir", "inspect-kernel.json"):
            Path(name).unlink(missing_ok=True)
            with socket.socket(socket.AF_UNIX) as one:
                one.bind(name)
    finally:
        os.chdir(here)


def _directories(kernel: Path) -> None:
    for file in list(kernel.glob("copy.*")):
        file.unlink()
        file.mkdir()
        (file / file.name).mkdir()


def _links(kernel: Path) -> None:
    (kernel / "loop.ptx").symlink_to("loop.ptx")
    (kernel / "a.ttir").symlink_to("b.ttir")
    (kernel / "b.ttir").symlink_to("a.ttir")
    (kernel / "up").symlink_to("..")
    (kernel / "zero.llir").symlink_to("/dev/zero")
    (kernel / "mem.ttgir").symlink_to("/proc/self/mem")
    (kernel / "tty.json").symlink_to("/dev/tty")
    (kernel / "passwd.ptx").symlink_to("/etc/passwd")


_ODD = ("\n::error::a", "\x1b[2J", "\u202egro", "a\rb", "-o", "--json", "~", "$(id)", "a\u2028b", "\udcff", "a" * 200,
        "*", "?", "%s", "{}", "[bold]", "<img src=x onerror=pwn()>", "CON", " ", "a\tb", ";", "`id`")  # fmt: skip


def _names(kernel: Path) -> None:
    for number, odd in enumerate(_ODD):
        shutil.copytree(kernel, kernel.with_name(f"{odd}{number}"))
        (kernel / f"{odd}.ttir").write_text((kernel / "copy.ttir").read_text())


def _groups(kernel: Path) -> None:
    (kernel / "__grp__copy.json").write_text(json.dumps({"child_paths": {
        "copy.ttir": "/etc/passwd", "../../x.json": "../../../x", "copy.json": 7, "copy.ptx": ["a"], "\x1b[2J": "/dev/zero",
    }}))  # fmt: skip


def _empty(count: int) -> Callable[[Path], None]:
    def make(kernel: Path) -> None:
        for number in range(count):
            kernel.with_name(f"{number:07}").mkdir()

    return make


def _deep(kernel: Path) -> None:
    place = kernel
    for _ in range(200):
        place = place / "d"
        place.mkdir()


def _written(name: str, text: str) -> Callable[[Path], None]:
    return lambda kernel: [(kernel.parent / name).write_text(text), (kernel / name).write_text(text)][0] and None


def _sparse(name: str) -> Callable[[Path], None]:
    return lambda kernel: os.truncate(kernel / name, 1 << 40)


TREES: Mapping[str, Callable[[Path], None]] = {
    "pipes in every file's place": _pipe,
    "sockets": _sockets,
    "directories named as files": _directories,
    "links in circles and out": _links,
    "names of malice": _names,
    "a group that names files elsewhere": _groups,
    "1,000 empty directories": _empty(1000),
    "100,000 empty directories": _empty(100_000),
    "directories of 200 levels": _deep,
    "metadata of keys told twice": _written("copy.json", '{"name": "copy", "name": 7, "num_warps": 4, "num_warps": [4]}'),
    "metadata of NaN": _written("copy.json", '{"num_warps": NaN, "shared": Infinity, "num_stages": -Infinity}'),
    "metadata of 1e999": _written("copy.json", '{"num_warps": 1e999, "shared": -1e999, "num_stages": 1e-999}'),
    "metadata of 100,000 levels": _written("copy.json", "[" * 100_000),
    "metadata in UTF-16": lambda kernel: (kernel / "copy.json").write_bytes('{"name": "copy"}'.encode("utf-16")) and None,
    "metadata of a byte order mark": _written("copy.json", '\ufeff{"name": "copy", "num_warps": 4}'),
    "a record that is a list": _written("inspect-kernel.json", "[1, 2]"),
    "a record of a record": _written("inspect-kernel.json", '{"entries": [{"directory": ["a"]}, 7, {"directory": "..", "place": 7}]}'),
    "a record of 100,000 levels": _written("inspect-kernel.json", '{"entries":' + "[" * 100_000),
    "a record of launches of nothing": _written("inspect-kernel.json", '{"launches": [{}, {"hash": []}, {"hash": {}, "kernel": 7, "grid": {}}]}'),
    "a record of hashes that are lists": _written("inspect-kernel.json", '{"launches": [{"hash": ["a"], "kernel": ["copy"], "target": {}, "grid": [1], "args": {}}]}'),
    "a record of hashes that are numbers": _written("inspect-kernel.json", '{"launches": [{"hash": 7, "kernel": "copy", "target": 7, "grid": 7, "args": {"n": 1e999}}]}'),
    "remarks of malice": _written("copy.remarks", "k.py:99999999999999999999:1: remark: \x1b[2J\n::error::a\n" * 1000),
    "timings of malice": _written("copy.autotune.json", '{"key": [1e999, NaN, {}], "configs_timings": [[{"kwargs": {"": []}, "num_warps": {}}, [NaN]], [{"kwargs": {}}, 1e999]]}'),
    "a text of a terabyte": _sparse("copy.ptx"),
    "a binary of a terabyte": _sparse("copy.cubin"),
    "metadata of a terabyte": _sparse("copy.json"),
}  # fmt: skip
"""Name → what is done to the directory of a kernel."""


# -- launches ----------------------------------------------------------------------------

_X = '{"grid": %s, "args": {"x_ptr": %s, "y_ptr": {"shape": [64], "dtype": "fp16"}, "n": 64}}'


def _launch(grid: str = "[2]", tensor: str = '{"shape": [64], "dtype": "fp16"}') -> str:
    return _X % (grid, tensor)


def _of(**tensor: Any) -> str:
    return _launch(tensor=json.dumps({"shape": [64], "dtype": "fp16", **tensor}))


LAUNCHES: Mapping[str, str] = {
    "strides that go back": _of(stride=[-1]),
    "strides of none": _of(stride=[0]),
    "strides of 2^63": _of(stride=[1 << 63]),
    "no extent": _of(shape=[0]),
    "no axis": _of(shape=[]),
    "an extent of 2^63": _of(shape=[1 << 63]),
    "an extent of 2^40": _of(shape=[1 << 40]),
    "an extent that is true": _of(shape=[True]),
    "1,000 axes": _of(shape=[1] * 1000),
    "too few values": _of(values=[1.0]),
    "too many values": _of(values=[1.0] * 65),
    "values of objects": _of(values=[{}] * 64),
    "values of 10^400": _of(values=[10**400] * 64, dtype="i32"),
    "values of 1e999": _of(dtype="i32").replace('"i32"', '"i32", "values": [' + ", ".join(["1e999"] * 64) + "]"),
    "values of 900 levels": _of().replace('"fp16"', '"fp16", "values": ' + _nested("[", "]", 900)),
    "values of 5,000 levels": _of().replace('"fp16"', '"fp16", "values": ' + _nested("[", "]", 5000)),
    "descriptors of 5,000 levels": _launch(tensor='{"descriptor": ' * 5000 + "1" + "}" * 5000),
    "tensors upon each other": _of(ptr=0x7000_0000_0000),
    "a pointer that wraps": _of(ptr=(1 << 64) - 16),
    "a pointer at the end": _of(ptr=(1 << 48) - 256),
    "a pointer of -1": _of(ptr=-1),
    "a pointer at an odd place": _of(ptr=0x7000_0000_0001),
    "a pointer that is a text": _of(ptr="0x10"),
    "a type of a page": _of(dtype="fp32" * 10_000),
    "a grid of 2^40": _launch(str([1 << 40])),
    "a grid of 2^22": _launch(str([1 << 22])),
    "a grid of a plane of 2^24": _launch("[4096, 4096, 1]"),
    "a grid of -1": _launch("[-1]"),
    "a grid of none": _launch("[0, 1, 1]"),
    "a grid of true": _launch("[true]"),
    "a grid of powers": _launch('"9**9**9"'),
    "a grid of dunders": _launch('"().__class__.__base__.__subclasses__()"'),
    "a grid of 900 brackets": _launch(json.dumps("(" * 400 + "1" + ")" * 400)),
    "a grid of products": _launch(json.dumps("*".join(["next_power_of_2(999999999999999999)"] * 20))),
    "a grid of the next power of a power": _launch('"next_power_of_2(n*n*n*n*n*n*n*n*n)"'),
    "a grid by none": _launch('"n // 0"'),
    "a grid of words": _launch('["__import__(\'os\').system(\'id\')"]'),
    "keys told twice": '{"grid": [1], "grid": [2], "args": {"n": 1, "n": {}}}',
    "numbers that JSON has not": '{"grid": [NaN], "args": {"n": Infinity}}',
    "a float of 1e300": _launch().replace('"n": 64', '"n": 1e300'),
    "a number of 4,000 digits": _launch().replace('"n": 64', '"n": ' + "9" * 4000),
    "20,000 launches": '{"launches": [' + ", ".join([_launch()] * 20_000) + "]}",
    "100,000 arguments": '{"grid": [1], "args": {' + ", ".join(f'"a{n}": {n}' for n in range(100_000)) + "}}",
    "a document of 100,000 levels": "[" * 100_000,
    "no text": "\ud800",
}  # fmt: skip
"""Name → the document."""


# -- all of them -------------------------------------------------------------------------


def _copied(source: Path, place: Path) -> Path:
    return Path(shutil.copytree(source, place / "cache" / "AAAA"))


def make(name: str, place: Path) -> None:
    """Make the cache of a case in a directory, and its launch beside it."""
    (place / "away").mkdir()
    (place / "launch.json").write_text(_launch(), encoding="utf-8")
    if name in TEXTS:
        stage, change = TEXTS[name]
        kernel = _copied(AMD if stage == "amdgcn" else NVIDIA, place)
        file = kernel / f"copy.{stage}"
        file.write_bytes(change(file.read_text(encoding="utf-8")).encode("utf-8", "surrogatepass"))
    elif name in METADATA:
        kernel = _copied(NVIDIA, place)
        document = json.loads((kernel / "copy.json").read_text())
        (kernel / "copy.json").write_text(json.dumps({**document, **METADATA[name]}))
    elif name in BINARIES:
        for source, suffixes in ((NVIDIA, ("cubin", "sass")), (AMD, ("hsaco", "amdgcn"))):
            kernel = Path(shutil.copytree(source, place / "cache" / suffixes[0]))
            file = kernel / f"copy.{suffixes[0]}"
            file.write_bytes(BINARIES[name](file.read_bytes()))
            (kernel / f"copy.{suffixes[1]}").unlink(missing_ok=True)
    elif name in TREES:
        TREES[name](_copied(NVIDIA, place))
    else:
        _copied(NVIDIA, place)
        (place / "launch.json").write_bytes(LAUNCHES[name].encode("utf-8", "surrogatepass"))


CASES = (*TEXTS, *METADATA, *BINARIES, *TREES, *LAUNCHES)
_STEPS = ("--steps", "20000")
ON_PAPER = (
    ("predict", "CACHE", "AAAA", "--launch", "LAUNCH", "--json", *_STEPS),
    ("predict", "CACHE", "AAAA", "--launch", "LAUNCH", *_STEPS),
    ("predict", "CACHE", "AAAA", "--launch", "LAUNCH", "--html", "AWAY/launch.html", *_STEPS),
    ("predict", "CACHE", "AAAA", "--launch", "LAUNCH", "--svg", "grid", *_STEPS),
    ("rank", "CACHE", "AAAA", "--launch", "LAUNCH", *_STEPS),
)
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("inspect", "CACHE"), ("inspect", "CACHE", "--json"), ("inspect", "CACHE", "copy"), ("inspect", "CACHE", "AAAA", "--ir"),
    ("inspect", "CACHE", "--sass"), ("inspect", "CACHE", "--timeline", "--json"),
    ("inspect", "CACHE", "--timeline"), ("inspect", "CACHE", "--registers"),
    ("inspect", "CACHE", "--registers", "--json"), ("findings", "CACHE"), ("findings", "CACHE", "-f", "sarif"),
    ("findings", "CACHE", "-f", "github"), ("matrix", "CACHE"), ("matrix", "CACHE", "--why"), ("diff", "CACHE", "WHOLE"),
    ("diff", "WHOLE", "CACHE", "-f", "markdown"), ("baseline", "CACHE", "-o", "AWAY/baseline.json"),
    ("check", "CACHE", "-b", "AWAY/baseline.json", "-f", "junit"), ("report", "CACHE", "-o", "AWAY/page.html"),
    ("inspect", "CACHE", "--graph", "graphml"), ("watch", "CACHE", "--all", "--idle", "0"), ("predict", "CACHE", "--steps", "20000"),
    ("rank", "CACHE", "--steps", "20000"), *ON_PAPER,
)  # fmt: skip


def _words(command: tuple[str, ...], place: Path) -> Iterator[str]:
    names = {"CACHE": "cache", "LAUNCH": "launch.json", "AWAY": "away"}
    for word in command:
        first, slash, rest = word.partition("/")
        if first == "WHOLE":
            yield str(NVIDIA)
        else:
            yield str(place / names[first]) + slash + rest if first in names else word


def run(name: str, commands: Sequence[tuple[str, ...]], tell: Callable[[str], None]) -> None:
    """Make a case and give it to commands, in this process; what is found is told."""
    with tempfile.TemporaryDirectory(prefix="hostile-", ignore_cleanup_errors=True) as made:
        place = Path(made)
        make(name, place)
        for command in commands:
            try:
                with within(SECONDS):
                    check_command(list(_words(command, place)), place / "away")
            except Exception as error:  # noqa: BLE001 - whatever escapes is what is looked for
                where = traceback.extract_tb(error.__traceback__)[-1]
                told = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {error}"
                tell(f"{name}: {' '.join(command)}: {told[:400]}")
        try:
            check_written(place / "away")
        except (EscapeError, ValueError) as error:
            tell(f"{name}: what was written: {error}")


def _apart(name: str, commands: Sequence[tuple[str, ...]]) -> int:
    """The same in a process of its own, with bounds, which is ended where it waits; how many finds."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        signal.alarm(WAITS)
        found: list[str] = []
        run(name, commands, lambda said: (found.append(said), print(said, flush=True))[1])
        os._exit(min(len(found), 100))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        print(f"{name}: ended by signal {-code}", flush=True)
    return code if code >= 0 else 1


def main() -> int:
    """Run every case, or those whose name has a word in it, through every command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.hostile", description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only cases whose name has it")
    asked = parser.parse_args()
    chosen = [name for name in CASES if asked.word in name]
    runs = finds = 0
    for name in chosen:
        commands = ON_PAPER if name in LAUNCHES else COMMANDS
        finds += _apart(name, commands)
        runs += len(commands)
    print(f"{len(chosen)} cases, {runs} commands, {finds} finds", flush=True)
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
