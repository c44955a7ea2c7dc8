"""A digest of what was found: short enough to keep, and another one as soon as any of it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from hashlib import blake2b

from artifact_inspector.facts.encoding import encode
from artifact_inspector.facts.kernel import KernelFacts


def digest_of(value: object) -> str:
    text = json.dumps(value, default=repr)
    return blake2b(text.encode(errors="surrogatepass"), digest_size=4).hexdigest()


def plain(value: object) -> object:
    """A value taken apart, with what is in no order sorted."""
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *(plain(getattr(value, one.name)) for one in fields(value))]
    if isinstance(value, dict):
        return [[plain(key), plain(one)] for key, one in value.items()]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(plain(one), default=repr) for one in value)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float) else type(value).__name__


def parts_of(facts: KernelFacts) -> Iterator[tuple[str, object]]:
    """Each fact of a kernel, then those of each stage."""
    for field in fields(KernelFacts):
        if field.name not in ("artifact", "stages"):
            yield field.name, encode(getattr(facts, field.name))
    for stage, told in facts.stages.items():
        yield stage.value, [encode(getattr(told, one.name)) for one in fields(told) if one.name != "work"]
        yield f"{stage.value}.work", encode(told.work)
