"""`inspect-kernel CACHE [NAME]`: a list of kernels, one kernel in full, or another view of one."""

from __future__ import annotations

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._commands import DEFAULT_COMMAND
from artifact_inspector.cli._groups import AssembledCode, ListOptions, Selection
from artifact_inspector.cli._output import output_to
from artifact_inspector.errors import UsageError


def _complete_document(incomplete: str) -> list[str]:
    from artifact_inspector.report.json.schema import DOCUMENTS

    return [name for name in DOCUMENTS if name.startswith(incomplete)]


@command(DEFAULT_COMMAND)
def inspect(
    selection: Selection,
    view: ListOptions,
    code: AssembledCode,
    timeline: bool = options.option("--timeline", "Draw when loads are issued and complete, as text.", False),
    graph: str | None = options.option(
        "--graph FORMAT", "Print blocks and data flow of one stage: graphml, json or dot.", None
    ),
    registers: bool = options.option(
        "--registers", "Print live registers by line, and how many to free for one more block per SM.", False
    ),
    svg: str | None = options.option(
        "--svg WHAT", f"Draw one kernel as SVG instead: {', '.join(options.KERNEL_PICTURES)}.", None
    ),
    output: options.Output = None,
    index_info: bool = options.option("--index-info", "Print size and location of the result cache, and exit.", False),
    clear_index: bool = options.option("--clear-index", "Delete the result cache, and exit.", False),
    json_schema: str | None = options.option(
        "--json-schema DOCUMENT",
        "Print the JSON Schema of a document, and exit; 'list' lists the documents.",
        None,
        autocompletion=_complete_document,
    ),
) -> None:
    """Show the kernels of a cache, or one kernel in full. This is the default command."""
    views = {
        "--ir": view.ir, "--timeline": timeline, "--graph": graph is not None, "--registers": registers,
        "--svg": svg is not None, "--index-info or --clear-index": index_info or clear_index,
        "--json-schema": json_schema is not None,
    }  # fmt: skip
    requested = [option for option, is_given in views.items() if is_given]
    if len(requested) > 1:
        raise UsageError(f"{' and '.join(requested)} do not combine.", "Give one of them.")
    if not requested or view.ir:
        from artifact_inspector.cli._listing import print_cache

        with output_to(output):
            print_cache(selection, code, view)
        return
    if svg is not None:
        from artifact_inspector.cli._pictures import draw_kernel

        draw_kernel(selection, code, view, svg, output)
        return
    from artifact_inspector.cli import _views

    with output_to(output):
        if json_schema is not None:
            _views.print_schema(json_schema)
        elif index_info or clear_index:
            _views.print_index(clear=clear_index, json=view.json)
        elif timeline:
            _views.print_timeline(selection, code, view)
        elif graph is not None:
            _views.print_graph(selection, code, view, graph)
        else:
            _views.print_registers(selection, code, json=view.json)
