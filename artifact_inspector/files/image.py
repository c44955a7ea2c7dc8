"""Reads which layers a container image has, and which of their files are visible.

An image is a directory or a tar as `skopeo copy`, `podman save` and `docker save` write it: JSON documents that
name layers, each of which is a tar. Nothing is downloaded.

Source: github.com/opencontainers/image-spec, image-layout.md, image-index.md, layer.md; Docker's `manifest.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from artifact_inspector.files.artifact import SUFFIXES

LAYOUT = "oci-layout"
DOCUMENT_BYTES = 4 << 20
"""Most bytes of a document, by the specification of registries."""
FIRST_MEMBER = re.compile(r"(?:\./)?(?:blobs(?:/.*)?|oci-layout|index\.json|manifest\.json|[0-9a-f]{64}[/.].*)")
"""The names with which the tar of an image begins."""
_DIGEST = re.compile(r"(sha256|sha512):([0-9a-f]{64,128})")
_MOST_DOCUMENTS = 64


def image_layers(read: Callable[[str], bytes]) -> list[list[str]]:
    """The members that are the layers of each image, the lowest first.

    Args:
        read: the content of a member.

    Raises:
        KeyError, ValueError, TypeError, OSError: a document is missing or damaged.
    """
    try:
        pending: list[Any] = [*json.loads(read("index.json"))["manifests"]]
    except (KeyError, FileNotFoundError):
        return [[str(layer) for layer in image["Layers"]] for image in json.loads(read("manifest.json"))]
    images: list[list[str]] = []
    for _ in range(_MOST_DOCUMENTS):  # an index may name itself
        document = json.loads(read(_blob(pending.pop(0)))) if pending else {}
        pending = [*document.get("manifests", ()), *pending][:_MOST_DOCUMENTS]
        layers = [_blob(x) for x in document.get("layers", ()) if "in-toto" not in str(x.get("mediaType"))]
        images += [layers] if layers else []
    if pending:
        raise ValueError(f"more than {_MOST_DOCUMENTS} indexes and manifests")
    return images


def _blob(descriptor: Any) -> str:
    match = _DIGEST.fullmatch(descriptor["digest"])
    if match is None:
        raise ValueError(f"{str(descriptor['digest'])[:80]} is no digest")
    return f"blobs/{match[1]}/{match[2]}"


class LayerFilter:
    """Which members of the layers of an image are visible, if the highest layer is read first."""

    def __init__(self) -> None:
        self._upper: set[tuple[str, ...]] = set()
        self._current: set[tuple[str, ...]] = set()

    def begin_layer(self) -> None:
        """Call before each layer."""
        self._upper |= self._current
        self._current = set()

    def is_visible(self, name: str) -> bool:
        """Whether a file is one that kernels have, and no higher layer has or removes it."""
        *parents, base = [part for part in name.split("/") if part not in ("", ".")] or [""]
        if base == ".wh..wh..opq":
            self._current.add(tuple(parents))
        elif base.startswith(".wh."):
            self._current.add((*parents, base.removeprefix(".wh.")))
        elif base.rpartition(".")[2] in SUFFIXES:
            path = (*parents, base)
            self._current.add(path)
            return all(path[:count] not in self._upper for count in range(len(path) + 1))
        return False
