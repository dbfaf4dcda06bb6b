"""`pysmpi cxx`: compiles programs in C++, as `pysmpi cc` does those in C."""

from __future__ import annotations

import click

from pysmpi.cli.cc import SETTINGS, run


@click.command("cxx", context_settings=SETTINGS)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENT]...")
def command(words: tuple[str, ...]) -> int:
    """Compile a program in C++ for `pysmpi run`, as mpicxx does.

    The arguments are those of the compiler. -show prints its command, -compile-info and -link-info
    the parts of it. --abi chooses the binary interface as in pysmpi cc.
    """
    return run("cxx", words)
