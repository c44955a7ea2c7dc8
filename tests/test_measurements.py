"""The measurements that are kept are whole, and the page about them says what they say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from measured import MEASURED, kept
from saved import ROOT

from artifact_inspector.compiling.reference import DEMO_KERNELS, REFERENCE_KERNELS
from artifact_inspector.hardware.peaks import find_peaks
from artifact_inspector.report.json.schema import schema_of

PAGE = ROOT / "docs" / "lab" / "measurements.md"
FILES = sorted(MEASURED.glob("*.json"))
REFERENCE, GEMV = MEASURED / "h200-reference.json", MEASURED / "h200-gemv.json"
ORDERS = ("gemv_splitk", "gemv_loads_first")

Row = dict[str, Any]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_is_kept_is_what_bench_prints(file) -> None:
    document = kept(file)
    assert not list(Draft202012Validator(schema_of("bench")).iter_errors(document))
    assert document["device"]["driver"]
    assert all(row["is_correct"] for row in document["rows"] if row["message"] is None)
    # a launch that failed asked for more shared memory than there is, or the compiler refused it
    reasons = {row["message"].partition(":")[0] for row in document["rows"] if row["message"] is not None}
    assert reasons <= {"OutOfResources", "RuntimeError"}


def test_every_reference_kernel_was_measured_and_was_right() -> None:
    rows = kept(REFERENCE)["rows"]
    assert [row["kernel"] for row in rows] == list(REFERENCE_KERNELS)
    assert all(row["is_correct"] and row["hash"] for row in rows)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_shares_follow_from_times_and_peaks(file) -> None:
    document = kept(file)
    peaks = find_peaks(document["device"]["name"])
    assert peaks is not None
    for row in document["rows"]:
        if row["share"] is not None:
            reached = row["bandwidth"] if row["bound"] == "memory" else row["flops"]
            most = peaks.bandwidth if row["bound"] == "memory" else peaks.flops[row["bound"]]
            assert row["share"] == pytest.approx(reached / most, abs=1e-3)
            # nothing runs faster than its peak: the cost of a problem counts no more than it takes
            assert row["share"] <= 1, row


def pairs() -> Iterator[tuple[Row, Row]]:
    """Each configuration of the GEMV in both source orders."""
    by_order = {name: [row for row in kept(GEMV)["rows"] if row["kernel"] == name] for name in ORDERS}
    for one, other in zip(*by_order.values(), strict=True):
        assert one["config"] == other["config"]
        yield one, other


def ratio(pair: tuple[Row, Row]) -> float:
    """Time with the loads first over the time as load, compute, load, compute."""
    return pair[1]["milliseconds"] / pair[0]["milliseconds"]


def test_what_the_page_says_of_the_order_holds() -> None:
    found = list(pairs())
    assert len(found) == 36
    assert all(row["verdicts"]["ttir"] == "interleaved" for row, _ in found)
    assert all(row["verdicts"]["ttir"] == "clustered" for _, row in found)
    # where both come close to the bandwidth, and nothing spills, the order does not matter
    near = [pair for pair in found if min(row["share"] for row in pair) > 0.82 and not spills(pair)]
    assert len(near) >= 5
    assert all(abs(ratio(pair) - 1) < 0.012 for pair in near)
    # the compiler may undo it: with one warp, LLVM gathers the loads of both
    undone = [one for one, _ in found if one["verdicts"]["ptx"] == "clustered"]
    assert {one["config"]["num_warps"] for one in undone} == {1}
    # where the loads of both rounds do not fit the registers, putting them first costs most
    worst = max(found, key=ratio)
    assert ratio(worst) > 2
    assert worst[1]["spill_bytes"] > worst[0]["spill_bytes"] > 0
    # no order is better everywhere, and without spills none is worth more than a seventh
    plain = [ratio(pair) for pair in found if not spills(pair)]
    assert min(plain) < 0.995
    assert 1.1 < max(plain) < 1.15
    # far from the bandwidth it matters little
    far = [ratio(pair) for pair in found if max(row["share"] for row in pair) < 0.56 and not spills(pair)]
    assert len(far) > 10
    assert all(0.97 < one < 1.065 for one in far)
    assert sum(one > 1.03 for one in far) == 2


def spills(pair: tuple[Row, Row]) -> bool:
    return any(row["spill_bytes"] for row in pair)


def test_the_page_on_measurements_is_current(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    tables = {"reference": reference_table, "best": best_table, "gemv": gemv_table}
    current = text
    for name, make in tables.items():
        mark, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        assert mark in text, name
        current = re.sub(
            f"{re.escape(mark)}.*?{re.escape(end)}", lambda _, m=make, a=mark, b=end: a + m() + b, current, flags=re.S
        )
    if request.config.getoption("--update-docs", default=False):
        PAGE.write_text(current, encoding="utf-8")
    else:
        assert current == text, "run pytest tests/test_measurements.py --update-docs"


def markdown(headings: list[str], rows: list[list[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def reference_table() -> str:
    return markdown(
        ["kernel", "problem", "verdict", "registers", "blocks", "ms", "TFLOP/s", "GB/s", "of peak"],
        [[f"`{row['kernel']}`", row["size"], *facts(row), *figures(row)] for row in kept(REFERENCE)["rows"]],
    )


def best_table() -> str:
    """The fastest configuration of each kernel, of all that were measured."""
    rows = [row for file in FILES if file != REFERENCE for row in kept(file)["rows"]]
    own = {row["kernel"]: row for row in kept(REFERENCE)["rows"]}
    made = []
    for name in REFERENCE_KERNELS:
        timed = [row for row in rows if row["kernel"] == name and row["milliseconds"] is not None]
        best = min(timed, key=lambda row: row["milliseconds"])
        failed = sum(row["kernel"] == name and row["milliseconds"] is None for row in rows)
        faster = f"{own[name]['milliseconds'] / best['milliseconds']:.2f}"
        made.append(
            [
                f"`{name}`",
                f"{len(timed) + failed}",
                str(failed or ""),
                config(best),
                *facts(best),
                *figures(best),
                faster,
            ]
        )
    return markdown(
        [
            "kernel",
            "tried",
            "failed",
            "fastest",
            "verdict",
            "registers",
            "blocks",
            "ms",
            "TFLOP/s",
            "GB/s",
            "of peak",
            "× its own",
        ],
        made,
    )


def gemv_table() -> str:
    rows = []
    for pair in pairs():
        blocks = pair[0]["config"]
        row = [f"{blocks['BLOCK_N']}×{blocks['BLOCK_K']}", str(blocks["num_warps"])]
        for order in pair:
            row += [
                order["verdicts"]["ptx"],
                order["verdicts"].get("sass", "–"),
                registers(order),
                f"{order['milliseconds']:.3f}",
            ]
        rows.append([*row, f"{100 * max(one['share'] for one in pair):.0f}%", f"{ratio(pair):.2f}"])
    half = ["PTX", "SASS", "registers", "ms"]
    return markdown(["N×K", "warps", *half, *(f"{name} " for name in half), "of peak", "ratio"], rows)


def config(row: Row) -> str:
    short = {"num_warps": "warps", "num_stages": "stages"}
    return ", ".join(f"{short.get(name, name)} {value}" for name, value in row["config"].items())


def facts(row: Row) -> list[str]:
    verdict = list(row["verdicts"].values())[-1]
    return [f"`{verdict}`", registers(row), str(row["blocks"])]


def registers(row: Row) -> str:
    return f"{row['registers']}+{row['spill_bytes']} B" if row["spill_bytes"] else str(row["registers"])


def figures(row: Row) -> list[str]:
    return [
        f"{row['milliseconds']:.3f}",
        "" if row["flops"] is None else f"{row['flops'] / 1e12:.1f}",
        "" if row["bandwidth"] is None else f"{row['bandwidth'] / 1e9:.0f}",
        f"{100 * row['share']:.0f}% {row['bound']}",
    ]


def test_the_page_on_kernels_names_them_all() -> None:
    page = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.M) == list(REFERENCE_KERNELS)
    assert len(DEMO_KERNELS) == 8
