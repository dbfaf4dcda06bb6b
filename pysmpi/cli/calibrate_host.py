"""`pysmpi calibrate host`: the speed of this computer."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from pysmpi.cli.echo import echo


@click.command("host")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON: flop/s.")
def command(as_json: bool) -> None:
    """Measure the speed of this computer's cores, and store it for runs that scale compute.

    The speed is that of the fastest of some hundred blocks of a millisecond, because other work of
    the computer only slows blocks down.
    """
    from pysmpi.time.host_speed import cache_file, renew

    failed: list[str | None] = []
    found = renew(kept=failed.append)
    reason = failed[0]
    if as_json:
        kept = None if reason else str(cache_file())
        echo(json.dumps({**asdict(found), "kept_in": kept}, indent=2))
        return
    echo(
        f"{found.speed / 1e9:.4g} Gflop/s a core (median of {found.blocks} blocks "
        f"{found.usual / 1e9:.4g}, slowest {found.slowest / 1e9:.4g})"
    )
    place = f"cannot be kept in {cache_file()}: {reason}" if reason else f"kept in {cache_file()}"
    echo(f"{place}; as --host-speed or a platform's speed: "
               f"{found.speed / 1e9:.4g}Gf")  # fmt: skip
