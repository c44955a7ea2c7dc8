"""Plan the compiles of a request: each configuration for each target, with its cache key.

This module runs in the compiling process, which has Triton.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.forking import Work
from artifact_inspector.compiling.publishing import entry_metadata
from artifact_inspector.compiling.refusal import explain, refusal
from artifact_inspector.compiling.signature import MISSING, Arguments, Item, bind, by_name, read_literal
from artifact_inspector.compiling.worker.loading import (
    Config,
    Kernel,
    load_kernel,
    read_constant,
    split_place,
)
from artifact_inspector.compiling.worker.standin import stand_in_for_torch
from artifact_inspector.errors import InspectorError, UsageError
from artifact_inspector.files.limited import limit_compile
from artifact_inspector.hardware.targets import Target, parse_target
from artifact_inspector.model import TritonVersion

if TritonVersion(version("triton")).since((3, 0)) is False:
    stand_in_for_torch()  # Triton 2.x imports torch to query the device
    from artifact_inspector.compiling.worker import triton2 as _triton
else:
    from artifact_inspector.compiling.worker import triton3 as _triton  # type: ignore[no-redef]

MOST_BYTES = 1 << 20
"""Largest compiler output that is stored beside a kernel."""
SAVED = (".ttir", ".ttgir")
"""Suffixes of IR files that a compile can start from."""


def plan(ask: Mapping[str, Any]) -> Iterator[Work | dict[str, Any]]:
    """The compiles of one ask, and rows for its cached entries and for an invalid request."""
    targets = [parse_target(target) for target in ask["targets"]]
    _scratch()
    Path(ask["out"]).mkdir(parents=True, exist_ok=True)
    if ask["place"].endswith(SAVED):
        yield from (_again(ask, target) for target in targets)
        return
    if not ask.get("untrusted") and "" not in sys.path:
        sys.path.insert(0, "")  # after Triton's import: a copy.py of the user hides no library
    try:
        kernel = load_kernel(ask["place"])
        variants = list(_variants(kernel, ask))
    except InspectorError as error:
        refusal = {**explain(error), "seconds": 0.0, "cached": False, "directory": None, "details": None}
        for target in targets:
            yield {**_label(ask["place"].rpartition(":")[2], target, None), **refusal}
        return
    for config, arguments, options in variants:
        for target in targets:
            yield _work(kernel, config, arguments, options, target, ask)


def _again(ask: Mapping[str, Any], target: Target) -> Work:
    """The compile of a saved IR text, with the options of its original compile."""
    place, out = ask["place"], Path(ask["out"])
    known = _triton.known_options()
    options = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in ask["options"].items()
        if name in known
    }
    label = {**_label(Path(place).stem, target, None), "types": [], "constants": {}, "options": options}
    fill = partial(_compile, lambda: place, None, options, target, ask)
    return Work(label, f"{out}\n{place}\n{label}", out, fill)


def _variants(
    kernel: Kernel, ask: Mapping[str, Any]
) -> Iterator[tuple[Config | None, Arguments, dict[str, Any]]]:
    """Each requested configuration, with its arguments and options."""
    reference = kernel.reference
    given = {name: read_constant(written, kernel) for name, written in ask["constexprs"].items()}
    if ask["signature"] is not None or reference is None:
        items = [Item(*item) for item in ask["signature"] or ()]
    else:
        items = [Item(name, type_) for name, type_ in reference.signature.items() if name not in given]
    base: dict[str, Any] = {}
    usual: dict[str, Any] = {}
    if reference is not None:
        usual = dict(reference.constexprs)
        base = {"num_warps": reference.num_warps, "num_stages": reference.num_stages, **reference.options}
    changed: Mapping[str, str] = ask.get("changed", {})
    own = {parameter.name for parameter in kernel.parameters}
    asked = {**ask["options"], **{name: _value(text) for name, text in changed.items() if name not in own}}
    known = _triton.known_options()
    for name in asked:
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise UsageError(
                f"Triton {version('triton')} has no option {name!r}.",
                f"Did you mean {near[0]}?" if near else f"It has {', '.join(sorted(known))}.",
            )
    for config in _configs(kernel, ask["configs"], {**usual, **given}):
        constants = {**usual, **(config.constants if config is not None else {}), **given}
        named = _otherwise(kernel, items, constants, changed)
        arguments = bind(kernel.name, kernel.parameters, named, constants, kernel.derive)
        chosen = config.options if config is not None else {}
        yield config, arguments, {**base, **chosen, **asked}


def _otherwise(
    kernel: Kernel, items: Sequence[Item], constants: dict[str, Any], changed: Mapping[str, str]
) -> Sequence[Item]:
    """The signature with changed parameters; changed constants are stored in `constants`."""
    if not changed:
        return items
    types = by_name(kernel.name, kernel.parameters, items, constants)
    for parameter in kernel.parameters:
        name = parameter.name
        if name in changed and parameter.constexpr:
            constants[name] = read_constant(("text", changed[name]), kernel)
        elif name in changed:
            constants.pop(name, None)
            types[name] = changed[name]
    return [Item(name, text) for name, text in types.items()]


def _value(text: str) -> Any:
    """Evaluate an option's value: a literal, or else the text itself."""
    value = read_literal(text)
    return text if value is MISSING else value


