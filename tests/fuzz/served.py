"""What answers agents, editors, shells and tests, and what remembers: each over caches of malice.

Each function is a surface, as those of `tests.fuzz.surfaces`.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from artifact_inspector.api.saved import SavedIR
from artifact_inspector.api.snapshots import StoredFacts
from artifact_inspector.errors import InspectorError
from artifact_inspector.facts.encoding import join, split
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.index import Index, write_checked
from artifact_inspector.passes.dump_facts import Topic
from artifact_inspector.passes.dumps import PassTimes, read_dumps
from artifact_inspector.passes.trace import trace_dumps
from artifact_inspector.report.json import as_text
from artifact_inspector.report.json.compiling import PassesDocument
from artifact_inspector.report.passes import describe_passes
from tests.fuzz.campaign import kernel_mutant
from tests.fuzz.checks import EscapeError
from tests.fuzz.corpus import kernels
from tests.fuzz.documents import damaged_document, value
from tests.fuzz.launching import launch_of
from tests.fuzz.mutants import damage
from tests.fuzz.poison import WORDS, poison
from tests.fuzz.promises import check_document, check_plain, run

__all__ = ["agents", "completion", "dumps", "editors", "fixtures", "index"]


def _cache(chance: random.Random, place: Path) -> Path:
    """A cache with a kernel that is damaged, or holds words of malice."""
    broken = place / "cache"
    if chance.random() < 0.5:
        broken.mkdir()
        kernel_mutant(chance.randrange(1 << 40), broken)
        return broken
    (whole,) = chance.choices(tuple(kernels()), tuple(kernels().values()))
    poison(Path(shutil.copytree(whole, broken / whole.name)), chance)
    return broken


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def _written(argument: Any) -> Any:
    """An argument as agents write it: `fp16[16,16]`."""
    tensor = argument.get("descriptor", argument) if isinstance(argument, dict) else None
    return argument if tensor is None else f"{tensor['dtype'].lstrip('*')}[16,16]"


def agents(chance: random.Random, place: Path) -> str:
    """A call of a tool with arguments of malice, as the server answers it."""
    from artifact_inspector.serving.catalog import TOOLS
    from artifact_inspector.serving.mcp import _tool_result
    from artifact_inspector.serving.roots import AllowedDirectories
    from artifact_inspector.serving.tool import ToolContext

    path, launch = launch_of(chance)
    if chance.random() < 0.5:  # a kernel that can be launched; else one that is damaged or holds words of malice
        shutil.copytree(path, place / "cache" / path.name)
    else:
        _cache(chance, place)
    cache = place / "cache"
    record = {"launches": [{"hash": "x", "kernel": "k", "grid": [1], "args": {"n": 1}}]}
    _write(cache / "inspect-kernel.json", damaged_document(record, chance))
    tool = chance.choice([tool for tool in TOOLS.values() if not tool.runs_code])
    entries = open_cache(cache).entries
    one = chance.choice(entries) if entries else None
    stages = [x for x in one.files if x in ("ttir", "ttgir", "ptx", "amdgcn")] if one else []
    known = {
        "cache": str(cache), "kernel": one.display_name if one else "k", "other_cache": str(cache),
        "stage": chance.choice(stages or ["ttir"]), "term": "AI003", "grid": "2", "arguments": {name: _written(one) for name, one in launch["args"].items()},
        "parts": ["summary", "findings"], "tokens": chance.choice((100, 2000)),
    }  # fmt: skip
    given = {one.name: known[one.name] for one in tool.parameters if one.name in known}
    if chance.random() < 0.3:  # one argument of malice, mostly of the type that the schema names
        name = chance.choice([one.name for one in tool.parameters] + ["tokens", "pwn"])
        kinds = {one.name: one.schema.get("type") for one in tool.parameters}
        by_type = {"string": WORDS, "integer": (0, -1, 1, 3, 10**30), "array": ([], ["x"], [*WORDS[:3]])}
        other = (*WORDS, 0, -1, 1.5, None, True, [], {}, value(chance))
        given[name] = chance.choice(by_type.get(kinds.get(name), other) if chance.random() < 0.7 else other)
    result = _tool_result(ToolContext(AllowedDirectories([place])), tool.name, given)
    if result.is_error:
        check_plain("".join(one.text for one in result.content), orders=True)
        return "refused"
    text = result.content[0].text
    json.dumps(json.loads(text), allow_nan=False)
    if len(text) > 3 * 6 * known["tokens"] + 40_000:
        raise EscapeError(f"an answer of {len(text)} characters")
    for one in result.content:
        check_plain(one.text, orders=True)
    return "answered"


def editors(chance: random.Random, place: Path) -> str:
    """A file of Python of malice, its kernels in a cache of malice: all that an editor is told."""
    from lsprotocol import types

    from artifact_inspector.serving import lsp
    from artifact_inspector.serving.compiled_lines import source_location
    from artifact_inspector.serving.kernel_variants import KernelVariants, with_launch

    cache = _cache(chance, place)
    names = {entry.display_name for entry in open_cache(cache).entries} | {"k"}
    name = chance.choice(sorted(names))
    name = name if name.isidentifier() else "k"
    comment = chance.choice(("-t sm_80", "--num-warps " + "9" * 5000, "-S '", *WORDS)).replace("\n", " ")
    text = f"# inspect-kernel: {comment}\n@triton.jit\ndef {name}(x):\n    return x\n" * chance.choice((1, 2))
    if chance.random() < 0.4:
        text = damage(text, (text,), chance)
    locations = [source_location(entry) for entry in open_cache(cache).entries]
    file = place / chance.choice(["k.py", *(Path(one[0]).name for one in locations if one is not None)])
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    _write(cache / "inspect-kernel.json",
        damaged_document({"entries": [{"kernel": name, "place": f"{file}:{name}", "target": "sm_80", "types": ["x=i32"],
                                       "directory": "x", "constants": {"B": 1}, "options": {}}]}, chance)
    )  # fmt: skip
    document = lsp._OpenFile(file)
    document.set_text(text)
    knowledge = KernelVariants([cache], out_directory=place / "made")
    lsp._update_variants(knowledge, document, False)
    for found, variants in document.variants.items():
        document.variants[found] = [with_launch(one) for one in variants]
    for kernel in document.kernels:
        try:
            knowledge._recorded_options(file, kernel.name)
        except InspectorError as error:
            str(error)
    said = [one.message for one in lsp._make_diagnostics(document, place / "pages")]
    for line in range(1, 12):
        hover = lsp._make_hover(document, line)
        said += [hover.contents.value] if hover is not None else []  # type: ignore[union-attr]
    whole = types.Range(types.Position(0, 0), types.Position(1000, 0))
    said += [str(one.label) for one in lsp._make_hints(document, whole)]
    for one in said:
        check_plain(one, orders=True)
    return "told" if said else "nothing to tell"


def index(chance: random.Random, place: Path) -> str:
    """An index of sealed values that say something else, and the list, the story and the document by it."""
    cache = _cache(chance, place)
    words = chance.choice((["inspect", str(cache)], ["inspect", str(cache), "--json"], ["findings", str(cache)]))
    home = place / "home"
    with patch.dict(os.environ, {"XDG_CACHE_HOME": str(home)}):
        run(words, index="on", home=home)
        file = home / "artifact-inspector" / "facts.sqlite3"
        if not file.exists():
            return "nothing kept"
        with sqlite3.connect(file) as held, Index(file, lambda _: None) as known:
            keys = [key for (key,) in held.execute("SELECT key FROM facts")]
            for key, text in known.get(keys).items():
                held.execute(
                    "UPDATE facts SET value = ? WHERE key = ?", (write_checked(key, _changed(text, chance)), key)
                )
        held.close()
        said = run(words, index="on", home=home)
    if said.code not in (0, 1, 2, 3):
        raise EscapeError(f"exit code {said.code}")
    check_plain(said.err)
    check_document(said.out, "json" if "--json" in words else "text")
    return f"exit {said.code}"


def _changed(text: bytes, chance: random.Random) -> bytes:
    sections = split(text)
    for _ in range(chance.choice((1, 3, 20))):
        name = chance.choice(sorted({*sections, "problems", "stages", "pwn"}))
        try:
            sections[name] = damaged_document(json.loads(sections.get(name, "[1]")), chance).replace("\n", " ")
        except (ValueError, RecursionError):  # of what it was changed to before
            sections[name] = "nothing"
    return join(sections)


@cache
def _dumped() -> str:
    """What a compiler would write of a kernel, pass by pass."""
    (path, *_) = (one for one in kernels() if (one / f"{next(one.glob('*.ttir')).stem}.llir").exists())
    texts = {stage: next(path.glob(f"*.{stage}")).read_text(encoding="utf-8") for stage in ("ttir", "ttgir", "llir")}
    parts = []
    for stage, name in (("ttir", "TritonCombineOps"), ("ttir", "Inliner"), ("ttgir", "TritonGPUPipeline")):
        parts.append(f"// -----// IR Dump Before {name} ({name.lower()}) ('builtin.module' operation) //----- //\n")
        parts.append(texts[stage])
    for name in ("SROAPass", "LICMPass"):
        parts.append(f"; *** IR Dump After {name} on [module] ***\n{texts['llir']}")
    return "".join(parts)


_TIMES = (
    "  0.0123 ( 10.0%)  TritonCombineOps\n  0.1 (  1.0%)    Inliner\n===-- Pass execution timing report --===\n"
    "   0.0100 ( 50.0%)   0.0100 ( 50.0%)  Code sinking\n"
)


def dumps(chance: random.Random, place: Path) -> str:
    """What a compiler writes around its passes, damaged, to what follows facts through it."""
    (whole,) = chance.choices(tuple(kernels()), tuple(kernels().values()))
    artifact = open_cache(whole).entries[0]
    text = _dumped()
    for _ in range(chance.choice((1, 1, 3))):
        text = damage(text, (text, *WORDS), chance).encode("utf-8", "replace").decode()
    times = PassTimes(damage(_TIMES, (text,), chance).splitlines())
    wanted = frozenset(chance.sample(tuple(Topic), chance.choice((1, 2, len(Topic)))))
    found = trace_dumps(artifact, read_dumps(text.splitlines(keepends=True)), times, wanted)
    check_document(as_text(PassesDocument(passes=found), "utf-8"), "json")
    said = run_text("\n".join(describe_passes(found, every=True)))
    check_plain(said)
    return f"{min(len(found.steps), 9)} passes"


def run_text(text: str) -> str:
    """A text as commands write it."""
    import io

    from artifact_inspector.report.console import write_lines

    stream = io.StringIO()
    write_lines(text, stream)
    return stream.getvalue()


def completion(chance: random.Random, place: Path) -> str:
    """Words of malice that a shell asks to be completed."""
    shell = chance.choice(("bash", "zsh", "fish"))
    words = ["inspect-kernel", *(chance.choice((*WORDS, "inspect", "--", "-t", "rank", "'", '"')) for _ in range(3))]
    environment = {
        "_INSPECT_KERNEL_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": " ".join(words).replace("\0", ""),
        "COMP_CWORD": chance.choice(("1", "2", "99", "0")),
        "_TYPER_COMPLETE_ARGS": " ".join(words).replace("\0", ""),
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    with patch.dict(os.environ, {key: word.encode("utf-8", "ignore").decode() for key, word in environment.items()}):
        said = run([])
    check_plain(said.out + said.err, tabs=True)
    return f"exit {said.code}"


def fixtures(chance: random.Random, place: Path) -> str:
    """What tests ask of a cache of malice, and stored facts of malice."""
    root = _cache(chance, place)
    try:
        for kernel in SavedIR([root]).all():
            _ask(kernel, chance, place)
    except InspectorError as error:
        str(error)
        return "refused"
    return "asked"


def _ask(kernel: object, chance: random.Random, place: Path) -> None:
    check_plain(repr(kernel), orders=True)
    check_document(kernel._repr_html_(), "html")  # type: ignore[attr-defined]
    check_plain(kernel.report())  # type: ignore[attr-defined]
    check_plain(kernel.evidence())  # type: ignore[attr-defined]
    kernel.to_records()  # type: ignore[attr-defined]
    for check in ("assert_no_spills", "assert_no_findings", "assert_interleaved", "assert_clustered"):
        try:
            getattr(kernel, check)()
        except AssertionError as error:
            check_plain(str(error), orders=True)
    facts = kernel.facts  # type: ignore[attr-defined]
    stored = StoredFacts(place / "test_it.py", "it", update=True)
    assert stored == facts
    text = damaged_document(json.loads(stored.path.read_text(encoding="utf-8")), chance)
    _write(stored.path, text)
    held = StoredFacts(place / "test_it.py", "it")
    if held != facts:
        check_plain("\n".join(held.explain_comparison(facts)[0]), orders=True)
