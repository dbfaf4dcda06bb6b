"""Columns and notes, as the commands print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click


def print_rows(rows: Sequence[Sequence[str]]) -> None:
    """Print columns that are as wide as they need to be."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def print_notes(sources: Iterable[str], assumptions: Iterable[str]) -> None:
    """Print where figures come from, and what was assumed."""
    for title, lines in (("source", sources), ("assumed", assumptions)):
        for line in lines:
            click.echo(f"{title}: {line}")
