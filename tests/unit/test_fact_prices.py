"""The prices of facts: the launch re-costed with one fact put back."""

from __future__ import annotations

import json
import re
import tarfile

import pytest
from saved import ROOT
from typer.testing import CliRunner

from artifact_inspector import cli
from artifact_inspector.vocabulary.fact import Sign

LAUNCH = {"grid": [32], "args": {"desc": "bf16[4096,4096]", "out": "fp32[4096]", "M": 4096, "N": 4096}}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """triton#9703 from the old release to the new one, and back."""
    directory = tmp_path_factory.mktemp("releases")
    with tarfile.open(ROOT / "tests" / "cases" / "reduction_across_warps.tar.xz") as archive:
        archive.extractall(directory, filter="data")
    launch = directory / "launch.json"
    launch.write_text(json.dumps(LAUNCH), encoding="utf-8")
    results = []
    for releases in (("3.5.1", "3.6.0"), ("3.6.0", "3.5.1")):
        sides = ["--left", releases[0], "--right", releases[1], "--launch", str(launch), "--json"]
        results.append(CliRunner().invoke(cli.app, ["diff", str(directory / "reduction_across_warps"), *sides]))
    return [json.loads(result.stdout) for result in results]


def prices_of(document: dict) -> dict[str, float | None]:
    return {fact["key"]: fact["price"] for fact in document["facts"]}


@pytest.mark.long
def test_the_reduction_across_warps_has_its_price(documents: list[dict]) -> None:
    prices = prices_of(documents[0])
    assert prices["shared.reduction across warps"] == pytest.approx(1.42, abs=0.1)
    assert prices["registers"] == 1.0  # 29 and 32 registers are both allocated as 32
    assert prices["instructions.llir"] is None  # LLVM IR does not run
    price = re.search(r"([\d.]+)× the time", documents[0]["headline"]["sentence"])
    assert price is not None
    assert float(price[1]) == pytest.approx(1.42, abs=0.1)


@pytest.mark.exhaustive
def test_no_fact_costs_more_than_all_together(documents: list[dict]) -> None:
    total = documents[0]["price"]["ratio"]
    known = [price for price in prices_of(documents[0]).values() if price is not None]
    assert len(known) >= 6
    assert max(known) < total


@pytest.mark.long
def test_a_price_follows_its_direction_and_is_the_inverse_of_that_of_exchanged_sides(documents: list[dict]) -> None:
    there, back = map(prices_of, documents)
    for fact in documents[0]["facts"]:
        price = fact["price"]
        if price is None:
            assert back[fact["key"]] is None
            continue
        assert fact["direction"] != Sign.NEUTRAL
        assert price >= 1 if fact["direction"] == Sign.WORSE else price <= 1
        assert back[fact["key"]] == pytest.approx(1 / price, abs=0.002)
    assert there.keys() == back.keys()
