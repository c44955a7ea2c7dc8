"""What else reads a stranger's files or words, each with a maker of hostile ones and the promises as checks.

A surface is a function of a number, which makes one case again, and of a directory to make it in. It raises
where a promise is broken; what it returns is counted: how commands ended, say.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from tests.fuzz import packed, served
from tests.fuzz.campaign import kernel_mutant
from tests.fuzz.corpus import kernels
from tests.fuzz.documents import damaged_document
from tests.fuzz.launching import launch_of
from tests.fuzz.poison import WORDS, poison
from tests.fuzz.promises import Said, check_command, check_written
from tests.fuzz.views import VIEWS, filled

__all__ = ["SURFACES", "make"]

Surface = Callable[[random.Random, Path], str]


def make(surface: str, number: int, place: Path) -> str:
    """Make one case in an empty directory; what came of it."""
    return SURFACES[surface](random.Random(f"{surface} {number}"), place)


def _copied(place: Path, chance: random.Random) -> Path:
    """A kernel in a cache of its own; where views write is `away` beside it."""
    (whole,) = chance.choices(tuple(kernels()), tuple(kernels().values()))
    (place / "away").mkdir()
    return Path(shutil.copytree(whole, place / "cache" / whole.name))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _ended(said: Said) -> str:
    return f"exit {said.code}"


def _names(chance: random.Random, place: Path) -> str:
    """Words of malice in names, places and metadata, given to a view."""
    kernel = _copied(place, chance)
    shutil.copytree(kernel, place / "whole" / kernel.name)
    poison(kernel, chance)
    cache, away = place / "cache", place / "away"
    names = {
        "CACHE": str(cache), "WHOLE": str(place / "whole"), "AWAY": str(away), "HASH": next(cache.iterdir()).name.lstrip("-"),
    }  # fmt: skip
    view = chance.choice(tuple(VIEWS))
    if "AWAY/baseline.json" in VIEWS[view]:
        check_command(
            ["baseline", str(chance.choice((cache, place / "whole"))), "-o", str(away / "baseline.json")], away
        )
    said = check_command([filled(word, names) for word in VIEWS[view]], away)
    check_written(away)
    return _ended(said)


_LAUNCHED = (
    ("predict", "--json"),
    ("predict",),
    ("predict", "--svg", "grid"),
    ("predict", "--svg", "banks"),
    ("predict", "--svg", "roofline", "--gpu", "H200"),
    ("predict", "--svg", "residency"),
    ("predict", "--html", "PAGE"),
    ("predict", "--ctas-per-wave", "3", "--json"),
    ("rank", "--json"),
    ("rank", "--gpu", "H200"),
)


def _launches(chance: random.Random, place: Path) -> str:
    """A launch of malice, in a file, of a kernel as it is."""
    path, document = launch_of(chance)
    launch, away = place / "launch.json", place / "away"
    away.mkdir()
    launch.write_bytes(_encoded(damaged_document(document, chance)))
    first, *rest = chance.choice(_LAUNCHED)
    rest = [str(away / "page.html") if word == "PAGE" else word for word in rest]
    said = check_command([first, str(path), "--launch", str(launch), "--steps", "3000", *rest], away)
    check_written(away)
    return _ended(said)


_EXPRESSIONS = (
    "M**M", "9**9**9", "cdiv(M,N)", "__import__('os')", "().__class__", "M" * 2000, "(" * 300 + "1" + ")" * 300,
    "-" * 400 + "1", "1<<99999", "next_power_of_2(10**9)", "M*" * 300 + "M", "max()", "max(1)", "min(1,2,3)", "M//0",
    "M%0", "cdiv(1,0)", "cdiv(1)", "lambda: 1", "[1]*9", "1,2,3,4", "x", ",,", "1x2x3", "((1,2),3)", "1e9", "0x10", "²",
    "1_000", "9" * 4000, "0x" + "f" * 900, "True", "None", "M.x", "a.cdiv(4,2)", "cdiv(*[1])", "cdiv(a=1)", "'9'*9",
    "2**-1", "1\n2", "\0", "-1", "0", "1,0", str(2**24), str(2**24 + 1), "65536,65536", "1,65536,1", "2**31,1",
)  # fmt: skip
_VALUES = (
    "fp16[4,8](8,-1)", "fp16[4](4,4)", "fp16[0]", "fp16[]", "fp16", "fp99[1]", "i1[999999999999]", "fp16[1](0)",
    "torch.fp16[4]", "*fp16[4]", "fp16[٣]", "fp16[9999999999999999999]", "inf", "nan", "-inf", "1e400", "-0.0", "1_0",
    "0b1", "0x" + "f" * 3000, "9" * 4400, "True", "None", "null", "'", "=", "==", "1;2", "²", "", " ", "\x1b[31m",
)  # fmt: skip


def _words(chance: random.Random, place: Path) -> str:
    """Arguments, grids and numbers of malice on the command line."""
    path, document = launch_of(chance)
    given = {}
    for name, argument in document["args"].items():
        tensor = argument.get("descriptor", argument) if isinstance(argument, dict) else None
        given[name] = str(argument) if tensor is None else f"{tensor['dtype'].lstrip('*')}[16,16]"
    for _ in range(chance.choice((0, 1, 1, 3))):
        name = chance.choice([*given, *WORDS, "M", "grid"]) if given else "M"
        given[name] = chance.choice((*_VALUES, *WORDS))
    grid = chance.choice(("2", *_EXPRESSIONS, *WORDS[:8]))
    words = [chance.choice(("predict", "rank")), str(path), f"--grid={grid}", "--steps"]
    words.append(chance.choice(("3000", "3000", "0", "-1", "9" * 30)) if chance.random() < 0.3 else "3000")
    words += [f"--arg={name}={value}" for name, value in given.items()]
    if chance.random() < 0.3:
        words += chance.choice((("--gpu", "H200"), ("--gpu", chance.choice(WORDS)), ("--json",), ("-t", "sm_80")))
    if words[0] == "predict" and chance.random() < 0.2:
        words += ["--ctas-per-wave", chance.choice(("0", "1", "-1", str(2**70)))]
    return _ended(check_command([word.replace("\0", "") for word in words], place))


def _records(chance: random.Random, place: Path) -> str:
    """A record of a capture, of malice, beside kernels, to whatever reads it."""
    path, document = launch_of(chance)
    kernel = Path(shutil.copytree(path, place / "cache" / path.name))
    manifest = {
        "schema_version": 1,
        "entries": [{
            "kernel": "k", "place": "k.py:k", "target": "sm_80", "triton": "3.6.0", "config": None,
            "types": ["x=*fp16"], "constants": {"BLOCK": 64}, "options": {"num_warps": 4}, "seconds": 1.5,
            "directory": kernel.name, "message": None, "details": None,
        }],
        "launches": [{"hash": _hash(kernel), "kernel": "k", "target": "sm_80", **document}],
    }  # fmt: skip
    text = damaged_document(manifest, chance)
    (place / "cache" / "inspect-kernel.json").write_bytes(_encoded(text))
    (place / "cache" / kernel.name / "__grp__k.json").write_text(
        damaged_document({"child_paths": {"k.ttir": "/etc/passwd", "k.json": "../../k.json"}}, chance),
        encoding="utf-8",
        errors="surrogatepass",
    )
    cache = str(place / "cache")
    words = chance.choice((
        ["predict", cache, "--steps", "3000"], ["predict", cache, "--grid", "2", "--steps", "3000", "--json"],
        ["predict", cache, "--arg", "N=7", "--steps", "3000"], ["rank", cache, "--steps", "3000"],
        ["rank", cache, "--vary", "num_warps=4,²", "--steps", "3000"],
        ["rank", cache, "--configs", "²", "--steps", "3000"],
        ["inspect", cache, "--json"], ["matrix", cache, "--why"], ["matrix", cache, "--why", "--json"],
        ["matrix", cache], ["findings", cache, "--try"], ["rank", cache, "--vary", "BLOCK=1..9", "--steps", "3000"],
    ))  # fmt: skip
    return _ended(check_command(words, place))


def _hash(kernel: Path) -> str:
    for file in kernel.glob("*.json"):
        document = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(document, dict) and "hash" in document:
            return str(document["hash"])
    return kernel.name


@cache
def _recorded(path: Path) -> str:
    """The baseline of a kernel."""
    return check_command(["baseline", str(path)]).out


def _baselines(chance: random.Random, place: Path) -> str:
    """A baseline of malice to `check`, in each of its formats."""
    kernel = _copied(place, chance)
    file, away = place / "baseline.json", place / "away"
    file.write_text(
        damaged_document(json.loads(_recorded(_source(kernel))), chance), encoding="utf-8", errors="surrogatepass"
    )
    words = ["check", str(place / "cache"), "-b", str(file), "--fail-on", chance.choice(("any", "verdict", "code"))]
    words += ["-f", chance.choice(("text", "json", "markdown", "junit", "sarif", "github"))]
    if chance.random() < 0.3:
        words += ["-o", str(away / chance.choice(("r.sarif", "r.xml", "r.json", "r.md")))]
    said = check_command(words, away)
    check_written(away)
    return _ended(said)


def _source(copied: Path) -> Path:
    return next(path for path in kernels() if path.name == copied.name)


def _timings(chance: random.Random, place: Path) -> str:
    """Metadata and Triton's timings of malice, to what shows them."""
    kernel = _copied(place, chance)
    for file in sorted(kernel.glob("*.json")):
        file.write_bytes(_encoded(damaged_document(json.loads(file.read_text(encoding="utf-8")), chance)))
    config = {"kwargs": {"BLOCK": 64}, "num_warps": 4, "num_stages": 2, "num_ctas": 1}
    timings = {"key": ["64", "fp16"], "configs_timings": [[config, [1.0, 0.9, 1.1]], [config, 2.0]]}
    (kernel / "k.autotune.json").write_bytes(_encoded(damaged_document(timings, chance)))
    cache, away = place / "cache", place / "away"
    names = {"CACHE": str(cache), "WHOLE": str(_source(kernel)), "AWAY": str(away), "HASH": kernel.name}
    view = chance.choice([name for name, words in VIEWS.items() if "AWAY/baseline.json" not in words])
    said = check_command([filled(word, names) for word in VIEWS[view]], away)
    check_written(away)
    return _ended(said)


