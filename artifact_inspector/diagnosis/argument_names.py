"""What names of kernel arguments suggest, where neither a launch nor a signature states it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

NUMBERS = (
    (re.compile(r"(n_?)?(batch(_?size)?|bsz?|z)", re.IGNORECASE), 8),
    (re.compile(r"(n|num)?_?(q_?|kv_?)?(heads?|h|hq|nh)", re.IGNORECASE), 32),
    (re.compile(r"(head_?)?dim|d|dh|d_?head|d_?model", re.IGNORECASE), 128),
    (re.compile(r"v|vocab\w*|n_?vocab", re.IGNORECASE), 32768),
    (re.compile(r"group(_?size)?|gs", re.IGNORECASE), 128),
    (re.compile(r"pad\w*|offset|start|begin|seed", re.IGNORECASE), 0),
)
"""Numbers of a launch."""
STRIDE = re.compile(r"(stride|ld[abc]?$|s\d$|.*_stride)", re.IGNORECASE)
FLOATS = re.compile(r"eps\w*|lr|\w*scale|alpha|beta\w*|theta|p|prob|momentum|\w*decay|sm_scale|slope", re.IGNORECASE)
CONSTANTS = (
    (re.compile(r"\w*BLOCK\w*_?K|BK|TILE_K", re.IGNORECASE), 32),
    (re.compile(r"\w*BLOCK\w*_?[MN]|B[MN]|TILE_[MN]", re.IGNORECASE), 64),
    (re.compile(r"GROUP_SIZE_?M|GROUP_M", re.IGNORECASE), 8),
    (re.compile(r"GROUP\w*", re.IGNORECASE), 128),
    (re.compile(r"HEAD_?DIM\w*|D|DK|DV|\w*_DIM", re.IGNORECASE), 64),
    (re.compile(r"SPLIT\w*|NUM_SPLITS", re.IGNORECASE), 4),
    (re.compile(r"(IS|HAS|USE|EVEN|CAUSAL|MASK)\w*|\w*_(MODE|AFFINE)", re.IGNORECASE), False),
    (re.compile(r"N_?COLS|COLS|HIDDEN\w*|[MNK]|FEATURES\w*", re.IGNORECASE), 1024),
    (re.compile(r"\w*BLOCK\w*|TILE\w*|\w*SIZE", re.IGNORECASE), 1024),
)
"""Constants to compile with."""


def value_for(name: str, table: Sequence[tuple[re.Pattern[str], Any]], default: Any = None) -> Any:
    """The value of the first pattern that a name matches completely."""
    return next((value for pattern, value in table if pattern.fullmatch(name)), default)
