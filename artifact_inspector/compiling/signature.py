"""Parse signatures: the types, divisibility hints and constants of a kernel's arguments.

The notation is that of `triton.tools.compile`: `*fp16:16` is a pointer that is divisible by 16, `i32:16` an
integer that is divisible by 16, `i32:1` an integer that equals 1, and a literal is a constant. Extensions are
`name=type`, tuples `(i32, *fp16)` and `tensordesc<fp16[64,64]>`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple, Union

from artifact_inspector.errors import UsageError

ArgumentPath = tuple[int, ...]
"""Position of an argument: its index, followed by the indices inside a tuple."""
ArgumentType = Union[str, "tuple[ArgumentType, ...]"]
"""A type as Triton spells it (`*fp16`, `i32`); `constexpr` for a constant inside a tuple."""

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING", "__slots__": ()})()
"""Marks an absent value or default, since None is a value."""

_SCALARS = frozenset(
    {
        *("i1", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32", "fp64"),
        *("fp8e4nv", "fp8e5", "fp8e4b15", "fp8e4b8", "fp8e5b16", "void", "nvTmaDesc"),
    }
)
_ALIASES = {
    **{f"int{bits}": f"i{bits}" for bits in (1, 8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    **{f"{prefix}{bits}": f"fp{bits}" for prefix in ("f", "float") for bits in (16, 32, 64)},
    "bool": "i1", "int": "i32", "half": "fp16", "float": "fp32", "double": "fp64", "bfloat16": "bf16",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "float8_e4m3fnuz": "fp8e4b8", "float8_e5m2fnuz": "fp8e5b16",
    "float8e4nv": "fp8e4nv", "float8e5": "fp8e5",
}  # fmt: skip
"""Name of a type in torch or NumPy → Triton's name."""
_DESCRIPTOR = re.compile(r"tensordesc<\s*(\w+)\s*\[\s*([\d\s,]+)\]\s*>")
_NAMED = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*(.*)", re.S)


class SignatureEntry(NamedTuple):
    """One entry of a signature."""

    name: str | None
    """Name of the parameter; None for a positional entry."""
    text: str


@dataclass(frozen=True, slots=True)
class ParameterDeclaration:
    """A kernel's parameter, as its `def` declares it."""

    name: str
    constexpr: bool = False
    type: str | None = None
    """Type of its annotation, if that is a Triton type."""
    default: Any = MISSING
    specialised: bool = True
    """Whether a launch specialises on an integer's value (not with `do_not_specialize`)."""


@dataclass(frozen=True, slots=True)
class BoundArguments:
    """Types, constants and hints of the arguments, as a launch would give them to the compiler."""

    types: Mapping[str, ArgumentType]
    """Types of all arguments that are not constants."""
    constants: Mapping[ArgumentPath, Any]
    hints: Mapping[ArgumentPath, int]
    """Known divisor of each argument that has one."""

    def format_entries(self, names: Sequence[str]) -> tuple[str, ...]:
        """The arguments as signature entries `name=type:hint`; `names` are all parameters of the kernel."""
        return tuple(f"{name}={self._format_type(type_, (names.index(name),))}" for name, type_ in self.types.items())

    def require_plain(self, triton: str) -> None:
        """Raise a UsageError for a tuple, which versions of Triton before 3.3 do not support."""
        for name, type_ in self.types.items():
            if not isinstance(type_, str):
                raise UsageError(
                    f"{name} is a tuple, which Triton {triton} does not support.", "Use Triton 3.3 or newer."
                )

    def _format_type(self, type_: ArgumentType, path: ArgumentPath) -> str:
        if isinstance(type_, str):
            constant = repr(self.constants[path]) if type_ == "constexpr" else type_
            return constant + (f":{self.hints[path]}" if path in self.hints else "")
        return f"({', '.join(self._format_type(member_type, (*path, at)) for at, member_type in enumerate(type_))})"