_SELECTED = (
    ("inspect", "-t"), ("inspect", "--stage"), ("inspect", "--region"), ("inspect", "--on"), ("inspect", "--sort"),
    ("inspect", "--finding"), ("inspect", "--verdict"), ("inspect", "--severity"), ("inspect", "--limit"),
    ("inspect", "--svg"), ("inspect", "--context"), ("matrix", "--sort"), ("matrix", "-t"), ("diff", "--left"),
    ("diff", "--across"), ("diff", "--fail-on"), ("check", "--across"), ("check", "--fail-on"), ("diff", "--where"),
    ("inspect", "--graph"), ("inspect", "--where"), ("findings", "--where"), ("inspect", "-r"), ("inspect", "-s"),
    ("findings", "--explain"), ("findings", "-f"), ("predict", "--gpu"), ("predict", "--line"), ("timeline", ""),
    ("inspect", "--json-schema"), ("predict", "--product"), ("inspect", ""), ("watch", "--every"),
)  # fmt: skip
_PARTS = (
    "sm_80", "gfx942", "T4", "3.6", "w4", "s3", "128x64x32", "GROUP_M=8", "loop@81", "straight", "ttgir", "name", "-",
    "verdict", "AI003", "pipelined", "0", "-1", "99999999999999999999", "²", "x", "=", ",", ":", "@", "%", "..", "w", "s",
    "sm_", "gfx", "sm_99999999999", "9x9x9x9x9x9", "1x4096@4096x7168", "0x0@0x0", "1e999", "nan", "*", "[", "(", "\\",
)  # fmt: skip


