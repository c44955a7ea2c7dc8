"""`python -m tests.fuzz.guided`: inputs guided by coverage (atheris), for each thing that is read.

A reader runs in a child process with its own corpus, so that what was found leads on when it is called again;
how many inputs were tried is kept beside the corpora. What escapes is kept there too, as a file `crash-…`,
which `--again` reads.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

FIXTURES = Path(__file__).parents[2] / "fixtures"
_LONGEST = 6_000
"""Bytes of an input: so many are read in a millisecond."""
_DONE = re.compile(r"Done (\d+) runs|stat::number_of_executed_units: (\d+)")

Reader = Callable[[bytes], object]


def _text_reader(name: str) -> Reader:
    from artifact_inspector.model import Stage
    from tests.fuzz.checks import check_text

    return lambda data: check_text(data.decode("utf-8", "replace"), Stage(name))


def _binary_reader(suffix: str) -> Reader:
    from artifact_inspector.errors import CacheError
    from artifact_inspector.files import binaries

    read = binaries.read_cubin if suffix == "cubin" else binaries.read_hsaco

    def take(data: bytes) -> None:
        for ask in (read, lambda some: binaries.read_loaded_sections(some, suffix)):
            try:
                ask(data)
            except CacheError as error:
                str(error)
        if suffix == "cubin":
            for ask_more in (binaries.read_interface, lambda some: binaries.read_function_code(some, "k")):
                try:
                    ask_more(data)
                except CacheError as error:
                    str(error)

    return take


def _metadata_reader() -> Reader:
    from artifact_inspector.files.cache import cache_in_memory

    return lambda data: cache_in_memory("k", {"json": data, "ttir": b"module {}"})


def _remarks_reader() -> Reader:
    from artifact_inspector.files.compiler_remarks import parse_remarks

    return lambda data: parse_remarks(data.decode("utf-8", "replace"))


def _refusing(read: Callable[[str], object]) -> Reader:
    """What may answer with an error of ours."""
    from artifact_inspector.errors import InspectorError

    def take(data: bytes) -> None:
        try:
            read(data.decode("utf-8", "replace"))
        except InspectorError as error:
            str(error)

    return take


def _launch_reader() -> Reader:
    from artifact_inspector.execution.launch_requests import parse_document, resolve_launch

    return _refusing(
        lambda text: [resolve_launch(one, ("x",), {"N": 7}) for one in parse_document(text, "launch.json")]
    )


def _argument_reader() -> Reader:
    from artifact_inspector.execution.launch import evaluate_extent
    from artifact_inspector.execution.launch_requests import parse_argument, parse_grid

    def take(text: str) -> None:
        first, _, rest = text.partition("\n")
        name, value = parse_argument(first)
        for extent in parse_grid(rest):
            if isinstance(extent, str):
                evaluate_extent(extent, {name: value})

    return _refusing(take)


def _baseline_reader() -> Reader:
    from artifact_inspector.report.json.baseline_reading import parse_baseline

    return _refusing(lambda text: parse_baseline(text, "baseline.json"))


READERS: Mapping[str, Callable[[], Reader]] = {
    **{name: lambda name=name: _text_reader(name) for name in ("ttir", "ttgir", "llir", "ptx", "sass", "amdgcn")},
    **{name: lambda name=name: _binary_reader(name) for name in ("cubin", "hsaco")},
    "metadata": _metadata_reader,
    "remarks": _remarks_reader,
    "launch": _launch_reader,
    "argument": _argument_reader,
    "baseline": _baseline_reader,
}  # type: ignore[misc]
"""Name → what makes the reader, once the modules are to be watched."""
_SHARES = {"metadata": 0.5, "remarks": 0.5, "launch": 0.5, "argument": 0.5, "baseline": 0.5}
"""Of inputs, where a reader is small; 1 for the others."""


def _seeds(name: str) -> list[bytes]:
    """What inputs are made of at first."""
    from artifact_inspector.model import Stage
    from tests.fuzz.corpus import texts

    if name in {stage.value for stage in Stage}:
        return [text.encode() for text in texts()[Stage(name)]]
    if name in ("cubin", "hsaco"):
        return [path.read_bytes() for path in sorted(FIXTURES.rglob(f"*.{name}"))]
    if name == "metadata":
        return [path.read_bytes() for path in sorted(FIXTURES.rglob("*/*/*/*/*.json"))[::8]]
    given = {
        "remarks": (
            b"k.py:3:5: remark: Warning: a sentence\nk.py:4:5: note: called from\n"
            b"ptxas info : (C7511) Potential Performance Loss: wgmma in the function 'k' in line 7\n"
            b"    0 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n",
        ),
        "launch": (
            b'{"grid": ["cdiv(N, 4)", 2], "args": {"x": {"shape": [4, 8], "dtype": "fp16", "stride": [8, 1]}, '
            b'"N": 3, "y": "fp32[4]"}}',
            b'{"launches": [{"grid": "4,2", "args": {"d": {"descriptor": {"shape": [2], "dtype": "i32", '
            b'"values": [1, 2]}}}}]}',
        ),
        "argument": (b"M=64\ncdiv(M, 16) * 2, next_power_of_2(M) % 3", b"a=fp16[4,8](8,1)\n32,min(1, 2)"),
    }
    return list(given[name]) if name in given else _baselines()


def _baselines() -> list[bytes]:
    from artifact_inspector.comparison.baseline import record
    from artifact_inspector.report.json.baseline import baseline_text, recorded_text
    from tests.fuzz.checks import check_kernel
    from tests.fuzz.corpus import kernels

    found = check_kernel(min(kernels(), key=lambda path: -kernels()[path]).parent)
    return [
        "".join(baseline_text(map(recorded_text, [record(kernel, lambda _: None)]))).encode() for kernel in found[:1]
    ]


def _watch(name: str, arguments: Sequence[str]) -> None:
    """Try inputs of one reader until as many are tried as libFuzzer is told; does not return."""
    import atheris

    with atheris.instrument_imports(include=["artifact_inspector"]):
        read = READERS[name]()
    others = [seed.decode("utf-8", "replace") for seed in _seeds(name)]
    is_binary = name in ("cubin", "hsaco")

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if is_binary or chance.random() < 0.5:
            return bytes(atheris.Mutate(data, longest))
        from tests.fuzz.mutants import damage

        return damage(data.decode("utf-8", "replace"), others, chance).encode("utf-8", "replace")[:longest]

    atheris.Setup([sys.argv[0], *arguments], read, custom_mutator=mutate)
    atheris.Fuzz()


def _try(name: str, count: int, place: Path, seed: int) -> tuple[int, str | None]:
    """How many inputs were tried, and what escaped."""
    corpus, seeds = place / "corpus" / name, place / "seeds" / name
    for directory in (corpus, seeds, place / "found"):
        directory.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(_seeds(name)):
        (seeds / str(number)).write_bytes(data)
    longest = 40_000 if name in ("cubin", "hsaco") else _LONGEST
    options = [
        f"-runs={count}", f"-seed={seed}", f"-max_len={longest}", "-timeout=8", "-rss_limit_mb=1024",
        "-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={place / 'found' / name}-", str(corpus), str(seeds),
    ]  # fmt: skip
    command = [sys.executable, "-m", "tests.fuzz.guided", "--watch", name, "--", *options]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    said = result.stdout + result.stderr
    tried = max((int(one or other) for one, other in _DONE.findall(said)), default=0)
    return tried, None if result.returncode == 0 else said[-3000:]


def main() -> int:
    """Try inputs of every reader; 1 where anything escaped."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.guided", description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only readers whose name holds it")
    parser.add_argument("--state", type=Path, default=Path(".fuzz"), help="where corpora and finds are kept")
    parser.add_argument("--runs", type=int, default=50_000, help="inputs in all of each reader of a format")
    parser.add_argument("--again", type=Path, metavar="FILE", help="give a reader this one input")
    parser.add_argument("--watch", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("options", nargs="*", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.watch:
        _watch(asked.word, asked.options)
    if asked.again is not None:
        READERS[asked.word]()(asked.again.read_bytes())
        return 0
    kept = asked.state / "tried.json"
    tried: dict[str, int] = json.loads(kept.read_text()) if kept.exists() else {}
    escaped = 0
    for name in READERS:
        wanted = int(asked.runs * _SHARES.get(name, 1.0)) - tried.get(name, 0)
        if asked.word not in name or wanted <= 0:
            continue
        count, found = _try(name, wanted, asked.state, seed=tried.get(name, 0) + 1)
        tried[name] = tried.get(name, 0) + count
        kept.write_text(json.dumps(tried, indent=1) + "\n")
        print(f"{name}: {tried[name]} inputs", flush=True)
        if found is not None:
            escaped += 1
            print(found, flush=True)
    return 1 if escaped else 0


if __name__ == "__main__":
    sys.exit(main())
