"""`pysmpi map`: a placement of the ranks of a recorded run that takes less time."""

from __future__ import annotations

import json
from contextlib import ExitStack

import click

from pysmpi import text
from pysmpi.cli.arguments import pairs
from pysmpi.cli.echo import echo
from pysmpi.cli.run_options import machine_options
from pysmpi.errors import UsageError

GRAPHS = ("graphml", "gexf", "json")


@click.command("map")
@click.argument("trace", metavar="TRACE")
@machine_options
@click.option(
    "-o", "--output", metavar="FILE", help="Write the rank file to FILE (default: print)."
)
@click.option(
    "--graph",
    metavar="FILE",
    help="Write the messages and bytes between ranks as a graph: .graphml, .gexf or .json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures and places as JSON.")
def command(
    trace: str,
    output: str | None,
    graph: str | None,
    as_json: bool,
    coll: tuple[str, ...],
    cfg: tuple[str, ...],
    **rest: object,
) -> int:
    """Find a placement for the ranks of a recorded run, and show what it saves.

    TRACE is a recording of pysmpi (--trace FILE.jsonl), or a time-independent trace of SMPI. The
    ranks change places: ranks that send each other many bytes come near to each other. The times
    before and after are those of replays. Without options of a machine, it is that of the
    recording. The rank file is for pysmpi run --hostfile, and for Open MPI's mpirun.
    """
    from pysmpi.analysis.mapping import map_ranks
    from pysmpi.io.output import OutputFile
    from pysmpi.platform.config import parse
    from pysmpi.platform.graph_files import text_of

    form = "" if graph is None else graph.lower().rpartition(".")[2]
    if graph is not None and form not in GRAPHS:
        raise UsageError(f"--graph {graph}: expected a file called .graphml, .gexf or .json")
    options = {"coll": pairs(coll, "--coll", "bcast=binomial_tree"), "cfg": parse(cfg), **rest}
    with ExitStack() as stack:
        files = [
            None if name is None else stack.enter_context(OutputFile(option, name))
            for option, name in (("--output", output), ("--graph", graph))
        ]
        found = map_ranks(trace, options)
        texts = [found.rank_file(), text_of(found.communication.graph(), form) if form else ""]
        for file, content in zip(files, texts, strict=True):
            if file is not None:
                with file.writing(), open(file.path, "w", encoding="utf-8") as stream:
                    stream.write(content)
                file.keep()
    before, after = map(text.seconds, found.seconds)
    one, other = map(text.size, found.between)
    if as_json:
        echo(json.dumps(found.report(), indent=1))
    elif output is None:
        echo(texts[0], nl=False)
    if found.slots == found.given:
        echo(f"pysmpi: predicted time {before}: no other placement was better", err=True)
    else:
        echo(
            f"pysmpi: predicted time {before} as placed now, {after} with the new placement "
            f"({-found.saves:+.1%})",
            err=True,
        )
    echo(f"pysmpi: bytes between hosts: {one} now, {other} then", err=True)
    if output is not None:
        echo(f"pysmpi: use it with: pysmpi run --hostfile {output}, mpirun --rankfile {output}",
             err=True)  # fmt: skip
    return 0