def parse_signature(text: str) -> tuple[SignatureEntry, ...]:
    """The entries of a signature, split at commas outside of brackets.

    Raises:
        UsageError: a bracket is not closed, or an entry is empty.

    Example:
        >>> parse_signature("*fp16:16, n=i32, d=tensordesc<fp16[64,64]>")[1:]
        (SignatureEntry(name='n', text='i32'), SignatureEntry(name='d', text='tensordesc<fp16[64,64]>'))
    """
    items = []
    for entry_text in _split_at_commas(text):
        match = _NAMED.fullmatch(entry_text)
        name, entry = (match[1], match[2].strip()) if match else (None, entry_text)
        if not entry:
            raise UsageError(f"The signature {text!r} has an empty entry.", _REMEDY)
        items.append(SignatureEntry(name, entry))
    return tuple(items)


def entries_by_name(
    kernel: str,
    parameters: Sequence[ParameterDeclaration],
    items: Sequence[SignatureEntry],
    constants: Mapping[str, Any],
) -> dict[str, str]:
    """Parameter name → its signature entry, positional entries included.

    Raises:
        UsageError: there are more positional entries than parameters.
    """
    unassigned = [item.text for item in items if item.name is None]
    named = {item.name: item.text for item in items if item.name is not None}
    entries: dict[str, str] = {}
    for parameter in parameters:
        if not unassigned:
            break
        is_literal = read_literal(unassigned[0]) is not MISSING and not unassigned[0].startswith("(")
        is_skipped = parameter.constexpr and (not is_literal or parameter.name in constants)
        if parameter.name not in named and not is_skipped:
            entries[parameter.name] = unassigned.pop(0)
    if unassigned:
        takes = ", ".join(p.name for p in parameters if not p.constexpr)
        raise UsageError(
            f"The signature has {len(unassigned)} more {'entry' if len(unassigned) == 1 else 'entries'} than {kernel} "
            f"has arguments (from {unassigned[0]!r} on).",
            f"It takes {takes}." if takes else "All its arguments are tl.constexpr: give them with --const.",
        )
    return entries | named


def read_literal(text: str) -> Any:
    """The value of a Python literal, with lists as tuples; MISSING if `text` is not a literal."""
    try:
        return _lists_to_tuples(ast.literal_eval(text.strip()))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return MISSING


def bind_arguments(
    kernel: str,
    parameters: Sequence[ParameterDeclaration],
    items: Sequence[SignatureEntry],
    constants: Mapping[str, Any],
    derive: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda arguments: {},
) -> BoundArguments:
    """Bind a signature and constants to a kernel's parameters; its `def` supplies defaults and annotations.

    Args:
        items: entries of the signature. Positional entries skip `tl.constexpr` parameters, except that a
            literal can bind to one in its place.
        constants: name → value; any parameter can be bound to a constant.
        derive: computes values with the kernel's heuristics; arguments with a type are passed as `UNKNOWN_VALUE`.

    Raises:
        UsageError: an entry is not a type, there are too many entries, a name is unknown, or an argument is
            missing; the remedy shows how to supply it.
    """
    parameters_by_name = {parameter.name: parameter for parameter in parameters}
    _check_names(kernel, parameters_by_name, [*constants, *(item.name for item in items if item.name is not None)])
    entry_texts = entries_by_name(kernel, parameters, items, constants)
    values = dict(constants)
    types: dict[str, ArgumentType] = {}
    constants_by_path: dict[ArgumentPath, Any] = {}
    hints: dict[ArgumentPath, int] = {}
    unbound_parameters = []
    for index, parameter in enumerate(parameters):
        name = parameter.name
        if name in values:
            continue
        if name in entry_texts:
            entry = _parse_entry(kernel, parameter, entry_texts[name], (index,), constants_by_path, hints)
            if entry == "constexpr":
                values[name] = constants_by_path.pop((index,))
            else:
                types[name] = entry
        elif not parameter.constexpr and parameter.type is not None and parameter.default is MISSING:
            types[name] = parameter.type
        else:
            unbound_parameters.append((index, parameter))
    derived = derive({**dict.fromkeys(types, UNKNOWN_VALUE), **values})
    values |= {name: value for name, value in derived.items() if name in parameters_by_name and name not in types}
    missing = []
    for index, parameter in unbound_parameters:
        name = parameter.name
        if name in values:
            continue
        if parameter.default is MISSING:
            missing.append(parameter)
        elif parameter.constexpr or _type_of_default(parameter)[0] == "constexpr":
            values[name] = parameter.default
        else:
            types[name], hint = _type_of_default(parameter)
            if hint:
                hints[(index,)] = hint
    if missing:
        raise _missing_error(kernel, missing)
    order = {parameter.name: index for index, parameter in enumerate(parameters)}
    constants_by_path |= {(order[name],): value for name, value in values.items()}
    return BoundArguments(
        {name: types[name] for name in order if name in types},
        {path: constants_by_path[path] for path in sorted(constants_by_path)},
        {path: hints[path] for path in sorted(hints)},
    )


