"""`pysmpi coherence study`, `programs` and `latencies`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import click

from pysmpi.cli.columns import print_notes, print_rows
from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import WholeNumber
from pysmpi.errors import UsageError
from pysmpi.io.output import OutputFile
from pysmpi.text import seconds, size, whole

if TYPE_CHECKING:
    from pysmpi.coherence.study import Study
    from pysmpi.memory.primitives.placement import Latencies, Position
    from pysmpi.memory.primitives.solution import Figures

FAILED = 1


@click.command("latencies")
@click.argument("name", required=False, metavar="[NAME|FILE]")
def latencies_command(name: str | None) -> None:
    """List the included machines with latencies, or show the latencies of one."""
    from pysmpi.memory.primitives.placement import KINDS, latencies, shipped

    if name is None:
        print_rows([(each, latencies(each).description) for each in shipped()])
        return
    found = latencies(name)
    echo(f"{found.name}: {found.description}\n")
    rows: list[Sequence[str]] = [("distance", *KINDS)]
    for i, (label, row) in enumerate(zip(found.names, found.distances)):
        rows.append((f"{i} {label}", *(seconds(row[kind]) for kind in KINDS)))
    print_rows(rows)
    echo(f"\na hit takes {seconds(found.hit)}")
    print_notes(found.sources, found.assumptions)


@click.command("programs")
def programs() -> None:
    """List the included primitives and their settings."""
    from pysmpi.memory.primitives.library import parameters, program, shipped

    rows = []
    for name in shipped():
        settings = ", ".join(f"{key}={value}" for key, value in parameters(name).items())
        rows.append((name, program(name).description, f"--set {settings}" if settings else ""))
    print_rows(rows)


@click.command("study")
@click.argument("program", metavar="PROGRAM")
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    metavar="NAME|FILE",
    help="Protocol of the caches; repeatable (default: the protocol of --latencies).",
)
@click.option(
    "--distance",
    "distances",
    multiple=True,
    type=WholeNumber(0, 1 << 53),
    help="Distance between the processes: 0 same node, 1 same module, "
    "2 another module; repeatable (default: 0).",
)
@click.option(
    "--mapping",
    metavar="M.N.P,M.N.P...",
    help="Module, node and processor of each process, instead of --distance.",
)
@click.option(
    "--home",
    "homes",
    multiple=True,
    metavar="VARIABLE=PROCESS",
    help="Put a variable in the node of a process; * matches any text; repeatable.",
)
@click.option(
    "--latencies",
    "machine",
    default="fame",
    show_default=True,
    metavar="NAME|FILE",
    help="Time of each transfer.",
)
@click.option(
    "--transfers",
    type=click.Choice(["atomic", "two-phase"]),
    default="atomic",
    show_default=True,
    help="Change caches at the beginning of a transfer, or in its middle.",
)
@click.option(
    "--simulate",
    "turns",
    type=WholeNumber(0, 1 << 53),
    default=0,
    metavar="TURNS",
    help="Also simulate this number of turns of process 0, and compare.",
)
@click.option(
    "--distribution",
    type=click.Choice(["exponential", "constant"]),
    default="exponential",
    show_default=True,
    help="Distribution of latencies in the simulation.",
)
@click.option(
    "--seed", type=WholeNumber(), default=0, show_default=True, help="Seed of the simulation.",
)  # fmt: skip
@click.option("--no-chain", is_flag=True, help="Do not solve the Markov chain.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the program; repeatable.",
)
@click.option(
    "--interleaved",
    is_flag=True,
    help="Also count the states with each beginning and end of an access.",
)
@click.option(
    "--property",
    "stated",
    multiple=True,
    metavar="TEXT",
    help='Also check this: "never A", "A precedes B", "A alternates with B", "A leads to B" or '
    '"always possible A"; an action is such as "0: store flag", * matches any text; repeatable.',
)
@click.option(
    "--export",
    metavar="FILE.aut",
    help="Write the transition system of the program in Aldebaran's format (CADP, mCRL2).",
)
@click.option(
    "--limit",
    type=WholeNumber(1, 1 << 53),
    default=1_000_000,
    show_default=True,
    help="Stop with an error above this number of states.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print it as JSON: seconds, counts per message."
)
def study_command(
    program: str,
    protocols: tuple[str, ...],
    distances: tuple[int, ...],
    mapping: str | None,
    homes: tuple[str, ...],
    machine: str,
    transfers: str,
    turns: int,
    distribution: str,
    seed: int,
    no_chain: bool,
    settings: tuple[str, ...],
    interleaved: bool,
    stated: tuple[str, ...],
    export: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """Study PROGRAM, a Python file or an included primitive: latency, misses, state space.

    With several protocols or distances, each combination is a row. The status is 1 if a property
    does not hold: mutual exclusion, no deadlock, coherence, equivalence with the specification,
    and those of --property.
    """
    from pysmpi.coherence.properties import parse_property
    from pysmpi.coherence.study import study
    from pysmpi.memory.coherence import protocol
    from pysmpi.memory.primitives.library import program as find_program
    from pysmpi.memory.primitives.placement import latencies

    properties = [parse_property(text) for text in stated]
    if export is not None and not export.endswith(".aut"):
        raise UsageError(f"--export {export}: expected a file called .aut")
    if no_chain and not turns:
        raise UsageError("--no-chain: expected --simulate TURNS with it")
    found = find_program(program, dict(_setting(text) for text in settings))
    priced = latencies(machine)
    tables = [protocol(name) for name in protocols or (priced.protocol or "MESI",)]
    places = _places(len(found.processes), distances, mapping, priced)
    studies: list[Study] = []
    with _written(export) as stream:
        for table in tables:
            for positions in places:
                # The program's own transitions are the same for all protocols and distances.
                first = not studies
                studies.append(
                    study(
                        found, table, positions, priced, transfers, solve=not no_chain,
                        turns=turns, seed=seed, distribution=distribution, limit=limit,
                        count_interleaved=interleaved, homes=dict(_home(text) for text in homes),
                        properties=properties, export=stream if first else None,
                    )
                )  # fmt: skip
    if as_json:
        echo(json.dumps([each.as_json() for each in studies], indent=2))
    elif len(studies) == 1:
        _show_study(studies[0])
    else:
        _compare(studies)
    return 0 if all(each.ok for each in studies) else FAILED


@contextmanager
def _written(export: str | None) -> Iterator[TextIO | None]:
    """The file of an export, if there is one; nothing is left of it after an error."""
    if export is None:
        yield None
        return
    with OutputFile("--export", export) as file:
        with file.writing(), open(file.path, "w", encoding="utf-8") as stream:
            yield stream
        file.keep()


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f'--set: expected NAME=VALUE, got "{text}"')
    return name, value


def _home(text: str) -> tuple[str, int]:
    name, equals, process = text.rpartition("=")
    number = whole(process)
    if not equals or number is None:
        raise UsageError(f'--home: expected VARIABLE=PROCESS, got "{text}"')
    return name, number


def _places(
    processes: int, distances: Sequence[int], mapping: str | None, priced: Latencies
) -> list[tuple[Position, ...]]:
    from pysmpi.memory.primitives.placement import at_distance, parse_mapping

    if mapping is not None:
        if distances:
            raise UsageError("--mapping: expected no --distance with it")
        return [parse_mapping(mapping)]
    known = len(priced.distances)
    for far in distances:
        if far >= known:
            raise UsageError(f"--distance: expected below {known} for {priced.name}, got {far}")
    return [at_distance(processes, far, max(3, known)) for far in distances or (0,)]


def _mapping(positions: Iterable[Position]) -> str:
    return ",".join(".".join(map(str, position)) for position in positions)


def _show_study(found: Study) -> None:
    echo(
        f"{found.program} on {found.protocol}, latencies {found.latencies}, "
        f"{found.transfers} transfers, processes at {_mapping(found.positions)}\n"
    )
    _show_sizes(found)
    echo()
    print_rows(
        [(each.name, "holds" if each.holds else "FAILS", each.detail) for each in found.checks]
    )
    shown = found.solved or found.simulated
    if shown is None:
        return
    echo()
    for label, figures in (("chain", found.solved), ("simulation", found.simulated)):
        if figures is not None:
            carried = f", {size(found.bandwidth(figures))}/s" if found.bytes else ""
            echo(
                f"{label}: {_latency(figures)} a {found.unit}{carried}, {figures.total:.2f} misses"
            )
    echo()
    _show_misses(found, shown)
    echo()
    print_rows(
        [("transfer/distance", f"a {found.unit}")]
        + [(name, f"{value:.2f}") for name, value in shown.transfers.items()]
    )


def _show_sizes(found: Study) -> None:
    sizes = found.sizes
    rows: list[Sequence[str]] = [
        ("state space", "states", "transitions"),
        ("  functional", f"{sizes.functional_states:,}", f"{sizes.functional_transitions:,}"),
        ("  Markov chain", f"{sizes.chain_states:,}", f"{sizes.chain_transitions:,}"),
        ("  lumped", f"{sizes.lumped_states:,}", f"{sizes.lumped_transitions:,}"),
    ]
    if sizes.interleaved is not None:
        states, transitions = sizes.interleaved
        rows.append(("  interleaved", f"{states:,}", f"{transitions:,}"))
    print_rows(rows)


def _latency(figures: Figures) -> str:
    """The latency, with the error of a simulated one; constant latencies have no error."""
    if figures.error < 1e-9 * figures.latency:
        return seconds(figures.latency)
    return f"{seconds(figures.latency)} +- {seconds(figures.error)}"


def _show_misses(found: Study, shown: Figures) -> None:
    total = shown.total or 1.0
    processes = [f"by {i}" for i in range(len(found.positions))]
    rows: list[Sequence[str]] = [(f"misses a {found.unit}", "by all", "share", *processes)]
    for kind, value in shown.by_kind.items():
        nothing = ["" for _ in processes]
        rows.append(
            (f"all of kind {kind}", f"{value:.2f}", f"{100 * value / total:.0f} %", *nothing)
        )
    for each in shown.misses:
        by = [f"{value:.2f}" for value in each.by_process]
        rows.append((each.variable, f"{each.total:.2f}", f"{100 * each.total / total:.0f} %", *by))
    print_rows(rows)


def _compare(studies: Sequence[Study]) -> None:
    kinds = list(next((s.by_kind for each in studies if (s := each.solved or each.simulated)), {}))
    simulated = any(each.simulated for each in studies)
    head = ["protocol", "processes at", "states", "lumped", "properties", "latency"]
    carries = studies[0].bytes > 0
    rows = [(*head, *(["simulated"] if simulated else []),
             *(["bandwidth"] if carries else []), "misses", *kinds)]  # fmt: skip
    for each in studies:
        row = [
            each.protocol,
            _mapping(each.positions),
            f"{each.sizes.chain_states:,}",
            f"{each.sizes.lumped_states:,}",
            "hold" if each.ok else "FAIL",
        ]
        shown = each.solved or each.simulated
        if shown is None:
            rows.append((*row, *("" for _ in rows[0][5:])))
            continue
        row.append(seconds(each.solved.latency) if each.solved else "")
        if simulated:
            row.append(_latency(each.simulated) if each.simulated else "")
        if carries:
            row.append(f"{size(each.bandwidth(shown))}/s")
        total = shown.total or 1.0
        row.append(f"{shown.total:.2f}")
        for kind in kinds:
            value = shown.by_kind.get(kind, 0.0)
            row.append(f"{value:.2f} ({100 * value / total:.0f} %)")
        rows.append(tuple(row))
    first = studies[0]
    echo(f"{first.program}, latencies {first.latencies}, {first.transfers} transfers")
    print_rows(rows)
