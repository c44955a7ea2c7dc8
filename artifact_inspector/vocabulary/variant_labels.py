"""A short label for each variant of a kernel: `128×64×32 f16 w4 s3 G8`.

A label has the tile, the type, the warps and the stages if they are known; constants and options only if they
differ among the variants in the cache. It has no target and no version, which are always displayed next to it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from artifact_inspector.analysis.flow.kernel_program import KernelProgram
from artifact_inspector.files.cache import Artifact
from artifact_inspector.model.tile import Tile
from artifact_inspector.vocabulary.options import read_options

_ELEMENT = re.compile(r"\*+k?([a-z]+[0-9]\w*)")
_OF_THE_TILE = re.compile(r"BLOCK|TILE|SIZE|^B_?[MNK]$", re.I)
MOST_CHARACTERS = 16
"""Of a constant's value; variants with longer values are distinguished by their hash."""


class Compiled(NamedTuple):
    """A kernel with what it was compiled from; None without tensor-level IR."""

    artifact: Artifact
    program: KernelProgram | None


Extras = Mapping[str, tuple[str, ...]]
"""Name of a kernel → its constants and options that differ among its variants."""


def find_varying(artifacts: Iterable[Artifact]) -> Extras:
    """The constants and options in which variants of one kernel for one target and version differ."""
    values: dict[tuple[str, str], dict[str, set[str]]] = {}
    for artifact in artifacts:
        group = artifact.display_name, f"{artifact.target} {artifact.triton_version}"
        values_by_name = values.setdefault(group, {})
        for name, value in _extras(artifact).items():
            values_by_name.setdefault(name, set()).add(repr(value))
    varying: dict[str, tuple[str, ...]] = {}
    for (kernel, _), of_name in values.items():
        names = [name for name, different in of_name.items() if len(different) > 1]
        varying[kernel] = tuple(dict.fromkeys((*varying.get(kernel, ()), *names)))
    return varying


def label_form(form: Compiled, extras: Extras) -> str:
    """The label of one variant; empty if nothing is known."""
    artifact, program = form
    tile = tile_of(program)
    fields = [tile, _element(program)]
    fields += [f"w{artifact.num_warps}"] if artifact.num_warps is not None else []
    fields += [f"s{artifact.num_stages}"] if artifact.num_stages is not None and not artifact.is_gluon else []
    names = [name for name in extras.get(artifact.display_name, ()) if name in _extras(artifact)]
    letters = Counter(_letter(name) for name in names)
    extents = set(re.findall(r"\d+", tile))
    for name in names:
        value = _extras(artifact)[name]
        if not (_OF_THE_TILE.search(name) and str(value) in extents):
            fields.append(_option_label(name, value, alone=letters[_letter(name)] == 1))
    return " ".join(filter(None, fields))


def label_forms(forms: Sequence[Compiled], extras: Extras) -> list[str]:
    """The labels of some variants in order. Equal labels get a suffix that distinguishes them."""
    labels = [label_form(form, extras) for form in forms]
    by_label: dict[tuple[str, ...], list[int]] = {}
    for index, (form, label) in enumerate(zip(forms, labels, strict=True)):
        artifact = form.artifact
        key = (artifact.display_name, str(artifact.target), str(artifact.triton_version), label)
        by_label.setdefault(key, []).append(index)
    for indices in by_label.values():
        if len(indices) > 1:
            for index, suffix in zip(indices, _distinguishing([forms[index] for index in indices]), strict=True):
                labels[index] = f"{labels[index]} {suffix}".strip()
    return labels


def label_ambiguous(forms: Sequence[Compiled], extras: Extras) -> list[str]:
    """The labels of variants with the same name, target and version; empty for all others."""
    labels = label_forms(forms, extras)
    labels_by_kernel: dict[tuple[str, ...], set[str]] = {}
    keys = [(x.artifact.display_name, str(x.artifact.target), str(x.artifact.triton_version)) for x in forms]
    for key, label in zip(keys, labels, strict=True):
        labels_by_kernel.setdefault(key, set()).add(label)
    return [label if len(labels_by_kernel[key]) > 1 else "" for key, label in zip(keys, labels, strict=True)]


def tile_of(program: KernelProgram | None) -> str:
    """The main tile of a kernel: of its first dot, else of its first access."""
    tiles = () if program is None else program.tiles
    dots = [tile for tile in tiles if tile.is_dot]
    return (dots or list(tiles) or [Tile()])[0].shape


def _distinguishing(forms: Sequence[Compiled]) -> list[str]:
    """The other tiles and the types of arguments in which variants differ."""
    programs = [form.program for form in forms]
    features = [() if program is None else (*program.tiles[1:], *_typed(program)) for program in programs]
    shared = set(features[0]).intersection(*features[1:])
    return [" ".join(feature for feature in own_features if feature not in shared) for own_features in features]


def _typed(program: KernelProgram) -> list[str]:
    """The arguments with their types, by name where the text has names; of a damaged text those that exist."""
    names = program.arguments or [f"arg{at}" for at in range(len(program.signature))]
    return [f"{name}:{kind}" for name, kind in zip(names, program.signature, strict=False)]


def _element(program: KernelProgram | None) -> str:
    """Type of what the first pointer points at: `f16`."""
    for kind in () if program is None else program.signature:
        match = _ELEMENT.match(kind)
        if match is not None:
            return re.sub(r"^fp", "f", match[1])
    return ""


def _extras(artifact: Artifact) -> dict[str, Any]:
    options = read_options(artifact.metadata)
    selected = {name: value for name, value in options.items() if name not in ("num_warps", "num_stages")}
    return {**artifact.constants, **selected}


def _letter(name: str) -> str:
    return name[:1].upper()


def _option_label(name: str, value: object, *, alone: bool) -> str:
    """`G8` for GROUP_M=8 where no other begins with that letter, else `GROUP_M=8`."""
    if isinstance(value, int) and not isinstance(value, bool) and alone and name.isupper():
        return f"{_letter(name)}{value}"
    text = str(int(value)) if isinstance(value, bool) else str(value)
    return f"{name}={text}" if len(text) <= MOST_CHARACTERS else ""
