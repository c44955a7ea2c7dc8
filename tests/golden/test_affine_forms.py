"""In which form the interpreter keeps what it computes of sums of CTAs and lanes is what it was.

The numbers are those of arrays whatever the form is (`test_execution_shifted.py`): the form decides what later
instructions cost. `affine forms.json` has each form with the operations that leave it: `affine` is a number of
each CTA plus one of each lane, `ctas` and `lanes` one of each, `number` one of all, `array` one of every lane of every CTA.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goldens import hold

from artifact_inspector.execution.interpreter.affine import AffineValue, as_plain_array, to_affine
from artifact_inspector.execution.interpreter.values import FULL, apply, as_signed, select_lanes

FILE = Path(__file__).parent / "affine forms.json"
ROWS = {
    "even": [0, 128, 256, 384], "odd": [0, 5, 10, 15], "word": [FULL - 63, 0, 64, 1 << 31], "signed": [-128, 0, 128, 256],
    "wide": [1 << 32, 1 << 33, 3 << 32, 0], "last": [(1 << 32) - 4, (1 << 32) - 3, (1 << 32) - 2, (1 << 32) - 1],
    "huge": [1 << 61, 1, 1 << 62, 3], "four": [4, 4, 4, 4], "falling": [48, 32, 16, 0], "half": [64, 192, 320, 448],
}  # fmt: skip
LANES = {
    "step": [0, 1, 2, 3, 4], "wide step": [0, 16, 32, 48, 64], "mixed": [127, 0, 1, 2, 3], "signed": [-64, -32, 0, 32, 64],
    "same": [0, 0, 0, 0, 0], "word": [FULL, 0, 1, 2, 3], "bits": [0, 64, 0, 64, 0],
}  # fmt: skip
OTHERS = {
    "0": 0, "1": 1, "3": 3, "31": 31, "32": 32, "63": 63, "64": 64, "127": 127, "128": 128, "512": 512, "FULL": FULL,
    "-1": -1, "-128": -128, "sign": 1 << 31, "2^32": 1 << 32, "ctas": np.array([[0], [64], [128], [7]], np.int64),
    "lanes": np.array([[0, 1, 2, 3, 4]], np.int64), "array": np.arange(20, dtype=np.int64).reshape(4, 5) ** 2,
    "other": AffineValue(np.array([[0], [256], [512], [768]], np.int64), np.array([[4, 3, 2, 1, 0]], np.int64)),
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    one.__name__: one for one in (
        operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor, operator.lt, operator.le,
        operator.gt, operator.ge, operator.eq, operator.ne, np.minimum, np.maximum,
    )
}  # fmt: skip
SHIFTS = (0, 1, 2, 4, 7, 16, 31, 32, 33)
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg, "invert": operator.invert, "signed": as_signed, "abs": abs, "keep": lambda v: v.keep([1, 2]),
    "some": lambda v: select_lanes(np.array([[True, False, True, True, True]]), v, 0), "again": lambda v: to_affine(v.to_array()),
    "half": lambda v: select_lanes(np.array([[True], [False], [True], [True]]), v, v + 64),
    **{f"<< {by}": partial(lambda by, v: v << by, by) for by in SHIFTS},
    **{f">> {by}": partial(lambda by, v: v >> by, by) for by in SHIFTS},
}  # fmt: skip


def form(value: Any) -> str:
    if isinstance(value, AffineValue):
        return "affine"
    shape = np.shape(value)
    if not shape:
        return "truth" if isinstance(value, bool | np.bool_) else "number"
    kind = "truths of " if np.asarray(value).dtype == bool else ""
    return kind + ("ctas" if shape[1] == 1 else "lanes" if shape[0] == 1 else "array")


def test_a_result_has_the_form_that_it_had(request: pytest.FixtureRequest) -> None:
    found: dict[str, dict[str, list[str]]] = {}
    for at, (rows, of_ctas) in enumerate(ROWS.items()):
        for lanes, of_lanes in [*LANES.items()][at % 2 :: 2]:
            value = AffineValue(np.array(of_ctas, np.int64)[:, None], np.array([of_lanes], np.int64))
            results = {name: apply(function, value) for name, function in UNARY.items()}
            for other, operand in OTHERS.items():
                for name, function in BINARY.items():
                    results[f"{name} {other}"] = apply(function, value, operand)
                    expected = function(value.to_array(), as_plain_array(operand))
                    assert np.array_equal(
                        np.broadcast_to(as_plain_array(results[f"{name} {other}"]), expected.shape), expected
                    )
            forms: dict[str, list[str]] = {}
            for name, result in results.items():
                forms.setdefault(form(result), []).append(name)
            found[f"{rows} + {lanes}"] = {kind: ", ".join(names) for kind, names in sorted(forms.items())}
    hold(FILE, found, request)