def _selectors(chance: random.Random, place: Path) -> str:
    """Words of malice where a command takes a selector."""
    path = str(chance.choice(tuple(kernels())))
    command, option = chance.choice(_SELECTED)
    word = "".join(chance.choice((*_PARTS, *WORDS)) for _ in range(chance.choice((1, 1, 2, 3))))
    word = word.replace("\0", "")[:100_000]
    words = [command]
    if option not in ("--json-schema", "--product"):
        words.append(path)
    words += [word] if not option else [f"{option}={word}" if option.startswith("--") else f"{option}{word}"]
    if command == "check":
        file = place / "baseline.json"
        file.write_bytes(_encoded(_recorded(Path(path))))
        words += ["-b", str(file)]
    if command == "watch":
        words += ["--idle", "0", "--all"]
    return _ended(check_command(words, place))


def _views(chance: random.Random, place: Path) -> str:
    """A damaged kernel to every kind of view in turn, under all promises."""
    cache, away, whole = place / "cache", place / "away", place / "whole"
    for one in (cache, away, whole):
        one.mkdir()
    source, _ = kernel_mutant(chance.randrange(1 << 40), cache)
    shutil.copytree(source, whole / source.name)
    view = chance.choice(tuple(VIEWS))
    (away / "baseline.json").write_bytes(_encoded(_recorded(source)))
    names = {"CACHE": str(cache), "WHOLE": str(whole), "AWAY": str(away), "HASH": source.name}
    said = check_command([filled(word, names) for word in VIEWS[view]], away)
    check_written(away)
    return _ended(said)


SURFACES: Mapping[str, Surface] = {
    "names": _names,
    "views": _views,
    "launches": _launches,
    "words": _words,
    "records": _records,
    "baselines": _baselines,
    "timings": _timings,
    "selectors": _selectors,
    "agents": served.agents,
    "editors": served.editors,
    "index": served.index,
    "dumps": served.dumps,
    "completion": served.completion,
    "fixtures": served.fixtures,
    "archives": packed.archives,
    "traces": packed.traces,
    "watches": packed.watches,
    "notebooks": packed.notebooks,
    "bisections": packed.bisections,
    "bombs": packed.bombs,
}
"""Name → what makes a case and checks it."""