def _configs(kernel: Kernel, wanted: int | str | None, given: Mapping[str, Any]) -> Sequence[Config | None]:
    """The configurations to compile; a single None if there are none, or if all tuned constants are given.

    Args:
        kernel: the kernel with its autotuner.
        wanted: `all`, a number of evenly spaced configurations, or None for the first.
        given: the constants of the request.
    """
    listed = kernel.configs
    if not listed or (wanted is None and all(config.constants.keys() <= given.keys() for config in listed)):
        return (None,)
    count = len(listed) if wanted == "all" else min(int(wanted or 1), len(listed))
    return [listed[at * len(listed) // count] for at in range(count)]


def _work(
    kernel: Kernel,
    config: Config | None,
    arguments: Arguments,
    options: dict[str, Any],
    target: Target,
    ask: Mapping[str, Any],
) -> Work | dict[str, Any]:
    out = Path(ask["out"])
    label = {
        **_label(kernel.name, target, config),
        "types": list(arguments.typed(kernel.function.arg_names)),
        "constants": _shown(kernel, arguments),
        "options": options,
    }
    environment = dict(ask["environment"])
    key = ""
    if not environment:
        # computed in this process, which is fast; environment variables of the request could change the key
        try:
            source = _triton.make_source(kernel.function, arguments, target)
            key = _triton.entry_name(source, target, options)
        except Exception as error:  # noqa: BLE001 - Triton raises many types, and each is a row
            nothing = {"seconds": 0.0, "cached": False, "directory": None, "details": None}
            return {**label, **nothing, **explain(error)}
        if entry_metadata(out / key) is not None:
            found = {"seconds": 0.0, "cached": True, "directory": str(out / key), "message": None}
            return {**label, **found, "remedy": None, "kind": None, "details": None}
    if ask.get("look"):
        return {**label, "pending": True}
    source_of = partial(_triton.make_source, kernel.function, arguments, target)
    fill = partial(_compile, source_of, kernel.function, options, target, ask)
    return Work(label, f"{out}\n{key or (ask['place'], label, environment)}", out, fill)


def _compile(
    source_of: Callable[[], Any],
    function: Any,
    options: Mapping[str, Any],
    target: Target,
    ask: Mapping[str, Any],
    staging: Path,
) -> str:
    """Compile into `staging`; runs in a child process."""
    warnings.simplefilter("ignore")  # Python warnings only; the compiler's are on standard error
    os.environ.update(ask["environment"])
    os.environ["TRITON_CACHE_DIR"] = str(staging)
    if ask.get("untrusted"):
        _limit(ask, staging)
    log: list[str] = []
    _listen_to_ptxas(log)
    try:
        source = source_of()
        entry = _triton.entry_name(source, target, options)
        _triton.build(source, target, options)
    except Exception as error:
        raise refusal(error, function) from error
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if ask.get("said"):
            _keep_all(Path(ask["said"]))
    metadata = entry_metadata(staging / entry)
    if metadata is None:
        raise RuntimeError(f"Triton left no complete entry {entry}")
    metadata.with_suffix(".remarks").write_text(_said(MOST_BYTES) + "".join(log))
    return entry


def _limit(ask: Mapping[str, Any], staging: Path) -> None:
    """Limit this child, which compiles an entry of a cache: time, memory, and the files that it may open."""
    tempfile.tempdir = tempfile.mkdtemp(dir=staging)  # Triton passes files to ptxas and its linker there
    os.environ["TMPDIR"] = tempfile.tempdir
    texts = (ask.get("said"), ask["environment"].get("MLIR_DUMP_PATH"))
    writable = {staging.parent, *(Path(file).parent for file in texts if file)}
    place = split_place(ask["place"])[0]
    limit_compile([Path(place).parent] if "/" in place else [], writable)


def _said(most: int) -> str:
    """The compiler's output so far, from the file that standard error goes to; cut to `most` bytes."""
    size = os.lseek(2, 0, os.SEEK_END)
    os.lseek(2, 0, os.SEEK_SET)
    said = os.read(2, most).decode(errors="replace")
    os.lseek(2, 0, os.SEEK_END)
    return said if size <= most else f"{said}\nremark: {size - most} more bytes of output were dropped\n"


def _keep_all(file: Path) -> None:
    """Copy all of the compiler's output to a file."""
    os.lseek(2, 0, os.SEEK_SET)
    with file.open("wb") as kept:
        while part := os.read(2, MOST_BYTES):
            kept.write(part)
    os.lseek(2, 0, os.SEEK_END)


def _listen_to_ptxas(log: list[str]) -> None:
    """Collect the output of ptxas: Triton redirects it to a file that it deletes without reading."""
    run = subprocess.run

    def keep(command: Any, *args: Any, **kwargs: Any) -> Any:
        done = run(command, *args, **kwargs)
        written = getattr(kwargs.get("stderr"), "name", None)
        if isinstance(command, str) and "ptxas" in command and "2>" in command:
            written = command.rpartition("2>")[2].strip()
        elif not isinstance(command, str) and "ptxas" not in Path(str(command[0])).name:
            return done
        if isinstance(written, str):
            log.append(Path(written).read_text(errors="replace"))
        return done

    subprocess.run = keep  # type: ignore[assignment]


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    """A temporary cache directory for key lookups, since Triton creates a directory for every key."""
    scratch = tempfile.TemporaryDirectory(prefix="inspect-kernel-")
    os.environ["TRITON_CACHE_DIR"] = scratch.name
    return scratch


def _label(name: str, target: Target, config: Config | None) -> dict[str, Any]:
    return {
        "kernel": name,
        "target": str(target),
        "config": None if config is None else str(config),
        "triton": version("triton"),
    }


def _shown(kernel: Kernel, arguments: Arguments) -> dict[str, Any]:
    """The constants by name, as JSON values."""
    names = [parameter.name for parameter in kernel.parameters]

    def plain(value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, tuple):
            return [plain(one) for one in value]
        return getattr(value, "__name__", None) or str(value)

    return {
        ".".join([names[path[0]], *map(str, path[1:])]): plain(value)
        for path, value in arguments.constants.items()
    }
