"""The first cause that `advise` predicted for a kernel, kept in the result cache so that lists can order by it.

A list simulates nothing: a kernel without a diagnosis of this version of the package has none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.lazy import none
from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.digests import index_key
from artifact_inspector.files.index import Index

OpenIndex = Callable[[], Index] | None


class KeptDiagnosis(NamedTuple):
    """The first cause of the launch that was diagnosed last."""

    cause: str
    """`serial-loop`, `uncoalesced` …"""
    share: float
    """Of the predicted time, from 0 to 1."""
    summary: str = ""
    """The first sentence of `advise`."""

    @property
    def text(self) -> str:
        """`serial loop 45% of the time`."""
        return f"{self.cause.replace('-', ' ').replace('sms', 'SMs')} {self.share:.0%} of the time"


def keep_diagnoses(diagnoses: Iterable[tuple[Artifact, KeptDiagnosis]], open_index: OpenIndex) -> None:
    """Store the diagnoses of some kernels."""
    if open_index is not None:
        with open_index() as index:
            index.put({_key(artifact): json.dumps(cause).encode() for artifact, cause in diagnoses})


def read_kept_diagnoses(artifacts: Iterable[Artifact], open_index: OpenIndex) -> Mapping[bytes, KeptDiagnosis]:
    """The stored diagnoses of some kernels, for `attach`."""
    if open_index is None:
        return {}
    with open_index() as index:
        return {key: KeptDiagnosis(*json.loads(text)) for key, text in index.get(map(_key, artifacts)).items()}


def attach(kernel: KernelFacts, diagnoses: Mapping[bytes, KeptDiagnosis]) -> None:
    """Let `diagnosis_of` find the stored diagnosis of a kernel."""
    kernel.derive(_NAME, lambda: diagnoses.get(_key(kernel.artifact)))


def diagnosis_of(kernel: KernelFacts) -> KeptDiagnosis | None:
    """The diagnosis that was attached to a kernel; None without one."""
    return kernel.derive(_NAME, none)


_NAME = "kept_diagnosis"


def _key(artifact: Artifact) -> bytes:
    return index_key(f"{artifact.hash} {artifact.name} {artifact.target}".encode(), b"diagnosis")
