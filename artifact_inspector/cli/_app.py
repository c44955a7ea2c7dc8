"""The application that the commands hang on: its help, its version, its default command."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from artifact_inspector import __version__
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.errors import UsageError

DEFAULT_COMMAND = "inspect"
_SOURCE = re.compile(r".+\.py(:\w+)?")
"""What can be compiled and not inspected: `FILE.py`, `FILE.py:KERNEL`."""


def _be_brief(wanted: bool) -> None:
    from artifact_inspector.report.brief import set_brief

    set_brief(wanted=wanted)


@cache
def _brief() -> Any:
    """The option that every command has."""
    own = typer.Typer(add_completion=False)

    @own.command()
    def _(
        brief: Annotated[
            bool,
            typer.Option(
                "--brief",
                metavar="",
                help="Print 12 lines at most.",
                callback=_be_brief,
                expose_value=False,
            ),
        ] = False,
    ) -> None: ...

    return next(one for one in typer.main.get_command(own).params if "--brief" in one.opts)


class _Plainly:
    """Takes words, paths and default numbers for what they are; typer loads pydantic for all else."""

    @classmethod
    def of(cls, param: Any) -> None:
        """Make a parameter plain, where typer (0.29) has an object for its coercion."""
        if hasattr(param, "_runtime_param") and hasattr(param, "type_descriptor"):
            param._runtime_param = cls()

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = param.type_descriptor.annotation
        if value is None or (kind in (str, int, float) and type(value) is kind):
            return () if value is None and (param.multiple or param.nargs == -1) else value
        if kind is Path and isinstance(value, str | Path):
            return Path(value)
        if kind == list[str] and isinstance(value, list | tuple):
            return list(value)
        from typer._coercion import build_runtime_param

        return build_runtime_param(param.type_descriptor).coerce(value, param=param, ctx=ctx)


def _plain_help(get: Callable[[Any], Any], ctx: Any) -> Any:
    option = get(ctx)
    _Plainly.of(option)
    return option


class _Group(TyperGroup):
    """Commands, and a default one for whatever is none of them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for command in self.commands.values():
            command.params.append(_brief())
        for one in (self, *self.commands.values()):
            for param in one.params:
                _Plainly.of(param)
            setattr(one, "get_help_option", partial(_plain_help, one.get_help_option))  # noqa: B010 - of one object

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for param in self.params:  # typer adds its own when all is made
            _Plainly.of(param)
        return super().parse_args(ctx, self._with_command(args))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        shown = copy.copy(self)
        default = self.commands[DEFAULT_COMMAND]
        shown.params = [*default.params, *self.params]
        TyperGroup.format_help(shown, ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each command with its whole sentence, which would else be cut to fit a line."""
        shown = [(name, command) for name, command in sorted(self.commands.items()) if not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl([(name, (command.help or "").partition("\n\n")[0]) for name, command in shown])

    def _with_command(self, args: list[str]) -> list[str]:
        """The arguments with the command in front of its options, the default one if there is none."""
        own = {name for param in self.params for name in param.opts} | {"--help", "-h"}
        if args and args[0] in own:
            return args
        takes_value = {
            name
            for param in self.commands[DEFAULT_COMMAND].params
            if not getattr(param, "is_flag", False)
            for name in param.opts
        }
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] != "--":
            at += 2 if args[at] in takes_value else 1
        word = args[at] if at < len(args) else ""
        if word in self.commands:
            return [word, *args[:at], *args[at + 1 :]]
        if _SOURCE.fullmatch(word):
            return ["compile", *args]
        near = get_close_matches(word.lower(), self.commands, 1, 0.75)
        if near and not Path(word).exists():
            with exit_codes(json=False):
                raise UsageError(f"There is no command and no directory {word}.", f"Did you mean {near[0]}?")
        return [DEFAULT_COMMAND, *args]


app = typer.Typer(
    cls=_Group,
    subcommand_metavar="| COMMAND …",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # half of the time that the help takes would go into its boxes
    invoke_without_command=True,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"inspect-kernel {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Say in which order Triton kernels load and compute, from any Triton cache, with no GPU.

    One row per kernel of a cache; with a NAME that fits one kernel, its whole story, stage by stage.
    """
