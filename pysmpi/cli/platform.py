"""`pysmpi platform`: check, show, convert and list descriptions of machines."""

from __future__ import annotations

import json

import click


@click.group("platform", no_args_is_help=False)
def command() -> None:
    """Check or show a machine: a pysmpi YAML file, a SimGrid XML file, or a name."""


@command.command("check")
@click.argument("file")
def check(file: str) -> int:
    """Read FILE, and check that its hosts reach each other."""
    from pysmpi.cli.main import USAGE, complain
    from pysmpi.platform.check import check as check_platform

    report = check_platform(file)
    if report.ok:
        click.echo(str(report))
        return 0
    for problem in report.problems:
        complain(problem)
    return USAGE


@command.command("show")
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON: s, bytes/s, flop/s.")
def show(file: str, as_json: bool) -> None:
    """Show the contents of FILE: hosts, zones, a route, options."""
    from pysmpi.platform import load
    from pysmpi.platform.check import describe
    from pysmpi.platform.check import show as show_platform

    platform = load(file)
    if as_json:
        click.echo(json.dumps(describe(platform), indent=2))
    else:
        click.echo(show_platform(platform))


@command.command("convert")
@click.argument("file")
@click.option("-o", "--output", metavar="FILE.yaml", help="Write to this file (default: print).")
def convert(file: str, output: str | None) -> None:
    """Write FILE, such as SimGrid's XML, as pysmpi YAML: the same hosts, links, routes, options."""
    from pysmpi.output import Target
    from pysmpi.platform import load
    from pysmpi.platform.dump import dump
    from pysmpi.platform.loader import read

    load(file)
    text = dump(read(file))
    if output is None:
        click.echo(text, nl=False)
        return
    with Target("--output", output) as target:
        with open(target.path, "w", encoding="utf-8") as stream:
            stream.write(text)
        target.keep()


@command.command("list")
def shipped_machines() -> None:
    """List the machines that come with pysmpi."""
    from pysmpi.platform import DEFAULT, load, shipped
    from pysmpi.platform.check import summary

    for name in shipped():
        mark = " (default)" if name == DEFAULT else ""
        click.echo(summary(load(name)) + mark)
