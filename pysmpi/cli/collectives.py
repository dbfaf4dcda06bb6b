"""`pysmpi collectives`: the algorithms, the choices of selectors, tuning and drawings."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from pysmpi.cli.columns import print_glossary
from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import RANKS, WholeNumber
from pysmpi.errors import UsageError
from pysmpi.python.extras import lacking
from pysmpi.text import whole

if TYPE_CHECKING:
    from pysmpi.collectives.call import Call
    from pysmpi.collectives.selection import Selection


class CollectivesGroup(click.Group):
    """A group whose first command is the default."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, "-h", "--help"):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group("collectives", cls=CollectivesGroup, no_args_is_help=False)
def command() -> None:
    """List collective algorithms, show a selector's choices, find the fastest, draw one.

    The default command is `list`: pysmpi collectives bcast.
    """


@command.command("list")
@click.argument("operation", required=False)
@click.option("--selector", metavar="NAME|FILE", help="Show the choices of this selector.")
@click.option("-n", "-np", "nprocs", type=RANKS, default=16, show_default=True, help="Ranks.")
@click.option("--bytes", "nbytes", metavar="SIZE", help="Bytes of a vector or block, e.g. 64KiB.")
@click.option("--per-node", type=RANKS, default=1, show_default=True, help="Ranks on a node.")
@click.option(
    "--platform",
    metavar="FILE|NAME",
    help="Machine on which the selector automatic tries algorithms.",
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def list_command(
    operation: str | None,
    selector: str | None,
    nprocs: int,
    nbytes: str | None,
    per_node: int,
    platform: str | None,
    as_json: bool,
) -> None:
    """List the algorithms of every collective, or of one OPERATION.

    With --selector, show the choices of this selector for -n ranks: for --bytes, or for each range
    of sizes up to 16 MiB. With --bytes alone, show the choice of every selector.
    """
    from pysmpi.collectives import registry

    known = registry.COLLECTIVES.names()
    if operation is not None:
        registry.algorithms_of(operation)
    wanted = known if operation is None else [operation]
    _check_ranks(nprocs, per_node)
    if selector is None:
        if nbytes is None:
            _list(wanted, as_json)
        else:
            _compare(wanted, nprocs, _size(nbytes), per_node, as_json)
        return
    from pysmpi.collectives.selection import Selection

    selection = Selection(selector)
    if selection.automatic:
        tuner, slots = _tuner(platform, nprocs, None, None, ())
        selection = _on_lines(selection.tried_on(tuner), slots)
    elif platform is not None:
        raise UsageError("--platform: expected --selector automatic with it")
    _choices(wanted, selection, nprocs, nbytes, per_node, as_json)


def _check_ranks(nprocs: int, per_node: int = 1) -> None:
    if nprocs < 1 or per_node < 1:
        raise UsageError("-n and --per-node: expected at least 1")


def _list(operations: list[str], as_json: bool) -> None:
    from pysmpi.collectives import registry

    if as_json:
        table = {
            op: {name: found.line for name, found in registry.algorithms_of(op).items()}
            for op in operations
        }
        echo(json.dumps(table, indent=2))
        return
    echo("P ranks; m bytes of a vector or block; (+) and (+ 2): more steps if P is not 2^k")
    for op in operations:
        echo(f"{op}: {registry.COLLECTIVES.find(op).line}")
        algorithms = registry.algorithms_of(op)
        print_glossary([(name, algorithms[name].line) for name in sorted(algorithms)], "  ")
    echo("\nselectors (--selector NAME, or instead of an algorithm)")
    lines = {selector.name: selector.line for selector in registry.SELECTORS}
    print_glossary(sorted(lines.items()), "  ")


def _compare(operations: list[str], nprocs: int, size: int, per_node: int, as_json: bool) -> None:
    """Print the choices of all selectors that need no machine."""
    from pysmpi.collectives import registry
    from pysmpi.collectives.selection import AUTOMATIC, Selection

    names = [name for name in registry.SELECTORS.names() if name != AUTOMATIC]
    table: dict[str, dict[str, str]] = {}
    for op in operations:
        if not op.startswith("neighbor"):
            table[op] = {}
            for name in names:
                selection = Selection(name)
                table[op][name] = selection.choose(example(op, nprocs, size, per_node, selection))
    if as_json:
        echo(json.dumps(table, indent=2))
        return
    for op, chosen in table.items():
        echo(op)
        users: dict[str, list[str]] = {}
        for name, algorithm in chosen.items():
            users.setdefault(algorithm, []).append(name)
        width = max(map(len, users))
        for algorithm, found in users.items():
            echo(f"  {algorithm.ljust(width)}  {', '.join(found)}")


def _choices(
    operations: list[str], selection: Any, nprocs: int, nbytes: str | None, per_node: int,
    as_json: bool,
) -> None:  # fmt: skip
    sizes = [1 << k for k in range(3, 25)] if nbytes is None else [_size(nbytes)]
    table: dict[str, list[tuple[int, str]]] = {}
    for op in operations:
        if op.startswith("neighbor"):
            continue
        chosen: list[tuple[int, str]] = []
        for size in [0] if op == "barrier" else sizes:
            name = selection.choose(example(op, nprocs, size, per_node, selection))
            if not chosen or chosen[-1][1] != name:
                chosen.append((size, name))
        table[op] = chosen
    if as_json:
        data = {
            op: [{"from_bytes": size, "algorithm": name} for size, name in chosen]
            for op, chosen in table.items()
        }
        echo(json.dumps(data, indent=2))
        return
    width = max(map(len, table), default=0)
    for op, chosen in table.items():
        parts = [
            f"{name} from {size} bytes" if i else name for i, (size, name) in enumerate(chosen)
        ]
        echo(f"{op.ljust(width)}  {', '.join(parts)}")


def _size(text: str) -> int:
    from pysmpi.platform.units import parse_size

    found = whole(text)
    return int(parse_size(text)) if found is None else found


def example(
    op: str, nprocs: int, size: int, per_node: int = 1, selection: object = None, root: int = 0
) -> Call:
    """A call of one operation with equal counts of doubles (or bytes), as rank 0 sees it."""
    from pysmpi.collectives.call import Call
    from pysmpi.collectives.layout import Nodes

    unit = 1 if size % 8 or op == "alltoallw" else 8
    count = size // unit
    counts = (count,) * nprocs
    receives = op in ("gatherv", "allgatherv", "alltoallv", "alltoallw", "reduce_scatter")
    sends = op in ("scatterv", "alltoallv", "alltoallw")
    return Call(
        op, 0, nprocs, root, count, unit,
        send_counts=counts if sends else None,
        recv_counts=counts if receives else None,
        nodes=Nodes(rank // per_node for rank in range(nprocs)) if per_node > 1 else None,
        selection=selection,
    )  # fmt: skip


def _tuner(
    platform: str | None, nprocs: int, hostfile: str | None, model: str | None, cfg: Sequence[str]
) -> tuple[Any, Any]:
    """The tuner that tries algorithms on a machine, and the places of its ranks."""
    from pysmpi.collectives.tuning import Tuner
    from pysmpi.memory.transfer.choice import over
    from pysmpi.network.choice import choose
    from pysmpi.platform.config import parse
    from pysmpi.platform.loader import DEFAULT, load
    from pysmpi.platform.placement import place

    options = parse(cfg)
    machine = load(platform or DEFAULT, options)
    network, settings = choose(machine, options, model)
    slots = place(machine, nprocs, hostfile)
    hosts = [slot.host for slot in slots]
    tuner = Tuner(lambda: over(network.build(machine, hosts, settings), slots, settings), nprocs)
    return tuner, slots


def _on_lines(selection: Selection, slots: Sequence[Any]) -> Selection:
    """The selection with the line costs of the hosts, if their nodes are described."""
    if all(slot.host.node is None for slot in slots):
        return selection
    from pysmpi.memory.lines.machine import HostLines

    return selection.on_lines(HostLines(slots))


@command.command("tune")
@click.option("--platform", metavar="FILE|NAME", help="The machine (default: cluster).")
@click.option("-n", "-np", "--np", "nprocs", type=RANKS, required=True, metavar="N", help="Ranks.")
@click.option("--hostfile", metavar="FILE", help="Hosts of the machine to use.")
@click.option("--model", metavar="NAME", help="Network model; see pysmpi models.")
@click.option("--cfg", multiple=True, metavar="KEY:VALUE", help="A SimGrid option; repeatable.")
@click.option("--ops", metavar="OP,OP...", help="Operations (default: all).")
@click.option(
    "--sizes",
    metavar="SIZE,SIZE...",
    default="8,1KiB,16KiB,256KiB,4MiB",
    show_default=True,
    help="Bytes of a vector or block.",
)
@click.option("-o", "--output", metavar="FILE", help="Write a selection file for --selector FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def tune_command(
    platform: str | None, nprocs: int, hostfile: str | None, model: str | None,
    cfg: tuple[str, ...],
    ops: str | None, sizes: str, output: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Find the fastest algorithm on a machine, for each operation and size.

    Every algorithm is simulated. The table shows the fastest, its time, the most bytes that a rank
    sends, and how many times as long the choices of libraries take.
    """
    from pysmpi.collectives.tuning import TUNED
    from pysmpi.io.output import OutputFile

    _check_ranks(nprocs)
    wanted = list(TUNED) if ops is None else [op.strip() for op in ops.split(",")]
    for op in wanted:
        if op not in TUNED:
            raise UsageError(f"--ops: expected some of {', '.join(TUNED)}, got {op!r}")
    lengths = sorted({_size(text.strip()) for text in sizes.split(",")})
    with ExitStack() as stack:
        target = None if output is None else stack.enter_context(OutputFile("--output", output))
        tuner, slots = _tuner(platform, nprocs, hostfile, model, cfg)
        found = _tune(tuner, slots, wanted, lengths, as_json)
        if target is not None:
            from pysmpi.collectives.tuning import selection_file

            title = f"{platform or 'cluster'}, {nprocs} ranks"
            if model:
                title += f", model {model}"
            with target.writing(), open(target.path, "w", encoding="utf-8") as stream:
                stream.write(selection_file(title, nprocs, found))
            target.keep()


def _show(text: str) -> None:
    """Show a text in place of the one before it, if the standard error is a terminal."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)


LIBRARIES = ("ompi5", "mpich4", "ompi", "mpich", "mvapich2", "impi")


def _tune(
    tuner: Any, slots: Sequence[Any], operations: list[str], sizes: list[int], as_json: bool
) -> dict[str, list[tuple[int, str]]]:
    """Try all algorithms and print the results; return the fastest by operation and size."""
    from pysmpi.collectives.layout import Nodes
    from pysmpi.collectives.selection import Selection
    from pysmpi.collectives.tuning import PRIVATE_COUNTS, schedules_of, tune
    from pysmpi.collectives.volumes import most_of

    numbers = Nodes(slot.host.index for slot in slots)
    nodes = numbers if len(set(numbers)) < len(numbers) else None
    selection = _on_lines(Selection(), slots)
    winners: dict[str, list[tuple[int, str]]] = {}
    rows = []
    if not as_json:
        names = "  ".join(name.rjust(8) for name in LIBRARIES)
        head = f"{'operation':20s} {'bytes':>9s}  {'fastest':28s} {'seconds':>11s}  {'sent':>9s}"
        echo(f"{head}  {names}")
    for op in operations:
        for size in [0] if op == "barrier" or op in PRIVATE_COUNTS else sizes:
            _show(f"pysmpi: trying {op}" + (f" of {size} bytes" if size else ""))
            call = example(op, len(slots), size, selection=selection)._replace(nodes=nodes)
            winner, seconds, theirs = tune(tuner, call, LIBRARIES)
            _show("")
            winners.setdefault(op, []).append((size, winner))
            volume = most_of(schedules_of(call, winner, named=True))
            rows.append(
                {
                    "operation": op, "bytes": size, "algorithm": winner, "seconds": seconds,
                    "volume": volume.as_dict(),
                    "libraries": {
                        library: {"algorithm": name, "seconds": time}
                        for library, (name, time) in theirs.items()
                    },
                }
            )  # fmt: skip
            if not as_json:
                ratios = "  ".join(_ratio(theirs[name][1], seconds) for name in LIBRARIES)
                shown = "any" if op in PRIVATE_COUNTS else "" if op == "barrier" else str(size)
                row = f"{op:20s} {shown:>9s}  {winner:28s} {seconds:11.4g}  {volume.sent:9d}"
                echo(f"{row}  {ratios}")
    if as_json:
        echo(json.dumps(rows, indent=1))
    return winners


def _ratio(theirs: float, best: float) -> str:
    return (f"{theirs / best:.2f}x" if best > 0 else "=").rjust(8)


@command.command("draw")
@click.argument("operation")
@click.argument("algorithm")
@click.option("-n", "-np", "nprocs", type=RANKS, default=8, show_default=True, help="Ranks.")
@click.option(
    "--bytes",
    "nbytes",
    metavar="SIZE",
    default="1KiB",
    show_default=True,
    help="Bytes of a vector or block.",
)
@click.option("--root", type=WholeNumber(0), default=0, show_default=True, help="The root.")
@click.option("--per-node", type=RANKS, default=1, show_default=True, help="Ranks on a node.")
@click.option("-o", "--output", metavar="FILE.svg|png|txt", help="Write a picture.")
def draw_command(
    operation: str, algorithm: str, nprocs: int, nbytes: str, root: int, per_node: int,
    output: str | None,
) -> None:  # fmt: skip
    """Draw the messages of OPERATION by ALGORITHM (or by a selector's choice), step by step."""
    from pysmpi.collectives import drawing, registry
    from pysmpi.collectives.registry import split
    from pysmpi.collectives.selection import Selection, resolve
    from pysmpi.collectives.tuning import schedules_of

    _check_ranks(nprocs, per_node)
    if not 0 <= root < nprocs:
        raise UsageError(f"--root: expected 0 to {nprocs - 1}, got {root}")
    registry.algorithms_of(operation)
    if operation.startswith("neighbor"):
        raise UsageError(f"{operation}: expected a whole communicator, got a neighbourhood")
    if algorithm not in registry.SELECTORS.names():
        registry.find(operation, split(algorithm)[0])
    size = _size(nbytes)
    call = example(operation, nprocs, size, per_node, Selection(), root)
    name = resolve(call, algorithm)
    shown = f"{operation} {name}, {nprocs} ranks, {drawing.size(size)}"
    picture = drawing.trace(shown, schedules_of(call, name, named=True))
    if output is None:
        import shutil

        echo(drawing.as_text(picture, shutil.get_terminal_size((100, 24)).columns))
        return
    _write_picture(picture, output)


def _write_picture(picture: Any, output: str) -> None:
    from pysmpi.collectives import drawing
    from pysmpi.io.output import OutputFile

    kind = output.rpartition(".")[2].lower()
    if kind == "txt":
        data = (drawing.as_text(picture) + "\n").encode()
    elif kind == "svg":
        data = drawing.as_svg(picture).encode()
    elif kind == "png":
        try:
            import cairosvg
        except ImportError:
            raise lacking(f"--output {output}", "png", "or choose .svg or .txt") from None
        data = cairosvg.svg2png(drawing.as_svg(picture).encode(), scale=2)
    else:
        raise UsageError(f"--output {output}: expected a name that ends in .svg, .png or .txt")
    with OutputFile("--output", output) as target:
        with target.writing(), open(target.path, "wb") as stream:
            stream.write(data)
        target.keep()
