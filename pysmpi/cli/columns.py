"""Columns and notes, as the commands print them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from textwrap import fill

from pysmpi.cli.echo import echo


def width() -> int:
    """The columns of the terminal, 80 if there is none."""
    return max(40, shutil.get_terminal_size().columns)


def print_glossary(entries: Iterable[tuple[str, str]], indent: str = "") -> None:
    """Print names and their meanings; the meanings are aligned and wrapped."""
    entries = list(entries)
    widest = max((len(name) for name, _ in entries), default=0)
    for name, meaning in entries:
        start = f"{indent}{name.ljust(widest)}  "
        echo(fill(meaning, width(), initial_indent=start, subsequent_indent=" " * len(start),
                        break_long_words=False, break_on_hyphens=False))  # fmt: skip


def print_rows(rows: Sequence[Sequence[str]]) -> None:
    """Print columns with the smallest sufficient widths."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def print_notes(sources: Iterable[str], assumptions: Iterable[str]) -> None:
    """Print the sources of figures, and the assumptions."""
    for title, lines in (("source", sources), ("assumed", assumptions)):
        for line in lines:
            echo(f"{title}: {line}")
