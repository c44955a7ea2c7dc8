"""Compiles other configurations of a kernel without a GPU, to rank them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from artifact_inspector.compiling.ask.compile import compile_kernels
from artifact_inspector.compiling.ask.manifest import read_manifest
from artifact_inspector.compiling.ask.request import CompileResult, ConstantText, KernelRequest, parse_configs
from artifact_inspector.compiling.reference import REFERENCE_KERNELS
from artifact_inspector.compiling.untrusted import UntrustedRecord
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.files.cache import Artifact
from artifact_inspector.model.text import parse_integer

VARIABLE_OPTIONS = frozenset(("num_warps", "num_stages", "num_ctas", "maxnreg"))
"""Compiler options; every other name is a constant of the kernel."""
MOST_COMBINATIONS = 1000
_VARIATION_FORM = "Write NAME=VALUE,VALUE or NAME=FIRST..LAST: BLOCK_K=32,64 num_stages=2..5."


class FailedConfiguration(NamedTuple):
    """A configuration that could not be compiled."""

    label: str
    """`BLOCK_K=128 num_stages=4`."""
    message: str
    """The compiler's error message."""


def parse_variations(arguments: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Name → values to try, from `BLOCK_K=32,64` and `num_stages=2..5`.

    Raises:
        UsageError: a word has neither form, or there are too many combinations.

    Example:
        >>> parse_variations(["BLOCK_K=32,64 num_stages=2..4"])
        {'BLOCK_K': ('32', '64'), 'num_stages': ('2', '3', '4')}
    """
    variations: dict[str, tuple[str, ...]] = {}
    total = 1
    for variation_text in [variation_part for text in arguments for variation_part in text.split()]:
        name, equals, values = variation_text.partition("=")
        listed_values = [value for text in values.split(",") for value in _expand_values(text, variation_text)]
        if not equals or not name.isidentifier() or not all(listed_values) or not listed_values:
            raise UsageError(f"Invalid configuration {variation_text!r}.", _VARIATION_FORM)
        variations[name] = tuple(dict.fromkeys(listed_values))
        total *= len(variations[name])
        if total > MOST_COMBINATIONS:
            raise UsageError(f"There are more than {MOST_COMBINATIONS} combinations.", "Try fewer values at a time.")
    return variations


def _number(name: str, text: str) -> int:
    number = parse_integer(text)
    if number is None:
        raise UsageError(f"Invalid number {text[:40]!r} for {name}.", _VARIATION_FORM)
    return number


def _expand_values(text: str, variation_text: str) -> Sequence[str]:
    first, dots, last = text.partition("..")
    if not dots:
        return (text,)
    low, high = parse_integer(first), parse_integer(last)
    if low is None or high is None:
        raise UsageError(f"Invalid configuration {variation_text!r}.", _VARIATION_FORM)
    if not 0 <= high - low < MOST_COMBINATIONS:
        raise UsageError(f"The range in {variation_text!r} is empty or too long.", _VARIATION_FORM)
    return [str(value) for value in range(low, high + 1)]


def check_variations(base: Artifact, names: Iterable[str]) -> None:
    """Check that a kernel can be compiled with some names.

    Raises:
        UsageError: it is not recorded how the kernel was compiled, or it has no such constant.
    """
    if base.requested_kernel is None:
        raise _unrecorded_error(base)
    unknown = [name for name in names if name not in VARIABLE_OPTIONS and name not in base.constants]
    if unknown:
        raise UsageError(
            f"{base.display_name} has no constant {', '.join(unknown)}.",
            f"Its constants are {', '.join(base.constants) or 'none'}; compiler options are "
            f"{', '.join(sorted(VARIABLE_OPTIONS))}.",
        )


def compile_variations(
    base: Artifact,
    variations: Mapping[str, tuple[str, ...]],
    out: Path,
    *,
    configs: str | None = None,
    kernel: str | None = None,
    on_planned: Callable[[int], None] | None = None,
    on_result: Callable[[CompileResult], None] | None = None,
) -> list[CompileResult]:
    """The kernel compiled with every combination of values, for its own target.

    Args:
        base: an entry of a directory that `compile` or `capture` filled; other constants and options stay the
            same.
        variations: name → values.
        out: the cache directory to compile into.
        configs: `all`, or how many of the kernel's own configurations; None for the one of `base`.
        kernel: `FILE.py:KERNEL`, the file to import; without it, only kernels of this package are compiled.
        on_planned: called with the number of compilations when it is known.

    Raises:
        UsageError: it is not recorded how the kernel was compiled, or its file was not named.
    """
    record = recorded_compile(base)
    kernel_place = record.resolve_kernel_path(base.display_name, kernel)
    config_choice = None if configs is None else parse_configs(configs)
    requests = []
    for values in product(*variations.values()):
        combination = dict(zip(variations, values, strict=True))
        constant_values: dict[str, Any] = {
            name: ConstantText(str(value)) for name, value in combination.items() if name not in VARIABLE_OPTIONS
        }
        option_values = {name: _number(name, value) for name, value in combination.items() if name in VARIABLE_OPTIONS}
        if config_choice is None:
            constant_values = {**record.constants, **constant_values}
            options = {**record.options, **option_values}
            requests.append(KernelRequest(kernel_place, record.types, constant_values, options, is_untrusted=True))
        else:
            argument_types = None if kernel_place in REFERENCE_KERNELS else record.types
            requests.append(
                KernelRequest(
                    kernel_place, argument_types, constant_values, option_values, config_choice, is_untrusted=True
                )
            )
    return compile_kernels(requests, [record.target], out, planned=on_planned, progress=on_result)


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
    raise _unrecorded_error(base)


def _unrecorded_error(base: Artifact) -> UsageError:
    return UsageError(
        f"It is not recorded how {base.display_name} was compiled, so other configurations cannot be compiled.",
        "Compile it with `inspect-kernel compile FILE.py:KERNEL` or `inspect-kernel capture` first.",
    )


def _in_brackets(names: Iterable[str]) -> str:
    joined = ", ".join(names)
    return f" ({joined})" if joined else ""


def request_for_variations(
    request: LaunchRequest, variations: Mapping[str, tuple[str, ...]], configs: str | None, constants: Iterable[str]
) -> LaunchRequest:
    """The launch for every variant that is tried; its grid may use `constants` of the kernel.

    Raises:
        UsageError: the grid is a number, and what is tried changes the number of CTAs.
    """
    changed = [name for name in variations if name not in VARIABLE_OPTIONS]
    if (changed or configs is not None) and not any(isinstance(extent, str) for extent in request.grid):
        changed_names = ", ".join(changed) or "configuration"
        raise UsageError(
            f"The grid is a number, but it may differ for each {changed_names}.",
            "Write it as an expression over the arguments and constants"
            f"{_in_brackets(constants)}: --grid 'cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)'; "
            f"--grid '0+{request.grid[0]}' if it is the same for all. To rank configurations that "
            "`inspect-kernel capture --configs all` recorded, omit --vary and --configs.",
        )
    fixed = {name: value for name, value in request.arguments.items() if name not in variations}
    return LaunchRequest(request.grid, fixed, None, request.notes)
