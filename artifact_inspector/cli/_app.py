"""The application that commands register on: its help, its version, its default command, old spellings."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from artifact_inspector import __version__
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._output import write_line
from artifact_inspector.errors import UsageError

DEFAULT_COMMAND = "inspect"
_PYTHON_SOURCE = re.compile(r".+\.py(:\w+)?")
"""An argument to compile rather than to inspect: `FILE.py`, `FILE.py:KERNEL`."""
COMMAND_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Commands to get kernels": ("capture", "compile", "demo"),
    "Commands to read them": ("inspect", "findings", "report", "export", "watch", "cache"),
    "Commands to compare them": ("diff", "regress", "matrix", "try", "passes", "bisect"),
    "Commands to predict and measure": ("advise", "predict", "rank", "bench"),
    "Commands to find errors": ("check-memory",),
    "Commands to guard against regressions": ("baseline", "check"),
    "Commands for editors and agents": ("lsp", "mcp"),
}
"""Heading of the help → its commands."""
OPTION_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Select kernels": ("target", "properties", "stage", "region", "finding", "verdict", "severity"),
    "Choose a view": ("ir", "context", "timeline", "graph", "registers", "svg", "on"),
    "Format the output": ("json", "output", "brief", "sort", "newest", "limit"),
    "Read machine code": ("sass", "assemble", "nvdisasm"),
}
"""Heading of the help → options of the default command; all others follow under `Other options`."""
OLD_COMMANDS: Mapping[str, str] = {
    "bandwidth": "predict --product MxK@KxN",
    "graph": "CACHE NAME --graph graphml",
    "index": "--index-info, or inspect-kernel --clear-index",
    "pressure": "CACHE NAME --registers",
    "schema": "--json-schema DOCUMENT",
    "skill": "mcp --skill",
    "timeline": "CACHE NAME --timeline",
    "why": "diff CACHE:A CACHE:B --why, or inspect-kernel matrix CACHE NAME --why",
}
"""Former command → how it is called now."""
_OUTPUT, _KEEP = {"--out": "--output"}, {"--out": "--keep", "-o": "--keep"}
OLD_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "baseline": _OUTPUT,
    "bench": {**_KEEP, "--time": "--rep"},
    "bisect": {"-b": "--between"},
    "capture": _OUTPUT,
    "check": _OUTPUT,
    "compile": _OUTPUT,
    "demo": _OUTPUT,
    "lsp": _KEEP,
    "rank": {**_KEEP, "--try": "--vary"},
    "report": _OUTPUT,
    "try": {**_KEEP, "-a": "--against"},
}
"""Command → former option → how it is spelled now."""


def _set_brief(is_brief: bool) -> None:
    from artifact_inspector.report.line_limit import set_brief

    set_brief(enabled=is_brief)


@cache
def _brief_option() -> Any:
    """The option `--brief`, which every command has."""
    helper_app = typer.Typer(add_completion=False)

    @helper_app.command()
    def _(
        brief: Annotated[
            bool,
            typer.Option(
                "--brief", metavar="", help="Print at most 12 lines.", callback=_set_brief, expose_value=False
            ),
        ] = False,
    ) -> None: ...

    return next(param for param in typer.main.get_command(helper_app).params if "--brief" in param.opts)


class _PlainConversion:
    """Converts words, paths and numbers without pydantic, whose import by typer takes 85 ms."""

    def __init__(self, convert: Callable[[], Any]) -> None:
        self._convert = convert

    @classmethod
    def attach(cls, param: Any) -> None:
        """Give a parameter this conversion, where its version of typer (0.29) has one to replace."""
        if hasattr(type(param), "get_runtime_param") and "get_runtime_param" not in vars(param):
            plain = cls(param.get_runtime_param)
            param.get_runtime_param = lambda: plain

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = param.type_descriptor.annotation
        if value is None or (kind in (str, int, float) and type(value) is kind):
            return () if value is None and (param.multiple or param.nargs == -1) else value
        if kind is Path and isinstance(value, str | Path):
            return Path(value)
        if kind == list[str] and isinstance(value, list | tuple):
            return list(value)
        return self._convert().coerce(value, param=param, ctx=ctx)


def _plain_help_option(get: Callable[[Any], Any], ctx: Any) -> Any:
    option = get(ctx)
    _PlainConversion.attach(option)
    return option


class _CommandGroup(TyperGroup):
    """Commands, and a default one for arguments that name no command."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for command in self.commands.values():
            command.params.append(_brief_option())
        for owner in (self, *self.commands.values()):
            for param in owner.params:
                _PlainConversion.attach(param)
            setattr(owner, "get_help_option", partial(_plain_help_option, owner.get_help_option))  # noqa: B010 - of one object

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for param in self.params:  # typer adds parameters of its own after __init__
            _PlainConversion.attach(param)
        return super().parse_args(ctx, self._with_new_options(self._add_command(args)))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        help_group = copy.copy(self)
        default = self.commands[DEFAULT_COMMAND]
        help_group.params = [*default.params, *self.params]
        TyperGroup.format_help(help_group, ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options and commands, each under the heading of its task."""
        params = {param.name: param for param in self.get_params(ctx)}
        arguments = [name for name, param in params.items() if param.param_type_name == "argument"]
        groups = {"Arguments": tuple(arguments), **OPTION_GROUPS}
        grouped_names = {name for names in groups.values() for name in names}
        groups["Other options"] = tuple(name for name in params if name not in grouped_names)
        for heading, names in groups.items():
            records = [params[name].get_help_record(ctx) for name in names if name in params]
            with formatter.section(heading):
                formatter.write_dl([record for record in records if record is not None])
            if heading == "Arguments":
                self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with its whole first sentence, which typer would cut to fit a line."""
        for heading, names in COMMAND_GROUPS.items():
            commands = {name: self.commands[name] for name in names if name in self.commands}
            if commands:
                rows = [(name, (command.help or "").partition("\n\n")[0]) for name, command in commands.items()]
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def _add_command(self, args: list[str]) -> list[str]:
        """The arguments with the command before its options; the default command where none is named."""
        group_options = {name for param in self.params for name in param.opts} | {"--help", "-h"}
        if args and args[0] in group_options:
            return args
        takes_value = _options_with_value(self.commands[DEFAULT_COMMAND])
        position = 0
        while position < len(args) and args[position].startswith("-") and args[position] != "--":
            position += 2 if args[position] in takes_value else 1
        argument = args[position] if position < len(args) else ""
        if argument in self.commands:
            return [argument, *args[:position], *args[position + 1 :]]
        if _PYTHON_SOURCE.fullmatch(argument):
            return ["compile", *args]
        near_names = get_close_matches(argument.lower(), self.commands, 1, 0.75)
        if (near_names or argument in OLD_COMMANDS) and not Path(argument).exists():
            with exit_codes(json=False):
                if argument in OLD_COMMANDS:
                    raise UsageError(f"`inspect-kernel {argument}` is now: inspect-kernel {OLD_COMMANDS[argument]}")
                raise UsageError(f"There is no command and no directory {argument}.", f"Did you mean {near_names[0]}?")
        return [DEFAULT_COMMAND, *args]

    def _with_new_options(self, args: list[str]) -> list[str]:
        """The arguments with former options in their new spelling, each reported on standard error."""
        renamed = OLD_OPTIONS.get(args[0], {}) if args else {}
        command = self.commands.get(args[0]) if renamed else None
        if command is None:
            return args
        takes_value = _options_with_value(command) | set(renamed)
        is_mixed = command.context_settings.get("allow_interspersed_args", True)
        arguments, index = list(args), 1
        while index < len(arguments) and arguments[index] != "--":
            argument, position = arguments[index], index
            if not (is_mixed or argument.startswith("-")):
                break
            option, equals, _ = argument.partition("=") if argument.startswith("--") else (argument[:2], "", "")
            index += 2 if argument in takes_value else 1
            if option in renamed:
                write_line(f"inspect-kernel: {option} of `{args[0]}` is now {renamed[option]}.", sys.stderr)
                value = argument[len(option) + len(equals) :]
                arguments[position] = f"{renamed[option]}={value}" if value or equals else renamed[option]
        return arguments


def _options_with_value(command: Any) -> set[str]:
    """The options of a command that a value follows."""
    return {name for param in command.params if not getattr(param, "is_flag", False) for name in param.opts}


app = typer.Typer(
    cls=_CommandGroup,
    subcommand_metavar="| COMMAND ...",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich's boxes would take half of the time that help takes
    invoke_without_command=True,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"inspect-kernel {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Show what the compiler did to your Triton kernels: load/compute order, pipelining, registers, shared memory, and what limits them. No GPU needed.

    Prints one row per kernel of CACHE. With a NAME that fits one kernel, prints its full report, stage by stage.
    """  # noqa: E501 - typer prints the first paragraph as one line
