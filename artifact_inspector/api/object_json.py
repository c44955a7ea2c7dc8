"""Public objects as JSON, and back. The object is equal even if its files were deleted since.

`--json` prints documents for other programs; they cannot be read back. This format stores and sends objects:
values in the order of their fields, decoded by the types of the fields. It names no code to run. Format 1 is
read too; otherwise only a release with the same fields can read it.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

from artifact_inspector.analysis.order.region_facts import RegionFacts, RoundFacts, RoundPair
from artifact_inspector.api import object_version1
from artifact_inspector.api._tracebacks import hide_internal_frames
from artifact_inspector.api.inspection import Inspection
from artifact_inspector.compiling import CompileResult, ConstantText, KernelRequest
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.encoding import decode, encode
from artifact_inspector.facts.kernel import KernelFacts, RegionWork, StageFacts, WaitFacts
from artifact_inspector.files.cache import Artifact, Cache, MemoryFile, OtherFile, Problem
from artifact_inspector.findings import Finding
from artifact_inspector.hardware.targets import Target
from artifact_inspector.version import __version__

FORMAT_NAME = "artifact-inspector object 2"
_TYPES: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (
        Artifact, Cache, CompileResult, Finding, Inspection, KernelFacts, KernelRequest, OtherFile, Problem,
        RegionFacts, RegionWork, RoundFacts, RoundPair, StageFacts, Target, WaitFacts,
    )
}  # fmt: skip


class _Codec(NamedTuple):
    """Writes and reads the value of one field."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


@hide_internal_frames
def to_json(value: object) -> str:
    """A public object as JSON, on one line.

    Raises:
        UsageError: the type is not supported, or a value in it is not plain data.

    Example:
        >>> from artifact_inspector import parse_target
        >>> from_json(to_json(parse_target("H100"))) == parse_target("sm_90")
        True
    """
    type_name = type(value).__name__
    if _TYPES.get(type_name) is not type(value):
        raise UsageError(f"A {type_name} cannot be written as JSON.", f"Expected one of {', '.join(_TYPES)}.")
    try:
        plain = _encode_object(value)
        return json.dumps({"form": FORMAT_NAME, "release": __version__, "type": type_name, "value": plain})
    except TypeError as error:
        raise UsageError(f"The {type_name} holds what has no JSON: {error}.", "Pickle it instead.") from None


@hide_internal_frames
def from_json(text: str) -> Any:
    """The object that `to_json` wrote.

    Raises:
        UsageError: the text was not written by `to_json`, or by a release whose objects have other fields.
    """
    try:
        document = json.loads(text)
        type_name, plain = document["type"], document["value"]
        if document["form"] == object_version1.FORMAT_NAME:
            kind = _TYPES[object_version1.RENAMED_TYPES.get(type_name, type_name)]
            return _decode_object(kind, object_version1.upgrade_object(kind, plain, _FIELD_CODECS))
        if document["form"] != FORMAT_NAME:
            raise KeyError(document["form"])
        return _decode_object(_TYPES[type_name], plain)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"This was not written by to_json of release {__version__}: {type(error).__name__} {error}.",
            "Read it with the release that wrote it.",
        ) from None


def _encode_object(value: Any) -> Any:
    """An object as the list of its field values; other values are encoded as stored facts."""
    kind: Any = type(value)
    if kind not in _FIELD_CODECS and kind not in _NESTED_TYPES:
        return encode(value)
    return [codec.encode(getattr(value, name)) for name, codec in _codecs(kind).items()]


def _decode_object(kind: type, encoded: Any) -> Any:
    if kind not in _FIELD_CODECS and kind not in _NESTED_TYPES:
        return decode(kind, encoded)
    codecs = _codecs(kind)
    if len(encoded) != len(codecs):
        raise ValueError(f"{kind.__name__} has {len(codecs)} fields, not {len(encoded)}")
    return kind(
        **{name: codec.decode(field_value) for (name, codec), field_value in zip(codecs.items(), encoded, strict=True)}
    )


@cache
def _codecs(kind: Any) -> Mapping[str, _Codec]:
    """Field → its codec."""
    hints = get_type_hints(kind)
    special = _FIELD_CODECS.get(kind, {})
    return {
        field.name: special.get(field.name) or _codec_of(hints[field.name])
        for field in dataclasses.fields(kind)
        if field.init
    }


def _codec_of(hint: Any) -> _Codec:
    members = [member for member in get_args(hint) if member is not type(None)]
    if hint is Path or members == [Path]:
        return _PATH
    if hint in _NESTED_TYPES or hint in _FIELD_CODECS:
        return _Codec(_encode_object, lambda encoded: _decode_object(hint, encoded))
    if len(members) == 2 and members[1] is Ellipsis and (members[0] in _NESTED_TYPES or members[0] in _FIELD_CODECS):
        return _Codec(
            lambda many: [_encode_object(member) for member in many],
            lambda encoded: tuple(_decode_object(members[0], member) for member in encoded),
        )
    return _Codec(encode, lambda encoded: decode(hint, encoded))


def _encode_constants(values: Mapping[str, Any]) -> Any:
    """Constants as triples; a `ConstantText` constant keeps its text."""
    return [
        [name, "text" if isinstance(constant, ConstantText) else "value", getattr(constant, "text", constant)]
        for name, constant in values.items()
    ]


_PATH = _Codec(lambda path: None if path is None else str(path), lambda plain: None if plain is None else Path(plain))
_PLAIN = _Codec(lambda value: value, lambda plain: plain)
_FILES = _Codec(
    lambda files: {
        suffix: str(file) if isinstance(file, Path) else [file.name, base64.b64encode(file.content).decode()]
        for suffix, file in files.items()
    },
    lambda plain: {
        suffix: Path(x) if isinstance(x, str) else MemoryFile(x[0], base64.b64decode(x[1]))
        for suffix, x in plain.items()
    },
)
_CONSTANTS = _Codec(
    _encode_constants,
    lambda plain: {name: ConstantText(member) if how == "text" else member for name, how, member in plain},
)
_FIELD_CODECS: Mapping[type, Mapping[str, _Codec]] = {
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
_NESTED_TYPES = frozenset({Cache, Inspection, KernelFacts})
"""Types that contain them."""
