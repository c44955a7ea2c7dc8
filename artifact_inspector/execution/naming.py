"""Matches launch arguments to parameters of kernels from old Triton versions, which keep no names.

Before 3.5, TTIR names arguments `%arg0`, `%arg1` …. A launch has real names, so they are matched by order:
constants and specialized arguments are left out, and types and divisibility rule out wrong matches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any

from artifact_inspector.execution.launch import Launch, Tensor
from artifact_inspector.execution.loading import Loaded, Parameter, parts_behind
from artifact_inspector.execution.requests import Request, resolve

_PLACEHOLDER = re.compile(r"arg\d{1,4}")


def fit_launch(loaded: Loaded, request: Request, constants: Mapping[str, Any] = {}) -> tuple[Loaded, Launch]:
    """A kernel and a launch of it, with the same argument names in both.

    Args:
        loaded: the kernel; its parameters take the launch's names if they have none of their own.
        request: the launch as written.
        constants: what the kernel was compiled with, if known.

    Raises:
        UsageError: the grid cannot be computed.
    """
    own = {part.argument for part in loaded.parameters if part.type}
    if own and all(map(_PLACEHOLDER.fullmatch, own)) and own.isdisjoint(request.arguments):
        given = [*request.passed(constants)]
        for parameters in (loaded.parameters, _folded(loaded.parameters)):
            taken = {part.argument: part for part in reversed(parameters) if part.type}
            found = _fit([*reversed(taken.values())], given, request.arguments)
            if found is not None:
                names = dict(zip(reversed(taken), found, strict=False))
                loaded = _renamed(replace(loaded, parameters=parameters), names)
                note = _note(names, several=len(found) > len(taken))
                request = replace(request, notes=(*request.notes, note))
                break
    return loaded, resolve(request, [part.argument for part in loaded.parameters], constants)


def _folded(parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """The parameters, with pointers turned into descriptors if the types of descriptor parts follow."""
    found: list[Parameter] = []
    while len(found) < len(parameters):
        first, *rest = parameters[len(found) :]
        found.append(first)
        if first.type.startswith("*"):
            parts = parts_behind([part.type for part in rest])
            for part, at in zip(rest, parts, strict=False):
                name = f"{first.name}_{at}"
                found.append(replace(part, name=name, argument=first.argument, part=at))
    return tuple(found)


def _fit(
    parameters: Sequence[Parameter], given: Sequence[str], values: Mapping[str, Any]
) -> list[str] | None:
    """The arguments in order, first those that match the parameters; None if they do not match.

    Constants that were also given come after the others. If a number contradicts the divisibility of its
    parameter, nothing matches.
    """
    count = len(parameters)
    numbers = [name for name in given if not isinstance(values[name], (bool, str, NoneType))]
    ordered = [name for name in numbers if values[name] != 1]  # ones become constants by default
    if len(ordered) < count:
        ordered = numbers
    pairs = list(zip(parameters, (values[name] for name in ordered), strict=False))
    fits = len(pairs) == count and all(_may_be(*pair) for pair in pairs)
    spare = [values[name] for name in ordered[count:]]
    if not fits or any(isinstance(value, Tensor) for value in spare):
        return None
    return ordered if not spare or all(_is_as_told(*pair) for pair in pairs) else None


def _may_be(parameter: Parameter, value: Any) -> bool:
    kind = parameter.type
    if not kind.startswith(("*", "!")):
        return isinstance(value, int) or (isinstance(value, float) and kind.startswith(("f", "bf")))
    return isinstance(value, Tensor) and parameter.element_bits in (None, value.bits)


def _is_as_told(parameter: Parameter, value: Any) -> bool:
    """Whether a number agrees with the divisibility by 16 that Triton assumed."""
    is_whole = isinstance(value, int) and parameter.type.startswith("i")
    return not is_whole or (parameter.divisor > 1) == (value % 16 == 0)


def _renamed(loaded: Loaded, names: Mapping[str, str]) -> Loaded:
    """The kernel with other names for its arguments and their parts."""
    parameters = []
    for part in loaded.parameters:
        name = names.get(part.argument)
        if name is not None:
            part = replace(part, name=name + part.name.removeprefix(part.argument), argument=name)
        parameters.append(part)
    tiles = {names.get(name, name): size for name, size in loaded.tile_bytes.items()}
    return replace(loaded, parameters=tuple(parameters), tile_bytes=tiles)


def _note(names: Mapping[str, str], *, several: bool) -> str:
    """A note on how the arguments were matched."""
    told = ", ".join(f"{own} is {name}" for own, name in names.items())
    sure = "; numbers may be in another order: name them arg0, arg1 … to be sure" if several else ""
    return f"this Triton version keeps no argument names; they were matched by order: {told}{sure}"
