"""A command with one file for each subcommand."""

from __future__ import annotations

from importlib import import_module

import click


class Subcommands(click.Group):
    """A group that imports only the subcommand that is run.

    `homes` maps a name to the module with the object `command` (or `module:name`), and the line for
    --help.
    """

    homes: dict[str, tuple[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.homes:
            return None
        module, _, name = self.homes[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name or "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.homes and not args[0].startswith("-"):
            known = ", ".join(self.homes)
            raise click.UsageError(f"no such command {args[0]!r}, expected one of {known}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.homes.items()])
