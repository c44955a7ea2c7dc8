"""What share of the reads of each tensor the multiprocessors request, and what share of these the L2 serves.

Equal requests of the multiprocessors of a GPC that are under way at once become one request of the L2.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.footprints import Footprints, TensorReads

_MOST_COMPARED_CTAS = 4096
"""Most CTAs whose reads are compared."""
_GPC_MULTIPROCESSORS = 16
"""They get consecutive CTAs of the first wave. Measured on an H200: six GPCs have 16, two 18."""
_MOST_MERGED = 4
"""Most requests of a GPC for one sector that become one. Measured on an H200."""
_FIRST_WAVE_SHARE, _LATER_SHARE = 0.75, 0.2
"""Share of the requests that could be merged and are, since CTAs lose step. Fitted on matrix products on an H200."""


def shares_delivered(footprints: Footprints) -> dict[str, float]:
    """Tensor → share of the requests that are delivered by themselves, if two neighbouring CTAs share equal ones."""
    shares = {}
    for name, reads in footprints.reads_by_tensor.items():
        ctas = list(islice(reads.start_of_cta, _MOST_COMPARED_CTAS))
        equal = sum(_footprint(reads, cta) == _footprint(reads, cta + 1) for cta in ctas)
        shares[name] = 1 - equal / len(ctas) / 2 if ctas else 1.0
    return shares


def shares_served(footprints: Footprints, multiprocessors: int, resident: int) -> dict[str, float]:
    """Tensor → share of the requests that reach the L2.

    Args:
        footprints: what each CTA reads.
        resident: CTAs that fit on a multiprocessor at a time.
    """
    firsts = ((name, reads.start_of_cta.values()) for name, reads in footprints.reads_by_tensor.items())
    # where each CTA starts to read: of two with one start, one reads what the other does, or a part of it
    starts = {name: np.fromiter(islice(first, _MOST_COMPARED_CTAS), np.int64) for name, first in firsts}
    return {name: _share_served(x, multiprocessors, multiprocessors * resident) for name, x in starts.items()}


def shares_past_l1(footprints: Footprints, multiprocessors: int) -> dict[str, float]:
    """Tensor → share of the requests that remain if the L1 of each multiprocessor keeps what its CTAs read."""
    shares = {}
    for name, reads in footprints.reads_by_tensor.items():
        compared = [_footprint(reads, cta) for cta in islice(reads.start_of_cta, _MOST_COMPARED_CTAS)]
        shares[name] = min(1.0, len(set(compared)) * multiprocessors / max(len(compared), 1))
    return shares


def _footprint(reads: TensorReads, cta: int) -> tuple[int | None, int | None]:
    return reads.start_of_cta.get(cta), reads.shape_of_cta.get(cta)


def _share_served(starts: NDArray[np.int64], multiprocessors: int, wave: int) -> float:
    ctas = np.arange(len(starts))
    waves, clusters = ctas // wave, ctas % multiprocessors // _GPC_MULTIPROCESSORS
    groups, counts = np.unique(np.stack([waves, clusters, starts]), axis=1, return_counts=True)
    merged = (counts - -(-counts // _MOST_MERGED)) * np.where(groups[0] == 0, _FIRST_WAVE_SHARE, _LATER_SHARE)
    return 1 - float(merged.sum()) / max(len(starts), 1)
