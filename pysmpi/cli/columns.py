"""Columns and notes, as the commands print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click


def print_rows(rows: Sequence[Sequence[str]]) -> None:
    """Print columns with the smallest sufficient widths."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def print_notes(sources: Iterable[str], assumptions: Iterable[str]) -> None:
    """Print the sources of figures, and the assumptions."""
    for title, lines in (("source", sources), ("assumed", assumptions)):
        for line in lines:
            click.echo(f"{title}: {line}")
