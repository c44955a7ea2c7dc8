"""Public objects as JSON, and back. The object is equal even if its files were deleted since.

`--json` prints documents for other programs; they cannot be read back. This format stores and sends objects:
values in the order of their fields, decoded by the types of the fields. It names no code to run. Only the
release that wrote it can read it.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

from artifact_inspector.analysis.order.facts import Pair, RegionFacts, RoundFacts
from artifact_inspector.api._plain import errors_are_the_callers
from artifact_inspector.api.view import Inspection
from artifact_inspector.compiling import CompileResult, KernelRequest, Written
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.encoding import decode, encode
from artifact_inspector.facts.kernel import KernelFacts, RegionWork, StageFacts, WaitFacts
from artifact_inspector.files.cache import Artifact, Cache, HeldFile, Other, Problem
from artifact_inspector.findings import Finding
from artifact_inspector.hardware.targets import Target
from artifact_inspector.version import __version__

FORM = "artifact-inspector object 1"
_KINDS: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (
        Artifact,
        Cache,
        CompileResult,
        Finding,
        Inspection,
        KernelFacts,
        KernelRequest,
        Other,
        Pair,
        Problem,
        RegionFacts,
        RegionWork,
        RoundFacts,
        StageFacts,
        Target,
        WaitFacts,
    )
}


class _Codec(NamedTuple):
    """Writes and reads the value of one field."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


@errors_are_the_callers
def to_json(value: object) -> str:
    """A public object as JSON, on one line.

    Raises:
        UsageError: the type is not supported, or a value in it is not plain data.

    Example:
        >>> from artifact_inspector import parse_target
        >>> from_json(to_json(parse_target("H100"))) == parse_target("sm_90")
        True
    """
    kind = type(value).__name__
    if _KINDS.get(kind) is not type(value):
        raise UsageError(f"A {kind} cannot be written as JSON.", f"Expected one of {', '.join(_KINDS)}.")
    try:
        plain = _written(value)
        return json.dumps({"form": FORM, "release": __version__, "type": kind, "value": plain})
    except TypeError as error:
        raise UsageError(f"The {kind} holds what has no JSON: {error}.", "Pickle it instead.") from None


@errors_are_the_callers
def from_json(text: str) -> Any:
    """The object that `to_json` wrote.

    Raises:
        UsageError: the text was not written by `to_json`, or by a release whose objects have other fields.
    """
    try:
        document = json.loads(text)
        if document["form"] != FORM:
            raise KeyError(document["form"])
        return _read(_KINDS[document["type"]], document["value"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"This was not written by to_json of release {__version__}: {type(error).__name__} {error}.",
            "Read it with the release that wrote it.",
        ) from None


def _written(value: Any) -> Any:
    """An object as the list of its field values; other values are encoded as stored facts."""
    kind: Any = type(value)
    if kind not in _SPECIAL and kind not in _NESTED:
        return encode(value)
    return [codec.write(getattr(value, name)) for name, codec in _codecs(kind).items()]


def _read(kind: type, plain: Any) -> Any:
    if kind not in _SPECIAL and kind not in _NESTED:
        return decode(kind, plain)
    codecs = _codecs(kind)
    if len(plain) != len(codecs):
        raise ValueError(f"{kind.__name__} has {len(codecs)} fields, not {len(plain)}")
    return kind(**{name: codec.read(one) for (name, codec), one in zip(codecs.items(), plain, strict=True)})


@cache
def _codecs(kind: Any) -> Mapping[str, _Codec]:
    """Field → its codec."""
    hints = get_type_hints(kind)
    special = _SPECIAL.get(kind, {})
    return {
        field.name: special.get(field.name) or _codec(hints[field.name])
        for field in dataclasses.fields(kind)
        if field.init
    }


def _codec(hint: Any) -> _Codec:
    members = [one for one in get_args(hint) if one is not type(None)]
    if hint is Path or members == [Path]:
        return _PATH
    if hint in _NESTED or hint in _SPECIAL:
        return _Codec(_written, lambda plain: _read(hint, plain))
    if len(members) == 2 and members[1] is Ellipsis and (members[0] in _NESTED or members[0] in _SPECIAL):
        return _Codec(
            lambda many: [_written(one) for one in many],
            lambda plain: tuple(_read(members[0], one) for one in plain),
        )
    return _Codec(encode, lambda plain: decode(hint, plain))


def _file(plain: Any) -> Path | HeldFile:
    return Path(plain) if isinstance(plain, str) else HeldFile(plain[0], base64.b64decode(plain[1]))


def _constants(values: Mapping[str, Any]) -> Any:
    """Constants as triples; a `Written` constant keeps its text."""
    return [
        [name, "text" if isinstance(one, Written) else "value", getattr(one, "text", one)]
        for name, one in values.items()
    ]


_PATH = _Codec(
    lambda path: None if path is None else str(path), lambda plain: None if plain is None else Path(plain)
)
_PLAIN = _Codec(lambda value: value, lambda plain: plain)
_FILES = _Codec(
    lambda files: {
        suffix: str(file) if isinstance(file, Path) else [file.name, base64.b64encode(file.content).decode()]
        for suffix, file in files.items()
    },
    lambda plain: {suffix: _file(one) for suffix, one in plain.items()},
)
_CONSTANTS = _Codec(
    _constants, lambda plain: {name: Written(one) if how == "text" else one for name, how, one in plain}
)
_SPECIAL: Mapping[type, Mapping[str, _Codec]] = {
    Artifact: {"files": _FILES, "metadata": _PLAIN, "constants": _PLAIN},
    CompileResult: {"constants": _PLAIN, "options": _PLAIN},
    KernelRequest: {
        "signature": _PLAIN,
        "constexprs": _CONSTANTS,
        "options": _PLAIN,
        "configs": _PLAIN,
        "changed": _PLAIN,
    },
}
"""Fields whose types do not determine the encoding."""
_NESTED = frozenset({Cache, Inspection, KernelFacts})
"""Types that contain them."""
