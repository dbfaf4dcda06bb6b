"""`pysmpi coherence protocols` and `check`: transition tables, shown and explored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from pysmpi.cli.columns import print_notes, print_rows
from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import WholeNumber

if TYPE_CHECKING:
    from pysmpi.memory.coherence import Protocol

UNSAFE = 1


@click.command("protocols")
@click.argument("name", required=False, metavar="[NAME|FILE]")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def protocols(name: str | None, as_json: bool) -> None:
    """List the protocols, or show the table of one."""
    from pysmpi.memory.coherence import names, protocol

    if name is None:
        known = [protocol(each) for each in names()]
        if as_json:
            echo(json.dumps({each.name: each.description for each in known}, indent=2))
            return
        print_rows([(each.name, each.description) for each in known])
        return
    found = protocol(name)
    if as_json:
        echo(json.dumps(_table_json(found), indent=2))
    else:
        _show_table(found)


@click.command("check")
@click.argument("names", nargs=-1, metavar="[NAME|FILE]...")
@click.option(
    "--caches",
    type=WholeNumber(1, 1000),
    default=3,
    show_default=True,
    help="Number of caches in the explored system.",
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def check(names: tuple[str, ...], caches: int, as_json: bool) -> int:
    """Explore every state of a line, and report two owners and reads of an old value.

    Without names, all included protocols are checked. The status is 1 if one is not safe.
    """
    from pysmpi.memory.coherence import protocol, shipped
    from pysmpi.memory.coherence.safety import explore

    results = [(protocol(name), explore(protocol(name), caches)) for name in names or shipped()]
    if as_json:
        table = {
            found.name: {
                "safe": result.violation is None,
                "caches": caches,
                "states": result.states,
                "accesses": result.accesses,
                "violation": str(result.violation) if result.violation else None,
            }
            for found, result in results
        }
        echo(json.dumps(table, indent=2))
    else:
        print_rows(
            [
                (
                    found.name,
                    "safe" if result.violation is None else "NOT SAFE",
                    f"{result.states} states of a line in {caches} caches"
                    if result.violation is None
                    else str(result.violation),
                )
                for found, result in results
            ]
        )
    return UNSAFE if any(result.violation for _, result in results) else 0


def _show_table(found: Protocol) -> None:
    """Print the rules that three caches use; a row may stand for several states."""
    from pysmpi.memory.coherence.safety import met

    used = met(found)
    echo(f"{found.name}: {found.description}\n")
    rows: dict[tuple[str, ...], list[str]] = {}
    order = list(found.states)
    for key, rule in found.rules.items():
        if key not in used:
            continue
        weaker = order[order.index(rule.other) :]
        others = {rule.others.get(old, old) for old in weaker if old != found.invalid}
        notes = [
            name.replace("_", " ")
            for name in ("write_back", "update", "lookup")
            if getattr(rule, name)
        ]
        becomes = "stays" if rule.becomes == rule.own else rule.becomes
        told = rule.others.get(rule.other, rule.other)
        if told == rule.other:
            told = ""
        elif len(others) > 1:
            told = f"{rule.other} to {told}"
        data = "" if rule.data == "none" else rule.data
        row = (rule.operation, rule.own, becomes, told, data, ", ".join(notes))
        rows.setdefault(row, []).append(rule.other)
    shown: list[Sequence[str]] = [
        ("operation", "own", "another has", "own becomes", "others become", "data", "also")
    ]
    for (operation, own, *rest), others_had in rows.items():
        shown.append((operation, own, " ".join(others_had), *rest))
    print_rows(shown)
    if found.directory:
        echo("\ndirectory: " + ", ".join(f"{k} {v}" for k, v in found.directory.items()))
    echo()
    print_notes(found.sources, found.assumptions)


def _table_json(found: Protocol) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "name": found.name,
        "description": found.description,
        "states": {letter: asdict(state) for letter, state in found.states.items()},
        "rules": [asdict(rule) for rule in found.rules.values()],
        "directory": dict(found.directory),
        "sources": found.sources,
        "assumptions": found.assumptions,
    }