class _UnknownValue:
    """Placeholder for an argument whose value only a launch knows; any use raises `ValueUnknownError`."""

    __slots__ = ()

    def _raise_unknown(self, *_: object) -> Any:
        raise ValueUnknownError

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _raise_unknown
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _raise_unknown
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = _raise_unknown
    __and__ = __rand__ = __or__ = __ror__ = __pow__ = __neg__ = _raise_unknown
    __int__ = __float__ = __index__ = __len__ = __iter__ = __getitem__ = __call__ = _raise_unknown

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python itself looks up names such as `__wrapped__`
            raise AttributeError(name)
        raise ValueUnknownError


class ValueUnknownError(Exception):
    """A heuristic used a value that only a launch knows."""


UNKNOWN_VALUE = _UnknownValue()

_REMEDY = "Write e.g. '*fp16:16, i32:16, i32' or by name 'a_ptr=*fp16:16, n=i32'."


def _check_names(kernel: str, parameter_names: Collection[str], names: Iterable[str]) -> None:
    """Raise a UsageError for the first name that is not a parameter."""
    for name in names:
        if name not in parameter_names:
            similar_names = get_close_matches(name, parameter_names, 1)
            remedy = f"Did you mean {similar_names[0]}?" if similar_names else f"It has {', '.join(parameter_names)}."
            raise UsageError(f"{kernel} has no parameter {name!r}.", remedy)


def _split_at_commas(text: str) -> Iterable[str]:
    depth, start, entry_texts = 0, 0, []
    for at, character in enumerate(text):
        if character in "([<{":
            depth += 1
        elif character in ")]>}":
            depth -= 1
        elif character == "," and depth == 0:
            entry_texts.append(text[start:at].strip())
            start = at + 1
    if depth:
        raise UsageError(f"The signature {text!r} has an unclosed bracket.", _REMEDY)
    entry_texts.append(text[start:].strip())
    if entry_texts[-1] == "":
        entry_texts.pop()  # an empty text, or a trailing comma
    return entry_texts


