"""A kernel's graph for other tools: networkx, GraphML, JSON (node-link, for d3 and networkx), DOT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from artifact_inspector.analysis.flow.graph import Edge, Graph, Node
from artifact_inspector.model.printable import escaped
from artifact_inspector.report.json import as_text

if TYPE_CHECKING:
    import networkx

_SHAPES = {"block": "box", "matrix": "doubleoctagon"}
_STYLES = {"control": "bold", "holds": "dotted", "data": "solid", "address": "dashed"}


def to_networkx(graph: Graph) -> networkx.DiGraph[str]:
    """The graph with the fields of its nodes and edges as attributes; unknown ones are absent."""
    import networkx

    made: networkx.DiGraph[str] = networkx.DiGraph()
    made.add_nodes_from((node.id, _attributes(node, "id")) for node in graph.nodes)
    made.add_edges_from(
        (edge.source, edge.target, _attributes(edge, "source target")) for edge in graph.edges
    )
    return made


def _attributes(value: Node | Edge, without: str) -> dict[str, Any]:
    return {
        name: one for name, one in asdict(value).items() if name not in without.split() and one is not None
    }


def _as_graphml(graph: Graph) -> str:
    import networkx

    made = to_networkx(graph)
    # XML cannot hold control characters or newlines in attributes
    told = (*(node[-1] for node in made.nodes.data()), *(edge[-1] for edge in made.edges.data()))
    for attributes in told:
        attributes |= {name: _on_a_line(one) for name, one in attributes.items() if isinstance(one, str)}
    return "\n".join(networkx.generate_graphml(made))


def _as_json(graph: Graph) -> str:
    import networkx

    return as_text(networkx.node_link_data(to_networkx(graph), edges="edges"), "ascii").rstrip()


def _on_a_line(text: str) -> str:
    return escaped(text).replace("\n", "\\n")


def _as_dot(graph: Graph) -> str:
    def quoted(text: str) -> str:
        inside = _on_a_line(text).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{inside}"'

    def lines() -> Iterator[str]:
        yield "digraph kernel {"
        for node in graph.nodes:
            said = " ".join(filter(None, (node.label, f"line {node.line}", node.source)))
            yield f"  {quoted(node.id)} [label={quoted(said)}, shape={_SHAPES.get(node.kind, 'ellipse')}];"
        for edge in graph.edges:
            carried = ", color=red" if edge.carried else ""
            yield f"  {quoted(edge.source)} -> {quoted(edge.target)} [style={_STYLES[edge.kind]}{carried}];"
        yield "}"

    return "\n".join(lines())


FORMATS: Mapping[str, Callable[[Graph], str]] = {"graphml": _as_graphml, "json": _as_json, "dot": _as_dot}
"""Name of a format → function that writes the graph in it."""
