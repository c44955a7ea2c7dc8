"""The graph of a kernel: what stands where, what feeds what, and the formats that other tools read."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import networkx
import pytest
from saved import ROOT, saved
from typer.testing import CliRunner

from artifact_inspector import inspect
from artifact_inspector.analysis.flow.function_graph import FunctionGraph, GraphNode
from artifact_inspector.api import Inspection
from artifact_inspector.cli import app
from artifact_inspector.errors import UsageError
from artifact_inspector.files.cache import open_cache
from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.report.exchange.graph import FORMATS

pytestmark = pytest.mark.usefixtures("recalled")

MATMUL = "3.6.0/sm_80/matmul_grouped"
CACHE = str(ROOT / "fixtures" / MATMUL)


@pytest.fixture(scope="module")
def matmul() -> Inspection:
    return inspect(CACHE)


def by_kind(graph: networkx.DiGraph, kind: str) -> list[str]:
    return [node for node, found in graph.nodes(data=True) if found["kind"] == kind]


def test_two_loads_feed_a_dot_that_adds_to_itself_and_is_stored(matmul: Inspection) -> None:
    graph = matmul.graph("ttir")
    first, second = by_kind(graph, "global_load")
    (dot,), (store,) = by_kind(graph, "matrix"), by_kind(graph, "global_store")
    data = {(a, b): edge["is_loop_carried"] for a, b, edge in graph.edges(data=True) if edge["kind"] == "data"}
    assert data == {(first, dot): False, (second, dot): False, (dot, dot): True, (dot, store): False}


def test_blocks_are_joined_by_control_flow_and_hold_their_instructions(matmul: Inspection) -> None:
    graph = matmul.graph("ttir")
    control = {(a, b): edge["is_loop_carried"] for a, b, edge in graph.edges(data=True) if edge["kind"] == "control"}
    assert control == {("b0", "b1"): False, ("b1", "b1"): True, ("b1", "b2"): False}
    (dot,) = by_kind(graph, "matrix")
    holders = [a for a, _, edge in graph.in_edges(dot, data=True) if edge["kind"] == "holds"]
    assert holders == ["b1"]


def test_a_node_bears_its_opcode_and_its_lines(matmul: Inspection) -> None:
    graph = matmul.graph("ttir")
    (dot,) = by_kind(graph, "matrix")
    assert graph.nodes[dot] == {
        "kind": "matrix", "label": "tt.dot", "line": 81, "source": "matmul_grouped.py:85"
    }  # fmt: skip


def test_a_region_has_what_stands_in_it_and_nothing_else(matmul: Inspection) -> None:
    whole, loop = matmul.graph("ttir"), matmul.graph("ttir", matmul.loop().id)
    assert set(loop) < set(whole)
    assert by_kind(loop, "global_store") == []
    assert len(by_kind(loop, "global_load")) == 2


@pytest.mark.parametrize(
    "path", [MATMUL, "3.6.0/gfx942/matmul_grouped", "3.6.0/sm_90/flash_attention", "3.2.0/sm_75/gemv_splitk"]
)
def test_every_store_takes_data_and_every_compute_counted_is_a_node_at_each_stage(path: str) -> None:
    kernel = Inspection(saved(path).facts, open_cache(ROOT / "fixtures" / path))
    for stage, facts in kernel.details.stages.items():
        graph = kernel.graph(stage)
        for kind in ("global_load", "matrix", "float", "global_store"):
            assert len(by_kind(graph, kind)) == facts.counts[kind], (stage, kind)
        for store in by_kind(graph, "global_store"):
            assert any(edge["kind"] == "data" for *_, edge in graph.in_edges(store, data=True)), (stage, store)


def test_at_the_last_stage_a_matrix_instruction_takes_the_copies(matmul: Inspection) -> None:
    graph = matmul.graph()
    copies = set(by_kind(graph, "async_copy"))
    for product in by_kind(graph, "matrix"):
        assert copies & set(graph.predecessors(product))


def test_a_stage_or_region_that_is_not_there_is_refused_with_those_that_are(matmul: Inspection) -> None:
    with pytest.raises(UsageError, match="has no readable stage 'sass'"):
        matmul.graph("sass")
    with pytest.raises(UsageError, match="no region 'loop@1' at ttir") as caught:
        matmul.graph("ttir", "loop@1")
    assert matmul.loop().id in (caught.value.remedy or "")


def test_the_formats_say_the_same_graph(matmul: Inspection) -> None:
    expected = matmul.graph("ttgir")
    said = {
        name: CliRunner().invoke(app, [CACHE, "--stage", "ttgir", "--graph", name]).stdout
        for name in ("graphml", "json", "dot")
    }
    read = networkx.read_graphml(io.BytesIO(said["graphml"].encode()))
    assert dict(read.nodes) == dict(expected.nodes)
    assert dict(read.edges) == dict(expected.edges)
    assert networkx.utils.graphs_equal(networkx.node_link_graph(json.loads(said["json"]), edges="edges"), expected)
    assert said["dot"].count(" -> ") == expected.number_of_edges()
    assert said["dot"].count("[label=") == expected.number_of_nodes()


@pytest.mark.parametrize("name", ["a\x1b[2J", "a\ufffeb\x00", "a\nb", "##[error]x", 'a"]\\', "]]>&<"])
def test_what_a_file_holds_stays_in_its_place(name: str) -> None:
    graph = FunctionGraph((GraphNode("i1", "load", name, 3, name),), ())
    said = {one: write(graph) for one, write in FORMATS.items()}
    read = networkx.read_graphml(io.BytesIO(said["graphml"].encode()))
    assert read.nodes["i1"]["label"] == escape_unprintable(name).replace("\n", "\\n")
    assert json.loads(said["json"])["nodes"][0]["label"] == name
    assert said["dot"].splitlines()[1].count("label=") == 1
    assert len(said["dot"].splitlines()) == 3
    assert all(escape_unprintable(text) == text for text in said.values())
    assert "##[" not in said["json"]


@pytest.mark.parametrize(
    "words",
    [
        ["--graph=svg"],
        ["--graph=dot", "--stage", "ptxas"],
        ["--graph=dot", "--stage", "sass"],
        ["--graph=dot", "--stage", "ttir,ttgir"],
        ["--graph=dot", "--region", "loop@1"],
    ],
)
def test_what_makes_no_sense_ends_with_the_code_of_usage(words: list[str]) -> None:
    assert CliRunner().invoke(app, [CACHE, *words]).exit_code == 2


@pytest.mark.long
def test_networkx_is_loaded_only_for_a_graph() -> None:
    code = (
        "import sys; from artifact_inspector import inspect\n"
        f"kernel = inspect({CACHE!r}); kernel.verdict; print('networkx' in sys.modules)\n"
        "kernel.graph('ttir'); print('networkx' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "True"]
