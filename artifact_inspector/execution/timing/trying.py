"""Other configurations of a compiled kernel: compiled with no GPU, to be ranked beside each other."""

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
"""What is no constant of the kernel but an option of the compiler."""
MOST_TRIES = 1000
_FORM = "Write NAME=VALUE,VALUE or NAME=FIRST..LAST: BLOCK_K=32,64 num_stages=2..5."


class Refused(NamedTuple):
    """A configuration that was to be tried, and of which there is no kernel."""

    label: str
    """`BLOCK_K=128 num_stages=4`."""
    message: str
    """What the compiler said."""


def parse_tries(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Name → the values to try, of `BLOCK_K=32,64` and `num_stages=2..5`.

    Raises:
        UsageError: a word is of neither form, or there are too many combinations.

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
            raise UsageError(f"{word!r} is nothing to try.", _FORM)
        found[name] = tuple(dict.fromkeys(listed))
        total *= len(found[name])
        if total > MOST_TRIES:
            raise UsageError(f"These are more than {MOST_TRIES} combinations.", "Try fewer values at a time.")
    return found


def _number(name: str, text: str) -> int:
    number = integer(text)
    if number is None:
        raise UsageError(f"{name} is a number, and {text[:40]!r} is none.", _FORM)
    return number


def _values(text: str, word: str) -> Sequence[str]:
    first, dots, last = text.partition("..")
    if not dots:
        return (text,)
    low, high = integer(first), integer(last)
    if low is None or high is None:
        raise UsageError(f"{word!r} is nothing to try.", _FORM)
    if not 0 <= high - low < MOST_TRIES:
        raise UsageError(f"{word!r} has a range that is empty or too long.", _FORM)
    return [str(value) for value in range(low, high + 1)]


def check_tries(base: Artifact, tries: Iterable[str]) -> None:
    """Refuse what a kernel cannot be compiled with.

    Raises:
        UsageError: nothing says how the kernel was compiled, or it takes no such constant.
    """
    if base.place is None:
        raise _unrecorded(base)
    unknown = [name for name in tries if name not in OPTIONS and name not in base.constants]
    if unknown:
        raise UsageError(
            f"{base.display_name} takes no constant {', '.join(unknown)}.",
            f"It was compiled with {', '.join(base.constants) or 'none'}, and takes "
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
    """A kernel compiled with every combination of what is tried, for the target that it was compiled for.

    Args:
        base: an entry of a directory that `compile` or `capture` filled: what is not tried stays as there.
        tries: name → values.
        out: the cache directory to compile into.
        configs: `all`, or how many of the kernel's own configurations; None for the one of `base`.
        kernel: `FILE.py:KERNEL`, the file to import; without it, only kernels of this package are compiled.
        planned: called with the number of compiles when it is known.
        progress: called with each when it is there.

    Raises:
        UsageError: nothing says how the kernel was compiled, or its file was not named.
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
        f"Nothing says how {base.display_name} was compiled, so that it could be compiled otherwise.",
        "Compile it with `inspect-kernel compile FILE.py:KERNEL` or `inspect-kernel capture` first.",
    )


def _in_brackets(names: Iterable[str]) -> str:
    told = ", ".join(names)
    return f" ({told})" if told else ""


def request_for_tries(
    request: Request, tries: Mapping[str, tuple[str, ...]], configs: str | None, constants: Iterable[str]
) -> Request:
    """The launch of every form that is tried; `constants` of the kernel may stand in its grid.

    Raises:
        UsageError: its grid is a number, and what is tried changes how many CTAs there are.
    """
    changed = [name for name in tries if name not in OPTIONS]
    if (changed or configs is not None) and not any(isinstance(extent, str) for extent in request.grid):
        what = ", ".join(changed) or "configuration"
        raise UsageError(
            f"The grid is a number, which may be another for each {what}.",
            "Give it as an expression over the arguments and constants"
            f"{_in_brackets(constants)}: --grid 'cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)'; the configurations that "
            "`inspect-kernel capture --configs all` has on record are ranked without --try and --configs.",
        )
    fixed = {name: value for name, value in request.arguments.items() if name not in tries}
    return Request(request.grid, fixed, None, request.notes)
