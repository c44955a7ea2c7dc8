"""A kernel's graph for other tools: networkx, GraphML, JSON (node-link, for d3 and networkx), DOT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from artifact_inspector.analysis.flow.function_graph import FunctionGraph, GraphEdge, GraphNode
from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.report.json import as_text

if TYPE_CHECKING:
    import networkx

_SHAPES = {"block": "box", "matrix": "doubleoctagon"}
_STYLES = {"control": "bold", "holds": "dotted", "data": "solid", "address": "dashed"}


def to_networkx(graph: FunctionGraph) -> networkx.DiGraph[str]:
    """The graph with the fields of its nodes and edges as attributes; unknown ones are absent."""
    import networkx

    digraph: networkx.DiGraph[str] = networkx.DiGraph()
    digraph.add_nodes_from((node.id, _attributes(node, "id")) for node in graph.nodes)
    digraph.add_edges_from((edge.source, edge.target, _attributes(edge, "source target")) for edge in graph.edges)
    return digraph


def _attributes(value: GraphNode | GraphEdge, without: str) -> dict[str, Any]:
    return {
        name: field_value
        for name, field_value in asdict(value).items()
        if name not in without.split() and field_value is not None
    }


def _as_graphml(graph: FunctionGraph) -> str:
    import networkx

    digraph = to_networkx(graph)
    # XML cannot hold control characters or newlines in attributes
    for attributes in (*(node[-1] for node in digraph.nodes.data()), *(edge[-1] for edge in digraph.edges.data())):
        attributes |= {
            name: _escape_newlines(attribute) for name, attribute in attributes.items() if isinstance(attribute, str)
        }
    return "\n".join(networkx.generate_graphml(digraph))


def _as_json(graph: FunctionGraph) -> str:
    import networkx

    return as_text(networkx.node_link_data(to_networkx(graph), edges="edges"), "ascii").rstrip()


def _escape_newlines(text: str) -> str:
    return escape_unprintable(text).replace("\n", "\\n")


def _as_dot(graph: FunctionGraph) -> str:
    def quoted(text: str) -> str:
        inside = _escape_newlines(text).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{inside}"'

    def lines() -> Iterator[str]:
        yield "digraph kernel {"
        for node in graph.nodes:
            label = " ".join(filter(None, (node.label, f"line {node.line}", node.source)))
            yield f"  {quoted(node.id)} [label={quoted(label)}, shape={_SHAPES.get(node.kind, 'ellipse')}];"
        for edge in graph.edges:
            carried = ", color=red" if edge.is_loop_carried else ""
            yield f"  {quoted(edge.source)} -> {quoted(edge.target)} [style={_STYLES[edge.kind]}{carried}];"
        yield "}"

    return "\n".join(lines())


FORMATS: Mapping[str, Callable[[FunctionGraph], str]] = {"graphml": _as_graphml, "json": _as_json, "dot": _as_dot}
"""Name of a format → function that writes the graph in it."""
