"""How time and memory grow with the kernels of a cache.

`python -m tests.fuzz.many [WORD] [--to 30000]` makes caches of small kernels, each for two targets, one with a tenth of
the kernels of the other, and runs each command over both: processor time and the largest process. 1.0 where ten
times as many kernels take ten times as much.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from base64 import b32encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

__all__ = ["COMMANDS", "make_cache", "run"]

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "list": ("inspect", "CACHE", "--no-index"),
    "list, kept": ("inspect", "CACHE"),
    "list, again": ("inspect", "CACHE"),
    "all of it": ("inspect", "CACHE", "--limit", "0"),
    "document": ("inspect", "CACHE", "--json"),
    "findings": ("findings", "CACHE"),
    "matrix": ("matrix", "CACHE", "tuned"),
    "targets beside each other": ("diff", "CACHE", "--left", "sm_80", "--right", "sm_90"),
    "page": ("report", "CACHE", "-o", "AWAY/page.html"),
    "baseline": ("baseline", "CACHE", "-o", "AWAY/baseline.json"),
    "held against it": ("check", "CACHE", "-b", "AWAY/baseline.json"),
}
"""Name → the command, in an order in which each finds what it needs of those before."""
_TARGETS = (80, 90)
_TTIR = """module {
  tt.func public @NAME(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant STEP : i32
    %z = arith.constant dense<0.0> : tensor<32xf32>
    %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %a = tt.addptr %s, %r : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %o = scf.for %i = %c0 to %n step %c1 iter_args(%x = %z) -> (tensor<32xf32>)  : i32 {
      %v = tt.load %a cacheModifier = cg : tensor<32x!tt.ptr<f32>>
      %y = arith.addf %x, %v : tensor<32xf32>
      scf.yield %y : tensor<32xf32>
    }
    tt.store %a, %o : tensor<32x!tt.ptr<f32>>
    tt.return
  }
}
"""
_PTX = """.version 8.0
.target sm_TARGET
.address_size 64
.visible .entry NAME(.param .u64 .ptr .global .align 16 NAME_param_0, .param .u32 NAME_param_1)
.reqntid 128
{
\tld.param.b64 \t%rd1, [NAME_param_0];
$L__BB0_1:
\tld.global.b32 \t%r1, [%rd1];
\tadd.f32 \t%r2, %r2, %r1;
\tadd.s32 \t%r3, %r3, STEP;
\tsetp.lt.s32 \t%p1, %r3, %r4;
\t@%p1 bra \t$L__BB0_1;
\tst.global.b32 \t[%rd1], %r2;
\tret;
}
"""


class Cost(NamedTuple):
    """What a command took, with its children."""

    seconds: float
    """Of the processor."""
    mib: float
    """Of the largest process."""


def make_cache(count: int, place: Path) -> Path:
    """So many kernels, each of them once for each target; every other is a configuration of one kernel."""
    for number in range(count):
        pair, side = divmod(number, len(_TARGETS))
        target, name = _TARGETS[side], f"kernel_{pair}" if pair % 2 else "tuned"
        digest = sha256(str(number).encode()).digest()
        entry = place / b32encode(digest).decode().rstrip("=")
        entry.mkdir(parents=True)
        words = {"NAME": name, "TARGET": str(target), "STEP": str(pair + 1)}
        for suffix, text in (("ttir", _TTIR), ("ptx", _PTX)):
            for word, meant in words.items():
                text = text.replace(word, meant)
            (entry / f"{name}.{suffix}").write_text(text, encoding="utf-8")
        metadata = {
            "hash": digest.hex(),
            "target": {"backend": "cuda", "arch": target, "warp_size": 32},
            "name": name,
            "num_warps": 4,
            "num_ctas": 1,
            "num_stages": pair + 1,
            "shared": 0,
            "triton_version": "3.6.0",
        }
        (entry / f"{name}.json").write_text(json.dumps(metadata), encoding="utf-8")
    return place


def run(command: Sequence[str], cache: Path, away: Path) -> Cost | str:
    """What a command takes in a process of its own; the last line of what it says where it fails."""
    words = [word.replace("CACHE", str(cache)).replace("AWAY", str(away)) for word in command]
    environment = {**os.environ, "XDG_CACHE_HOME": str(away)}
    with tempfile.TemporaryFile() as said:
        started = subprocess.Popen(
            [sys.executable, "-P", "-m", "artifact_inspector", *words],
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=environment,
        )
        _, status, used = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode not in (0, 1):
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").strip().splitlines()
            return (lines or [f"stopped ({started.returncode})"])[-1][:100]
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main() -> None:
    """Run all commands, or those whose name holds a word."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.many", description=__doc__)
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--to", type=int, default=30_000, help="kernels of the larger cache")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="many-") as place:
        sides = [Path(place, str(number)) for number in (asked.to // 10, asked.to)]
        caches = [make_cache(int(side.name), side / "cache") for side in sides]
        for name, command in COMMANDS.items():
            if asked.word not in name:
                continue
            small, large = (run(command, cache, side) for cache, side in zip(caches, sides, strict=True))
            if isinstance(small, str) or isinstance(large, str):
                print(f"| {name} | stopped at {small if isinstance(small, str) else large} |", flush=True)
                continue
            grown = math.log10(large.seconds / small.seconds)
            print(f"| {name} | {asked.to:,} | {large.seconds:.1f} | {grown:.2f} | {large.mib:,.0f} | "
                  f"{small.mib:,.0f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
