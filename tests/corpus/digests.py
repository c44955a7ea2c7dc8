"""A digest of what was found: short enough to keep, and another one as soon as any of it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from hashlib import blake2b

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.stored import encode


def digest_of(value: object) -> str:
    text = json.dumps(value, default=repr)
    return blake2b(text.encode(errors="surrogatepass"), digest_size=4).hexdigest()


def parts_of(facts: KernelFacts) -> Iterator[tuple[str, object]]:
    """Each fact of a kernel, then those of each stage."""
    for field in fields(KernelFacts):
        if field.name not in ("artifact", "stages"):
            yield field.name, encode(getattr(facts, field.name))
    for stage, told in facts.stages.items():
        yield stage.value, [encode(getattr(told, one.name)) for one in fields(told) if one.name != "work"]
        yield f"{stage.value}.work", encode(told.work)
