"""Compiles other configurations of a kernel without a GPU, to rank them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from artifact_inspector.compiling.ask.compile import compile_kernels
from artifact_inspector.compiling.ask.manifest import read_manifest
from artifact_inspector.compiling.ask.request import KernelRequest, Written, parse_configs
from artifact_inspector.compiling.ask.result import CompileResult
from artifact_inspector.compiling.reference import REFERENCE_KERNELS
from artifact_inspector.compiling.untrusted import UntrustedRecord
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.requests import Request
from artifact_inspector.files.cache import Artifact
from artifact_inspector.model.text import integer

OPTIONS = frozenset(("num_warps", "num_stages", "num_ctas", "maxnreg"))
"""Compiler options; every other name is a constant of the kernel."""
MOST_TRIES = 1000
_FORM = "Write NAME=VALUE,VALUE or NAME=FIRST..LAST: BLOCK_K=32,64 num_stages=2..5."


class Refused(NamedTuple):
    """A configuration that could not be compiled."""

    label: str
    """`BLOCK_K=128 num_stages=4`."""
    message: str
    """The compiler's error message."""


def parse_tries(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Name → values to try, from `BLOCK_K=32,64` and `num_stages=2..5`.

    Raises:
        UsageError: a word has neither form, or there are too many combinations.

    Example:
        >>> parse_tries(["BLOCK_K=32,64 num_stages=2..4"])
        {'BLOCK_K': ('32', '64'), 'num_stages': ('2', '3', '4')}
    """
    found: dict[str, tuple[str, ...]] = {}
    total = 1
    for word in [part for text in words for part in text.split()]:
        name, equals, values = word.partition("=")
        listed = [value for text in values.split(",") for value in _values(text, word)]
        if not equals or not name.isidentifier() or not all(listed) or not listed:
            raise UsageError(f"Invalid configuration {word!r}.", _FORM)
        found[name] = tuple(dict.fromkeys(listed))
        total *= len(found[name])
        if total > MOST_TRIES:
            raise UsageError(f"There are more than {MOST_TRIES} combinations.", "Try fewer values at a time.")
    return found


def _number(name: str, text: str) -> int:
    number = integer(text)
    if number is None:
        raise UsageError(f"Invalid number {text[:40]!r} for {name}.", _FORM)
    return number


def _values(text: str, word: str) -> Sequence[str]:
    first, dots, last = text.partition("..")
    if not dots:
        return (text,)
    low, high = integer(first), integer(last)
    if low is None or high is None:
        raise UsageError(f"Invalid configuration {word!r}.", _FORM)
    if not 0 <= high - low < MOST_TRIES:
        raise UsageError(f"The range in {word!r} is empty or too long.", _FORM)
    return [str(value) for value in range(low, high + 1)]


def check_tries(base: Artifact, tries: Iterable[str]) -> None:
    """Check that a kernel can be compiled with some names.

    Raises:
        UsageError: it is not recorded how the kernel was compiled, or it has no such constant.
    """
    if base.place is None:
        raise _unrecorded(base)
    unknown = [name for name in tries if name not in OPTIONS and name not in base.constants]
    if unknown:
        raise UsageError(
            f"{base.display_name} has no constant {', '.join(unknown)}.",
            f"Its constants are {', '.join(base.constants) or 'none'}; compiler options are "
            f"{', '.join(sorted(OPTIONS))}.",
        )


def compile_tries(
    base: Artifact,
    tries: Mapping[str, tuple[str, ...]],
    out: Path,
    *,
    configs: str | None = None,
    kernel: str | None = None,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[CompileResult], None] | None = None,
) -> list[CompileResult]:
    """The kernel compiled with every combination of values, for its own target.

    Args:
        base: an entry of a directory that `compile` or `capture` filled; other constants and options stay the
            same.
        tries: name → values.
        out: the cache directory to compile into.
        configs: `all`, or how many of the kernel's own configurations; None for the one of `base`.
        kernel: `FILE.py:KERNEL`, the file to import; without it, only kernels of this package are compiled.
        planned: called with the number of compilations when it is known.
        progress: called with each result.

    Raises:
        UsageError: it is not recorded how the kernel was compiled, or its file was not named.
    """
    record = recorded_compile(base)
    place = record.resolve_place(base.display_name, kernel)
    asked = None if configs is None else parse_configs(configs)
    requests = []
    for values in product(*tries.values()):
        chosen = dict(zip(tries, values, strict=True))
        given: dict[str, Any] = {
            name: Written(str(value)) for name, value in chosen.items() if name not in OPTIONS
        }
        said = {name: _number(name, value) for name, value in chosen.items() if name in OPTIONS}
        if asked is None:
            given = {**record.constants, **given}
            options = {**record.options, **said}
            requests.append(KernelRequest(place, record.types, given, options, is_untrusted=True))
        else:
            own = None if place in REFERENCE_KERNELS else record.types
            requests.append(KernelRequest(place, own, given, said, asked, is_untrusted=True))
    return compile_kernels(requests, [record.target], out, planned=planned, progress=progress)


def recorded_compile(base: Artifact) -> UntrustedRecord:
    """How an entry was compiled, by the record beside it.

    Raises:
        UsageError: there is no record of it.
    """
    path = next(iter(base.files.values()))
    if isinstance(path, Path):
        for row in read_manifest(path.parent.parent):
            if row.get("directory") == path.parent.name and row.get("place"):
                return UntrustedRecord.of_row(row)
    raise _unrecorded(base)


def _unrecorded(base: Artifact) -> UsageError:
    return UsageError(
        f"It is not recorded how {base.display_name} was compiled, so other configurations cannot be "
        "compiled.",
        "Compile it with `inspect-kernel compile FILE.py:KERNEL` or `inspect-kernel capture` first.",
    )


def _in_brackets(names: Iterable[str]) -> str:
    told = ", ".join(names)
    return f" ({told})" if told else ""


def request_for_tries(
    request: Request, tries: Mapping[str, tuple[str, ...]], configs: str | None, constants: Iterable[str]
) -> Request:
    """The launch for every variant that is tried; its grid may use `constants` of the kernel.

    Raises:
        UsageError: the grid is a number, and what is tried changes the number of CTAs.
    """
    changed = [name for name in tries if name not in OPTIONS]
    if (changed or configs is not None) and not any(isinstance(extent, str) for extent in request.grid):
        what = ", ".join(changed) or "configuration"
        raise UsageError(
            f"The grid is a number, but it may differ for each {what}.",
            "Write it as an expression over the arguments and constants"
            f"{_in_brackets(constants)}: --grid 'cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)'. To rank configurations "
            "that `inspect-kernel capture --configs all` recorded, omit --vary and --configs.",
        )
    fixed = {name: value for name, value in request.arguments.items() if name not in tries}
    return Request(request.grid, fixed, None, request.notes)
