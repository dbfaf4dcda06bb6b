"""Printing of text that may have names of foreign files, programs and machines."""

from __future__ import annotations

import click

from pysmpi.text import visible


def echo(text: str = "", err: bool = False, nl: bool = True) -> None:
    """Print a text to standard output, or to standard error; control characters as escapes."""
    click.echo(visible(text), err=err, nl=nl)