def _parse_entry(
    kernel: str,
    parameter: ParameterDeclaration,
    text: str,
    path: ArgumentPath,
    constants: dict[ArgumentPath, Any],
    hints: dict[ArgumentPath, int],
) -> ArgumentType:
    """The type of an entry, `constexpr` for a constant; stores its constants and hints."""
    if text.startswith("(") and text.endswith(")"):
        return tuple(
            _parse_entry(kernel, parameter, member, (*path, at), constants, hints)
            for at, member in enumerate(_split_at_commas(text[1:-1]))
        )
    value = read_literal(text)
    if value is not MISSING:
        constants[path] = value
        return "constexpr"
    if parameter.constexpr:
        # in place of a tl.constexpr, `fp16` would be a value (a dtype, a string), not a type
        raise UsageError(
            f"{kernel}: {parameter.name} is a tl.constexpr, and {text!r} is not a value.",
            f"Give it with --const {parameter.name}=…",
        )
    type_, _, hint = text.partition(":")
    type_ = _parse_type(kernel, parameter.name, type_.strip())
    if not hint:
        return type_
    if hint.strip() not in ("1", "16"):
        raise UsageError(
            f"{kernel}: the hint of {parameter.name} is {hint.strip()!r}.",
            "Expected 16 (the argument is divisible by 16) or 1 (it equals 1).",
        )
    if hint.strip() == "1":
        if not re.fullmatch(r"[iu]\d+", type_):
            raise UsageError(
                f"{kernel}: {parameter.name} is {text!r}, and only an integer can be 1.",
                f"Write {type_}, or {type_}:16 if it is divisible by 16.",
            )
        constants[path] = 1
        return "constexpr"
    hints[path] = 16
    return type_


def _parse_type(kernel: str, name: str, text: str) -> str:
    """A type in Triton's spelling."""
    if match := _DESCRIPTOR.fullmatch(text):
        shape = ", ".join(size.strip() for size in match[2].split(","))
        return f"tensordesc<{_parse_type(kernel, name, match[1])}[{shape}]>"
    stars = re.match(r"\**", text)
    assert stars is not None
    element = text[stars.end() :].strip().removeprefix("torch.").removeprefix("tl.")
    constant = "k" if stars[0] and element.startswith("k") else ""
    element = _ALIASES.get(element.removeprefix(constant), element.removeprefix(constant))
    if element not in _SCALARS:
        names = [*_SCALARS, *_ALIASES]
        # a difference in case only is the nearest match
        similar = [name for name in _SCALARS if name.lower() == element.lower()] or get_close_matches(element, names, 1)
        remedy = f"Did you mean {stars[0]}{constant}{similar[0]}? " if similar else ""
        raise UsageError(f"{kernel}: {text!r} is not a type for {name}.", remedy + _REMEDY)
    return stars[0] + constant + element


def _type_of_default(parameter: ParameterDeclaration) -> tuple[str, int]:
    """Type and hint of an argument that keeps its default value, as a launch would specialise it."""
    value = parameter.default
    if parameter.type is not None and value is not None:
        return parameter.type, 0
    if isinstance(value, bool):
        return "i1", 0
    if isinstance(value, int):
        if value == 1 and parameter.specialised:
            return "constexpr", 0
        integer_type = "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
        return integer_type, 16 if value % 16 == 0 and parameter.specialised else 0
    if isinstance(value, float):
        return "fp32", 0
    return "constexpr", 0


def _missing_error(kernel: str, missing: Sequence[ParameterDeclaration]) -> UsageError:
    names = [parameter.name for parameter in missing]
    types = [parameter.name for parameter in missing if not parameter.constexpr]
    constants = [parameter.name for parameter in missing if parameter.constexpr]
    remedy = []
    if types:
        entries = ",".join(f"{name}={_example_type(name)}" for name in types)
        remedy.append(f'types with --signature, by name (e.g. "{entries}") or by position')
    if constants:
        values = {name: "64" if re.search(r"block|size|dim|tile", name, re.I) else "…" for name in constants}
        remedy.append("constants with " + " ".join(f"--const {name}={value}" for name, value in values.items()))
    return UsageError(
        f"{kernel} needs its argument{'s' if len(names) > 1 else ''} {', '.join(names)}.",
        f"Give {' and '.join(remedy)}.",
    )


def _example_type(name: str) -> str:
    """A likely type of an argument with this name, for an example."""
    pointer = re.search(r"ptr", name, re.I) or re.fullmatch(r"[A-Z]\w?|[a-z]", name)
    return "*fp16:16" if pointer and name not in ("M", "N", "K", "n", "m", "k") else "i32"


def _lists_to_tuples(value: Any) -> Any:
    return tuple(map(_lists_to_tuples, value)) if isinstance(value, (list, tuple)) else value
