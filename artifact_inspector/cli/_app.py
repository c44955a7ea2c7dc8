"""The application that commands register on: its help, its version, its default command, old spellings."""

from __future__ import annotations

import copy
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from artifact_inspector import __version__
from artifact_inspector.cli import _options
from artifact_inspector.cli._commands import COMMAND_GROUPS, COMMANDS, DEFAULT_COMMAND, PYTHON_SOURCE
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._output import write_line
from artifact_inspector.errors import UsageError
from artifact_inspector.report.line_limit import set_brief

OPTION_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Select kernels": ("target", "properties", "stage", "region", "finding", "verdict", "severity"),
    "Choose a view": ("ir", "context", "timeline", "graph", "registers", "svg", "on"),
    "Format the output": ("json", "output", "line_limit", "sort", "newest", "limit"),
    "Read machine code": ("sass", "assemble", "nvdisasm"),
}
"""Heading of the help → options of the default command; all others follow under `Other options`."""
OTHER_NAMES: Mapping[str, str] = {
    "bandwidth": "predict --product MxK@KxN", "graph": "CACHE NAME --graph graphml",
    "index": "--index-info, or inspect-kernel --clear-index", "list": "CACHE", "ls": "CACHE",
    "pressure": "CACHE NAME --registers", "schema": "--json-schema DOCUMENT", "show": "CACHE NAME",
    "skill": "mcp --skill", "story": "CACHE NAME", "timeline": "CACHE NAME --timeline",
    "why": "diff CACHE:A CACHE:B --why, or inspect-kernel matrix CACHE NAME --why",
}  # fmt: skip
"""A former command, or one that people try first → what to call."""
_OUTPUT, _KEEP = {"--out": "--output"}, {"--out": "--keep", "-o": "--keep"}
OLD_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "baseline": _OUTPUT, "bench": {**_KEEP, "--time": "--rep"}, "bisect": {"-b": "--between"}, "capture": _OUTPUT,
    "check": _OUTPUT, "compile": _OUTPUT, "demo": _OUTPUT, "lsp": _KEEP, "rank": {**_KEEP, "--try": "--vary"},
    "report": _OUTPUT, "try": {**_KEEP, "-a": "--against"},
}  # fmt: skip
"""Command → former option → how it is spelled now."""

_BRIEF = inspect.Parameter(
    "line_limit",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, _options.option("--brief", "Print at most 12 lines.")],
)
"""The option that every command has."""


def command(name: str | None = None, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command, by default under its own name; its errors become exit codes.

    A parameter whose type is a dataclass stands for the fields of that: each is an option or an argument.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        names = {"options": _options}
        hints = {
            name: _without_optional(hint)
            for name, hint in get_type_hints(function, localns=names, include_extras=True).items()
        }
        groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
        parameters = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name in groups:
                group = groups[parameter.name]
                of_fields = get_type_hints(group, localns=names, include_extras=True)
                defaults = {field.name: field.default for field in fields(group)}
            else:
                of_fields, defaults = hints, {parameter.name: parameter.default}
            parameters += [
                _BRIEF.replace(name=name, default=default, annotation=of_fields[name])
                for name, default in defaults.items()
            ]

        @wraps(function)
        def run(line_limit: bool = False, **values: Any) -> None:
            set_brief(enabled=line_limit)
            try:
                with exit_codes(json=values.get("json", False) or values.get("format") == "json"):
                    for name, group in groups.items():
                        values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
                    function(**values)
            finally:
                set_brief(enabled=False)  # a test or a server runs other commands in this process

        setattr(run, "__signature__", inspect.Signature([*parameters, _BRIEF]))  # noqa: B010 - mypy knows no such attribute
        run.__annotations__ = {}  # all are in the signature
        app.command(name, **{"cls": PlainCommand, **settings})(run)
        return function

    return register


def _without_optional(hint: Any) -> Any:
    """The hint as it was written: Python 3.10 makes it `Optional[Annotated[…]]` where the default is None."""
    members = get_args(hint) if get_origin(hint) is Union else ()
    return next((member for member in members if get_origin(member) is Annotated), hint)


class PlainConversion:
    """Commands that convert words, paths and numbers without typer's converter, which imports pydantic (85 ms)."""

    callback: Callable[..., Any] | None
    """The function of the command."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, among them those that typer adds."""
        base: Any = super()
        params = base.get_params(ctx)
        signature = {} if self.callback is None else inspect.signature(self.callback).parameters
        for param in params:
            if "process_value" not in vars(param):
                hint = signature[param.name].annotation if param.name in signature else None
                param.process_value = _plain_conversion(param, hint)
        return params


class PlainCommand(PlainConversion, TyperCommand):
    """A command."""


def _plain_conversion(param: Any, hint: Any) -> Callable[[Any, Any], Any]:
    """A method `process_value` for the types of our options, and that of typer for all others."""
    kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (member for member in get_args(kind) if member is not type(None))
    convert = param.process_value

    def process_value(ctx: Any, value: Any) -> Any:
        if value is None and not param.required:
            plain: Any = () if param.multiple or param.nargs == -1 else None
        elif kind in (str, int, float) and type(value) is kind:
            plain = value
        elif kind is Path and isinstance(value, str | Path):
            plain = Path(value)
        elif kind == list[str] and isinstance(value, list | tuple) and value:
            plain = list(value)
        else:
            return convert(ctx, value)
        return plain if param.callback is None else param.callback(ctx, param, plain)

    return process_value


class _CommandGroup(PlainConversion, TyperGroup):
    """Commands, and a default one for arguments that name no command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
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
        for heading, sentences in COMMAND_GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(list(sentences.items()))

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
        if PYTHON_SOURCE.fullmatch(argument):
            return ["compile", *args]
        near_names = get_close_matches(argument.lower(), COMMANDS, 1, 0.75)
        if (near_names or argument in OTHER_NAMES) and not Path(argument).exists():
            with exit_codes(json=False):
                if argument in OTHER_NAMES:
                    remedy = f"Use inspect-kernel {OTHER_NAMES[argument]}."
                else:
                    remedy = f"Did you mean {near_names[0]}?"
                raise UsageError(f"There is no command and no directory {argument}.", remedy)
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
def _describe(
    version: Annotated[
        bool, _options.option("--version", "Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Show what the compiler did to your Triton kernels: load/compute order, pipelining, registers, shared memory, and what limits them. No GPU needed.

    Prints one row per kernel of CACHE. With a NAME that fits one kernel, prints its full report, stage by stage.
    """  # noqa: E501 - typer prints the first paragraph as one line
